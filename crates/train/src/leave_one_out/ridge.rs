//! The regression at one penalty, as it predicts every example by all others.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::{
    qr_in_place, qr_in_place_scratch, recommended_block_size,
};
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::random_features::ROWS;
use super::{Fit, TASKS};

/// Columns of a product that are computed at a time: with [`ROWS`] rows they stay in the L2 cache.
const COLUMNS: usize = 256;
/// The least part of a prediction that the other examples must have.
const LEAST_REST: f64 = 1e-6;

/// A [`Fit`] with one λ.
pub(super) struct Ridge<'a> {
    fit: &'a Fit,
    /// (ΦᵀΦ + λ)⁻¹ Φᵀ Y, `[M, K]`.
    weights: Mat<f32>,
    /// L, lower triangular, with L Lᵀ = (ΦᵀΦ + λ)⁻¹: the leverage of φ is ‖Lᵀφ‖², by half the
    /// multiplications that the eigenvectors would take.
    root: Mat<f32>,
}

impl<'a> Ridge<'a> {
    pub fn new(fit: &'a Fit, penalty: f64) -> Self {
        let (count, classes) = (fit.values.len(), fit.mean.len());
        let shrink: Vec<f64> = fit.values.iter().map(|value| 1.0 / (value + penalty)).collect();
        let loads = Mat::from_fn(count, classes, |at, class| shrink[at] * fit.loads[(at, class)]);
        let mut weights = Mat::<f64>::zeros(count, classes);
        matmul(weights.as_mut(), Accum::Replace, &fit.vectors, &loads, 1.0, Par::Seq);
        // (V S Vᵀ) = (√S Vᵀ)ᵀ (√S Vᵀ) = RᵀQᵀQR = RᵀR, so L = Rᵀ.
        let scaled = Mat::from_fn(count, count, |at, feature| {
            shrink[at].sqrt() * fit.vectors[(feature, at)]
        });
        let upper = triangle(scaled);
        let root = Mat::from_fn(count, count, |row, column| match row < column {
            true => 0.0,
            false => upper[(column, row)] as f32,
        });
        Self { fit, weights: rounded(&weights), root }
    }

    /// The predictions of examples by all others, `[B, K]`, from their features and targets.
    pub fn left_out(&self, features: &Mat<f32>, targets: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; targets.len()];
        let classes = self.fit.mean.len();
        let tasks = out.par_chunks_mut(ROWS * classes).zip(targets.par_chunks(ROWS * classes));
        let tasks = tasks.zip(features.par_row_chunks(ROWS));
        tasks.for_each(|((out, targets), features)| {
            let mut fitted = Mat::zeros(features.nrows(), classes);
            matmul(fitted.as_mut(), Accum::Replace, features, &self.weights, 1.0, Par::Seq);
            let leverages = self.leverages(features);
            self.fit.leave_out(&fitted, &leverages, targets, out);
        });
        out
    }

    /// ‖Lᵀφ‖² of every row.
    fn leverages(&self, features: MatRef<'_, f32>) -> Vec<f64> {
        let count = features.ncols();
        let mut leverages = vec![0.0; features.nrows()];
        let mut projected = Mat::<f32>::zeros(features.nrows(), COLUMNS.min(count));
        for start in (0..count).step_by(COLUMNS) {
            let width = COLUMNS.min(count - start);
            // Above its diagonal L is zero.
            let left = features.subcols(start, count - start);
            let right = self.root.as_ref().submatrix(start, start, count - start, width);
            let mut projected = projected.as_mut().subcols_mut(0, width);
            matmul(projected.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
            for column in projected.as_ref().col_iter() {
                let squares = leverages.iter_mut().zip(column.iter());
                squares.for_each(|(sum, value)| *sum += f64::from(value * value));
            }
        }
        leverages
    }
}

impl Fit {
    /// ŷ₋ᵢ of some rows from their ŷ, without its mean, and their leverages, without 1/N.
    pub(super) fn leave_out(
        &self,
        fitted: &Mat<f32>,
        leverages: &[f64],
        targets: &[f32],
        out: &mut [f32],
    ) {
        let classes = self.mean.len();
        let rows = out.chunks_exact_mut(classes).zip(targets.chunks_exact(classes));
        for (row, ((out, targets), leverage)) in rows.zip(leverages).enumerate() {
            // An example that alone decides its own fit is predicted by nothing.
            let rest = (1.0 - leverage - 1.0 / self.examples as f64).max(LEAST_REST) as f32;
            for (class, (out, target)) in out.iter_mut().zip(targets).enumerate() {
                *out = target - (target - self.mean[class] - fitted[(row, class)]) / rest;
            }
        }
    }
}

/// R of the QR decomposition; below its diagonal stands something else.
fn triangle(mut matrix: Mat<f64>) -> Mat<f64> {
    let size = matrix.nrows();
    let block = recommended_block_size::<f64>(size, size);
    let mut householder = Mat::zeros(block, size);
    let needed = qr_in_place_scratch::<f64>(size, size, block, TASKS, Default::default());
    qr_in_place(
        matrix.as_mut(),
        householder.as_mut(),
        TASKS,
        MemStack::new(&mut MemBuffer::new(needed)),
        Default::default(),
    );
    matrix
}

pub(super) fn rounded(matrix: &Mat<f64>) -> Mat<f32> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |row, column| matrix[(row, column)] as f32)
}
