//! The one reader of finished work: a run, a group of runs, or an audit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aleator_metrics::{
    Calibration, EVALUATION_FORMAT, Evaluation, OtherWeights, SplitEvaluation, Summary,
};

use crate::atomic::exists;
use crate::error::RunError;
use crate::group::{GroupFile, GroupKind, GroupMember};
use crate::recipe::Noise;
use crate::record::RunDir;
use crate::regular::check_own_folder;

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
        check(&evaluation, &self.info().class_names)
            .map_err(|message| RunError::damaged(&path, message))?;
        Ok(Some(evaluation))
    }
}

/// Refuses scores that no evaluation of these classes has.
fn check(evaluation: &Evaluation, class_names: &[String]) -> Result<(), String> {
    let classes = class_names.len();
    if evaluation.class_names != class_names {
        return Err("class_names must be those of run.json".to_string());
    }
    if let Some(Calibration { temperature, .. }) = evaluation.calibration {
        check_scale("calibration.temperature", temperature)?;
    }
    if let Some(law) = &evaluation.true_class {
        check_scale("true_class.sharpness", law.sharpness)?;
        check_share("true_class.noise_rate", law.noise_rate)?;
        let is_square = |rows: &Vec<Vec<f64>>| {
            rows.len() == classes && rows.iter().all(|row| row.len() == classes)
        };
        if law.confusion.as_ref().is_some_and(|rows| !is_square(rows)) {
            return Err(format!("true_class.confusion must be [{classes}, {classes}]"));
        }
    }
    check_splits(&evaluation.validation, evaluation.test.as_ref(), classes)?;
    let Some(other) = &evaluation.other_weights else { return Ok(()) };
    check_other(other, evaluation, classes).map_err(|message| format!("other_weights.{message}"))
}

/// Refuses other weights that are the same ones, and scores that no weights have.
fn check_other(
    other: &OtherWeights,
    evaluation: &Evaluation,
    classes: usize,
) -> Result<(), String> {
    let expected = match evaluation.weights.as_str() {
        "best" => "last",
        "last" => "best",
        whole => return Err(format!("weights: there are none beside weights = {whole:?}")),
    };
    if other.weights != expected {
        return Err(format!("weights must be {expected:?}, found {:?}", other.weights));
    }
    let Some(scores) = &other.scores else { return Ok(()) };
    if let Some(Calibration { temperature, .. }) = scores.calibration {
        check_scale("scores.calibration.temperature", temperature)?;
    }
    check_splits(&scores.validation, scores.test.as_ref(), classes)
        .map_err(|message| format!("scores.{message}"))
}

fn check_splits(
    validation: &SplitEvaluation,
    test: Option<&SplitEvaluation>,
    classes: usize,
) -> Result<(), String> {
    for (name, split) in [("validation", Some(validation)), ("test", test)] {
        let Some(SplitEvaluation { given, clean, calibrated }) = split else { continue };
        for summary in [Some(given), clean.as_ref(), calibrated.as_ref()].into_iter().flatten() {
            check_summary(summary, classes).map_err(|message| format!("{name}: {message}"))?;
        }
    }
    Ok(())
}

fn check_summary(summary: &Summary, classes: usize) -> Result<(), String> {
    let Summary { top1, top5, ece, gap, mean_ap, subset_accuracy, per_class, reliability, .. } =
        summary;
    for (name, share) in [("top1", Some(*top1)), ("ece", Some(*ece))].into_iter().chain([
        ("top5", *top5),
        ("gap", *gap),
        ("mean_ap", *mean_ap),
        ("subset_accuracy", *subset_accuracy),
    ]) {
        share.map_or(Ok(()), |share| check_share(name, share))?;
    }
    // Other programs may leave them out.
    if !per_class.is_empty() && !per_class.iter().map(|it| it.class).eq(0..classes) {
        return Err(format!("per_class must be the {classes} classes in their order"));
    }
    for bin in reliability {
        for (name, share) in [("low", bin.low), ("high", bin.high)] {
            check_share(&format!("reliability: {name}"), share)?;
        }
    }
    Ok(())
}

/// A number to divide and to multiply by.
fn check_scale(name: &str, value: f64) -> Result<(), String> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if positive(value) && positive(1.0 / value) {
        return Ok(());
    }
    Err(format!("{name} must be a finite number above 0, found {value}"))
}

fn check_share(name: &str, value: f64) -> Result<(), String> {
    // Means of shares may be off by their rounding.
    const ROUNDING: f64 = 1e-9;
    if (-ROUNDING..=1.0 + ROUNDING).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} must be from 0 to 1, found {value}"))
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

    /// All that is in a directory: itself, with an empty name, or what its folders hold, with their
    /// names, `a/b` where they are nested, sorted.
    ///
    /// # Errors
    /// When `path` does not exist, or a file in it is damaged.
    pub fn find(path: &Path) -> Result<Vec<(String, Self)>, RunError> {
        if !exists(path)? {
            return Err(RunError::Missing { path: path.to_path_buf() });
        }
        let mut found = vec![];
        Self::search(path, "", DEPTH, &mut found)?;
        Ok(found)
    }

    fn search(
        path: &Path,
        name: &str,
        depth: usize,
        found: &mut Vec<(String, Self)>,
    ) -> Result<(), RunError> {
        if let Some(tree) = Self::open(path)? {
            found.push((name.to_string(), tree));
        } else if depth > 0 && path.is_dir() {
            for (child, path) in subdirectories(path)? {
                let name = if name.is_empty() { child } else { format!("{name}/{child}") };
                Self::search(&path, &name, depth - 1, found)?;
            }
        }
        Ok(())
    }

    /// The noise model, where it is one: that of a run, or of all runs of a group.
    pub fn noise(&self) -> Option<Noise> {
        let mut all = match self {
            Self::Audit(_) => vec![],
            Self::Run(run) => vec![run.info().noise],
            Self::Group(group) => {
                let open = |member: &GroupMember| RunDir::open(&group.dir.join(&member.name)).ok();
                let runs = group.members.iter().filter_map(open);
                runs.map(|run| run.info().noise).collect()
            }
        };
        all.dedup();
        if let [noise] = all[..] { Some(noise) } else { None }
    }
}

/// How deep to search directories that are neither runs nor groups.
const DEPTH: usize = 3;

/// Names and paths, sorted, without hidden directories.
fn subdirectories(dir: &Path) -> Result<BTreeMap<String, PathBuf>, RunError> {
    let mut dirs = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(RunError::io("read", dir))? {
        let entry = entry.map_err(RunError::io("read", dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            dirs.insert(name, entry.path());
        }
    }
    Ok(dirs)
}

impl RunGroup {
    /// Opens a member.
    ///
    /// # Errors
    /// [`RunError::Unfinished`], which names the group to resume, until the member is evaluated.
    pub fn open(&self, member: &GroupMember) -> Result<EvaluatedRun, RunError> {
        match RunDir::open(&self.dir.join(&member.name)) {
            Ok(dir) => EvaluatedRun::of(dir, &self.dir),
            Err(RunError::NotARun { path } | RunError::Missing { path }) => {
                Err(RunError::unfinished(&path, &self.dir, EVALUATION))
            }
            Err(error) => Err(error),
        }
    }

    /// The average of the members, if there is one.
    pub fn ensemble(&self) -> Result<Option<EvaluatedRun>, RunError> {
        check_own_folder(&self.dir, "ensemble")?;
        match EvaluatedRun::open(&self.dir.join("ensemble")) {
            Ok(run) => Ok(Some(run)),
            Err(
                RunError::NotARun { .. } | RunError::Missing { .. } | RunError::Unfinished { .. },
            ) => Ok(None),
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
    pub fn setting(&self) -> String {
        without_seed(&self.name)
    }
}

/// The name of a run without its seed: without a last part `seed-N`, and without the seed of a
/// sweep over seeds.
///
/// ```
/// use aleator_run::without_seed;
///
/// assert_eq!(without_seed("rank=6/seed-1"), "rank=6");
/// assert_eq!(without_seed("rank=6,seed=1"), "rank=6");
/// ```
pub fn without_seed(name: &str) -> String {
    let (setting, last) = name.rsplit_once('/').unwrap_or(("", name));
    if seed_of_name(last).is_some() {
        return setting.to_string();
    }
    let is_seed = |part: &&str| {
        let value = part.strip_prefix("seed=").or(part.strip_prefix("seeds="));
        value.is_some_and(|value| value.parse::<u64>().is_ok())
    };
    let others: Vec<&str> = name.split(',').filter(|part| !is_seed(part)).collect();
    others.join(",")
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
            GroupMember { name, seed: 0, recipe: String::new() }.setting()
        };
        assert_eq!(setting("rank=6/seed-1"), "rank=6");
        assert_eq!(setting("seed-1"), "");
        assert_eq!(setting("fold-1"), "fold-1");
        assert_eq!(setting("rank=6/seed-x"), "rank=6/seed-x");
        assert_eq!(setting("seed=3,head.rank=6"), "head.rank=6");
        assert_eq!(setting("head.rank=6,seeds=3"), "head.rank=6");
        assert_eq!(setting("seed=3"), "");
        assert_eq!(setting("data.noise.seed=3,seeds=1+2"), "data.noise.seed=3,seeds=1+2");
    }
}
