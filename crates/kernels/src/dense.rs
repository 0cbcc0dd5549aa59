//! The dense layer `out = features · weight + bias` and its gradients, over plain row-major slices.
//!
//! All three products run on one register tile: up to six rows of a left operand, broadcast one
//! number at a time, times two SIMD vectors of a right operand.
//! Work is cut by position in the output, never by thread: each number is summed by one task in one
//! fixed order, so that results are bit-identical in any rayon pool.
//! The weight is far larger than any cache; every function reads or writes it once.
#![allow(unsafe_code, reason = "prefetching has no safe form")]

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

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
/// use aleator_kernels::dense::{DenseShape, forward};
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
/// A fresh buffer of 100 MB costs more in page faults than this product in arithmetic: reuse it.
///
/// # Shapes
/// `features` `[B, D]`, `grad_out` `[B, N]`, `grad_weight` `[D, N]` (overwritten, never read).
///
/// ```
/// use aleator_kernels::dense::{DenseShape, backward_weight};
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
/// aleator_kernels::dense::backward_bias(&[1.0, 2.0, 10.0, 20.0], &mut grad_bias);
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
/// use aleator_kernels::dense::{DenseShape, backward_features};
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

/// Rows of the register tile: 6 × 2 sums leave 4 of the 16 AVX2 registers for the factors.
const ROWS: usize = 6;
/// Vectors of the register tile.
const VECTORS: usize = 2;

type Row<S> = [<S as Simd>::f32s; VECTORS];
type Tile<S> = [Row<S>; ROWS];

/// Columns of a panel, the right operand of one tile.
const fn width<S: Simd>() -> usize {
    VECTORS * S::F32_LANES
}

// ---- forward: tasks own columns of `out` ----

/// Columns of `out` per task; their sums stay in L2 while the weight passes by.
const COLUMNS: usize = 512;
/// Panels between the one that is multiplied and the one that is prefetched.
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
                if size == width::<S>() {
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
    /// Rows of the weight that are multiplied at a time. Each lies on a page of its own: more than
    /// fit the L1 TLB (64) are slow, fewer load and store the sums more often. With few row groups
    /// memory is the limit, and fastest when the hardware's own prefetcher can follow all rows.
    fn depth(&self) -> usize {
        if self.groups.count > 3 { 48 } else { 12 }
    }

    /// Adds the product with one panel of the weight to its sums, and prefetches the panel at index
    /// `ahead`, a few rows per tile, so that reading memory hides behind arithmetic.
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

/// Asks for the cache line of `slice[index]`; an index past the end is harmless.
#[inline(always)]
fn prefetch(slice: &[f32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing and cannot fault, whatever the address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

// ---- backward_weight: tasks own rows of `grad_weight`, all of `grad_out` is packed once ----

/// Rows of `grad_weight` per task.
const WEIGHT_ROWS: usize = 8 * ROWS;
/// Numbers of the packed `grad_out` that stay in L2 while the row groups of a task pass over them.
const RESIDENT: usize = 32 * 1024;

struct BackwardWeight<'a> {
    features: &'a [f32],
    grad_out: &'a [f32],
    grad_weight: &'a mut [f32],
    shape: DenseShape,
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

struct BackwardFeatures<'a> {
    grad_out: &'a [f32],
    weight: &'a [f32],
    grad_features: &'a mut [f32],
    shape: DenseShape,
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

// ---- the register tile and its operands ----

/// `tile + Σ left ⊗ right` over the steps, for the first `rows` rows of the tile.
#[inline(always)]
fn multiply<S: Simd>(
    simd: S,
    rows: usize,
    steps: impl Iterator<Item = ([f32; ROWS], Row<S>)>,
    tile: Tile<S>,
) -> Tile<S> {
    match rows {
        1 => multiply_rows::<S, 1>(simd, steps, tile),
        2 => multiply_rows::<S, 2>(simd, steps, tile),
        3 => multiply_rows::<S, 3>(simd, steps, tile),
        4 => multiply_rows::<S, 4>(simd, steps, tile),
        5 => multiply_rows::<S, 5>(simd, steps, tile),
        _ => multiply_rows::<S, ROWS>(simd, steps, tile),
    }
}

/// The number of rows is a constant here, so that the sums stay in registers.
#[inline(always)]
fn multiply_rows<S: Simd, const R: usize>(
    simd: S,
    steps: impl Iterator<Item = ([f32; ROWS], Row<S>)>,
    mut tile: Tile<S>,
) -> Tile<S> {
    let mut sums: [Row<S>; R] = std::array::from_fn(|row| tile[row]);
    for (left, right) in steps {
        for (sums, factor) in sums.iter_mut().zip(left) {
            let factor = simd.splat_f32s(factor);
            for (sum, value) in sums.iter_mut().zip(right) {
                *sum = simd.mul_add_e_f32s(factor, value, *sum);
            }
        }
    }
    tile[..R].copy_from_slice(&sums);
    tile
}

#[inline(always)]
fn zeros<S: Simd>(simd: S) -> Tile<S> {
    [[simd.splat_f32s(0.0); VECTORS]; ROWS]
}

/// Rows cut into near-equal groups of at most [`ROWS`].
#[derive(Clone, Copy)]
struct Groups {
    rows: usize,
    count: usize,
}

impl Groups {
    fn of(rows: usize) -> Self {
        Self { rows, count: rows.div_ceil(ROWS) }
    }

    #[inline(always)]
    fn range(&self, group: usize) -> Range<usize> {
        group * self.rows / self.count..(group + 1) * self.rows / self.count
    }

    /// Every row, as (its group, its place there, its index).
    fn places(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.count).flat_map(move |group| {
            self.range(group).enumerate().map(move |(place, row)| (group, place, row))
        })
    }
}

/// `source` `[rows, depth]` as the left operand `[group, depth, ROWS]`.
fn pack_rows(source: &[f32], depth: usize, groups: Groups) -> Vec<[f32; ROWS]> {
    let mut packed = vec![[0.0; ROWS]; groups.count * depth];
    for (group, steps) in packed.chunks_exact_mut(depth.max(1)).enumerate() {
        for (lane, row) in groups.range(group).enumerate() {
            for (step, value) in steps.iter_mut().zip(&source[row * depth..]) {
                step[lane] = *value;
            }
        }
    }
    packed
}

/// Columns of `source` `[depth, stride]` as the left operand `[group, depth, ROWS]`.
fn pack_columns(source: &[f32], stride: usize, depth: usize, groups: Groups) -> Vec<[f32; ROWS]> {
    let mut packed = vec![[0.0; ROWS]; groups.count * depth];
    for (group, steps) in packed.chunks_exact_mut(depth).enumerate() {
        let columns = groups.range(group);
        for (step, source) in steps.iter_mut().zip(source.chunks(stride)) {
            step[..columns.len()].copy_from_slice(&source[columns.clone()]);
        }
    }
    packed
}

/// `source` `[depth, columns]` as the right operand `[panel, depth, width]`, padded with zeros.
#[inline(always)]
fn pack_panels<S: Simd>(simd: S, source: &[f32], depth: usize, columns: usize) -> Vec<Row<S>> {
    let panels = columns.div_ceil(width::<S>());
    let mut packed = vec![[simd.splat_f32s(0.0); VECTORS]; panels * depth];
    packed.par_chunks_mut(depth).enumerate().with_min_len(16).for_each(|(panel, packed)| {
        let column = panel * width::<S>();
        let size = width::<S>().min(columns - column);
        simd.vectorize(
            #[inline(always)]
            || pack_panel(simd, packed, &source[column..], columns, size),
        );
    });
    packed
}

/// `grad_out` `[B, N]` as the right operand `[panel of B, N, width]`, padded with zeros.
#[inline(always)]
fn pack_transposed<S: Simd>(simd: S, grad_out: &[f32], shape: DenseShape) -> Vec<Row<S>> {
    let panels = shape.batch.div_ceil(width::<S>());
    let mut packed = vec![[simd.splat_f32s(0.0); VECTORS]; panels * shape.outputs];
    packed.par_chunks_mut(shape.outputs.max(1)).enumerate().for_each(|(panel, packed)| {
        let first = panel * width::<S>();
        let lanes: &mut [f32] = pulp::bytemuck::cast_slice_mut(packed);
        for (lane, row) in (first..shape.batch.min(first + width::<S>())).enumerate() {
            let row = &grad_out[row * shape.outputs..];
            for (step, value) in lanes.chunks_exact_mut(width::<S>()).zip(row) {
                step[lane] = *value;
            }
        }
    });
    packed
}

/// The first `size` columns of `source`, whose rows are `stride` apart, padded with zeros to a panel.
#[inline(always)]
fn pack_panel<S: Simd>(simd: S, packed: &mut [Row<S>], source: &[f32], stride: usize, size: usize) {
    for (packed, row) in packed.iter_mut().zip(source.chunks(stride)) {
        let (vectors, tail) = S::as_simd_f32s(&row[..size]);
        *packed = [simd.splat_f32s(0.0); VECTORS];
        packed[..vectors.len()].copy_from_slice(vectors);
        if !tail.is_empty() {
            packed[vectors.len()] = simd.partial_load_f32s(tail);
        }
    }
}

#[inline(always)]
fn load_row<S: Simd>(source: &[f32]) -> Row<S> {
    let (vectors, _) = S::as_simd_f32s(&source[..width::<S>()]);
    std::array::from_fn(|vector| vectors[vector])
}

/// Stores as much of `values` as `out` is long, at most a panel.
#[inline(always)]
fn store<S: Simd>(simd: S, out: &mut [f32], values: Row<S>) {
    let (vectors, tail) = S::as_mut_simd_f32s(out);
    // The common case as one constant-size copy: a loop here costs a tenth of `backward_weight`.
    if let Ok(vectors) = <&mut Row<S>>::try_from(&mut *vectors) {
        *vectors = values;
        return;
    }
    let whole = vectors.len();
    vectors.copy_from_slice(&values[..whole]);
    if !tail.is_empty() {
        simd.partial_store_f32s(tail, values[whole]);
    }
}

/// Chunks of columns of `matrix`, each with its piece of every row.
fn column_chunks(matrix: &mut [f32], columns: usize, size: usize) -> Vec<Vec<&mut [f32]>> {
    let rows = matrix.len() / columns.max(1);
    let mut chunks: Vec<Vec<_>> =
        (0..columns.div_ceil(size)).map(|_| Vec::with_capacity(rows)).collect();
    for row in matrix.chunks_exact_mut(columns.max(1)) {
        for (chunk, piece) in chunks.iter_mut().zip(row.chunks_mut(size)) {
            chunk.push(piece);
        }
    }
    chunks
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
        for (batch, inputs, outputs) in [(1, 1, 1), (7, 13, 37), (25, 101, 530), (40, 30, 300)] {
            let shape = DenseShape { batch, inputs, outputs };
            check_against_dispatch(Scalar, shape);
            check_against_dispatch(Scalar128b, shape);
            check_against_dispatch(Scalar256b, shape);
            check_against_dispatch(Scalar512b, shape);
        }
    }
}
