//! What can go wrong in training, in words for the person who trains.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use aleator_data::DataError;
use aleator_run::RunError;

/// Why training, evaluation or prediction stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run directory.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The recipe cannot be read.
    #[error(transparent)]
    RecipeFile(#[from] aleator_run::RecipeError),
    /// The recipe and the data do not fit together.
    #[error("{0}")]
    Recipe(String),
    /// The loss or the gradient of a step.
    #[error(
        "the loss is not finite at step {step}{}\n\
         Checkpoints from before are kept, but going on would meet it again: start a new run. A lower optimizer.learning_rate, a longer \
         schedule.warm_up or optimizer.clip_norm=1.0 usually help.",
        culprits(names)
    )]
    NotFinite {
        /// The step, counted from 0.
        step: usize,
        /// Positions of the examples in the training split.
        examples: Vec<usize>,
        /// Their ids.
        names: Vec<String>,
    },
    /// The predictions of some examples.
    #[error(
        "the predictions of {count} examples of the {split} split are not finite: {names}\n\
         The weights have grown beyond what f32 holds; train with a lower optimizer.learning_rate.",
        count = names.len(), names = name_some(names)
    )]
    PredictionNotFinite {
        /// "validation", "test", or a file.
        split: String,
        /// Ids of the examples.
        names: Vec<String>,
    },
    /// The data are not those that the run began with.
    #[error(
        "{dir}: the data have changed since this run began (fingerprint {found}, expected \
         {expected}); restore them, or start a new run"
    )]
    OtherData {
        /// The run.
        dir: PathBuf,
        /// Of the run.
        expected: String,
        /// Of the data now.
        found: String,
    },
    /// A file of weights that cannot be used.
    #[error("{0}")]
    Weights(String),
    /// A checkpoint that cannot be used.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// Its directory, or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl TrainError {
    pub(crate) fn checkpoint(path: &Path, reason: impl Display) -> Self {
        Self::Checkpoint { path: path.to_path_buf(), reason: reason.to_string() }
    }

    pub(crate) fn not_finite(step: usize, examples: Vec<usize>) -> Self {
        Self::NotFinite { step, examples, names: vec![] }
    }

    pub(crate) fn prediction_not_finite(split: &str, names: Vec<String>) -> Self {
        Self::PredictionNotFinite { split: split.to_string(), names }
    }

    /// The same with the ids of the examples.
    pub(crate) fn named(self, name: impl Fn(usize) -> String) -> Self {
        match self {
            Self::NotFinite { step, examples, .. } => {
                let names = examples.iter().map(|example| name(*example)).collect();
                Self::NotFinite { step, examples, names }
            }
            other => other,
        }
    }
}

fn culprits(names: &[String]) -> String {
    match names.len() {
        0 => String::new(),
        count => format!(", from {count} of the batch's examples: {}", name_some(names)),
    }
}

/// The first ids, and how many more there are.
fn name_some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
