//! Trials: heads that are trained on a part of the examples and measured on the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::{Order, Split};
use aleator_run::recipe::{Noise, Normalize, Recipe};
use rayon::prelude::*;

use super::ledger::Ledger;
use super::loss::HeldOutLoss;
use super::search::{Start, Trials};
use super::{Settings, write_to_trial};
use crate::experiment::Shape;
use crate::parts::Parts;
use crate::state::State;
use crate::step::Stepper;
use crate::tensors::NamedTensor;
use crate::{Event, Normalization, Observer, TrainError, evaluate};

/// Evaluations of one fit.
const MOST_EVALUATIONS: usize = 1_000;

/// The examples of a trial.
pub(super) struct Fold {
    pub train: Arc<Split>,
    /// What it is measured on, and how much an example of it counts.
    held_out: Vec<(Arc<Split>, f64)>,
    /// The parts of a step, scaled for the trial before.
    parts: Option<(Normalize, Parts)>,
}

/// What a fold says of some settings.
struct Measured {
    loss: HeldOutLoss,
    weights: Vec<NamedTensor>,
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// The user stopped it.
    Stopped,
    Failed(TrainError),
}

impl<E: Into<TrainError>> From<E> for Unfinished {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What all trials share.
pub(super) struct Bench<'a, 'o> {
    /// Of a trial; only the settings differ.
    pub recipe: &'a Recipe,
    pub seed: u64,
    pub shape: Shape,
    pub folds: Vec<Fold>,
    pub ledger: Ledger,
    pub stop: &'a AtomicBool,
    pub observer: &'a mut Observer<'o>,
}

impl Fold {
    pub fn new(train: Split, held_out: Vec<(Split, f64)>) -> Self {
        let held_out = held_out.into_iter().map(|(split, weight)| (Arc::new(split), weight));
        Self { train: Arc::new(train), held_out: held_out.collect(), parts: None }
    }

    /// The parts of a step, with features scaled in this way.
    fn parts(
        &mut self,
        recipe: &Recipe,
        seed: u64,
        kind: Normalize,
    ) -> Result<&mut Parts, TrainError> {
        let known = self.parts.take().filter(|(known, _)| *known == kind);
        let parts = match known {
            Some((_, parts)) => parts,
            None => {
                let examples = self.train.len();
                let part = recipe.training.batch.div_ceil(recipe.training.parts);
                let order = Order { examples, batch: examples, part, seed };
                let normalization = Normalization::fit(kind, &self.train)?;
                let workers = recipe.training.workers;
                Parts::new(Arc::clone(&self.train), order, workers, normalization, true)
            }
        };
        Ok(&mut self.parts.insert((kind, parts)).1)
    }

    /// Trains until the objective no longer falls.
    fn fit(
        &mut self,
        recipe: &Recipe,
        seed: u64,
        state: &mut State,
        normalize: Normalize,
        stop: &AtomicBool,
    ) -> Result<(), Unfinished> {
        let train = Arc::clone(&self.train);
        let names = |example: usize| train.ids.name(example).into_owned();
        let parts = self.parts(recipe, seed, normalize)?;
        state.normalization = parts.normalization().clone();
        let mut stepper = Stepper::new(recipe, seed, parts.count());
        let mut stopped = false;
        parts.for_each(0..MOST_EVALUATIONS, |part| {
            stopped = stop.load(Ordering::Relaxed);
            let report = stepper.add(state, part, 1.0).map_err(|error| error.named(names))?;
            let converged = report.is_some() && state.networks[0].has_converged();
            Ok(!(converged || stopped))
        })?;
        state.networks[0].settle();
        if stopped { Err(Unfinished::Stopped) } else { Ok(()) }
    }

    /// The loss of what is held out.
    fn measure(&self, recipe: &Recipe, seed: u64, state: State) -> Result<Measured, Unfinished> {
        let mut loss = HeldOutLoss::new();
        for (split, weight) in &self.held_out {
            let losses = evaluate::losses(recipe, seed, &state, split)?;
            for (example, nll) in losses.into_iter().enumerate() {
                loss.add(split.ids.key(example), *weight, nll);
            }
        }
        Ok(Measured { loss, weights: state.networks[0].weights() })
    }
}

impl Trials for Bench<'_, '_> {
    type Error = Unfinished;

    fn score(&mut self, settings: &Settings, start: Start) -> Result<HeldOutLoss, Unfinished> {
        if let Some(loss) = self.ledger.replay(settings) {
            return Ok(loss);
        }
        let mut recipe = self.recipe.clone();
        write_to_trial(settings, &mut recipe);
        let (seed, shape, stop) = (self.seed, self.shape, self.stop);
        let ledger = &self.ledger;
        // Each fold on one thread: fits of few examples are too small to share.
        let folds = self.folds.par_iter_mut().enumerate().map(|(index, fold)| {
            let mut state = State::start(&recipe, seed, shape);
            if let Some(from) = ledger.start(start, index) {
                state.networks[0].begin_with(&from);
            }
            fold.fit(&recipe, seed, &mut state, settings.normalize, stop)?;
            fold.measure(&recipe, seed, state)
        });
        let folds = folds.collect::<Result<Vec<Measured>, Unfinished>>()?;
        let mut loss = HeldOutLoss::new();
        folds.iter().for_each(|fold| loss.merge(&fold.loss));
        let nll = loss.nll();
        if !nll.is_finite() {
            return Err(TrainError::not_finite(0, vec![]).into());
        }
        let weights = folds.into_iter().map(|fold| fold.weights).collect();
        self.ledger.add(*settings, loss.clone(), weights)?;
        (self.observer)(Event::Trial { done: self.ledger.len(), nll });
        Ok(loss)
    }

    fn keep(&mut self) {
        self.ledger.keep();
    }

    /// Noise of d′ on each of D features gives utility c a deviation of d′ ‖W_c‖, and is the output
    /// of D layers in place of K. To be of size s on average over the classes it needs
    /// d′² = s² K / ‖W‖², so D d′² is K s² times D / ‖W‖².
    fn noise_scale(&self) -> f64 {
        match self.recipe.head.noise {
            Noise::OnFeatures { .. } => self.ledger.kept_weight().filter(|it| *it > 0.0),
            _ => None,
        }
        .unwrap_or(1.0)
    }
}
