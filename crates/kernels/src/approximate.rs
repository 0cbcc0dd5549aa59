//! The softmax likelihood without sampling, by two approximations of the literature.
//!
//! Both replace the logistic function by a probit of equal slope at zero, whose expectation under a
//! Normal is known (MacKay, 1992): E\[sigmoid(N(m, v))\] ≈ sigmoid(m / √(1 + πv/8)). The third
//! approximation is the expansion, [`taylor`](crate::taylor). How far they are from sampling depends
//! on the noise; `aleator eval --sampling-free` measures it.

use core::f64::consts::PI;

use rayon::prelude::*;

use crate::latent::{Example, Latent, Temperature};

/// log p by shrinking each mean by its own variance: softmax of μ_k / √(τ² + πΣ_kk/8), [B, K]
/// (Gibbs, 1998).
///
/// It does not know covariances, and, unlike the likelihood, it changes when a constant is added to
/// all utilities.
///
/// ```
/// use aleator_kernels::{approximate, Covariance, Latent, Temperature};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[3.0, 3.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[2.0, 0.0], covariance };
/// let log_probs = approximate::probit(&latent, Temperature::try_from(1.0).unwrap());
/// assert!(log_probs[0].exp() < 0.88); // softmax(μ) has 0.8808
/// ```
pub fn probit(latent: &Latent, temperature: Temperature) -> Vec<f32> {
    each_example(latent, |example| {
        let tau = f64::from(temperature.get());
        let score = |k: usize| {
            let variance = f64::from(example.variance(k));
            f64::from(example.mean[k]) / (tau * tau + PI / 8.0 * variance).sqrt()
        };
        (0..example.mean.len()).map(score).collect()
    })
}

/// log p from all differences of two utilities:
/// p_k ∝ 1 / Σ_i exp(−(μ_k − μ_i) / √(τ² + π Var(u_k − u_i)/8)), [B, K] (Lu, Ie and Sha, 2020).
///
/// Knows covariances, sees no constant that is added to all utilities, and costs O(K²R) for each
/// example.
///
/// ```
/// use aleator_kernels::{approximate, Covariance, Latent, Temperature};
///
/// // Noise that both classes share changes nothing.
/// let covariance =
///     Covariance::LowRank { diag_scale: &[0.0, 0.0], loadings: &[3.0, 3.0], rank: 1 };
/// let latent = Latent { batch: 1, classes: 2, mean: &[2.0, 0.0], covariance };
/// let log_probs = approximate::mean_field(&latent, Temperature::try_from(1.0).unwrap());
/// assert!((log_probs[0].exp() - 0.8808).abs() < 1e-4); // softmax(μ)
/// ```
pub fn mean_field(latent: &Latent, temperature: Temperature) -> Vec<f32> {
    each_example(latent, |example| {
        let (classes, rank) = (example.mean.len(), example.loadings.rank());
        let tau = f64::from(temperature.get());
        let loadings: Vec<f64> =
            (0..classes).flat_map(|k| example.loadings.row(k, 1.0).map(f64::from)).collect();
        let row = |k: usize| &loadings[k * rank..(k + 1) * rank];
        let own = |k: usize| example.diag_scale.map_or(0.0, |d| f64::from(d[k]).powi(2));
        let score = |k: usize| {
            let term = |i: usize| {
                let apart = row(k).iter().zip(row(i)).map(|(a, b)| (a - b).powi(2));
                let variance = if i == k { 0.0 } else { own(k) + own(i) + apart.sum::<f64>() };
                let gap = f64::from(example.mean[k]) - f64::from(example.mean[i]);
                -gap / (tau * tau + PI / 8.0 * variance).sqrt()
            };
            -log_sum_exp((0..classes).map(term))
        };
        (0..classes).map(score).collect()
    })
}

/// The log-softmax of the scores of each example.
fn each_example(latent: &Latent, scores: impl Fn(&Example) -> Vec<f64> + Sync) -> Vec<f32> {
    latent.expect_finite();
    let log_probs = |row: usize| {
        let scores = scores(&latent.example(row));
        let total = log_sum_exp(scores.iter().copied());
        scores.into_iter().map(move |score| (score - total) as f32)
    };
    (0..latent.batch).into_par_iter().flat_map_iter(log_probs).collect()
}

fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    largest + values.map(|value| (value - largest).exp()).sum::<f64>().ln()
}
