//! CleanNet (Lee et al. 2018): examples weigh by how like their class they are, which encoders learn
//! from verified examples.
//!
//! After some epochs of plain training, and again every few epochs:
//! 1. the features of all training examples are computed by the network that is trained;
//! 2. each given class gets references, the centres that k-means finds among its examples;
//! 3. fresh encoders make a vector φ_s of the references of a class and a vector φ_q of an example,
//!    and learn that their cosine is large where the label of a verified example is right;
//! 4. the weight of an example is max(0, cos) of it and its given class.
//!
//! The loss of the classifier is then that of plain training with these weights. For an example
//! that is verified the encoders' loss is 1 − cos if its label is right, and ω max(0, cos − margin) if
//! it is wrong; for others it is γ times the same, taking the label for right where the cosine is at
//! least the margin. A decoder reconstructs features from φ_q, with the mean square error times β.
//!
//! The authors reduce pooled features to log(x + 1), which none may be negative for, and sum the
//! square error over the features. Here features are centred and divided by one number, so that their
//! mean square is 1. Their dropout is absent, whose published graphs leave it on in inference; the
//! decoder is linear in the end, as tanh would bound what it can reconstruct.

mod encoders;
mod fit;
mod references;

use aleator_data::DataSet;
use aleator_run::recipe;

use super::verified::Verified;
use super::{Method, Start, Survey};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

use fit::Task;

pub(crate) struct CleanNet(pub recipe::CleanNet);

/// The weight of each example, `[N]`; 1 before they are known.
const WEIGHTS: &str = "cleannet.weights";
/// Which examples are verified, and which of these labels are right, `[N, 2]`.
const VERIFIED: &str = "cleannet.verified";

impl Method for CleanNet {
    fn check(&self, data: &DataSet) -> Result<(), TrainError> {
        Verified::load(&self.0.verified, data)?;
        Ok(())
    }

    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let weights = NamedTensor::vector(WEIGHTS, &vec![1.0; start.examples]);
        state.memory = vec![weights, Verified::unknown(VERIFIED, start.examples)];
    }

    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        Verified::load(&self.0.verified, survey.data)?.keep(&mut state.memory[1]);
        Ok(())
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        let since = epoch.checked_sub(self.0.after);
        if since.is_none_or(|since| !since.is_multiple_of(self.0.refresh)) {
            return Ok(());
        }
        let train = &survey.data.train;
        let mut features = vec![];
        survey.features(state, train, &mut |rows| features.extend(rows))?;
        standardise(&mut features, train.len());
        let labels = survey.labels(train);
        let verified = Verified::kept(&state.memory[1]);
        let random = (survey.seed, epoch);
        let task = Task::new(&self.0, &features, &labels, train.classes, &verified, random);
        let similarities = task.fit().similarities(&task);
        state.memory[0].values.change(|weights| {
            let pairs = weights.iter_mut().zip(similarities);
            pairs.for_each(|(weight, similarity)| *weight = similarity.max(0.0));
        });
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let kept = state.memory[0].values.read();
        let weigh = |(weight, example): (&f32, &usize)| weight * kept[*example];
        let weights: Vec<f32> = part.weights.iter().zip(&part.batch.examples).map(weigh).collect();
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let loss = model.loss(forward, part.targets(), &weights, &part.noise, None)?;
        Ok(Contribution::new(part, network, loss))
    }
}

/// Centres features, [N, D], and divides them by the root of their mean square.
fn standardise(features: &mut [f32], examples: usize) {
    let width = features.len() / examples;
    let mut mean = vec![0.0f64; width];
    for row in features.chunks_exact(width) {
        mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += f64::from(*value));
    }
    mean.iter_mut().for_each(|mean| *mean /= examples as f64);
    let mut square = 0.0;
    for row in features.chunks_exact_mut(width) {
        for (value, mean) in row.iter_mut().zip(&mean) {
            let centred = f64::from(*value) - mean;
            square += centred * centred;
            *value = centred as f32;
        }
    }
    let root = (square / features.len() as f64).sqrt();
    let scale = if root > 0.0 { (1.0 / root) as f32 } else { 0.0 };
    features.iter_mut().for_each(|value| *value *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_centred_and_have_a_mean_square_of_one() {
        let mut features = vec![1.0, 10.0, 3.0, 10.0, 5.0, 13.0];
        standardise(&mut features, 3);
        // Centred: -2, -1, 0, -1, 2, 2; their squares sum to 14.
        let root = (14.0f64 / 6.0).sqrt();
        for (found, expected) in features.iter().zip([-2.0, -1.0, 0.0, -1.0, 2.0, 2.0]) {
            // One rounding to f32.
            assert!((f64::from(*found) - expected / root).abs() < 1e-6, "{features:?}");
        }
        let mut same = vec![2.0; 4];
        standardise(&mut same, 2);
        assert_eq!(same, [0.0; 4]);
    }
}
