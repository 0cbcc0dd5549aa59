//! What can be wrong with the runs that are read.

use std::path::PathBuf;

use aleator_run::RunError;

/// Why runs could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of data.
    #[error(transparent)]
    Data(#[from] aleator_data::DataError),
    /// Nothing to put together.
    #[error("an ensemble needs at least two runs, found {0}")]
    TooFew(usize),
    /// The runs are not of the same thing.
    #[error("{} and {} cannot be averaged: {reason}", first.display(), other.display())]
    Different {
        /// The first run.
        first: PathBuf,
        /// The run that differs from it.
        other: PathBuf,
        /// In what.
        reason: String,
    },
    /// No finished audit.
    #[error(
        "{} holds no finished audit (no audit.json); `aleator audit … --out {}` makes one, and \
         `aleator resume {}` finishes one that was stopped",
        dir.display(), dir.display(), dir.display()
    )]
    NoAudit {
        /// The folder.
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
    /// A run without what an analysis is of.
    #[error("{} has no covariance to analyse: {reason}", dir.display())]
    NoCovariance {
        /// The run.
        dir: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Two runs that do not speak of the same examples.
    #[error("{} cannot be held against {}: {reason}", first.display(), other.display())]
    NotComparable {
        /// The run that is analysed.
        first: PathBuf,
        /// The other one.
        other: PathBuf,
        /// What differs.
        reason: String,
    },
    /// A matrix that no page can show.
    #[error(
        "a covariance matrix of {classes} classes is too large to hold, at most {limit} are; \
         its strongest pairs can be had"
    )]
    TooManyClasses {
        /// K.
        classes: usize,
        /// At most so many.
        limit: usize,
    },
    /// The data are not those that a run was trained on.
    #[error("{}: the data have changed since: {reason}; audit them anew", dir.display())]
    Changed {
        /// The run.
        dir: PathBuf,
        /// In what.
        reason: String,
    },
    /// A run that was not evaluated.
    #[error("{} has no predictions of the {split} split: `aleator eval {}` makes them", dir.display(), dir.display())]
    NotEvaluated {
        /// The run.
        dir: PathBuf,
        /// The split.
        split: &'static str,
    },
    /// A run that was not finished.
    #[error(
        "{} is not finished (no evaluation.json): `aleator resume {}` goes on with it, and \
         `aleator eval {}` evaluates a run that is trained",
        dir.display(), dir.display(), dir.display()
    )]
    Unfinished {
        /// The run, or the folder of runs.
        dir: PathBuf,
    },
    /// Neither runs nor an audit.
    #[error(
        "{} has nothing to report: it is neither a run (run.json), nor a folder of runs \
         (group.json), nor a finished audit (audit.json)",
        dir.display()
    )]
    NothingToReport {
        /// The folder.
        dir: PathBuf,
    },
    /// Directories that cannot be in one report.
    #[error(
        "{} and {} cannot be in one report: their classes are not the same ({reason}); make one \
         for each",
        first.display(), other.display()
    )]
    OtherClasses {
        /// The first directory.
        first: PathBuf,
        /// The one that differs from it.
        other: PathBuf,
        /// In what.
        reason: String,
    },
    /// Something stands where the report should go.
    #[error(
        "{} exists and is not a report of aleator: choose another --out, or remove it",
        path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
}
