//! The standard normal distribution function.

/// Φ(x), to 1e-14 relative in both tails.
///
/// ```
/// use aleator_metrics::normal_cdf;
///
/// assert!((normal_cdf(1.96) - 0.9750021048517795).abs() < 1e-14);
/// assert!((normal_cdf(-10.0) / 7.61985302416052e-24 - 1.0).abs() < 1e-13);
/// ```
pub fn normal_cdf(x: f64) -> f64 {
    if x > 0.0 { 1.0 - lower_tail(x) } else { lower_tail(-x) }
}

/// P(z > 0) for z ~ N(mean, variance); with variance 0, 1 if the mean is positive and 0 otherwise.
///
/// ```
/// use aleator_metrics::probability_above_zero;
///
/// assert_eq!(probability_above_zero(0.0, 4.0), 0.5);
/// assert_eq!(probability_above_zero(0.0, 0.0), 0.0);
/// ```
pub fn probability_above_zero(mean: f64, variance: f64) -> f64 {
    if variance > 0.0 { normal_cdf(mean / variance.sqrt()) } else { f64::from(mean > 0.0) }
}

/// Φ(−x) for x ≥ 0.
fn lower_tail(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < 3.0 { 0.5 - density * series(x) } else { density * fraction(x) }
}

/// Φ(x) − ½ over the density: x + x³/3 + x⁵/15 + …, all terms positive.
fn series(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > sum * f64::EPSILON {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    sum
}

/// Mills' ratio by Laplace's continued fraction 1/(x + 1/(x + 2/(x + …))).
fn fraction(x: f64) -> f64 {
    /// Enough for full precision from x = 3 on.
    const TERMS: u32 = 160;
    let tail = (1..=TERMS).rev().fold(x, |tail, k| x + k as f64 / tail);
    1.0 / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `from scipy.stats import norm; [norm.cdf(x) for x in (...)]`
    #[test]
    fn it_equals_scipy() {
        let known = [
            (-37.0, 5.7255712225239266e-300),
            (-8.0, 6.22096057427174e-16),
            (-3.0000001, 0.0013498975884453205),
            (-2.9999999, 0.0013498984748150013),
            (-1.0, 0.15865525393145707),
            (-1e-9, 0.49999999960105773),
            (0.0, 0.5),
            (0.5, 0.6914624612740131),
            (4.0, 0.9999683287581669),
        ];
        for (x, expected) in known {
            let relative = (normal_cdf(x) / expected - 1.0).abs();
            assert!(relative < 2e-13, "Φ({x}) = {}, scipy {expected}", normal_cdf(x));
        }
        assert_eq!((normal_cdf(f64::INFINITY), normal_cdf(f64::NEG_INFINITY)), (1.0, 0.0));
    }
}
