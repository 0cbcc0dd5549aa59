//! Batch normalisation and its gradients in f64 with plain loops, to test the fast functions
//! against.

use super::{Activation, Affine, NormShape, Source};

/// Mean and variance of each channel.
pub fn statistics(x: &[f32], shape: NormShape) -> (Vec<f64>, Vec<f64>) {
    let count = (shape.batch * shape.pixels) as f64;
    let sum = |channel: usize, term: &dyn Fn(f64) -> f64| {
        let of_channel = |at: &usize| at / shape.pixels % shape.channels == channel;
        (0..x.len()).filter(of_channel).map(|at| term(f64::from(x[at]))).sum::<f64>()
    };
    let mean: Vec<f64> =
        (0..shape.channels).map(|channel| sum(channel, &|value| value) / count).collect();
    let variance = (0..shape.channels)
        .map(|channel| sum(channel, &|value| (value - mean[channel]).powi(2)) / count)
        .collect();
    (mean, variance)
}

/// The output of [`super::forward_fixed`].
pub fn forward(
    x: &[f32],
    affine: Affine<'_>,
    mean: &[f64],
    variance: &[f64],
    shape: NormShape,
) -> Vec<f64> {
    let value = |(at, x): (usize, &f32)| {
        let channel = at / shape.pixels % shape.channels;
        activate(linear(f64::from(*x), affine, mean, variance, channel), affine.activation)
    };
    x.iter().enumerate().map(value).collect()
}

/// The gradients of [`super::backward`] with respect to x, scale and shift.
pub fn backward(
    x: &[f32],
    grad_out: &[f32],
    affine: Affine<'_>,
    source: Source,
    (mean, variance): (&[f64], &[f64]),
    shape: NormShape,
) -> [Vec<f64>; 3] {
    let count = (shape.batch * shape.pixels) as f64;
    let (mut scale, mut shift) = (vec![0.0; shape.channels], vec![0.0; shape.channels]);
    let channel = |at: usize| at / shape.pixels % shape.channels;
    let deviation = |channel: usize| (variance[channel] + f64::from(affine.epsilon)).sqrt();
    let normal = |at: usize| (f64::from(x[at]) - mean[channel(at)]) / deviation(channel(at));
    let passed = |at: usize| {
        let y = linear(f64::from(x[at]), affine, mean, variance, channel(at));
        let open = match affine.activation {
            Activation::None => true,
            Activation::Relu => y > 0.0,
            Activation::Relu6 => y > 0.0 && y < 6.0,
        };
        if open { f64::from(grad_out[at]) } else { 0.0 }
    };
    for at in 0..x.len() {
        scale[channel(at)] += passed(at) * normal(at);
        shift[channel(at)] += passed(at);
    }
    let grad_x = (0..x.len()).map(|at| {
        let channel = channel(at);
        let factor = affine.scale.map_or(1.0, |scale| f64::from(scale[channel]));
        let back = match source {
            Source::Batch => (shift[channel] + normal(at) * scale[channel]) / count,
            Source::Fixed => 0.0,
        };
        factor / deviation(channel) * (passed(at) - back)
    });
    let grad_x = grad_x.collect();
    [grad_x, scale, shift]
}

fn linear(x: f64, affine: Affine<'_>, mean: &[f64], variance: &[f64], channel: usize) -> f64 {
    let deviation = (variance[channel] + f64::from(affine.epsilon)).sqrt();
    let scale = affine.scale.map_or(1.0, |scale| f64::from(scale[channel]));
    scale * (x - mean[channel]) / deviation + f64::from(affine.shift[channel])
}

fn activate(y: f64, activation: Activation) -> f64 {
    match activation {
        Activation::None => y,
        Activation::Relu => y.max(0.0),
        Activation::Relu6 => y.clamp(0.0, 6.0),
    }
}
