//! Co-teaching (Han et al. 2018): two networks, each of which learns from the examples that the
//! other finds the most probable.
//!
//! In epoch T each network keeps the 1 − R(T) of a part's examples with the smallest loss −log q_y
//! and hands them to the other, which learns from their mean loss; R(T) = τ min((T/T_k)^c, 1), with
//! τ the share of wrong labels and T counted from 0. τ is given, or estimated: the smallest share of
//! validation examples so far that the first network takes for another class than the given one,
//! which is at least τ as far as the network does not know the wrong labels.
//!
//! Both networks begin with weights and see noise of their own. Validation and evaluation
//! take the first one or the mean of both, as `evaluation.networks` says.

use aleator_kernels::split_mix;
use aleator_metrics::classification::argmax;
use aleator_model::BatchNoise;
use aleator_run::recipe;

use super::example_loss::cross_entropy;
use super::{Method, Start, Survey, given, update_networks};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct CoTeaching(pub recipe::CoTeaching);

/// Whether each network learned from an example when it was last met, `[N, 2]`: 1 or 0.
const KEPT: &str = "co_teaching.kept";
/// The estimate of τ, `[1]`.
const RATE: &str = "co_teaching.noise_rate";

impl Method for CoTeaching {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.add_network(start.recipe, start.seed, start.shape);
        let mut kept = NamedTensor::zeros(KEPT, &[start.examples, 2]);
        kept.values.change(|values| values.fill(1.0));
        let rate = self.0.noise_rate.unwrap_or(1.0);
        state.memory = vec![kept, NamedTensor::vector(RATE, &[rate as f32])];
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        if self.0.noise_rate.is_none() && epoch > 0 {
            let found = disagreement(state, survey)?;
            state.memory[1].values.change(|rate| rate[0] = rate[0].min(found as f32));
        }
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let rate = f64::from(state.memory[1].values.read()[0]);
        let count = self.remembered(rate, part.batch.epoch, part.weights.len());
        let mut forwards = vec![];
        for (network, noise) in state.networks.iter().zip(noises(part)) {
            let model = network.model();
            let forward = model.forward(part.inputs.clone());
            let log_probs = model.log_probs(&forward, &noise)?;
            let kept = smallest(&losses(part, &log_probs.read()), count);
            forwards.push((forward, log_probs, noise, kept));
        }
        // What each keeps goes to the other.
        let kept: Vec<Vec<bool>> = forwards.iter().rev().map(|it| it.3.clone()).collect();
        let mut both = None;
        for ((network, forward), kept) in state.networks.iter().zip(forwards).zip(&kept) {
            let (forward, log_probs, noise, _) = forward;
            let weight = |kept: &bool| if *kept { 1.0 / count as f32 } else { 0.0 };
            let weights: Vec<f32> = kept.iter().map(weight).collect();
            let (model, targets) = (network.model(), part.targets());
            let loss = model.loss(forward, targets, &weights, &noise, Some(&log_probs))?;
            let own = Contribution::new(part, network, loss);
            match &mut both {
                None => both = Some(own),
                Some(Contribution { networks, .. }) => networks.extend(own.networks),
            }
        }
        let bits = |row: usize| kept.iter().map(move |kept| f32::from(u8::from(kept[row])));
        let rows = (0..part.weights.len()).flat_map(bits).collect();
        Ok(Contribution { rows, ..both.expect("two networks") })
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        sum.keep_rows(&mut state.memory[0]);
        update_networks(state, &sum, rate);
    }
}

impl CoTeaching {
    /// How many of some examples are kept in an epoch: ⌊(1 − R) · count⌋, but at least one.
    fn remembered(&self, noise_rate: f64, epoch: usize, count: usize) -> usize {
        let recipe::CoTeaching { ramp, exponent, .. } = self.0;
        let progress = if epoch < ramp { epoch as f64 / ramp as f64 } else { 1.0 };
        let forgotten = noise_rate * progress.powf(exponent);
        // 0.7 · 10 must not be 6 by a rounding.
        (((1.0 - forgotten) * count as f64 + 1e-9) as usize).max(1)
    }
}

/// The noise of both networks.
pub(super) fn noises(part: &Part<'_>) -> [BatchNoise; 2] {
    let mut second = part.noise.clone();
    second.key.seed = split_mix(second.key.seed).next().expect("it has no end");
    [part.noise.clone(), second]
}

/// −log q of the given targets of each example.
pub(super) fn losses(part: &Part<'_>, log_probs: &[f32]) -> Vec<f64> {
    let rows = log_probs.chunks_exact(log_probs.len() / part.weights.len()).enumerate();
    let loss = |(row, log_probs): (usize, &[f32])| {
        let wide: Vec<f64> = log_probs.iter().map(|value| f64::from(*value)).collect();
        let mut targets = vec![0.0; wide.len()];
        given(&part.batch.targets, row).iter().for_each(|(class, own)| targets[*class] += own);
        cross_entropy(&targets, &wide)
    };
    rows.map(loss).collect()
}

/// Which are among the smallest; of equal ones the first.
fn smallest(losses: &[f64], count: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..losses.len()).collect();
    order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
    let mut kept = vec![false; losses.len()];
    order[..count].iter().for_each(|row| kept[*row] = true);
    kept
}

/// The share of validation examples that the first network takes for another class.
fn disagreement(state: &State, survey: &Survey<'_>) -> Result<f64, TrainError> {
    let split = &survey.data.validation;
    let (labels, mut wrong) = (survey.labels(split), 0usize);
    survey.log_probs(state, 0, split, &mut |rows, log_probs| {
        let pairs = rows.zip(log_probs.chunks_exact(split.classes));
        wrong += pairs.filter(|(row, own)| argmax(own) != labels[*row] as usize).count();
    })?;
    Ok(wrong as f64 / labels.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_forgotten_until_the_ramp_ends() {
        let method = |ramp, exponent| {
            CoTeaching(recipe::CoTeaching { noise_rate: Some(0.4), ramp, exponent })
        };
        let counts = |method: &CoTeaching| [0, 5, 10, 50].map(|it| method.remembered(0.4, it, 100));
        assert_eq!(counts(&method(10, 1.0)), [100, 80, 60, 60]);
        assert_eq!(counts(&method(10, 2.0)), [100, 90, 60, 60]);
        assert_eq!(counts(&method(0, 1.0)), [60; 4]);
        assert_eq!(method(0, 1.0).remembered(1.0, 0, 7), 1);
    }

    #[test]
    fn the_smallest_losses_are_kept() {
        let kept = smallest(&[3.0, 1.0, f64::INFINITY, 2.0, 1.0], 3);
        assert_eq!(kept, [false, true, false, true, true]);
        assert_eq!(smallest(&[1.0, 1.0, 1.0], 2), [true, true, false]);
    }
}
