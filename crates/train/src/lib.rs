//! The training loop: optimizer, schedule, checkpoints, evaluation.

#![recursion_limit = "256"]

mod checkpoint;
mod error;
mod evaluate;
mod experiment;
mod features;
mod gathered;
pub mod group;
mod logs;
mod normalize;
mod optimizer;
mod predict;
mod runs;
mod schedule;
mod session;
mod set_aside;
mod state;
mod tensors;

use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::{DataSet, training_batches};
use aleator_run::RunDir;
use aleator_run::recipe::Recipe;

pub use checkpoint::Checkpoints;
pub use error::TrainError;
pub use evaluate::{EvaluateSettings, evaluate};
pub use features::{FeatureExtractor, weights_file};
pub use normalize::Normalization;
pub use optimizer::{Group, Optimizer};
pub use predict::{Chance, Confusion, Predicted, Predictor};
pub use runs::{RunOutcome, check_recipe, create_run, finish_run, label_sets, load_run, run_data};
pub use schedule::Schedule;
pub use state::StepReport;

use session::Session;

/// One run: a recipe, a seed, the data, and where it is written.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The run directory, which the caller holds the lock of.
    pub run: &'a RunDir,
    /// The resolved recipe.
    pub recipe: &'a Recipe,
    /// The seed of this run.
    pub seed: u64,
    /// The data of the recipe.
    pub data: &'a DataSet,
    /// Set from outside to make training save and return.
    pub stop: &'a AtomicBool,
}

/// How [`train`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Training is over.
    Finished {
        /// Steps done; fewer than planned when it stopped early.
        step: usize,
    },
    /// `stop` was set; the state is saved.
    Interrupted {
        /// Steps done.
        step: usize,
    },
}

/// Something that a person who waits wants to see.
#[derive(Debug)]
pub enum Event<'a> {
    /// Training begins or goes on.
    Started {
        /// The next step.
        step: usize,
        /// Steps in all.
        total_steps: usize,
        /// Steps of an epoch.
        steps_per_epoch: usize,
        /// Numbers that are learned.
        parameters: usize,
    },
    /// The files of the data were opened, hashed and checked.
    Opened {
        /// Examples of the training source.
        examples: usize,
    },
    /// Every image is decoded once before the first step; those that were decoded for another run
    /// of the group do not count.
    Checking {
        /// Images done.
        done: usize,
        /// Images in all.
        total: usize,
    },
    /// Examples were left out because their images cannot be decoded.
    SetAside(&'a [aleator_run::SetAside]),
    /// Something odd about the data.
    Warning(&'a str),
    /// A checkpoint was passed over.
    Damaged(&'a TrainError),
    /// A step was made.
    Step {
        /// Steps done.
        step: usize,
        /// Examples of the step.
        examples: usize,
        /// Loss and accuracy.
        report: StepReport,
    },
    /// An epoch ended.
    Epoch {
        /// Epochs done.
        epoch: usize,
        /// Validation NLL on the given labels.
        nll: f64,
        /// Validation accuracy on the given labels.
        top1: f64,
        /// Whether the NLL is the lowest so far.
        best: bool,
    },
    /// The validation NLL has not fallen for too long.
    StoppedEarly {
        /// Epochs done.
        epoch: usize,
    },
    /// A split is evaluated.
    Evaluating {
        /// "validation" or "test".
        split: &'a str,
        /// Examples done.
        done: usize,
        /// Examples in all.
        total: usize,
    },
}

/// Is told of every [`Event`].
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// Trains from the newest checkpoint, or from the start, until the end, or until `stop` is set.
///
/// Killed at any point and called again, it comes to the same bits.
pub fn train(job: &Job<'_>, observer: &mut Observer<'_>) -> Result<Ended, TrainError> {
    let mut session = Session::open(job, observer)?;
    for batch in training_batches(
        job.data.train.clone(),
        session.order(),
        session.steps_to_do(),
        job.recipe.training.workers,
    ) {
        if let Some(stepped) = session.step(batch?)? {
            observer(stepped.event());
            if session.is_end_of_epoch() {
                session.finish_epoch(observer)?;
            } else if session.is_save_due() {
                session.save()?;
            }
        }
        let step = session.state.progress.step;
        if session.state.progress.finished {
            break;
        }
        if job.stop.load(Ordering::Relaxed) {
            session.save()?;
            return Ok(Ended::Interrupted { step });
        }
    }
    Ok(Ended::Finished { step: session.state.progress.step })
}
