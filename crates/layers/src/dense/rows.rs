//! Products of many rows: tasks own rows of the result, and all of them read one packed operand.

use super::tile::{Groups, ROWS, Row, multiply, pack_rows, store, width, zeros};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// From this many rows on the right operand is packed as a whole: it costs less than it saves.
pub(super) const MANY_ROWS: usize = 256;
/// Rows of a task: all of them use a part of the right operand while it is in the L1 cache.
const TASK_ROWS: usize = 8 * ROWS;
/// Depth of such a part: 128 × 128 bytes are a third of the cache.
const DEPTH: usize = 128;

/// Panels up to which rows are read where they are; for more they are packed, because rows that are a
/// multiple of a page apart evict each other from the L1 cache.
const MOST_UNPACKED: usize = 3;

/// The sizes of `out = left · right`, and what is added to every row.
#[derive(Clone, Copy)]
pub(super) struct RowProduct<'a> {
    /// `[rows, depth]`.
    pub left: &'a [f32],
    pub depth: usize,
    pub columns: usize,
    /// `[columns]`.
    pub bias: Option<&'a [f32]>,
}

impl RowProduct<'_> {
    /// With `right` as `[panel, depth, width]`.
    #[inline(always)]
    pub fn compute<S: Simd>(self, simd: S, right: &[Row<S>], out: &mut [f32]) {
        let right = pulp::bytemuck::cast_slice(right);
        out.par_chunks_mut(TASK_ROWS * self.columns).enumerate().for_each(|(index, out)| {
            let left = &self.left[index * TASK_ROWS * self.depth..];
            simd.vectorize(RowTask { product: Self { left, ..self }, right, out });
        });
    }
}

struct RowTask<'a> {
    product: RowProduct<'a>,
    /// The numbers of the packed operand, whose type depends on the vectors.
    right: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for RowTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { product: RowProduct { depth, columns, bias, .. }, right, out, .. } = self;
        let right: &[Row<S>] = pulp::bytemuck::cast_slice(right);
        let groups = Groups::of(out.len() / columns);
        let packs = right.len() > MOST_UNPACKED * depth;
        let packed = if packs { pack_rows(self.product.left, depth, groups) } else { vec![] };
        let mut sums = [zeros(simd); TASK_ROWS / ROWS];
        for (panel, right) in right.chunks_exact(depth).enumerate() {
            sums.fill(zeros(simd));
            for start in (0..depth).step_by(DEPTH) {
                let steps = start..depth.min(start + DEPTH);
                for (group, sums) in sums[..groups.count].iter_mut().enumerate() {
                    let rows = groups.range(group);
                    let right = right[steps.clone()].iter().copied();
                    *sums = if packs {
                        let left = packed[group * depth..][steps.clone()].iter().copied();
                        multiply(simd, rows.len(), left.zip(right), *sums)
                    } else {
                        let left = self.product.rows(rows.clone(), steps.clone());
                        let left = (0..steps.len()).map(|step| left.map(|row| row[step]));
                        multiply(simd, rows.len(), left.zip(right), *sums)
                    };
                }
            }
            let own = panel * width::<S>()..columns.min((panel + 1) * width::<S>());
            for (group, place, row) in groups.places() {
                let out = &mut out[row * columns..][own.clone()];
                store(simd, out, sums[group][place]);
                if let Some(bias) = bias {
                    out.iter_mut().zip(&bias[own.clone()]).for_each(|(out, bias)| *out += bias);
                }
            }
        }
    }
}

impl<'a> RowProduct<'a> {
    /// Some steps of at most a group of rows; the last row stands for those beyond.
    #[inline(always)]
    fn rows(&self, rows: Range<usize>, steps: Range<usize>) -> [&'a [f32]; ROWS] {
        std::array::from_fn(|row| {
            let at = (rows.start + row.min(rows.len() - 1)) * self.depth;
            &self.left[at + steps.start..at + steps.end]
        })
    }
}
