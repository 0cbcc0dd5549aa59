//! Mixup (Zhang et al. 2018): examples and their labels are mixed in pairs.
//!
//! x ← λ x + (1 − λ) x' and y ← λ y + (1 − λ) y', with λ of Beta(α, α), or 1 − λ where that is more;
//! x' is the next example of the part, which is in random order, and each pair has a λ of its own.
//! Inputs are mixed as the network takes them, so this works for embeddings, too; for images
//! `data.augment.mixup` does the same and can be combined with other methods.

use aleator_run::recipe;

use super::Method;
use super::example_loss::{ExampleLoss, contribution_of};
use super::mixing::{Mix, dense_targets};
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct Mixup(pub recipe::Mixup);

impl Method for Mixup {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let mix = Mix::with_next(part, self.0.alpha);
        let inputs = mix.inputs(&part.inputs);
        contribution_of(&state.networks[0], part, inputs, &part.noise, |_, classes| {
            let targets = mix.targets(&dense_targets(part, classes));
            targets.into_iter().map(ExampleLoss::against).collect()
        })
    }
}
