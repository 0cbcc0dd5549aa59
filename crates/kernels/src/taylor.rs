//! The second-order expansion of the softmax likelihood: no sampling, O(KR) for all classes.
//!
//! p_k ≈ s_k + ½ tr(∇²s_k Σ/τ²) with s = softmax(μ/τ). Since
//! ∇²s_k = s_k [(e_k − s)(e_k − s)ᵀ − diag(s) + s sᵀ], the trace is
//! s_k [Σ_kk − 2(Σs)_k + 2 sᵀΣs − Σ_j s_j Σ_jj], and Σs = d² ⊙ s + V(Vᵀs) never forms Σ.
//! Half of it has the cross term −s_k Σ_{j≠k} s_j (1 − 2 s_k) Σ_jk, which counts both Σ_jk and
//! Σ_kj; the paper's appendix has one ½ too many there (deviation D1).

mod loss;

use crate::latent::{Example, Latent, Temperature};

pub use loss::{Form, SMALLEST_FACTOR, loss_and_grad};

/// p_k by the expansion itself, [B, K]. Sums to one, but can leave (0, 1) if the noise is large
/// compared with τ; use [`log_probs`] if a probability is needed.
///
/// ```
/// use aleator_kernels::{taylor, Covariance, Latent, Temperature};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[0.1, 0.1] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[1.0, 0.0], covariance };
/// let probs = taylor::probs(&latent, Temperature::try_from(1.0).unwrap());
/// assert!((probs[0] + probs[1] - 1.0).abs() < 1e-6);
/// ```
pub fn probs(latent: &Latent, temperature: Temperature) -> Vec<f32> {
    expand(latent, temperature, |log_softmax, correction| {
        let entries = log_softmax.iter().zip(correction);
        entries.map(|(l, c)| (l.exp() * (1.0 + 0.5 * c)) as f32).collect()
    })
}

/// log p_k with p_k ∝ s_k exp(½ correction_k): equal to [`probs`] to second order, and a
/// distribution for noise of any size, [B, K].
///
/// ```
/// use aleator_kernels::{taylor, Covariance, Latent, Temperature};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[9.0, 0.1] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[1.0, 0.0], covariance };
/// let log_probs = taylor::log_probs(&latent, Temperature::try_from(1.0).unwrap());
/// let total: f32 = log_probs.iter().map(|l| l.exp()).sum();
/// assert!((total - 1.0).abs() < 1e-5);
/// ```
pub fn log_probs(latent: &Latent, temperature: Temperature) -> Vec<f32> {
    expand(latent, temperature, |log_softmax, correction| {
        let scores = log_softmax.iter().zip(correction).map(|(l, c)| l + 0.5 * c).collect();
        normalised(scores).into_iter().map(|log_prob| log_prob as f32).collect()
    })
}

fn expand(
    latent: &Latent,
    temperature: Temperature,
    finish: impl Fn(&[f64], &[f64]) -> Vec<f32>,
) -> Vec<f32> {
    latent.expect_finite();
    let tau = temperature.get() as f64;
    let of_row = |row| {
        let expansion = Expansion::new(&latent.example(row), tau);
        finish(&expansion.log_softmax, &expansion.correction)
    };
    (0..latent.batch).flat_map(of_row).collect()
}

/// The expansion of one example; Σ is that of the utilities over τ.
struct Expansion {
    /// log s, `[K]`.
    log_softmax: Vec<f64>,
    /// s, `[K]`.
    softmax: Vec<f64>,
    /// Vᵀs, `[R]`.
    projected: Vec<f64>,
    /// Σ_kk, `[K]`.
    variance: Vec<f64>,
    /// Σs, `[K]`.
    covariance_s: Vec<f64>,
    /// c_k = Σ_kk − 2(Σs)_k + 2 sᵀΣs − Σ_j s_j Σ_jj, `[K]`; p_k ≈ s_k (1 + ½ c_k).
    correction: Vec<f64>,
}

impl Expansion {
    fn new(example: &Example, tau: f64) -> Self {
        let log_softmax = log_softmax(example.mean, tau);
        let softmax: Vec<f64> = log_softmax.iter().map(|l| l.exp()).collect();
        let variance: Vec<f64> =
            (0..softmax.len()).map(|k| example.variance(k) as f64 / (tau * tau)).collect();
        let (projected, covariance_s) = times_covariance(example, &softmax, tau);
        let common = 2.0 * dot(&softmax, &covariance_s) - dot(&softmax, &variance);
        let entries = variance.iter().zip(&covariance_s);
        let correction = entries.map(|(v, c)| v - 2.0 * c + common).collect();
        Self { log_softmax, softmax, projected, variance, covariance_s, correction }
    }
}

fn log_softmax(mean: &[f32], tau: f64) -> Vec<f64> {
    let largest = mean.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
    normalised(mean.iter().map(|m| (*m as f64 - largest) / tau).collect())
}

/// The logarithms of numbers that are divided by their sum.
fn normalised(logs: Vec<f64>) -> Vec<f64> {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln();
    logs.into_iter().map(|log| log - total).collect()
}

/// Vᵀx, `[R]`, and Σx, `[K]`, with V and Σ those of the utilities over τ.
fn times_covariance(example: &Example, x: &[f64], tau: f64) -> (Vec<f64>, Vec<f64>) {
    let mut projected = vec![0.0f64; example.loadings.rank()];
    for (class, x) in x.iter().enumerate() {
        let row = example.loadings.row(class, 1.0);
        projected.iter_mut().zip(row).for_each(|(sum, v)| *sum += x * v as f64 / tau);
    }
    let of_class = |(class, x): (usize, &f64)| {
        let diag = example.diag_scale.map_or(0.0, |d| (d[class] as f64 / tau).powi(2) * x);
        let row = example.loadings.row(class, 1.0);
        diag + row.zip(&projected).map(|(v, p)| v as f64 * p).sum::<f64>() / tau
    };
    let product = x.iter().enumerate().map(of_class).collect();
    (projected, product)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
