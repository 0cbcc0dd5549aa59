//! The dense layer `out = features · weight + bias` and its gradients, over plain row-major slices.
//!
//! All three products run on one register tile: up to six rows of a left operand, broadcast one
//! number at a time, times two SIMD vectors of a right operand.
//! Work is divided by position in the output, never by thread. Each number is summed by one task in a
//! fixed order, so results are bit-identical in any rayon pool.
//! The weight can be far larger than any cache; every function reads or writes it once.
#![allow(unsafe_code, reason = "prefetching has no safe form")]

mod backward;
mod rows;
pub(crate) mod tile;

use backward::{BackwardFeatures, BackwardWeight};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use rows::{MANY_ROWS, RowProduct};
use std::ops::Range;
use tile::{
    Groups, ROWS, Row, Tile, VECTORS, column_chunks, load_row, multiply, pack_panel, pack_panels,
    pack_rows, store, width, zeros,
};

/// The sizes of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseShape {
    /// Rows of the batch, `B`.
    pub batch: usize,
    /// Features per row, `D`.
    pub inputs: usize,
    /// Outputs per row, `N`.
    pub outputs: usize,
}

/// `out = features · weight + bias`; without a bias, `out = features · weight`.
///
/// # Shapes
/// `features` `[B, D]`, `weight` `[D, N]`, `bias` `[N]`, `out` `[B, N]` (overwritten, never read).
///
/// ```
/// use aleator_layers::dense::{DenseShape, forward};
///
/// let shape = DenseShape { batch: 1, inputs: 2, outputs: 3 };
/// let mut out = [0.0; 3];
/// forward(&[1.0, 10.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(&[0.5; 3]), &mut out, shape);
/// assert_eq!(out, [41.5, 52.5, 63.5]);
/// ```
pub fn forward(
    features: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    out: &mut [f32],
    shape: DenseShape,
) {
    check(features, shape.batch, shape.inputs, "features must be [B, D]");
    check(weight, shape.inputs, shape.outputs, "weight must be [D, N]");
    check(out, shape.batch, shape.outputs, "out must be [B, N]");
    if let Some(bias) = bias {
        check(bias, 1, shape.outputs, "bias must be [N]");
    }
    Arch::new().dispatch(Forward { features, weight, bias, out, shape });
}

/// `grad_weight = featuresᵀ · grad_out`.
///
/// Reuse the buffer: the page faults of a new buffer of 100 MB cost more than this product.
///
/// # Shapes
/// `features` `[B, D]`, `grad_out` `[B, N]`, `grad_weight` `[D, N]` (overwritten, never read).
///
/// ```
/// use aleator_layers::dense::{DenseShape, backward_weight};
///
/// let shape = DenseShape { batch: 1, inputs: 2, outputs: 2 };
/// let mut grad_weight = [0.0; 4];
/// backward_weight(&[1.0, 10.0], &[2.0, 3.0], &mut grad_weight, shape);
/// assert_eq!(grad_weight, [2.0, 3.0, 20.0, 30.0]);
/// ```
pub fn backward_weight(
    features: &[f32],
    grad_out: &[f32],
    grad_weight: &mut [f32],
    shape: DenseShape,
) {
    check(features, shape.batch, shape.inputs, "features must be [B, D]");
    check(grad_out, shape.batch, shape.outputs, "grad_out must be [B, N]");
    check(grad_weight, shape.inputs, shape.outputs, "grad_weight must be [D, N]");
    Arch::new().dispatch(BackwardWeight { features, grad_out, grad_weight, shape });
}

/// `grad_bias = Σ_b grad_out[b]`, the column sums, added in the order of the rows.
///
/// # Shapes
/// `grad_out` `[B, N]`, `grad_bias` `[N]` (overwritten, never read).
///
/// ```
/// let mut grad_bias = [0.0; 2];
/// aleator_layers::dense::backward_bias(&[1.0, 2.0, 10.0, 20.0], &mut grad_bias);
/// assert_eq!(grad_bias, [11.0, 22.0]);
/// ```
pub fn backward_bias(grad_out: &[f32], grad_bias: &mut [f32]) {
    let outputs = grad_bias.len();
    assert!(
        grad_out.len().is_multiple_of(outputs.max(1)),
        "grad_out must be [B, N] with N = {outputs} of grad_bias"
    );
    assert!(outputs > 0 || grad_out.is_empty(), "grad_bias must be [N] of grad_out [B, N]");
    grad_bias.par_chunks_mut(COLUMNS).enumerate().for_each(|(index, sums)| {
        sums.fill(0.0);
        for row in grad_out.chunks_exact(outputs) {
            for (sum, value) in sums.iter_mut().zip(&row[index * COLUMNS..]) {
                *sum += value;
            }
        }
    });
}

/// `grad_features = grad_out · weightᵀ`.
///
/// # Shapes
/// `grad_out` `[B, N]`, `weight` `[D, N]`, `grad_features` `[B, D]` (overwritten, never read).
///
/// ```
/// use aleator_layers::dense::{DenseShape, backward_features};
///
/// let shape = DenseShape { batch: 1, inputs: 2, outputs: 2 };
/// let mut grad_features = [0.0; 2];
/// backward_features(&[1.0, 10.0], &[2.0, 3.0, 4.0, 5.0], &mut grad_features, shape);
/// assert_eq!(grad_features, [32.0, 54.0]);
/// ```
pub fn backward_features(
    grad_out: &[f32],
    weight: &[f32],
    grad_features: &mut [f32],
    shape: DenseShape,
) {
    check(grad_out, shape.batch, shape.outputs, "grad_out must be [B, N]");
    check(weight, shape.inputs, shape.outputs, "weight must be [D, N]");
    check(grad_features, shape.batch, shape.inputs, "grad_features must be [B, D]");
    Arch::new().dispatch(BackwardFeatures { grad_out, weight, grad_features, shape });
}

fn check(slice: &[f32], rows: usize, columns: usize, what: &str) {
    assert_eq!(slice.len(), rows * columns, "{what}, here {rows} × {columns}");
}

// ---- forward: tasks own columns of `out` ----

/// Columns of `out` per task; their sums stay in L2 while the weight is read.
const COLUMNS: usize = 512;
/// The distance, in panels, between the panel that is multiplied and the one that is prefetched.
const AHEAD: usize = 4;

struct Forward<'a> {
    features: &'a [f32],
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
    out: &'a mut [f32],
    shape: DenseShape,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { features, weight, bias, out, shape } = self;
        if out.is_empty() {
            return;
        }
        if shape.batch >= MANY_ROWS && shape.inputs > 0 {
            let DenseShape { inputs: depth, outputs: columns, .. } = shape;
            let right = &pack_panels(simd, weight, depth, columns);
            let product = RowProduct { left: features, depth, columns, bias };
            return product.compute(simd, right, out);
        }
        let groups = Groups::of(shape.batch);
        let left = &pack_rows(features, shape.inputs, groups);
        let chunks = column_chunks(out, shape.outputs, COLUMNS);
        chunks.into_par_iter().enumerate().for_each(|(index, out)| {
            let first = index * COLUMNS;
            simd.vectorize(ForwardColumns { left, groups, weight, bias, first, out, shape });
        });
    }
}

struct ForwardColumns<'a> {
    left: &'a [[f32; ROWS]],
    groups: Groups,
    weight: &'a [f32],
    bias: Option<&'a [f32]>,
    first: usize,
    out: Vec<&'a mut [f32]>,
    shape: DenseShape,
}

impl WithSimd for ForwardColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let DenseShape { inputs, outputs, .. } = self.shape;
        let columns = COLUMNS.min(outputs - self.first);
        let panels = columns.div_ceil(width::<S>());
        let depth = self.depth();
        let mut sums = vec![zeros::<S>(simd); panels * self.groups.count];
        let mut padded = vec![[simd.splat_f32s(0.0); VECTORS]; depth];
        for start in (0..inputs).step_by(depth) {
            let steps = start..inputs.min(start + depth);
            for (panel, sums) in sums.chunks_exact_mut(self.groups.count).enumerate() {
                let at =
                    |step: usize, panel: usize| step * outputs + self.first + panel * width::<S>();
                let next = panel + AHEAD;
                let ahead =
                    if next < panels { at(start, next) } else { at(start + depth, next - panels) };
                let size = width::<S>().min(columns - panel * width::<S>());
                let weight = &self.weight[at(start, panel)..];
                if size == width::<S>() && !self.packs() {
                    let right = weight.chunks(outputs).map(load_row::<S>);
                    self.add_panel(simd, steps.clone(), right, ahead, sums);
                } else {
                    pack_panel(simd, &mut padded, weight, outputs, size);
                    self.add_panel(simd, steps.clone(), padded.iter().copied(), ahead, sums);
                }
            }
        }
        self.write(simd, &sums);
    }
}

impl ForwardColumns<'_> {
    /// Rows of the weight that are multiplied at the same time. Each is on its own page: more than
    /// fit into the L1 TLB (64) are slow, and fewer load and store the sums more often. With few row
    /// groups memory is the limit, and it is fastest if the hardware prefetcher can follow all rows.
    fn depth(&self) -> usize {
        if self.groups.count > 3 { 48 } else { 12 }
    }

    /// Whether a panel is copied before it is multiplied: where several row groups read it and its
    /// rows are a multiple of a page apart, they would evict each other from the L1 cache.
    fn packs(&self) -> bool {
        self.groups.count > 3
    }

    /// Adds the product with one panel of the weight to its sums, and prefetches the panel at index
    /// `ahead`, a few rows per tile, so that arithmetic hides the latency of memory.
    #[inline(always)]
    fn add_panel<S: Simd>(
        &self,
        simd: S,
        steps: Range<usize>,
        right: impl Iterator<Item = Row<S>> + Clone,
        ahead: usize,
        sums: &mut [Tile<S>],
    ) {
        let groups = self.groups.count;
        for (group, sums) in sums.iter_mut().enumerate() {
            for step in group * steps.len() / groups..(group + 1) * steps.len() / groups {
                prefetch(self.weight, ahead + step * self.shape.outputs);
            }
            let left = &self.left[group * self.shape.inputs..][steps.clone()];
            let rows = self.groups.range(group).len();
            *sums = multiply(simd, rows, left.iter().copied().zip(right.clone()), *sums);
        }
    }

    #[inline(always)]
    fn write<S: Simd>(mut self, simd: S, sums: &[Tile<S>]) {
        for (group, place, row) in self.groups.places() {
            let out = &mut *self.out[row];
            for (out, tiles) in out.chunks_mut(width::<S>()).zip(sums.chunks(self.groups.count)) {
                store(simd, out, tiles[group][place]);
            }
            if let Some(bias) = self.bias {
                out.iter_mut().zip(&bias[self.first..]).for_each(|(out, bias)| *out += bias);
            }
        }
    }
}

/// Prefetches the cache line of `slice[index]`; an index past the end is harmless.
#[inline(always)]
pub(crate) fn prefetch(slice: &[f32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing and cannot fault, whatever the address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Scalar, Scalar128b, Scalar256b, Scalar512b};

    /// Small whole numbers: any order of summation is exact, so all lane widths agree to the bit.
    fn whole(len: usize, salt: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7 + i / 11 + salt) % 9) as f32 - 4.0).collect()
    }

    fn check_against_dispatch<S: Simd>(simd: S, shape: DenseShape) {
        let DenseShape { batch, inputs, outputs } = shape;
        let (features, weight) = (&whole(batch * inputs, 1), &whole(inputs * outputs, 2));
        let (grad_out, bias) = (&whole(batch * outputs, 3), Some(&whole(outputs, 4)[..]));

        let (mut fast, mut portable) =
            (vec![f32::NAN; batch * outputs], vec![f32::NAN; batch * outputs]);
        forward(features, weight, bias, &mut fast, shape);
        simd.vectorize(Forward { features, weight, bias, out: &mut portable, shape });
        assert_eq!(fast, portable, "forward {shape:?}");

        let (mut fast, mut portable) =
            (vec![f32::NAN; inputs * outputs], vec![f32::NAN; inputs * outputs]);
        backward_weight(features, grad_out, &mut fast, shape);
        simd.vectorize(BackwardWeight { features, grad_out, grad_weight: &mut portable, shape });
        assert_eq!(fast, portable, "backward_weight {shape:?}");

        let (mut fast, mut portable) =
            (vec![f32::NAN; batch * inputs], vec![f32::NAN; batch * inputs]);
        backward_features(grad_out, weight, &mut fast, shape);
        simd.vectorize(BackwardFeatures { grad_out, weight, grad_features: &mut portable, shape });
        assert_eq!(fast, portable, "backward_features {shape:?}");
    }

    #[test]
    fn every_lane_width_gives_the_dispatched_result() {
        let sizes =
            [(1, 1, 1), (7, 13, 37), (25, 101, 530), (40, 30, 300), (301, 140, 35), (259, 9, 150)];
        for (batch, inputs, outputs) in sizes {
            let shape = DenseShape { batch, inputs, outputs };
            check_against_dispatch(Scalar, shape);
            check_against_dispatch(Scalar128b, shape);
            check_against_dispatch(Scalar256b, shape);
            check_against_dispatch(Scalar512b, shape);
        }
    }
}
