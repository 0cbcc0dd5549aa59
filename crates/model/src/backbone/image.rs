//! Networks for images, by name.

use aleator_vocabulary::ImageNetwork;
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::efficientnet_lite::EfficientNetLite;
use super::inception_resnet::InceptionResNet;
use super::layers::{Fresh, NormStatistics, Pass};
use super::residual::{Kind, Plan, Residual, Stem};
use crate::dense::Dense;

/// How batch normalisation estimates and divides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormConfig {
    /// The share of the old in running = momentum · running + (1 − momentum) · batch. (PyTorch's
    /// `momentum` is one minus ours.)
    pub momentum: f32,
    /// Added to the variance. Pretrained weights need the value that they were trained with.
    pub epsilon: f32,
}

/// What tells residual networks apart in files of their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResidualSizes {
    /// The side of the first convolution's kernel.
    pub stem_kernel: usize,
    pub bottleneck: bool,
    /// Blocks of each stage.
    pub depths: Vec<usize>,
    /// Channels of the first stage's 3 × 3 convolutions.
    pub width: usize,
}

impl ResidualSizes {
    /// Those of a network with a name; `None` if it is no residual network of stages.
    pub(crate) fn of(network: ImageNetwork) -> Option<Self> {
        if let ImageNetwork::InceptionResNetV2 | ImageNetwork::EfficientNetLite0 = network {
            return None;
        }
        let Plan { stem, block, depths, width } = plan(network);
        let stem_kernel = match stem {
            Stem::Quarter => 7,
            Stem::Small => 3,
        };
        Some(Self {
            stem_kernel,
            bottleneck: block == Kind::Bottleneck,
            depths: depths.to_vec(),
            width,
        })
    }
}

/// The sizes of a residual network.
fn plan(network: ImageNetwork) -> Plan {
    let quarter =
        |block, depths: &'static [usize]| Plan { stem: Stem::Quarter, block, depths, width: 64 };
    let small = |depths: &'static [usize], width: usize| Plan {
        stem: Stem::Small,
        block: Kind::Basic,
        depths,
        width,
    };
    match network {
        ImageNetwork::ResNet18 => quarter(Kind::Basic, &[2, 2, 2, 2]),
        ImageNetwork::ResNet34 => quarter(Kind::Basic, &[3, 4, 6, 3]),
        ImageNetwork::ResNet50 => quarter(Kind::Bottleneck, &[3, 4, 6, 3]),
        ImageNetwork::ResNet101 => quarter(Kind::Bottleneck, &[3, 4, 23, 3]),
        ImageNetwork::ResNet152 => quarter(Kind::Bottleneck, &[3, 8, 36, 3]),
        ImageNetwork::ResNet20 => small(&[3, 3, 3], 16),
        ImageNetwork::ResNet56 => small(&[9, 9, 9], 16),
        ImageNetwork::WideResNet28x10 => small(&[4, 4, 4], 160),
        ImageNetwork::WideResNet28x2 => small(&[4, 4, 4], 32),
        ImageNetwork::InceptionResNetV2 | ImageNetwork::EfficientNetLite0 => {
            unreachable!("{} is no residual network of stages", network.name())
        }
    }
}

impl Trunk {
    fn init(network: ImageNetwork, channels: usize, fresh: &mut Fresh) -> Self {
        match network {
            ImageNetwork::InceptionResNetV2 => {
                Self::InceptionResNet(InceptionResNet::init(channels, fresh))
            }
            ImageNetwork::EfficientNetLite0 => {
                Self::EfficientNetLite(EfficientNetLite::init(channels, fresh))
            }
            other => Self::Residual(Residual::init(&plan(other), channels, fresh)),
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
    /// The numbers that a network learns, without the dense layers after it. No weights are made.
    pub(super) fn learned(network: ImageNetwork, channels: usize) -> usize {
        let device = Device::flex();
        let mut fresh = Fresh::counting(&device);
        Trunk::init(network, channels, &mut fresh);
        fresh.learned
    }

    pub(super) fn init(
        network: ImageNetwork,
        image: [usize; 3],
        norm: NormConfig,
        hidden: &[usize],
        seed: u64,
        device: &Device,
    ) -> Self {
        let mut fresh = Fresh::new(seed, norm.epsilon, device);
        let trunk = Trunk::init(network, image[0], &mut fresh);
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
    pub(super) fn forward_training(&self, inputs: Tensor<2>) -> (Tensor<2>, Vec<NormStatistics>) {
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
