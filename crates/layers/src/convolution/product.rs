//! The product of a weight and the input that a window sees at each pixel.

use super::blocks::{Block, Cut};
use super::panel::{Panel, Right};
use super::window::{Layout, Window};
use crate::dense::tile::{Groups, ROWS, Row, Tile, multiply, width, zeros};
use crate::shared::SharedSlice;
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;

/// Steps of a packed panel: 256 × 64 bytes are half of a 32 KiB L1 cache.
const DEPTH: usize = 256;
/// Pixels of a block: its packed panels are half of a 512 KiB L2 cache.
const POSITIONS: usize = 256;
/// With fewer rows of the weight, packing costs more than it saves.
const UNPACKED_ROWS: usize = 64;
/// The largest size of a block that is read without packing; it stays in L2.
const UNPACKED_NUMBERS: usize = 48 * 1024;
/// Blocks are not made smaller than this for the sake of more tasks.
const FEWEST_POSITIONS: usize = 96;
/// From this number of rows on, the weight is divided by rows for the sake of more tasks.
const WIDE_ROWS: usize = 192;
/// This number of tasks keeps the threads busy; nothing is divided further for the sake of more.
const TASKS: usize = 16;
/// The largest number of row groups of a task; with more, its sums do not fit into the cache.
const ROW_GROUPS: usize = 43;

/// A matrix for each group of channels as the left operand `[group, row group, depth, ROWS]`.
pub(super) struct Left {
    rows: Groups,
    depth: usize,
    packed: Vec<[f32; ROWS]>,
}

impl Left {
    /// `fill(group, rows, steps)` writes up to six rows of the matrix of one group.
    pub fn pack(
        groups: usize,
        rows: usize,
        depth: usize,
        fill: impl Fn(usize, Range<usize>, &mut [[f32; ROWS]]) + Sync,
    ) -> Self {
        let rows = Groups::of(rows);
        let mut packed = vec![[0.0; ROWS]; groups * rows.count * depth];
        packed.par_chunks_mut(depth.max(1)).enumerate().for_each(|(index, steps)| {
            fill(index / rows.count, rows.range(index % rows.count), steps);
        });
        Self { rows, depth, packed }
    }

    fn steps(&self, group: usize, row_group: usize) -> &[[f32; ROWS]] {
        &self.packed[(group * self.rows.count + row_group) * self.depth..][..self.depth]
    }
}

/// Where results are written: pixel (y, x) of a channel's plane is at `start + y·step₀ + x·step₁`.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Channels of an image, of all groups.
    pub channels: usize,
    pub plane: usize,
    pub start: usize,
    pub step: [usize; 2],
}

impl Target {
    pub fn whole(channels: usize, [height, width]: [usize; 2]) -> Self {
        Self { channels, plane: height * width, start: 0, step: [width, 1] }
    }

    /// The start of a row of the first channel.
    pub fn place(&self, image: usize, row: usize) -> usize {
        image * self.channels * self.plane + self.start + row * self.step[0]
    }
}

/// What a window sees of the images, and where the results go.
#[derive(Clone, Copy)]
pub(super) struct Images<'a> {
    pub window: Window,
    /// `[batch, channels, source]`, the channels of all groups.
    pub source: &'a [f32],
    pub batch: usize,
    pub target: Target,
    pub out: SharedSlice<'a>,
}

/// `out[image, group · rows + row, pixel] = Σ left[group, row, k] · seen[image, group, k, pixel]`.
pub(super) struct Product<'a> {
    pub images: Images<'a>,
    pub groups: usize,
    /// Channels of a group.
    pub channels: usize,
    pub left: &'a Left,
}

/// How the work is divided; this depends only on sizes.
struct Plan<S: Simd> {
    blocks: Vec<Block>,
    /// The panels of a block, for each block size.
    panels: Vec<([usize; 2], Vec<Panel<S>>)>,
    layout: Layout,
    offsets: Vec<usize>,
    /// Channels that are multiplied at the same time.
    chunk: usize,
    row_chunks: usize,
    packs: bool,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.images.batch == 0 || self.left.rows.count == 0 {
            return;
        }
        let plan = &self.plan(simd);
        let tasks = self.groups * plan.blocks.len() * plan.row_chunks;
        (0..tasks).into_par_iter().for_each(|task| {
            simd.vectorize(self.task(simd, plan, task));
        });
    }
}

impl Product<'_> {
    #[inline(always)]
    fn plan<S: Simd>(&self, simd: S) -> Plan<S> {
        let Images { window, batch, .. } = self.images;
        let Window { grid, taps, .. } = window;
        let rows = self.left.rows.count * ROWS;
        let packs = !grid[1].is_multiple_of(S::F32_LANES) || rows > UNPACKED_ROWS + ROWS;
        let taps = taps[0] * taps[1];
        let (chunk, positions) = if packs {
            ((DEPTH / taps).max(1), POSITIONS)
        } else {
            let chunk = (2 * DEPTH / taps).max(1).min(self.channels);
            (chunk, UNPACKED_NUMBERS / chunk)
        };
        let chunk = balanced(self.channels, chunk);
        // A wide weight can be divided by rows without loss; a thin one only by pixels.
        let parts = if rows >= WIDE_ROWS { 1 } else { TASKS.div_ceil(self.groups) };
        let share = batch * grid[0] * grid[1] / parts;
        let cut = Cut::new(grid, positions.min(share.max(FEWEST_POSITIONS)), batch);
        let blocks = cut.blocks(0..batch);
        let needed = (TASKS / 2).div_ceil(self.groups * blocks.len());
        let row_chunks =
            needed.max(self.left.rows.count.div_ceil(ROW_GROUPS)).min(self.left.rows.count);
        let layout = Layout::new(window, cut.rows, chunk, self.groups * self.channels);
        let mut panels: Vec<([usize; 2], Vec<Panel<S>>)> = vec![];
        for block in &blocks {
            if panels.iter().all(|(size, _)| *size != block.size()) {
                let of_block = Panel::of_block(simd, &layout.positions(block), &self.places(block));
                panels.push((block.size(), of_block));
            }
        }
        let offsets = layout.offsets(chunk);
        Plan { blocks, panels, layout, offsets, chunk, row_chunks, packs }
    }

    /// The position of each pixel of the block, relative to the first.
    fn places(&self, block: &Block) -> Vec<usize> {
        let Images { window, target, .. } = self.images;
        let first = target.place(0, block.rows.start);
        let place = |image, row| target.place(image, row) - first;
        block.places(window.grid[1], target.step[1], place)
    }

    fn task<'a, S: Simd>(&'a self, simd: S, plan: &'a Plan<S>, task: usize) -> Task<'a, S> {
        let (rest, part) = (task / plan.row_chunks, task % plan.row_chunks);
        let (group, block) = (rest / plan.blocks.len(), &plan.blocks[rest % plan.blocks.len()]);
        let rows = self.left.rows.count;
        let target = self.images.target;
        let channel = group * target.channels / self.groups;
        let place = target.place(block.images.start, block.rows.start);
        let size = block.size();
        let panels = plan.panels.iter().find(|(of, _)| *of == size);
        Task {
            simd,
            product: self,
            plan,
            group,
            block,
            rows: part * rows / plan.row_chunks..(part + 1) * rows / plan.row_chunks,
            panels: panels.map_or(&[], |(_, panels)| &panels[..]),
            place: channel * target.plane + place,
        }
    }
}

/// The size of equal chunks of at most `most`.
fn balanced(total: usize, most: usize) -> usize {
    total.div_ceil(total.div_ceil(most))
}

#[derive(Default)]
struct Scratch {
    prepared: Vec<f32>,
    packed: Vec<f32>,
    sums: Vec<f32>,
}

thread_local! {
    /// Reused by the next task of the thread: a new allocation costs more than filling it.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

fn grow(scratch: &mut Vec<f32>, len: usize) {
    if scratch.len() < len {
        scratch.resize(len, 0.0);
    }
}

/// Some row groups of one block. This is a struct because a closure that only borrows is called
/// through a shim, which is not inlined and is compiled without vector instructions.
struct Task<'a, S: Simd> {
    simd: S,
    product: &'a Product<'a>,
    plan: &'a Plan<S>,
    group: usize,
    block: &'a Block,
    /// Row groups of the left operand.
    rows: Range<usize>,
    panels: &'a [Panel<S>],
    /// The position of the block's first pixel in the first channel.
    place: usize,
}

impl<S: Simd> WithSimd for Task<'_, S> {
    type Output = ();

    /// `T` is the same type as `S`, the vectors of the caller.
    #[inline(always)]
    fn with_simd<T: Simd>(self, _: T) {
        let Self { product, plan, group, block, .. } = self;
        let [taps, panels] = [plan.offsets.len() / plan.chunk, self.panels.len()];
        let mut scratch = SCRATCH.take();
        let sums = panels * self.rows.len() * ROWS * width::<S>();
        grow(&mut scratch.sums, sums);
        grow(&mut scratch.packed, panels * plan.offsets.len() * width::<S>());
        let all = product.groups * product.channels;
        for first in (0..product.channels).step_by(plan.chunk) {
            let count = plan.chunk.min(product.channels - first);
            let seen = group * product.channels + first..group * product.channels + first + count;
            let offsets = &plan.offsets[..count * taps];
            let prepared = &mut scratch.prepared;
            let source = plan.layout.prepare(product.images.source, all, block, seen, 0, prepared);
            let right = Right::new(source, offsets, self.panels);
            let steps = first * taps..first * taps + offsets.len();
            let sums: &mut [Tile<S>] = bytemuck::cast_slice_mut(&mut scratch.sums[..sums]);
            let sums = sums.chunks_exact_mut(self.rows.len());
            if !plan.packs {
                for (panel, sums) in self.panels.iter().zip(sums) {
                    let right = right.vectors::<S>(panel.neighbours());
                    self.multiply_panel(panel, right, steps.clone(), sums);
                }
                continue;
            }
            let packed = &mut scratch.packed[..panels * offsets.len() * width::<S>()];
            let packed: &mut [Row<S>] = bytemuck::cast_slice_mut(packed);
            for (panel, packed) in self.panels.iter().zip(packed.chunks_exact_mut(steps.len())) {
                right.pack(self.simd, panel, packed);
            }
            for ((panel, packed), sums) in
                self.panels.iter().zip(packed.chunks_exact(steps.len())).zip(sums)
            {
                self.multiply_panel(panel, packed.iter().copied(), steps.clone(), sums);
            }
        }
        SCRATCH.set(scratch);
    }
}

impl<S: Simd> Task<'_, S> {
    /// Panels are the outer loop: a panel, packed or not, stays in L1, the weight in L2.
    #[inline(always)]
    fn multiply_panel(
        &self,
        panel: &Panel<S>,
        right: impl Iterator<Item = Row<S>> + Clone,
        steps: Range<usize>,
        sums: &mut [Tile<S>],
    ) {
        let Left { rows, depth, .. } = self.product.left;
        for (row_group, sums) in self.rows.clone().zip(sums) {
            let left = &self.product.left.steps(self.group, row_group)[steps.clone()];
            let rows = rows.range(row_group);
            let tile = if steps.start == 0 { zeros(self.simd) } else { *sums };
            let pairs = left.iter().copied().zip(right.clone());
            let tile = multiply(self.simd, rows.len(), pairs, tile);
            // The sums are kept for the next channels, or written after the last.
            if steps.end < *depth {
                *sums = tile;
                continue;
            }
            for (row, values) in rows.zip(tile) {
                let place = self.place + row * self.product.images.target.plane;
                // SAFETY: no other task has these pixels of these channels.
                unsafe { panel.write(&self.product.images.out, place, values) };
            }
        }
    }
}
