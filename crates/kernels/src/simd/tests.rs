//! The functions on vectors of 4, 8 and 16 lanes, and on those of this machine.

use pulp::{Scalar128b, Scalar256b, Scalar512b, WithSimd};

use super::*;
use crate::normal::{BlockShape, FillNormals};

/// Applies one function to sixteen numbers.
struct Apply<'a> {
    function: Function,
    values: &'a mut [f32],
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Exp2,
    Exp,
    Ln,
}

impl Vectorised for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        for chunk in self.values.chunks_exact_mut(LANES) {
            let x = Wide::<S, N>::load(simd, chunk);
            let y = match self.function {
                Function::Exp2 => x.exp2(),
                Function::Exp => x.exp(),
                Function::Ln => x.ln(),
            };
            y.store(chunk);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Four,
    Eight,
    Sixteen,
    Detected,
}

const WIDTHS: [Width; 4] = [Width::Four, Width::Eight, Width::Sixteen, Width::Detected];

fn run_on<Op: Vectorised>(width: Width, op: Op) -> Op::Output {
    match width {
        Width::Four => Adapter(op).with_simd(Scalar128b),
        Width::Eight => Adapter(op).with_simd(Scalar256b),
        Width::Sixteen => Adapter(op).with_simd(Scalar512b),
        Width::Detected => Vectors::Detected.level().run(op),
    }
}

fn grid(low: f32, high: f32) -> Vec<f32> {
    let count = 16 * 4096;
    (0..count).map(|i| low + (high - low) * i as f32 / (count - 1) as f32).collect()
}

fn largest_relative_error(width: Width, function: Function, inputs: &[f32]) -> f64 {
    let mut values = inputs.to_vec();
    run_on(width, Apply { function, values: &mut values });
    let pairs = inputs.iter().zip(&values);
    pairs
        .map(|(x, y)| {
            let x = *x as f64;
            let expected = match function {
                Function::Exp2 => x.exp2(),
                Function::Exp => x.exp(),
                Function::Ln => x.ln(),
            };
            // The logarithm is accurate relative to itself, but not below 2⁻²⁴ near one.
            let scale = if expected == 0.0 { 1.0 } else { expected.abs() };
            (*y as f64 - expected).abs() / scale
        })
        .fold(0.0, f64::max)
}

#[test]
fn exponentials_and_logarithms_keep_their_stated_errors_on_every_width() {
    for width in WIDTHS {
        let error = |function, inputs: &[f32]| largest_relative_error(width, function, inputs);
        let exp2 = error(Function::Exp2, &grid(-126.0, 127.0));
        assert!(exp2 < 2e-7, "{width:?} exp2: {exp2:e}");
        let exp = error(Function::Exp, &grid(-87.0, 88.0));
        // Without fused multiply-add the reduced argument is rounded once more.
        let allowed = if matches!(width, Width::Detected) { 3e-7 } else { 8e-6 };
        assert!(exp < allowed, "{width:?} exp: {exp:e}");
        for (low, high) in [(1e-30, 1e-3), (1e-3, 0.7), (0.7, 1.4), (1.4, 1e6), (1e6, 1e30)] {
            let ln = error(Function::Ln, &grid(low, high));
            assert!(ln < 3e-7, "{width:?} ln on [{low}, {high}]: {ln:e}");
        }
    }
}

#[test]
fn exponentials_of_anything_are_finite_and_positive() {
    for width in WIDTHS {
        let mut values = vec![f32::NEG_INFINITY, -1e30, -1e4, -127.0, 0.0, 127.0, 128.0, 1e30];
        values.resize(16, f32::INFINITY);
        run_on(width, Apply { function: Function::Exp2, values: &mut values });
        assert!(values.iter().all(|y| y.is_finite() && *y > 0.0), "{width:?}: {values:?}");
    }
}

#[test]
fn every_width_draws_the_same_normals() {
    let drawn = WIDTHS.map(|width| {
        let mut out = vec![0.0; 40 * 2 * LANES];
        let shape = BlockShape {
            outer: 40,
            outer_stride: 2 * LANES,
            inner: 1,
            inner_stride: 0,
            pair_stride: LANES,
        };
        run_on(width, FillNormals { seed: 12, shape, out: &mut out });
        out
    });
    for other in &drawn[1..] {
        for (a, b) in drawn[0].iter().zip(other) {
            // From the same random bits, rounded with or without fused multiply-add.
            assert!((a - b).abs() < 4e-6, "{a} {b}");
        }
    }
}
