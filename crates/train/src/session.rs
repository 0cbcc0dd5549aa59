//! What the loop does around a step: resume, log, validate, save.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Order, Split};
use aleator_model::params;
use aleator_run::recipe::Training;

use crate::checkpoint::{self, LogPositions};
use crate::experiment::Shape;
use crate::logs::Logs;
use crate::method::{Start, Survey};
use crate::network::Network;
use crate::parts::{Loaded, Parts};
use crate::runs::same_weights;
use crate::state::{Best, State};
use crate::step::Stepper;
use crate::{Checkpoints, Normalization, Schedule, TrainError, evaluate};
use crate::{Event, Job, Observer};

pub(crate) struct Session<'a> {
    job: Job<'a>,
    pub state: State,
    stepper: Stepper,
    /// What is trained on, and in which order.
    examples: Arc<Split>,
    order: Order,
    schedule: Schedule,
    checkpoints: Checkpoints,
    logs: Logs,
    /// Steps done when the newest checkpoint was made.
    saved: Option<usize>,
}

impl<'a> Session<'a> {
    /// From the newest complete checkpoint, or from the start.
    pub fn open(job: &Job<'a>, observer: &mut Observer<'_>) -> Result<Self, TrainError> {
        let recipe = job.recipe;
        let order = order_of(job, job.data.train.len());
        let peak = recipe.optimizer.learning_rate;
        let schedule = Schedule::new(&recipe.schedule, peak, order.steps_per_epoch());
        let checkpoints = Checkpoints::new(job.run.checkpoints_path());
        aleator_run::remove_leftovers(&job.run.checkpoints_path())?;
        let stepper = Stepper::new(recipe, job.run.info().seed, order.parts());
        let (seed, shape) = (job.run.info().seed, Shape::of(job.data));
        let start = Start { recipe, seed, examples: order.examples, shape };
        let prepare = |state: &mut State| stepper.method.prepare(state, &start);
        let (state, positions) = match newest(job, &checkpoints, &prepare, observer)? {
            Some((state, positions)) => (state, Some(positions)),
            None => {
                let mut state = State::of_run(job.run, recipe);
                prepare(&mut state);
                begin(job, &mut state)?;
                stepper.method.begin(&mut state, &survey_of(job))?;
                (state, None)
            }
        };
        let saved = positions.map(|_| state.progress.step);
        checkpoints.pass_over(saved)?;
        let logs = Logs::open_at(job.run, positions.unwrap_or_default())?;
        observer(Event::Started {
            step: state.progress.step,
            total_steps: schedule.total_steps(),
            steps_per_epoch: schedule.steps_per_epoch(),
            parameters: params::learned(&params::read(state.networks[0].model())),
        });
        let examples = Arc::clone(&job.data.train);
        let mut session =
            Self { job: *job, state, stepper, examples, order, schedule, checkpoints, logs, saved };
        if session.state.progress.joined.is_some() {
            session.take_more_examples();
        }
        Ok(session)
    }

    /// The parts of every step, and the steps that are left to do.
    pub fn to_do(&self) -> (Parts, Range<usize>) {
        let state = &self.state;
        let parts = Parts::new(
            Arc::clone(&self.examples),
            self.order,
            self.job.recipe.training.workers,
            state.normalization.clone(),
            state.networks[0].optimizer.search().is_some(),
        )
        .with_views(self.stepper.method.views());
        (parts, state.progress.step..self.last_step())
    }

    /// The step that ends this training at the latest; after the validation examples joined it
    /// has as many steps again.
    fn last_step(&self) -> usize {
        self.state.progress.joined.unwrap_or(0) + self.schedule.total_steps()
    }

    /// Whether these steps ended with the last one, because the examples changed.
    pub fn are_over(&self, steps: &Range<usize>) -> bool {
        steps.end != self.last_step()
    }

    /// Computes a part of a step; the last one completes it, which is the event.
    pub fn add(&mut self, part: &Loaded) -> Result<Option<Event<'static>>, TrainError> {
        let (epoch, examples) = (part.batch.epoch, part.batch.step_examples);
        let of_epoch = self.state.progress.step % self.schedule.steps_per_epoch();
        if (of_epoch, part.batch.part) == (0, 0) {
            self.stepper.method.begin_epoch(&mut self.state, epoch, &survey_of(&self.job))?;
        }
        let rate = self.schedule.learning_rate(self.state.progress.step);
        let names = |example: usize| self.examples.ids.name(example).to_string();
        let report = self.stepper.add(&mut self.state, part, rate);
        let Some(report) = report.map_err(|error| error.named(names))? else { return Ok(None) };
        let step = self.state.progress.step;
        self.logs.step(step, epoch, rate, &report)?;
        Ok(Some(Event::Step { step, examples, report }))
    }

    /// At the end of every epoch, or of every few, and at the end of training.
    pub fn is_validation_due(&self) -> bool {
        let every = self.job.recipe.training.validate_every.unwrap_or(1);
        let step = self.state.progress.step;
        step.is_multiple_of(every * self.schedule.steps_per_epoch()) || self.is_last_step()
    }

    fn is_last_step(&self) -> bool {
        let all = self.state.progress.step == self.last_step();
        all || self.state.networks[0].has_converged()
    }

    pub fn is_save_due(&self) -> bool {
        let every = self.job.recipe.checkpoint.every_steps;
        every.is_some_and(|every| self.state.progress.step.is_multiple_of(every))
    }

    /// Validates, records whether this epoch is the best so far, and saves.
    pub fn finish_epoch(&mut self, observer: &mut Observer<'_>) -> Result<(), TrainError> {
        let (step, is_last) = (self.state.progress.step, self.is_last_step());
        let epoch = step / self.schedule.steps_per_epoch();
        if is_last {
            self.state.networks.iter_mut().for_each(Network::settle);
        }
        if self.state.progress.joined.is_some() {
            // The validation examples are trained on by now, and say nothing any more.
            self.state.progress.finished = is_last;
            return self.save();
        }
        let summary = evaluate::validate(&self.job, &self.state, observer)?;
        if !summary.nll.is_finite() {
            return Err(TrainError::not_finite(step, vec![]));
        }
        let progress = &mut self.state.progress;
        let best = progress.best.is_none_or(|best| summary.nll < best.nll);
        if best {
            progress.best = Some(Best { step, nll: summary.nll });
            progress.epochs_since_best = 0;
        } else {
            progress.epochs_since_best += 1;
        }
        let patience = self.job.recipe.training.patience;
        let out_of_patience = patience.is_some_and(|limit| progress.epochs_since_best >= limit);
        progress.finished = is_last || out_of_patience;
        self.logs.epoch(step, epoch, &summary)?;
        let top1 = summary.top1;
        observer(Event::Epoch { epoch, nll: summary.nll, top1, best });
        if out_of_patience && !is_last {
            observer(Event::StoppedEarly { epoch });
        }
        if is_last && self.job.recipe.optimizer.rule.refits() {
            self.join_validation(observer);
        }
        self.save()
    }

    /// Goes on with the validation examples too, unless they have a source of their own.
    fn join_validation(&mut self, observer: &mut Observer<'_>) {
        if !self.take_more_examples() {
            return;
        }
        let progress = &mut self.state.progress;
        (progress.joined, progress.finished) = (Some(progress.step), false);
        self.state.networks.iter_mut().for_each(Network::restart);
        observer(Event::Note(&format!(
            "training goes on with the {} validation examples; their scores are of the weights \
             from before",
            self.job.data.validation.len()
        )));
    }

    /// Adds the validation examples to those that are trained on; false where they have a source
    /// of their own.
    fn take_more_examples(&mut self) -> bool {
        let Some(all) = self.job.data.train_and_validation() else { return false };
        self.examples = Arc::new(all);
        self.order = order_of(&self.job, self.examples.len());
        let seed = self.job.run.info().seed;
        self.stepper = Stepper::new(self.job.recipe, seed, self.order.parts());
        true
    }

    /// Saves the state, unless the newest checkpoint is of this step.
    pub fn save(&mut self) -> Result<(), TrainError> {
        let step = self.state.progress.step;
        if self.saved == Some(step) {
            return Ok(());
        }
        self.checkpoints.save(&self.state, self.logs.sync()?)?;
        self.saved = Some(step);
        let progress = &self.state.progress;
        let kept = [progress.best.map(|best| best.step), progress.joined];
        self.checkpoints.prune(step, self.job.recipe.checkpoint.keep, &kept)
    }
}

fn survey_of<'a>(job: &Job<'a>) -> Survey<'a> {
    Survey { recipe: job.recipe, seed: job.run.info().seed, data: job.data }
}

/// The newest whole checkpoint. Where training is over and a checkpoint that is to be evaluated is
/// damaged, one from before it: what follows is trained again, to the same bits.
fn newest(
    job: &Job<'_>,
    checkpoints: &Checkpoints,
    prepare: &dyn Fn(&mut State),
    observer: &mut Observer<'_>,
) -> Result<Option<(State, LogPositions)>, TrainError> {
    let load = |step| checkpoints.load(step, job.run, job.recipe, prepare);
    let mut end = usize::MAX;
    loop {
        let found = checkpoints.load_newest(end, &load, observer)?;
        let lost = match &found {
            Some((state, _)) if state.progress.finished => checkpoints.lost(&state.progress)?,
            _ => None,
        };
        let Some((step, error)) = lost else { return Ok(found) };
        observer(Event::Damaged(&needed(error)));
        end = step;
    }
}

/// The same error, with what follows from it.
fn needed(error: TrainError) -> TrainError {
    let TrainError::Checkpoint { path, reason } = error else { return error };
    let reason = format!("{reason}; it may be evaluated, so training is repeated from before it");
    TrainError::Checkpoint { path, reason }
}

pub(crate) fn order_of(job: &Job<'_>, examples: usize) -> Order {
    training_order(&job.recipe.training, examples, job.run.info().seed)
}

/// The order in which this many examples are trained on.
pub(crate) fn training_order(training: &Training, examples: usize, seed: u64) -> Order {
    let largest = training.min_steps.map_or(training.batch, |steps| (examples / steps).max(1));
    let part = training.batch.div_ceil(training.parts);
    Order { examples, batch: training.batch.min(largest), part, seed }
}

/// What a run without a checkpoint begins with besides fresh weights: pretrained ones, and a
/// normalization that is theirs or is learned from the data.
fn begin(job: &Job<'_>, state: &mut State) -> Result<(), TrainError> {
    let pretrained = job.recipe.network.pretrained.as_deref();
    let theirs = match pretrained {
        Some(path) => {
            same_weights(job.run, path)?;
            state.load_network(path)?;
            checkpoint::normalization_of(path, state.normalization.center.len())
        }
        None => None,
    };
    state.normalization = match theirs {
        Some(normalization) if normalization.squash != state.normalization.squash => {
            let message = "network.normalize must be \"robust\" for both or for neither of this run \
                           and the one that network.pretrained is of";
            return Err(TrainError::Recipe(message.to_string()));
        }
        Some(normalization) => normalization,
        None => Normalization::fit(job.recipe.network.normalize, &job.data.train)?,
    };
    Ok(())
}
