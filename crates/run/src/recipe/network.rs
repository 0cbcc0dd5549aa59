//! `[network]`: inputs → features.

use std::path::PathBuf;

use aleator_vocabulary::ImageNetwork;

/// `[network]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What is done to the inputs first, from the training split.
    pub normalize: Normalize,
    /// The layers before the head.
    pub layers: Layers,
    /// A safetensors file with the weights to begin with.
    pub pretrained: Option<PathBuf>,
    /// Whether the layers stay as they are, and only the head learns.
    pub frozen: bool,
}

/// `network.normalize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// `"none"`.
    None,
    /// `"global"`: centred, and divided by one number: the root mean square of all features.
    Global,
    /// `"per-feature"`: centred, and each divided by its standard deviation.
    PerFeature,
}

/// `network.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Layers {
    /// `"none"`: the head sees the inputs.
    None,
    /// `"mlp"`.
    Mlp {
        /// Widths of the hidden layers.
        hidden: Vec<usize>,
    },
    /// `"conv"`: 3 × 3 convolutions, each after the first halving the image, then the average.
    Conv {
        /// Channels of each convolution.
        channels: Vec<usize>,
    },
    /// `"resnet-50"` and the other networks with a name.
    Image {
        /// Which.
        network: ImageNetwork,
        /// `norm_momentum`: how much of the running statistics stays at a step.
        norm_momentum: f64,
        /// `norm_epsilon`: added to the variance.
        norm_epsilon: f64,
        /// Widths of dense layers with rectifiers after the network; may be empty.
        hidden: Vec<usize>,
    },
}
