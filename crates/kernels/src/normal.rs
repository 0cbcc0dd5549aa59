//! Standard normals: xoshiro128+ in every lane, turned by Box–Muller into pairs.
//!
//! The generator was chosen by measurement (`aleator bench normals`) and by the tests in
//! `tests/normals.rs`: moments, tails to 5σ, independence of streams.

use pulp::Simd;

use crate::key::split_mix;
use crate::simd::{LANES, Vectorised, horner, ln, shift_left, shift_right};

/// Where the draws of a block go: draw (outer, inner) is a pair of 16 lanes at
/// `outer · outer_stride + inner · inner_stride`, its second half `pair_stride` further on.
///
/// The sequence runs over `inner` first, so a block with fewer `outer` steps is a prefix of a
/// block with more: noise of a sample does not depend on how many samples follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub outer: usize,
    pub outer_stride: usize,
    pub inner: usize,
    pub inner_stride: usize,
    pub pair_stride: usize,
}

pub(crate) struct FillNormals<'a> {
    pub seed: u64,
    pub shape: BlockShape,
    pub out: &'a mut [f32],
}

impl Vectorised for FillNormals<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        fill_normals(simd, self.seed, self.shape, self.out);
    }
}

/// Fills a block of standard normals.
#[inline(always)]
pub(crate) fn fill_normals<S: Simd>(simd: S, seed: u64, shape: BlockShape, out: &mut [f32]) {
    let mut words = [[0u32; LANES]; 4];
    for (index, word) in split_mix(seed).take(2 * LANES).enumerate() {
        let (lane, half) = (index / 2, index % 2);
        words[2 * half][lane] = word as u32;
        words[2 * half + 1][lane] = (word >> 32) as u32;
    }
    // A lane's state stays in registers over the whole block; the lanes do not interact, so the
    // width of the machine's vectors does not change which draw lands where.
    for first_lane in (0..LANES).step_by(S::F32_LANES) {
        let mut state = [simd.splat_u32s(0); 4];
        for (state, lanes) in state.iter_mut().zip(&words) {
            *state = S::as_simd_u32s(&lanes[first_lane..]).0[0];
        }
        for outer in 0..shape.outer {
            for inner in 0..shape.inner {
                let at = outer * shape.outer_stride + inner * shape.inner_stride + first_lane;
                let (first, second) = box_muller(simd, &mut state);
                store(simd, first, &mut out[at..]);
                store(simd, second, &mut out[at + shape.pair_stride..]);
            }
        }
    }
}

#[inline(always)]
fn store<S: Simd>(_: S, value: S::f32s, to: &mut [f32]) {
    S::as_mut_simd_f32s(&mut to[..S::F32_LANES]).0[0] = value;
}

/// xoshiro128+ (Blackman and Vigna): its upper bits are strong, and only they matter here.
#[inline(always)]
fn next_word<S: Simd>(simd: S, state: &mut [S::u32s; 4]) -> S::u32s {
    let result = simd.add_u32s(state[0], state[3]);
    let shifted = shift_left(simd, state[1], 9);
    state[2] = simd.xor_u32s(state[2], state[0]);
    state[3] = simd.xor_u32s(state[3], state[1]);
    state[1] = simd.xor_u32s(state[1], state[2]);
    state[0] = simd.xor_u32s(state[0], state[3]);
    state[2] = simd.xor_u32s(state[2], shifted);
    state[3] = simd.or_u32s(shift_left(simd, state[3], 11), shift_right(simd, state[3], 21));
    result
}

/// The bits of a float in [1, 2) with 23 random bits.
#[inline(always)]
fn one_to_two<S: Simd>(simd: S, word: S::u32s) -> S::f32s {
    let bits = simd.or_u32s(shift_right(simd, word, 9), simd.splat_u32s(0x3f80_0000));
    simd.transmute_f32s_u32s(bits)
}

#[inline(always)]
fn box_muller<S: Simd>(simd: S, state: &mut [S::u32s; 4]) -> (S::f32s, S::f32s) {
    let radius = radius(simd, next_word(simd, state));
    let (sine, cosine) = point_on_circle(simd, next_word(simd, state));
    (simd.mul_f32s(radius, sine), simd.mul_f32s(radius, cosine))
}

/// √(−2 ln v) for v uniform on the multiples of 2⁻³² in (0, 1]: tails reach 6.66σ.
///
/// 23 bits give v in steps of 2⁻²³; the other 9 refine it where steps that coarse would show,
/// near zero. Both differences are exact there.
#[inline(always)]
fn radius<S: Simd>(simd: S, word: S::u32s) -> S::f32s {
    const STEP_BASE: f32 = 1.0 / 512.0; // its unit in the last place is 2⁻³²
    let coarse = simd.sub_f32s(simd.splat_f32s(2.0 + STEP_BASE), one_to_two(simd, word));
    let fine = simd.and_u32s(word, simd.splat_u32s(0x1ff));
    let fine = simd.or_u32s(fine, simd.splat_u32s(STEP_BASE.to_bits()));
    let uniform = simd.sub_f32s(coarse, simd.transmute_f32s_u32s(fine));
    let squared = simd.mul_f32s(ln(simd, uniform), simd.splat_f32s(-2.0));
    simd.sqrt_f32s(simd.max_f32s(squared, simd.splat_f32s(0.0)))
}

/// (sin, cos) of a uniform angle: the angle runs over a half circle, a spare bit picks the side.
///
/// Minimax polynomials on [−½, ½] in units of π, absolute error below 7e-7.
#[inline(always)]
fn point_on_circle<S: Simd>(simd: S, word: S::u32s) -> (S::f32s, S::f32s) {
    let x = simd.sub_f32s(one_to_two(simd, word), simd.splat_f32s(1.5));
    let square = simd.mul_f32s(x, x);
    let sine = horner(simd, square, [-0.554_636_2, 2.541_899, -5.167_143, 3.141_582]);
    let cosine =
        horner(simd, square, [0.219_696_8, -1.331_880_2, 4.058_412, -4.934_793, 0.999_999_94]);
    let side = simd.and_u32s(shift_left(simd, word, 23), simd.splat_u32s(0x8000_0000));
    let cosine = simd.xor_u32s(simd.transmute_u32s_f32s(cosine), side);
    (simd.mul_f32s(sine, x), simd.transmute_f32s_u32s(cosine))
}
