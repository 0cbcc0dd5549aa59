//! The parts of the likelihood, each by itself and in cache: the most that the machine can do.
//!
//! They are timed in the same run as the likelihood, so that its distance from the sum of its parts
//! is a ratio of measurements on one machine.

use std::hint::black_box;

use pulp::Simd;

use crate::normal::{BlockShape, FillNormals};
use crate::simd::{LANES, Vectorised, Vectors, Wide};

/// Floats that stay in the first-level cache.
const CACHED: usize = 4096;

/// Draws `count` standard normals into cache, rounded up to whole blocks; returns one of them, so
/// that the compiler cannot remove the work.
pub fn normals(count: usize) -> f32 {
    let mut buffer = vec![0.0; CACHED];
    let shape = BlockShape {
        outer: CACHED / (2 * LANES),
        outer_stride: 2 * LANES,
        inner: 1,
        inner_stride: 0,
        pair_stride: LANES,
    };
    let level = Vectors::Detected.level();
    for seed in 0..count.div_ceil(CACHED) as u64 {
        level.run(FillNormals { seed, shape, out: &mut buffer });
    }
    buffer[0]
}

/// Computes `count` exponentials in cache, rounded up to whole blocks.
pub fn exponentials(count: usize) -> f32 {
    let mut buffer: Vec<f32> = (0..CACHED).map(|i| -(i as f32) / CACHED as f32).collect();
    for _ in 0..count.div_ceil(CACHED) {
        Vectors::Detected.level().run(Exponentials { buffer: &mut buffer });
    }
    buffer[0]
}

struct Exponentials<'a> {
    buffer: &'a mut [f32],
}

impl Vectorised for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        for entry in self.buffer.chunks_exact_mut(LANES) {
            Wide::<S, N>::load(simd, entry).exp2().store(entry);
        }
    }
}

/// Computes `count` multiply-adds in registers, rounded up to whole blocks.
pub fn multiply_adds(count: usize) -> f32 {
    Vectors::Detected.level().run(MultiplyAdds { count })
}

struct MultiplyAdds {
    count: usize,
}

impl Vectorised for MultiplyAdds {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) -> f32 {
        // Enough independent sums to hide the latency of the operation on every machine.
        const SUMS: usize = 6;
        let mut sums = [Wide::<S, N>::splat(simd, 1.0); SUMS];
        // Hidden from the compiler, which could otherwise compute the fixed point of the sums.
        let (factor, addend) = black_box((0.5, 0.5));
        let (factor, addend) = (Wide::splat(simd, factor), Wide::splat(simd, addend));
        for _ in 0..self.count.div_ceil(SUMS * LANES) {
            for sum in &mut sums {
                *sum = sum.mul_add(factor, addend);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = total.add(*sum);
        }
        total.sum()
    }
}
