//! The drop-in replacement for the last dense layer.

use std::sync::atomic::{AtomicU64, Ordering};

use aleator_kernels::{Draws, NoiseKey, Targets};
use burn::module::Module;
use burn::tensor::activation::log_sigmoid;
use burn::tensor::{Device, Int, Tensor};

use crate::head::{DiagScale, Head, HeadConfig, HeadTemperature, Noise};
use crate::latent::Latent;
use crate::likelihood::{
    BatchNoise, Link, sigmoid_logits, sigmoid_loss_on_cpu, softmax_log_probs, softmax_loss_on_cpu,
};
use crate::predict::{Prediction, Scores, predict, score};
use crate::slices::{Floats, integers, is_cpu};

/// What a [`HetLinear`] is made from. Every field is a decision, so none has a default.
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
///     DiagScale, Draws, HeadTemperature, HetLinearConfig, Link, Noise, Temperature,
/// };
/// use burn::tensor::{Device, Int, Tensor};
///
/// let device = Device::flex().autodiff();
/// let layer = HetLinearConfig {
///     feature_dim: 8,
///     classes: 3,
///     noise: Noise::LowRank { rank: 2 },
///     link: Link::Softmax,
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
}

/// A count of steps. A copy of a layer goes on from the same step, by itself.
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
    /// When a size is zero.
    pub fn init(&self, device: &Device) -> HetLinear {
        assert!(self.samples > 0, "samples must be at least 1, found 0");
        let head = HeadConfig {
            feature_dim: self.feature_dim,
            classes: self.classes,
            noise: self.noise,
            temperature: self.temperature,
            diag_scale: self.diag_scale,
            seed: self.seed,
        };
        HetLinear { head: head.init(device), config: self.clone(), step: Step(AtomicU64::new(0)) }
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

    /// What the layer was made from.
    pub fn config(&self) -> &HetLinearConfig {
        &self.config
    }

    /// The step whose noise the next training call draws; save it to resume exactly.
    pub fn step(&self) -> u64 {
        self.step.0.load(Ordering::Relaxed)
    }

    /// Goes on from a saved step.
    pub fn set_step(&self, step: u64) {
        self.step.0.store(step, Ordering::Relaxed);
    }

    /// Logits: log p under the softmax link, log p − log(1 − p) under the sigmoid link. Softmax
    /// (or sigmoid) cross-entropy on them is −log p of the label.
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
        match self.config.link {
            Link::Softmax => softmax_log_probs(latent, noise),
            Link::Sigmoid => sigmoid_logits(latent),
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
        self.loss_of(self.head.forward(features), labels, noise)
    }

    /// [`HetLinear::loss_with`] from what the head made of the features.
    ///
    /// # Panics
    /// When a label is out of range; the message names the example.
    pub fn loss_of(
        &self,
        latent: Latent,
        labels: impl Into<Labels>,
        noise: &BatchNoise,
    ) -> Tensor<1> {
        let [batch, _] = latent.dims();
        let labels = labels.into();
        assert!(batch > 0, "a batch must have at least 1 example, found 0");
        noise.check(batch);
        self.check_dense(&labels, batch);
        let weights = vec![1.0 / batch as f32; batch];
        if !is_cpu(&latent.device()) {
            return self.loss_from_logits(latent, labels, noise);
        }
        match (self.config.link, labels) {
            (Link::Softmax, Labels::Classes(classes)) => {
                let classes = self.check_classes(integers(classes), batch);
                softmax_loss_on_cpu(latent, noise, Targets::Classes(&classes), &weights)
            }
            (Link::Softmax, Labels::Dense(targets)) => {
                let sparse = SparseTargets::new(targets, self.config.classes);
                softmax_loss_on_cpu(latent, noise, sparse.view(), &weights)
            }
            (Link::Sigmoid, labels) => {
                let labels = Floats::new(self.multi_hot(labels, batch));
                sigmoid_loss_on_cpu(latent, labels.as_slice(), &weights)
            }
        }
    }

    /// The loss by way of the logits, for devices without the fused pass.
    fn loss_from_logits(&self, latent: Latent, labels: Labels, noise: &BatchNoise) -> Tensor<1> {
        let [batch, _] = latent.dims();
        let device = latent.device();
        let hot = self.multi_hot(labels, batch);
        let hot = if device.is_autodiff() { hot.inner().autodiff() } else { hot };
        let logits = self.logits(latent, noise);
        let log_likelihood = match self.config.link {
            Link::Softmax => logits * hot,
            Link::Sigmoid => {
                hot.clone() * log_sigmoid(logits.clone()) + (-hot + 1.0) * log_sigmoid(-logits)
            }
        };
        log_likelihood.sum() / -(batch as f32)
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
        predict(self.head.forward(features.inner()).inner(), self.config.link, noise)
    }

    /// [`HetLinear::predict_with`] without the variance, which the sigmoid link would have to
    /// draw samples for.
    pub fn score_with(&self, features: Tensor<2>, noise: &BatchNoise) -> Scores {
        noise.check(features.dims()[0]);
        score(self.head.forward(features.inner()).inner(), self.config.link, noise)
    }

    fn noise(&self, step: u64, batch: usize) -> BatchNoise {
        BatchNoise {
            key: NoiseKey { seed: self.config.seed, step },
            ids: (0..batch as u64).collect(),
            samples: self.config.samples,
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

    fn check_classes(&self, labels: Vec<i64>, batch: usize) -> Vec<usize> {
        let (found, classes) = (labels.len(), self.config.classes);
        assert!(found == batch, "labels must be [B] = {batch} long, found {found}");
        let check = |(row, label): (usize, i64)| match usize::try_from(label) {
            Ok(class) if class < classes => class,
            _ => panic!("label of example {row} must be in 0..{classes}, found {label}"),
        };
        labels.into_iter().enumerate().map(check).collect()
    }

    /// Dense labels are numbers that a cross-entropy can have for a target.
    fn check_dense(&self, labels: &Labels, batch: usize) {
        let Labels::Dense(dense) = labels else { return };
        let (found, classes) = (dense.dims(), self.config.classes);
        assert!(found == [batch, classes], "labels must be [{batch}, {classes}], found {found:?}");
        let valid = |value: f32| match self.config.link {
            Link::Softmax => value.is_finite() && value >= 0.0,
            Link::Sigmoid => (0.0..=1.0).contains(&value),
        };
        let values = dense.clone().inner().into_data();
        if let Some((at, value)) = values.iter::<f32>().enumerate().find(|(_, v)| !valid(*v)) {
            let (row, class) = (at / classes, at % classes);
            panic!("label of example {row}, class {class} must be a probability, found {value}");
        }
    }

    /// Labels as [B, K] on the inner device.
    fn multi_hot(&self, labels: Labels, batch: usize) -> Tensor<2> {
        let classes = self.config.classes;
        match labels {
            Labels::Dense(dense) => dense.inner(),
            Labels::Classes(labels) => {
                let device = labels.device().inner();
                let checked = self.check_classes(integers(labels), batch);
                let mut hot = vec![0.0f32; batch * classes];
                checked
                    .iter()
                    .enumerate()
                    .for_each(|(row, class)| hot[row * classes + class] = 1.0);
                Tensor::<1>::from_floats(hot.as_slice(), &device).reshape([batch, classes])
            }
        }
    }
}

/// Soft targets without their zeros.
struct SparseTargets {
    offsets: Vec<usize>,
    classes: Vec<usize>,
    probs: Vec<f32>,
}

impl SparseTargets {
    fn new(targets: Tensor<2>, classes: usize) -> Self {
        let values = Floats::new(targets.inner());
        let mut out = Self { offsets: vec![0], classes: vec![], probs: vec![] };
        for row in values.as_slice().chunks_exact(classes) {
            for (class, prob) in row.iter().enumerate().filter(|(_, prob)| **prob != 0.0) {
                out.classes.push(class);
                out.probs.push(*prob);
            }
            out.offsets.push(out.classes.len());
        }
        out
    }

    fn view(&self) -> Targets<'_> {
        Targets::Sparse { offsets: &self.offsets, classes: &self.classes, probs: &self.probs }
    }
}
