//! Networks for images, by name.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::efficientnet_lite::{self, EfficientNetLite};
use super::inception_resnet::{self, InceptionResNet};
use super::layers::{Fresh, Noted, Pass};
use super::residual::{Kind, Plan, Residual, Stem};
use crate::dense::Dense;

/// A published network for images.
///
/// ```
/// use aleator_model::ImageNetwork;
///
/// let network = ImageNetwork::from_name("resnet-152").unwrap();
/// assert_eq!((network.feature_dim(), network.smallest_image()), (2048, 32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageNetwork {
    /// Pre-activation ("v2") residual network of basic blocks 2, 2, 2, 2.
    ResNet18,
    /// Basic blocks 3, 4, 6, 3.
    ResNet34,
    /// Bottlenecks 3, 4, 6, 3.
    ResNet50,
    /// Bottlenecks 3, 4, 23, 3.
    ResNet101,
    /// Bottlenecks 3, 8, 36, 3; the paper's network for ImageNet.
    ResNet152,
    /// For small images: 16, 32, 64 channels, three basic blocks each.
    ResNet20,
    /// For small images: nine basic blocks each.
    ResNet56,
    /// For small images: 160, 320, 640 channels, four basic blocks each.
    WideResNet28x10,
    /// For small images: 32, 64, 128 channels.
    WideResNet28x2,
    /// The paper's network for WebVision.
    InceptionResNetV2,
    /// Small and fast; pretrained weights are easy to get.
    EfficientNetLite0,
}

/// How batch normalisation estimates and divides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormConfig {
    /// The share of the old in running = momentum · running + (1 − momentum) · batch. (PyTorch's
    /// `momentum` is one minus ours.)
    pub momentum: f32,
    /// Added to the variance. Pretrained weights need the value that they were trained with.
    pub epsilon: f32,
}

impl ImageNetwork {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::ResNet18,
        Self::ResNet34,
        Self::ResNet50,
        Self::ResNet101,
        Self::ResNet152,
        Self::ResNet20,
        Self::ResNet56,
        Self::WideResNet28x10,
        Self::WideResNet28x2,
        Self::InceptionResNetV2,
        Self::EfficientNetLite0,
    ];

    /// What it is called in recipes and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResNet18 => "resnet-18",
            Self::ResNet34 => "resnet-34",
            Self::ResNet50 => "resnet-50",
            Self::ResNet101 => "resnet-101",
            Self::ResNet152 => "resnet-152",
            Self::ResNet20 => "resnet-20",
            Self::ResNet56 => "resnet-56",
            Self::WideResNet28x10 => "wide-resnet-28-10",
            Self::WideResNet28x2 => "wide-resnet-28-2",
            Self::InceptionResNetV2 => "inception-resnet-v2",
            Self::EfficientNetLite0 => "efficientnet-lite0",
        }
    }

    /// The network of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|network| network.name() == name)
    }

    /// Features that it gives, before hidden layers.
    pub fn feature_dim(self) -> usize {
        match self {
            Self::InceptionResNetV2 => inception_resnet::FEATURES,
            Self::EfficientNetLite0 => efficientnet_lite::FEATURES,
            other => other.plan().feature_dim(),
        }
    }

    /// The smallest height and width, in pixels.
    pub fn smallest_image(self) -> usize {
        match self {
            Self::InceptionResNetV2 => 75,
            Self::EfficientNetLite0 => 32,
            other => match other.plan().stem {
                Stem::Quarter => 32,
                Stem::Small => 8,
            },
        }
    }

    /// The sizes of a residual network.
    fn plan(self) -> Plan {
        let quarter = |block, depths: &'static [usize]| Plan {
            stem: Stem::Quarter,
            block,
            depths,
            width: 64,
        };
        let small = |depths: &'static [usize], width: usize| Plan {
            stem: Stem::Small,
            block: Kind::Basic,
            depths,
            width,
        };
        match self {
            Self::ResNet18 => quarter(Kind::Basic, &[2, 2, 2, 2]),
            Self::ResNet34 => quarter(Kind::Basic, &[3, 4, 6, 3]),
            Self::ResNet50 => quarter(Kind::Bottleneck, &[3, 4, 6, 3]),
            Self::ResNet101 => quarter(Kind::Bottleneck, &[3, 4, 23, 3]),
            Self::ResNet152 => quarter(Kind::Bottleneck, &[3, 8, 36, 3]),
            Self::ResNet20 => small(&[3, 3, 3], 16),
            Self::ResNet56 => small(&[9, 9, 9], 16),
            Self::WideResNet28x10 => small(&[4, 4, 4], 160),
            Self::WideResNet28x2 => small(&[4, 4, 4], 32),
            Self::InceptionResNetV2 | Self::EfficientNetLite0 => {
                unreachable!("{} is no residual network of stages", self.name())
            }
        }
    }

    fn init(self, channels: usize, fresh: &mut Fresh) -> Trunk {
        match self {
            Self::InceptionResNetV2 => {
                Trunk::InceptionResNet(InceptionResNet::init(channels, fresh))
            }
            Self::EfficientNetLite0 => {
                Trunk::EfficientNetLite(EfficientNetLite::init(channels, fresh))
            }
            other => Trunk::Residual(Residual::init(&other.plan(), channels, fresh)),
        }
    }
}

/// A published network, and dense layers with rectifiers after it.
#[derive(Module, Debug)]
pub struct Image {
    trunk: Trunk,
    hidden: Vec<Dense>,
    #[module(skip)]
    image: [usize; 3],
    #[module(skip)]
    momentum: f32,
}

/// Images → one vector each.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "a model holds one, and Burn has no boxed modules")]
pub enum Trunk {
    /// Residual networks.
    Residual(Residual),
    /// Inception-ResNet-v2.
    InceptionResNet(InceptionResNet),
    /// EfficientNet-Lite0.
    EfficientNetLite(EfficientNetLite),
}

impl Image {
    pub(super) fn init(
        network: ImageNetwork,
        image: [usize; 3],
        norm: NormConfig,
        hidden: &[usize],
        seed: u64,
        device: &Device,
    ) -> Self {
        let mut fresh = Fresh::new(seed, norm.epsilon, device);
        let trunk = network.init(image[0], &mut fresh);
        let features = network.feature_dim();
        let widths = std::iter::once(&features).chain(hidden).zip(hidden);
        let hidden = widths.map(|(from, to)| fresh.dense(*from, *to)).collect();
        Self { trunk, hidden, image, momentum: norm.momentum }
    }

    pub(super) fn momentum(&self) -> f32 {
        self.momentum
    }

    pub(super) fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.pass(inputs, &mut Pass::Evaluation)
    }

    /// Features, and what the norms found in the batch.
    pub(super) fn forward_training(&self, inputs: Tensor<2>) -> (Tensor<2>, Vec<Noted>) {
        let mut pass = Pass::Training(vec![]);
        let features = self.pass(inputs, &mut pass);
        match pass {
            Pass::Training(noted) => (features, noted),
            Pass::Evaluation => unreachable!("no layer changes the pass"),
        }
    }

    fn pass(&self, inputs: Tensor<2>, pass: &mut Pass) -> Tensor<2> {
        let [batch, found] = inputs.dims();
        let [channels, height, width] = self.image;
        let expected = channels * height * width;
        assert!(
            found == expected,
            "inputs must be [B, {channels}·{height}·{width}], found [{batch}, {found}]"
        );
        let images = inputs.reshape([batch, channels, height, width]);
        let features = match &self.trunk {
            Trunk::Residual(network) => network.forward(images, pass),
            Trunk::InceptionResNet(network) => network.forward(images, pass),
            Trunk::EfficientNetLite(network) => network.forward(images, pass),
        };
        self.hidden.iter().fold(features, |x, layer| relu(layer.forward(x)))
    }
}
