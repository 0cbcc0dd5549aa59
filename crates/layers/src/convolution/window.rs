//! The part of the input that a pixel of the output sees, and a copy of the input in which every tap
//! of the kernel reads whole vectors.

use super::ConvolutionShape;
use super::blocks::Block;
use std::ops::Range;

/// A grid of pixels, each of which sees the source at `pixel · stride + tap + origin`; outside, the
/// source is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Height and width of the source.
    pub source: [usize; 2],
    /// Height and width of the result.
    pub grid: [usize; 2],
    pub stride: [usize; 2],
    pub taps: [usize; 2],
    pub origin: [isize; 2],
}

impl Window {
    /// Whether pixels see the source itself, so that no copy is needed.
    pub fn is_plain(&self) -> bool {
        self.taps == [1, 1]
            && self.stride == [1, 1]
            && self.origin == [0, 0]
            && self.source == self.grid
    }
}

/// The pixels of the input with one remainder modulo the stride. Their gradient is a convolution of
/// stride 1 of the upstream gradient with the taps of the same remainder.
pub(super) struct Phase {
    pub window: Window,
    /// The first row and column of the input.
    pub first: [usize; 2],
    remainder: [usize; 2],
}

impl Phase {
    /// All phases with at least one pixel.
    pub fn all(shape: &ConvolutionShape) -> Vec<Self> {
        let [sy, sx] = shape.stride;
        let remainders = (0..sy).flat_map(|y| (0..sx).map(move |x| [y, x]));
        let phases = remainders.map(|remainder| Self::new(shape, remainder));
        phases.filter(|phase| !phase.window.grid.contains(&0)).collect()
    }

    fn new(shape: &ConvolutionShape, remainder: [usize; 2]) -> Self {
        let before = [shape.padding[0], shape.padding[2]];
        let axis = |axis: usize| {
            let (stride, size) = (shape.stride[axis], shape.size[axis]);
            // Pixel i is at i + before = stride · q + remainder; tap remainder + stride · m of
            // output q − m reaches it.
            let first = (remainder[axis] + stride - before[axis] % stride) % stride;
            let pixels = size.saturating_sub(first).div_ceil(stride);
            let taps = shape.kernel[axis].saturating_sub(remainder[axis]).div_ceil(stride);
            let quotient = (first + before[axis]) / stride;
            (first, pixels, taps, quotient as isize - (taps as isize - 1))
        };
        let [rows, columns] = [axis(0), axis(1)];
        let window = Window {
            source: shape.out_size(),
            grid: [rows.1, columns.1],
            stride: [1, 1],
            taps: [rows.2, columns.2],
            origin: [rows.3, columns.3],
        };
        Self { window, first: [rows.0, columns.0], remainder }
    }

    /// The taps of the kernel in the order of the window, which is the reverse.
    pub fn taps(&self, shape: &ConvolutionShape) -> impl Iterator<Item = usize> + use<> {
        let ([rows, columns], remainder, stride) = (self.window.taps, self.remainder, shape.stride);
        let width = shape.kernel[1];
        (0..rows).rev().flat_map(move |row| {
            let row = (remainder[0] + stride[0] * row) * width;
            (0..columns).rev().map(move |column| row + remainder[1] + stride[1] * column)
        })
    }
}

/// The memory layout of a block: `[image, channel, phase, row, column]` with the source padded and
/// its rows and columns sorted by their remainder modulo the stride, so that neighbouring pixels see
/// neighbouring numbers at each tap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    window: Window,
    /// The source itself, see [`Window::is_plain`].
    plain: bool,
    phases: [usize; 2],
    pitch: usize,
    plane: usize,
    channel: usize,
    image: usize,
}

impl Layout {
    /// For blocks of at most `rows` rows and `channels` channels, of images of `all` channels.
    pub fn new(window: Window, rows: usize, channels: usize, all: usize) -> Self {
        if window.is_plain() {
            let [height, pitch] = window.source;
            let plane = height * pitch;
            let (phases, image) = ([1, 1], all * plane);
            return Self { window, plain: true, phases, pitch, plane, channel: plane, image };
        }
        Self::copied(window, rows, channels)
    }

    /// As [`Layout::new`], but always a copy.
    pub fn copied(window: Window, rows: usize, channels: usize) -> Self {
        let Window { grid, stride, taps, .. } = window;
        let phases = [0, 1].map(|axis| stride[axis].min(taps[axis]));
        let pitch = grid[1] + (taps[1] - 1) / stride[1];
        let plane = (rows + (taps[0] - 1) / stride[0]) * pitch;
        let channel = plane * phases[0] * phases[1];
        Self { window, plain: false, phases, pitch, plane, channel, image: channel * channels }
    }

    /// The position that the first tap of the first channel reads for each pixel of the block.
    pub fn positions(&self, block: &Block) -> Vec<usize> {
        block.places(self.window.grid[1], 1, |image, row| image * self.image + self.row(block, row))
    }

    /// The position that the first tap of the first channel reads for the first pixel of a row in the
    /// first image.
    pub fn row(&self, block: &Block, row: usize) -> usize {
        (row - block.rows.start) * self.pitch
    }

    /// The offset of each tap of each channel from the first.
    pub fn offsets(&self, channels: usize) -> Vec<usize> {
        let ([rows, columns], [sy, sx]) = (self.window.taps, self.window.stride);
        let mut offsets = Vec::with_capacity(channels * rows * columns);
        for channel in 0..channels {
            for (row, column) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                let phase = row % sy * self.phases[1] + column % sx;
                let inside = row / sy * self.pitch + column / sx;
                offsets.push(channel * self.channel + phase * self.plane + inside);
            }
        }
        offsets
    }

    /// The channels of a block in this layout: a part of the source, or a copy in `scratch` with
    /// `slack` zeros after it.
    #[inline(always)]
    pub fn prepare<'a>(
        &self,
        source: &'a [f32],
        all: usize,
        block: &Block,
        channels: Range<usize>,
        slack: usize,
        scratch: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let [height, width] = self.window.source;
        if self.plain {
            let row = (block.images.start * all + channels.start) * height + block.rows.start;
            return &source[row * width..];
        }
        let len = block.images.len() * self.image + slack;
        if scratch.len() < len {
            scratch.resize(len, 0.0);
        }
        let planes = self.phases[0] * self.phases[1];
        for (to, image) in block.images.clone().enumerate() {
            for (at, channel) in channels.clone().enumerate() {
                let source = &source[(image * all + channel) * height * width..][..height * width];
                let start = to * self.image + at * self.channel;
                for phase in 0..planes {
                    let plane = &mut scratch[start + phase * self.plane..][..self.plane];
                    self.copy_plane(source, block, phase, plane);
                }
            }
        }
        scratch[len - slack..len].fill(0.0);
        &scratch[..len]
    }

    #[inline(always)]
    fn copy_plane(&self, source: &[f32], block: &Block, phase: usize, plane: &mut [f32]) {
        let Window { source: [height, width], stride, origin, .. } = self.window;
        let first_column = origin[1] + (phase % self.phases[1]) as isize;
        for (row, out) in plane.chunks_exact_mut(self.pitch).enumerate() {
            let row = ((block.rows.start + row) * stride[0] + phase / self.phases[1]) as isize;
            let row = row + origin[0];
            if row < 0 || row >= height as isize {
                out.fill(0.0);
                continue;
            }
            copy_row(&source[row as usize * width..][..width], first_column, stride[1], out);
        }
    }
}

/// `out[i] = row[first + i · stride]`, zero outside of the row.
#[inline(always)]
fn copy_row(row: &[f32], first: isize, stride: usize, out: &mut [f32]) {
    let zeros = (-first).max(0) as usize;
    let zeros = zeros.div_ceil(stride).min(out.len());
    let (left, rest) = out.split_at_mut(zeros);
    left.fill(0.0);
    let start = first + (zeros * stride) as isize;
    let row = row.get(start as usize..).unwrap_or_default();
    let inside = row.len().div_ceil(stride).min(rest.len());
    let (inside, right) = rest.split_at_mut(inside);
    right.fill(0.0);
    match stride {
        1 => copy_all(row, inside),
        2 => copy_even(row, inside),
        _ => inside.iter_mut().zip(row.iter().step_by(stride)).for_each(|(to, from)| *to = *from),
    }
}

/// Rows are short, so copies of a constant size cost less than a call of `memcpy`.
#[inline(always)]
fn copy_all(row: &[f32], out: &mut [f32]) {
    let row = &row[..out.len()];
    let ((row, row_tail), (out, out_tail)) = (row.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (out, row) in out.iter_mut().zip(row) {
        *out = *row;
    }
    for (out, row) in out_tail.iter_mut().zip(row_tail) {
        *out = *row;
    }
}

/// Copies every second number; pairs of a constant size are compiled to vector shuffles.
#[inline(always)]
fn copy_even(row: &[f32], out: &mut [f32]) {
    let whole = (row.len() / 2).min(out.len());
    let (pairs, last) = out.split_at_mut(whole);
    pairs.iter_mut().zip(row.chunks_exact(2)).for_each(|(to, from)| *to = from[0]);
    if let Some(last) = last.first_mut() {
        *last = row[2 * whole];
    }
}
