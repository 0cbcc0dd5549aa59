//! Generalised cross entropy (Zhang and Sabuncu 2018): between the likelihood and the absolute
//! error, which wrong labels hurt less.
//!
//! The loss of a label y is (1 − q_y^κ) / κ, whose limit at κ = 0 is −log q_y; κ = 1 is half of the
//! absolute error. The truncated loss is constant where q_y is at most a bound, so such examples
//! have no gradient. Which they are is decided by the prediction of the step itself; the authors
//! decide it for all examples every tenth epoch.

use aleator_run::recipe;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, given};
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct Gce(pub recipe::Gce);

impl Method for Gce {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let bound = self.0.truncate.filter(|_| part.batch.epoch >= self.0.burn_in);
        contribution(&state.networks[0], part, |row, log_probs| {
            loss(self.0.exponent, bound, &given(&part.batch.targets, row), log_probs)
        })
    }
}

fn loss(
    exponent: f64,
    bound: Option<f64>,
    given: &[(usize, f64)],
    log_probs: &[f64],
) -> ExampleLoss {
    let mut targets = vec![0.0; log_probs.len()];
    let mut sum = 0.0;
    for (class, weight) in given {
        let log_prob = log_probs[*class];
        let left_out = bound.map(f64::ln).filter(|bound| log_prob <= *bound);
        sum += weight * of_label(exponent, left_out.unwrap_or(log_prob));
        if left_out.is_none() {
            let slope = if exponent == 0.0 { 1.0 } else { (exponent * log_prob).exp() };
            targets[*class] += weight * slope;
        }
    }
    ExampleLoss::new(sum, targets, log_probs)
}

/// (1 − q^κ) / κ.
fn of_label(exponent: f64, log_prob: f64) -> f64 {
    if exponent == 0.0 { -log_prob } else { -(exponent * log_prob).exp_m1() / exponent }
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    #[test]
    fn the_loss_is_the_formula_of_the_paper() {
        for log_probs in log_probs() {
            for label in 0..3 {
                for exponent in [0.2, 0.7, 1.0] {
                    let found = loss(exponent, None, &[(label, 0.5)], &log_probs);
                    assert_is(&found, &log_probs, |probs| {
                        0.5 * (1.0 - probs[label].powf(exponent)) / exponent
                    });
                }
                let found = loss(0.0, None, &[(label, 1.0)], &log_probs);
                assert_is(&found, &log_probs, |probs| -probs[label].ln());
            }
        }
    }

    #[test]
    fn its_limit_is_the_likelihood() {
        for log_probs in log_probs() {
            let near = loss(1e-7, None, &[(2, 1.0)], &log_probs);
            let limit = loss(0.0, None, &[(2, 1.0)], &log_probs);
            let value = |it: &ExampleLoss| it.beyond - it.targets[2] * log_probs[2];
            // κ log² q / 2 is the next term, at most 1e-7 · 144 / 2.
            assert!((value(&near) - value(&limit)).abs() < 1e-5);
        }
    }

    #[test]
    fn improbable_labels_have_a_constant_loss() {
        for log_probs in log_probs() {
            for label in 0..3 {
                let found = loss(0.7, Some(0.45), &[(label, 1.0)], &log_probs);
                assert_is(&found, &log_probs, |probs| {
                    (1.0 - probs[label].max(0.45).powf(0.7)) / 0.7
                });
                assert_eq!(found.targets[label] == 0.0, log_probs[label].exp() <= 0.45);
            }
        }
    }
}
