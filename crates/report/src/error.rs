//! What can be wrong with runs, audits and the page to write.

use std::path::{Path, PathBuf};

use aleator_run::{RunDir, RunError};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Too few runs.
    #[error("an ensemble needs at least two runs, found {0}")]
    TooFew(usize),
    /// The runs have different classes or examples.
    #[error("{} cannot be {goal} {}: {reason}", first.display(), other.display())]
    Different {
        /// The first run.
        first: PathBuf,
        /// The run that differs from it.
        other: PathBuf,
        /// What they are needed for, as in "averaged with".
        goal: &'static str,
        /// The difference.
        reason: String,
    },
    /// The directory holds no finished audit.
    #[error(
        "{} holds no finished audit (no audit.json); `aleator audit … --out {}` makes one, and \
         `aleator resume {}` finishes one that was stopped",
        dir.display(), dir.display(), dir.display()
    )]
    NoAudit {
        /// The directory.
        dir: PathBuf,
    },
    /// Arrays that cannot be judged.
    #[error("{field}: {message}")]
    AuditInput {
        /// The array or file.
        field: String,
        /// The row and what was expected.
        message: String,
    },
    /// The run has no covariance.
    #[error("{} has no covariance to analyse: {reason}", dir.display())]
    NoCovariance {
        /// The run.
        dir: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The matrix would be too large.
    #[error(
        "a covariance matrix of {classes} classes is too large, the limit is {limit}; ask for its \
         strongest pairs instead"
    )]
    TooManyClasses {
        /// K.
        classes: usize,
        /// The largest K.
        limit: usize,
    },
    /// The data are not those on which a run was trained.
    #[error("{}: the data have changed since: {reason}; audit them again", dir.display())]
    Changed {
        /// The run.
        dir: PathBuf,
        /// The difference.
        reason: String,
    },
    /// The directory holds neither runs nor an audit.
    #[error(
        "{} has nothing to report: it is neither a run (run.json), nor a group of runs \
         (group.json), nor a finished audit (audit.json)",
        dir.display()
    )]
    NothingToReport {
        /// The directory.
        dir: PathBuf,
    },
    /// Two directories have different classes.
    #[error(
        "{} and {} cannot be in one report: {reason}; make a report of each",
        first.display(), other.display()
    )]
    OtherClasses {
        /// The first directory.
        first: PathBuf,
        /// The one that differs from it.
        other: PathBuf,
        /// The difference.
        reason: String,
    },
    /// Another file would be overwritten.
    #[error(
        "{} exists and is not an aleator report: choose another --out, or remove it",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
}

impl ReportError {
    pub(crate) fn different(
        first: &Path,
        other: &RunDir,
        goal: &'static str,
        reason: String,
    ) -> Self {
        let (first, other) = (first.to_path_buf(), other.path().to_path_buf());
        Self::Different { first, other, goal, reason }
    }
}
