//! Inputs → features: what stands before the head.

mod conv;
mod efficientnet_lite;
mod image;
mod inception_resnet;
mod layers;
mod mlp;
mod residual;

use aleator_vocabulary::ImageNetwork;
use burn::module::Module;
use burn::tensor::{Device, Tensor};

pub use conv::Conv;
pub(crate) use image::ResidualSizes;
pub use image::{Image, NormConfig};
pub use mlp::Mlp;

use crate::batch_statistics::BatchStatistics;
use crate::count::dense_chain;
use crate::params::{self, RUNNING_MEAN, Source};

/// Which network, and for which inputs.
#[derive(Clone, Debug, PartialEq)]
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
    /// A published network for images, then the average over the image.
    Image {
        /// Which.
        network: ImageNetwork,
        /// Channels, height, width.
        image: [usize; 3],
        /// Its batch normalisation.
        norm: NormConfig,
        /// Widths of dense layers with rectifiers after the average, mostly none. (The paper's
        /// homoscedastic network of as many parameters has one of 11,500.)
        hidden: Vec<usize>,
    },
}

/// Inputs → features.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "a model holds one, and Burn has no boxed modules")]
pub enum Backbone {
    /// The inputs themselves.
    None(Passthrough),
    /// Dense layers.
    Mlp(Mlp),
    /// Convolutions.
    Conv(Conv),
    /// A published network.
    Image(Image),
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
            Self::Image { network, hidden, .. } => {
                hidden.last().copied().unwrap_or_else(|| network.feature_dim())
            }
        }
    }

    /// How many numbers it learns, without making any; `None` where they are more than a machine can
    /// count. Running statistics of norms are not learned.
    ///
    /// ```
    /// use aleator_model::BackboneConfig;
    ///
    /// let dense = BackboneConfig::Mlp { inputs: 4, hidden: vec![8] };
    /// assert_eq!(dense.parameters(), Some((4 + 1) * 8));
    /// ```
    pub fn parameters(&self) -> Option<usize> {
        match self {
            Self::None { .. } => Some(0),
            Self::Mlp { inputs, hidden } => dense_chain(*inputs, hidden),
            Self::Conv { image: [inputs, ..], channels } => {
                // A kernel of 3 × 3 has nine weights where a dense layer has one.
                let nine = dense_chain(*inputs, channels)?.checked_mul(9)?;
                Some(nine - 8 * channels.iter().sum::<usize>())
            }
            Self::Image { network, image: [channels, ..], hidden, .. } => {
                let after = dense_chain(network.feature_dim(), hidden)?;
                Image::learned(*network, *channels).checked_add(after)
            }
        }
    }

    /// Whether such a network can be made; the message says what to change. Ask before
    /// [`BackboneConfig::init`], which takes it for granted.
    ///
    /// ```
    /// use aleator_model::{BackboneConfig, ImageNetwork, NormConfig};
    ///
    /// let digits = BackboneConfig::Image {
    ///     network: ImageNetwork::ResNet50,
    ///     image: [1, 28, 28],
    ///     norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
    ///     hidden: vec![],
    /// };
    /// let message = digits.check().unwrap_err();
    /// assert!(message.starts_with("resnet-50 needs images of at least 32 × 32 pixels"));
    /// ```
    ///
    /// # Errors
    /// When a size is zero, an image too small for its network, or a norm's number out of range.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::None { inputs } => positive("inputs", &[*inputs]),
            Self::Mlp { inputs, hidden } => {
                positive("inputs", &[*inputs])?;
                positive("hidden", hidden)
            }
            Self::Conv { image, channels } => {
                positive("image", image)?;
                positive("channels", channels)
            }
            Self::Image { network, image, norm, hidden } => {
                positive("image", image)?;
                positive("hidden", hidden)?;
                large_enough(*network, *image)?;
                norm.check()
            }
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
            Self::Image { network, image, norm, hidden } => {
                Backbone::Image(Image::init(*network, *image, *norm, hidden, seed, device))
            }
        }
    }
}

impl Backbone {
    /// Features as in evaluation: norms go by their running statistics.
    ///
    /// # Shapes
    /// - inputs: [B, N], images as [B, C·H·W]
    /// - returns: [B, D]
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        match self {
            Self::None(_) => inputs,
            Self::Mlp(network) => network.forward(inputs),
            Self::Conv(network) => network.forward(inputs),
            Self::Image(network) => network.forward(inputs),
        }
    }

    /// Features as in training: norms go by the batch. What each of them found is returned, in
    /// the order of the parameters; nothing in the network changes.
    ///
    /// # Shapes
    /// - inputs: [B, N], images as [B, C·H·W]
    /// - returns: [B, D]
    pub fn forward_training(&self, inputs: Tensor<2>) -> (Tensor<2>, Vec<BatchStatistics>) {
        let Self::Image(network) = self else { return (self.forward(inputs), vec![]) };
        let (features, mut noted) = network.forward_training(inputs);
        let mut statistics = vec![];
        for parameter in params::visit(self, Source::Numbers) {
            let Some((norm, RUNNING_MEAN)) = parameter.name.rsplit_once('.') else { continue };
            let at = noted.iter().position(|noted| noted.layer == parameter.id);
            let found = noted.swap_remove(at.expect("every norm is passed once"));
            let name = format!("network.{norm}");
            statistics.push(BatchStatistics { name, mean: found.mean, variance: found.variance });
        }
        assert!(noted.is_empty(), "every norm is passed once");
        (features, statistics)
    }

    /// The momentum of its norms, if it has any.
    pub fn norm_momentum(&self) -> Option<f32> {
        match self {
            Self::Image(network) => Some(network.momentum()),
            Self::None(_) | Self::Mlp(_) | Self::Conv(_) => None,
        }
    }
}

fn positive(what: &str, sizes: &[usize]) -> Result<(), String> {
    match sizes.iter().position(|size| *size == 0) {
        Some(at) => Err(format!("{what} must be sizes of at least 1, found 0 at place {at}")),
        None => Ok(()),
    }
}

fn large_enough(network: ImageNetwork, [_, height, width]: [usize; 3]) -> Result<(), String> {
    let (name, smallest) = (network.name(), network.smallest_image());
    if height.min(width) >= smallest {
        return Ok(());
    }
    Err(format!(
        "{name} needs images of at least {smallest} × {smallest} pixels, found {height} × {width}; \
         enlarge them, or take a network for small images such as {} (from {} pixels)",
        ImageNetwork::ResNet20.name(),
        ImageNetwork::ResNet20.smallest_image()
    ))
}

impl NormConfig {
    fn check(&self) -> Result<(), String> {
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(format!(
                "the momentum of norms must be at least 0 and below 1, found {}; 0.9 is usual",
                self.momentum
            ));
        }
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            return Err(format!(
                "the epsilon of norms must be above 0, found {}; 1e-5 is usual",
                self.epsilon
            ));
        }
        Ok(())
    }
}
