//! Early-learning regularisation (Liu et al. 2020): predictions are held to what they were in
//! earlier epochs, before wrong labels were memorised.
//!
//! Every example has a running average t of its predictions, t ← β t + (1 − β) q, which starts at 0
//! and is updated before it is used. Its loss is −log q_y + λ log(1 − ⟨t, q⟩), with t as a constant.
//! As in the authors' code, q is kept from 1e-4 to 1 − 1e-4 in both uses of the second term, which
//! has no gradient outside, and is normalised before it enters t.

use aleator_run::recipe;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, Start, given, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct Elr(pub recipe::Elr);

/// t, `[N, K]`.
const TARGETS: &str = "elr.targets";
const LEAST: f64 = 1e-4;

impl Method for Elr {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.memory = vec![NamedTensor::zeros(TARGETS, &[start.examples, start.shape.classes])];
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let kept = state.memory[0].values.read();
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let example = part.batch.examples[row];
            let own = &kept[example * log_probs.len()..][..log_probs.len()];
            let targets = self.updated(own, log_probs);
            let given = given(&part.batch.targets, row);
            let loss = self.loss(&targets, &given, log_probs);
            rows.extend(targets.into_iter().map(|target| target as f32));
            loss
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        sum.keep_rows(&mut state.memory[0]);
        update_networks(state, &sum, rate);
    }
}

impl Elr {
    fn updated(&self, targets: &[f32], log_probs: &[f64]) -> Vec<f64> {
        let probs: Vec<f64> = log_probs.iter().map(|log_prob| clipped(log_prob.exp())).collect();
        let sum: f64 = probs.iter().sum();
        let momentum = self.0.momentum;
        let both = targets.iter().zip(probs);
        both.map(|(old, prob)| momentum * f64::from(*old) + (1.0 - momentum) * prob / sum).collect()
    }

    fn loss(&self, held: &[f64], given: &[(usize, f64)], log_probs: &[f64]) -> ExampleLoss {
        let mut targets = vec![0.0; log_probs.len()];
        given.iter().for_each(|(class, weight)| targets[*class] += weight);
        let mut loss = ExampleLoss::against(targets);
        let strength = self.0.strength * given.iter().map(|(_, weight)| weight).sum::<f64>();
        if strength == 0.0 {
            return loss;
        }
        let probs: Vec<f64> = log_probs.iter().map(|log_prob| log_prob.exp()).collect();
        let agreement: f64 =
            held.iter().zip(&probs).map(|(held, prob)| held * clipped(*prob)).sum();
        let mut slopes = vec![0.0; probs.len()];
        for (slope, (held, prob)) in slopes.iter_mut().zip(held.iter().zip(&probs)) {
            if *prob == clipped(*prob) {
                *slope = strength * held * prob / (1.0 - agreement);
            }
        }
        let term = ExampleLoss::new(strength * (1.0 - agreement).ln(), slopes, log_probs);
        loss.beyond += term.beyond;
        loss.targets.iter_mut().zip(term.targets).for_each(|(sum, own)| *sum += own);
        loss
    }
}

fn clipped(prob: f64) -> f64 {
    prob.clamp(LEAST, 1.0 - LEAST)
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    const METHOD: Elr = Elr(recipe::Elr { momentum: 0.7, strength: 3.0 });

    #[test]
    fn the_loss_is_the_formula_of_the_paper() {
        let held = [0.5, 0.125, 0.25];
        for log_probs in log_probs() {
            for label in 0..3 {
                let found = METHOD.loss(&held, &[(label, 2.0)], &log_probs);
                // The last of the rows has a class below the bound.
                assert_is(&found, &log_probs, |probs| {
                    let agreement: f64 =
                        held.iter().zip(probs).map(|(t, q)| t * q.clamp(1e-4, 1.0 - 1e-4)).sum();
                    2.0 * (-probs[label].ln() + 3.0 * (1.0 - agreement).ln())
                });
            }
        }
    }

    #[test]
    fn beyond_the_bounds_there_is_no_gradient() {
        let log_probs = [-1e-9, (1e-6f64).ln(), (1e-9f64).ln()];
        let found = METHOD.loss(&[0.9, 0.05, 0.05], &[(0, 1.0)], &log_probs);
        assert_eq!(found.targets, [1.0, 0.0, 0.0]);
        assert!(found.beyond.is_finite() && found.beyond < -1.0, "{}", found.beyond);
    }

    #[test]
    fn the_average_starts_at_zero_and_sums_to_what_has_entered_it() {
        let log_probs = &log_probs()[0];
        let mut targets = vec![0.0f32; 3];
        for epoch in 1..=4 {
            targets = METHOD.updated(&targets, log_probs).iter().map(|it| *it as f32).collect();
            let expected = 1.0 - 0.7f32.powi(epoch);
            // f32 sums of three numbers below one.
            assert!((targets.iter().sum::<f32>() - expected).abs() < 1e-6, "{targets:?}");
        }
    }
}
