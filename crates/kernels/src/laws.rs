//! Noise that is not Normal: Gumbel, with which the argmax of the utilities has the softmax as its
//! law, and Logistic, with which their signs have the sigmoid.
//!
//! Both are drawn from the distance w ∈ (0, ½] of a uniform number from the nearer end of (0, 1),
//! and a bit that says which end. Near zero floats are fine, so both tails reach 22.

use aleator_vocabulary::NoiseLaw;
use pulp::Simd;

use crate::normal::{BlockShape, Generator, uniform};
use crate::simd::{Vectorised, Wide, WideBits};

/// Fills a block with Gumbel or Logistic noise from a seed, in the order of
/// [`FillNormals`](crate::normal::FillNormals).
pub(crate) struct FillLaw<'a> {
    pub law: NoiseLaw,
    pub seed: u64,
    pub shape: BlockShape,
    pub out: &'a mut [f32],
}

impl Vectorised for FillLaw<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let Self { law, seed, shape, out } = self;
        let mut generator = Generator::<S, N>::new(simd, seed);
        for outer in 0..shape.outer {
            for inner in 0..shape.inner {
                let at = outer * shape.outer_stride + inner * shape.inner_stride;
                for half in 0..2 {
                    let word = generator.next();
                    let draw = if law == NoiseLaw::Gumbel {
                        gumbel(simd, word)
                    } else {
                        logistic(simd, word)
                    };
                    draw.store(&mut out[at + half * shape.pair_stride..]);
                }
            }
        }
    }
}

/// w on the multiples of 2⁻³² in (0, ½], and −1 or 1 for the end that it is measured from.
#[inline(always)]
fn end_and_distance<S: Simd, const N: usize>(
    simd: S,
    word: WideBits<S, N>,
) -> (Wide<S, N>, Wide<S, N>) {
    let sign = word.and(WideBits::splat(simd, 0x8000_0000));
    let end = sign.or(WideBits::splat(simd, 1.0f32.to_bits())).to_floats();
    (end, uniform(simd, word.shift_left(1)).mul(Wide::splat(simd, 0.5)))
}

/// −ln E, with E exponential: E = −ln w from the lower end, and −ln(1 − w) from the upper one.
///
/// The second is 2 artanh t with t = w/(2 − w) ≤ ⅓, whose relative error is that of its series,
/// 2·10⁻⁸: the largest utilities, which decide, come from the smallest E.
#[inline(always)]
fn gumbel<S: Simd, const N: usize>(simd: S, word: WideBits<S, N>) -> Wide<S, N> {
    const ARTANH: [f32; 7] = [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 0.2, 1.0 / 3.0, 1.0];
    let (end, w) = end_and_distance(simd, word);
    let zero = Wide::splat(simd, 0.0);
    let t = w.div(Wide::splat(simd, 2.0).sub(w));
    let small = t.add(t).mul(t.mul(t).polynomial(ARTANH));
    let large = zero.sub(w.ln());
    zero.sub(end.negative_or(large, small).ln())
}

/// ± ln((1 − w)/w).
#[inline(always)]
fn logistic<S: Simd, const N: usize>(simd: S, word: WideBits<S, N>) -> Wide<S, N> {
    let (end, w) = end_and_distance(simd, word);
    let magnitude = Wide::splat(simd, 1.0).sub(w).ln().sub(w.ln());
    end.mul(magnitude)
}

/// The quantile at `(cell + ½) / 2³²`, for Sobol' points.
pub(crate) fn quantile(law: NoiseLaw, cell: u32) -> f32 {
    let at = |cell: u32| (f64::from(cell) + 0.5) / (1u64 << 32) as f64;
    let (below, above) = (at(cell), at(!cell)); // above = 1 − below, without rounding
    match law {
        NoiseLaw::Normal => crate::quantile::inverse_normal_cdf(cell),
        NoiseLaw::Gumbel => -(-(-above).ln_1p()).ln() as f32,
        NoiseLaw::Logistic => (below / above).ln() as f32,
    }
}

/// The Gumbel number with the probabilities below and above exchanged.
pub(crate) fn reflected_gumbel(drawn: f32) -> f32 {
    // P(ε < drawn) = exp(−e), and 1 − exp(−e) without cancellation.
    let e = (-f64::from(drawn)).exp();
    -(-(-(-e).exp_m1()).ln()).ln() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reflection_exchanges_the_probabilities_below_and_above() {
        for drawn in [-3.0f32, -1.0, 0.0, 0.366_512_92, 2.0, 8.0, 20.0] {
            let reflected = reflected_gumbel(drawn);
            let below = |x: f32| (-(-f64::from(x)).exp()).exp();
            let above = |x: f32| -(-(-f64::from(x)).exp()).exp_m1();
            let (expected, found) = (above(drawn), below(reflected));
            // An f32 in the exponent of an exponent: e^3 times its rounding.
            assert!((found / expected - 1.0).abs() < 5e-6, "{drawn} → {reflected}");
        }
    }

    /// `from scipy.stats import gumbel_r, logistic; gumbel_r.ppf((x + 0.5) / 2**32)`
    #[test]
    fn quantiles_equal_scipys() {
        for (law, cell, expected) in GOLDEN {
            let found = f64::from(quantile(law, cell));
            assert!((found - expected).abs() < 2e-6, "{law:?} {cell}: {found}, scipy {expected}");
        }
    }

    const GOLDEN: [(NoiseLaw, u32, f64); 8] = [
        (NoiseLaw::Gumbel, 0, -3.129994640884816),
        (NoiseLaw::Gumbel, 1 << 30, -0.32663425964237736),
        (NoiseLaw::Gumbel, 1 << 31, 0.366512920917568),
        (NoiseLaw::Gumbel, u32::MAX, 22.87385695841999),
        (NoiseLaw::Logistic, 0, -22.87385695836178),
        (NoiseLaw::Logistic, 1 << 30, -1.098612288047228),
        (NoiseLaw::Logistic, 1 << 31, 4.656612873077393e-10),
        (NoiseLaw::Logistic, u32::MAX, 22.87385695836178),
    ];
}
