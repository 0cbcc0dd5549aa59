//! The loops over one channel of all images.

use pulp::{Simd, WithSimd};

use super::{Activation, NormShape};
use crate::shared::SharedSlice;

/// Numbers that are summed in f32 before f64; a piece stays in L1 between its mean and its variance.
const PIECE: usize = 1024;
/// Independent sums of vectors.
const VECTORS: usize = 4;

/// The parameters of one channel: `y = factor · (x − mean) + shift`, `inverse = 1/σ`.
#[derive(Clone, Copy)]
pub(super) struct Fused {
    pub mean: f32,
    pub inverse: f32,
    pub factor: f32,
    pub shift: f32,
    pub activation: Activation,
}

/// One channel of all images.
#[derive(Clone, Copy)]
pub(super) struct Channel<'a> {
    pub x: &'a [f32],
    pub index: usize,
    pub shape: NormShape,
}

impl<'a> Channel<'a> {
    /// Where the channel's plane of each image begins.
    fn planes(&self) -> impl Iterator<Item = usize> + use<> {
        let NormShape { batch, channels, pixels } = self.shape;
        let index = self.index;
        (0..batch).map(move |image| (image * channels + index) * pixels)
    }

    fn plane(&self, of: &'a [f32], start: usize) -> &'a [f32] {
        &of[start..][..self.shape.pixels]
    }
}

/// Mean and variance. Each piece has its own mean, to avoid cancellation, and the pieces are merged
/// in f64 (Chan, Golub and LeVeque, 1983).
impl WithSimd for Channel<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f64, f64) {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for start in self.planes() {
            for piece in self.plane(self.x, start).chunks(PIECE) {
                let size = piece.len() as f64;
                let middle = f64::from(sum(simd, piece)) / size;
                let around = f64::from(sum_of_squares(simd, piece, middle as f32));
                // `around` refers to the rounded mean; this corrects the difference.
                let rounding = middle - f64::from(middle as f32);
                let around = around - size * rounding * rounding;
                let apart = middle - mean;
                let total: f64 = count + size;
                mean += apart * size / total;
                squares += around + apart * apart * count * size / total;
                count = total;
            }
        }
        let variance = if count > 0.0 { squares / count } else { 0.0 };
        // Rounding can make it negative; a NaN must remain a NaN.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        (mean, variance)
    }
}

#[inline(always)]
fn sum<S: Simd>(simd: S, values: &[f32]) -> f32 {
    let (vectors, tail) = S::as_simd_f32s(values);
    let mut sums = [simd.splat_f32s(0.0); VECTORS];
    for vectors in vectors.chunks(VECTORS) {
        for (sum, value) in sums.iter_mut().zip(vectors) {
            *sum = simd.add_f32s(*sum, *value);
        }
    }
    fold(simd, sums) + tail.iter().sum::<f32>()
}

#[inline(always)]
fn sum_of_squares<S: Simd>(simd: S, values: &[f32], mean: f32) -> f32 {
    let (vectors, tail) = S::as_simd_f32s(values);
    let middle = simd.splat_f32s(mean);
    let mut sums = [simd.splat_f32s(0.0); VECTORS];
    for vectors in vectors.chunks(VECTORS) {
        for (sum, value) in sums.iter_mut().zip(vectors) {
            let apart = simd.sub_f32s(*value, middle);
            *sum = simd.mul_add_e_f32s(apart, apart, *sum);
        }
    }
    fold(simd, sums) + tail.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>()
}

#[inline(always)]
fn fold<S: Simd>(simd: S, [a, b, c, d]: [S::f32s; VECTORS]) -> f32 {
    simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d)))
}

/// The loop over the vectors of a channel; the last numbers are padded with zeros to a vector.
macro_rules! each_vector {
    ($simd:ident, $channel:ident, |$($from:ident in $slice:expr),+; $start:ident| $value:expr, $out:ident) => {
        for $start in $channel.planes() {
            // SAFETY: a channel belongs to one task.
            let out = unsafe { $out.slice_mut($start, $channel.shape.pixels) };
            let (vectors, tail) = S::as_mut_simd_f32s(out);
            let mut at = 0;
            for out in vectors {
                $(let $from = vector::<S>($simd, &$slice[at..at + S::F32_LANES]);)+
                *out = $value;
                at += S::F32_LANES;
            }
            if !tail.is_empty() {
                $(let $from = $simd.partial_load_f32s(&$slice[at..]);)+
                $simd.partial_store_f32s(tail, $value);
            }
        }
    };
}

#[inline(always)]
fn vector<S: Simd>(simd: S, values: &[f32]) -> S::f32s {
    let (vectors, _) = S::as_simd_f32s(values);
    vectors.first().copied().unwrap_or(simd.splat_f32s(0.0))
}

/// `φ(factor · (x − mean) + shift)`.
pub(super) struct Normalise<'a> {
    pub channel: Channel<'a>,
    pub fused: Fused,
    pub out: SharedSlice<'a>,
}

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { channel, fused, out } = self;
        let line = Line::new(simd, fused);
        match fused.activation {
            Activation::None => each_vector!(
                simd, channel, |x in channel.plane(channel.x, start); start| line.at(simd, x), out
            ),
            Activation::Relu => each_vector!(
                simd, channel, |x in channel.plane(channel.x, start); start|
                rectified(simd, line.at(simd, x)), out
            ),
            Activation::Relu6 => each_vector!(
                simd, channel, |x in channel.plane(channel.x, start); start|
                at_most_six(simd, rectified(simd, line.at(simd, x))), out
            ),
        }
    }
}

/// max(y, 0), by comparison, so that a NaN remains a NaN: callers check for it.
#[inline(always)]
fn rectified<S: Simd>(simd: S, y: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    simd.select_f32s(simd.less_than_f32s(y, zero), zero, y)
}

/// min(y, 6), likewise.
#[inline(always)]
fn at_most_six<S: Simd>(simd: S, y: S::f32s) -> S::f32s {
    let six = simd.splat_f32s(6.0);
    simd.select_f32s(simd.less_than_f32s(six, y), six, y)
}

/// `y = factor · (x − mean) + shift` and the gradient that its activation passes.
#[derive(Clone, Copy)]
struct Line<S: Simd> {
    mean: S::f32s,
    factor: S::f32s,
    shift: S::f32s,
    activation: Activation,
}

impl<S: Simd> Line<S> {
    #[inline(always)]
    fn new(simd: S, fused: Fused) -> Self {
        Self {
            mean: simd.splat_f32s(fused.mean),
            factor: simd.splat_f32s(fused.factor),
            shift: simd.splat_f32s(fused.shift),
            activation: fused.activation,
        }
    }

    #[inline(always)]
    fn at(&self, simd: S, x: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(simd.sub_f32s(x, self.mean), self.factor, self.shift)
    }

    /// Adds to the sums of `passed · (x − mean)` and `passed`.
    #[inline(always)]
    fn add(
        &self,
        simd: S,
        x: S::f32s,
        grad: S::f32s,
        [product, passed]: [S::f32s; 2],
    ) -> [S::f32s; 2] {
        let passes = self.passed(simd, x, grad);
        let apart = simd.sub_f32s(x, self.mean);
        [simd.mul_add_e_f32s(passes, apart, product), simd.add_f32s(passed, passes)]
    }

    /// The upstream gradient where the activation is not flat.
    #[inline(always)]
    fn passed(&self, simd: S, x: S::f32s, grad: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        match self.activation {
            Activation::None => grad,
            Activation::Relu => {
                simd.select_f32s(simd.less_than_f32s(zero, self.at(simd, x)), grad, zero)
            }
            Activation::Relu6 => {
                let y = self.at(simd, x);
                let six = simd.splat_f32s(6.0);
                let grad = simd.select_f32s(simd.less_than_f32s(y, six), grad, zero);
                simd.select_f32s(simd.less_than_f32s(zero, y), grad, zero)
            }
        }
    }
}

/// `Σ passed · (x − mean)/σ` and `Σ passed`: the gradients with respect to scale and shift.
pub(super) struct Sums<'a> {
    pub channel: Channel<'a>,
    pub fused: Fused,
    pub grad_out: &'a [f32],
}

impl WithSimd for Sums<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f64; 2] {
        let Self { channel, fused, grad_out } = self;
        let line = Line::new(simd, fused);
        let mut totals = [0.0f64; 2];
        for start in channel.planes() {
            let pieces = channel.plane(channel.x, start).chunks(PIECE);
            for (x, grad) in pieces.zip(channel.plane(grad_out, start).chunks(PIECE)) {
                let [product, passed] = piece_sums(simd, line, x, grad);
                totals[0] += f64::from(product);
                totals[1] += f64::from(passed);
            }
        }
        [totals[0] * f64::from(fused.inverse), totals[1]]
    }
}

/// `Σ passed · (x − mean)` and `Σ passed` of one piece.
#[inline(always)]
fn piece_sums<S: Simd>(simd: S, line: Line<S>, x: &[f32], grad: &[f32]) -> [f32; 2] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; 2];
    let ((x, x_tail), (grad, grad_tail)) = (S::as_simd_f32s(x), S::as_simd_f32s(grad));
    let last = x.len() / 2 * 2;
    for (x, grad) in x.chunks_exact(2).zip(grad.chunks_exact(2)) {
        for side in 0..2 {
            sums[side] = line.add(simd, x[side], grad[side], sums[side]);
        }
    }
    if last < x.len() {
        sums[0] = line.add(simd, x[last], grad[last], sums[0]);
    }
    if !x_tail.is_empty() {
        // Lanes beyond the end have gradient zero and add nothing.
        let (x, grad) = (simd.partial_load_f32s(x_tail), simd.partial_load_f32s(grad_tail));
        sums[1] = line.add(simd, x, grad, sums[1]);
    }
    let [[product, passed], [more_product, more_passed]] = sums;
    [
        simd.reduce_sum_f32s(simd.add_f32s(product, more_product)),
        simd.reduce_sum_f32s(simd.add_f32s(passed, more_passed)),
    ]
}

/// `factor · (passed − mean of passed − (x − mean)/σ · mean of its product)`.
pub(super) struct InputGradient<'a> {
    pub channel: Channel<'a>,
    pub fused: Fused,
    pub grad_out: &'a [f32],
    /// The means of `passed · (x − mean)/σ` and `passed`; zero if the statistics are given.
    pub means: [f64; 2],
    pub out: SharedSlice<'a>,
}

impl WithSimd for InputGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { channel, fused, grad_out, means, out } = self;
        let line = Line::new(simd, fused);
        let factor = simd.splat_f32s(fused.factor);
        let mean = simd.splat_f32s(means[1] as f32);
        let slope = simd.splat_f32s((means[0] * f64::from(fused.inverse)) as f32);
        each_vector!(
            simd, channel,
            |x in channel.plane(channel.x, start), grad in channel.plane(grad_out, start); start|
            {
                let passed = simd.sub_f32s(line.passed(simd, x, grad), mean);
                let apart = simd.sub_f32s(x, line.mean);
                simd.mul_f32s(factor, simd.sub_f32s(passed, simd.mul_f32s(apart, slope)))
            },
            out
        );
    }
}
