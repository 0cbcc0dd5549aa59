//! A network and a head: what is trained.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::backbone::{Backbone, BackboneConfig};
use crate::batch_statistics::BatchStatistics;
use crate::het_linear::{HetLinear, HetLinearConfig, Labels};
use crate::latent::{Covariance, Latent};
use crate::likelihood::BatchNoise;
use crate::predict::{Prediction, Scores, predict, score};

/// What a [`Classifier`] is made from.
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

/// The loss of a batch, and what the mean says of it.
#[derive(Clone, Debug)]
pub struct TrainingLoss {
    /// −log p of the labels, averaged over the batch.
    pub loss: Tensor<1>,
    /// μ(x), [B, K] row by row.
    pub mean: Vec<f32>,
    /// What each norm of the network found in the batch, in the order of the parameters; give
    /// them to [`BatchStatistics::update`]. Empty without norms and when the network is frozen.
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

    /// Features as in evaluation, see [`Backbone::forward`].
    ///
    /// # Shapes
    /// - inputs: [B, N]
    /// - returns: [B, D]
    pub fn features(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.network.forward(inputs)
    }

    /// What [`BatchStatistics::update`] is to be called with after a step, if there is anything to
    /// update: the network has norms and is not frozen.
    pub fn norm_momentum(&self) -> Option<f32> {
        if self.frozen { None } else { self.network.norm_momentum() }
    }

    /// The loss of a batch, see [`HetLinear::loss_with`]. Norms go by the batch; a frozen network
    /// is that of evaluation, and no gradient reaches it.
    ///
    /// # Errors
    /// The rows of the examples whose inputs, features or utilities are not finite: weights or
    /// inputs have left what f32 can hold.
    pub fn loss(
        &self,
        inputs: Tensor<2>,
        labels: Labels,
        noise: &BatchNoise,
    ) -> Result<TrainingLoss, Vec<usize>> {
        let (features, statistics) = if self.frozen {
            (self.frozen_features(inputs.clone()), vec![])
        } else {
            self.network.forward_training(inputs.clone())
        };
        // In the statistics of a batch one bad example spoils all; the inputs tell which it was.
        let blame = |rows| finite_rows(inputs).err().unwrap_or(rows);
        let (latent, mean) = self.latent(features).map_err(blame)?;
        Ok(TrainingLoss { loss: self.output.loss_of(latent, labels, noise), mean, statistics })
    }

    /// Features outside the graph: nothing of the network is kept for a backward pass.
    fn frozen_features(&self, inputs: Tensor<2>) -> Tensor<2> {
        let tracked = inputs.is_autodiff();
        let features = self.network.clone().valid().forward(inputs.inner());
        if tracked { features.autodiff() } else { features }
    }

    /// The Normal of each example, and its mean as numbers.
    fn latent(&self, features: Tensor<2>) -> Result<(Latent, Vec<f32>), Vec<usize>> {
        finite_rows(features.clone())?;
        let latent = self.output.head().forward(features);
        let mean = finite_rows(latent.mean.clone())?;
        let [batch, classes] = latent.dims();
        let check = |matrix: &Tensor<2>| finite_rows(matrix.clone()).map(drop);
        match &latent.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => check(diag_scale)?,
            Covariance::LowRank { diag_scale, loadings } => {
                check(diag_scale)?;
                check(&loadings.clone().reshape([batch, classes * latent.rank()]))?;
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                check(diag_scale)?;
                check(loading_scale)?;
                // They are every example's.
                check(shared_loadings).map_err(|_| (0..batch).collect::<Vec<usize>>())?;
            }
        }
        Ok((latent, mean))
    }

    /// Log-probabilities and the Normal behind them, see [`HetLinear::score_with`].
    ///
    /// # Errors
    /// The rows of the examples whose features or utilities are not finite.
    pub fn score(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Scores, Vec<usize>> {
        let (latent, _) = self.latent(self.features(inputs))?;
        noise.check(latent.dims()[0]);
        Ok(score(latent.inner(), self.output.config().link, noise))
    }

    /// Log-probabilities, their variance over the noise, and the Normal behind them.
    ///
    /// # Errors
    /// The rows of the examples whose features or utilities are not finite.
    pub fn predict(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Prediction, Vec<usize>> {
        let (latent, _) = self.latent(self.features(inputs))?;
        noise.check(latent.dims()[0]);
        Ok(predict(latent.inner(), self.output.config().link, noise))
    }
}

/// The numbers of a matrix, or the rows that hold one which is not finite.
fn finite_rows(matrix: Tensor<2>) -> Result<Vec<f32>, Vec<usize>> {
    let [_, width] = matrix.dims();
    let values: Vec<f32> = matrix.inner().into_data().iter::<f32>().collect();
    if values.iter().all(|value| value.is_finite()) {
        return Ok(values);
    }
    let rows = values.chunks_exact(width).enumerate();
    Err(rows
        .filter(|(_, row)| !row.iter().all(|value| value.is_finite()))
        .map(|(at, _)| at)
        .collect())
}
