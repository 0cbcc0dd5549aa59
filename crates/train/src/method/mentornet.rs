//! MentorNet (Jiang et al. 2018): examples weigh by their loss, by a formula or as a small network
//! has learned.
//!
//! The loss of an example is v ℓ with ℓ = −log q_y and v a constant. A running average λ of the
//! p-quantile of the losses of a step says what is large, Δ = ℓ − λ:
//! - self-paced: v = 1 where Δ ≤ 0, else 0;
//! - linear, with γ: v = 1 − Δ/γ, from 0 to 1;
//! - focal: v = (1 − e^{−ℓ})², which favours large losses;
//! - predefined: self-paced, and linear after some epochs;
//! - learned: by a network that learns from verified examples whether a label is right, in `learned`.
//!
//! λ is that of the steps before, so that a step may be computed in parts; the authors' includes the
//! step itself. Their example dropout and their weighting of the decay by the mean of v are absent.

mod learned;

use std::ops::Range;

use aleator_data::DataSet;
use aleator_run::recipe::{self, Curriculum};

use super::example_loss::{ExampleLoss, contribution, cross_entropy};
use super::verified::Verified;
use super::{Method, Start, Survey, given, update_networks};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;
use learned::{Mentor, Seen};

pub(crate) struct MentorNet {
    pub settings: recipe::MentorNet,
    /// Of the whole training.
    pub epochs: usize,
}

/// λ, and the number of steps that have entered it.
const THRESHOLD: &str = "mentornet.threshold";
/// v of each example when it was last met, `[N]`.
const WEIGHTS: &str = "mentornet.weights";

// Only of the learned curriculum:
/// Which examples are verified, and which of these labels are right, `[N, 2]`.
const VERIFIED: &str = "mentornet.verified";
/// ℓ and Δ of each example when it was last met, `[N, 2]`.
const SEEN: &str = "mentornet.seen";
/// The weights of the network for this epoch and for the one before, `[2, P]`: those of epoch e are
/// in row e mod 2, so that making them twice is making them once.
const NETWORK: &str = "mentornet.network";

/// A loss beyond that of the smallest f32 would drown all others.
const LARGEST_LOSS: f64 = 104.0;

impl Method for MentorNet {
    fn check(&self, data: &DataSet) -> Result<(), TrainError> {
        if let Curriculum::Learned { verified, .. } = &self.settings.curriculum {
            Verified::load(verified, data)?;
        }
        Ok(())
    }

    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let weights = NamedTensor::vector(WEIGHTS, &vec![1.0; start.examples]);
        state.memory = vec![NamedTensor::zeros(THRESHOLD, &[2]), weights];
        if matches!(self.settings.curriculum, Curriculum::Learned { .. }) {
            let mut network = NamedTensor::zeros(NETWORK, &[2, learned::WEIGHTS]);
            let fresh = learned::fresh(start.seed);
            network.values.change(|values| values[..fresh.len()].copy_from_slice(&fresh));
            let seen = NamedTensor::zeros(SEEN, &[start.examples, 2]);
            state.memory.extend([Verified::unknown(VERIFIED, start.examples), seen, network]);
        }
    }

    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        if let Curriculum::Learned { verified, .. } = &self.settings.curriculum {
            Verified::load(verified, survey.data)?.keep(&mut state.memory[2]);
        }
        Ok(())
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        if let Curriculum::Learned { steps, rate, .. } = self.settings.curriculum
            && epoch > 0
        {
            self.teach(state, epoch, survey.seed, (steps, rate));
        }
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let threshold = threshold(&state.memory[0]);
        let epoch = part.batch.epoch;
        let rule = self.rule(state, epoch);
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let mut targets = vec![0.0; log_probs.len()];
            let given = given(&part.batch.targets, row);
            given.iter().for_each(|(class, weight)| targets[*class] += weight);
            let loss = cross_entropy(&targets, log_probs);
            let seen = self.seen(loss, threshold.map_or(0.0, |threshold| loss - threshold), epoch);
            // The first step has no threshold yet.
            let weight = if threshold.is_some() { rule.weight(seen) } else { 1.0 };
            targets.iter_mut().for_each(|target| *target *= weight);
            rows.extend([loss, seen.above, weight].map(|value| value as f32));
            ExampleLoss::against(targets)
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, mut sum: Contribution, rate: f64) {
        let losses = sum.rows.chunks_exact(3).map(|row| row[0]).collect();
        update_threshold(&mut state.memory[0], losses, self.settings.quantile, self.settings.decay);
        let rows = std::mem::take(&mut sum.rows);
        if let Some(seen) = state.memory.get_mut(3) {
            sum.rows = rows.chunks_exact(3).flat_map(|row| [row[0], row[1]]).collect();
            sum.keep_rows(seen);
        }
        sum.rows = rows.chunks_exact(3).map(|row| row[2]).collect();
        sum.keep_rows(&mut state.memory[1]);
        update_networks(state, &sum, rate);
    }
}

impl MentorNet {
    /// How examples are weighed in an epoch.
    fn rule(&self, state: &State, epoch: usize) -> Rule {
        match self.settings.curriculum {
            _ if epoch < self.settings.burn_in => Rule::Equal,
            Curriculum::SelfPaced => Rule::SelfPaced,
            Curriculum::Linear { width } => Rule::Linear { width },
            Curriculum::Focal => Rule::Focal,
            Curriculum::Predefined { width, linear_after } if epoch >= linear_after => {
                Rule::Linear { width }
            }
            Curriculum::Predefined { .. } => Rule::SelfPaced,
            // There is nothing yet that it has learned from.
            Curriculum::Learned { .. } if epoch == 0 => Rule::Equal,
            Curriculum::Learned { .. } => {
                let weights = state.memory[4].values.read();
                Rule::Learned(Mentor::new(&weights[network_of(epoch)]))
            }
        }
    }

    /// Makes the network of an epoch from that of the epoch before.
    fn teach(&self, state: &mut State, epoch: usize, seed: u64, settings: (usize, f64)) {
        let examples = self.judged(state, epoch - 1);
        let before = state.memory[4].values.read()[network_of(epoch - 1)].to_vec();
        let weights = learned::trained(&before, &examples, settings, (seed, epoch));
        state.memory[4].values.change(|values| values[network_of(epoch)].copy_from_slice(&weights));
    }

    /// What was seen of the verified examples in an epoch, and whether their labels are right.
    fn judged(&self, state: &State, epoch: usize) -> Vec<(Seen, bool)> {
        let seen = state.memory[3].values.read();
        let of = |(example, right): (usize, bool)| {
            let [loss, above] = [0, 1].map(|at| f64::from(seen[2 * example + at]));
            (self.seen(loss, above, epoch), right)
        };
        Verified::kept(&state.memory[2]).into_iter().map(of).collect()
    }

    fn seen(&self, loss: f64, above: f64, epoch: usize) -> Seen {
        let [loss, above] = [loss, above].map(|it| it.clamp(-LARGEST_LOSS, LARGEST_LOSS));
        Seen { loss, above, progress: epoch as f64 / self.epochs as f64 }
    }
}

/// Where the network of an epoch is.
fn network_of(epoch: usize) -> Range<usize> {
    let first = epoch % 2 * learned::WEIGHTS;
    first..first + learned::WEIGHTS
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

/// How examples are weighed.
enum Rule {
    Equal,
    SelfPaced,
    Linear { width: f64 },
    Focal,
    Learned(Mentor),
}

impl Rule {
    /// v.
    fn weight(&self, seen: Seen) -> f64 {
        match self {
            Self::Equal => 1.0,
            Self::SelfPaced => self_paced(seen.above),
            Self::Linear { width } => (1.0 - seen.above / width).clamp(0.0, 1.0),
            Self::Focal => (1.0 - (-seen.loss).exp()).powi(2),
            Self::Learned(mentor) => mentor.weight(seen),
        }
    }
}

/// v of a loss that is this much above the threshold.
pub(super) fn self_paced(above: f64) -> f64 {
    if above <= 0.0 { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curricula_are_the_formulas_of_the_paper() {
        let predefined = || Curriculum::Predefined { width: 2.0, linear_after: 5 };
        let state = State {
            progress: crate::state::Progress::default(),
            networks: vec![],
            memory: vec![],
            normalization: crate::Normalization::identity(1),
        };
        for (curriculum, epoch, loss, expected) in [
            (Curriculum::SelfPaced, 2, 1.0, 1.0),
            (Curriculum::SelfPaced, 2, 1.5, 0.0),
            (Curriculum::SelfPaced, 1, 1.5, 1.0),
            (Curriculum::Linear { width: 2.0 }, 2, 1.5, 0.75),
            (Curriculum::Linear { width: 2.0 }, 2, 0.5, 1.0),
            (Curriculum::Linear { width: 2.0 }, 2, 4.0, 0.0),
            (Curriculum::Focal, 2, std::f64::consts::LN_2, 0.25),
            (predefined(), 4, 1.5, 0.0),
            (predefined(), 5, 1.5, 0.75),
        ] {
            let settings = recipe::MentorNet { curriculum, quantile: 0.75, decay: 0.5, burn_in: 2 };
            let method = MentorNet { settings, epochs: 10 };
            let seen = method.seen(loss, loss - 1.0, epoch);
            let found = method.rule(&state, epoch).weight(seen);
            // One rounding of exp.
            assert!((found - expected).abs() < 1e-15, "{:?} {loss}: {found}", method.settings);
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
