//! Heteroskedastic adaptive regularisation (Cao et al. 2021): classes that are rare or hard are
//! smoothed the most.
//!
//! The loss is that of `plain` plus ρ times the mean over examples of λ_y ‖∂ℓ/∂h‖, where h are the
//! inputs of the head and ℓ is the cross entropy of softmax(μ(h)/τ): with W the weights of μ,
//! ∂ℓ/∂h = W (softmax(μ/τ) − y) / τ in closed form, so that one backward pass gives the gradient of
//! both. The authors add the norms at all layers of a network, which takes second derivatives, and
//! their gradient is that of the mean over the batch: their ρ is ours times the size of the batch.
//!
//! λ of a class is err^0.6 / n^0.4 in the paper, divided by the largest, with err the share of its
//! examples that a model takes for another class and n their number. The errors come from a file,
//! or from the model itself after some epochs of plain training: it predicts the validation split.

use aleator_data::array::{Array, Values as ArrayValues};
use aleator_data::{DataError, DataSet};
use aleator_metrics::classification::argmax;
use aleator_model::{Classifier, Latent};
use aleator_run::recipe::{self, ClassErrors};
use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};

use super::{Method, Start, Survey, given};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct Har(pub recipe::Har);

/// λ, `[K]`; 0 until it is known.
const WEIGHTS: &str = "har.weights";
/// Added to the square of a norm, whose root has no derivative at 0.
const LEAST_SQUARE: f32 = 1e-24;

impl Method for Har {
    fn check(&self, data: &DataSet) -> Result<(), TrainError> {
        Ok(self.given(data.train.classes).map(drop)?)
    }

    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.memory = vec![NamedTensor::zeros(WEIGHTS, &[start.shape.classes])];
    }

    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        if let Some(errors) = self.given(survey.data.train.classes)? {
            self.set_weights(state, survey, &errors);
        }
        Ok(())
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        let ClassErrors::Validation { after } = self.0.errors else { return Ok(()) };
        if epoch == after {
            let errors = validation_errors(state, survey)?;
            self.set_weights(state, survey, &errors);
        }
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let latent = forward.latent.clone();
        let mut loss = model.loss(forward, part.targets(), &part.weights, &part.noise, None)?;
        let class_weights = state.memory[0].values.read();
        if self.0.strength > 0.0 && class_weights.iter().any(|weight| *weight > 0.0) {
            let penalty = Penalty::new(part, &class_weights);
            let sum = penalty.of(model, latent);
            loss.loss = loss.loss + sum.mul_scalar(self.0.strength as f32);
        }
        Ok(Contribution::new(part, network, loss))
    }
}

/// What the norms are computed from.
struct Penalty {
    /// y, [B, K].
    labels: Vec<f32>,
    /// The weight of each norm, `[B]`.
    weights: Vec<f32>,
}

impl Penalty {
    fn new(part: &Part<'_>, class_weights: &[f32]) -> Self {
        let mut labels = vec![0.0; part.weights.len() * class_weights.len()];
        let rows = labels.chunks_exact_mut(class_weights.len()).zip(&part.weights).enumerate();
        let weight = |(row, (labels, own)): (usize, (&mut [f32], &f32))| {
            let given = given(&part.batch.targets, row);
            let total: f64 = given.iter().map(|(_, weight)| weight).sum();
            let mut sum = 0.0;
            for (class, weight) in given {
                labels[class] = (weight / total) as f32;
                sum += weight * f64::from(class_weights[class]);
            }
            own * sum as f32
        };
        let weights = rows.map(weight).collect();
        Self { labels, weights }
    }

    /// Σ weight · ‖W (softmax(μ/τ) − y)‖ / τ, `[1]`, with its gradient.
    fn of(self, model: &Classifier, latent: Latent) -> Tensor<1> {
        let [batch, classes] = latent.dims();
        let device = latent.mean.device();
        let labels = TensorData::new(self.labels, [batch, classes]);
        let weights = TensorData::new(self.weights, [batch, 1]);
        let temperature = latent.temperature.unsqueeze::<2>();
        let probs = softmax(latent.mean / temperature.clone(), 1);
        let errors = probs - Tensor::<2>::from_data(labels, &device);
        let slopes = errors.matmul(model.output().head().mean_weight().transpose()) / temperature;
        let squares = (slopes.clone() * slopes).sum_dim(1).add_scalar(LEAST_SQUARE);
        (squares.sqrt() * Tensor::<2>::from_data(weights, &device)).sum()
    }
}

impl Har {
    /// The errors in the recipe's file, where it names one.
    fn given(&self, classes: usize) -> Result<Option<Vec<f64>>, DataError> {
        let ClassErrors::File { class_errors } = &self.0.errors else { return Ok(None) };
        let array = Array::load(class_errors)?;
        let refuse = |message: String| Err(DataError::invalid(class_errors, message));
        if array.shape != [classes] || matches!(array.values, ArrayValues::Text(_)) {
            let found = &array.shape;
            return refuse(format!(
                "har.class_errors must be one number for each of {classes} classes, found the \
                 shape {found:?}"
            ));
        }
        let errors: Vec<f64> = (0..classes).map(|at| array.values.float(at)).collect();
        match errors.iter().position(|error| !(0.0..=1.0).contains(error)) {
            None => Ok(Some(errors)),
            Some(class) => refuse(format!(
                "row {class}: har.class_errors must be shares from 0 to 1, found {}",
                errors[class]
            )),
        }
    }

    fn set_weights(&self, state: &mut State, survey: &Survey<'_>, errors: &[f64]) {
        let mut counts = vec![0usize; errors.len()];
        let train = &survey.data.train;
        survey.labels(train).iter().for_each(|label| counts[*label as usize] += 1);
        let found = self.weights(errors, &counts);
        state.memory[0].values.change(|weights| weights.copy_from_slice(&found));
    }

    /// λ of each class; a class without examples has none.
    fn weights(&self, errors: &[f64], counts: &[usize]) -> Vec<f32> {
        let of_class = |(error, count): (&f64, &usize)| match count {
            0 => 0.0,
            _ => error.powf(self.0.error_power) / (*count as f64).powf(self.0.count_power),
        };
        let weights: Vec<f64> = errors.iter().zip(counts).map(of_class).collect();
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let scale = if largest > 0.0 { 1.0 / largest } else { 0.0 };
        weights.into_iter().map(|weight| (weight * scale) as f32).collect()
    }
}

/// The share of each class's validation examples that the model takes for another; of a class that
/// has none, that of all.
fn validation_errors(state: &State, survey: &Survey<'_>) -> Result<Vec<f64>, TrainError> {
    let split = &survey.data.validation;
    let labels = survey.labels(split);
    let (mut wrong, mut counts) = (vec![0.0; split.classes], vec![0.0; split.classes]);
    survey.log_probs(state, 0, split, &mut |rows, log_probs| {
        for (row, log_probs) in rows.zip(log_probs.chunks_exact(split.classes)) {
            let label = labels[row] as usize;
            counts[label] += 1.0;
            wrong[label] += f64::from(u8::from(argmax(log_probs) != label));
        }
    })?;
    let overall = wrong.iter().sum::<f64>() / counts.iter().sum::<f64>();
    let share = |(wrong, count): (&f64, &f64)| if *count > 0.0 { wrong / count } else { overall };
    Ok(wrong.iter().zip(&counts).map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_and_hard_classes_weigh_the_most() {
        let errors = ClassErrors::Validation { after: 1 };
        let settings = recipe::Har { strength: 1.0, error_power: 0.6, count_power: 0.4, errors };
        let found = Har(settings).weights(&[0.1, 0.4, 0.4, 0.5], &[100, 100, 10, 0]);
        let raw = [0.1f64.powf(0.6) / 100f64.powf(0.4), 0.4f64.powf(0.6) / 100f64.powf(0.4)];
        let largest = 0.4f64.powf(0.6) / 10f64.powf(0.4);
        for (found, expected) in found.iter().zip([raw[0] / largest, raw[1] / largest, 1.0, 0.0]) {
            // One rounding to f32.
            assert!((f64::from(*found) - expected).abs() < 1e-7, "{found} {expected}");
        }
    }
}
