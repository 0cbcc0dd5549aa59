//! Sixteen logical lanes on vectors of any width, and the functions that the likelihood needs.
//!
//! A [`Wide`] is `16 / S::F32_LANES` hardware vectors. Every loop of the likelihood is written once
//! for portable code, AVX2, AVX-512 and NEON, and a draw has the same position in its block on all
//! of them. Each function states its error, which the tests check.

use pulp::{Arch, Scalar256b, Simd, WithSimd};

/// Logical lanes of a [`Wide`].
pub(crate) const LANES: usize = 16;

/// Which vector instructions to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// The best of this machine, detected at run time.
    Detected,
    /// Plain Rust that runs everywhere; used on machines without AVX2 or NEON.
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
            4 => self.0.run::<S, 4>(simd),
            8 => self.0.run::<S, 2>(simd),
            16 => self.0.run::<S, 1>(simd),
            lanes => unreachable!("vectors of {lanes} lanes do not divide {LANES}"),
        }
    }
}

/// Vector instructions that this machine is known to have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    Avx2(pulp::x86::V3),
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    Avx512(pulp::x86::V4),
    #[cfg(target_arch = "aarch64")]
    Neon(pulp::aarch64::Neon),
    Portable,
}

impl Vectors {
    /// Detects the instructions once per call, not once per operation.
    pub(crate) fn level(self) -> Level {
        match (self, Arch::new()) {
            (Self::Portable, _) => Level::Portable,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            (Self::Detected, Arch::V3(simd)) => Level::Avx2(simd),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            (Self::Detected, Arch::V4(simd)) => Level::Avx512(simd),
            #[cfg(target_arch = "aarch64")]
            (Self::Detected, Arch::Neon(simd)) => Level::Neon(simd),
            // Not pulp's fallback of one lane, which is slower to run and to build.
            (Self::Detected, _) => Level::Portable,
        }
    }
}

impl Level {
    /// Every operation is compiled once for each level, so operations should be few and large.
    pub(crate) fn run<Op: Vectorised>(self, op: Op) -> Op::Output {
        match self {
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Self::Avx2(simd) => Simd::vectorize(simd, Adapter(op)),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Self::Avx512(simd) => Simd::vectorize(simd, Adapter(op)),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => Simd::vectorize(simd, Adapter(op)),
            Self::Portable => Scalar256b.vectorize(Adapter(op)),
        }
    }
}

/// An operation on each vector. These are loops because a closure that is not inlined is compiled
/// without the vector instructions of its caller. Every operation runs over all vectors before the
/// next one starts, so that the dependency chains of several vectors interleave.
macro_rules! each_part {
    ($name:ident, $op:ident) => {
        #[inline(always)]
        pub fn $name(mut self, other: Self) -> Self {
            for n in 0..N {
                self.parts[n] = self.simd.$op(self.parts[n], other.parts[n]);
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

    /// Wraps hardware vectors; with N = 1, the functions below run on a single one.
    #[inline(always)]
    pub fn of(simd: S, parts: [S::f32s; N]) -> Self {
        Self { simd, parts }
    }

    #[inline(always)]
    pub fn parts(self) -> [S::f32s; N] {
        self.parts
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

    each_part!(add, add_f32s);
    each_part!(sub, sub_f32s);
    each_part!(mul, mul_f32s);
    each_part!(div, div_f32s);
    each_part!(max, max_f32s);
    each_part!(min, min_f32s);

    /// `self · factor + addend`, fused if the machine supports it.
    #[inline(always)]
    pub fn mul_add(mut self, factor: Self, addend: Self) -> Self {
        for n in 0..N {
            let (a, b, c) = (self.parts[n], factor.parts[n], addend.parts[n]);
            self.parts[n] = self.simd.mul_add_e_f32s(a, b, c);
        }
        self
    }

    /// `negative` in the lanes below zero, `other` in the rest.
    #[inline(always)]
    pub fn negative_or(mut self, negative: Self, other: Self) -> Self {
        for n in 0..N {
            let mask = self.simd.less_than_f32s(self.parts[n], self.simd.splat_f32s(0.0));
            self.parts[n] = self.simd.select_f32s(mask, negative.parts[n], other.parts[n]);
        }
        self
    }

    /// The vectors folded into one by addition; the sum of its lanes is that of all lanes.
    #[inline(always)]
    pub fn fold_sum(self) -> Wide<S, 1> {
        let mut total = self.parts[0];
        for n in 1..N {
            total = self.simd.add_f32s(total, self.parts[n]);
        }
        Wide { simd: self.simd, parts: [total] }
    }

    /// The vectors folded into one by maximum.
    #[inline(always)]
    pub fn fold_max(self) -> Wide<S, 1> {
        let mut largest = self.parts[0];
        for n in 1..N {
            largest = self.simd.max_f32s(largest, self.parts[n]);
        }
        Wide { simd: self.simd, parts: [largest] }
    }

    /// The sum of the lanes.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        self.simd.reduce_sum_f32s(self.fold_sum().parts[0])
    }

    /// The largest lane.
    #[inline(always)]
    pub fn maximum(self) -> f32 {
        self.simd.reduce_max_f32s(self.fold_max().parts[0])
    }

    #[inline(always)]
    pub fn sqrt(mut self) -> Self {
        for n in 0..N {
            self.parts[n] = self.simd.sqrt_f32s(self.parts[n]);
        }
        self
    }

    /// The bits of the lanes.
    #[inline(always)]
    pub fn to_bits(self) -> WideBits<S, N> {
        let simd = self.simd;
        let mut parts = [simd.splat_u32s(0); N];
        for n in 0..N {
            parts[n] = simd.transmute_u32s_f32s(self.parts[n]);
        }
        WideBits { simd, parts }
    }

    /// A polynomial in the lanes by Horner's rule, highest coefficient first.
    #[inline(always)]
    pub fn polynomial<const C: usize>(self, coefficients: [f32; C]) -> Self {
        let mut sum = Self::splat(self.simd, coefficients[0]);
        for coefficient in &coefficients[1..] {
            sum = sum.mul_add(self, Self::splat(self.simd, *coefficient));
        }
        sum
    }

    /// 2^x with a relative error below 2e-7; arguments are clamped to [−126, 127].
    #[inline(always)]
    pub fn exp2(self) -> Self {
        let (low, high) = (Self::splat(self.simd, -126.0), Self::splat(self.simd, 127.0));
        self.max(low).min(high).exp2_in_range()
    }

    /// 2^x for x ≤ 0, with the error of [`Wide::exp2`] and one clamp less.
    #[inline(always)]
    pub fn exp2_of_negative(self) -> Self {
        self.max(Self::splat(self.simd, -126.0)).exp2_in_range()
    }

    #[inline(always)]
    fn exp2_in_range(self) -> Self {
        let magic = Self::splat(self.simd, ROUND_TO_INTEGER);
        let shifted = self.add(magic);
        power_of_two(shifted, self.sub(shifted.sub(magic)))
    }

    /// e^x with a relative error below 3e-7 with fused multiply-add and 8e-6 without; arguments are
    /// clamped to [−87, 88].
    #[inline(always)]
    pub fn exp(self) -> Self {
        // log₂ e in two parts, so that the fraction keeps its bits when x is large.
        const HIGH: f32 = core::f32::consts::LOG2_E;
        const LOW: f32 = 1.925_963e-8;
        let simd = self.simd;
        let magic = Self::splat(simd, ROUND_TO_INTEGER);
        let x = self.max(Self::splat(simd, -87.0)).min(Self::splat(simd, 88.0));
        let shifted = x.mul_add(Self::splat(simd, HIGH), magic);
        let fraction = x.mul_add(Self::splat(simd, HIGH), magic.sub(shifted));
        power_of_two(shifted, x.mul_add(Self::splat(simd, LOW), fraction))
    }

    /// x = 2^e (1 + f) with f in [√½ − 1, √2 − 1), for normal positive x: (e, f).
    #[inline(always)]
    pub fn split_exponent(self) -> (Self, Self) {
        const SQRT_HALF: u32 = 0x3f35_04f3;
        let simd = self.simd;
        let bits = self.to_bits();
        let offset = bits.sub(WideBits::splat(simd, SQRT_HALF));
        // The exponent plus 128 is in [0, 256): or-ing it into the mantissa of 2²³ converts it.
        let exponent = offset.add(WideBits::splat(simd, 128 << 23)).shift_right(23);
        let exponent = exponent.or(WideBits::splat(simd, 0x4b00_0000)).to_floats();
        let exponent = exponent.sub(Self::splat(simd, 8_388_608.0 + 128.0));
        let whole = offset.and(WideBits::splat(simd, 0xff80_0000));
        (exponent, bits.sub(whole).to_floats().sub(Self::splat(simd, 1.0)))
    }

    /// ln x for normal positive x, relative error below 3e-7.
    ///
    /// The polynomial is ln(1+f)/f, minimax of degree 8 on [√½−1, √2−1], constant pinned to 1.
    #[inline(always)]
    pub fn ln(self) -> Self {
        let simd = self.simd;
        let (exponent, f) = self.split_exponent();
        let series = f.polynomial([
            0.087_348_364,
            -0.143_075_18,
            0.149_179_74,
            -0.165_705_08,
            0.199_620_72,
            -0.250_017_55,
            0.333_339_5,
            -0.499_999_9,
            1.0,
        ]);
        // ln 2 in two parts: the product of the first with any exponent is exact.
        let low = exponent.mul_add(Self::splat(simd, -2.121_944_4e-4), f.mul(series));
        exponent.mul_add(Self::splat(simd, 0.693_359_4), low)
    }

    /// log₂ x, with the error of [`Wide::ln`].
    #[inline(always)]
    pub fn log2(self) -> Self {
        self.ln().mul(Self::splat(self.simd, core::f32::consts::LOG2_E))
    }
}

/// Adding 1.5·2²³ rounds to an integer and leaves it in the low bits of the mantissa.
const ROUND_TO_INTEGER: f32 = 12_582_912.0;

/// 2^(n + f) with the integer n in the low bits of `shifted` and f in [−½, ½].
///
/// The polynomial is the minimax one of degree 5 with its constant pinned to 1.
#[allow(clippy::approx_constant, reason = "a minimax coefficient near ln 2, not ln 2")]
#[inline(always)]
fn power_of_two<S: Simd, const N: usize>(shifted: Wide<S, N>, fraction: Wide<S, N>) -> Wide<S, N> {
    let power = fraction.polynomial([
        0.001_326_472_7,
        0.009_671_513,
        0.055_507_336,
        0.240_222_42,
        0.693_147,
        1.0,
    ]);
    power.to_bits().add(shifted.to_bits().shift_left(23)).to_floats()
}

/// Sixteen u32 lanes.
#[derive(Clone, Copy)]
pub(crate) struct WideBits<S: Simd, const N: usize> {
    simd: S,
    parts: [S::u32s; N],
}

impl<S: Simd, const N: usize> WideBits<S, N> {
    #[inline(always)]
    pub fn splat(simd: S, value: u32) -> Self {
        Self { simd, parts: [simd.splat_u32s(value); N] }
    }

    #[inline(always)]
    pub fn load(simd: S, from: &[u32]) -> Self {
        let (vectors, _) = S::as_simd_u32s(&from[..LANES]);
        let mut parts = [simd.splat_u32s(0); N];
        for n in 0..N {
            parts[n] = vectors[n];
        }
        Self { simd, parts }
    }

    #[inline(always)]
    pub fn store(self, to: &mut [u32]) {
        let (vectors, _) = S::as_mut_simd_u32s(&mut to[..LANES]);
        for n in 0..N {
            vectors[n] = self.parts[n];
        }
    }

    each_part!(add, add_u32s);
    each_part!(sub, sub_u32s);
    each_part!(and, and_u32s);
    each_part!(or, or_u32s);
    each_part!(xor, xor_u32s);
    each_part!(shift_left_by, wrapping_dyn_shl_u32s);
    each_part!(shift_right_by, wrapping_dyn_shr_u32s);

    #[inline(always)]
    pub fn shift_left(self, bits: u32) -> Self {
        self.shift_left_by(Self::splat(self.simd, bits))
    }

    #[inline(always)]
    pub fn shift_right(self, bits: u32) -> Self {
        self.shift_right_by(Self::splat(self.simd, bits))
    }

    /// The floats that have these bits.
    #[inline(always)]
    pub fn to_floats(self) -> Wide<S, N> {
        let simd = self.simd;
        let mut parts = [simd.splat_f32s(0.0); N];
        for n in 0..N {
            parts[n] = simd.transmute_f32s_u32s(self.parts[n]);
        }
        Wide { simd, parts }
    }
}

#[cfg(test)]
#[path = "simd/tests.rs"] // the benchmarks compile this file from another directory
mod tests;
