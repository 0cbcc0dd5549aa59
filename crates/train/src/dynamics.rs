//! What a network predicted for its training examples while it learned from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::Split;
use aleator_run::recipe::{Method, Normalize, Recipe};

use crate::experiment::Shape;
use crate::method::Start;
use crate::method::dynamics::mean_log_probs;
use crate::parts::Parts;
use crate::session::training_order;
use crate::state::State;
use crate::step::Stepper;
use crate::{Normalization, Schedule, TrainError};

/// Trains the network of a recipe whose method is `"dynamics"` on all examples of a split, and
/// returns the mean over the epochs of what it predicted for each of them: logarithms of
/// probabilities, `[N, K]`. `None` when it was stopped.
///
/// # Errors
/// When the recipe has another method, inputs cannot be read, or the loss is not finite.
pub fn dynamics(
    recipe: &Recipe,
    seed: u64,
    normalize: Normalize,
    examples: &Arc<Split>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Option<Vec<f32>>, TrainError> {
    if !matches!(recipe.method, Method::Dynamics { .. }) {
        let message = "method must be \"dynamics\" to keep what is predicted on the way";
        return Err(TrainError::Recipe(message.to_string()));
    }
    let order = training_order(&recipe.training, examples.len(), seed);
    let schedule =
        Schedule::new(&recipe.schedule, recipe.optimizer.learning_rate, order.steps_per_epoch());
    let normalization = Normalization::fit(normalize, examples)?;
    let shape = Shape { input: examples.inputs.shape(), classes: examples.classes };
    let mut state = State::start(recipe, seed, shape);
    state.normalization = normalization.clone();
    let mut stepper = Stepper::new(recipe, seed, order.parts());
    let start = Start { recipe, seed, examples: examples.len(), shape };
    stepper.method.prepare(&mut state, &start);
    let (split, workers) = (Arc::clone(examples), recipe.training.workers);
    let mut parts = Parts::new(split, order, workers, normalization, false);
    let names = |example: usize| examples.ids.name(example).into_owned();
    let (mut stopped, total) = (false, schedule.total_steps());
    parts.for_each(0..total, |part| {
        let rate = schedule.learning_rate(state.progress.step);
        if stepper.add(&mut state, part, rate).map_err(|error| error.named(names))?.is_some() {
            progress(state.progress.step, total);
        }
        stopped = stop.load(Ordering::Relaxed);
        Ok(!stopped)
    })?;
    Ok((!stopped).then(|| mean_log_probs(&state)))
}
