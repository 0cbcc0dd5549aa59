//! Training methods: how the labels of a batch become a step.
//!
//! A method is one file that the one loop calls. It sees a part of a batch and the state, and says
//! what the part adds to the step; the loop, checkpoints, logs and evaluation do not know which
//! method runs. What it keeps from step to step are tensors in [`State::memory`] and further
//! networks in [`State::networks`], which checkpoints save and restore by name.

mod bootstrapping;
pub(crate) mod dynamics;
mod plain;
#[cfg(test)]
mod tests;

use aleator_data::SparseTargets;
use aleator_model::Targets;
use aleator_run::recipe::{self, Recipe};

use crate::state::State;
use crate::step::{Contribution, Part};

use bootstrapping::Bootstrapping;
use dynamics::Dynamics;
use plain::Plain;

/// What a training method decides.
pub(crate) trait Method {
    /// Prepares a fresh state for these training examples and classes: further networks, and
    /// tensors by name.
    fn prepare(&self, state: &mut State, examples: usize, classes: usize) {
        let _ = (state, examples, classes);
    }

    /// What a part adds to its step. It must depend on nothing but its arguments: a part may be
    /// computed by any process.
    ///
    /// # Errors
    /// The rows of the examples whose utilities are not finite.
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>>;

    /// Updates the state by the sum over all parts.
    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        update_networks(state, &sum, rate);
    }
}

/// Moves every network by its gradients.
pub(crate) fn update_networks(state: &mut State, sum: &Contribution, rate: f64) {
    let networks = state.networks.iter_mut().zip(&sum.networks);
    networks.for_each(|(network, gradients)| network.update(gradients, sum.loss, rate));
}

/// The method of a recipe.
pub(crate) fn of(recipe: &Recipe) -> Box<dyn Method> {
    match recipe.method {
        recipe::Method::Plain => Box::new(Plain),
        recipe::Method::Bootstrapping { bootstrapping } => Box::new(Bootstrapping(bootstrapping)),
        recipe::Method::Dynamics { dynamics } => Box::new(Dynamics(dynamics)),
    }
}

/// Sparse targets as the likelihood takes them.
pub(crate) fn view(rows: &SparseTargets) -> Targets<'_> {
    Targets::Sparse { offsets: &rows.offsets, classes: &rows.classes, probs: &rows.weights }
}
