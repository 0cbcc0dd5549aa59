//! The gradient of the weight: what the taps see times the upstream gradient, summed over pixels.
//!
//! The sums lie transposed, `[tap, output]`: numbers of the images are broadcast as they stand, and
//! the upstream gradient, turned so that outputs are neighbours, is the right operand.

use super::ConvolutionShape;
use super::blocks::{Block, Cut};
use super::shared::SharedSlice;
use super::window::{Layout, Window};
use crate::dense::tile::{Groups, ROWS, Row, Tile, multiply, width, zeros};
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;

/// Pixels of a block: 256 × 64 bytes of the right operand are half of a 32 KiB L1 cache.
const POSITIONS: usize = 256;
/// Tasks that suffice to keep many threads busy.
const TASKS: usize = 16;
/// Numbers of all partial sums, at most, unless one alone has more.
const PARTIAL_NUMBERS: usize = 1 << 19;

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

/// How the work is cut, by sizes alone: parts of the batch, whose sums are added in their order, and
/// parts of the channels.
struct Plan {
    cut: Cut,
    layout: Layout,
    image_parts: usize,
    channel_parts: usize,
}

impl WithSimd for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let plan = &self.plan();
        let columns = self.shape.groups * plan.channel_parts;
        let tasks = columns * plan.image_parts;
        let mut partial: Vec<Vec<f32>> = (0..tasks)
            .into_par_iter()
            .map(|task| {
                let (column, part) = (task / plan.image_parts, task % plan.image_parts);
                let images = part * self.shape.batch / plan.image_parts
                    ..(part + 1) * self.shape.batch / plan.image_parts;
                simd.vectorize(
                    #[inline(always)]
                    || self.sum_part(simd, plan, column, images),
                )
            })
            .collect();
        partial.par_chunks_mut(plan.image_parts).enumerate().for_each(|(column, parts)| {
            let (first, others) = parts.split_first_mut().expect("at least one part");
            for part in others {
                first.iter_mut().zip(&*part).for_each(|(sum, value)| *sum += value);
            }
            self.write::<S>(plan, column, first);
        });
    }
}

impl WeightGradient<'_> {
    fn plan(&self) -> Plan {
        let ConvolutionShape { batch, inputs, outputs, groups, .. } = self.shape;
        let numbers = (outputs * self.shape.depth()).max(1);
        let image_parts = (PARTIAL_NUMBERS / numbers).min(TASKS).min(batch).max(1);
        let channel_parts = TASKS.div_ceil(image_parts * groups).min(inputs / groups).max(1);
        let cut = Cut::new(self.window.grid, POSITIONS);
        let most = (inputs / groups).div_ceil(channel_parts);
        let layout = Layout::new(self.window, cut.rows, most, inputs);
        Plan { cut, layout, image_parts, channel_parts }
    }

    /// The group and the channels within it of one part of the channels.
    fn channels(&self, plan: &Plan, column: usize) -> (usize, Range<usize>) {
        let (group, part) = (column / plan.channel_parts, column % plan.channel_parts);
        let channels = self.shape.inputs / self.shape.groups;
        (group, part * channels / plan.channel_parts..(part + 1) * channels / plan.channel_parts)
    }

    /// The sums over some images as tiles `[panel of outputs, group of taps]`.
    #[inline(always)]
    fn sum_part<S: Simd>(
        &self,
        simd: S,
        plan: &Plan,
        column: usize,
        images: Range<usize>,
    ) -> Vec<f32> {
        let ConvolutionShape { inputs, outputs, groups, kernel, .. } = self.shape;
        let (group, channels) = self.channels(plan, column);
        let taps = Groups::of(channels.len() * kernel[0] * kernel[1]);
        let panels = (outputs / groups).div_ceil(width::<S>());
        let mut sums = vec![0.0; panels * taps.count * ROWS * width::<S>()];
        let tiles: &mut [Tile<S>] = bytemuck::cast_slice_mut(&mut sums);
        let first = group * inputs / groups;
        let seen = first + channels.start..first + channels.end;
        let offsets = plan.layout.offsets(channels.len());
        let mut scratch = SCRATCH.take();
        scratch.turned.resize(plan.cut.positions() * width::<S>(), 0.0);
        for block in plan.cut.blocks(images) {
            let source = plan.layout.prepare(
                self.source,
                inputs,
                &block,
                seen.clone(),
                0,
                &mut scratch.prepared,
            );
            let positions = plan.layout.positions(&block);
            let left = Seen::new(source, &offsets, &positions);
            for (panel, tiles) in tiles.chunks_exact_mut(taps.count).enumerate() {
                let turned: &mut [Row<S>] =
                    bytemuck::cast_slice_mut(&mut scratch.turned[..positions.len() * width::<S>()]);
                self.turn::<S>(&block, group, panel, turned);
                for (index, sums) in tiles.iter_mut().enumerate() {
                    let tile = left.multiply(simd, taps.range(index), turned);
                    // Blocks are summed by themselves first: the error grows with their number only.
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
                turn_rows(planes, turned, width::<S>(), lane);
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

    /// Writes the tiles of one part of the channels into the weight's gradient.
    fn write<S: Simd>(&self, plan: &Plan, column: usize, sums: &[f32]) {
        let ConvolutionShape { outputs, groups, kernel, .. } = self.shape;
        let (group, channels) = self.channels(plan, column);
        let size = kernel[0] * kernel[1];
        let taps = Groups::of(channels.len() * size);
        let count = outputs / groups;
        for output in 0..count {
            let start = (group * count + output) * self.shape.depth() + channels.start * size;
            // SAFETY: a row of one output and one part of the channels belongs to one task.
            let out = unsafe { self.out.slice_mut(start, channels.len() * size) };
            let (panel, lane) = (output / width::<S>(), output % width::<S>());
            for (index, place, tap) in taps.places() {
                let tile = (panel * taps.count + index) * ROWS + place;
                out[tap] = sums[tile * width::<S>() + lane];
            }
        }
    }
}

#[derive(Default)]
struct Scratch {
    prepared: Vec<f32>,
    turned: Vec<f32>,
}

thread_local! {
    /// Used again by the next task of a thread.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Rows that are turned at a time.
const TURN: usize = 8;

/// `turned[pixel · stride + lane + i] = rows[i][pixel]`.
#[inline(always)]
fn turn_rows(rows: [&[f32]; TURN], turned: &mut [f32], stride: usize, lane: usize) {
    let pixels = rows[0].len();
    let whole = pixels / TURN * TURN;
    for start in (0..whole).step_by(TURN) {
        let block: [[f32; TURN]; TURN] = std::array::from_fn(|row| {
            rows[row][start..start + TURN].try_into().expect("a block of this size")
        });
        for (pixel, out) in turned[start * stride..].chunks_mut(stride).take(TURN).enumerate() {
            let out: &mut [f32; TURN] =
                (&mut out[lane..lane + TURN]).try_into().expect("a row of this size");
            for row in 0..TURN {
                out[row] = block[row][pixel];
            }
        }
    }
    for pixel in whole..pixels {
        for row in 0..TURN {
            turned[pixel * stride + lane + row] = rows[row][pixel];
        }
    }
}

/// What the taps see: tap k of pixel p is `source[offsets[k] + positions[p]]`.
struct Seen<'a> {
    source: &'a [f32],
    offsets: &'a [usize],
    positions: &'a [usize],
}

impl<'a> Seen<'a> {
    fn new(source: &'a [f32], offsets: &'a [usize], positions: &'a [usize]) -> Self {
        let last = |places: &[usize]| places.iter().copied().max().unwrap_or(0);
        assert!(
            last(offsets) + last(positions) < source.len(),
            "a window lies outside of its images"
        );
        Self { source, offsets, positions }
    }

    /// `Σ seen[tap, pixel] ⊗ right[pixel]` for a group of taps.
    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, taps: Range<usize>, right: &[Row<S>]) -> Tile<S> {
        let offsets: [usize; ROWS] =
            std::array::from_fn(|at| self.offsets[taps.start + at.min(taps.len() - 1)]);
        let source = self.source;
        let left = self.positions.iter().map(
            #[inline(always)]
            |position| {
                // SAFETY: the sum of the largest offset and position lies in the source, see `new`.
                offsets.map(|offset| unsafe { *source.get_unchecked(offset + position) })
            },
        );
        multiply(simd, taps.len(), left.zip(right.iter().copied()), zeros(simd))
    }
}
