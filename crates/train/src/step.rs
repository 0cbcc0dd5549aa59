//! One step: its parts one after the other, their sum, the update.

use aleator_data::{Batch, Targets};
use aleator_kernels::NoiseKey;
use aleator_metrics::classification::argmax;
use aleator_model::params::Values;
use aleator_model::{BatchNoise, Draws, TrainingLoss, params};
use aleator_run::recipe::Recipe;
use burn::tensor::Tensor;

use crate::method::{self, Method};
use crate::network::{Gradients, Network};
use crate::outputs::floats;
use crate::parts::Loaded;
use crate::state::State;
use crate::sum::{Block, Summand, TreeSum};
use crate::tensors::NamedTensor;
use crate::{TrainError, optimizer};

/// The loss and accuracy of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// −log p of the targets, averaged over the batch.
    pub loss: f64,
    /// The share of examples whose largest mean is the label's; with several labels, one of
    /// theirs.
    pub accuracy: f64,
    /// The norm of the gradient, before clipping.
    pub gradient_norm: f64,
}

/// Makes steps of one training method.
pub(crate) struct Stepper {
    pub method: Box<dyn Method>,
    seed: u64,
    samples: usize,
    draws: Draws,
    /// Parts of every step.
    parts: usize,
    /// Those of this step so far.
    sum: TreeSum<Contribution>,
}

/// A part of a step, as a method sees it.
pub(crate) struct Part<'a> {
    /// Its examples and their targets; the inputs have been taken out.
    pub batch: &'a Batch,
    /// Normalised, [B, N].
    pub inputs: Tensor<2>,
    /// The same of the second view, where [`Method::views`] asks for one.
    pub second_view: Option<Tensor<2>>,
    /// The noise of its examples in this step.
    pub noise: BatchNoise,
    /// The weight of each example in the mean over the part, `[B]`.
    pub weights: Vec<f32>,
}

/// What a part adds to its step.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    /// The mean loss of the part, then the part's share of the step's.
    pub loss: f64,
    /// Examples whose largest mean is a label's.
    pub hits: f64,
    /// For each network.
    pub networks: Vec<Gradients>,
    /// Positions in the training split.
    pub examples: Vec<usize>,
    /// What a method keeps of each example, in the order of `examples`; it may be nothing.
    pub rows: Vec<f32>,
}

impl Stepper {
    pub fn new(recipe: &Recipe, seed: u64, parts: usize) -> Self {
        Self {
            method: method::of(recipe),
            seed,
            samples: recipe.head.samples,
            draws: recipe.head.draws,
            parts,
            sum: TreeSum::default(),
        }
    }

    /// Computes a part; the last one of a step updates the state. Until then nothing has changed,
    /// and a step that is given up leaves no trace.
    pub fn add(
        &mut self,
        state: &mut State,
        part: &Loaded,
        rate: f64,
    ) -> Result<Option<StepReport>, TrainError> {
        let index = part.batch.part;
        let contribution = self.part(state, part)?;
        self.sum.add(Block::part(index, contribution));
        if index + 1 < self.parts {
            return Ok(None);
        }
        let sum = sum_over_processes(std::mem::take(&mut self.sum));
        let step = state.progress.step;
        let norms = sum.networks.iter().map(|network| optimizer::norm(&network.values));
        let norms: Vec<f64> = norms.collect();
        if !(sum.loss.is_finite() && norms.iter().all(|norm| norm.is_finite())) {
            return Err(TrainError::not_finite(step, sum.examples));
        }
        let report = StepReport {
            loss: sum.loss,
            accuracy: sum.hits / sum.examples.len() as f64,
            gradient_norm: norms[0],
        };
        self.method.finish(state, sum, rate);
        state.progress.step += 1;
        Ok(Some(report))
    }

    /// The step that names the noise: always the first where all steps minimise one objective.
    fn noise_step(&self, state: &State) -> u64 {
        let fixed = state.networks[0].optimizer.search().is_some();
        if fixed { 0 } else { state.progress.step as u64 }
    }

    fn part(&self, state: &State, loaded: &Loaded) -> Result<Contribution, TrainError> {
        let Loaded { batch, inputs, second_view } = loaded;
        let size = batch.examples.len();
        let part = Part {
            inputs: inputs.clone(),
            second_view: second_view.clone(),
            noise: BatchNoise {
                key: NoiseKey { seed: self.seed, step: self.noise_step(state) },
                ids: batch.keys.clone(),
                samples: self.samples,
                draws: self.draws,
            },
            weights: vec![1.0 / size as f32; size],
            batch,
        };
        let mut contribution = self.method.part(state, &part).map_err(|rows| {
            let examples = rows.into_iter().map(|row| batch.examples[row]).collect();
            TrainError::not_finite(state.progress.step, examples)
        })?;
        let share = size as f64 / batch.step_examples as f64;
        contribution.loss *= share;
        contribution.networks.iter_mut().for_each(|network| network.scale(share as f32));
        Ok(contribution)
    }
}

/// The whole step. Where several processes share a step, the blocks of the others come in here, in
/// the order of their parts.
fn sum_over_processes(own: TreeSum<Contribution>) -> Contribution {
    let mut all = TreeSum::default();
    own.blocks.into_iter().for_each(|block| all.add(block));
    all.finish().expect("a step has a part")
}

impl Summand for Contribution {
    fn add(&mut self, next: Self) {
        self.loss += next.loss;
        self.hits += next.hits;
        let networks = self.networks.iter_mut().zip(next.networks);
        networks.for_each(|(network, next)| network.add(next));
        self.examples.extend(next.examples);
        self.rows.extend(next.rows);
    }
}

impl Contribution {
    /// Of one network and its loss, whose backward pass runs here.
    pub fn new(part: &Part<'_>, network: &Network, outcome: TrainingLoss) -> Self {
        Self::with_gradients(part, network, outcome).0
    }

    /// The same, and the gradient of the loss by numbers that the loss was made with.
    pub fn with_slopes(
        part: &Part<'_>,
        network: &Network,
        outcome: TrainingLoss,
        numbers: &Tensor<2>,
    ) -> (Self, Vec<f32>) {
        let (contribution, gradients) = Self::with_gradients(part, network, outcome);
        let slopes = numbers.grad(&gradients).expect("the loss depends on the numbers");
        (contribution, floats(slopes))
    }

    fn with_gradients(
        part: &Part<'_>,
        network: &Network,
        outcome: TrainingLoss,
    ) -> (Self, burn::tensor::Gradients) {
        let TrainingLoss { loss, mean, statistics, .. } = outcome;
        let value = loss.clone().into_scalar::<f32>() as f64;
        let hits = hits(&mean, part.batch);
        // The graph is all that may still hold the weights when they are updated.
        let mut gradients = loss.backward();
        drop(loss);
        let values = params::take_gradients(network.model(), &mut gradients);
        let networks = vec![Gradients { values, statistics }];
        let examples = part.batch.examples.clone();
        (Self { loss: value, hits, networks, examples, rows: vec![] }, gradients)
    }

    /// Puts what the method keeps of each example into a tensor with a row for each.
    pub fn keep_rows(&self, tensor: &mut NamedTensor) {
        let width = self.rows.len() / self.examples.len();
        let rows = self.examples.iter().zip(self.rows.chunks_exact(width));
        tensor.values.change(|kept| {
            rows.for_each(|(example, row)| kept[example * width..][..width].copy_from_slice(row));
        });
    }

    /// Makes the mean over all examples one over those whose row is 1; with none it stays zero.
    pub fn average_over_kept(&mut self) {
        let kept = self.rows.iter().filter(|row| **row == 1.0).count();
        let factor = self.examples.len() as f64 / kept.max(1) as f64;
        self.loss *= factor;
        self.networks.iter_mut().for_each(|network| network.scale_values(factor as f32));
    }
}

impl Part<'_> {
    /// The given targets, as the likelihood takes them.
    pub fn targets(&self) -> aleator_model::Targets<'_> {
        match &self.batch.targets {
            Targets::Classes(classes) => aleator_model::Targets::Classes(classes),
            Targets::Sparse(rows) => method::view(rows),
        }
    }
}

/// How often the largest mean is that of a label.
fn hits(mean: &Values, batch: &Batch) -> f64 {
    let mean = mean.read();
    let tops = mean.chunks_exact(mean.len() / batch.examples.len()).map(argmax).enumerate();
    let right = |(example, top): (usize, usize)| match &batch.targets {
        Targets::Classes(labels) => labels[example] as usize == top,
        Targets::Sparse(rows) => {
            let of_top = rows.row(example).find(|(class, _)| *class as usize == top);
            let weight = of_top.map_or(0.0, |(_, weight)| weight);
            weight > 0.0 && rows.row(example).all(|(_, other)| other <= weight)
        }
    };
    tops.filter(|pair| right(*pair)).count() as f64
}
