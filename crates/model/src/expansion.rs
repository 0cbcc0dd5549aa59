//! The second-order expansion of the softmax likelihood in tensor operations, on any device.
//!
//! Formulas are those of [`aleator_kernels::taylor`], where they are derived.

use aleator_kernels::taylor::SMALLEST_FACTOR;
use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

use crate::latent::{Covariance, Latent};
use crate::likelihood::Likelihood;

/// log p, [B, K], by the normalised expansion.
pub(crate) fn log_probs(latent: &Latent) -> Tensor<2> {
    let Terms { log_softmax: first, correction } = Terms::new(latent);
    log_softmax(first + correction * 0.5, 1)
}

/// The terms that a loss adds up under targets, [B, K]: log p in the form of the likelihood.
pub(crate) fn log_likelihood(latent: &Latent, likelihood: Likelihood) -> Tensor<2> {
    if likelihood == Likelihood::LogExpansion {
        return log_probs(latent);
    }
    let Terms { log_softmax, correction } = Terms::new(latent);
    let factor = correction * 0.5 + 1.0;
    // Below the smallest factor the logarithm goes on as its tangent.
    let inside = factor.clone().clamp_min(SMALLEST_FACTOR);
    let below = (factor - SMALLEST_FACTOR).clamp_max(0.0) / SMALLEST_FACTOR;
    log_softmax + inside.log() + below
}

struct Terms {
    /// log s, [B, K].
    log_softmax: Tensor<2>,
    /// c of p ≈ s (1 + ½c), [B, K].
    correction: Tensor<2>,
}

impl Terms {
    fn new(latent: &Latent) -> Self {
        let tau = latent.temperature.clone().reshape([1, 1]);
        let log_softmax = log_softmax(latent.mean.clone() / tau.clone(), 1);
        let softmax = log_softmax.clone().exp();
        let mut variance = latent.mean.zeros_like();
        let mut covariance_s = variance.clone();
        if let Covariance::Diagonal { diag_scale }
        | Covariance::LowRank { diag_scale, .. }
        | Covariance::SharedLowRank { diag_scale, .. } = &latent.covariance
        {
            let diag = (diag_scale.clone() / tau.clone()).square();
            covariance_s = covariance_s + diag.clone() * softmax.clone();
            variance = variance + diag;
        }
        if let Some(loadings) = latent.loadings() {
            let loadings = loadings / tau.reshape([1, 1, 1]);
            variance = variance + loadings.clone().square().sum_dim(2).squeeze_dim(2);
            let projected = softmax.clone().unsqueeze_dim::<3>(1).matmul(loadings.clone());
            let product = loadings.matmul(projected.swap_dims(1, 2));
            covariance_s = covariance_s + product.squeeze_dim(2);
        }
        let dot = |values: &Tensor<2>| (softmax.clone() * values.clone()).sum_dim(1);
        let common = dot(&covariance_s) * 2.0 - dot(&variance);
        Self { log_softmax, correction: variance - covariance_s * 2.0 + common }
    }
}
