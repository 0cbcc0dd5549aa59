//! The register tile of the dense layer, and the operands packed for it.

use pulp::Simd;
use rayon::prelude::*;
use std::ops::Range;

/// Rows of the register tile: 6 × 2 sums leave 4 of the 16 AVX2 registers for the factors.
pub(crate) const ROWS: usize = 6;
/// Vectors of the register tile.
pub(crate) const VECTORS: usize = 2;

pub(crate) type Row<S> = [<S as Simd>::f32s; VECTORS];
pub(crate) type Tile<S> = [Row<S>; ROWS];

/// Columns of a panel, the right operand of one tile.
pub(crate) const fn width<S: Simd>() -> usize {
    VECTORS * S::F32_LANES
}

/// `tile + Σ left ⊗ right` over the steps, for the first `rows` rows of the tile.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(
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
pub(crate) fn zeros<S: Simd>(simd: S) -> Tile<S> {
    [[simd.splat_f32s(0.0); VECTORS]; ROWS]
}

/// Rows divided into nearly equal groups of at most [`ROWS`].
#[derive(Clone, Copy)]
pub(crate) struct Groups {
    rows: usize,
    pub(crate) count: usize,
}

impl Groups {
    pub(crate) fn of(rows: usize) -> Self {
        Self { rows, count: rows.div_ceil(ROWS) }
    }

    #[inline(always)]
    pub(crate) fn range(&self, group: usize) -> Range<usize> {
        group * self.rows / self.count..(group + 1) * self.rows / self.count
    }

    /// Every row, as (its group, its position in the group, its index).
    pub(crate) fn places(self) -> impl Iterator<Item = (usize, usize, usize)> {
        (0..self.count).flat_map(move |group| {
            self.range(group).enumerate().map(move |(place, row)| (group, place, row))
        })
    }
}

/// `source` `[rows, depth]` as the left operand `[group, depth, ROWS]`.
pub(crate) fn pack_rows(source: &[f32], depth: usize, groups: Groups) -> Vec<[f32; ROWS]> {
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

/// Columns of `source`, whose rows are `stride` apart, as the left operand `[group, depth, ROWS]`.
pub(crate) fn pack_columns(
    source: &[f32],
    stride: usize,
    groups: Groups,
    packed: &mut [[f32; ROWS]],
) {
    let depth = packed.len() / groups.count;
    for (group, steps) in packed.chunks_exact_mut(depth).enumerate() {
        let columns = groups.range(group);
        for (step, source) in steps.iter_mut().zip(source.chunks(stride)) {
            let source = &source[columns.clone()];
            // The common case as one constant-size copy, which is no call.
            match source.first_chunk() {
                Some(whole) => *step = *whole,
                None => step[..source.len()].copy_from_slice(source),
            }
        }
    }
}

/// `source` `[depth, columns]` as the right operand `[panel, depth, width]`, padded with zeros.
#[inline(always)]
pub(crate) fn pack_panels<S: Simd>(
    simd: S,
    source: &[f32],
    depth: usize,
    columns: usize,
) -> Vec<Row<S>> {
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

/// `source` `[columns, depth]` as the right operand `[panel, depth, width]`, padded with zeros.
#[inline(always)]
pub(crate) fn pack_transposed<S: Simd>(
    simd: S,
    source: &[f32],
    columns: usize,
    depth: usize,
) -> Vec<Row<S>> {
    let panels = columns.div_ceil(width::<S>());
    let mut packed = vec![[simd.splat_f32s(0.0); VECTORS]; panels * depth];
    packed.par_chunks_mut(depth).enumerate().for_each(|(panel, packed)| {
        let first = panel * width::<S>();
        let lanes: &mut [f32] = pulp::bytemuck::cast_slice_mut(packed);
        for (lane, column) in (first..columns.min(first + width::<S>())).enumerate() {
            let column = &source[column * depth..];
            for (step, value) in lanes.chunks_exact_mut(width::<S>()).zip(column) {
                step[lane] = *value;
            }
        }
    });
    packed
}

/// The first `size` columns of `source`, whose rows are `stride` apart, padded with zeros to a panel.
#[inline(always)]
pub(crate) fn pack_panel<S: Simd>(
    simd: S,
    packed: &mut [Row<S>],
    source: &[f32],
    stride: usize,
    size: usize,
) {
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
pub(crate) fn load_row<S: Simd>(source: &[f32]) -> Row<S> {
    let (vectors, _) = S::as_simd_f32s(&source[..width::<S>()]);
    std::array::from_fn(|vector| vectors[vector])
}

/// Stores `out.len()` numbers of `values`, at most a panel.
#[inline(always)]
pub(crate) fn store<S: Simd>(simd: S, out: &mut [f32], values: Row<S>) {
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

/// Chunks of columns of `matrix`, each with its part of every row.
pub(crate) fn column_chunks(
    matrix: &mut [f32],
    columns: usize,
    size: usize,
) -> Vec<Vec<&mut [f32]>> {
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
