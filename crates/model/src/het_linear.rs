//! The drop-in replacement for the last dense layer.

use std::sync::atomic::{AtomicU64, Ordering};

use aleator_kernels::{Draws, NoiseKey, NotFinite, Targets};
use burn::module::Module;
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::custom_grad::custom_grad;
use crate::head::{DiagScale, Head, HeadConfig, HeadTemperature, Noise};
use crate::latent::Latent;
use crate::likelihood::{
    BatchNoise, Likelihood, Link, LossInputs, WeightedLoss, loss_on_cpu, sigmoid_logits,
    softmax_log_probs,
};
use crate::predict::{Prediction, Scores, predict, score};
use crate::slices::is_cpu;
use crate::values::Values;
use crate::{expansion, on_device_joint};

/// The configuration of a [`HetLinear`]. Every field is a decision, so none has a default.
#[derive(Clone, Debug, PartialEq)]
pub struct HetLinearConfig {
    /// D, the width of the features.
    pub feature_dim: usize,
    /// K.
    pub classes: usize,
    /// The noise model. The paper: `LowRank { rank: 15 }` for 1,000 classes.
    pub noise: Noise,
    /// `Softmax` for one label, `Sigmoid` for several.
    pub link: Link,
    /// What training maximises: `Marginal`; for several labels also `Joint`, for one also its
    /// expansions.
    pub likelihood: Likelihood,
    /// τ; 0.9 in the paper's softmax experiments, 0.15 in its sigmoid ones. Tune it.
    pub temperature: HeadTemperature,
    /// How d(x) is parametrised.
    pub diag_scale: DiagScale,
    /// S, the Monte Carlo samples of the softmax link; the sigmoid link needs none.
    pub samples: usize,
    /// How they are drawn.
    pub draws: Draws,
    /// Where weights and noise are drawn from.
    pub seed: u64,
}

/// A dense layer whose outputs carry input-dependent, correlated noise.
///
/// `forward(x)` gives logits on which any cross-entropy is the right loss; `loss(x, labels)` is
/// the same number, faster. See the crate's front page for a model that uses it.
///
/// ```
/// use aleator_model::{
///     DiagScale, Draws, HeadTemperature, HetLinearConfig, Likelihood, Link, Noise, Temperature,
/// };
/// use burn::tensor::{Device, Int, Tensor};
///
/// let device = Device::flex().autodiff();
/// let layer = HetLinearConfig {
///     feature_dim: 8,
///     classes: 3,
///     noise: Noise::LowRank { rank: 2 },
///     link: Link::Softmax,
///     likelihood: Likelihood::Marginal,
///     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
///     diag_scale: DiagScale::Softplus,
///     samples: 100,
///     draws: Draws::Antithetic,
///     seed: 0,
/// }
/// .init(&device);
/// let labels = Tensor::<1, Int>::from_ints([0, 1, 2, 0], &device);
/// let grads = layer.loss(Tensor::ones([4, 8], &device), labels).backward();
/// # let _ = grads;
/// ```
#[derive(Module, Debug)]
pub struct HetLinear {
    head: Head,
    #[module(skip)]
    config: HetLinearConfig,
    /// Training steps seen; every step draws fresh noise.
    #[module(skip)]
    step: Step,
    /// S of predictions.
    #[module(skip)]
    evaluation_samples: usize,
    #[module(skip)]
    example_noise: ExampleNoise,
}

/// Whether the examples of a batch see the same noise.
///
/// Noise that the caller names, as in [`HetLinear::forward_with`], is not concerned: equal ids share
/// their noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleNoise {
    /// Each example draws its own, so that the errors of their estimates average out in the batch.
    Own,
    /// All examples use one set of draws (common random numbers). What an example gets does not
    /// depend on its row, and differences between examples are free of the noise that they share;
    /// the loss of the batch varies more.
    Shared,
}

/// A count of steps. A copy of a layer counts on from the same step, independently.
#[derive(Debug)]
struct Step(AtomicU64);

impl Clone for Step {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// What the labels of a batch look like.
#[derive(Clone, Debug)]
pub enum Labels {
    /// One class for each example, `[B]`.
    Classes(Tensor<1, Int>),
    /// A number for each example and class, [B, K]: soft targets under the softmax link,
    /// on or off under the sigmoid link.
    Dense(Tensor<2>),
}

impl From<Tensor<1, Int>> for Labels {
    fn from(classes: Tensor<1, Int>) -> Self {
        Self::Classes(classes)
    }
}

impl From<Tensor<2>> for Labels {
    fn from(dense: Tensor<2>) -> Self {
        Self::Dense(dense)
    }
}

impl HetLinearConfig {
    /// A layer with fresh weights.
    ///
    /// # Panics
    /// When a size is zero, or the likelihood is for another link.
    pub fn init(&self, device: &Device) -> HetLinear {
        assert!(self.samples > 0, "samples must be at least 1, found 0");
        let (link, likelihood) = (self.link, self.likelihood);
        let fits = likelihood.link().is_none_or(|of| of == link);
        assert!(fits, "likelihood must be one of {link:?}, found {likelihood:?}");
        let head = HeadConfig {
            feature_dim: self.feature_dim,
            classes: self.classes,
            noise: self.noise,
            temperature: self.temperature,
            diag_scale: self.diag_scale,
            seed: self.seed,
        };
        HetLinear {
            head: head.init(device),
            config: self.clone(),
            step: Step(AtomicU64::new(0)),
            evaluation_samples: self.samples,
            example_noise: ExampleNoise::Own,
        }
    }
}

impl HetLinear {
    /// The layers in front of the likelihood.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// This layer with other weights.
    ///
    /// # Panics
    /// When the head has another shape or noise model.
    pub fn with_head(mut self, head: Head) -> Self {
        assert_eq!(head.config(), self.head.config(), "the head must be of the same configuration");
        self.head = head;
        self
    }

    /// This layer with another number of samples where nothing is trained: in
    /// [`predict`](Self::predict), and in [`forward`](Self::forward) and [`loss`](Self::loss)
    /// without autodiff.
    ///
    /// ```
    /// # use aleator_model::HetLinearConfig;
    /// # fn example(config: &HetLinearConfig, device: &burn::tensor::Device) {
    /// // `config.samples` for each step of training, and many for predictions.
    /// let layer = config.init(device).with_evaluation_samples(10_000);
    /// # }
    /// ```
    ///
    /// # Panics
    /// When there are none.
    pub fn with_evaluation_samples(mut self, samples: usize) -> Self {
        assert!(samples > 0, "evaluation samples must be at least 1, found 0");
        self.evaluation_samples = samples;
        self
    }

    /// S where nothing is trained.
    pub fn evaluation_samples(&self) -> usize {
        self.evaluation_samples
    }

    /// This layer with the same noise for all examples of a batch, or with noise of their own, which
    /// a new layer has.
    pub fn with_example_noise(mut self, noise: ExampleNoise) -> Self {
        self.example_noise = noise;
        self
    }

    /// The configuration of the layer.
    pub fn config(&self) -> &HetLinearConfig {
        &self.config
    }

    /// The step whose noise the next training call draws; save it to resume exactly.
    pub fn step(&self) -> u64 {
        self.step.0.load(Ordering::Relaxed)
    }

    /// Continues from a saved step.
    pub fn set_step(&self, step: u64) {
        self.step.0.store(step, Ordering::Relaxed);
    }

    /// Logits: log p under the softmax link, log p − log(1 − p) under the sigmoid link. Softmax
    /// (or sigmoid) cross-entropy on them is −log p of the label. Of a joint likelihood they are
    /// those of each class by itself, and of [`Likelihood::Expansion`] they are normalised: there
    /// [`HetLinear::loss`] is another number.
    ///
    /// On a device with autodiff every call draws fresh noise, on one without always the same.
    ///
    /// # Shapes
    /// - features: [B, D]
    /// - returns: [B, K]
    pub fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let noise = self.training_noise(&features);
        self.forward_with(features, &noise)
    }

    /// [`HetLinear::forward`] with noise named by the caller.
    pub fn forward_with(&self, features: Tensor<2>, noise: &BatchNoise) -> Tensor<2> {
        noise.check(features.dims()[0]);
        self.logits(self.head.forward(features), noise)
    }

    fn logits(&self, latent: Latent, noise: &BatchNoise) -> Tensor<2> {
        match (self.config.likelihood, self.config.link) {
            (Likelihood::Expansion | Likelihood::LogExpansion, _) => expansion::log_probs(&latent),
            (_, Link::Softmax) => softmax_log_probs(latent, noise),
            (_, Link::Sigmoid) => sigmoid_logits(latent),
        }
    }

    /// −log p of the labels, averaged over the batch (under the sigmoid link summed over the
    /// classes), with all gradients from one pass.
    ///
    /// # Panics
    /// When a label is out of range; the message names the example.
    pub fn loss(&self, features: Tensor<2>, labels: impl Into<Labels>) -> Tensor<1> {
        let noise = self.training_noise(&features);
        self.loss_with(features, labels, &noise)
    }

    /// [`HetLinear::loss`] with noise named by the caller.
    pub fn loss_with(
        &self,
        features: Tensor<2>,
        labels: impl Into<Labels>,
        noise: &BatchNoise,
    ) -> Tensor<1> {
        let [batch, _] = features.dims();
        let mean = vec![1.0 / batch as f32; batch];
        self.weighted_loss_with(features, labels, &mean, noise).sum
    }

    /// The loss of each example, and their sum under a weight for each.
    ///
    /// Weights are taken as they are: 1/B for each of B examples gives [`HetLinear::loss`], and 0
    /// leaves an example out.
    ///
    /// ```
    /// # use aleator_model::*;
    /// # let config = HetLinearConfig {
    /// #     feature_dim: 8, classes: 3, noise: Noise::LowRank { rank: 2 }, link: Link::Softmax,
    /// #     likelihood: Likelihood::Marginal,
    /// #     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
    /// #     diag_scale: DiagScale::Softplus, samples: 100, draws: Draws::Antithetic, seed: 0,
    /// # };
    /// use burn::tensor::{Device, Int, Tensor};
    ///
    /// let device = Device::flex().autodiff();
    /// let layer = config.init(&device);
    /// let labels = Tensor::<1, Int>::from_ints([0, 2], &device);
    /// let weights = [1.0, 0.25]; // the second label is doubtful
    /// let loss = layer.weighted_loss(Tensor::ones([2, 8], &device), labels, &weights);
    /// let losses: Vec<f32> = loss.losses.into_data().iter().collect();
    /// let sum: f32 = loss.sum.clone().into_scalar();
    /// assert!((sum - (losses[0] + 0.25 * losses[1])).abs() < 1e-6);
    /// let grads = loss.sum.backward();
    /// # let _ = grads;
    /// ```
    ///
    /// # Panics
    /// When a label is out of range, with the example in the message, or the weights are not `[B]`.
    pub fn weighted_loss(
        &self,
        features: Tensor<2>,
        labels: impl Into<Labels>,
        weights: &[f32],
    ) -> WeightedLoss {
        let noise = self.training_noise(&features);
        self.weighted_loss_with(features, labels, weights, &noise)
    }

    /// [`HetLinear::weighted_loss`] with noise named by the caller.
    pub fn weighted_loss_with(
        &self,
        features: Tensor<2>,
        labels: impl Into<Labels>,
        weights: &[f32],
        noise: &BatchNoise,
    ) -> WeightedLoss {
        let latent = self.head.forward(features);
        let [batch, _] = latent.dims();
        assert!(batch > 0, "a batch must have at least 1 example, found 0");
        let labels = self.checked(labels.into(), batch);
        let targets = labels.targets();
        let inputs = LossInputs { targets, weights, noise, log_probs: None };
        self.loss_of(latent, inputs).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The loss from the Normal of each example.
    ///
    /// # Errors
    /// The examples whose utilities are not finite.
    pub(crate) fn loss_of(
        &self,
        latent: Latent,
        inputs: LossInputs<'_>,
    ) -> Result<WeightedLoss, NotFinite> {
        let [batch, _] = latent.dims();
        inputs.noise.check(batch);
        if is_cpu(&latent.device()) {
            return loss_on_cpu(latent, self.config.link, self.config.likelihood, inputs);
        }
        latent.check()?;
        Ok(self.loss_on_device(latent, inputs))
    }

    /// The loss in tensor operations, for devices without the fused pass.
    fn loss_on_device(&self, latent: Latent, inputs: LossInputs<'_>) -> WeightedLoss {
        let [batch, classes] = latent.dims();
        let device = latent.device();
        let constant = |values: Vec<f32>, shape: [usize; 2]| {
            let tensor =
                Tensor::<2>::from_data(TensorData::new(values, shape), &device.clone().inner());
            if device.is_autodiff() { tensor.autodiff() } else { tensor }
        };
        let targets = constant(dense(inputs.targets, batch, classes), [batch, classes]);
        let weights = constant(inputs.weights.to_vec(), [batch, 1]);
        let log_likelihood = match (self.config.likelihood, self.config.link) {
            (Likelihood::Joint, _) => joint_on_device(latent, inputs.noise, targets.inner()),
            (likelihood @ (Likelihood::Expansion | Likelihood::LogExpansion), _) => {
                expansion::log_likelihood(&latent, likelihood) * targets
            }
            (Likelihood::Marginal, Link::Softmax) => {
                softmax_log_probs(latent, inputs.noise) * targets
            }
            (Likelihood::Marginal, Link::Sigmoid) => {
                let logits = sigmoid_logits(latent);
                targets.clone() * log_sigmoid(logits.clone())
                    + (-targets + 1.0) * log_sigmoid(-logits)
            }
        };
        let losses = -log_likelihood.sum_dim(1);
        let plain = losses.clone().inner().reshape([batch]);
        WeightedLoss { sum: (losses * weights).sum(), losses: plain }
    }

    /// Log-probabilities, their variance over the noise, and the Normal behind them.
    pub fn predict(&self, features: Tensor<2>) -> Prediction {
        let [batch, _] = features.dims();
        let noise = self.noise(NoiseKey::EVALUATION_STEP, batch);
        self.predict_with(features, &noise)
    }

    /// [`HetLinear::predict`] with noise named by the caller: with stable ids a prediction does
    /// not depend on the batch that it is made in.
    pub fn predict_with(&self, features: Tensor<2>, noise: &BatchNoise) -> Prediction {
        noise.check(features.dims()[0]);
        predict(self.head.forward(features.inner()).inner(), &self.config, noise)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`HetLinear::predict_with`] without the variance, which the sigmoid link would have to
    /// draw samples for.
    pub fn score_with(&self, features: Tensor<2>, noise: &BatchNoise) -> Scores {
        noise.check(features.dims()[0]);
        score(self.head.forward(features.inner()).inner(), &self.config, noise)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn noise(&self, step: u64, batch: usize) -> BatchNoise {
        BatchNoise {
            key: NoiseKey { seed: self.config.seed, step },
            ids: match self.example_noise {
                ExampleNoise::Own => (0..batch as u64).collect(),
                ExampleNoise::Shared => vec![0; batch],
            },
            samples: match step {
                NoiseKey::EVALUATION_STEP => self.evaluation_samples,
                _ => self.config.samples,
            },
            draws: self.config.draws,
        }
    }

    /// The noise of the next training step, or of evaluation where nothing carries autodiff.
    pub(crate) fn training_noise(&self, features: &Tensor<2>) -> BatchNoise {
        let training = features.is_autodiff() || self.head.is_autodiff();
        let step = if training {
            self.step.0.fetch_add(1, Ordering::Relaxed)
        } else {
            NoiseKey::EVALUATION_STEP
        };
        self.noise(step, features.dims()[0])
    }

    /// Labels as numbers that a cross-entropy can have for a target.
    fn checked(&self, labels: Labels, batch: usize) -> CheckedLabels {
        let classes = self.config.classes;
        match labels {
            Labels::Classes(labels) => {
                let found = labels.dims()[0];
                assert!(found == batch, "labels must be [B] = {batch} long, found {found}");
                let check = |(row, label): (usize, i64)| match u32::try_from(label) {
                    Ok(class) if (class as usize) < classes => class,
                    _ => panic!("label of example {row} must be in 0..{classes}, found {label}"),
                };
                let labels = labels.into_data();
                CheckedLabels::Classes(labels.iter::<i64>().enumerate().map(check).collect())
            }
            Labels::Dense(dense) => {
                let found = dense.dims();
                let expected = [batch, classes];
                assert!(found == expected, "labels must be {expected:?}, found {found:?}");
                let values = Values::from_tensor(dense);
                let valid = |value: f32| match self.config.link {
                    Link::Softmax => value.is_finite() && value >= 0.0,
                    Link::Sigmoid => (0.0..=1.0).contains(&value),
                };
                if let Some((at, value)) =
                    values.read().iter().enumerate().find(|(_, value)| !valid(**value))
                {
                    let (row, class) = (at / classes, at % classes);
                    panic!(
                        "label of example {row}, class {class} must be a probability, found {value}"
                    );
                }
                CheckedLabels::Dense(Box::new(values.on(&Device::flex())))
            }
        }
    }
}

/// log P of all labels of each example, [B, 1].
fn joint_on_device(latent: Latent, noise: &BatchNoise, labels: Tensor<2>) -> Tensor<2> {
    let (inner, noise) = (latent.inner(), noise.clone());
    let value = on_device_joint::log_probs(&inner, &noise, &labels);
    let saved = value.clone();
    custom_grad(value, latent.tensors(), move |upstream, _| {
        on_device_joint::backward(&inner, &noise, &labels, saved, upstream)
    })
}

/// Labels that the kernels take, in this process's memory.
enum CheckedLabels {
    Classes(Vec<u32>),
    Dense(Box<Values>),
}

impl CheckedLabels {
    fn targets(&self) -> Targets<'_> {
        match self {
            Self::Classes(classes) => Targets::Classes(classes),
            Self::Dense(values) => Targets::Dense(values.as_slice()),
        }
    }
}

/// Targets as [B, K].
fn dense(targets: Targets<'_>, batch: usize, classes: usize) -> Vec<f32> {
    let mut out = vec![0.0; batch * classes];
    match targets {
        Targets::Classes(labels) => {
            let rows = out.chunks_exact_mut(classes).zip(labels);
            rows.for_each(|(row, class)| row[*class as usize] = 1.0);
        }
        Targets::Sparse { offsets, classes: labels, probs } => {
            for (row, entries) in out.chunks_exact_mut(classes).zip(offsets.windows(2)) {
                (entries[0]..entries[1]).for_each(|at| row[labels[at] as usize] = probs[at]);
            }
        }
        Targets::Dense(values) => out.copy_from_slice(values),
    }
    out
}
