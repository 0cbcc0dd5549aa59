//! A network and a head: what is trained.

use aleator_kernels::{NotFinite, Targets};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::backbone::{Backbone, BackboneConfig};
use crate::batch_statistics::BatchStatistics;
use crate::het_linear::{HetLinear, HetLinearConfig};
use crate::latent::Latent;
use crate::likelihood::{BatchNoise, LossInputs, WeightedLoss};
use crate::predict::{Prediction, Scores, predict, score};
use crate::slices::is_cpu;
use crate::values::Values;

/// The configuration of a [`Classifier`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifierConfig {
    /// Inputs → features.
    pub backbone: BackboneConfig,
    /// Features → probabilities. Its `feature_dim` is the backbone's.
    pub output: HetLinearConfig,
    /// Whether the network stays as it is, and only the head learns.
    pub frozen: bool,
}

/// Inputs → probabilities.
///
/// ```
/// use aleator_model::*;
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::flex();
/// let backbone = BackboneConfig::Mlp { inputs: 8, hidden: vec![16] };
/// let output = HetLinearConfig {
///     feature_dim: backbone.feature_dim(),
///     classes: 3,
///     noise: Noise::LowRank { rank: 2 },
///     link: Link::Softmax,
///     likelihood: Likelihood::Marginal,
///     temperature: HeadTemperature::Fixed(Temperature::try_from(1.0).unwrap()),
///     diag_scale: DiagScale::Softplus,
///     samples: 100,
///     draws: Draws::Antithetic,
///     seed: 0,
/// };
/// let model = ClassifierConfig { backbone, output, frozen: false }.init(&device);
/// let noise = BatchNoise {
///     key: NoiseKey { seed: 0, step: NoiseKey::EVALUATION_STEP },
///     ids: vec![12, 40],
///     samples: 100,
///     draws: Draws::Antithetic,
/// };
/// let scores = model.score(Tensor::ones([2, 8], &device), &noise).unwrap();
/// assert_eq!(scores.log_probs.dims(), [2, 3]);
/// ```
#[derive(Module, Debug)]
pub struct Classifier {
    network: Backbone,
    output: HetLinear,
    #[module(skip)]
    frozen: bool,
}

/// A batch between the network and the loss.
#[derive(Clone, Debug)]
pub struct Forward {
    /// The Normal of each example. A training method may change it before the loss.
    pub latent: Latent,
    /// What each norm of the network found in the batch, in the order of the parameters; give
    /// them to [`BatchStatistics::update`]. Empty without norms and when the network is frozen.
    pub statistics: Vec<BatchStatistics>,
    /// To name the examples whose inputs are not finite.
    inputs: Tensor<2>,
}

/// The loss of a batch.
#[derive(Clone, Debug)]
pub struct TrainingLoss {
    /// Σ weight · loss over the examples, `[1]`, with its gradient.
    pub loss: Tensor<1>,
    /// −Σ target · log p of each example, not weighted and without gradient, `[B]`.
    pub losses: Values,
    /// μ(x), [B, K].
    pub mean: Values,
    /// See [`Forward::statistics`].
    pub statistics: Vec<BatchStatistics>,
}

impl ClassifierConfig {
    /// A classifier with fresh weights, drawn from the head's seed.
    ///
    /// # Panics
    /// When a size is zero, or the head expects other features than the network gives.
    pub fn init(&self, device: &Device) -> Classifier {
        let (gives, expects) = (self.backbone.feature_dim(), self.output.feature_dim);
        assert_eq!(gives, expects, "the head must expect as many features as the network gives");
        Classifier {
            network: self.backbone.init(self.output.seed, device),
            output: self.output.init(device),
            frozen: self.frozen,
        }
    }
}

impl Classifier {
    /// Inputs → features.
    pub fn network(&self) -> &Backbone {
        &self.network
    }

    /// The layer at the end.
    pub fn output(&self) -> &HetLinear {
        &self.output
    }

    /// The device of the weights.
    pub fn device(&self) -> Device {
        self.output.head().mean.weight.device()
    }

    /// Features as in evaluation, see [`Backbone::forward`].
    ///
    /// # Shapes
    /// - inputs: [B, N]
    /// - returns: [B, D]
    pub fn features(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.network.forward(inputs)
    }

    /// The momentum for [`BatchStatistics::update`] after a step; none where there is nothing to
    /// update, because the network has no norms or is frozen.
    pub fn norm_momentum(&self) -> Option<f32> {
        if self.frozen { None } else { self.network.norm_momentum() }
    }

    /// The first half of a training step. Norms go by the batch; a frozen network is that of
    /// evaluation, and no gradient reaches it.
    ///
    /// # Shapes
    /// - inputs: [B, N]
    pub fn forward(&self, inputs: Tensor<2>) -> Forward {
        let (features, statistics) = if self.frozen {
            (self.frozen_features(inputs.clone()), vec![])
        } else {
            self.network.forward_training(inputs.clone())
        };
        Forward { latent: self.output.head().forward_unchecked(features), statistics, inputs }
    }

    /// log p of every class under the softmax link, [B, K], without gradient.
    ///
    /// # Errors
    /// As [`Classifier::loss`].
    pub fn log_probs(&self, forward: &Forward, noise: &BatchNoise) -> Result<Values, Vec<usize>> {
        let scores = score(forward.latent.inner(), self.output.config(), noise);
        let log_probs = scores.map(|scores| Values::from_tensor(scores.log_probs));
        log_probs.map_err(|error| forward.blame(error))
    }

    /// The second half: the loss of each example against its targets, and their sum under a weight
    /// for each. What [`Classifier::log_probs`] gave for the same noise saves time where examples
    /// have many targets; it changes no bit.
    ///
    /// ```
    /// # use aleator_model::*;
    /// # let output = HetLinearConfig {
    /// #     feature_dim: 8, classes: 3, noise: Noise::LowRank { rank: 2 }, link: Link::Softmax,
    /// #     likelihood: Likelihood::Marginal,
    /// #     temperature: HeadTemperature::Fixed(Temperature::try_from(1.0).unwrap()),
    /// #     diag_scale: DiagScale::Softplus, samples: 100, draws: Draws::Antithetic, seed: 0,
    /// # };
    /// # let backbone = BackboneConfig::None { inputs: 8 };
    /// # let config = ClassifierConfig { backbone, output, frozen: false };
    /// # let noise = BatchNoise {
    /// #     key: NoiseKey { seed: 0, step: 0 }, ids: vec![12, 40], samples: 100,
    /// #     draws: Draws::Antithetic,
    /// # };
    /// use burn::tensor::{Device, Tensor};
    ///
    /// let device = Device::flex().autodiff();
    /// let model = config.init(&device);
    /// let forward = model.forward(Tensor::ones([2, 8], &device));
    /// // The first example is of class 2; the second is mixed from classes 0 and 1.
    /// let targets = Targets::Sparse {
    ///     offsets: &[0, 1, 3],
    ///     classes: &[2, 0, 1],
    ///     probs: &[1.0, 0.7, 0.3],
    /// };
    /// let loss = model.loss(forward, targets, &[0.5, 0.5], &noise, None).unwrap();
    /// assert_eq!(loss.losses.len(), 2);
    /// let grads = loss.loss.backward();
    /// # let _ = grads;
    /// ```
    ///
    /// # Errors
    /// The rows of the examples whose inputs or utilities are not finite: weights or inputs have
    /// left the range of f32.
    ///
    /// # Panics
    /// When the targets or weights do not fit the batch.
    pub fn loss(
        &self,
        forward: Forward,
        targets: Targets<'_>,
        weights: &[f32],
        noise: &BatchNoise,
        log_probs: Option<&Values>,
    ) -> Result<TrainingLoss, Vec<usize>> {
        let log_probs = log_probs.map(Values::read);
        let terms = LossInputs { targets, weights, noise, log_probs: log_probs.as_deref() };
        let mean = Values::from_tensor(forward.latent.mean.clone());
        let loss = self.output.loss_of(forward.latent.clone(), terms);
        let WeightedLoss { sum, losses } = loss.map_err(|error| forward.blame(error))?;
        let losses = Values::from_tensor(losses);
        Ok(TrainingLoss { loss: sum, losses, mean, statistics: forward.statistics })
    }

    /// Features outside the graph: nothing of the network is kept for a backward pass.
    fn frozen_features(&self, inputs: Tensor<2>) -> Tensor<2> {
        let tracked = inputs.is_autodiff();
        let features = self.network.clone().valid().forward(inputs.inner());
        if tracked { features.autodiff() } else { features }
    }

    /// The Normal of each example as in evaluation.
    fn latent(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Latent, NotFinite> {
        noise.check(inputs.dims()[0]);
        let latent = self.output.head().forward_unchecked(self.features(inputs)).inner();
        // On the CPU the kernels check.
        if !is_cpu(&latent.device()) {
            latent.check()?;
        }
        Ok(latent)
    }

    /// Log-probabilities and the Normal behind them, see [`HetLinear::score_with`].
    ///
    /// # Errors
    /// The rows of the examples whose utilities are not finite.
    pub fn score(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Scores, Vec<usize>> {
        let scores = self
            .latent(inputs, noise)
            .and_then(|latent| score(latent, self.output.config(), noise));
        scores.map_err(|error| error.rows)
    }

    /// Log-probabilities, their variance over the noise, and the Normal behind them.
    ///
    /// # Errors
    /// The rows of the examples whose utilities are not finite.
    pub fn predict(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Prediction, Vec<usize>> {
        let prediction = self
            .latent(inputs, noise)
            .and_then(|latent| predict(latent, self.output.config(), noise));
        prediction.map_err(|error| error.rows)
    }
}

impl Forward {
    /// The rows to report. In the statistics of a batch one bad example spoils all; the inputs
    /// tell which it was.
    fn blame(&self, error: NotFinite) -> Vec<usize> {
        let [_, width] = self.inputs.dims();
        let inputs = Values::from_tensor(self.inputs.clone());
        let inputs = inputs.read();
        let bad = |(_, row): &(usize, &[f32])| row.iter().any(|value| !value.is_finite());
        let rows = inputs.chunks_exact(width).enumerate();
        let rows: Vec<usize> = rows.filter(bad).map(|(at, _)| at).collect();
        if rows.is_empty() { error.rows } else { rows }
    }
}
