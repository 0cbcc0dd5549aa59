//! EfficientNet-Lite0: EfficientNet-B0 without squeeze-and-excitation, with ReLU6 (Tan and Le,
//! 2019; the "lite" form of the authors' repository).

use aleator_layers::batch_norm::Activation;
use burn::module::Module;
use burn::tensor::Tensor;

use super::layers::{ConvNorm, Fresh, Padding, Pass, Sizes, average};

/// Channels of the stem and of the last convolution; "lite" networks do not scale them.
const STEM: usize = 32;
const FEATURES: usize = 1280;

/// A run of equal blocks; the first may halve the image and change the channels.
struct Run {
    blocks: usize,
    expand: usize,
    kernel: usize,
    stride: usize,
    to: usize,
}

const RUNS: [Run; 7] = [
    Run { blocks: 1, expand: 1, kernel: 3, stride: 1, to: 16 },
    Run { blocks: 2, expand: 6, kernel: 3, stride: 2, to: 24 },
    Run { blocks: 2, expand: 6, kernel: 5, stride: 2, to: 40 },
    Run { blocks: 3, expand: 6, kernel: 3, stride: 2, to: 80 },
    Run { blocks: 3, expand: 6, kernel: 5, stride: 1, to: 112 },
    Run { blocks: 4, expand: 6, kernel: 5, stride: 2, to: 192 },
    Run { blocks: 1, expand: 6, kernel: 3, stride: 1, to: 320 },
];

/// The network up to the average over the image.
#[derive(Module, Debug)]
pub struct EfficientNetLite {
    stem: ConvNorm,
    blocks: Vec<Block>,
    last: ConvNorm,
}

/// 1 × 1 to more channels, a convolution of each channel by itself, 1 × 1 to fewer.
#[derive(Module, Debug)]
struct Block {
    expand: Option<ConvNorm>,
    depthwise: ConvNorm,
    project: ConvNorm,
    #[module(skip)]
    adds_input: bool,
}

impl EfficientNetLite {
    pub(super) fn init(channels: usize, fresh: &mut Fresh) -> Self {
        let stem = layer(fresh, Sizes::square(channels, STEM, 3, 2), Activation::Relu6);
        let mut blocks = vec![];
        let mut from = STEM;
        for run in &RUNS {
            for at in 0..run.blocks {
                let stride = if at == 0 { run.stride } else { 1 };
                blocks.push(Block::init(run, from, stride, fresh));
                from = run.to;
            }
        }
        let last = layer(fresh, Sizes::square(from, FEATURES, 1, 1), Activation::Relu6);
        Self { stem, blocks, last }
    }

    pub(super) fn forward(&self, images: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut x = self.stem.forward(images, pass);
        for block in &self.blocks {
            x = block.forward(x, pass);
        }
        average(self.last.forward(x, pass))
    }
}

impl Block {
    fn init(run: &Run, from: usize, stride: usize, fresh: &mut Fresh) -> Self {
        let width = from * run.expand;
        let expand = (run.expand > 1)
            .then(|| layer(fresh, Sizes::square(from, width, 1, 1), Activation::Relu6));
        let each = Sizes { groups: width, ..Sizes::square(width, width, run.kernel, stride) };
        Self {
            expand,
            depthwise: layer(fresh, each, Activation::Relu6),
            project: layer(fresh, Sizes::square(width, run.to, 1, 1), Activation::None),
            adds_input: stride == 1 && from == run.to,
        }
    }

    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let wide = match &self.expand {
            Some(expand) => expand.forward(x.clone(), pass),
            None => x.clone(),
        };
        let out = self.project.forward(self.depthwise.forward(wide, pass), pass);
        if self.adds_input { out + x } else { out }
    }
}

fn layer(fresh: &mut Fresh, sizes: Sizes, activation: Activation) -> ConvNorm {
    let conv = fresh.convolution(sizes.padded(Padding::Same));
    ConvNorm::new(conv, fresh.norm(sizes.to), activation)
}
