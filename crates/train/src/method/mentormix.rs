//! MentorMix (Jiang et al. 2020): mixup in which examples of small loss are preferred.
//!
//! In each part, with v as MentorNet's self-paced weights (1 where −log q_y is at most the running
//! average of its quantile, else 0; all 1 before the burn-in ends):
//! 1. the partner of an example is drawn with probabilities softmax(v);
//! 2. λ of Beta(α, α), or 1 − λ where that is more; an example with v = 0 gets 1 − λ of itself;
//! 3. inputs and targets are mixed;
//! 4. if the recipe says so, the mixed examples are weighted by a second v, of their own losses,
//!    with a running average of its own.
//!
//! The authors' code switches at v < ½ as here, where the text of the paper mixes both shares by v;
//! with v of 0 or 1 that is the same. Running averages are those of the steps before.

use aleator_run::recipe;

use super::co_teaching::losses;
use super::example_loss::{ExampleLoss, contribution_of, cross_entropy};
use super::mentornet::{self_paced, threshold, update_threshold};
use super::mixing::{Mix, Use, dense_targets, larger_share, word};
use super::{Method, Start, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct MentorMix(pub recipe::MentorMix);

/// The running averages of both quantiles, with the number of steps that have entered them.
const THRESHOLDS: [&str; 2] = ["mentormix.threshold", "mentormix.mixed_threshold"];
/// The first v of each example when it was last met, `[N]`.
const WEIGHTS: &str = "mentormix.weights";

impl Method for MentorMix {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.memory = THRESHOLDS.map(|name| NamedTensor::zeros(name, &[2])).to_vec();
        state.memory.push(NamedTensor::vector(WEIGHTS, &vec![1.0; start.examples]));
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let first = losses(part, &model.log_probs(&forward, &part.noise)?.read());
        let weights: Vec<f64> =
            first.iter().map(|loss| self.weight(&state.memory[0], part, *loss)).collect();
        let mix = self.mix(part, &weights);
        let mut second = vec![];
        let inputs = mix.inputs(&part.inputs);
        let contribution = contribution_of(network, part, inputs, &part.noise, |rows, classes| {
            let targets = mix.targets(&dense_targets(part, classes));
            let pairs = targets.into_iter().zip(rows.chunks_exact(classes));
            let weighted = |(mut targets, log_probs): (Vec<f64>, &[f64])| {
                let loss = cross_entropy(&targets, log_probs);
                second.push(loss);
                if self.0.weigh_mixed {
                    let weight = self.weight(&state.memory[1], part, loss);
                    targets.iter_mut().for_each(|target| *target *= weight);
                }
                ExampleLoss::against(targets)
            };
            pairs.map(weighted).collect()
        })?;
        let rows = first.iter().zip(second).zip(weights);
        let rows = rows.flat_map(|((first, second), weight)| [*first, second, weight]);
        Ok(Contribution { rows: rows.map(|value| value as f32).collect(), ..contribution })
    }

    fn finish(&self, state: &mut State, mut sum: Contribution, rate: f64) {
        for at in 0..2 {
            let losses = sum.rows.chunks_exact(3).map(|row| row[at]).collect();
            update_threshold(&mut state.memory[at], losses, self.0.quantile, self.0.decay);
        }
        sum.rows = sum.rows.chunks_exact(3).map(|row| row[2]).collect();
        sum.keep_rows(&mut state.memory[2]);
        update_networks(state, &sum, rate);
    }
}

impl MentorMix {
    fn weight(&self, memory: &NamedTensor, part: &Part<'_>, loss: f64) -> f64 {
        match threshold(memory) {
            Some(threshold) if part.batch.epoch >= self.0.burn_in => self_paced(loss - threshold),
            _ => 1.0,
        }
    }

    pub(super) fn mix(&self, part: &Part<'_>, weights: &[f64]) -> Mix {
        let share = |row: usize| {
            let larger = larger_share(part, row, self.0.alpha);
            if weights[row] < 0.5 { 1.0 - larger } else { larger }
        };
        let odds: Vec<f64> = weights.iter().map(|weight| weight.exp()).collect();
        let partner = |row: usize| {
            let unit = (word(part, row, Use::Partner, 0) >> 11) as f64 / (1u64 << 53) as f64;
            drawn(&odds, unit)
        };
        let rows = 0..weights.len();
        Mix { partners: rows.clone().map(partner).collect(), shares: rows.map(share).collect() }
    }
}

/// The place where `unit`, from 0 to 1, falls among these odds.
fn drawn(odds: &[f64], unit: f64) -> usize {
    let mut left = unit * odds.iter().sum::<f64>();
    let place = odds.iter().position(|odds| {
        left -= odds;
        left < 0.0
    });
    place.unwrap_or(odds.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_drawn_by_their_odds() {
        let found = [0.0, 0.24, 0.26, 0.49, 0.51, 0.999].map(|it| drawn(&[1.0, 1.0, 2.0], it));
        assert_eq!(found, [0, 0, 1, 1, 2, 2]);
    }
}
