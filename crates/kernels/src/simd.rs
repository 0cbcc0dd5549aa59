//! Sixteen logical lanes on whatever vectors the machine has, and the functions we need on them.
//!
//! A [`Wide`] is `16 / S::F32_LANES` hardware vectors, so every loop of this crate is written once
//! for SSE-free portable code, AVX2, AVX-512 and NEON, and a draw has the same place in its block
//! on each of them. Each function states its error; `tests/simd.rs` holds it to that.

use pulp::{Arch, Scalar256b, Simd, WithSimd};

/// Logical lanes of a [`Wide`].
pub const LANES: usize = 16;

/// Which vector instructions to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// The best that this machine has, found at run time.
    Detected,
    /// Plain Rust that runs everywhere; what a machine without AVX2 or NEON uses.
    Portable,
}

/// A computation written for any vector width: `N` hardware vectors make 16 lanes.
pub(crate) trait Vectorised {
    type Output;
    fn run<S: Simd, const N: usize>(self, simd: S) -> Self::Output;
}

struct Adapter<Op>(Op);

impl<Op: Vectorised> WithSimd for Adapter<Op> {
    type Output = Op::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Op::Output {
        match S::F32_LANES {
            1 => self.0.run::<S, 16>(simd),
            4 => self.0.run::<S, 4>(simd),
            8 => self.0.run::<S, 2>(simd),
            16 => self.0.run::<S, 1>(simd),
            lanes => unreachable!("vectors of {lanes} lanes do not divide {LANES}"),
        }
    }
}

impl Vectors {
    pub(crate) fn run<Op: Vectorised>(self, op: Op) -> Op::Output {
        match self {
            Self::Portable => Scalar256b.vectorize(Adapter(op)),
            Self::Detected => match Arch::new() {
                #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                Arch::Scalar => Scalar256b.vectorize(Adapter(op)),
                arch => arch.dispatch(Adapter(op)),
            },
        }
    }
}

/// Lane by lane, vector by vector. Loops, not closures: a closure is compiled without the vector
/// instructions of the function around it unless it happens to be inlined.
macro_rules! each_part {
    (binary $name:ident, $op:ident) => {
        #[inline(always)]
        pub fn $name(mut self, other: Self) -> Self {
            for n in 0..N {
                self.parts[n] = self.simd.$op(self.parts[n], other.parts[n]);
            }
            self
        }
    };
    (unary $name:ident, $op:ident) => {
        #[inline(always)]
        pub fn $name(mut self) -> Self {
            for n in 0..N {
                self.parts[n] = $op(self.simd, self.parts[n]);
            }
            self
        }
    };
}

/// Sixteen f32 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S: Simd, const N: usize> {
    simd: S,
    parts: [S::f32s; N],
}

impl<S: Simd, const N: usize> Wide<S, N> {
    #[inline(always)]
    pub fn splat(simd: S, value: f32) -> Self {
        Self { simd, parts: [simd.splat_f32s(value); N] }
    }

    /// Loads the first 16 floats of a slice.
    #[inline(always)]
    pub fn load(simd: S, from: &[f32]) -> Self {
        let (vectors, _) = S::as_simd_f32s(&from[..LANES]);
        let mut parts = [simd.splat_f32s(0.0); N];
        for n in 0..N {
            parts[n] = vectors[n];
        }
        Self { simd, parts }
    }

    /// Stores into the first 16 floats of a slice.
    #[inline(always)]
    pub fn store(self, to: &mut [f32]) {
        let (vectors, _) = S::as_mut_simd_f32s(&mut to[..LANES]);
        for n in 0..N {
            vectors[n] = self.parts[n];
        }
    }

    each_part!(binary add, add_f32s);
    each_part!(binary sub, sub_f32s);
    each_part!(binary mul, mul_f32s);
    each_part!(binary div, div_f32s);
    each_part!(binary max, max_f32s);
    each_part!(unary exp2, exp2);
    each_part!(unary log2, log2);

    /// `self · factor + addend`, fused where the machine can.
    #[inline(always)]
    pub fn mul_add(mut self, factor: Self, addend: Self) -> Self {
        for n in 0..N {
            let (a, b, c) = (self.parts[n], factor.parts[n], addend.parts[n]);
            self.parts[n] = self.simd.mul_add_e_f32s(a, b, c);
        }
        self
    }

    /// The sum of the lanes.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let mut total = self.parts[0];
        for n in 1..N {
            total = self.simd.add_f32s(total, self.parts[n]);
        }
        self.simd.reduce_sum_f32s(total)
    }

    /// The largest lane.
    #[inline(always)]
    pub fn maximum(self) -> f32 {
        let mut largest = self.parts[0];
        for n in 1..N {
            largest = self.simd.max_f32s(largest, self.parts[n]);
        }
        self.simd.reduce_max_f32s(largest)
    }
}

/// Evaluates a polynomial by Horner's rule, highest coefficient first.
#[inline(always)]
pub(crate) fn horner<S: Simd, const C: usize>(
    simd: S,
    x: S::f32s,
    coefficients: [f32; C],
) -> S::f32s {
    let mut sum = simd.splat_f32s(coefficients[0]);
    for coefficient in &coefficients[1..] {
        sum = simd.mul_add_e_f32s(sum, x, simd.splat_f32s(*coefficient));
    }
    sum
}

#[inline(always)]
pub(crate) fn shift_left<S: Simd>(simd: S, x: S::u32s, bits: u32) -> S::u32s {
    simd.wrapping_dyn_shl_u32s(x, simd.splat_u32s(bits))
}

#[inline(always)]
pub(crate) fn shift_right<S: Simd>(simd: S, x: S::u32s, bits: u32) -> S::u32s {
    simd.wrapping_dyn_shr_u32s(x, simd.splat_u32s(bits))
}

/// 2^x, relative error below 2e-7 on [−126, 127]; smaller arguments give 2^−126, larger 2^127.
///
/// The polynomial is the minimax one of degree 5 on [−½, ½] with its constant pinned to 1.
#[inline(always)]
pub(crate) fn exp2<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Adding 1.5·2²³ rounds to an integer and leaves it in the low bits of the mantissa.
    let magic = simd.splat_f32s(12_582_912.0);
    let x = simd.max_f32s(x, simd.splat_f32s(-126.0));
    let x = simd.min_f32s(x, simd.splat_f32s(127.0));
    let shifted = simd.add_f32s(x, magic);
    let fraction = simd.sub_f32s(x, simd.sub_f32s(shifted, magic));
    power_of_two(simd, shifted, fraction)
}

/// e^x, relative error below 3e-7 on [−87, 88]; arguments beyond are clamped to these.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // log₂ e in two parts, so that the fraction keeps its bits when x is large.
    const HIGH: f32 = 1.442_695;
    const LOW: f32 = 1.925_963_2e-8;
    let magic = simd.splat_f32s(12_582_912.0);
    let x = simd.max_f32s(x, simd.splat_f32s(-87.0));
    let x = simd.min_f32s(x, simd.splat_f32s(88.0));
    let shifted = simd.mul_add_e_f32s(x, simd.splat_f32s(HIGH), magic);
    let whole = simd.sub_f32s(shifted, magic);
    let fraction = simd.mul_add_e_f32s(x, simd.splat_f32s(HIGH), simd.neg_f32s(whole));
    let fraction = simd.mul_add_e_f32s(x, simd.splat_f32s(LOW), fraction);
    power_of_two(simd, shifted, fraction)
}

/// 2^(n + f) with the integer n in the low bits of `shifted` and f in [−½, ½].
#[inline(always)]
fn power_of_two<S: Simd>(simd: S, shifted: S::f32s, fraction: S::f32s) -> S::f32s {
    let power = horner(
        simd,
        fraction,
        [0.001_326_472_7, 0.009_671_513, 0.055_507_336, 0.240_222_42, 0.693_147, 1.0],
    );
    let exponent = shift_left(simd, simd.transmute_u32s_f32s(shifted), 23);
    simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(power), exponent))
}

/// ln x for normal positive x, relative error below 2e-7 (absolute near 1).
///
/// The polynomial is ln(1+f)/f, minimax of degree 8 on [√½−1, √2−1] with its constant pinned to 1.
#[inline(always)]
pub(crate) fn ln<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const BIAS: u32 = 128 << 23;
    let bits = simd.transmute_u32s_f32s(x);
    let offset = simd.sub_u32s(bits, simd.splat_u32s(SQRT_HALF));
    // The exponent plus 128 is in [0, 256): or-ing it into the mantissa of 2²³ converts it.
    let exponent = shift_right(simd, simd.add_u32s(offset, simd.splat_u32s(BIAS)), 23);
    let exponent = simd.transmute_f32s_u32s(simd.or_u32s(exponent, simd.splat_u32s(0x4b00_0000)));
    let exponent = simd.sub_f32s(exponent, simd.splat_f32s(8_388_608.0 + 128.0));
    let whole = simd.and_u32s(offset, simd.splat_u32s(0xff80_0000));
    let mantissa = simd.transmute_f32s_u32s(simd.sub_u32s(bits, whole));
    let f = simd.sub_f32s(mantissa, simd.splat_f32s(1.0));
    let series = horner(
        simd,
        f,
        [
            0.087_348_364,
            -0.143_075_18,
            0.149_179_74,
            -0.165_705_08,
            0.199_620_72,
            -0.250_017_55,
            0.333_339_5,
            -0.499_999_9,
            1.0,
        ],
    );
    // ln 2 in two parts: the product of the first with any exponent is exact.
    let low =
        simd.mul_add_e_f32s(exponent, simd.splat_f32s(-2.121_944_4e-4), simd.mul_f32s(f, series));
    simd.mul_add_e_f32s(exponent, simd.splat_f32s(0.693_359_375), low)
}

/// log₂ x for normal positive x, with the error of [`ln`].
#[inline(always)]
pub(crate) fn log2<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    simd.mul_f32s(ln(simd, x), simd.splat_f32s(core::f32::consts::LOG2_E))
}
