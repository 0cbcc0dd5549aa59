//! CORES² (Cheng et al. 2021): confident predictions are rewarded, and then labels that are less
//! probable than the classes are on average are left out.
//!
//! The loss of a label y of K classes is −log q_y + (β / K) Σ_k log(q_k + 1e-8), where β grows from
//! 0 to its value in some epochs; without the authors' 1e-8 it would have no bound. The sieve keeps
//! an example where −log q_y ≤ −(1/K) Σ_k log q_k, by the prediction of the step itself, and the
//! loss is the mean over those that are kept.

use aleator_run::recipe;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, Start, given, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct Cores(pub recipe::Cores);

/// Whether the sieve kept an example when it was last met, `[N]`: 1 or 0.
const KEPT: &str = "cores.kept";
const LEAST: f64 = 1e-8;

impl Method for Cores {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.memory = vec![NamedTensor::vector(KEPT, &vec![1.0; start.examples])];
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let epoch = part.batch.epoch;
        let strength = self.strength(epoch);
        let sieves = self.0.sieve_after.is_some_and(|after| epoch >= after);
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let given = given(&part.batch.targets, row);
            let is_kept = !sieves || is_probable(&given, log_probs);
            rows.push(f32::from(u8::from(is_kept)));
            match is_kept {
                true => loss(strength, &given, log_probs),
                false => ExampleLoss::against(vec![0.0; log_probs.len()]),
            }
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, mut sum: Contribution, rate: f64) {
        sum.keep_rows(&mut state.memory[0]);
        sum.average_over_kept();
        update_networks(state, &sum, rate);
    }
}

impl Cores {
    /// β in an epoch: 0, then from 0 to its value in equal steps, then its value.
    fn strength(&self, epoch: usize) -> f64 {
        let recipe::Cores { strength, burn_in, ramp, .. } = self.0;
        match epoch.checked_sub(burn_in) {
            None => 0.0,
            Some(since) if since < ramp => {
                strength * since as f64 / ramp.saturating_sub(1).max(1) as f64
            }
            Some(_) => strength,
        }
    }
}

fn loss(strength: f64, given: &[(usize, f64)], log_probs: &[f64]) -> ExampleLoss {
    let mut targets = vec![0.0; log_probs.len()];
    given.iter().for_each(|(class, weight)| targets[*class] += weight);
    let mut loss = ExampleLoss::against(targets);
    let total: f64 = given.iter().map(|(_, weight)| weight).sum();
    let each = strength * total / log_probs.len() as f64;
    if each != 0.0 {
        let probs = || log_probs.iter().map(|log_prob| log_prob.exp());
        let value: f64 = probs().map(|prob| each * (prob + LEAST).ln()).sum();
        let slopes: Vec<f64> = probs().map(|prob| -each * prob / (prob + LEAST)).collect();
        let reward = ExampleLoss::new(value, slopes, log_probs);
        loss.beyond += reward.beyond;
        loss.targets.iter_mut().zip(reward.targets).for_each(|(sum, own)| *sum += own);
    }
    loss
}

/// Whether the label is at least as probable as classes are on average, in logarithms.
fn is_probable(given: &[(usize, f64)], log_probs: &[f64]) -> bool {
    let total: f64 = given.iter().map(|(_, weight)| weight).sum();
    let of_label: f64 = given.iter().map(|(class, weight)| weight * log_probs[*class]).sum();
    of_label >= total * log_probs.iter().sum::<f64>() / log_probs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    #[test]
    fn the_loss_is_the_formula_of_the_paper() {
        for log_probs in log_probs() {
            for label in 0..3 {
                let found = loss(2.0, &[(label, 0.5)], &log_probs);
                assert_is(&found, &log_probs, |probs| {
                    let mean: f64 = probs.iter().map(|prob| (prob + 1e-8).ln() / 3.0).sum();
                    0.5 * (-probs[label].ln() + 2.0 * mean)
                });
            }
        }
    }

    #[test]
    fn the_strength_grows_from_the_burn_in_to_the_end_of_the_ramp() {
        let (burn_in, ramp, sieve_after) = (10, 31, None);
        let method = Cores(recipe::Cores { strength: 3.0, burn_in, ramp, sieve_after });
        let strengths = [0, 9, 10, 20, 40, 41, 90].map(|epoch| method.strength(epoch));
        assert_eq!(strengths, [0.0, 0.0, 0.0, 1.0, 3.0, 3.0, 3.0]);
        let at_once = Cores(recipe::Cores { ramp: 0, ..method.0 });
        assert_eq!([9, 10].map(|epoch| at_once.strength(epoch)), [0.0, 3.0]);
    }

    #[test]
    fn the_sieve_compares_a_label_with_the_mean_over_classes() {
        let log_probs = &log_probs()[1];
        let mean = log_probs.iter().sum::<f64>() / 3.0;
        for label in 0..3 {
            assert_eq!(is_probable(&[(label, 1.0)], log_probs), log_probs[label] >= mean);
        }
        assert!(is_probable(&[(0, 1.0)], log_probs) && !is_probable(&[(1, 1.0)], log_probs));
    }
}
