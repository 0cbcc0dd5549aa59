//! A network and a head: what is trained.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::backbone::{Backbone, BackboneConfig};
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
/// let model = ClassifierConfig { backbone, output }.init(&device);
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
}

/// The loss of a batch, and what the mean says of it.
#[derive(Clone, Debug)]
pub struct TrainingLoss {
    /// −log p of the labels, averaged over the batch.
    pub loss: Tensor<1>,
    /// μ(x), [B, K] row by row.
    pub mean: Vec<f32>,
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
        }
    }
}

impl Classifier {
    /// The layer at the end.
    pub fn output(&self) -> &HetLinear {
        &self.output
    }

    /// # Shapes
    /// - inputs: [B, N]
    /// - returns: [B, D]
    pub fn features(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.network.forward(inputs)
    }

    /// The loss of a batch, see [`HetLinear::loss_with`].
    ///
    /// # Errors
    /// The rows of the examples whose features or utilities are not finite: weights or inputs
    /// have left what f32 can hold.
    pub fn loss(
        &self,
        inputs: Tensor<2>,
        labels: Labels,
        noise: &BatchNoise,
    ) -> Result<TrainingLoss, Vec<usize>> {
        let (latent, mean) = self.latent(inputs)?;
        Ok(TrainingLoss { loss: self.output.loss_of(latent, labels, noise), mean })
    }

    /// The Normal of each example, and its mean as numbers.
    fn latent(&self, inputs: Tensor<2>) -> Result<(Latent, Vec<f32>), Vec<usize>> {
        let features = self.features(inputs);
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
        let (latent, _) = self.latent(inputs)?;
        noise.check(latent.dims()[0]);
        Ok(score(latent.inner(), self.output.config().link, noise))
    }

    /// Log-probabilities, their variance over the noise, and the Normal behind them.
    ///
    /// # Errors
    /// The rows of the examples whose features or utilities are not finite.
    pub fn predict(&self, inputs: Tensor<2>, noise: &BatchNoise) -> Result<Prediction, Vec<usize>> {
        let (latent, _) = self.latent(inputs)?;
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
