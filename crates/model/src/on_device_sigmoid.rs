//! The sigmoid likelihood on devices other than the CPU: the closed form in tensor operations.
//!
//! Formula and coefficients are those of [`aleator_kernels::probit`], where they are derived.

use aleator_kernels::probit::{MILLS_KNOT, MILLS_SERIES, TERMS};
use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::latent::{Covariance, Latent};

/// Exponents are clamped here: e^−87 is the smallest normal f32.
const SMALLEST_EXPONENT: f32 = -87.0;

/// The logits' derivatives by m = μ/τ and v = σ²/τ², and what they are chained to.
pub(crate) struct Rule {
    latent: Latent,
    variance: Tensor<2>,
    by_mean: Tensor<2>,
    by_variance: Tensor<2>,
}

/// log p − log(1 − p), [B, K], and the rule of its backward step.
pub(crate) fn logits(latent: &Latent) -> (Tensor<2>, Rule) {
    let tau = latent.temperature.clone().reshape([1, 1]);
    let variance = marginal_variance(latent);
    let m = latent.mean.clone() / tau.clone();
    let v = variance.clone() / tau.square();
    let small = small_side(m.clone().abs(), v);
    let prob = small.log.clone().clamp_min(SMALLEST_EXPONENT).exp();
    let rest = -prob.clone() + 1.0;
    // log q − log(1 − q) of the improbable side; its derivative is that of log q over 1 − q.
    let value = small.log - (-prob).log1p();
    let (by_mean, by_variance) = (small.mean / rest.clone(), small.variance / rest);
    let negative = m.lower_equal_elem(0.0);
    let signed = |values: Tensor<2>| (-values.clone()).mask_where(negative.clone(), values);
    let logits = signed(value);
    // The logit is odd in m and `by_mean` is the derivative by −|m|, so its sign stays.
    let rule = Rule { latent: latent.clone(), variance, by_mean, by_variance: signed(by_variance) };
    (logits, rule)
}

impl Rule {
    /// Gradients in the order of [`Latent::tensors`].
    pub fn pull(self, upstream: Tensor<2>) -> Vec<Option<DispatchTensor>> {
        let tau = self.latent.temperature.clone();
        let scale = tau.clone().reshape([1, 1]);
        let mean = upstream.clone() * self.by_mean / scale.clone();
        let variance = upstream * self.by_variance / scale.square();
        // Each scale enters the variance squared (Euler's theorem for τ).
        let euler = (self.latent.mean.clone() * mean.clone()).sum()
            + (self.variance * variance.clone()).sum() * 2.0;
        let mut out = vec![mean.into_dispatch(), (-euler / tau).into_dispatch()];
        let twice = variance * 2.0;
        match self.latent.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => out.push((diag_scale * twice).into_dispatch()),
            Covariance::LowRank { diag_scale, loadings } => {
                out.push((diag_scale * twice.clone()).into_dispatch());
                out.push((loadings * twice.unsqueeze_dim::<3>(2)).into_dispatch());
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                let norms = squared_norms(&shared_loadings);
                out.push((diag_scale * twice.clone()).into_dispatch());
                out.push((loading_scale.clone() * norms * twice.clone()).into_dispatch());
                let pull = (loading_scale.square() * twice).sum_dim(0);
                out.push((shared_loadings * pull.transpose()).into_dispatch());
            }
            Covariance::OnFeatures(_) => {
                unreachable!("a sigmoid sees the variances of the classes")
            }
        }
        out.into_iter().map(Some).collect()
    }
}

/// ‖V_k‖², [1, K].
fn squared_norms(shared_loadings: &Tensor<2>) -> Tensor<2> {
    shared_loadings.clone().square().sum_dim(1).transpose()
}

/// Σ_kk, [B, K].
fn marginal_variance(latent: &Latent) -> Tensor<2> {
    match &latent.covariance {
        Covariance::None => latent.mean.zeros_like(),
        Covariance::Diagonal { diag_scale } => diag_scale.clone().square(),
        Covariance::LowRank { diag_scale, loadings } => {
            diag_scale.clone().square() + loadings.clone().square().sum_dim(2).squeeze_dim::<2>(2)
        }
        Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
            diag_scale.clone().square()
                + loading_scale.clone().square() * squared_norms(shared_loadings)
        }
        Covariance::OnFeatures(noise) => noise.marginal_scale().square(),
    }
}

/// log P(n, v) at n = −distance, and its derivatives by n and v.
struct SmallSide {
    log: Tensor<2>,
    mean: Tensor<2>,
    variance: Tensor<2>,
}

fn small_side(distance: Tensor<2>, v: Tensor<2>) -> SmallSide {
    let half_v = v.clone() * 0.5;
    let reflected = distance.clone().greater(half_v.clone());
    let beyond = distance.clone().greater(v.clone());
    let x = distance.clone().mask_where(reflected.clone(), (distance.clone() - v.clone()).abs());

    let slowest = x.clone() / (v.clone() + TERMS[0].1);
    let exponent = slowest.clone() * x.clone() * 0.5;
    let zeros = x.zeros_like();
    let (mut sum, mut density, mut slope) = (zeros.clone(), zeros.clone(), zeros.clone());
    for (weight, kappa) in TERMS {
        let square = (v.clone() + kappa).recip();
        let root = square.clone().sqrt();
        let gap = 0.5 * (kappa - TERMS[0].1);
        let faster = slowest.clone() * gap * x.clone() * square.clone();
        let weight = faster.clamp_min(SMALLEST_EXPONENT).exp() * weight;
        let scaled = weight.clone() * root.clone();
        sum = sum + weight * mills(x.clone() * root);
        density = density + scaled.clone();
        slope = slope + scaled * square;
    }

    let scale = (-exponent.clone()).clamp_min(SMALLEST_EXPONENT).exp();
    let scale = scale.ones_like().mask_where(beyond.clone(), scale);
    let complement = -(sum.clone() * scale.clone()) + 1.0;
    let value = sum.mask_where(beyond.clone(), complement);
    let factor = scale / value.clone()
        * (0.5 * core::f32::consts::FRAC_2_SQRT_PI * core::f32::consts::FRAC_1_SQRT_2);
    let by_mean = density * factor.clone();
    let by_variance = x * slope * factor * 0.5;
    let by_variance = by_variance.clone().mask_where(beyond.clone(), -by_variance);

    let gaussian = exponent.mask_where(beyond, zeros.clone());
    let tilt = zeros.mask_where(reflected.clone(), distance - half_v);
    let tilted = -by_mean.clone() + 0.5 + by_variance.clone();
    SmallSide {
        log: value.log() - gaussian - tilt,
        mean: by_mean.clone().mask_where(reflected.clone(), -by_mean + 1.0),
        variance: by_variance.mask_where(reflected, tilted),
    }
}

/// Φ(−a) e^{a²/2}.
fn mills(a: Tensor<2>) -> Tensor<2> {
    let inverse = (a.clone() + MILLS_KNOT).recip();
    let t = (a - MILLS_KNOT) * inverse.clone();
    let mut series = t.zeros_like() + MILLS_SERIES[0];
    for coefficient in &MILLS_SERIES[1..] {
        series = series * t.clone() + *coefficient;
    }
    series * inverse
}
