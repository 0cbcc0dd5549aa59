//! Training dynamics: plain training that keeps what was predicted for every example on the way.
//!
//! A network learns what examples have in common before it memorises single labels. So the
//! log-probabilities of an example, averaged over the epochs, stay low for a label that the other
//! examples contradict. Each is taken just before the step that learns from the example, in the
//! order of training; that is free, because the step computes it anyway.

use aleator_kernels::reference::log_sum_exp;
use aleator_run::recipe;

use super::{Method, Start, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct Dynamics(pub recipe::Dynamics);

/// Σ log p over the epochs, `[N, K]`.
const SUMS: &str = "dynamics.log_probs";
/// The number of epochs in it, `[N]`.
const COUNTS: &str = "dynamics.epochs";

impl Method for Dynamics {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let examples = start.examples;
        let sums = NamedTensor::zeros(SUMS, &[examples, start.shape.classes]);
        state.memory = vec![sums, NamedTensor::zeros(COUNTS, &[examples])];
        let decay = self.0.prior_examples / examples as f64;
        state.networks.iter_mut().for_each(|network| network.optimizer.decay_all(decay));
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let log_probs = model.log_probs(&forward, &part.noise)?;
        let rows = log_probs.read().into_owned();
        let (targets, weights) = (part.targets(), &part.weights);
        let loss = model.loss(forward, targets, weights, &part.noise, Some(&log_probs))?;
        Ok(Contribution { rows, ..Contribution::new(part, network, loss) })
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        let classes = sum.rows.len() / sum.examples.len();
        let rows = || sum.examples.iter().zip(sum.rows.chunks_exact(classes));
        state.memory[0].values.change(|sums| {
            for (example, row) in rows() {
                let kept = &mut sums[example * classes..(example + 1) * classes];
                // An impossible class has log p = −∞, which an average would keep forever.
                kept.iter_mut().zip(row).for_each(|(kept, value)| *kept += value.max(LEAST));
            }
        });
        state.memory[1].values.change(|counts| {
            rows().for_each(|(example, _)| counts[*example] += 1.0);
        });
        update_networks(state, &sum, rate);
    }
}

/// What was predicted for each example, averaged over the epochs so far: logarithms of
/// probabilities, `[N, K]`.
pub(crate) fn mean_log_probs(state: &State) -> Vec<f32> {
    let (sums, counts) = (state.memory[0].values.read(), state.memory[1].values.read());
    let classes = sums.len() / counts.len();
    let rows = sums.chunks_exact(classes).zip(counts.iter());
    rows.flat_map(|(sums, count)| {
        let mean: Vec<f64> = sums.iter().map(|sum| f64::from(sum / count)).collect();
        // Means of logarithms are those of no probabilities: a geometric mean sums to less than 1.
        let log_sum = log_sum_exp(&mean);
        mean.into_iter().map(move |value| (value - log_sum) as f32)
    })
    .collect()
}

/// The least log-probability that is kept; that of the smallest f32 is −103.
const LEAST: f32 = -100.0;
