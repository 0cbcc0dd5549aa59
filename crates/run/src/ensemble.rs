//! `ensemble.json`: the runs whose probabilities an ensemble averages.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::RunError;
use crate::record::RunDir;

/// `ensemble.json` of a run directory that holds an average.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsembleFile {
    /// The directories of the members, from that of the ensemble: they may move together.
    pub members: Vec<String>,
}

impl EnsembleFile {
    /// The name of the file.
    pub const NAME: &str = "ensemble.json";

    /// For an ensemble of `dirs` in the directory `out`.
    ///
    /// # Errors
    /// When the current directory is unknown.
    pub fn of(dirs: &[PathBuf], out: &Path) -> Result<Self, RunError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(RunError::io("find", path));
        let out = absolute(out)?;
        let member = |dir: &PathBuf| Ok(relative(&absolute(dir)?, &out).display().to_string());
        Ok(Self { members: dirs.iter().map(member).collect::<Result<_, RunError>>()? })
    }

    /// Writes the file to the directory of the ensemble.
    pub fn save(&self, folder: &Path) -> Result<(), RunError> {
        atomic::write_json(&folder.join(Self::NAME), self)
    }

    /// Reads the file of a directory; `None` if it is not that of an ensemble.
    pub fn load(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(Self::NAME);
        if !path.is_file() {
            return Ok(None);
        }
        let file: Self = atomic::read_json(&path)?;
        if file.members.is_empty() {
            return Err(RunError::damaged(&path, "members is empty, expected at least one run"));
        }
        Ok(Some(file))
    }

    /// The directories of the members of the ensemble in `folder`. Earlier versions wrote them as
    /// they were given, which may have been from the current directory.
    pub fn dirs(&self, folder: &Path) -> Vec<PathBuf> {
        let dir = |member: &String| {
            let beside = folder.join(member);
            let given = PathBuf::from(member);
            let is_run = |dir: &PathBuf| dir.join(RunDir::INFO).is_file();
            if !is_run(&beside) && is_run(&given) { given } else { beside }
        };
        self.members.iter().map(dir).collect()
    }
}

/// The way from one absolute directory to another, by names alone.
fn relative(to: &Path, from: &Path) -> PathBuf {
    let mut to_parts = to.components().peekable();
    let mut from_parts = from.components().peekable();
    if to_parts.peek() != from_parts.peek() {
        return to.to_path_buf(); // another drive
    }
    while let (Some(a), Some(b)) = (to_parts.peek(), from_parts.peek())
        && a == b
    {
        to_parts.next();
        from_parts.next();
    }
    from_parts.map(|_| Component::ParentDir).chain(to_parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_from_the_ensemble_and_move_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (run, out) = (folder.join("runs/seed-0"), folder.join("runs/ensemble"));
        for dir in [&run, &out] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::fs::write(run.join(RunDir::INFO), "{}").unwrap();
        let file = EnsembleFile::of(&[run], &out).unwrap();
        assert_eq!(file.members, ["../seed-0"]);
        file.save(&out).unwrap();
        std::fs::rename(folder.join("runs"), folder.join("moved")).unwrap();
        let moved = folder.join("moved/ensemble");
        let dirs = EnsembleFile::load(&moved).unwrap().unwrap().dirs(&moved);
        assert!(dirs[0].join(RunDir::INFO).is_file(), "{dirs:?}");
        assert_eq!(EnsembleFile::load(folder).unwrap(), None);
    }
}
