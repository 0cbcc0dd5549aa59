//! The products of `backward_weight` and `backward_features`, divided into tasks.

use super::DenseShape;
use super::tile::{
    Groups, ROWS, Row, column_chunks, multiply, pack_columns, pack_panels, pack_transposed, store,
    width, zeros,
};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

// ---- backward_weight: tasks own rows of `grad_weight`, all of `grad_out` is packed once ----

/// Rows of `grad_weight` per task.
const WEIGHT_ROWS: usize = 8 * ROWS;
/// Numbers of the packed `grad_out` that stay in L2 while all row groups of a task use them.
const RESIDENT: usize = 32 * 1024;

pub(super) struct BackwardWeight<'a> {
    pub(super) features: &'a [f32],
    pub(super) grad_out: &'a [f32],
    pub(super) grad_weight: &'a mut [f32],
    pub(super) shape: DenseShape,
}

impl WithSimd for BackwardWeight<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { features, grad_out, grad_weight, shape } = self;
        if shape.batch == 0 || shape.outputs == 0 {
            return grad_weight.fill(0.0);
        }
        let right = &pack_panels(simd, grad_out, shape.batch, shape.outputs);
        grad_weight.par_chunks_mut(WEIGHT_ROWS * shape.outputs).enumerate().for_each(
            |(index, out)| {
                let first = index * WEIGHT_ROWS;
                simd.vectorize(
                    #[inline(always)]
                    || weight_rows(simd, features, right, first, out, shape),
                );
            },
        );
    }
}

#[inline(always)]
fn weight_rows<S: Simd>(
    simd: S,
    features: &[f32],
    right: &[Row<S>],
    first: usize,
    out: &mut [f32],
    shape: DenseShape,
) {
    let DenseShape { batch, inputs, outputs } = shape;
    let groups = Groups::of(out.len() / outputs);
    let left = pack_columns(&features[first..], inputs, batch, groups);
    let columns = (RESIDENT / batch).next_multiple_of(width::<S>());
    for start in (0..outputs).step_by(columns) {
        let block = start..outputs.min(start + columns);
        for (group, left) in left.chunks_exact(batch).enumerate() {
            let rows = groups.range(group);
            for column in block.clone().step_by(width::<S>()) {
                let panel = &right[column / width::<S>() * batch..][..batch];
                let tile = multiply(
                    simd,
                    rows.len(),
                    left.iter().copied().zip(panel.iter().copied()),
                    zeros(simd),
                );
                let end = block.end.min(column + width::<S>());
                for (row, values) in rows.clone().zip(tile) {
                    store(simd, &mut out[row * outputs..][column..end], values);
                }
            }
        }
    }
}

// ---- backward_features: computed transposed, so that the weight is read along its rows ----

/// Rows of the weight, columns of `grad_features`, per task.
const FEATURE_COLUMNS: usize = 4 * ROWS;
/// Depth of a packed panel of `grad_outᵀ`: 256 × 64 bytes are half of a 32 KiB L1 cache.
const FEATURE_DEPTH: usize = 256;

pub(super) struct BackwardFeatures<'a> {
    pub(super) grad_out: &'a [f32],
    pub(super) weight: &'a [f32],
    pub(super) grad_features: &'a mut [f32],
    pub(super) shape: DenseShape,
}

impl WithSimd for BackwardFeatures<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { grad_out, weight, grad_features, shape } = self;
        if grad_features.is_empty() {
            return;
        }
        let right = &pack_transposed(simd, grad_out, shape);
        let chunks = column_chunks(grad_features, shape.inputs, FEATURE_COLUMNS);
        chunks.into_par_iter().enumerate().for_each(|(index, out)| {
            let weight = &weight[index * FEATURE_COLUMNS * shape.outputs..];
            simd.vectorize(
                #[inline(always)]
                || feature_columns(simd, weight, right, out, shape),
            );
        });
    }
}

#[inline(always)]
fn feature_columns<S: Simd>(
    simd: S,
    weight: &[f32],
    right: &[Row<S>],
    mut out: Vec<&mut [f32]>,
    shape: DenseShape,
) {
    let outputs = shape.outputs;
    let groups = Groups::of(out.first().map_or(0, |row| row.len()));
    let panels = shape.batch.div_ceil(width::<S>());
    let mut sums = vec![zeros(simd); groups.count * panels];
    for k in (0..outputs).step_by(FEATURE_DEPTH) {
        let depth = FEATURE_DEPTH.min(outputs - k);
        for (group, sums) in sums.chunks_exact_mut(panels).enumerate() {
            let rows = groups.range(group);
            let left: [&[f32]; ROWS] = std::array::from_fn(|row| {
                &weight[(rows.start + row.min(rows.len() - 1)) * outputs + k..][..depth]
            });
            for (panel, sums) in sums.iter_mut().enumerate() {
                let right = &right[panel * outputs + k..][..depth];
                let left = (0..depth).map(|step| left.map(|row| row[step]));
                *sums = multiply(simd, rows.len(), left.zip(right.iter().copied()), *sums);
            }
        }
    }
    for (group, place, row) in groups.places() {
        for (out, tile) in out.chunks_mut(width::<S>()).zip(&sums[group * panels..]) {
            let lanes: &[f32] = pulp::bytemuck::cast_slice(&tile[place]);
            out.iter_mut().zip(lanes).for_each(|(out, value)| out[row] = *value);
        }
    }
}
