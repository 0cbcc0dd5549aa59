//! Label smoothing (Szegedy et al. 2016): labels are mixed with the uniform distribution.
//!
//! With y the given targets and K classes, an example's loss is −Σ_k [(1 − ε) y_k + ε / K] log q_k.

use aleator_run::recipe;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, given};
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct LabelSmoothing(pub recipe::LabelSmoothing);

impl Method for LabelSmoothing {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        contribution(&state.networks[0], part, |row, log_probs| {
            self.loss(&given(&part.batch.targets, row), log_probs.len())
        })
    }
}

impl LabelSmoothing {
    fn loss(&self, given: &[(usize, f64)], classes: usize) -> ExampleLoss {
        let share = self.0.share;
        let total: f64 = given.iter().map(|(_, weight)| weight).sum();
        let mut targets = vec![share * total / classes as f64; classes];
        given.iter().for_each(|(class, weight)| targets[*class] += (1.0 - share) * weight);
        ExampleLoss::against(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    #[test]
    fn the_loss_is_that_of_smoothed_labels() {
        for share in [0.0, 0.1, 1.0] {
            for log_probs in log_probs() {
                let method = LabelSmoothing(recipe::LabelSmoothing { share });
                let found = method.loss(&[(1, 2.0)], 3);
                assert_is(&found, &log_probs, |probs| {
                    let uniform: f64 = probs.iter().map(|prob| prob.ln() / 3.0).sum();
                    -2.0 * ((1.0 - share) * probs[1].ln() + share * uniform)
                });
            }
        }
    }
}
