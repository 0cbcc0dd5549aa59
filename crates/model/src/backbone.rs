//! Inputs → features: what stands before the head.

mod conv;
mod mlp;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

pub use conv::Conv;
pub use mlp::Mlp;

/// Which network, and for which inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackboneConfig {
    /// None: the head sees the inputs.
    None {
        /// D.
        inputs: usize,
    },
    /// Dense layers with rectifiers.
    Mlp {
        /// Numbers in an example.
        inputs: usize,
        /// Widths of the hidden layers, at least one.
        hidden: Vec<usize>,
    },
    /// 3 × 3 convolutions with rectifiers, each after the first halving the image, then the
    /// average over the image.
    Conv {
        /// Channels, height, width.
        image: [usize; 3],
        /// Channels of each convolution, at least one.
        channels: Vec<usize>,
    },
}

/// Inputs → features.
#[derive(Module, Debug)]
pub enum Backbone {
    /// The inputs themselves.
    None(Passthrough),
    /// Dense layers.
    Mlp(Mlp),
    /// Convolutions.
    Conv(Conv),
}

/// Stands where a network has no parameters.
#[derive(Module, Debug)]
pub struct Passthrough;

impl BackboneConfig {
    /// D, the width of the features.
    pub fn feature_dim(&self) -> usize {
        match self {
            Self::None { inputs } => *inputs,
            Self::Mlp { inputs, hidden } => *hidden.last().unwrap_or(inputs),
            Self::Conv { image, channels } => *channels.last().unwrap_or(&image[0]),
        }
    }

    /// A network with fresh weights, drawn from the seed.
    pub fn init(&self, seed: u64, device: &Device) -> Backbone {
        match self {
            Self::None { .. } => Backbone::None(Passthrough),
            Self::Mlp { inputs, hidden } => Backbone::Mlp(Mlp::init(*inputs, hidden, seed, device)),
            Self::Conv { image, channels } => {
                Backbone::Conv(Conv::init(*image, channels, seed, device))
            }
        }
    }
}

impl Backbone {
    /// # Shapes
    /// - inputs: [B, N], images as [B, C·H·W]
    /// - returns: [B, D]
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        match self {
            Self::None(_) => inputs,
            Self::Mlp(network) => network.forward(inputs),
            Self::Conv(network) => network.forward(inputs),
        }
    }
}
