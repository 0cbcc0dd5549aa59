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
//! examples that a model takes for another class and n their number. The errors come from a file;
//! from the model itself after some epochs of plain training, as it predicts the validation split; or
//! from two further networks, of which each learns from one half of the examples in these epochs and
//! then predicts the other half. Halves are those of a hash of the ids. The authors have one such
//! network, and so the errors of one half. Afterwards the two do not learn any more.

use aleator_data::array::{Array, Values as ArrayValues};
use aleator_data::{DataError, DataSet, Split};
use aleator_kernels::{NoiseKey, Stream, split_mix};
use aleator_metrics::classification::argmax;
use aleator_model::{Classifier, Latent};
use aleator_run::recipe::{self, ClassErrors};
use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};

use super::co_teaching::noises;
use super::{Method, Start, Survey, given};
use crate::TrainError;
use crate::network::Network;
use crate::state::{State, device};
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
        if matches!(self.0.errors, ClassErrors::Folds { .. }) {
            let network =
                |seed| Network::start(start.recipe, seed, start.shape, &device().autodiff());
            state.networks.extend(split_mix(start.seed).take(2).map(network));
        }
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
        let errors = match self.0.errors {
            ClassErrors::Validation { after } if epoch == after => {
                validation_errors(state, survey)?
            }
            ClassErrors::Folds { after } if epoch == after => fold_errors(state, survey)?,
            _ => return Ok(()),
        };
        self.set_weights(state, survey, &errors);
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
        let mut contribution = Contribution::new(part, network, loss);
        if let ClassErrors::Folds { after } = self.0.errors
            && part.batch.epoch < after
        {
            for half in Half::BOTH {
                let network = &state.networks[half.network()];
                contribution.networks.extend(learn_half(network, part, half)?.networks);
            }
        }
        Ok(contribution)
    }
}

/// A half of the training examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Half {
    const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// That of an example, by the key of its id.
    fn of(seed: u64, key: u64) -> Self {
        // Steps are counted from 0, and evaluation has the last one: no noise is named so.
        let name = NoiseKey { seed, step: u64::MAX - 1 };
        Self::BOTH[(name.block_seed(key, Stream::Method, 0) & 1) as usize]
    }

    /// The network that learns from it.
    fn network(self) -> usize {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Plain training on the examples of a half, each of which counts twice in the mean over all. What
/// norms find is of all.
fn learn_half(network: &Network, part: &Part<'_>, half: Half) -> Result<Contribution, Vec<usize>> {
    let weigh = |(weight, key): (&f32, &u64)| {
        if Half::of(part.noise.key.seed, *key) == half { 2.0 * weight } else { 0.0 }
    };
    let weights: Vec<f32> = part.weights.iter().zip(&part.batch.keys).map(weigh).collect();
    let [_, noise] = noises(part);
    let model = network.model();
    let forward = model.forward(part.inputs.clone());
    let loss = model.loss(forward, part.targets(), &weights, &noise, None)?;
    Ok(Contribution::new(part, network, loss))
}

/// The network that learns from each example, by the keys of their ids.
#[cfg(test)]
pub(super) fn halves(seed: u64, keys: &[u64]) -> Vec<usize> {
    keys.iter().map(|key| Half::of(seed, *key).network()).collect()
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

/// Predictions of examples, counted by their given class.
struct ClassCounts {
    all: Vec<f64>,
    wrong: Vec<f64>,
}

impl ClassCounts {
    fn new(split: &Split) -> Self {
        Self { all: vec![0.0; split.classes], wrong: vec![0.0; split.classes] }
    }

    fn add(&mut self, label: usize, log_probs: &[f32]) {
        self.all[label] += 1.0;
        self.wrong[label] += f64::from(u8::from(argmax(log_probs) != label));
    }

    /// The share of each class's examples that are taken for another; of a class that has none, that
    /// of all.
    fn errors(&self) -> Vec<f64> {
        let overall = self.wrong.iter().sum::<f64>() / self.all.iter().sum::<f64>();
        let pairs = self.wrong.iter().zip(&self.all);
        pairs.map(|(wrong, all)| if *all > 0.0 { wrong / all } else { overall }).collect()
    }
}

/// The errors on the validation split.
fn validation_errors(state: &State, survey: &Survey<'_>) -> Result<Vec<f64>, TrainError> {
    let split = &survey.data.validation;
    let (labels, mut counts) = (survey.labels(split), ClassCounts::new(split));
    survey.log_probs(state, 0, split, &mut |rows, log_probs| {
        let pairs = rows.zip(log_probs.chunks_exact(split.classes));
        pairs.for_each(|(row, own)| counts.add(labels[row] as usize, own));
    })?;
    Ok(counts.errors())
}

/// The errors of each network on the half that it has not learned from.
fn fold_errors(state: &State, survey: &Survey<'_>) -> Result<Vec<f64>, TrainError> {
    let split = &survey.data.train;
    let (labels, mut counts) = (survey.labels(split), ClassCounts::new(split));
    for half in Half::BOTH {
        survey.log_probs(state, half.network(), split, &mut |rows, log_probs| {
            for (row, own) in rows.zip(log_probs.chunks_exact(split.classes)) {
                if Half::of(survey.seed, split.ids.key(row)) == half.other() {
                    counts.add(labels[row] as usize, own);
                }
            }
        })?;
    }
    Ok(counts.errors())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Shape;
    use aleator_run::Document;

    /// One further network always predicts class 0, the other class 1: an example of class 0 is
    /// right where the first has not learned from it.
    #[test]
    fn errors_by_folds_are_those_of_the_network_that_has_not_seen_the_example() {
        let recipe = Document::preset("digits-none").unwrap().recipe().unwrap();
        let data = DataSet::open(&recipe.data, recipe.head.link).unwrap();
        let errors = ClassErrors::Folds { after: 1 };
        let settings = recipe::Har { strength: 1.0, error_power: 1.0, count_power: 0.0, errors };
        let (seed, shape, examples) = (1, Shape::of(&data), data.train.len());
        let mut state = State::start(&recipe, seed, shape);
        Har(settings).prepare(&mut state, &Start { recipe: &recipe, seed, examples, shape });
        for class in [0, 1] {
            let mut weights = state.networks[class + 1].weights();
            let bias = weights.iter_mut().find(|it| it.name == "output.head.mean.bias").unwrap();
            bias.values.change(|values| values[class] = 1e6);
            state.networks[class + 1].begin_with(&weights);
        }
        let survey = Survey { recipe: &recipe, seed, data: &data };
        let found = fold_errors(&state, &survey).unwrap();
        let labels = survey.labels(&data.train);
        let keys: Vec<u64> = (0..examples).map(|example| data.train.ids.key(example)).collect();
        let networks = halves(seed, &keys);
        let share = |class: u32| {
            let of_class = labels.iter().zip(&networks).filter(|(label, _)| **label == class);
            let learned: Vec<usize> = of_class.map(|(_, network)| *network).collect();
            let own = learned.iter().filter(|network| **network == class as usize + 1).count();
            own as f64 / learned.len() as f64
        };
        // Halves are drawn: within 0.5 ± 0.2, five standard errors of 120 examples and more.
        assert!((0.3..0.7).contains(&share(0)) && (0.3..0.7).contains(&share(1)));
        assert_eq!(found[..2], [share(0), share(1)]);
        assert!(found[2..].iter().all(|error| *error == 1.0), "{found:?}");
    }

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
