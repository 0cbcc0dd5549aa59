//! What training changes: weights, running averages, counts.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::{Batch, Targets};
use aleator_kernels::NoiseKey;
use aleator_metrics::classification::argmax;
use aleator_model::params::{self, Parameter};
use aleator_model::{BatchNoise, BatchStatistics, Classifier, Draws, Labels, load_network};
use aleator_run::recipe::Recipe;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::experiment;
use crate::normalize::Normalization;
use crate::optimizer::{self, Optimizer};

/// Everything that a step reads and changes.
#[derive(Clone, Debug)]
pub struct State {
    /// Counts and the best epoch so far.
    pub progress: Progress,
    /// The weights, by name.
    pub parameters: Vec<Parameter>,
    /// Their running average, where the recipe asks for one.
    pub average: Option<Vec<Parameter>>,
    /// The rule and its averages.
    pub optimizer: Optimizer,
    /// What is done to the inputs.
    pub normalization: Normalization,
    /// The weights as a Burn module.
    model: Classifier,
    settings: StepSettings,
}

/// What a step needs of the recipe.
#[derive(Clone, Debug)]
struct StepSettings {
    seed: u64,
    samples: usize,
    draws: Draws,
    /// Examples that are taken through the model at once.
    part: usize,
    ema: Option<f64>,
}

/// Where training stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// The epoch with the lowest validation NLL.
    pub best: Option<Best>,
    /// Epochs since then.
    pub epochs_since_best: usize,
    /// Whether training is over: all steps done, or stopped early.
    pub finished: bool,
}

/// The best epoch so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Steps done at its end; names its checkpoint.
    pub step: usize,
    /// Its validation NLL.
    pub nll: f64,
}

/// What a step says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// −log p of the labels, averaged over the batch.
    pub loss: f64,
    /// The share of examples whose largest mean is the label's; with several labels, of theirs.
    pub accuracy: f64,
    /// The norm of the gradient, before clipping.
    pub gradient_norm: f64,
}

impl State {
    /// Fresh weights.
    pub fn start(
        recipe: &Recipe,
        seed: u64,
        shape: &experiment::Shape,
        normalization: Normalization,
    ) -> Self {
        let device = Device::flex().autodiff();
        let config = experiment::classifier(recipe, seed, shape);
        let model = config.init(&device);
        let mut parameters = params::read(&model);
        let factor = recipe.head.covariance_init as f32;
        for parameter in parameters.iter_mut().filter(|p| is_covariance(&p.name)) {
            parameter.values.iter_mut().for_each(|value| *value *= factor);
        }
        let model = params::write(model, &parameters);
        let settings = StepSettings {
            seed,
            samples: recipe.head.samples,
            draws: recipe.head.draws,
            part: recipe.training.batch,
            ema: recipe.training.ema,
        };
        Self {
            progress: Progress::default(),
            average: recipe.training.ema.map(|_| parameters.clone()),
            optimizer: Optimizer::new(&recipe.optimizer, &parameters, recipe.network.frozen),
            parameters,
            normalization,
            model,
            settings,
        }
    }

    /// Takes the weights of the layers before the head from a file.
    pub fn load_network(&mut self, path: &Path) -> Result<(), TrainError> {
        let model = load_network(self.model.clone(), path)
            .map_err(|error| TrainError::Weights(error.to_string()))?;
        self.parameters = params::read(&model);
        self.average = self.average.as_ref().map(|_| self.parameters.clone());
        self.model = model;
        Ok(())
    }

    /// Goes on from what was saved.
    pub fn restore(&mut self, progress: Progress, parameters: Vec<Parameter>) {
        self.progress = progress;
        self.parameters = parameters;
        self.model = params::write(self.model.clone(), &self.parameters);
    }

    /// The model that is evaluated: without autodiff, with the averaged weights if there are any.
    pub fn evaluated(&self) -> Classifier {
        let parameters = self.average.as_ref().unwrap_or(&self.parameters);
        params::write(self.model.clone().valid(), parameters)
    }

    /// One update from one batch, a part at a time where the recipe accumulates. When `stop` is
    /// raised between two parts, nothing has changed and `None` comes back.
    pub fn step(
        &mut self,
        mut batch: Batch,
        rate: f64,
        stop: &AtomicBool,
    ) -> Result<Option<StepReport>, TrainError> {
        self.normalization.apply(&mut batch.inputs);
        let parts = Parts::new(&batch, self.settings.part);
        let mut sum = PartSum::default();
        for (index, part) in parts.enumerate() {
            if index > 0 && stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.add_part(&batch, part, &mut sum)?;
        }
        let gradient_norm = optimizer::norm(&sum.gradients);
        if !(sum.loss.is_finite() && gradient_norm.is_finite()) {
            return Err(TrainError::not_finite(self.progress.step, batch.examples));
        }
        self.optimizer.step(&mut self.parameters, &sum.gradients, rate);
        self.update_statistics(&sum.statistics);
        self.model = params::write(self.model.clone(), &self.parameters);
        self.update_average();
        self.progress.step += 1;
        let accuracy = sum.hits / batch.keys.len() as f64;
        Ok(Some(StepReport { loss: sum.loss, accuracy, gradient_norm }))
    }

    fn add_part(
        &self,
        batch: &Batch,
        part: std::ops::Range<usize>,
        sum: &mut PartSum,
    ) -> Result<(), TrainError> {
        let device = Device::flex().autodiff();
        let (size, width) = (batch.keys.len(), self.normalization.center.len());
        let inputs = batch.inputs[part.start * width..part.end * width].to_vec();
        let inputs = Tensor::from_data(TensorData::new(inputs, [part.len(), width]), &device);
        let noise = BatchNoise {
            key: NoiseKey { seed: self.settings.seed, step: self.progress.step as u64 },
            ids: batch.keys[part.clone()].to_vec(),
            samples: self.settings.samples,
            draws: self.settings.draws,
        };
        let labels = labels(&batch.targets, part.clone(), size, &device);
        let outcome = self.model.loss(inputs, labels, &noise).map_err(|rows| {
            let examples = rows.into_iter().map(|row| batch.examples[part.start + row]).collect();
            TrainError::not_finite(self.progress.step, examples)
        })?;
        let weight = part.len() as f64 / size as f64;
        sum.loss += weight * outcome.loss.clone().into_scalar::<f32>() as f64;
        sum.hits += hits(&outcome.mean, &batch.targets, part, size);
        sum.add_statistics(outcome.statistics, weight as f32);
        let gradients = params::gradients(&self.model, &outcome.loss.backward());
        sum.add(gradients, weight as f32);
        Ok(())
    }

    /// The running statistics follow those of the step: the mean of its parts'.
    fn update_statistics(&mut self, statistics: &[BatchStatistics]) {
        let Some(momentum) = self.model.norm_momentum() else { return };
        for one in statistics {
            one.update(&mut self.parameters, momentum);
        }
    }

    /// The average starts as the weights themselves, and follows faster while it is young.
    fn update_average(&mut self) {
        let (Some(decay), Some(average)) = (self.settings.ema, &mut self.average) else { return };
        let updates = self.optimizer.updates() as f64;
        let decay = decay.min((1.0 + updates) / (10.0 + updates)) as f32;
        for (average, current) in average.iter_mut().zip(&self.parameters) {
            for (average, current) in average.values.iter_mut().zip(&current.values) {
                *average = decay * *average + (1.0 - decay) * current;
            }
        }
    }
}

fn is_covariance(name: &str) -> bool {
    // Biases too: what matters is how much noise there is at the start.
    name.starts_with("output.")
        && !name.starts_with("output.head.mean.")
        && !name.ends_with("temperature_logit")
}

/// Consecutive parts of a batch, of almost equal size.
struct Parts {
    size: usize,
    parts: usize,
    next: usize,
}

impl Parts {
    fn new(batch: &Batch, most: usize) -> Self {
        let size = batch.keys.len();
        Self { size, parts: size.div_ceil(most).max(1), next: 0 }
    }
}

impl Iterator for Parts {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let edge = |part: usize| part * self.size / self.parts;
        let part = (self.next < self.parts).then(|| edge(self.next)..edge(self.next + 1));
        self.next += 1;
        part
    }
}

/// Loss, hits and gradients of the parts so far.
#[derive(Default)]
struct PartSum {
    loss: f64,
    hits: f64,
    gradients: Vec<Parameter>,
    statistics: Vec<BatchStatistics>,
}

impl PartSum {
    fn add_statistics(&mut self, mut statistics: Vec<BatchStatistics>, weight: f32) {
        for one in &mut statistics {
            one.mean.iter_mut().chain(&mut one.variance).for_each(|value| *value *= weight);
        }
        if self.statistics.is_empty() {
            self.statistics = statistics;
            return;
        }
        for (sum, one) in self.statistics.iter_mut().zip(statistics) {
            sum.mean.iter_mut().zip(one.mean).for_each(|(sum, value)| *sum += value);
            sum.variance.iter_mut().zip(one.variance).for_each(|(sum, value)| *sum += value);
        }
    }

    fn add(&mut self, mut gradients: Vec<Parameter>, weight: f32) {
        if weight != 1.0 {
            let values = gradients.iter_mut().flat_map(|gradient| &mut gradient.values);
            values.for_each(|value| *value *= weight);
        }
        if self.gradients.is_empty() {
            self.gradients = gradients;
            return;
        }
        for (sum, gradient) in self.gradients.iter_mut().zip(gradients) {
            sum.values.iter_mut().zip(gradient.values).for_each(|(sum, value)| *sum += value);
        }
    }
}

fn labels(targets: &Targets, part: std::ops::Range<usize>, size: usize, device: &Device) -> Labels {
    match targets {
        Targets::Classes(classes) => {
            let classes: Vec<i32> = classes[part.clone()].iter().map(|c| *c as i32).collect();
            let data = TensorData::new(classes, [part.len()]);
            Labels::Classes(Tensor::<1, Int>::from_data(data, device))
        }
        Targets::Dense(values) => {
            let classes = values.len() / size;
            let values = values[part.start * classes..part.end * classes].to_vec();
            let data = TensorData::new(values, [part.len(), classes]);
            Labels::Dense(Tensor::from_data(data, device))
        }
    }
}

/// How often the largest mean is that of a label.
fn hits(mean: &[f32], targets: &Targets, part: std::ops::Range<usize>, size: usize) -> f64 {
    let classes = mean.len() / part.len();
    let tops = mean.chunks_exact(classes).map(argmax).zip(part);
    let right = |(top, example): (usize, usize)| match targets {
        Targets::Classes(labels) => labels[example] as usize == top,
        Targets::Dense(values) => {
            let row = &values[example * (values.len() / size)..][..classes];
            row[top] > 0.0 && row.iter().all(|value| *value <= row[top])
        }
    };
    tops.filter(|pair| right(*pair)).count() as f64
}
