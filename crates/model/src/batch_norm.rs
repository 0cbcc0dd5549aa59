//! Batch normalisation and the activation after it, as functions of what they are given.
//!
//! Nothing here remembers anything: the statistics of a batch are returned, and whoever trains
//! decides what becomes of them. Numbers that are not finite stay so, for callers look for them.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;

/// What follows a normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
}

/// A normalised batch and what it was normalised by.
pub(crate) struct Normalised {
    /// [B, C, H, W].
    pub out: Tensor<4>,
    /// The mean of each channel.
    pub mean: Vec<f32>,
    /// The variance of each channel, divided by the number of values.
    pub variance: Vec<f32>,
}

/// activation(scale · (x − mean) / √(variance + epsilon) + shift), mean and variance those of the
/// batch, in each channel. Without `scale` it is 1.
///
/// # Shapes
/// - x: [B, C, H, W]
/// - scale, shift: `[C]`
pub(crate) fn normalise_batch(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    epsilon: f32,
    activation: Activation,
) -> Normalised {
    let mean = channel_means(x.clone());
    let centred = x - mean.clone();
    let variance = channel_means(centred.clone() * centred.clone());
    let mut factor = (variance.clone() + epsilon).sqrt().recip();
    if let Some(scale) = scale {
        factor = factor * spread(scale);
    }
    Normalised {
        out: activation.apply(centred * factor + spread(shift)),
        mean: floats(mean),
        variance: floats(variance),
    }
}

/// [`normalise_batch`] by a mean and a variance that are given.
///
/// # Shapes
/// - x: [B, C, H, W]
/// - scale, shift, mean, variance: `[C]`
pub(crate) fn normalise_fixed(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f32,
    activation: Activation,
) -> Tensor<4> {
    let mut factor = (variance + epsilon).sqrt().recip();
    if let Some(scale) = scale {
        factor = factor * scale;
    }
    activation.apply((x - spread(mean)) * spread(factor) + spread(shift))
}

impl Activation {
    fn apply(self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::None => x,
            Self::Relu => relu(x),
            Self::Relu6 => relu(x).clamp_max(6.0),
        }
    }
}

/// [B, C, H, W] → [1, C, 1, 1].
fn channel_means(x: Tensor<4>) -> Tensor<4> {
    x.mean_dim(3).mean_dim(2).mean_dim(0)
}

/// `[C]` → [1, C, 1, 1].
fn spread(channels: Tensor<1>) -> Tensor<4> {
    let [count] = channels.dims();
    channels.reshape([1, count, 1, 1])
}

fn floats(channels: Tensor<4>) -> Vec<f32> {
    channels.inner().into_data().iter::<f32>().collect()
}
