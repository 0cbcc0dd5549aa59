//! Residual networks with pre-activation (He et al., 2016, "v2"), and wide ones (Zagoruyko and
//! Komodakis, 2016).
//!
//! Convolutions have no bias and, where they halve the image, sit in the middle of a bottleneck.
//! A shortcut that must change its shape is a 1 × 1 convolution of what the block's first
//! normalisation gives, without a normalisation of its own.

use aleator_layers::batch_norm::Activation::Relu;
use burn::module::Module;
use burn::tensor::Tensor;

use super::layers::{Convolution, Fresh, Norm, Pass, Sizes, average, halve_by_maximum};

/// The sizes of a residual network.
pub(super) struct Plan {
    pub stem: Stem,
    pub block: Kind,
    /// Blocks of each stage; each after the first halves the image.
    pub depths: &'static [usize],
    /// Channels of the first stage's 3 × 3 convolutions; each stage has twice those before it.
    pub width: usize,
}

/// What an image meets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stem {
    /// 7 × 7 with stride 2 to 64 channels, then the largest of 3 × 3 with stride 2.
    Quarter,
    /// 3 × 3 to 16 channels.
    Small,
}

/// The blocks of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two 3 × 3 convolutions.
    Basic,
    /// 1 × 1, 3 × 3, 1 × 1, the last four times as wide.
    Bottleneck,
}

impl Kind {
    fn outputs(self, width: usize) -> usize {
        match self {
            Self::Basic => width,
            Self::Bottleneck => 4 * width,
        }
    }
}

/// A residual network up to the average over the image.
#[derive(Module, Debug)]
pub struct Residual {
    stem: StemConvolution,
    stages: Vec<Stage>,
    norm: Norm,
    #[module(skip)]
    form: Stem,
}

#[derive(Module, Debug)]
struct StemConvolution {
    conv: Convolution,
}

#[derive(Module, Debug)]
struct Stage {
    blocks: Vec<Block>,
}

#[derive(Module, Debug)]
struct Block {
    downsample: Option<Shortcut>,
    norm1: Norm,
    conv1: Convolution,
    norm2: Norm,
    conv2: Convolution,
    norm3: Option<Norm>,
    conv3: Option<Convolution>,
}

#[derive(Module, Debug)]
struct Shortcut {
    conv: Convolution,
}

impl Residual {
    pub(super) fn init(plan: &Plan, channels: usize, fresh: &mut Fresh) -> Self {
        let (conv, mut from) = match plan.stem {
            Stem::Quarter => (fresh.convolution(Sizes::square(channels, 64, 7, 2)), 64),
            Stem::Small => (fresh.convolution(Sizes::square(channels, 16, 3, 1)), 16),
        };
        let mut stages = vec![];
        for (index, depth) in plan.depths.iter().enumerate() {
            let width = plan.width << index;
            let mut blocks = vec![];
            for at in 0..*depth {
                let stride = if index > 0 && at == 0 { 2 } else { 1 };
                blocks.push(Block::init(plan.block, from, width, stride, fresh));
                from = plan.block.outputs(width);
            }
            stages.push(Stage { blocks });
        }
        let norm = fresh.norm(from);
        Self { stem: StemConvolution { conv }, stages, norm, form: plan.stem }
    }

    pub(super) fn forward(&self, images: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut x = self.stem.conv.forward(images);
        if self.form == Stem::Quarter {
            x = halve_by_maximum(x, 1);
        }
        for block in self.stages.iter().flat_map(|stage| &stage.blocks) {
            x = block.forward(x, pass);
        }
        average(self.norm.forward(x, Relu, pass))
    }
}

impl Block {
    fn init(kind: Kind, from: usize, width: usize, stride: usize, fresh: &mut Fresh) -> Self {
        let to = kind.outputs(width);
        let mut shortcut =
            || Shortcut { conv: fresh.convolution(Sizes::square(from, to, 1, stride)) };
        let downsample = (stride != 1 || from != to).then(&mut shortcut);
        let norm1 = fresh.norm(from);
        match kind {
            Kind::Basic => Self {
                downsample,
                norm1,
                conv1: fresh.convolution(Sizes::square(from, width, 3, stride)),
                norm2: fresh.norm(width),
                conv2: fresh.convolution(Sizes::square(width, width, 3, 1)),
                norm3: None,
                conv3: None,
            },
            Kind::Bottleneck => Self {
                downsample,
                norm1,
                conv1: fresh.convolution(Sizes::square(from, width, 1, 1)),
                norm2: fresh.norm(width),
                conv2: fresh.convolution(Sizes::square(width, width, 3, stride)),
                norm3: Some(fresh.norm(width)),
                conv3: Some(fresh.convolution(Sizes::square(width, to, 1, 1))),
            },
        }
    }

    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let active = self.norm1.forward(x.clone(), Relu, pass);
        let shortcut = match &self.downsample {
            Some(shortcut) => shortcut.conv.forward(active.clone()),
            None => x,
        };
        let inner = self.norm2.forward(self.conv1.forward(active), Relu, pass);
        let mut out = self.conv2.forward(inner);
        if let (Some(norm), Some(conv)) = (&self.norm3, &self.conv3) {
            out = conv.forward(norm.forward(out, Relu, pass));
        }
        out + shortcut
    }
}
