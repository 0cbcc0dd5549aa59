//! A weight times what a window sees of images, pixel by pixel.

use super::blocks::{Block, Cut};
use super::window::{Layout, Window};
use crate::dense::tile::{Groups, ROWS, Row, Tile, VECTORS, multiply, width, zeros};
use crate::shared::{SharedSlice, load};
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;

/// Steps of a packed panel: 256 × 64 bytes are half of a 32 KiB L1 cache.
const DEPTH: usize = 256;
/// Pixels of a block: its packed panels are half of a 512 KiB L2 cache.
const POSITIONS: usize = 256;
/// Rows of the weight below which packing costs more than it saves.
const UNPACKED_ROWS: usize = 64;
/// Numbers of a block that is read without packing, at most: it stays in L2.
const UNPACKED_NUMBERS: usize = 48 * 1024;
/// Pixels below which a block is not cut for the sake of more tasks.
const FEWEST_POSITIONS: usize = 96;
/// Tasks that suffice to keep threads busy: beyond, nothing is cut for their sake.
const TASKS: usize = 16;
/// Groups of rows of a task, at most: with more its sums leave the cache.
const ROW_GROUPS: usize = 86;

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

/// Where results go: pixel (y, x) of a channel's plane stands at `start + y·step₀ + x·step₁`.
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

    /// Where a row of the first channel begins.
    pub fn place(&self, image: usize, row: usize) -> usize {
        image * self.channels * self.plane + self.start + row * self.step[0]
    }
}

/// `out[image, group · rows + row, pixel] = Σ left[group, row, k] · seen[image, group, k, pixel]`.
pub(super) struct Product<'a> {
    pub window: Window,
    /// `[batch, groups · channels, source]`.
    pub source: &'a [f32],
    pub batch: usize,
    pub groups: usize,
    /// Of a group.
    pub channels: usize,
    pub left: &'a Left,
    pub target: Target,
    pub out: SharedSlice<'a>,
}

/// How the work is cut, by sizes alone.
struct Plan {
    blocks: Vec<Block>,
    layout: Layout,
    offsets: Vec<usize>,
    /// Channels that are multiplied at a time.
    chunk: usize,
    row_chunks: usize,
    packs: bool,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.batch == 0 || self.left.rows.count == 0 {
            return;
        }
        let plan = &self.plan(S::F32_LANES);
        let tasks = self.groups * plan.blocks.len() * plan.row_chunks;
        (0..tasks).into_par_iter().for_each(|task| {
            simd.vectorize(RunTask { product: &self, plan, task });
        });
    }
}

/// A struct, not a closure: one that borrows only is called through a shim that is not inlined,
/// and compiled without vector instructions.
struct RunTask<'a> {
    product: &'a Product<'a>,
    plan: &'a Plan,
    task: usize,
}

impl WithSimd for RunTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.product.run_task(simd, self.plan, self.task);
    }
}

impl Product<'_> {
    fn plan(&self, lanes: usize) -> Plan {
        let Window { grid, taps, .. } = self.window;
        let rows = self.left.rows.count * ROWS;
        let packs = !grid[1].is_multiple_of(lanes) || rows > UNPACKED_ROWS + ROWS;
        let taps = taps[0] * taps[1];
        let (chunk, positions) = if packs {
            ((DEPTH / taps).max(1), POSITIONS)
        } else {
            let chunk = (2 * DEPTH / taps).max(1).min(self.channels);
            (chunk, UNPACKED_NUMBERS / chunk)
        };
        let chunk = balanced(self.channels, chunk);
        let share = self.batch * grid[0] * grid[1] / TASKS.div_ceil(self.groups);
        let cut = Cut::new(grid, positions.min(share.max(FEWEST_POSITIONS)));
        let blocks = cut.blocks(0..self.batch);
        let needed = (TASKS / 2).div_ceil(self.groups * blocks.len());
        let row_chunks =
            needed.max(self.left.rows.count.div_ceil(ROW_GROUPS)).min(self.left.rows.count);
        let layout = Layout::new(self.window, cut.rows, chunk, self.groups * self.channels);
        Plan { blocks, layout, offsets: layout.offsets(chunk), chunk, row_chunks, packs }
    }

    #[inline(always)]
    fn run_task<S: Simd>(&self, simd: S, plan: &Plan, task: usize) {
        let row_groups = self.left.rows.count;
        let (rest, part) = (task / plan.row_chunks, task % plan.row_chunks);
        let (group, block) = (rest / plan.blocks.len(), &plan.blocks[rest % plan.blocks.len()]);
        let rows = part * row_groups / plan.row_chunks..(part + 1) * row_groups / plan.row_chunks;
        let mut scratch = SCRATCH.take();
        let mut task = Task {
            product: self,
            group,
            rows,
            panels: Panel::of_block(simd, &plan.layout.positions(block)),
            places: self.places(block, group),
        };
        let taps = self.window.taps[0] * self.window.taps[1];
        let depth = plan.chunk * taps;
        let sums = task.panels.len() * task.rows.len() * ROWS * width::<S>();
        grow(&mut scratch.sums, sums);
        grow(
            &mut scratch.packed,
            if plan.packs { task.panels.len() * depth * width::<S>() } else { 0 },
        );
        let all = self.groups * self.channels;
        for first in (0..self.channels).step_by(plan.chunk) {
            let channels = first..self.channels.min(first + plan.chunk);
            let seen =
                (group * self.channels + channels.start)..(group * self.channels + channels.end);
            let offsets = &plan.offsets[..channels.len() * taps];
            let source =
                plan.layout.prepare(self.source, all, block, seen, 0, &mut scratch.prepared);
            let steps = first * taps..first * taps + offsets.len();
            let right = Right { source, offsets };
            right.check(&task.panels);
            let sums = bytemuck::cast_slice_mut(&mut scratch.sums[..sums]);
            if plan.packs {
                let packed: &mut [Row<S>] = bytemuck::cast_slice_mut(
                    &mut scratch.packed[..task.panels.len() * offsets.len() * width::<S>()],
                );
                for (panel, packed) in
                    task.panels.iter().zip(packed.chunks_exact_mut(offsets.len()))
                {
                    right.pack(simd, panel, packed);
                }
                task.multiply_packed(simd, packed, steps, sums);
            } else {
                task.multiply_unpacked(simd, &right, steps, sums);
            }
        }
        SCRATCH.set(scratch);
    }

    /// Where each pixel of the block goes in the first channel of the group.
    fn places(&self, block: &Block, group: usize) -> Vec<usize> {
        let first = group * self.target.channels / self.groups * self.target.plane;
        block.places(self.window.grid[1], self.target.step[1], |image, row| {
            first + self.target.place(block.images.start + image, row)
        })
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
    /// Used again by the next task of a thread: fresh memory costs more than filling it.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

fn grow(scratch: &mut Vec<f32>, len: usize) {
    if scratch.len() < len {
        scratch.resize(len, 0.0);
    }
}

/// The places of one vector.
#[derive(Clone)]
enum Lanes<S: Simd> {
    /// Neighbours.
    One(usize),
    /// Neighbours, then a jump: lanes of two vectors, the first where the mask says.
    Two(usize, usize, S::m32s),
    Many(Vec<usize>),
}

/// The pixels of one register tile.
struct Panel<S: Simd> {
    lanes: [Lanes<S>; VECTORS],
    /// The largest of all places.
    last: usize,
}

impl<S: Simd> Panel<S> {
    /// Lanes beyond the last pixel repeat it, vectors beyond the last vector that one.
    #[inline(always)]
    fn of_block(simd: S, positions: &[usize]) -> Vec<Self> {
        let panel = |positions: &[usize]| {
            let mut vectors = positions.chunks(S::F32_LANES).map(|lanes| Lanes::new(simd, lanes));
            let first = vectors.next().expect("a panel has pixels");
            let lanes = [first.clone(), vectors.next().unwrap_or(first)];
            Self { lanes, last: positions.iter().copied().max().unwrap_or(0) }
        };
        positions.chunks(width::<S>()).map(panel).collect()
    }
}

impl<S: Simd> Lanes<S> {
    #[inline(always)]
    fn new(simd: S, positions: &[usize]) -> Self {
        let lanes = S::F32_LANES;
        let jumps = || (1..positions.len()).filter(|at| positions[*at] != positions[at - 1] + 1);
        match (positions.len() == lanes, jumps().next(), jumps().nth(1)) {
            (true, None, _) => Self::One(positions[0]),
            // A jump is forwards, so both vectors lie between the first place and the last.
            (true, Some(jump), None) if positions[jump] > positions[jump - 1] => {
                let numbers: Vec<u32> = (0..lanes as u32).collect();
                let numbers = simd.partial_load_u32s(&numbers);
                let mask = simd.less_than_u32s(numbers, simd.splat_u32s(jump as u32));
                Self::Two(positions[0], positions[lanes - 1] + 1 - lanes, mask)
            }
            _ => {
                let last = positions[positions.len() - 1];
                let repeated = positions.iter().copied().chain(std::iter::repeat(last));
                Self::Many(repeated.take(lanes).collect())
            }
        }
    }
}

/// What the window sees: number k of pixel p is `source[offsets[k] + p]`.
struct Right<'a> {
    source: &'a [f32],
    offsets: &'a [usize],
}

impl Right<'_> {
    /// All that is loaded below lies in the source.
    fn check<S: Simd>(&self, panels: &[Panel<S>]) {
        let offset = self.offsets.iter().copied().max().unwrap_or(0);
        let place = panels.iter().map(|panel| panel.last).max().unwrap_or(0);
        assert!(offset + place < self.source.len(), "a window lies outside of its images");
    }

    #[inline(always)]
    fn pack<S: Simd>(&self, simd: S, panel: &Panel<S>, packed: &mut [Row<S>]) {
        let source = self.source;
        for (vector, lanes) in panel.lanes.iter().enumerate() {
            let steps = packed.iter_mut().zip(self.offsets);
            match lanes {
                Lanes::One(at) => {
                    for (row, offset) in steps {
                        // SAFETY: the last lane is a place that `check` has seen.
                        row[vector] = unsafe { load::<S>(source, offset + at) };
                    }
                }
                Lanes::Two(first, second, mask) => {
                    for (row, offset) in steps {
                        // SAFETY: both vectors end at or before the panel's last place.
                        let [first, second] =
                            unsafe { [first, second].map(|at| load::<S>(source, offset + at)) };
                        row[vector] = simd.select_f32s(*mask, first, second);
                    }
                }
                Lanes::Many(places) => {
                    for (row, offset) in steps {
                        let row: &mut [f32] = bytemuck::cast_slice_mut(&mut row[vector..=vector]);
                        for (to, at) in row.iter_mut().zip(places) {
                            *to = source[offset + at];
                        }
                    }
                }
            }
        }
    }
}

struct Task<'a, S: Simd> {
    product: &'a Product<'a>,
    group: usize,
    /// Row groups of the left operand.
    rows: Range<usize>,
    panels: Vec<Panel<S>>,
    /// Where each pixel of the panels goes in the first channel.
    places: Vec<usize>,
}

impl<S: Simd> Task<'_, S> {
    /// Rows outermost: a group of the weight stays in L1, the panels in L2.
    #[inline(always)]
    fn multiply_packed(
        &mut self,
        simd: S,
        packed: &[Row<S>],
        steps: Range<usize>,
        sums: &mut [Tile<S>],
    ) {
        for (at, row_group) in self.rows.clone().enumerate() {
            let left = &self.product.left.steps(self.group, row_group)[steps.clone()];
            let sums = &mut sums[at * self.panels.len()..][..self.panels.len()];
            for (panel, right) in packed.chunks_exact(steps.len()).enumerate() {
                let right = right.iter().copied();
                let tile = if steps.start == 0 { zeros(simd) } else { sums[panel] };
                let count = self.product.left.rows.range(row_group).len();
                let tile = multiply(simd, count, left.iter().copied().zip(right), tile);
                self.keep(simd, row_group, panel, tile, &mut sums[panel], steps.end);
            }
        }
    }

    /// Panels outermost: what a panel sees stays in L1, the weight in L2.
    #[inline(always)]
    fn multiply_unpacked(
        &mut self,
        simd: S,
        right: &Right<'_>,
        steps: Range<usize>,
        sums: &mut [Tile<S>],
    ) {
        for (panel, sums) in sums.chunks_exact_mut(self.rows.len()).enumerate() {
            let [Lanes::One(first), Lanes::One(second)] = self.panels[panel].lanes else {
                unreachable!("rows of whole vectors have neighbours in every vector");
            };
            for (row_group, sums) in self.rows.clone().zip(sums) {
                let left = &self.product.left.steps(self.group, row_group)[steps.clone()];
                let right = right.offsets.iter().map(
                    #[inline(always)]
                    |offset| {
                        // SAFETY: the last lane is a place that `Right::check` has seen.
                        [first, second].map(|at| unsafe { load::<S>(right.source, offset + at) })
                    },
                );
                let tile = if steps.start == 0 { zeros(simd) } else { *sums };
                let count = self.product.left.rows.range(row_group).len();
                let tile = multiply(simd, count, left.iter().copied().zip(right), tile);
                self.keep(simd, row_group, panel, tile, sums, steps.end);
            }
        }
    }

    /// Keeps the sums for the next channels, or writes them behind the last.
    #[inline(always)]
    fn keep(
        &self,
        _: S,
        row_group: usize,
        panel: usize,
        tile: Tile<S>,
        sums: &mut Tile<S>,
        end: usize,
    ) {
        if end < self.product.left.depth {
            *sums = tile;
            return;
        }
        let (lanes, plane) = (S::F32_LANES, self.product.target.plane);
        let places = &self.places[panel * width::<S>()..];
        for (row, values) in self.product.left.rows.range(row_group).zip(tile) {
            for (places, values) in places.chunks(lanes).zip(values) {
                let (first, last) = (places[0], places[places.len() - 1]);
                let values: &[f32] = bytemuck::cast_slice(std::slice::from_ref(&values));
                if last - first + 1 == lanes && places.len() == lanes {
                    // SAFETY: no other task has these pixels of these channels.
                    let out = unsafe { self.product.out.slice_mut(first + row * plane, lanes) };
                    out.copy_from_slice(&values[..lanes]);
                    continue;
                }
                for (place, value) in places.iter().zip(values) {
                    // SAFETY: as above.
                    unsafe { self.product.out.slice_mut(place + row * plane, 1)[0] = *value };
                }
            }
        }
    }
}
