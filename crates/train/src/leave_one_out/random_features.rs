//! Random features of inputs, in blocks.

use aleator_data::variation::inverse_deviation;
use aleator_kernels::quantile::inverse_normal_cdf;
use aleator_kernels::split_mix;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

/// Names the random features.
const SEED: u64 = 0x6c6f_6f31;
/// The spread of b beside that of Wx, which is 1: some features bend near the origin, some far.
const BIAS_SCALE: f32 = 0.5;

/// Rows of a block that one task computes. Work is divided by position, never by thread, so every
/// number is summed in the same order in any rayon pool.
pub(super) const ROWS: usize = 512;

/// φ, with its mean over the examples taken away.
pub(super) struct RandomFeatures {
    /// W, `[D, M]`.
    weights: Mat<f32>,
    /// b, `[M]`.
    bias: Vec<f32>,
    /// φ̄, `[M]`.
    pub mean: Vec<f32>,
}

impl RandomFeatures {
    /// M directions for inputs whose squares sum to `square` on average.
    pub fn new(width: usize, count: usize, square: f64) -> Self {
        let mut normals = split_mix(SEED).map(|word| inverse_normal_cdf((word >> 32) as u32));
        // Inputs that do not vary are all zero, and no scale makes more of them.
        let scale = inverse_deviation(square);
        let mut draw = || normals.next().expect("endless");
        let weights = Mat::from_fn(width, count, |_, _| scale * draw());
        let bias = (0..count).map(|_| BIAS_SCALE * draw()).collect();
        Self { weights, bias, mean: vec![0.0; count] }
    }

    /// Of inputs `[B, D]`, row by row: `[B, M]`.
    pub fn of(&self, inputs: &[f32]) -> Mat<f32> {
        let width = self.weights.nrows();
        let rows = inputs.len() / width;
        let mut features = Mat::zeros(rows, self.bias.len());
        let tasks = features.par_row_chunks_mut(ROWS).zip(inputs.par_chunks(ROWS * width));
        tasks.for_each(|(mut features, inputs)| {
            let inputs = MatRef::from_row_major_slice(inputs, inputs.len() / width, width);
            matmul(features.as_mut(), Accum::Replace, inputs, &self.weights, 1.0, Par::Seq);
            let columns = features.col_iter_mut().zip(self.bias.iter().zip(&self.mean));
            columns.for_each(|(column, (bias, mean))| {
                column.iter_mut().for_each(|value| *value = (*value + bias).max(0.0) - mean);
            });
        });
        features
    }
}
