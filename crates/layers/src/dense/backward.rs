//! The products of `backward_weight` and `backward_features`, divided into tasks.

use super::DenseShape;
use super::rows::{MANY_ROWS, RowProduct};
use super::tile::{
    Groups, ROWS, Row, Tile, column_chunks, multiply, pack_columns, pack_panels, pack_transposed,
    store, width, zeros,
};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

// ---- backward_weight: tasks own rows of `grad_weight`, all of `grad_out` is packed once ----

/// Rows of `grad_weight` per task.
const WEIGHT_ROWS: usize = 8 * ROWS;
/// Examples that are multiplied at a time: their part of a panel stays in the L1 cache while all row
/// groups of a task use it.
const WEIGHT_DEPTH: usize = 256;
/// Numbers of the packed `grad_out` that stay in the L2 cache while all row groups of a task use them.
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
        let right = pulp::bytemuck::cast_slice(right);
        grad_weight.par_chunks_mut(WEIGHT_ROWS * shape.outputs).enumerate().for_each(
            |(index, out)| {
                let first = index * WEIGHT_ROWS;
                simd.vectorize(WeightRows { features, right, first, out, shape });
            },
        );
    }
}

struct WeightRows<'a> {
    features: &'a [f32],
    /// The numbers of the packed `grad_out`, whose type depends on the vectors.
    right: &'a [f32],
    first: usize,
    out: &'a mut [f32],
    shape: DenseShape,
}

impl WithSimd for WeightRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let groups = Groups::of(self.out.len() / self.shape.outputs);
        let mut left = vec![[0.0; ROWS]; groups.count * WEIGHT_DEPTH.min(self.shape.batch)];
        match self.shape.batch <= WEIGHT_DEPTH {
            true => self.at_once(simd, groups, &mut left),
            false => self.in_parts(simd, groups, &mut left),
        }
    }
}

impl WeightRows<'_> {
    /// Tiles are written as they are computed, a few rows side by side.
    #[inline(always)]
    fn at_once<S: Simd>(&mut self, simd: S, groups: Groups, left: &mut [[f32; ROWS]]) {
        let DenseShape { batch, outputs, .. } = self.shape;
        let right: &[Row<S>] = pulp::bytemuck::cast_slice(self.right);
        self.pack(0, groups, left);
        let columns = (RESIDENT / batch).next_multiple_of(width::<S>());
        for start in (0..outputs).step_by(columns) {
            let block = start..outputs.min(start + columns);
            for (group, left) in left.chunks_exact(batch).enumerate() {
                for column in block.clone().step_by(width::<S>()) {
                    let panel = &right[column / width::<S>() * batch..][..batch];
                    let tile = product(simd, groups.range(group).len(), left, panel, zeros(simd));
                    for (row, values) in groups.range(group).zip(tile) {
                        let end = block.end.min(column + width::<S>());
                        store(simd, &mut self.out[row * outputs..][column..end], values);
                    }
                }
            }
        }
    }

    /// Tiles wait until all examples are added.
    #[inline(always)]
    fn in_parts<S: Simd>(&mut self, simd: S, groups: Groups, left: &mut [[f32; ROWS]]) {
        let DenseShape { batch, outputs, .. } = self.shape;
        let right: &[Row<S>] = pulp::bytemuck::cast_slice(self.right);
        let mut sums = vec![zeros(simd); groups.count * outputs.div_ceil(width::<S>())];
        for start in (0..batch).step_by(WEIGHT_DEPTH) {
            let depth = WEIGHT_DEPTH.min(batch - start);
            let left = &mut left[..groups.count * depth];
            self.pack(start, groups, left);
            for (panel, sums) in sums.chunks_exact_mut(groups.count).enumerate() {
                let panel = &right[panel * batch + start..][..depth];
                for (group, (left, sums)) in left.chunks_exact(depth).zip(sums).enumerate() {
                    *sums = product(simd, groups.range(group).len(), left, panel, *sums);
                }
            }
        }
        for (panel, sums) in sums.chunks_exact(groups.count).enumerate() {
            let own = panel * width::<S>()..outputs.min((panel + 1) * width::<S>());
            for (group, place, row) in groups.places() {
                store(simd, &mut self.out[row * outputs..][own.clone()], sums[group][place]);
            }
        }
    }

    /// The features of some examples, from `start` on.
    fn pack(&self, start: usize, groups: Groups, left: &mut [[f32; ROWS]]) {
        let inputs = self.shape.inputs;
        pack_columns(&self.features[start * inputs + self.first..], inputs, groups, left);
    }
}

#[inline(always)]
fn product<S: Simd>(
    simd: S,
    rows: usize,
    left: &[[f32; ROWS]],
    right: &[Row<S>],
    sums: Tile<S>,
) -> Tile<S> {
    multiply(simd, rows, left.iter().copied().zip(right.iter().copied()), sums)
}

// ---- backward_features: computed transposed, so that the weight is read along its rows ----

/// Rows of the weight, columns of `grad_features`, per task.
const FEATURE_COLUMNS: usize = 4 * ROWS;
/// Depth of a part of a panel of `grad_outᵀ`, which all row groups of a task use while it is in the
/// L1 cache: 128 × 128 bytes are a third of it.
const FEATURE_DEPTH: usize = 128;
/// Where outputs are fewer than rows by this factor, the weight is transposed beforehand: that
/// costs less than transposed writes.
const FEW_OUTPUTS: usize = 4;

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
        let DenseShape { batch, inputs, outputs } = shape;
        if grad_features.is_empty() || outputs == 0 {
            return grad_features.fill(0.0);
        }
        if batch >= MANY_ROWS || outputs <= batch / FEW_OUTPUTS {
            let right = &pack_transposed(simd, weight, inputs, outputs);
            let product =
                RowProduct { left: grad_out, depth: outputs, columns: inputs, bias: None };
            return product.compute(simd, right, grad_features);
        }
        let right = &pack_transposed(simd, grad_out, batch, outputs);
        let right = pulp::bytemuck::cast_slice(right);
        let chunks = column_chunks(grad_features, inputs, FEATURE_COLUMNS);
        chunks.into_par_iter().enumerate().for_each(|(index, out)| {
            let weight = &weight[index * FEATURE_COLUMNS * outputs..];
            simd.vectorize(FeatureColumns { weight, right, out, shape });
        });
    }
}

struct FeatureColumns<'a> {
    weight: &'a [f32],
    /// The numbers of the packed `grad_out`, whose type depends on the vectors.
    right: &'a [f32],
    out: Vec<&'a mut [f32]>,
    shape: DenseShape,
}

impl WithSimd for FeatureColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { weight, right, mut out, shape: DenseShape { batch, outputs, .. } } = self;
        let right: &[Row<S>] = pulp::bytemuck::cast_slice(right);
        let groups = Groups::of(out.first().map_or(0, |row| row.len()));
        let panels = batch.div_ceil(width::<S>());
        let mut sums = vec![zeros(simd); groups.count * panels];
        for k in (0..outputs).step_by(FEATURE_DEPTH) {
            let depth = FEATURE_DEPTH.min(outputs - k);
            for (panel, sums) in sums.chunks_exact_mut(groups.count).enumerate() {
                let right = &right[panel * outputs + k..][..depth];
                for (group, sums) in sums.iter_mut().enumerate() {
                    let rows = groups.range(group);
                    let left: [&[f32]; ROWS] = std::array::from_fn(|row| {
                        &weight[(rows.start + row.min(rows.len() - 1)) * outputs + k..][..depth]
                    });
                    let left = (0..depth).map(|step| left.map(|row| row[step]));
                    *sums = multiply(simd, rows.len(), left.zip(right.iter().copied()), *sums);
                }
            }
        }
        for (group, place, row) in groups.places() {
            let panels = sums.chunks_exact(groups.count);
            for (out, tiles) in out.chunks_mut(width::<S>()).zip(panels) {
                let lanes: &[f32] = pulp::bytemuck::cast_slice(&tiles[group][place]);
                out.iter_mut().zip(lanes).for_each(|(out, value)| out[row] = *value);
            }
        }
    }
}
