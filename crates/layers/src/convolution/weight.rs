//! The gradient of the weight: the input of each tap times the upstream gradient, summed over pixels.
//!
//! The sums are transposed, `[tap, output]`: numbers of the images are broadcast, and the upstream
//! gradient, transposed so that outputs are neighbours, is the right operand.

use super::ConvolutionShape;
use super::blocks::{Block, Cut};
use super::window::{Layout, Window};
use crate::dense::tile::{Groups, ROWS, Row, Tile, VECTORS, width, zeros};
use crate::shared::SharedSlice;
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;

/// Pixels of a block: 256 × 64 bytes of the right operand are half of a 32 KiB L1 cache.
const POSITIONS: usize = 256;
/// Blocks are not made smaller than this for the sake of more tasks.
const FEWEST_POSITIONS: usize = 64;
/// This number of tasks keeps many threads busy.
const TASKS: usize = 16;
/// The largest size of all partial sums together, unless a single one is larger.
const PARTIAL_NUMBERS: usize = 1 << 20;

pub(super) struct WeightGradient<'a> {
    pub window: Window,
    /// `[B, C, H, W]`.
    pub source: &'a [f32],
    /// `[B, O, grid]`.
    pub grad_out: &'a [f32],
    /// `[O, C/groups, kernel]`.
    pub out: SharedSlice<'a>,
    pub shape: ConvolutionShape,
}

/// How the work is divided, which depends only on sizes: parts of the pixels, whose sums are added in
/// order, and parts of the outputs of each group.
struct Plan {
    cut: Cut,
    blocks: Vec<Block>,
    layout: Layout,
    offsets: Vec<usize>,
    taps: Groups,
    pixel_parts: usize,
    output_parts: usize,
}

impl WithSimd for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let plan = &self.plan(width::<S>());
        let tasks = self.shape.groups * plan.output_parts * plan.pixel_parts;
        let mut partial: Vec<Vec<f32>> = (0..tasks)
            .into_par_iter()
            .map(|task| {
                let (column, part) = (task / plan.pixel_parts, task % plan.pixel_parts);
                let blocks = share(plan.blocks.len(), part, plan.pixel_parts);
                let blocks = &plan.blocks[blocks];
                simd.vectorize(SumPart { gradient: &self, plan, column, blocks })
            })
            .collect();
        partial.par_chunks_mut(plan.pixel_parts).enumerate().for_each(|(column, parts)| {
            let (first, others) = parts.split_first_mut().expect("at least one part");
            for part in others {
                first.iter_mut().zip(&*part).for_each(|(sum, value)| *sum += value);
            }
            self.write::<S>(plan, column, first);
        });
    }
}

/// A struct instead of a closure, for the same reason as `Task` in `product.rs`.
struct SumPart<'a> {
    gradient: &'a WeightGradient<'a>,
    plan: &'a Plan,
    column: usize,
    blocks: &'a [Block],
}

impl WithSimd for SumPart<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        self.gradient.sum_part(simd, self.plan, self.column, self.blocks)
    }
}

impl WeightGradient<'_> {
    fn plan(&self, width: usize) -> Plan {
        let ConvolutionShape { batch, inputs, outputs, groups, .. } = self.shape;
        let [height, across] = self.window.grid;
        let numbers = (outputs * self.shape.depth()).max(1);
        let most_parts = (PARTIAL_NUMBERS / numbers).clamp(1, TASKS);
        let positions = (batch * height * across / most_parts).clamp(FEWEST_POSITIONS, POSITIONS);
        let cut = Cut::new(self.window.grid, positions, batch);
        let blocks = cut.blocks(0..batch);
        let pixel_parts = most_parts.min(blocks.len()).max(1);
        let panels = (outputs / groups).div_ceil(width);
        let output_parts = TASKS.div_ceil(pixel_parts * groups).min(panels).max(1);
        let layout = Layout::new(self.window, cut.rows, inputs / groups, inputs);
        let offsets = layout.offsets(inputs / groups);
        let taps = Groups::of(offsets.len());
        Plan { cut, blocks, layout, offsets, taps, pixel_parts, output_parts }
    }

    /// The group and the panels of its outputs of one part of the outputs.
    fn panels<S: Simd>(&self, plan: &Plan, column: usize) -> (usize, Range<usize>) {
        let panels = (self.shape.outputs / self.shape.groups).div_ceil(width::<S>());
        let part = column % plan.output_parts;
        (column / plan.output_parts, share(panels, part, plan.output_parts))
    }

    /// The sums over some blocks as tiles `[panel of outputs, group of taps]`.
    #[inline(always)]
    fn sum_part<S: Simd>(&self, simd: S, plan: &Plan, column: usize, blocks: &[Block]) -> Vec<f32> {
        let ConvolutionShape { inputs, groups, .. } = self.shape;
        let (group, panels) = self.panels::<S>(plan, column);
        let taps = plan.taps;
        let mut sums = vec![0.0; panels.len() * taps.count * ROWS * width::<S>()];
        let tiles: &mut [Tile<S>] = bytemuck::cast_slice_mut(&mut sums);
        let channels = share(inputs, group, groups);
        let mut scratch = SCRATCH.take();
        scratch.turned.resize(plan.cut.positions() * width::<S>(), 0.0);
        for block in blocks {
            let (seen, prepared) = (channels.clone(), &mut scratch.prepared);
            let source = plan.layout.prepare(self.source, inputs, block, seen, 0, prepared);
            let positions = plan.layout.positions(block);
            let left = TapInputs::new(source, &plan.offsets, &positions);
            for (panel, tiles) in panels.clone().zip(tiles.chunks_exact_mut(taps.count)) {
                let turned: &mut [Row<S>] =
                    bytemuck::cast_slice_mut(&mut scratch.turned[..positions.len() * width::<S>()]);
                self.turn::<S>(block, group, panel, turned);
                for (index, sums) in tiles.iter_mut().enumerate() {
                    let tile = left.multiply(simd, taps.range(index), turned);
                    // Each block is summed separately first, so the error grows only with their number.
                    for (sums, values) in sums.iter_mut().flatten().zip(tile.iter().flatten()) {
                        *sums = simd.add_f32s(*sums, *values);
                    }
                }
            }
        }
        SCRATCH.set(scratch);
        sums
    }

    /// The upstream gradient of a panel of outputs as `[pixel, output]`, zero beyond the last output.
    #[inline(always)]
    fn turn<S: Simd>(&self, block: &Block, group: usize, panel: usize, turned: &mut [Row<S>]) {
        let ConvolutionShape { outputs, groups, .. } = self.shape;
        let [height, across] = self.window.grid;
        let (first, count) = (panel * width::<S>(), outputs / groups);
        let rows = first..count.min(first + width::<S>());
        let pixels = block.rows.len() * across;
        let turned: &mut [f32] = bytemuck::cast_slice_mut(turned);
        if rows.len() < width::<S>() {
            turned.fill(0.0);
        }
        for (image, turned) in
            block.images.clone().zip(turned.chunks_exact_mut(pixels * width::<S>()))
        {
            let plane = |row: usize| {
                let channel = image * outputs + group * count + row;
                &self.grad_out[(channel * height + block.rows.start) * across..][..pixels]
            };
            let mut lane = 0;
            while lane + TURN <= rows.len() {
                let planes: [&[f32]; TURN] = std::array::from_fn(|at| plane(first + lane + at));
                turn_rows::<S>(planes, turned, width::<S>(), lane);
                lane += TURN;
            }
            for lane in lane..rows.len() {
                turned[lane..]
                    .iter_mut()
                    .step_by(width::<S>())
                    .zip(plane(first + lane))
                    .for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Writes the tiles of one part of the outputs into the weight's gradient.
    fn write<S: Simd>(&self, plan: &Plan, column: usize, sums: &[f32]) {
        let (group, panels) = self.panels::<S>(plan, column);
        let (count, depth) = (self.shape.outputs / self.shape.groups, self.shape.depth());
        let first = panels.start * width::<S>();
        for output in first..count.min(panels.end * width::<S>()) {
            // SAFETY: an output belongs to one task.
            let out = unsafe { self.out.slice_mut((group * count + output) * depth, depth) };
            let (panel, lane) = ((output - first) / width::<S>(), output % width::<S>());
            for (index, place, tap) in plan.taps.places() {
                let tile = (panel * plan.taps.count + index) * ROWS + place;
                out[tap] = sums[tile * width::<S>() + lane];
            }
        }
    }
}

/// The range of part `part` when `total` items are divided into `parts` parts.
fn share(total: usize, part: usize, parts: usize) -> Range<usize> {
    part * total / parts..(part + 1) * total / parts
}

#[derive(Default)]
struct Scratch {
    prepared: Vec<f32>,
    turned: Vec<f32>,
}

thread_local! {
    /// Reused by the next task of the thread.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Rows that are transposed at the same time.
const TURN: usize = 8;

/// `turned[pixel · stride + lane + i] = rows[i][pixel]`.
#[inline(always)]
fn turn_rows<S: Simd>(rows: [&[f32]; TURN], turned: &mut [f32], stride: usize, lane: usize) {
    let pixels = rows[0].len();
    let mut whole = 0;
    #[cfg(target_arch = "x86_64")]
    if std::any::TypeId::of::<S>() == std::any::TypeId::of::<pulp::x86::V3>() {
        whole = pixels / TURN * TURN;
        for start in (0..whole).step_by(TURN) {
            let rows = rows.map(|row| &row[start..start + TURN]);
            let out = &mut turned[start * stride + lane..][..(TURN - 1) * stride + TURN];
            // SAFETY: code for V3 runs only on machines with AVX; the slices have these sizes.
            unsafe { turn_square(rows, out, stride) };
        }
    }
    for pixel in whole..pixels {
        for row in 0..TURN {
            turned[pixel * stride + lane + row] = rows[row][pixel];
        }
    }
}

/// `out[pixel · stride + row] = rows[row][pixel]` for eight rows and pixels, by shuffles.
///
/// # Safety
/// The machine has AVX; `rows` are of eight numbers, `out` of `7 · stride + 8`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_square(rows: [&[f32]; TURN], out: &mut [f32], stride: usize) {
    use core::arch::x86_64::*;
    // SAFETY: by the caller's promises.
    unsafe {
        let mut r = [_mm256_setzero_ps(); TURN];
        for row in 0..TURN {
            r[row] = _mm256_loadu_ps(rows[row].as_ptr());
        }
        // Pairs of rows, then fours, then halves of the vectors.
        let mut pairs = r;
        for half in 0..4 {
            pairs[2 * half] = _mm256_unpacklo_ps(r[2 * half], r[2 * half + 1]);
            pairs[2 * half + 1] = _mm256_unpackhi_ps(r[2 * half], r[2 * half + 1]);
        }
        let mut fours = r;
        for half in 0..2 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| pairs[4 * half + at]);
            fours[4 * half] = _mm256_shuffle_ps::<0x44>(a, c);
            fours[4 * half + 1] = _mm256_shuffle_ps::<0xee>(a, c);
            fours[4 * half + 2] = _mm256_shuffle_ps::<0x44>(b, d);
            fours[4 * half + 3] = _mm256_shuffle_ps::<0xee>(b, d);
        }
        for pixel in 0..4 {
            let (low, high) = (fours[pixel], fours[pixel + 4]);
            let at = out.as_mut_ptr().add(pixel * stride);
            _mm256_storeu_ps(at, _mm256_permute2f128_ps::<0x20>(low, high));
            let at = out.as_mut_ptr().add((pixel + 4) * stride);
            _mm256_storeu_ps(at, _mm256_permute2f128_ps::<0x31>(low, high));
        }
    }
}

/// The input of the taps: tap k of pixel p is `source[offsets[k] + positions[p]]`.
struct TapInputs<'a> {
    source: &'a [f32],
    offsets: &'a [usize],
    positions: &'a [usize],
}

impl<'a> TapInputs<'a> {
    fn new(source: &'a [f32], offsets: &'a [usize], positions: &'a [usize]) -> Self {
        let last = |places: &[usize]| places.iter().copied().max().unwrap_or(0);
        assert!(
            last(offsets) + last(positions) < source.len(),
            "a window reaches outside of its images"
        );
        Self { source, offsets, positions }
    }

    /// `Σ seen[tap, pixel] ⊗ right[pixel]` for a group of taps.
    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, taps: Range<usize>, right: &[Row<S>]) -> Tile<S> {
        match taps.len() {
            1 => self.multiply_taps::<S, 1>(simd, taps.start, right),
            2 => self.multiply_taps::<S, 2>(simd, taps.start, right),
            3 => self.multiply_taps::<S, 3>(simd, taps.start, right),
            4 => self.multiply_taps::<S, 4>(simd, taps.start, right),
            5 => self.multiply_taps::<S, 5>(simd, taps.start, right),
            _ => self.multiply_taps::<S, ROWS>(simd, taps.start, right),
        }
    }

    /// As `multiply` of the dense layer, but every factor is loaded where it is used: six at a time
    /// would need more registers than there are.
    #[inline(always)]
    fn multiply_taps<S: Simd, const R: usize>(
        &self,
        simd: S,
        first: usize,
        right: &[Row<S>],
    ) -> Tile<S> {
        let mut offsets = [0; R];
        offsets.copy_from_slice(&self.offsets[first..first + R]);
        let mut tile = zeros(simd);
        let mut sums = [tile[0]; R];
        for (position, right) in self.positions.iter().zip(right) {
            for tap in 0..R {
                // SAFETY: the sum of the largest offset and position is within the source, see `new`.
                let factor = unsafe { *self.source.as_ptr().add(*position).add(offsets[tap]) };
                let factor = simd.splat_f32s(factor);
                for vector in 0..VECTORS {
                    sums[tap][vector] =
                        simd.mul_add_e_f32s(factor, right[vector], sums[tap][vector]);
                }
            }
        }
        tile[..R].copy_from_slice(&sums);
        tile
    }
}
