//! The head: features → the Normal on the utilities. It does not sample.

use aleator_kernels::{NoiseKey, Stream};
pub use aleator_vocabulary::{DiagScale, HeadTemperature, Noise};
use burn::module::{Module, Param};
use burn::tensor::activation::{sigmoid, softplus};
use burn::tensor::{Device, Tensor, TensorData};

use crate::dense::{Dense, uniform};
use crate::feature_noise::FeatureNoise;
use crate::latent::{Covariance, Latent};
use crate::slices::{Floats, is_cpu};

/// The smallest scale that [`DiagScale::Softplus`] gives.
const SMALLEST_SCALE: f32 = 1e-3;

/// The configuration of a [`Head`].
///
/// ```
/// use aleator_model::{DiagScale, HeadConfig, HeadTemperature, Noise, Temperature};
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::flex();
/// let config = HeadConfig {
///     feature_dim: 8,
///     classes: 3,
///     noise: Noise::LowRank { rank: 2 },
///     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
///     diag_scale: DiagScale::Softplus,
///     seed: 0,
/// };
/// let latent = config.init(&device).forward(Tensor::ones([4, 8], &device));
/// assert_eq!(latent.mean.dims(), [4, 3]);
/// assert_eq!(latent.covariance(0).dims(), [3, 3]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HeadConfig {
    /// D.
    pub feature_dim: usize,
    /// K.
    pub classes: usize,
    /// The noise model.
    pub noise: Noise,
    /// τ.
    pub temperature: HeadTemperature,
    /// How d(x) is parametrised.
    pub diag_scale: DiagScale,
    /// Where the initial weights are drawn from.
    pub seed: u64,
}

/// Features → [`Latent`].
#[derive(Module, Debug)]
pub struct Head {
    pub(crate) mean: Dense,
    pub(crate) diag_scale: Option<Dense>,
    pub(crate) loadings: Option<Dense>,
    pub(crate) loading_scale: Option<Dense>,
    pub(crate) shared_loadings: Option<Param<Tensor<2>>>,
    temperature_logit: Option<Param<Tensor<1>>>,
    #[module(skip)]
    config: HeadConfig,
}

impl HeadConfig {
    /// # Panics
    /// When a size is zero or the bounds of the temperature are not in order.
    pub fn check(&self) {
        assert!(self.feature_dim > 0, "feature_dim must be at least 1, found 0");
        assert!(self.classes > 0, "classes must be at least 1, found 0");
        if let Some(rank) = self.noise.rank() {
            assert!(rank > 0, "rank must be at least 1, found 0; without factors use Diagonal");
        }
        if let HeadTemperature::Learned { low, high } = self.temperature {
            let (low, high) = (low.get(), high.get());
            assert!(low < high, "temperature bounds must ascend, found {low} and {high}");
        }
    }

    /// A head with fresh weights.
    pub fn init(&self, device: &Device) -> Head {
        self.check();
        let key = NoiseKey { seed: self.seed, step: 0 };
        let dense = |layer: u64, outputs: usize| {
            let seed = key.block_seed(0, Stream::Initial, layer);
            Dense::init(self.feature_dim, outputs, seed, device)
        };
        let (classes, noise) = (self.classes, self.noise);
        let own_rank = match noise {
            Noise::LowRank { rank } => Some(rank),
            _ => None,
        };
        let shared_rank = match noise {
            Noise::SharedLowRank { rank } | Noise::OnFeatures { rank } => Some(rank),
            _ => None,
        };
        // What has noise: utilities or features.
        let noisy = match noise {
            Noise::OnFeatures { .. } => self.feature_dim,
            _ => classes,
        };
        let learned = matches!(self.temperature, HeadTemperature::Learned { .. });
        Head {
            mean: dense(0, classes),
            diag_scale: (noise != Noise::None).then(|| dense(1, noisy)),
            loadings: own_rank.map(|rank| dense(2, classes * rank)),
            loading_scale: shared_rank.map(|_| dense(3, noisy)),
            shared_loadings: shared_rank.map(|rank| {
                let seed = key.block_seed(0, Stream::Initial, 4);
                Param::from_data(shared_start(seed, noisy, rank), device)
            }),
            temperature_logit: learned
                .then(|| Param::from_data(TensorData::new(vec![0.0f32], [1]), device)),
            config: self.clone(),
        }
    }
}

/// Uniform with variance 1/R, so that V ε_R starts with variance 1.
fn shared_start(seed: u64, rows: usize, rank: usize) -> TensorData {
    let bound = (3.0 / rank as f32).sqrt();
    TensorData::new(uniform(seed, rows * rank, bound), [rows, rank])
}

impl Head {
    /// The configuration of the head.
    pub fn config(&self) -> &HeadConfig {
        &self.config
    }

    /// W of μ = Wᵀ r + b, [D, K], with its gradient.
    pub fn mean_weight(&self) -> Tensor<2> {
        self.mean.weight.val()
    }

    /// Whether the weights carry autodiff: a model in training, not after `valid()`.
    pub(crate) fn is_autodiff(&self) -> bool {
        self.mean.weight.val().is_autodiff()
    }

    /// # Shapes
    /// - features: [B, D]
    /// - returns: mean [B, K] and what the noise model has of diag_scale [B, K],
    ///   loadings [B, K, R], loading_scale [B, K], shared_loadings [K, R]; with noise on the
    ///   features D in place of K
    ///
    /// # Panics
    /// When features have another width or are not finite; the message names the example.
    pub fn forward(&self, features: Tensor<2>) -> Latent {
        self.check_features(&features);
        self.forward_unchecked(features)
    }

    /// [`Head::forward`] of features that may not be finite: then neither is the mean, and the
    /// likelihood finds the examples.
    pub(crate) fn forward_unchecked(&self, features: Tensor<2>) -> Latent {
        let [batch, _] = features.dims();
        let (classes, noise) = (self.config.classes, self.config.noise);
        let mean = self.mean.forward(features.clone());
        let diag_scale = self.diag_scale.as_ref().map(|layer| {
            let value = layer.forward(features.clone());
            match self.config.diag_scale {
                DiagScale::Affine => value,
                DiagScale::Softplus => softplus(value, 1.0) + SMALLEST_SCALE,
            }
        });
        let loadings = self.loadings.as_ref().map(|layer| layer.forward(features.clone()));
        let loading_scale = self.loading_scale.as_ref().map(|layer| layer.forward(features));
        let shared_loadings = self.shared_loadings.as_ref().map(Param::val);
        let covariance = match (noise, diag_scale) {
            (Noise::Diagonal, Some(diag_scale)) => Covariance::Diagonal { diag_scale },
            (Noise::LowRank { rank }, Some(diag_scale)) => {
                let loadings = loadings.expect("low-rank heads have the layer");
                Covariance::LowRank {
                    diag_scale,
                    loadings: loadings.reshape([batch, classes, rank]),
                }
            }
            (Noise::SharedLowRank { .. }, Some(diag_scale)) => Covariance::SharedLowRank {
                diag_scale,
                loading_scale: loading_scale.expect("shared heads have the layer"),
                shared_loadings: shared_loadings.expect("shared heads have the loadings"),
            },
            (Noise::OnFeatures { .. }, Some(diag_scale)) => Covariance::OnFeatures(FeatureNoise {
                diag_scale,
                loading_scale: loading_scale.expect("heads with noise on features have the layer"),
                shared_loadings: shared_loadings.expect("and the loadings"),
                weight: self.mean.weight.val(),
            }),
            (_, _) => Covariance::None,
        };
        let temperature = self.temperature(&mean.device());
        Latent { mean, covariance, temperature }
    }

    fn temperature(&self, device: &Device) -> Tensor<1> {
        match (self.config.temperature, &self.temperature_logit) {
            (HeadTemperature::Learned { low, high }, Some(logit)) => {
                sigmoid(logit.val()) * (high.get() - low.get()) + low.get()
            }
            (HeadTemperature::Fixed(value) | HeadTemperature::Learned { low: value, .. }, _) => {
                Tensor::from_floats([value.get()], device)
            }
        }
    }

    fn check_features(&self, features: &Tensor<2>) {
        let ([batch, found], expected) = (features.dims(), self.config.feature_dim);
        assert!(found == expected, "features must be [B, {expected}], found [{batch}, {found}]");
        let plain = features.clone().inner();
        if !is_cpu(&plain.device()) {
            let finite = plain.is_finite().all().into_scalar::<bool>();
            assert!(finite, "features must be finite, found NaN or infinity");
            return;
        }
        let values = Floats::new(plain);
        if let Some(at) = values.as_slice().iter().position(|value| !value.is_finite()) {
            let value = values.as_slice()[at];
            let (row, column) = (at / expected, at % expected);
            panic!("features must be finite: example {row}, feature {column} is {value}");
        }
    }
}
