//! What code knows of a recipe before the recipe is complete.

use std::path::PathBuf;

use aleator_vocabulary::ImageNetwork;
use serde::Serialize;

use super::range::write_path;
use super::{Filter, HeldOut, LabelKind, LabelNoise, Network, PixelValues, Source};

/// Parts of a recipe to lay over a preset and under `--set`: see [`load_over`](crate::load_over).
/// A part that is given replaces the preset's; one that is not leaves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overlay {
    /// What messages name in place of a line, as "--data photos".
    #[serde(skip)]
    pub origin: String,
    /// Parts of `[data]`.
    pub data: DataOverlay,
    /// `[network]`.
    pub network: Option<NetworkOverlay>,
}

/// What is laid over `[network]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NetworkOverlay {
    /// All of it: no key of the preset stays.
    Whole(Network),
    /// What a file of published weights decides; the other keys of the preset stay.
    Weights {
        /// Whose weights they are.
        kind: ImageNetwork,
        /// What they were trained with: see [`Pretraining`](super::Pretraining).
        norm_epsilon: f64,
        /// The file.
        #[serde(serialize_with = "write_path")]
        pretrained: Option<PathBuf>,
    },
}

/// Parts of [`Data`](super::Data).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataOverlay {
    /// What the label files hold.
    pub label_kind: Option<LabelKind>,
    /// A text file with one class name a line.
    #[serde(serialize_with = "write_path")]
    pub class_names: Option<PathBuf>,
    /// The side of the images; `Some(None)` takes them as they are.
    pub image_size: Option<Option<usize>>,
    /// 1 or 3.
    pub channels: Option<usize>,
    /// The share of the image that is seen.
    pub centre_crop: Option<f64>,
    /// How images are resized.
    pub filter: Option<Filter>,
    /// What bytes become.
    pub pixel_values: Option<PixelValues>,
    /// `[data.train]`.
    pub train: Option<Source>,
    /// `[data.validation]`.
    pub validation: Option<HeldOut>,
    /// `[data.test]`.
    pub test: Option<HeldOut>,
    /// `[data.noise]`.
    pub noise: Option<LabelNoise>,
}
