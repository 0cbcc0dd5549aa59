//! Standard normals: xoshiro128+ in every lane, then the Box–Muller transform.
//!
//! The generator was chosen by speed (docs/method.md has the figures) and by the tests in
//! `tests/moments.rs`: moments, tails to 5σ, independence of streams.

use core::f32::consts::LN_2;

use pulp::Simd;

use crate::key::split_mix;
use crate::simd::{LANES, Vectorised, Wide, WideBits};

/// Where the draws of a block go: draw (outer, inner) is a pair of 16 lanes at
/// `outer · outer_stride + inner · inner_stride`, its second half `pair_stride` later.
///
/// The sequence runs over `inner` first, so a block with fewer `outer` steps is a prefix of a
/// block with more: the noise of a sample does not depend on the number of samples after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub outer: usize,
    pub outer_stride: usize,
    pub inner: usize,
    pub inner_stride: usize,
    pub pair_stride: usize,
}

/// Fills a block of standard normals from a seed.
pub(crate) struct FillNormals<'a> {
    pub seed: u64,
    pub shape: BlockShape,
    pub out: &'a mut [f32],
}

impl Vectorised for FillNormals<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let Self { seed, shape, out } = self;
        let mut generator = Generator::<S, N>::new(simd, seed);
        let mut ahead = Ahead { squares: [[0; LANES]; AHEAD], angles: [[0; LANES]; AHEAD] };
        let mut used = AHEAD;
        for outer in 0..shape.outer {
            for inner in 0..shape.inner {
                if used == AHEAD {
                    generator.fill(&mut ahead);
                    for word in &mut ahead.squares {
                        let square = minus_two_ln(simd, WideBits::<S, N>::load(simd, word));
                        square.to_bits().store(word);
                    }
                    used = 0;
                }
                let at = outer * shape.outer_stride + inner * shape.inner_stride;
                let square = WideBits::<S, N>::load(simd, &ahead.squares[used]).to_floats();
                let angle = WideBits::load(simd, &ahead.angles[used]);
                let (first, second) = on_circle(simd, square, angle);
                first.store(&mut out[at..]);
                second.store(&mut out[at + shape.pair_stride..]);
                used += 1;
            }
        }
    }
}

/// The number of pairs drawn ahead. The generator, the logarithm and the circle each need all
/// registers, and each is short enough for the processor to overlap several pairs. So each stage
/// runs over this many pairs before the next one.
const AHEAD: usize = 16;

/// Random words for radii, later replaced by the bits of the squared radii; words for angles.
#[repr(align(64))]
struct Ahead {
    squares: [[u32; LANES]; AHEAD],
    angles: [[u32; LANES]; AHEAD],
}

/// xoshiro128+ (Blackman and Vigna) in each of 16 lanes for any vector width, so that a draw's
/// bits do not depend on the machine. Only its upper bits, which are strong, matter here.
pub(crate) struct Generator<S: Simd, const N: usize> {
    state: [WideBits<S, N>; 4],
}

impl<S: Simd, const N: usize> Generator<S, N> {
    #[inline(always)]
    pub fn new(simd: S, seed: u64) -> Self {
        let mut words = [[0u32; LANES]; 4];
        for (index, word) in split_mix(seed).take(2 * LANES).enumerate() {
            let (lane, half) = (index / 2, index % 2);
            words[2 * half][lane] = word as u32;
            words[2 * half + 1][lane] = (word >> 32) as u32;
        }
        let mut state = [WideBits::splat(simd, 0); 4];
        for (state, words) in state.iter_mut().zip(&words) {
            *state = WideBits::load(simd, words);
        }
        Self { state }
    }

    #[inline(always)]
    fn fill(&mut self, ahead: &mut Ahead) {
        for pair in 0..AHEAD {
            self.next().store(&mut ahead.squares[pair]);
            self.next().store(&mut ahead.angles[pair]);
        }
    }

    #[inline(always)]
    pub fn next(&mut self) -> WideBits<S, N> {
        let state = &mut self.state;
        let result = state[0].add(state[3]);
        let shifted = state[1].shift_left(9);
        state[2] = state[2].xor(state[0]);
        state[3] = state[3].xor(state[1]);
        state[1] = state[1].xor(state[2]);
        state[0] = state[0].xor(state[3]);
        state[2] = state[2].xor(shifted);
        state[3] = state[3].shift_left(11).or(state[3].shift_right(21));
        result
    }
}

/// −2 ln v with v uniform on (0, 1]: a squared radius. For v = 1 it is a zero of either sign.
///
/// ln(1+f)/f is split into its even and odd parts, because a single polynomial is a chain of
/// dependent operations. The error of the minimax fit is 2e-7.
#[inline(always)]
fn minus_two_ln<S: Simd, const N: usize>(simd: S, word: WideBits<S, N>) -> Wide<S, N> {
    // The coefficients include the factor −2.
    const EVEN: [f32; 4] = [-0.323_61, -0.398_137_66, -0.666_694_3, -2.0];
    const ODD: [f32; 4] = [0.201_647_44, 0.344_864_52, 0.499_424_58, 1.000_006_4];
    let (exponent, f) = uniform(simd, word).split_exponent();
    let square = f.mul(f);
    let mut even = Wide::splat(simd, EVEN[0]);
    let mut odd = Wide::splat(simd, ODD[0]);
    for step in 1..4 {
        even = even.mul_add(square, Wide::splat(simd, EVEN[step]));
        odd = odd.mul_add(square, Wide::splat(simd, ODD[step]));
    }
    let series = odd.mul_add(f, even);
    exponent.mul_add(Wide::splat(simd, -2.0 * LN_2), f.mul(series))
}

/// radius · (sin θ, cos θ) with θ uniform on the circle; the error of the minimax fits is 7e-7.
///
/// The square root is taken here, where it overlaps with the polynomials.
#[inline(always)]
fn on_circle<S: Simd, const N: usize>(
    simd: S,
    radius_square: Wide<S, N>,
    angle: WideBits<S, N>,
) -> (Wide<S, N>, Wide<S, N>) {
    const SINE: [f32; 4] = [-0.554_636_2, 2.541_899, -5.167_143, 3.141_582];
    const COSINE: [f32; 5] = [0.219_696_8, -1.331_880_2, 4.058_412, -4.934_793, 0.999_999_94];
    // Half a circle, in units of π; the strongest bit selects the half.
    let fraction = angle.and(WideBits::splat(simd, 0x007f_ffff));
    let x = fraction.or(WideBits::splat(simd, 0x3f80_0000)).to_floats();
    let x = x.sub(Wide::splat(simd, 1.5));
    let side = angle.and(WideBits::splat(simd, 0x8000_0000));
    let square = x.mul(x);
    let mut sine = Wide::splat(simd, SINE[0]);
    let mut cosine = square.mul_add(Wide::splat(simd, COSINE[0]), Wide::splat(simd, COSINE[1]));
    for step in 1..4 {
        sine = sine.mul_add(square, Wide::splat(simd, SINE[step]));
        cosine = cosine.mul_add(square, Wide::splat(simd, COSINE[step + 1]));
    }
    let radius = radius_square.sqrt();
    let signed = radius.to_bits().xor(side).to_floats();
    (radius.mul(x).mul(sine), signed.mul(cosine))
}

/// A float in [1, 2) with 23 random bits.
#[inline(always)]
fn one_to_two<S: Simd, const N: usize>(simd: S, word: WideBits<S, N>) -> Wide<S, N> {
    word.shift_right(9).or(WideBits::splat(simd, 0x3f80_0000)).to_floats()
}

/// Uniform on the multiples of 2⁻³² in (0, 1], so that tails reach 6.66σ.
///
/// 23 bits give steps of 2⁻²³; the other 9 bits refine them near zero, where coarse steps would
/// matter. Both differences are exact there.
#[inline(always)]
pub(crate) fn uniform<S: Simd, const N: usize>(simd: S, word: WideBits<S, N>) -> Wide<S, N> {
    const STEP_BASE: f32 = 1.0 / 512.0; // its unit in the last place is 2⁻³²
    let coarse = Wide::splat(simd, 2.0 + STEP_BASE).sub(one_to_two(simd, word));
    let fine = word.and(WideBits::splat(simd, 0x1ff));
    coarse.sub(fine.or(WideBits::splat(simd, STEP_BASE.to_bits())).to_floats())
}
