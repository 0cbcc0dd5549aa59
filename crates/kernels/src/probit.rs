//! The sigmoid link without sampling: E[sigmoid(u/τ)] in closed form.
//!
//! Binary cross-entropy depends only on the marginals u_c ~ N(μ_c, σ_c²), and the logistic function is a
//! mixture of probits, whose expectation under a Normal is again a probit:
//! P(m, v) = E[sigmoid(N(m, v))] = Σ_i w_i Φ(m / √(v + κ_i)), with m = μ/τ and v = σ²/τ².
//!
//! A mixture of Gaussians cannot follow the logistic tail e^m, so it is never used there. Because
//! sigmoid(u) = e^u sigmoid(−u), tilting the Normal gives the exact reflection
//! P(m, v) = exp(m + v/2) · P(−m − v, v), which moves every argument to m ≥ −v/2. There six terms
//! suffice for 3e-7 in f32 (relative to max(1, |log P|)), for any mean and variance.

use pulp::Simd;

use crate::simd::Wide;

/// Weights w_i, and κ_i = 1/λ_i² of the probits Φ(λ_i x), largest first.
///
/// Minimax in the error of log P and its gradients over all (m, v) after the reflection.
pub const TERMS: [(f32, f32); 6] = [
    (0.004_236_096, 15.614_862),
    (0.087_197_75, 8.189_348),
    (0.319_533_6, 4.309_218_4),
    (0.397_495_66, 2.279_295_2),
    (0.174_832_9, 1.232_641_5),
    (0.016_704_004, 0.668_826_8),
];

/// log P and log(1 − P) of a vector of marginals, with their derivatives by m and by v.
pub(crate) struct Marginal<S: Simd> {
    pub log_on: S::f32s,
    pub log_off: S::f32s,
    pub mean_on: S::f32s,
    pub mean_off: S::f32s,
    pub variance_on: S::f32s,
    pub variance_off: S::f32s,
}

/// Everything is computed for the less probable side, P(−|m|, v), whose logarithm is the difficult
/// one. The other side follows from it, and the sign of m swaps the two.
#[inline(always)]
pub(crate) fn marginal<S: Simd>(simd: S, m: S::f32s, v: S::f32s) -> Marginal<S> {
    let zero = simd.splat_f32s(0.0);
    let one = simd.splat_f32s(1.0);
    let small = small_side(simd, simd.abs_f32s(m), v);
    let prob = exp(simd, small.log);
    let rest = simd.sub_f32s(one, prob);
    // log(1 − q), corrected for the rounding of 1 − q: full relative accuracy for tiny q.
    let rounding = simd.sub_f32s(simd.sub_f32s(one, rest), prob);
    let log_rest = simd.add_f32s(ln(simd, rest), simd.div_f32s(rounding, rest));
    let odds = simd.neg_f32s(simd.div_f32s(prob, rest));
    let mean_rest = simd.mul_f32s(odds, small.mean);
    let variance_rest = simd.mul_f32s(odds, small.variance);
    let negative = simd.less_than_or_equal_f32s(m, zero);
    // `small.mean` is the derivative by −|m|.
    let on = simd.select_f32s(negative, small.mean, simd.neg_f32s(mean_rest));
    let off = simd.select_f32s(negative, mean_rest, simd.neg_f32s(small.mean));
    Marginal {
        log_on: simd.select_f32s(negative, small.log, log_rest),
        log_off: simd.select_f32s(negative, log_rest, small.log),
        mean_on: on,
        mean_off: off,
        variance_on: simd.select_f32s(negative, small.variance, variance_rest),
        variance_off: simd.select_f32s(negative, variance_rest, small.variance),
    }
}

/// log P(n, v) for n = −|m|, and its derivatives by n and v.
struct SmallSide<S: Simd> {
    log: S::f32s,
    mean: S::f32s,
    variance: S::f32s,
}

#[inline(always)]
fn small_side<S: Simd>(simd: S, distance: S::f32s, v: S::f32s) -> SmallSide<S> {
    let zero = simd.splat_f32s(0.0);
    let half = simd.splat_f32s(0.5);
    let one = simd.splat_f32s(1.0);
    let half_v = simd.mul_f32s(half, v);
    let reflected = simd.greater_than_f32s(distance, half_v);
    // After the reflection the argument of the mixture is positive.
    let beyond = simd.greater_than_f32s(distance, v);
    let x = simd.select_f32s(reflected, simd.abs_f32s(simd.sub_f32s(distance, v)), distance);

    let Mixture { sum, density, slope, exponent } = mixture(simd, x, v);
    let scale = simd.select_f32s(beyond, exp(simd, simd.neg_f32s(exponent)), one);
    let complement = simd.sub_f32s(one, simd.mul_f32s(sum, scale));
    let value = simd.select_f32s(beyond, complement, sum);
    const INVERSE_SQRT_TAU: f32 = 0.398_942_3; // 1/√(2π)
    let factor = simd.mul_f32s(simd.splat_f32s(INVERSE_SQRT_TAU), simd.div_f32s(scale, value));
    let by_mean = simd.mul_f32s(density, factor);
    let by_variance = simd.mul_f32s(simd.mul_f32s(half, x), simd.mul_f32s(slope, factor));
    let by_variance = simd.select_f32s(beyond, simd.neg_f32s(by_variance), by_variance);

    let gaussian = simd.select_f32s(beyond, zero, exponent);
    let tilt = simd.select_f32s(reflected, simd.sub_f32s(distance, half_v), zero);
    let tilted_variance = simd.add_f32s(simd.sub_f32s(half, by_mean), by_variance);
    SmallSide {
        log: simd.sub_f32s(simd.sub_f32s(ln(simd, value), gaussian), tilt),
        mean: simd.select_f32s(reflected, simd.sub_f32s(one, by_mean), by_mean),
        variance: simd.select_f32s(reflected, tilted_variance, by_variance),
    }
}

/// Σ w_i Φ(−x c_i), Σ w_i c_i φ and Σ w_i c_i³ φ with c_i = 1/√(v + κ_i), each without the factor
/// exp(−exponent) of its slowest term, and the densities without 1/√(2π).
struct Mixture<S: Simd> {
    sum: S::f32s,
    density: S::f32s,
    slope: S::f32s,
    exponent: S::f32s,
}

#[inline(always)]
fn mixture<S: Simd>(simd: S, x: S::f32s, v: S::f32s) -> Mixture<S> {
    let zero = simd.splat_f32s(0.0);
    let slowest = simd.div_f32s(x, simd.add_f32s(v, simd.splat_f32s(TERMS[0].1)));
    let exponent = simd.mul_f32s(simd.mul_f32s(simd.splat_f32s(0.5), slowest), x);
    let (mut sum, mut density, mut slope) = (zero, zero, zero);
    for (weight, kappa) in TERMS {
        let square = simd.div_f32s(simd.splat_f32s(1.0), simd.add_f32s(v, simd.splat_f32s(kappa)));
        let root = simd.sqrt_f32s(square);
        // The difference of the exponents as a product, because a subtraction would cancel.
        let gap = simd.splat_f32s(0.5 * (kappa - TERMS[0].1));
        let faster = simd.mul_f32s(simd.mul_f32s(slowest, gap), simd.mul_f32s(x, square));
        let weight = simd.mul_f32s(simd.splat_f32s(weight), exp(simd, faster));
        let scaled = simd.mul_f32s(weight, root);
        sum = simd.mul_add_e_f32s(weight, mills(simd, simd.mul_f32s(x, root)), sum);
        density = simd.add_f32s(density, scaled);
        slope = simd.mul_add_e_f32s(scaled, square, slope);
    }
    Mixture { sum, density, slope, exponent }
}

/// Φ(−a) e^{a²/2} = z · series(t) with z = 1/(a + knot) and t = (a − knot) z, for a ≥ 0.
pub const MILLS_KNOT: f32 = 2.75;

/// The series, highest power first; relative error below 3e-7 up to a = 1e18.
pub const MILLS_SERIES: [f32; 11] = [
    6.464_237e-5,
    1.105_868e-5,
    -4.786_43e-4,
    -3.453_278_2e-4,
    2.510_307_4e-3,
    3.228_173e-3,
    -1.644_552_3e-2,
    -1.656_877_6e-2,
    0.182_334_32,
    -0.474_354,
    0.718_986_04,
];

#[inline(always)]
fn mills<S: Simd>(simd: S, a: S::f32s) -> S::f32s {
    let knot = simd.splat_f32s(MILLS_KNOT);
    let inverse = simd.div_f32s(simd.splat_f32s(1.0), simd.add_f32s(a, knot));
    let t = simd.mul_f32s(simd.sub_f32s(a, knot), inverse);
    let [series] = Wide::of(simd, [t]).polynomial(MILLS_SERIES).parts();
    simd.mul_f32s(inverse, series)
}

#[inline(always)]
fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    Wide::of(simd, [x]).exp().parts()[0]
}

#[inline(always)]
fn ln<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    Wide::of(simd, [x]).ln().parts()[0]
}
