//! The training loop: optimizer, schedule, checkpoints, evaluation.
//!
//! | module | responsibility |
//! |---|---|
//! | `lib` | the loop, on one screen |
//! | `session` | what the loop does around a step: resume, log, validate, save |
//! | `parts`, `step`, `sum` | the parts of a step, what each adds, and their sum along a fixed tree |
//! | `method`, `method/` | training methods, one file each |
//! | `state`, `network` | what training changes; one network with its average and its optimizer |
//! | `optimizer`, `schedule`, `normalize` | how weights move, how fast; what is done to inputs first |
//! | `lbfgs` | the search of the optimizer of that name |
//! | `leave_one_out`, `dynamics` | what other examples say of each example; what was predicted for it on the way |
//! | `tuning` | settings that suit the data, chosen on held-out examples |
//! | `checkpoint`, `logs`, `tensors` | what makes a resumed run the same run |
//! | `evaluate`, `outputs` | checkpoint and split → predictions and scores |
//! | `trained` | which checkpoint of a trained run is used |
//! | `predict`, `prediction` | new inputs → probabilities and scores; the result, as arrays and in words |
//! | `features` | inputs → features |
//! | `set_aside` | images that cannot be decoded, found before the first step |
//! | `runs`, `group` | a run from its first file to its last; several runs |
//! | `experiment` | recipe → configuration of the model |

#![recursion_limit = "256"]

mod checkpoint;
mod dynamics;
mod error;
mod evaluate;
mod experiment;
mod features;
pub mod group;
mod joint;
mod kept_predictions;
mod lbfgs;
mod leave_one_out;
mod logs;
mod method;
mod network;
mod normalize;
mod optimizer;
mod outputs;
mod parts;
mod predict;
mod prediction;
mod runs;
mod schedule;
mod scorer;
mod session;
mod set_aside;
mod state;
mod step;
mod sum;
mod tensors;
mod trained;
mod tuning;

use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::DataSet;
use aleator_run::RunDir;
use aleator_run::recipe::Recipe;

pub use checkpoint::Checkpoints;
pub use dynamics::dynamics;
pub use error::TrainError;
pub use evaluate::{EvaluateSettings, evaluate};
pub use experiment::count_parameters;
pub use features::FeatureExtractor;
pub use leave_one_out::{LeaveOneOut, leave_one_out};
pub use normalize::Normalization;
pub use optimizer::{Group, Layer, Optimizer, Step};
pub use predict::{CleanScores, DamagedImage, NewScores, PredictedPiece, Predictor};
pub use prediction::{ClassProbability, Confusion, ExamplePrediction, Prediction, SetPredictions};
pub use runs::{
    check_recipe, create_run, finish_run, hash_file, label_sets, load_run, run_data, same_data,
};
pub use schedule::Schedule;
pub use step::StepReport;
pub use tuning::{NoiseSettings, Settings, Trial, Tuning};

use session::Session;

/// One run: a recipe, the data, and where it is written.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The run directory, whose lock the caller holds.
    pub run: &'a RunDir,
    /// The resolved recipe.
    pub recipe: &'a Recipe,
    /// The data of the recipe.
    pub data: &'a DataSet,
    /// Set by the caller to make training save and return.
    pub stop: &'a AtomicBool,
}

/// How [`train`] or [`finish_run`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T = ()> {
    /// All is done, with this result.
    Finished(T),
    /// `stop` was set; the state is saved.
    Interrupted {
        /// Steps done.
        step: usize,
    },
}

/// Progress, for the user to see.
#[derive(Debug)]
pub enum Event<'a> {
    /// Training starts or resumes.
    Started {
        /// The next step.
        step: usize,
        /// Steps of the whole run.
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
        /// Images to check.
        total: usize,
    },
    /// Examples were left out because their images cannot be decoded.
    SetAside(&'a [aleator_run::SetAside]),
    /// How the data were read, where that is not plain.
    Note(&'a str),
    /// Something unusual about the data.
    Warning(&'a str),
    /// A checkpoint cannot be used; an older one is.
    Damaged(&'a TrainError),
    /// Some settings were tried on held-out examples, before training.
    Trial {
        /// Trials so far.
        done: usize,
        /// −log p of a held-out label, on average.
        nll: f64,
    },
    /// Settings were chosen for the data.
    Tuned(&'a Tuning),
    /// A step is complete.
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
        /// Examples to evaluate.
        total: usize,
    },
}

/// Receives every [`Event`].
pub type Observer<'a> = dyn FnMut(Event<'_>) + 'a;

/// Trains from the newest checkpoint, or from the start, until the end, or until `stop` is set.
///
/// Killed at any point and called again, it comes to the same bits.
pub fn train(job: &Job<'_>, observer: &mut Observer<'_>) -> Result<Outcome, TrainError> {
    let mut session = Session::open(job, observer)?;
    let mut stopped = false;
    while !(session.state.progress.finished || stopped) {
        let (mut parts, steps) = session.to_do();
        parts.for_each(steps.clone(), |part| {
            if let Some(step) = session.add(part)? {
                observer(step);
                if session.is_validation_due() {
                    session.finish_epoch(observer)?;
                } else if session.is_save_due() {
                    session.save()?;
                }
            }
            stopped = !session.state.progress.finished && job.stop.load(Ordering::Relaxed);
            if stopped {
                session.save()?;
            }
            Ok(!(session.state.progress.finished || stopped || session.are_over(&steps)))
        })?;
    }
    let step = session.state.progress.step;
    Ok(if stopped { Outcome::Interrupted { step } } else { Outcome::Finished(()) })
}
