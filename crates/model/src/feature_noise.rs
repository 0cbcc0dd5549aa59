//! Noise on the features, and its forms as noise on the utilities.

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::class_space;
use crate::latent::{Covariance, Latent};
use crate::likelihood::{Likelihood, Link};
use crate::slices::is_cpu;

/// Added to a variance before its root is taken, so that the root has a gradient where there is no
/// noise (W = 0).
const LEAST_VARIANCE: f32 = 1e-12;

/// ε′ ~ N(0, diag(d²) + diag(v) V Vᵀ diag(v)) on the features; Wᵀ ε′ is the noise of the utilities.
#[derive(Clone, Debug)]
pub struct FeatureNoise {
    /// d(x), [B, D].
    pub diag_scale: Tensor<2>,
    /// v(x), [B, D].
    pub loading_scale: Tensor<2>,
    /// V, [D, R].
    pub shared_loadings: Tensor<2>,
    /// W, [D, K], of the mean.
    pub weight: Tensor<2>,
}

impl FeatureNoise {
    /// [D, R, K].
    pub(crate) fn sizes(&self) -> [usize; 3] {
        let [features, rank] = self.shared_loadings.dims();
        [features, rank, self.weight.dims()[1]]
    }

    /// The columns of [`Latent::in_class_space`].
    pub(crate) fn class_rank(&self) -> usize {
        let [features, rank, classes] = self.sizes();
        classes.min(features + rank)
    }

    pub(crate) fn map(&self, of: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            diag_scale: of(&self.diag_scale),
            loading_scale: of(&self.loading_scale),
            shared_loadings: of(&self.shared_loadings),
            weight: of(&self.weight),
        }
    }

    /// Of one example.
    pub(crate) fn example(&self, example: usize) -> Self {
        let row = |values: &Tensor<2>| values.clone().narrow(0, example, 1);
        let Self { diag_scale, loading_scale, .. } = self;
        let (diag_scale, loading_scale) = (row(diag_scale), row(loading_scale));
        Self { diag_scale, loading_scale, ..self.clone() }
    }

    /// In the order in which gradients are given.
    pub(crate) fn tensors(self) -> [DispatchTensor; 4] {
        let Self { diag_scale, loading_scale, shared_loadings, weight } = self;
        [diag_scale, loading_scale, shared_loadings, weight].map(Tensor::into_dispatch)
    }

    /// diag(v) V, [B, D, R].
    pub(crate) fn feature_loadings(&self) -> Tensor<3> {
        let scale = self.loading_scale.clone().unsqueeze_dim::<3>(2);
        scale * self.shared_loadings.clone().unsqueeze_dim(0)
    }

    /// Wᵀ (diag(d), diag(v) V), [B, K, D + R]: the whole covariance as loadings.
    pub(crate) fn class_loadings(&self) -> Tensor<3> {
        let across = self.weight.clone().transpose().unsqueeze_dim::<3>(0);
        let own = across.clone() * self.diag_scale.clone().unsqueeze_dim(1);
        let [batch, ..] = own.dims();
        let shared = across.repeat_dim(0, batch).matmul(self.feature_loadings());
        Tensor::cat(vec![own, shared], 2)
    }

    /// The standard deviation of each utility, [B, K].
    pub(crate) fn marginal_scale(&self) -> Tensor<2> {
        let [batch, _] = self.diag_scale.dims();
        let own = self.diag_scale.clone().square().matmul(self.weight.clone().square());
        let weight = self.weight.clone().unsqueeze_dim::<3>(0).repeat_dim(0, batch);
        let shared = self.feature_loadings().swap_dims(1, 2).matmul(weight);
        (own + shared.square().sum_dim(1).squeeze_dim(1) + LEAST_VARIANCE).sqrt()
    }
}

impl Latent {
    /// The same law with loadings of utilities, [B, K, min(K, D + R)], where the noise is on the
    /// features.
    #[must_use]
    pub fn in_class_space(self) -> Self {
        let Covariance::OnFeatures(noise) = &self.covariance else { return self };
        let [.., classes] = noise.sizes();
        let loadings = match noise.class_rank() == classes && is_cpu(&self.device()) {
            true => class_space::triangular_loadings(noise),
            false => noise.class_loadings(),
        };
        let diag_scale = self.mean.zeros_like().detach();
        Self { covariance: Covariance::LowRank { diag_scale, loadings }, ..self }
    }

    /// The form in which a likelihood is computed: noise on the features becomes noise on the
    /// utilities where that is the same and costs less, or where the kernel knows no other form.
    pub(crate) fn for_likelihood(self, link: Link, likelihood: Likelihood, samples: usize) -> Self {
        let Covariance::OnFeatures(noise) = &self.covariance else { return self };
        match (likelihood, link) {
            // The marginal probabilities of classes depend on the marginal variances alone.
            (Likelihood::Marginal, Link::Sigmoid) => {
                let diag_scale = noise.marginal_scale();
                Self { covariance: Covariance::Diagonal { diag_scale }, ..self }
            }
            (Likelihood::Marginal, Link::Softmax)
                if !is_cpu(&self.device()) || !class_space_is_cheaper(noise, samples) =>
            {
                self
            }
            _ => self.in_class_space(),
        }
    }
}

/// K utilities have K dimensions of noise, however many features there are: with few classes and
/// many samples it costs less to compute Σ, D K (K / 2 + R) products, and its root, K³, and to draw
/// K numbers a sample with K² products, than to draw D + R numbers a sample and multiply them by V
/// and W. Products of the root are in f64 and one by one; each counts as eight.
fn class_space_is_cheaper(noise: &FeatureNoise, samples: usize) -> bool {
    let [features, rank, classes] = noise.sizes().map(|size| size as f64);
    let samples = samples as f64;
    let covariance = features * classes * (classes / 2.0 + rank) + 8.0 * classes.powi(3);
    noise.class_rank() == noise.sizes()[2]
        && covariance + samples * classes.powi(2) <= samples * features * (classes + rank)
}

#[cfg(test)]
mod tests {
    use aleator_kernels::{Draws, NoiseKey, Targets, split_mix};
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::class_space::CpuFeatures;
    use crate::likelihood::BatchNoise;
    use crate::on_device;
    use crate::slices::Floats;

    const SIZES: [usize; 4] = [3, 5, 2, 9];

    fn latent(device: &Device) -> Latent {
        let [batch, features, rank, classes] = SIZES;
        let matrix = |rows: usize, columns: usize, seed: u64| {
            let words = split_mix(seed).take(rows * columns);
            let values = words.map(|word| (word >> 40) as f32 / (1 << 23) as f32 - 1.0);
            let values: Vec<f32> = values.collect();
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), device)
        };
        let noise = FeatureNoise {
            diag_scale: matrix(batch, features, 1),
            loading_scale: matrix(batch, features, 2),
            shared_loadings: matrix(features, rank, 3),
            weight: matrix(features, classes, 4),
        };
        let temperature = Tensor::<1>::from_data([0.4], device);
        let covariance = Covariance::OnFeatures(noise);
        Latent { mean: matrix(batch, classes, 5), covariance, temperature }
    }

    fn floats(tensor: DispatchTensor) -> Vec<f32> {
        Floats::new(Tensor::<2>::from_dispatch(tensor)).as_slice().to_vec()
    }

    /// Both draw the same numbers of a Sobol' sequence, so only the order of sums differs.
    #[test]
    fn tensor_operations_give_what_the_kernels_give() {
        let latent = latent(&Device::flex());
        let Covariance::OnFeatures(of) = &latent.covariance else { unreachable!() };
        let upstream = latent.mean.clone() * 0.3 + 0.1;
        for samples in [70, 33] {
            let draws = Draws::Sobol;
            let key = NoiseKey { seed: 8, step: 1 };
            let noise = BatchNoise { key, ids: vec![3, 1, 7], samples, draws };
            let cpu = CpuFeatures::new(&latent, of);
            let pull = Floats::new(-upstream.clone());
            let targets = Targets::Dense(pull.as_slice());
            let (log_probs, grad) = cpu.batch().loss_and_grad(&noise, targets, &[1.0; 3]).unwrap();
            let on_device = on_device::log_probs(&latent, &noise);
            let found = on_device::backward(&latent, &noise, on_device.clone(), upstream.clone());
            let expected = cpu.gradients(grad, 1.0);
            let mut pairs = vec![(Floats::new(on_device).as_slice().to_vec(), log_probs)];
            for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                // The second is that of the temperature, `[1]`.
                if at != 1 {
                    pairs.push((floats(found.unwrap()), floats(expected.unwrap())));
                }
            }
            assert_eq!(pairs.len(), 6);
            for (found, expected) in pairs {
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    let error = (found - expected).abs();
                    assert!(error < 5e-5 * expected.abs().max(1.0), "{found} for {expected}");
                }
            }
        }
    }
}
