//! Noise on the features on the CPU: its numbers, and its form in the space of the classes.

use aleator_kernels::Temperature;
use aleator_kernels::feature_noise::{self, FeatureGrad};
use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::class_covariance::ClassCovariance;
use crate::custom_grad::custom_grad;
use crate::feature_noise::FeatureNoise;
use crate::feature_samples::{Batch, Gradients};
use crate::latent::Latent;
use crate::recycled;
use crate::slices::Floats;

/// L, [B, K, K], lower triangular, with L Lᵀ = Σ; differentiable.
pub(crate) fn triangular_loadings(noise: &FeatureNoise) -> Tensor<3> {
    let cpu = CpuNoise::new(noise);
    let [.., classes] = noise.sizes();
    let shape = [cpu.batch, classes, classes];
    let value = recycled::filled(shape, |out| ClassCovariance::new(cpu.view()).write_roots(out));
    let roots = Floats::new(value.clone());
    custom_grad(value, noise.clone().tensors().into(), move |upstream: Tensor<3>, _| {
        let upstream = Floats::new(upstream);
        let covariance = ClassCovariance::new(cpu.view());
        let grad = covariance.pull(roots.as_slice(), upstream.as_slice());
        cpu.gradients(grad).into_iter().map(Some).collect()
    })
}

/// The numbers of a [`FeatureNoise`] on the CPU, readable as slices.
pub(crate) struct CpuNoise {
    batch: usize,
    sizes: [usize; 3],
    /// d, v, V, W.
    values: [Floats; 4],
}

impl CpuNoise {
    pub fn new(noise: &FeatureNoise) -> Self {
        let FeatureNoise { diag_scale, loading_scale, shared_loadings, weight } = noise;
        let values = [diag_scale, loading_scale, shared_loadings, weight].map(Floats::of);
        Self { batch: diag_scale.dims()[0], sizes: noise.sizes(), values }
    }

    pub fn view(&self) -> feature_noise::FeatureNoise<'_> {
        let [features, rank, classes] = self.sizes;
        let [diag_scale, loading_scale, shared_loadings, weight] =
            self.values.each_ref().map(Floats::as_slice);
        feature_noise::FeatureNoise {
            batch: self.batch,
            features,
            rank,
            classes,
            diag_scale,
            loading_scale,
            shared_loadings,
            weight,
        }
    }

    /// In the order of [`FeatureNoise::tensors`].
    pub fn gradients(&self, grad: FeatureGrad) -> [DispatchTensor; 4] {
        let (batch, [features, rank, classes]) = (self.batch, self.sizes);
        let FeatureGrad { diag_scale, loading_scale, shared_loadings, weight } = grad;
        [
            (diag_scale, [batch, features]),
            (loading_scale, [batch, features]),
            (shared_loadings, [features, rank]),
            (weight, [features, classes]),
        ]
        .map(|(values, shape)| recycled::tensor(values, shape).into_dispatch())
    }
}

/// A batch with noise on its features on the CPU.
pub(crate) struct CpuFeatures {
    mean: Floats,
    temperature: Temperature,
    noise: CpuNoise,
}

impl CpuFeatures {
    /// # Panics
    /// When a learned or given temperature is not above zero.
    pub fn new(latent: &Latent, noise: &FeatureNoise) -> Self {
        let temperature: f32 = latent.temperature.clone().into_scalar();
        let temperature = Temperature::try_from(temperature);
        Self {
            mean: Floats::of(&latent.mean),
            temperature: temperature.unwrap_or_else(|error| panic!("{error}")),
            noise: CpuNoise::new(noise),
        }
    }

    pub fn batch(&self) -> Batch<'_> {
        let (mean, noise) = (self.mean.as_slice(), self.noise.view());
        Batch { mean, noise, temperature: self.temperature }
    }

    /// Gradients times `scale`, in the order of [`Latent::tensors`].
    pub fn gradients(&self, grad: Gradients, scale: f32) -> Vec<Option<DispatchTensor>> {
        let Gradients { mut mean, temperature, mut noise } = grad;
        let FeatureGrad { diag_scale, loading_scale, shared_loadings, weight } = &mut noise;
        for values in [&mut mean, diag_scale, loading_scale, shared_loadings, weight] {
            if scale != 1.0 {
                values.iter_mut().for_each(|value| *value *= scale);
            }
        }
        let shape = [self.noise.batch, self.noise.sizes[2]];
        let mut out = vec![recycled::tensor(mean, shape).into_dispatch()];
        out.push(recycled::tensor(vec![temperature * scale], [1]).into_dispatch());
        out.extend(self.noise.gradients(noise));
        out.into_iter().map(Some).collect()
    }
}
