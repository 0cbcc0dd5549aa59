//! MentorNet with a predefined curriculum (Jiang et al. 2018): examples of large loss weigh less.
//!
//! The loss of an example is v ℓ with ℓ = −log q_y and v a constant. A running average λ of the
//! p-quantile of the losses of a step says what is large, Δ = ℓ − λ:
//! - self-paced: v = 1 where Δ ≤ 0, else 0;
//! - linear, with γ: v = 1 − Δ/γ, from 0 to 1;
//! - focal: v = (1 − e^{−ℓ})², which favours large losses;
//! - predefined: self-paced, and linear after some epochs.
//!
//! λ is that of the steps before, so that a step may be computed in parts; the authors' includes the
//! step itself. Their example dropout and their weighting of the decay by the mean of v are absent,
//! and so is the network that learns v, which needs clean labels.

use aleator_run::recipe::{self, Curriculum};

use super::example_loss::{ExampleLoss, contribution, cross_entropy};
use super::{Method, Start, given, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct MentorNet(pub recipe::MentorNet);

/// λ, and the number of steps that have entered it.
const THRESHOLD: &str = "mentornet.threshold";
/// v of each example when it was last met, `[N]`.
const WEIGHTS: &str = "mentornet.weights";

impl Method for MentorNet {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let weights = NamedTensor::vector(WEIGHTS, &vec![1.0; start.examples]);
        state.memory = vec![NamedTensor::zeros(THRESHOLD, &[2]), weights];
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let threshold = threshold(&state.memory[0]);
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let mut targets = vec![0.0; log_probs.len()];
            let given = given(&part.batch.targets, row);
            given.iter().for_each(|(class, weight)| targets[*class] += weight);
            let loss = cross_entropy(&targets, log_probs);
            let weight = match threshold {
                Some(threshold) if part.batch.epoch >= self.0.burn_in => {
                    weight(self.0.curriculum, part.batch.epoch, loss, threshold)
                }
                _ => 1.0,
            };
            targets.iter_mut().for_each(|target| *target *= weight);
            rows.extend([loss as f32, weight as f32]);
            ExampleLoss::against(targets)
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, mut sum: Contribution, rate: f64) {
        let (losses, weights) = sum.rows.chunks_exact(2).map(|row| (row[0], row[1])).unzip();
        update_threshold(&mut state.memory[0], losses, self.0.quantile, self.0.decay);
        sum.rows = weights;
        sum.keep_rows(&mut state.memory[1]);
        update_networks(state, &sum, rate);
    }
}

/// λ, once a step has entered it.
pub(super) fn threshold(memory: &NamedTensor) -> Option<f64> {
    let values = memory.values.read();
    (values[1] > 0.0).then_some(f64::from(values[0]))
}

/// Moves λ to the quantile of the losses of a step; the first step sets it.
pub(super) fn update_threshold(
    memory: &mut NamedTensor,
    mut losses: Vec<f32>,
    quantile: f64,
    decay: f64,
) {
    losses.sort_by(f32::total_cmp);
    let at = ((quantile * losses.len() as f64).ceil() as usize).clamp(1, losses.len()) - 1;
    let found = f64::from(losses[at]);
    memory.values.change(|values| {
        let old = f64::from(values[0]);
        let moved = if values[1] > 0.0 { decay * old + (1.0 - decay) * found } else { found };
        (values[0], values[1]) = (moved as f32, 1.0);
    });
}

/// v.
pub(super) fn weight(curriculum: Curriculum, epoch: usize, loss: f64, threshold: f64) -> f64 {
    let above = loss - threshold;
    let self_paced = if above <= 0.0 { 1.0 } else { 0.0 };
    let linear = |width: f64| (1.0 - above / width).clamp(0.0, 1.0);
    match curriculum {
        Curriculum::SelfPaced => self_paced,
        Curriculum::Linear { width } => linear(width),
        Curriculum::Focal => (1.0 - (-loss).exp()).powi(2),
        Curriculum::Predefined { width, linear_after } if epoch >= linear_after => linear(width),
        Curriculum::Predefined { .. } => self_paced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curricula_are_the_formulas_of_the_paper() {
        let predefined = Curriculum::Predefined { width: 2.0, linear_after: 5 };
        for (curriculum, epoch, loss, expected) in [
            (Curriculum::SelfPaced, 0, 1.0, 1.0),
            (Curriculum::SelfPaced, 0, 1.5, 0.0),
            (Curriculum::Linear { width: 2.0 }, 0, 1.5, 0.75),
            (Curriculum::Linear { width: 2.0 }, 0, 0.5, 1.0),
            (Curriculum::Linear { width: 2.0 }, 0, 4.0, 0.0),
            (Curriculum::Focal, 0, std::f64::consts::LN_2, 0.25),
            (predefined, 4, 1.5, 0.0),
            (predefined, 5, 1.5, 0.75),
        ] {
            let found = weight(curriculum, epoch, loss, 1.0);
            // One rounding of exp.
            assert!((found - expected).abs() < 1e-15, "{curriculum:?} {loss}: {found}");
        }
    }

    #[test]
    fn the_threshold_follows_the_quantile_of_the_losses() {
        let mut memory = NamedTensor::zeros(THRESHOLD, &[2]);
        assert_eq!(threshold(&memory), None);
        update_threshold(&mut memory, vec![4.0, 1.0, 3.0, 2.0], 0.75, 0.5);
        assert_eq!(threshold(&memory), Some(3.0));
        update_threshold(&mut memory, vec![1.0, 1.0, 0.0], 0.75, 0.5);
        assert_eq!(threshold(&memory), Some(2.0));
    }
}
