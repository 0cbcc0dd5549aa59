//! Why runs cannot be compared, and what to do about it.

use std::path::PathBuf;

use aleator_run::{RecipeError, RunError};

/// Why runs could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file of a table.
    #[error(transparent)]
    Layout(#[from] RecipeError),
    /// Neither a built-in table nor a file.
    #[error("{name:?} is neither a file nor a table; the tables are: {known}")]
    NoLayout {
        /// The requested name.
        name: String,
        /// All built-in tables.
        known: String,
    },
    /// The directory does not exist.
    #[error("{}: there is no such directory", dir.display())]
    NoDirectory {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory holds nothing to compare.
    #[error(
        "{} holds no runs: give a run directory, a directory of seeds, or one that contains these",
        dir.display()
    )]
    NoRuns {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory holds an audit, which has no scores to compare.
    #[error(
        "{dir} is an audit, which finds wrong labels and has no scores to compare: `aleator report \
         {dir}` shows its findings. To compare training on its labels, train on each label file \
         and compare those runs",
        dir = dir.display()
    )]
    OfAudit {
        /// The directory.
        dir: PathBuf,
    },
    /// The same seed twice in one row.
    #[error(
        "{row}: {} and {} are runs of the same seed, so their spread would be too small; give each \
         seed once, and give other recipes another name",
        first.display(), second.display()
    )]
    SeedTwice {
        /// The row.
        row: String,
        /// The first run.
        first: PathBuf,
        /// The second run.
        second: PathBuf,
    },
    /// Two rows have the same name by accident.
    #[error("two rows are called {name}: give the second one another name with NAME={}", dir.display())]
    NameTwice {
        /// The name.
        name: String,
        /// The directory of the second.
        dir: PathBuf,
    },
    /// A directory holds several rows where one is expected.
    #[error("{} holds several rows, and {row} needs one: name one of the directories in it", dir.display())]
    SeveralRows {
        /// The directory.
        dir: PathBuf,
        /// The row of the table.
        row: String,
    },
    /// The rows were measured on different data.
    #[error("{} and {} cannot be compared: {reason}", first.display(), other.display())]
    Incomparable {
        /// The first run.
        first: PathBuf,
        /// The run that differs from it.
        other: PathBuf,
        /// The difference.
        reason: String,
    },
    /// A run without a test split.
    #[error("{} has no test split; use --split validation", dir.display())]
    NoTestSplit {
        /// The run.
        dir: PathBuf,
    },
    /// The training split is not evaluated.
    #[error("the train split is not evaluated: choose validation or test")]
    TrainIsNotMeasured,
    /// The true labels are unknown.
    #[error(
        "{} has no clean labels of the {split} split; use --labels given",
        dir.display()
    )]
    NoCleanLabels {
        /// The run.
        dir: PathBuf,
        /// The split.
        split: &'static str,
    },
    /// No temperature was fitted.
    #[error("{} is not calibrated: `aleator eval {} --calibrate` does it", dir.display(), dir.display())]
    NotCalibrated {
        /// The run.
        dir: PathBuf,
    },
    /// Calibrated numbers against clean labels.
    #[error(
        "calibrated numbers are measured against the given labels only: leave out --labels clean"
    )]
    CalibratedIsGiven,
}
