//! Why runs cannot be compared, and what to do about it.

use std::path::PathBuf;

use aleator_run::{RecipeError, RunError};

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file of a table.
    #[error(transparent)]
    Layout(#[from] RecipeError),
    /// Neither a table inside the program nor a file.
    #[error("{name:?} is neither a file nor a table; the tables are: {known}")]
    NoLayout {
        /// What was asked for.
        name: String,
        /// All tables inside the program.
        known: String,
    },
    /// Nothing stands there.
    #[error("{}: there is no such folder", dir.display())]
    NoFolder {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder has nothing to compare.
    #[error(
        "{} holds no runs: give a run directory, a folder of seeds, or a folder that contains such",
        dir.display()
    )]
    NoRuns {
        /// The folder.
        dir: PathBuf,
    },
    /// A run without `evaluation.json`.
    #[error(
        "{} is not finished: it has no evaluation.json; `aleator resume {}` goes on with it",
        dir.display(), whole.display()
    )]
    Unfinished {
        /// The run.
        dir: PathBuf,
        /// The run, or the group that it belongs to.
        whole: PathBuf,
    },
    /// One run twice in a row.
    #[error(
        "{row}: {} and {} are runs of the same seed, so their spread would be too small; give each \
         seed once, and other recipes another name",
        first.display(), second.display()
    )]
    SeedTwice {
        /// The row.
        row: String,
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Two rows of one name that nobody asked to be put together.
    #[error("two rows are called {name}: name the one of {} by NAME={}", dir.display(), dir.display())]
    NameTwice {
        /// The name.
        name: String,
        /// The folder of the second.
        dir: PathBuf,
    },
    /// A folder that is to make one row makes several.
    #[error("{} holds several rows, and {row} is one: name one of the folders in it", dir.display())]
    SeveralRows {
        /// The folder.
        dir: PathBuf,
        /// The row of the table.
        row: String,
    },
    /// The rows were not measured on the same thing.
    #[error("{} and {} cannot be compared: {reason}", first.display(), other.display())]
    Incomparable {
        /// The first run.
        first: PathBuf,
        /// The run that differs from it.
        other: PathBuf,
        /// In what.
        reason: String,
    },
    /// A run without a test split.
    #[error("{} has no test split; compare by --split validation", dir.display())]
    NoTestSplit {
        /// The run.
        dir: PathBuf,
    },
    /// What was learned from is not measured.
    #[error("the train split is not measured: choose validation or test")]
    TrainIsNotMeasured,
    /// True labels that are not known.
    #[error(
        "{} knows no clean labels of the {split} split; compare by --labels given",
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
