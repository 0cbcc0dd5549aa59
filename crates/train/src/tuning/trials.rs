//! Trials: heads that are trained on a part of the examples and measured on the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::{Order, Split};
use aleator_run::recipe::{Normalize, Recipe};

use super::ledger::Ledger;
use super::search::{Start, Trials};
use super::{Settings, Trial, write_to_trial};
use crate::experiment::Shape;
use crate::state::State;
use crate::step::Stepper;
use crate::{Event, Normalization, Observer, TrainError, evaluate, for_each_part};

/// Evaluations of one fit.
const MOST_EVALUATIONS: usize = 150;

/// The examples of a trial.
pub(super) struct Fold {
    pub train: Arc<Split>,
    /// What it is measured on, and how much an example of it counts.
    held_out: Vec<(Arc<Split>, f64)>,
    /// By the way in which they scale the features.
    normalizations: Vec<(Normalize, Normalization)>,
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
        Self { train: Arc::new(train), held_out: held_out.collect(), normalizations: vec![] }
    }

    fn normalization(&mut self, kind: Normalize) -> Result<Normalization, TrainError> {
        if let Some((_, known)) = self.normalizations.iter().find(|(known, _)| *known == kind) {
            return Ok(known.clone());
        }
        let fitted = Normalization::fit(kind, &self.train)?;
        self.normalizations.push((kind, fitted.clone()));
        Ok(fitted)
    }
}

impl Trials for Bench<'_, '_> {
    type Error = Unfinished;

    fn score(&mut self, settings: &Settings, start: Start) -> Result<f64, Unfinished> {
        if let Some(nll) = self.ledger.replay(settings) {
            return Ok(nll);
        }
        let mut recipe = self.recipe.clone();
        write_to_trial(settings, &mut recipe);
        let (mut sum, mut examples, mut weights) = (0.0, 0.0, vec![]);
        for index in 0..self.folds.len() {
            let mut state = State::start(&recipe, self.seed, self.shape);
            state.normalization = self.folds[index].normalization(settings.normalize)?;
            if let Some(from) = self.ledger.start(start, index) {
                state.networks[0].begin_with(&from);
            }
            let fold = &self.folds[index];
            self.fit(&recipe, &mut state, &fold.train)?;
            for (split, weight) in &fold.held_out {
                let summary = evaluate::measure(&recipe, self.seed, &state, split, &mut |_| {})?;
                let counts = weight * split.len() as f64;
                sum += summary.nll * counts;
                examples += counts;
            }
            weights.push(state.networks[0].weights());
        }
        let nll = sum / examples;
        if !nll.is_finite() {
            return Err(TrainError::not_finite(0, vec![]).into());
        }
        self.ledger.add(Trial { settings: *settings, nll }, weights)?;
        (self.observer)(Event::Trial { done: self.ledger.trials().len(), nll });
        Ok(nll)
    }

    fn keep(&mut self) {
        self.ledger.keep();
    }
}

impl Bench<'_, '_> {
    /// Trains until the objective no longer falls.
    fn fit(
        &self,
        recipe: &Recipe,
        state: &mut State,
        train: &Arc<Split>,
    ) -> Result<(), Unfinished> {
        let examples = train.len();
        let part = recipe.training.batch.div_ceil(recipe.training.parts);
        let order = Order { examples, batch: examples, part, seed: self.seed };
        let mut stepper = Stepper::new(recipe, self.seed, order.parts());
        let names = |example: usize| train.ids.name(example).to_string();
        let mut stopped = false;
        for_each_part(train, order, 0..MOST_EVALUATIONS, recipe.training.workers, |part| {
            stopped = self.stop.load(Ordering::Relaxed);
            let report = stepper.add(state, part, 1.0).map_err(|error| error.named(names))?;
            let converged = report.is_some() && state.networks[0].has_converged();
            Ok(!(converged || stopped))
        })?;
        state.networks[0].settle();
        if stopped { Err(Unfinished::Stopped) } else { Ok(()) }
    }
}
