//! Batch normalisation of images `[B, C, H, W]` with the rectifier after it, and its gradients.
//!
//! `out = φ(scale · (x − mean) / σ + shift)` with `σ² = variance + ε` for each channel, and φ the
//! identity or a rectifier. Mean and variance are either given, or computed from the batch, in which
//! case gradients flow through them.
//!
//! One task computes a whole channel, so results are bit-identical in any rayon pool, and data are
//! reused while they are in the cache. Planes are summed in f32 in several independent sums, which
//! are added in f64 in the order of the images.
#![allow(unsafe_code, reason = "tasks write to the planes of their channel in one slice")]

mod channel;
pub mod reference;

use channel::{Channel, Fused, Sums};
use pulp::Arch;
use rayon::prelude::*;

use crate::shared::SharedSlice;

/// The activation after the normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// No activation.
    None,
    /// `max(0, y)`.
    Relu,
    /// `min(6, max(0, y))`.
    Relu6,
}

/// The sizes of a batch of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormShape {
    /// Images, `B`.
    pub batch: usize,
    /// Channels, `C`.
    pub channels: usize,
    /// Pixels of an image, `H · W`.
    pub pixels: usize,
}

/// Means and variances of the channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// `[C]`.
    pub mean: Vec<f32>,
    /// Divided by the number of values, not by one less, `[C]`.
    pub variance: Vec<f32>,
}

/// The parameters of the layer; without a scale it is one.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// `[C]`.
    pub scale: Option<&'a [f32]>,
    /// `[C]`.
    pub shift: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
    /// The activation after the normalisation.
    pub activation: Activation,
}

/// The gradients with respect to scale and shift.
#[derive(Clone, Debug, PartialEq)]
pub struct AffineGrad {
    /// `[C]`.
    pub scale: Vec<f32>,
    /// `[C]`.
    pub shift: Vec<f32>,
}

/// Whether the statistics depend on the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// They are computed from the input, and gradients flow through them.
    Batch,
    /// They are given.
    Fixed,
}

/// Normalises with the statistics of the batch, and returns them.
///
/// # Shapes
/// `x` and `out` `[B, C, H · W]`; `out` is overwritten.
///
/// ```
/// use aleator_layers::batch_norm::{Activation, Affine, NormShape, forward};
///
/// let shape = NormShape { batch: 2, channels: 1, pixels: 1 };
/// let affine =
///     Affine { scale: None, shift: &[0.5], epsilon: 0.0, activation: Activation::Relu };
/// let mut out = [0.0; 2];
/// let statistics = forward(&[1.0, 5.0], affine, &mut out, shape);
/// assert_eq!((statistics.mean[0], statistics.variance[0]), (3.0, 4.0));
/// assert_eq!(out, [0.0, 1.5]);
/// ```
pub fn forward(x: &[f32], affine: Affine<'_>, out: &mut [f32], shape: NormShape) -> Statistics {
    affine.check(shape);
    shape.check(x, "x");
    shape.check(out, "out");
    let out = SharedSlice::new(out);
    let (mean, variance) = (0..shape.channels)
        .into_par_iter()
        .map(|index| {
            let channel = Channel { x, index, shape };
            let (mean, variance) = Arch::new().dispatch(channel);
            let fused = affine.fused(index, mean as f32, variance as f32);
            Arch::new().dispatch(channel::Normalise { channel, fused, out });
            (mean as f32, variance as f32)
        })
        .unzip();
    Statistics { mean, variance }
}

/// Normalises with given statistics.
///
/// # Shapes
/// As [`forward`].
///
/// ```
/// use aleator_layers::batch_norm::{Activation, Affine, NormShape, Statistics, forward_fixed};
///
/// let shape = NormShape { batch: 2, channels: 1, pixels: 1 };
/// let affine =
///     Affine { scale: None, shift: &[0.5], epsilon: 0.0, activation: Activation::None };
/// let statistics = Statistics { mean: vec![1.0], variance: vec![4.0] };
/// let mut out = [0.0; 2];
/// forward_fixed(&[1.0, 5.0], affine, &statistics, &mut out, shape);
/// assert_eq!(out, [0.5, 2.5]);
/// ```
pub fn forward_fixed(
    x: &[f32],
    affine: Affine<'_>,
    statistics: &Statistics,
    out: &mut [f32],
    shape: NormShape,
) {
    affine.check(shape);
    statistics.check(shape);
    shape.check(x, "x");
    shape.check(out, "out");
    let out = SharedSlice::new(out);
    (0..shape.channels).into_par_iter().for_each(|index| {
        let (mean, variance) = (statistics.mean[index], statistics.variance[index]);
        let fused = affine.fused(index, mean, variance);
        let channel = Channel { x, index, shape };
        Arch::new().dispatch(channel::Normalise { channel, fused, out });
    });
}

/// The gradients of `Σ forward(x) · grad_out` with respect to scale, shift and, if a slice is given,
/// `x`.
///
/// # Shapes
/// `x`, `grad_out` and `grad_x` `[B, C, H · W]`; `grad_x` is overwritten.
///
/// ```
/// use aleator_layers::batch_norm::{Activation, Affine, NormShape, Source, Statistics, backward};
///
/// let shape = NormShape { batch: 2, channels: 1, pixels: 1 };
/// let affine =
///     Affine { scale: None, shift: &[0.5], epsilon: 0.0, activation: Activation::None };
/// let statistics = Statistics { mean: vec![1.0], variance: vec![4.0] };
/// let mut grad_x = [0.0; 2];
/// let (x, grad_out) = ([1.0, 5.0], [1.0, 10.0]);
/// let grads =
///     backward(&x, &grad_out, affine, &statistics, Source::Fixed, Some(&mut grad_x), shape);
/// assert_eq!((grads.scale[0], grads.shift[0]), (20.0, 11.0));
/// assert_eq!(grad_x, [0.5, 5.0]);
/// ```
pub fn backward(
    x: &[f32],
    grad_out: &[f32],
    affine: Affine<'_>,
    statistics: &Statistics,
    source: Source,
    grad_x: Option<&mut [f32]>,
    shape: NormShape,
) -> AffineGrad {
    affine.check(shape);
    statistics.check(shape);
    shape.check(x, "x");
    shape.check(grad_out, "grad_out");
    let grad_x = grad_x.map(|grad| {
        shape.check(grad, "grad_x");
        SharedSlice::new(grad)
    });
    let (scale, shift) = (0..shape.channels)
        .into_par_iter()
        .map(|index| {
            let (mean, variance) = (statistics.mean[index], statistics.variance[index]);
            let fused = affine.fused(index, mean, variance);
            let channel = Channel { x, index, shape };
            let sums = Arch::new().dispatch(Sums { channel, fused, grad_out });
            if let Some(out) = grad_x {
                // The gradient through mean and variance subtracts these means.
                let means = match source {
                    Source::Batch => sums.map(|sum| sum / (shape.batch * shape.pixels) as f64),
                    Source::Fixed => [0.0; 2],
                };
                let op = channel::InputGradient { channel, fused, grad_out, means, out };
                Arch::new().dispatch(op);
            }
            (sums[0] as f32, sums[1] as f32)
        })
        .unzip();
    AffineGrad { scale, shift }
}

impl NormShape {
    fn check(&self, images: &[f32], name: &str) {
        let len = self.batch * self.channels * self.pixels;
        assert_eq!(images.len(), len, "{name} must be [B, C, H · W], here {self:?}");
    }
}

impl Statistics {
    fn check(&self, shape: NormShape) {
        assert_eq!(self.mean.len(), shape.channels, "mean must be [C], here {shape:?}");
        assert_eq!(self.variance.len(), shape.channels, "variance must be [C], here {shape:?}");
    }
}

impl Affine<'_> {
    fn check(&self, shape: NormShape) {
        let scale = self.scale.map_or(shape.channels, <[f32]>::len);
        assert_eq!(scale, shape.channels, "scale must be [C], here {shape:?}");
        assert_eq!(self.shift.len(), shape.channels, "shift must be [C], here {shape:?}");
    }

    /// The parameters of one channel, in the form that the loops use.
    fn fused(&self, channel: usize, mean: f32, variance: f32) -> Fused {
        let inverse = 1.0 / (f64::from(variance) + f64::from(self.epsilon)).sqrt();
        let scale = self.scale.map_or(1.0, |scale| scale[channel]);
        Fused {
            mean,
            inverse: inverse as f32,
            factor: (f64::from(scale) * inverse) as f32,
            shift: self.shift[channel],
            activation: self.activation,
        }
    }
}
