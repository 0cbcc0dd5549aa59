//! Bootstrapping (Reed et al. 2014): labels are mixed with what the model predicts.
//!
//! With q the predicted probabilities and y the given targets, an example's loss is
//! −Σ_k [β y_k + (1 − β) t_k] log q_k, where t is q itself ("soft") or the most probable class
//! ("hard"). Soft targets are constants, or the gradient passes through them too, as the formula
//! says.

use aleator_metrics::classification::argmax;
use aleator_run::recipe::{self, BootstrapTargets};

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, given};
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct Bootstrapping(pub recipe::Bootstrapping);

impl Method for Bootstrapping {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let beta = if part.batch.epoch < self.0.burn_in { 1.0 } else { self.0.beta };
        contribution(&state.networks[0], part, |row, log_probs| {
            self.loss(beta, &given(&part.batch.targets, row), log_probs)
        })
    }
}

impl Bootstrapping {
    fn loss(&self, beta: f64, given: &[(usize, f64)], log_probs: &[f64]) -> ExampleLoss {
        let mut loss = ExampleLoss::against(vec![0.0; log_probs.len()]);
        given.iter().for_each(|(class, weight)| loss.targets[*class] = beta * weight);
        // An example keeps the weight that its given targets have.
        let own = (1.0 - beta) * given.iter().map(|(_, weight)| weight).sum::<f64>();
        match self.0.targets {
            BootstrapTargets::Hard => loss.targets[most_probable(log_probs)] += own,
            BootstrapTargets::Soft => add_own(&mut loss, log_probs, own),
            BootstrapTargets::SoftFixed => {
                let targets = loss.targets.iter_mut().zip(log_probs);
                targets.for_each(|(target, log_prob)| *target += own * log_prob.exp());
            }
        }
        loss
    }
}

fn most_probable(log_probs: &[f64]) -> usize {
    argmax(&log_probs.iter().map(|log_prob| *log_prob as f32).collect::<Vec<_>>())
}

/// Adds −`own` · Σ q log q. Its slope by log q is −`own` · q (1 + log q).
fn add_own(loss: &mut ExampleLoss, log_probs: &[f64], own: f64) {
    for (target, log_prob) in loss.targets.iter_mut().zip(log_probs) {
        let prob = log_prob.exp();
        // The limit of both terms at zero, where log q is infinite, is zero.
        if prob > 0.0 {
            *target += own * prob * (1.0 + log_prob);
            loss.beyond += own * prob * log_prob * log_prob;
        }
    }
}
