//! What can go wrong with the files of a run.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file or folder of a run could not be written, read or believed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operating system refused.
    #[error("cannot {action} {}: {}", path.display(), in_words(source))]
    Io {
        /// What was tried, as in "cannot write".
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The output folder of a new run is taken.
    #[error(
        "{} exists: choose another --out, or `aleator resume {}` if it is an unfinished run",
        path.display(), path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is empty, but something else is mounted there or it is a link.
    #[error(
        "cannot put a run in place of the empty folder {}: {}; it may be a mount point or a link: \
         choose a folder inside it, as in --out {}",
        path.display(), source, path.join("run").display()
    )]
    NotReplaceable {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is nothing of this name.
    #[error("{} does not exist", path.display())]
    Missing {
        /// The folder that was looked for.
        path: PathBuf,
    },
    /// There is no `run.json`.
    #[error(
        "{} is not a run directory: it has no run.json; give the folder that `aleator train \
         --out` made",
        path.display()
    )]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// A run or an audit lacks the file that is written last.
    #[error(
        "{} is not finished (no {missing}); resume with `aleator resume {}`",
        dir.display(), whole.display()
    )]
    Unfinished {
        /// The run, group or audit.
        dir: PathBuf,
        /// What to resume: the run, or the group that it belongs to.
        whole: PathBuf,
        /// The file that is missing.
        missing: &'static str,
    },
    /// A run has no predictions of a split.
    #[error(
        "{} has no predictions of the {split} split; `aleator eval {}` makes them",
        dir.display(), dir.display()
    )]
    NotEvaluated {
        /// The run.
        dir: PathBuf,
        /// The split.
        split: &'static str,
    },
    /// The recipe of the run keeps no complete predictions.
    #[error(
        "{} keeps no complete predictions of the {split} split, which are needed here; set \
         evaluation.predictions = \"all\" in {}, then `aleator eval {}`",
        dir.display(), dir.join("recipe.toml").display(), dir.display()
    )]
    NotKept {
        /// The run.
        dir: PathBuf,
        /// The split.
        split: &'static str,
    },
    /// The directory was written in another format.
    #[error(
        "{} has format {found}, written by aleator {writer}; this is aleator {}, which reads \
         format {}",
        path.display(), env!("CARGO_PKG_VERSION"), crate::record::FORMAT
    )]
    Format {
        /// The `run.json`.
        path: PathBuf,
        /// Its `format`.
        found: String,
        /// Its `version`.
        writer: String,
    },
    /// Another process writes to the run.
    #[error("{} is in use by {holder}: wait until it ends, or end it", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// "process 123", as far as it is known.
        holder: String,
    },
    /// The content is not what this program writes.
    #[error("{}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line or field, what was expected and what was found.
        message: String,
    },
}

impl RunError {
    /// For `map_err` on an operation of the file system.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn unfinished(dir: &Path, whole: &Path, missing: &'static str) -> Self {
        Self::Unfinished { dir: dir.to_path_buf(), whole: whole.to_path_buf(), missing }
    }

    /// A file whose content is not what this program writes.
    pub fn damaged(path: &Path, message: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), message: message.to_string() }
    }
}

/// What the operating system said; where it matters to the user, in plain words first.
fn in_words(error: &io::Error) -> String {
    let words = match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::QuotaExceeded => "your quota on this disk is used up",
        io::ErrorKind::FileTooLarge => "the file is larger than is allowed here",
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        io::ErrorKind::PermissionDenied => "you have no permission for that",
        _ => return error.to_string(),
    };
    format!("{words} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_in_words() {
        for (kind, words) in [
            (io::ErrorKind::StorageFull, "the disk is full"),
            (io::ErrorKind::QuotaExceeded, "quota"),
            (io::ErrorKind::FileTooLarge, "larger than is allowed"),
            (io::ErrorKind::PermissionDenied, "you have no permission"),
        ] {
            let error = RunError::io("write", Path::new("run/metrics.jsonl"))(kind.into());
            let message = error.to_string();
            assert!(message.starts_with("cannot write run/metrics.jsonl: "), "{message}");
            assert!(message.contains(words), "{message}");
        }
    }
}
