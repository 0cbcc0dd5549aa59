//! The Normal on the utilities, as tensors.

use aleator_kernels as kernels;
use burn::backend::DispatchTensor;
use burn::tensor::{Device, Tensor};

use crate::feature_noise::FeatureNoise;
use crate::slices::Floats;

/// Σ(x), in the form in which a head computes it.
#[allow(clippy::large_enum_variant, reason = "one for each batch: its size does not matter")]
#[derive(Clone, Debug)]
pub enum Covariance {
    /// No noise.
    None,
    /// diag(d²).
    Diagonal {
        /// d(x), [B, K].
        diag_scale: Tensor<2>,
    },
    /// diag(d²) + V Vᵀ.
    LowRank {
        /// d(x), [B, K].
        diag_scale: Tensor<2>,
        /// V(x), [B, K, R].
        loadings: Tensor<3>,
    },
    /// diag(d²) + diag(v) V Vᵀ diag(v).
    SharedLowRank {
        /// d(x), [B, K].
        diag_scale: Tensor<2>,
        /// v(x), [B, K].
        loading_scale: Tensor<2>,
        /// V, [K, R].
        shared_loadings: Tensor<2>,
    },
    /// Wᵀ Σ′ W with the covariance Σ′ of noise on the features.
    OnFeatures(FeatureNoise),
}

/// u ~ N(μ(x), Σ(x)) for each example, with the temperature of the link.
#[derive(Clone, Debug)]
pub struct Latent {
    /// μ(x), [B, K].
    pub mean: Tensor<2>,
    /// Σ(x).
    pub covariance: Covariance,
    /// τ, `[1]`.
    pub temperature: Tensor<1>,
}

impl Latent {
    /// [B, K].
    pub fn dims(&self) -> [usize; 2] {
        self.mean.dims()
    }

    /// R, zero without factors. Noise on the features has min(K, D + R) factors of utilities.
    pub fn rank(&self) -> usize {
        match &self.covariance {
            Covariance::None | Covariance::Diagonal { .. } => 0,
            Covariance::LowRank { loadings, .. } => loadings.dims()[2],
            Covariance::SharedLowRank { shared_loadings, .. } => shared_loadings.dims()[1],
            Covariance::OnFeatures(noise) => noise.class_rank(),
        }
    }

    /// Σ of one example, [K, K].
    ///
    /// # Panics
    /// When there is no such example.
    pub fn covariance(&self, example: usize) -> Tensor<2> {
        let [batch, classes] = self.dims();
        assert!(example < batch, "example must be below {batch}, found {example}");
        let device = self.mean.device();
        let row = |values: &Tensor<2>| values.clone().narrow(0, example, 1).reshape([classes, 1]);
        let diagonal = |scale: &Tensor<2>| Tensor::eye(classes, &device) * row(scale).square();
        let gram = |loadings: Tensor<2>| loadings.clone().matmul(loadings.transpose());
        match &self.covariance {
            Covariance::None => Tensor::zeros([classes, classes], &device),
            Covariance::Diagonal { diag_scale } => diagonal(diag_scale),
            Covariance::LowRank { diag_scale, loadings } => {
                let own = loadings.clone().narrow(0, example, 1);
                diagonal(diag_scale) + gram(own.squeeze_dim(0))
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                diagonal(diag_scale) + gram(shared_loadings.clone() * row(loading_scale))
            }
            Covariance::OnFeatures(noise) => {
                gram(noise.example(example).class_loadings().squeeze_dim(0))
            }
        }
    }

    /// The tensors in the order in which gradients are given.
    pub(crate) fn tensors(self) -> Vec<DispatchTensor> {
        let mut out = vec![self.mean.into_dispatch(), self.temperature.into_dispatch()];
        match self.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => out.push(diag_scale.into_dispatch()),
            Covariance::LowRank { diag_scale, loadings } => {
                out.extend([diag_scale.into_dispatch(), loadings.into_dispatch()]);
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                out.push(diag_scale.into_dispatch());
                out.extend([loading_scale.into_dispatch(), shared_loadings.into_dispatch()]);
            }
            Covariance::OnFeatures(noise) => out.extend(noise.tensors()),
        }
        out
    }

    /// The same without autodiff.
    pub(crate) fn inner(&self) -> Self {
        let two = |tensor: &Tensor<2>| tensor.clone().inner();
        let covariance = match &self.covariance {
            Covariance::None => Covariance::None,
            Covariance::Diagonal { diag_scale } => {
                Covariance::Diagonal { diag_scale: two(diag_scale) }
            }
            Covariance::LowRank { diag_scale, loadings } => Covariance::LowRank {
                diag_scale: two(diag_scale),
                loadings: loadings.clone().inner(),
            },
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                Covariance::SharedLowRank {
                    diag_scale: two(diag_scale),
                    loading_scale: two(loading_scale),
                    shared_loadings: two(shared_loadings),
                }
            }
            Covariance::OnFeatures(noise) => Covariance::OnFeatures(noise.map(two)),
        };
        Self { mean: two(&self.mean), covariance, temperature: self.temperature.clone().inner() }
    }

    pub(crate) fn device(&self) -> Device {
        self.mean.device()
    }

    /// Checks on any device what the kernels check on the CPU.
    ///
    /// # Errors
    /// The examples with numbers that are not finite.
    pub(crate) fn check(&self) -> Result<(), kernels::NotFinite> {
        CpuLatent::new(self).view().check()
    }
}

/// The numbers of a [`Latent`] on the CPU, readable as slices.
#[derive(Clone, Debug)]
pub(crate) struct CpuLatent {
    batch: usize,
    classes: usize,
    rank: usize,
    mean: Floats,
    /// diag_scale, then loadings, or loading_scale and shared_loadings.
    scales: Vec<Floats>,
    temperature: f32,
}

impl CpuLatent {
    pub fn new(latent: &Latent) -> Self {
        let [batch, classes] = latent.dims();
        let scales = match &latent.covariance {
            Covariance::None => vec![],
            Covariance::Diagonal { diag_scale } => vec![Floats::of(diag_scale)],
            Covariance::LowRank { diag_scale, loadings } => {
                vec![Floats::of(diag_scale), Floats::of(loadings)]
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                [diag_scale, loading_scale, shared_loadings].map(Floats::of).into()
            }
            Covariance::OnFeatures(_) => {
                return Self::new(&latent.inner().in_class_space());
            }
        };
        let temperature = latent.temperature.clone().into_scalar();
        let mean = Floats::of(&latent.mean);
        Self { batch, classes, rank: latent.rank(), mean, scales, temperature }
    }

    pub fn view(&self) -> kernels::Latent<'_> {
        let rank = self.rank;
        let covariance = match self.scales.as_slice() {
            [] => kernels::Covariance::None,
            [diag_scale] => kernels::Covariance::Diagonal { diag_scale: diag_scale.as_slice() },
            [diag_scale, loadings] => kernels::Covariance::LowRank {
                diag_scale: diag_scale.as_slice(),
                loadings: loadings.as_slice(),
                rank,
            },
            [diag_scale, loading_scale, shared_loadings, ..] => {
                kernels::Covariance::SharedLowRank {
                    diag_scale: diag_scale.as_slice(),
                    loading_scale: loading_scale.as_slice(),
                    shared_loadings: shared_loadings.as_slice(),
                    rank,
                }
            }
        };
        kernels::Latent {
            batch: self.batch,
            classes: self.classes,
            mean: self.mean.as_slice(),
            covariance,
        }
    }

    /// # Panics
    /// When a learned or given temperature is not above zero.
    pub fn temperature(&self) -> kernels::Temperature {
        kernels::Temperature::try_from(self.temperature).unwrap_or_else(|error| panic!("{error}"))
    }
}
