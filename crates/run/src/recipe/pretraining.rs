//! How published networks were trained: what their weights expect, and no file of them says.

use aleator_vocabulary::ImageNetwork;

use super::{DataOverlay, Filter, PixelValues};

/// What the published weights of a network expect of its norms and of its images.
///
/// ```
/// use aleator_run::recipe::{ImageNetwork, PixelValues, Pretraining};
///
/// let lite = Pretraining::of(ImageNetwork::EfficientNetLite0);
/// assert_eq!((lite.norm_epsilon, lite.pixel_values), (1e-3, PixelValues::Lite));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pretraining {
    /// Added to the variance in batch normalisation.
    pub norm_epsilon: f64,
    /// The side of the images.
    pub image_size: usize,
    /// The part of an image that was seen in evaluation.
    pub centre_crop: f64,
    /// How images were resized.
    pub filter: Filter,
    /// What bytes became.
    pub pixel_values: PixelValues,
}

impl Pretraining {
    /// That of the weights in `docs/weights.md`.
    pub fn of(network: ImageNetwork) -> Self {
        use ImageNetwork as N;
        let residual = Self {
            norm_epsilon: 1e-5,
            image_size: 224,
            centre_crop: 0.95,
            filter: Filter::Bicubic,
            pixel_values: PixelValues::ImageNet,
        };
        match network {
            N::ResNet18 | N::ResNet34 | N::ResNet50 | N::ResNet101 | N::ResNet152 => residual,
            N::ResNet20 | N::ResNet56 | N::WideResNet28x10 | N::WideResNet28x2 => {
                Self { image_size: 32, centre_crop: 1.0, ..residual }
            }
            N::InceptionResNetV2 => Self {
                norm_epsilon: 1e-3,
                image_size: 299,
                centre_crop: 0.8975,
                pixel_values: PixelValues::Symmetric,
                ..residual
            },
            N::EfficientNetLite0 => Self {
                norm_epsilon: 1e-3,
                centre_crop: 0.875,
                pixel_values: PixelValues::Lite,
                ..residual
            },
        }
    }

    /// The parts of `[data]` that such a network decides, for images whose longest side is known
    /// or not.
    ///
    /// Small images are enlarged no more than [`MOST_ENLARGED`] times: more pixels cost time and
    /// show nothing more. Whole images are seen where they are that small.
    pub fn framing(&self, network: ImageNetwork, longest_side: Option<usize>) -> DataOverlay {
        let enlarged = longest_side.map_or(usize::MAX, |side| side.saturating_mul(MOST_ENLARGED));
        let size = enlarged.max(network.smallest_image()).min(self.image_size);
        DataOverlay {
            image_size: Some(Some(size)),
            centre_crop: (size == self.image_size).then_some(self.centre_crop),
            filter: Some(self.filter),
            pixel_values: Some(self.pixel_values),
            ..DataOverlay::default()
        }
    }
}

/// How many times the side of a small image is enlarged at most.
pub const MOST_ENLARGED: usize = 4;
