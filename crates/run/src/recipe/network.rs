//! `[network]`: inputs → features.

use std::path::PathBuf;

use aleator_vocabulary::ImageNetwork;
use serde::{Deserialize, Serialize};

use super::range::{below_one, is_default, positive, some_path, widths, write_path};

/// `[network]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// What is done to the inputs first, from the training split.
    pub normalize: Normalize,
    /// The layers before the head.
    #[serde(rename = "..kind")]
    pub layers: Layers,
    /// A safetensors file with the weights to begin with.
    #[serde(default, deserialize_with = "some_path", serialize_with = "write_path")]
    pub pretrained: Option<PathBuf>,
    /// Whether the layers stay as they are, and only the head learns.
    #[serde(default, skip_serializing_if = "is_default")]
    pub frozen: bool,
}

/// `network.normalize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// `"none"`.
    None,
    /// `"global"`: centred, and divided by one number: the root mean square of all features.
    Global,
    /// `"per-feature"`: centred, and each divided by its standard deviation.
    PerFeature,
    /// `"robust"`: asinh((x − median) / spread), feature by feature: nearly linear in the middle,
    /// logarithmic in heavy tails.
    Robust,
}

impl Normalize {
    /// What is done to the features, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::None => "features as they are",
            Self::Global => "all features divided by one number",
            Self::PerFeature => "each feature divided by its own standard deviation",
            Self::Robust => "asinh((x − median) / spread) of each feature, for heavy tails",
        }
    }
}

/// `network.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layers {
    /// `"none"`: the head sees the inputs.
    None,
    /// `"mlp"`.
    Mlp {
        /// Widths of the hidden layers.
        #[serde(deserialize_with = "widths")]
        hidden: Vec<usize>,
    },
    /// `"conv"`: 3 × 3 convolutions, each after the first halving the image, then the average.
    Conv {
        /// Channels of each convolution.
        #[serde(deserialize_with = "widths")]
        channels: Vec<usize>,
    },
    /// `"resnet-50"` and the other networks with a name.
    #[serde(
        rename = "resnet-18",
        alias = "resnet-34",
        alias = "resnet-50",
        alias = "resnet-101",
        alias = "resnet-152",
        alias = "resnet-20",
        alias = "resnet-56",
        alias = "wide-resnet-28-10",
        alias = "wide-resnet-28-2",
        alias = "inception-resnet-v2",
        alias = "efficientnet-lite0"
    )]
    Image {
        /// Which.
        #[serde(rename = "kind")]
        network: ImageNetwork,
        /// `norm_momentum`: how much of the running statistics stays at a step.
        #[serde(deserialize_with = "below_one")]
        norm_momentum: f64,
        /// `norm_epsilon`: added to the variance.
        #[serde(deserialize_with = "positive")]
        norm_epsilon: f64,
        /// Widths of dense layers with rectifiers after the network; may be empty.
        #[serde(default, deserialize_with = "widths", skip_serializing_if = "is_default")]
        hidden: Vec<usize>,
    },
}
