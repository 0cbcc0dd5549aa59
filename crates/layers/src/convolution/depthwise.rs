//! Convolutions of each channel with its own kernel, which are too thin for a product of matrices.

use super::blocks::{Block, Cut};
use super::product::Images;
use super::window::{Layout, Window};
use crate::shared::{SharedSlice, load};
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;
use std::cell::Cell;

/// Pixels of a block: a whole plane in most networks, and small enough for L2.
const POSITIONS: usize = 1 << 14;
/// Vectors that are summed at the same time, so that their chains of additions overlap.
const VECTORS: usize = 4;

thread_local! {
    /// Reused by the next task of the thread.
    static SCRATCH: Cell<Vec<f32>> = Cell::default();
}

/// `out[image, channel, pixel] = Σ weight[channel, tap] · seen[image, channel, tap, pixel]`.
pub(super) struct DepthwiseProduct<'a> {
    pub images: Images<'a>,
    pub channels: usize,
    /// `[channels, taps]`.
    pub weight: Vec<f32>,
}

/// How planes are divided into bands of rows, the layout of a band, and the offsets of its taps.
struct Bands {
    blocks: Vec<Block>,
    layout: Layout,
    offsets: Vec<usize>,
}

impl Bands {
    fn new(window: Window) -> Self {
        let cut = Cut::new(window.grid, POSITIONS, 1);
        let layout = Layout::copied(window, cut.rows, 1);
        Self { blocks: cut.blocks(0..1), layout, offsets: layout.offsets(1) }
    }
}

impl WithSimd for DepthwiseProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let bands = &Bands::new(self.images.window);
        let count = bands.blocks.len();
        let tasks = self.images.batch * self.channels * count;
        (0..tasks).into_par_iter().with_min_len(4).for_each(|task| {
            let (plane, rows) = (task / count, bands.blocks[task % count].rows.clone());
            let (image, channel) = (plane / self.channels, plane % self.channels);
            let block = Block { images: image..image + 1, rows };
            simd.vectorize(Plane { product: &self, bands, block, channel });
        });
    }
}

/// One plane, or a band of its rows.
struct Plane<'a> {
    product: &'a DepthwiseProduct<'a>,
    bands: &'a Bands,
    block: Block,
    channel: usize,
}

impl WithSimd for Plane<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { product, bands: Bands { layout, offsets, .. }, ref block, channel } = self;
        let Images { window, source, target, out, .. } = product.images;
        let mut scratch = SCRATCH.take();
        let (slack, seen) = (VECTORS * S::F32_LANES, channel..channel + 1);
        let source = layout.prepare(source, product.channels, block, seen, slack, &mut scratch);
        let weight = &product.weight[channel * offsets.len()..][..offsets.len()];
        let (width, step) = (window.grid[1], target.step[1]);
        for row in block.rows.clone() {
            let start = layout.row(block, row);
            let place = target.place(block.images.start, row) + channel * target.plane;
            for column in (0..width).step_by(slack) {
                let count = slack.min(width - column);
                let sums = weigh(simd, source, offsets, weight, start + column);
                let sums: &[f32] = bytemuck::cast_slice(&sums);
                let (place, len) = (place + column * step, (count - 1) * step + 1);
                // SAFETY: a row of pixels of one phase belongs to one task.
                let out = unsafe { out.slice_mut(place, len) };
                if step == 1 {
                    out.copy_from_slice(&sums[..count]);
                } else {
                    out.iter_mut().step_by(step).zip(sums).for_each(|(to, from)| *to = *from);
                }
            }
        }
        SCRATCH.set(scratch);
    }
}

/// `Σ weight[tap] · source[at + offsets[tap]..]` for a few vectors.
#[inline(always)]
fn weigh<S: Simd>(
    simd: S,
    source: &[f32],
    offsets: &[usize],
    weight: &[f32],
    at: usize,
) -> [S::f32s; VECTORS] {
    let mut sums = [simd.splat_f32s(0.0); VECTORS];
    for (offset, weight) in offsets.iter().zip(weight) {
        let (seen, _) = S::as_simd_f32s(&source[at + offset..][..VECTORS * S::F32_LANES]);
        let weight = simd.splat_f32s(*weight);
        for (sum, seen) in sums.iter_mut().zip(seen) {
            *sum = simd.mul_add_e_f32s(weight, *seen, *sum);
        }
    }
    sums
}

/// `out[channel, tap] = Σ seen[image, channel, tap, pixel] · grad_out[image, channel, pixel]`.
pub(super) struct DepthwiseWeight<'a> {
    pub window: Window,
    /// `[batch, channels, source]`.
    pub source: &'a [f32],
    /// `[batch, channels, grid]`.
    pub grad_out: &'a [f32],
    pub batch: usize,
    pub channels: usize,
    /// `[channels, taps]`.
    pub out: SharedSlice<'a>,
}

/// Taps that are summed at the same time.
const TAPS: usize = 8;

impl WithSimd for DepthwiseWeight<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let bands = &Bands::new(self.window);
        (0..self.channels).into_par_iter().for_each(|channel| {
            simd.vectorize(Channel { gradient: &self, bands, channel });
        });
    }
}

/// One channel of all images.
struct Channel<'a> {
    gradient: &'a DepthwiseWeight<'a>,
    bands: &'a Bands,
    channel: usize,
}

impl WithSimd for Channel<'_> {
    type Output = ();

    /// Images and bands in order; each is summed separately in f32.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { gradient, bands: Bands { blocks, layout, offsets }, channel } = self;
        let DepthwiseWeight { source, channels, .. } = *gradient;
        let [height, width] = gradient.window.grid;
        let mut totals = vec![0.0f64; offsets.len()];
        let mut scratch = SCRATCH.take();
        for image in 0..gradient.batch {
            let grad = &gradient.grad_out[(image * channels + channel) * height * width..];
            for band in blocks {
                let block = Block { images: image..image + 1, rows: band.rows.clone() };
                let (seen, slack) = (channel..channel + 1, S::F32_LANES);
                let source = layout.prepare(source, channels, &block, seen, slack, &mut scratch);
                for (totals, offsets) in totals.chunks_mut(TAPS).zip(offsets.chunks(TAPS)) {
                    let mut sums = [simd.splat_f32s(0.0); TAPS];
                    for row in block.rows.clone() {
                        let (start, grad) =
                            (layout.row(&block, row), &grad[row * width..][..width]);
                        add_row(simd, source, offsets, start, grad, &mut sums);
                    }
                    for (total, sum) in totals.iter_mut().zip(sums) {
                        *total += f64::from(simd.reduce_sum_f32s(sum));
                    }
                }
            }
        }
        SCRATCH.set(scratch);
        // SAFETY: a channel belongs to one task.
        let out = unsafe { gradient.out.slice_mut(channel * offsets.len(), offsets.len()) };
        out.iter_mut().zip(totals).for_each(|(out, total)| *out = total as f32);
    }
}

/// Adds the products of one row of pixels to the sums of some taps.
#[inline(always)]
fn add_row<S: Simd>(
    simd: S,
    source: &[f32],
    offsets: &[usize],
    start: usize,
    grad: &[f32],
    sums: &mut [S::f32s; TAPS],
) {
    let last = offsets.iter().copied().max().unwrap_or(0) + start;
    assert!(last + grad.len().next_multiple_of(S::F32_LANES) <= source.len());
    // The gradient is zero in lanes beyond the row, so these add nothing.
    let (vectors, tail) = S::as_simd_f32s(grad);
    let tail = (!tail.is_empty()).then(|| simd.partial_load_f32s(tail));
    for (at, grad) in vectors.iter().copied().chain(tail).enumerate() {
        let at = start + at * S::F32_LANES;
        for (sum, offset) in sums.iter_mut().zip(offsets) {
            // SAFETY: the last vector of the last tap is within the source by the assertion above.
            let seen = unsafe { load::<S>(source, at + offset) };
            *sum = simd.mul_add_e_f32s(seen, grad, *sum);
        }
    }
}
