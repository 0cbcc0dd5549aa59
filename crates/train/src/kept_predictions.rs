//! The predictions of a split that a run keeps on disk.

use std::io::ErrorKind;
use std::path::PathBuf;

use aleator_covariance::CovarianceRecorder;
use aleator_data::Split;
use aleator_run::recipe::{KeptPredictions, Likelihood, Link, Recipe};
use aleator_run::{Predictions, PredictionsWriter, RunError, TopPredictionsWriter};

use crate::{Job, TrainError};

/// The files that the predictions of a split go to, if any, and those that they replace.
pub(crate) struct SplitFile {
    writer: Writer,
    covariances: Covariances,
    /// Where the sums over the covariances go.
    sums: PathBuf,
    loadings: WantedLoadings,
    examples: usize,
    /// Files of an earlier evaluation, of other weights.
    stale: Vec<PathBuf>,
}

enum Writer {
    None,
    All(PredictionsWriter),
    Top(TopPredictionsWriter),
}

/// What is added up, for the analysis of covariances that the predictions do not hold.
enum Covariances {
    /// The first examples will tell.
    Undecided,
    None,
    Recorded(Box<CovarianceRecorder>),
}

/// Whether each example's loadings are wanted with its predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WantedLoadings {
    None,
    Some {
        /// Those of the whole split are kept if they take no more than this.
        most_bytes: f64,
        examples: usize,
        /// Those that are not kept are added up if there are not too many classes.
        sums: bool,
    },
}

impl WantedLoadings {
    /// With this R, or whatever the number of columns is.
    pub fn are_wanted(self, classes: usize, rank: usize) -> bool {
        let summed = matches!(self, Self::Some { sums: true, .. });
        self.are_kept(classes, rank) || (summed && CovarianceRecorder::fits(classes))
    }

    fn are_kept(self, classes: usize, rank: usize) -> bool {
        let Self::Some { most_bytes, examples, .. } = self else { return false };
        (examples * classes) as f64 * (rank * size_of::<f32>()) as f64 <= most_bytes
    }
}

impl SplitFile {
    /// The files that the recipe asks for.
    pub fn create(job: &Job<'_>, split: &Split) -> Result<Self, TrainError> {
        let (all, top) =
            (job.run.predictions_path(split.name), job.run.top_predictions_path(split.name));
        let sums = job.run.covariance_path(split.name);
        let examples = split.len();
        let (writer, replaced) = match job.recipe.evaluation.predictions {
            KeptPredictions::All => {
                (Writer::All(PredictionsWriter::create(&all, examples)?), vec![top])
            }
            KeptPredictions::None => (Writer::None, vec![all, top]),
            KeptPredictions::Top(count) => {
                (Writer::Top(TopPredictionsWriter::create(&top, examples, count)?), vec![all])
            }
        };
        let mut stale = vec![sums.clone()];
        stale.extend(replaced);
        let learned = learns_covariances(job.recipe);
        let most = match writer {
            Writer::All(_) => job.recipe.evaluation.loadings_mib,
            Writer::None | Writer::Top(_) => 0,
        };
        let most_bytes = (most as f64) * f64::from(1 << 20);
        Ok(Self {
            writer,
            covariances: if learned { Covariances::Undecided } else { Covariances::None },
            sums,
            loadings: WantedLoadings::Some { most_bytes, examples, sums: learned },
            examples,
            stale,
        })
    }

    /// No file, and none is replaced.
    pub fn none() -> Self {
        Self {
            writer: Writer::None,
            covariances: Covariances::None,
            sums: PathBuf::new(),
            loadings: WantedLoadings::None,
            examples: 0,
            stale: vec![],
        }
    }

    /// Whether the recipe keeps complete predictions.
    pub fn is_complete(recipe: &Recipe) -> bool {
        recipe.evaluation.predictions == KeptPredictions::All
    }

    /// Which loadings [`push`](Self::push) wants to see.
    pub fn loadings(&self) -> WantedLoadings {
        self.loadings
    }

    /// Adds the predictions of the next examples.
    pub fn push(&mut self, mut predictions: Predictions) -> Result<(), TrainError> {
        let Predictions { classes, rank, .. } = predictions;
        let own = predictions.loadings.is_some();
        let kept = !own || self.loadings.are_kept(classes, rank);
        if matches!(self.covariances, Covariances::Undecided) {
            self.covariances = self.begin_sums(&predictions, kept)?;
        }
        if let Covariances::Recorded(recorder) = &mut self.covariances {
            recorder.push(&predictions)?;
        }
        if !kept {
            predictions.forget_loadings();
        }
        match &mut self.writer {
            Writer::None => {}
            Writer::All(writer) => writer.push(&predictions)?,
            Writer::Top(writer) => writer.push(&predictions)?,
        }
        Ok(())
    }

    /// Sums are taken where an analysis of the predictions on disk would not find them.
    fn begin_sums(&self, first: &Predictions, kept: bool) -> Result<Covariances, TrainError> {
        let complete = matches!(self.writer, Writer::All(_));
        if (complete && kept) || !CovarianceRecorder::fits(first.classes) {
            return Ok(Covariances::None);
        }
        let recorder = CovarianceRecorder::create(&self.sums, self.examples, first, complete)?;
        Ok(recorder.map_or(Covariances::None, |it| Covariances::Recorded(Box::new(it))))
    }

    /// Removes the files of an earlier evaluation and brings these to their places: sums never stand
    /// beside the predictions of other weights.
    pub fn commit(self) -> Result<(), TrainError> {
        self.stale.into_iter().try_for_each(forget)?;
        match self.writer {
            Writer::None => {}
            Writer::All(writer) => writer.commit()?,
            Writer::Top(writer) => writer.commit()?,
        }
        if let Covariances::Recorded(recorder) = self.covariances {
            recorder.commit()?;
        }
        Ok(())
    }
}

/// Whether the labels say anything about covariances between classes: not where each class is on or
/// off by itself (deviation D18).
fn learns_covariances(recipe: &Recipe) -> bool {
    recipe.head.link == Link::Softmax || recipe.head.likelihood == Likelihood::Joint
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
