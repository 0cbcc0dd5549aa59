//! The one reader of finished work: a run, a group of runs, or an audit.

use std::path::{Path, PathBuf};

use aleator_metrics::{EVALUATION_FORMAT, Evaluation};

use crate::error::RunError;
use crate::group::{GroupFile, GroupKind, GroupMember};
use crate::record::RunDir;

/// The file that a finished run has and an unfinished one has not.
pub const EVALUATION: &str = "evaluation.json";

/// The file that a finished audit has.
pub const AUDIT: &str = "audit.json";

/// A run that is trained and evaluated.
#[derive(Clone, Debug)]
pub struct EvaluatedRun {
    /// The run directory, with its `run.json`.
    pub dir: RunDir,
    /// Its `evaluation.json`.
    pub evaluation: Evaluation,
}

impl EvaluatedRun {
    /// Opens the run at `path`.
    ///
    /// # Errors
    /// [`RunError::Unfinished`] when it has no `evaluation.json`.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Self::of(RunDir::open(path)?, path)
    }

    /// The same of a run that is open; `whole` is the directory that `aleator resume` takes.
    pub fn of(dir: RunDir, whole: &Path) -> Result<Self, RunError> {
        match dir.evaluation()? {
            Some(evaluation) => Ok(Self { dir, evaluation }),
            None => Err(RunError::unfinished(dir.path(), whole, EVALUATION)),
        }
    }
}

impl RunDir {
    /// Reads `evaluation.json`; `None` until the run is evaluated.
    pub fn evaluation(&self) -> Result<Option<Evaluation>, RunError> {
        let path = self.path().join(EVALUATION);
        if !path.exists() {
            return Ok(None);
        }
        let evaluation: Evaluation = self.read_json(EVALUATION)?;
        if evaluation.format != EVALUATION_FORMAT {
            let found = evaluation.format;
            let message = format!("has format {found}, expected {EVALUATION_FORMAT}");
            return Err(RunError::damaged(&path, message));
        }
        Ok(Some(evaluation))
    }
}

/// What a directory holds.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use aleator_run::{GroupFile, GroupKind, GroupMember, RunError, RunTree};
///
/// let member = GroupMember { name: "seed-0".to_string(), seed: 0, recipe: String::new() };
/// GroupFile::new(GroupKind::Seeds, vec![member]).save(dir.path())?;
/// let Some(RunTree::Group(group)) = RunTree::open(dir.path())? else { panic!("a group") };
/// let run = group.open(&group.members[0]);
/// assert!(matches!(run, Err(RunError::Unfinished { .. })));
/// # Ok::<(), RunError>(())
/// ```
#[derive(Clone, Debug)]
pub enum RunTree {
    /// A finished audit.
    Audit(PathBuf),
    /// Runs that belong together, finished or not.
    Group(RunGroup),
    /// One run, finished or not.
    Run(RunDir),
}

/// The runs of a `group.json`.
#[derive(Clone, Debug)]
pub struct RunGroup {
    /// The directory.
    pub dir: PathBuf,
    /// Why the runs belong together.
    pub kind: GroupKind,
    /// The runs, in their order.
    pub members: Vec<GroupMember>,
}

impl RunTree {
    /// Opens a directory; `None` if it is neither an audit, nor a group, nor a run.
    pub fn open(path: &Path) -> Result<Option<Self>, RunError> {
        let has = |name: &str| path.join(name).is_file();
        Ok(if has(AUDIT) {
            Some(Self::Audit(path.to_path_buf()))
        } else if has(GroupFile::NAME) {
            let GroupFile { kind, members, .. } = GroupFile::load(path)?;
            Some(Self::Group(RunGroup { dir: path.to_path_buf(), kind, members }))
        } else if has(RunDir::INFO) {
            Some(Self::Run(RunDir::open(path)?))
        } else {
            None
        })
    }
}

impl RunGroup {
    /// Opens a member.
    ///
    /// # Errors
    /// [`RunError::Unfinished`], which names the group to resume, until the member is evaluated.
    pub fn open(&self, member: &GroupMember) -> Result<EvaluatedRun, RunError> {
        match RunDir::open(&self.dir.join(&member.name)) {
            Ok(dir) => EvaluatedRun::of(dir, &self.dir),
            Err(RunError::NotARun { path }) => {
                Err(RunError::unfinished(&path, &self.dir, EVALUATION))
            }
            Err(error) => Err(error),
        }
    }

    /// The average of the members, if there is one.
    pub fn ensemble(&self) -> Result<Option<EvaluatedRun>, RunError> {
        match EvaluatedRun::open(&self.dir.join("ensemble")) {
            Ok(run) => Ok(Some(run)),
            Err(RunError::NotARun { .. } | RunError::Unfinished { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The error for a group without finished runs, or an audit without `audit.json`.
    pub fn unfinished(&self) -> RunError {
        let missing = if self.kind == GroupKind::Audit { AUDIT } else { EVALUATION };
        RunError::unfinished(&self.dir, &self.dir, missing)
    }
}

impl GroupMember {
    /// Its name without the seed: members of one setting differ in their seeds only.
    pub fn setting(&self) -> &str {
        let (setting, last) = self.name.rsplit_once('/').unwrap_or(("", &self.name));
        if seed_of_name(last).is_some() { setting } else { &self.name }
    }
}

/// N of a directory that is called `seed-N`.
pub fn seed_of_name(name: &str) -> Option<u64> {
    name.strip_prefix("seed-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_one_setting_differ_in_their_seeds_only() {
        let setting = |name: &str| {
            let name = name.to_string();
            GroupMember { name, seed: 0, recipe: String::new() }.setting().to_string()
        };
        assert_eq!(setting("rank=6/seed-1"), "rank=6");
        assert_eq!(setting("seed-1"), "");
        assert_eq!(setting("fold-1"), "fold-1");
        assert_eq!(setting("rank=6/seed-x"), "rank=6/seed-x");
    }
}
