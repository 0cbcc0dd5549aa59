//! A few coordinates in which points are as far apart as possible.
//!
//! The coordinates are those in the leading subspace Q of the points, and as the last one the
//! length of what is left of a point. By the triangle inequality
//! `‖Qᵀ(x − y)‖² + (‖x − QQᵀx‖ − ‖y − QQᵀy‖)² ≤ ‖x − y‖²`: distances never come out larger than
//! they are, so that points that are almost equal are never missed.

use rayon::prelude::*;

use super::{Points, hash, sample, square};
use crate::dense::{DenseShape, backward_weight, forward};

/// Points that the subspace is computed from.
const SAMPLE: usize = 4096;
/// Iterations of the power method. Any subspace gives right results; a better one needs fewer
/// candidates.
const ITERATIONS: usize = 5;
/// Points that are projected by one task.
const ROWS: usize = 1024;

pub(super) struct Subspace {
    width: usize,
    /// Q, `[D, directions]`, orthonormal columns or zeros.
    basis: Vec<f32>,
    directions: usize,
}

impl Subspace {
    /// The leading subspace of a sample of the points, by subspace iteration from a fixed start.
    pub fn of(points: &Points, coordinates: usize) -> Self {
        let width = points.mean.len();
        let directions = coordinates - 1;
        let chosen = sample(points.len(), SAMPLE);
        let rows: Vec<f32> = chosen.iter().flat_map(|at| points.centred(*at as usize)).collect();
        let shape = DenseShape { batch: chosen.len(), inputs: width, outputs: directions };
        let uniform = |at: usize| (hash(at as u64) >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        let mut basis: Vec<f32> = (0..width * directions).map(uniform).collect();
        orthonormalise(&mut basis, directions);
        let mut projected = vec![0.0; chosen.len() * directions];
        for _ in 0..ITERATIONS {
            forward(&rows, &basis, None, &mut projected, shape);
            backward_weight(&rows, &projected, &mut basis, shape);
            orthonormalise(&mut basis, directions);
        }
        Self { width, basis, directions }
    }

    /// The coordinates of all points, `[N, directions + 1]`.
    pub fn coordinates(&self, points: &Points) -> Vec<f32> {
        let Self { width, directions, .. } = *self;
        let mut out = vec![0.0; points.len() * (directions + 1)];
        out.par_chunks_mut(ROWS * (directions + 1)).enumerate().for_each(|(task, out)| {
            let batch = out.len() / (directions + 1);
            let shape = DenseShape { batch, inputs: width, outputs: directions };
            let rows: Vec<f32> =
                (task * ROWS..).take(batch).flat_map(|at| points.centred(at)).collect();
            let mut projected = vec![0.0; batch * directions];
            forward(&rows, &self.basis, None, &mut projected, shape);
            for (at, out) in out.chunks_exact_mut(directions + 1).enumerate() {
                let projected = &projected[at * directions..][..directions];
                out[..directions].copy_from_slice(projected);
                let rest = square(&rows[at * width..][..width]) - square(projected);
                out[directions] = rest.max(0.0).sqrt() as f32;
            }
        });
        out
    }
}

/// Makes the columns of `basis` `[D, columns]` orthonormal (Gram and Schmidt, twice, in f64);
/// columns that depend on earlier ones become zero.
fn orthonormalise(basis: &mut [f32], columns: usize) {
    let width = basis.len() / columns.max(1);
    let mut done: Vec<Vec<f64>> = vec![];
    for column in 0..columns {
        let mut own: Vec<f64> =
            (0..width).map(|row| f64::from(basis[row * columns + column])).collect();
        let before = norm(&own);
        for _ in 0..2 {
            for other in &done {
                let along: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(own, other)| *own -= along * other);
            }
        }
        let after = norm(&own);
        // What is left of a dependent column is rounding of f32.
        let scale = if after > 1e-5 * before { 1.0 / after } else { 0.0 };
        own.iter_mut().for_each(|value| *value *= scale);
        own.iter()
            .enumerate()
            .for_each(|(row, value)| basis[row * columns + column] = *value as f32);
        done.push(own);
    }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}
