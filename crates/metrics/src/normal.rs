//! The standard normal distribution function and its inverse.

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

/// Φ⁻¹(p) for p from 0 to 1, to 1e-15 relative (Wichura's algorithm AS 241).
///
/// ```
/// use aleator_metrics::{normal_cdf, normal_quantile};
///
/// assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-14);
/// assert!((normal_cdf(normal_quantile(1e-20)) / 1e-20 - 1.0).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    let from_centre = p - 0.5;
    if from_centre.abs() <= 0.425 {
        return from_centre * ratio(&CENTRE, 0.180_625 - from_centre * from_centre);
    }
    let root = (-p.min(1.0 - p).ln()).sqrt();
    let magnitude = match root {
        f64::INFINITY => f64::INFINITY,
        _ if root <= 5.0 => ratio(&TAIL, root - 1.6),
        _ => ratio(&FAR_TAIL, root - 5.0),
    };
    magnitude.copysign(from_centre)
}

/// Numerator and denominator, lowest power first.
type Rational = [[f64; 8]; 2];

fn ratio([numerator, denominator]: &Rational, x: f64) -> f64 {
    let at = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    at(numerator) / at(denominator)
}

const CENTRE: Rational = [
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];

const TAIL: Rational = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

const FAR_TAIL: Rational = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

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

    /// `from scipy.special import ndtri; [ndtri(p) for p in (...)]`
    #[test]
    fn the_quantile_equals_scipys() {
        let known = [
            (1e-300, -37.0470962993612),
            (1e-30, -11.464024688443613),
            (1e-11, -6.706023155495137),
            (1.5e-11, -6.646570887477113),
            (0.001, -3.090232306167813),
            (0.074, -1.4466320671589785),
            (0.076, -1.4325027208258116),
            (0.3, -0.5244005127080409),
            (0.6, 0.2533471031357997),
            (0.925, 1.4395314709384563),
            (0.999, 3.090232306167813),
        ];
        for (p, expected) in known {
            let error = (normal_quantile(p) / expected - 1.0).abs();
            assert!(error < 4e-15, "Φ⁻¹({p}) = {}, scipy {expected}", normal_quantile(p));
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!([0.0, 1.0].map(normal_quantile), [f64::NEG_INFINITY, f64::INFINITY]);
    }
}
