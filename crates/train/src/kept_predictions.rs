//! The predictions of a split that a run keeps on disk.

use std::io::ErrorKind;
use std::path::PathBuf;

use aleator_data::Split;
use aleator_run::recipe::{KeptPredictions, Recipe};
use aleator_run::{Predictions, PredictionsWriter, RunError, TopPredictionsWriter};

use crate::{Job, TrainError};

/// The file that the predictions of a split go to, if any, and those that it replaces.
pub(crate) struct SplitFile {
    writer: Writer,
    /// Files of an earlier evaluation, of other weights.
    stale: Vec<PathBuf>,
}

enum Writer {
    None,
    All(PredictionsWriter),
    Top(TopPredictionsWriter),
}

impl SplitFile {
    /// The file that the recipe asks for.
    pub fn create(job: &Job<'_>, split: &Split) -> Result<Self, TrainError> {
        let (all, top) =
            (job.run.predictions_path(split.name), job.run.top_predictions_path(split.name));
        let examples = split.len();
        let (writer, stale) = match job.recipe.evaluation.predictions {
            KeptPredictions::All => {
                (Writer::All(PredictionsWriter::create(&all, examples)?), vec![top])
            }
            KeptPredictions::None => (Writer::None, vec![all, top]),
            KeptPredictions::Top(count) => {
                (Writer::Top(TopPredictionsWriter::create(&top, examples, count)?), vec![all])
            }
        };
        Ok(Self { writer, stale })
    }

    /// No file, and none is replaced.
    pub fn none() -> Self {
        Self { writer: Writer::None, stale: vec![] }
    }

    /// Whether the recipe keeps complete predictions.
    pub fn is_complete(recipe: &Recipe) -> bool {
        recipe.evaluation.predictions == KeptPredictions::All
    }

    /// Adds the predictions of the next examples.
    pub fn push(&mut self, predictions: &Predictions) -> Result<(), TrainError> {
        match &mut self.writer {
            Writer::None => {}
            Writer::All(writer) => writer.push(predictions)?,
            Writer::Top(writer) => writer.push(predictions)?,
        }
        Ok(())
    }

    /// Removes the files of an earlier evaluation and brings this one to its place.
    pub fn commit(self) -> Result<(), TrainError> {
        self.stale.into_iter().try_for_each(forget)?;
        match self.writer {
            Writer::None => {}
            Writer::All(writer) => writer.commit()?,
            Writer::Top(writer) => writer.commit()?,
        }
        Ok(())
    }
}

/// Removes the file of an earlier evaluation.
pub(crate) fn forget(path: PathBuf) -> Result<(), TrainError> {
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(RunError::Io { action: "remove", path, source }.into())
        }
        _ => Ok(()),
    }
}
