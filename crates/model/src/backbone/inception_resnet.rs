//! Inception-ResNet-v2 (Szegedy et al., 2017), in the form of TF-slim and Keras: normalisations
//! without scale, residual convolutions with a bias and without normalisation, 35 × 35 blocks
//! scaled by 0.17, 17 × 17 by 0.10, 8 × 8 by 0.20, the last one whole and without rectifier.

use aleator_layers::batch_norm::Activation::Relu;
use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use super::layers::{
    ConvNorm, Convolution, Fresh, Padding, Pass, Sizes, average, halve_by_maximum, smooth,
};

const FEATURES: usize = 1536;

/// The network up to the average over the image.
#[derive(Module, Debug)]
pub struct InceptionResNet {
    /// Five convolutions, the image halved by a maximum after the third and the fifth.
    stem: Vec<ConvNorm>,
    mixed_5b: Mixed,
    blocks_35: Vec<Block>,
    mixed_6a: Mixed,
    blocks_17: Vec<Block>,
    mixed_7a: Mixed,
    /// The last of them has no rectifier.
    blocks_8: Vec<Block>,
    last: ConvNorm,
}

/// Parallel branches, and one that pools.
#[derive(Module, Debug)]
struct Mixed {
    branches: Vec<Branch>,
}

/// Convolutions after each other.
#[derive(Module, Debug)]
struct Branch {
    layers: Vec<ConvNorm>,
}

/// Branches whose outputs, brought to the input's shape and scaled, are added to it.
#[derive(Module, Debug)]
struct Block {
    branches: Vec<Branch>,
    up: Convolution,
    #[module(skip)]
    scale: f32,
}

/// One convolution: channels, kernel, stride. Those with stride 2 are not padded.
type Layer = (usize, [usize; 2], usize);

const fn one(to: usize) -> Layer {
    (to, [1, 1], 1)
}

const fn three(to: usize) -> Layer {
    (to, [3, 3], 1)
}

const fn halving(to: usize) -> Layer {
    (to, [3, 3], 2)
}

/// Channels of the 35 × 35, 17 × 17 and 8 × 8 images (of a 299 × 299 input).
const WIDTHS: [usize; 3] = [320, 1088, 2080];

impl InceptionResNet {
    pub(super) fn init(channels: usize, fresh: &mut Fresh) -> Self {
        let stem = stem(channels, fresh);
        let mixed_5b: [&[Layer]; 4] = [
            &[one(96)],
            &[one(48), (64, [5, 5], 1)],
            &[one(64), three(96), three(96)],
            &[one(64)], // after the average
        ];
        let block_35: [&[Layer]; 3] =
            [&[one(32)], &[one(32), three(32)], &[one(32), three(48), three(64)]];
        let mixed_6a: [&[Layer]; 2] = [&[halving(384)], &[one(256), three(256), halving(384)]];
        let block_17: [&[Layer]; 2] =
            [&[one(192)], &[one(128), (160, [1, 7], 1), (192, [7, 1], 1)]];
        let mixed_7a: [&[Layer]; 3] = [
            &[one(256), halving(384)],
            &[one(256), halving(288)],
            &[one(256), three(288), halving(320)],
        ];
        let block_8: [&[Layer]; 2] = [&[one(192)], &[one(192), (224, [1, 3], 1), (256, [3, 1], 1)]];
        let [fine, middle, coarse] = WIDTHS;
        let mixed = |from, plan: &[&[Layer]], fresh: &mut Fresh| Mixed {
            branches: branches(from, plan, fresh),
        };
        Self {
            stem,
            mixed_5b: mixed(192, &mixed_5b, fresh),
            blocks_35: blocks(fine, &block_35, &[0.17; 10], fresh),
            mixed_6a: mixed(fine, &mixed_6a, fresh),
            blocks_17: blocks(middle, &block_17, &[0.1; 20], fresh),
            mixed_7a: mixed(middle, &mixed_7a, fresh),
            blocks_8: blocks(
                coarse,
                &block_8,
                &[0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 1.0],
                fresh,
            ),
            last: layer(coarse, one(FEATURES), fresh),
        }
    }

    pub(super) fn forward(&self, images: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut x = images;
        for (at, layer) in self.stem.iter().enumerate() {
            x = layer.forward(x, pass);
            if at == 2 || at == 4 {
                x = halve_by_maximum(x, 0);
            }
        }
        x = self.mixed_5b.forward_smoothed(x, pass);
        for block in &self.blocks_35 {
            x = relu(block.forward(x, pass));
        }
        x = self.mixed_6a.forward_halved(x, pass);
        for block in &self.blocks_17 {
            x = relu(block.forward(x, pass));
        }
        x = self.mixed_7a.forward_halved(x, pass);
        let last = self.blocks_8.len() - 1;
        for (at, block) in self.blocks_8.iter().enumerate() {
            let out = block.forward(x, pass);
            x = if at == last { out } else { relu(out) };
        }
        average(self.last.forward(x, pass))
    }
}

impl Mixed {
    /// The last branch sees the average around each pixel.
    fn forward_smoothed(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let last = self.branches.len() - 1;
        let mut outs = vec![];
        for (at, branch) in self.branches.iter().enumerate() {
            let input = if at == last { smooth(x.clone()) } else { x.clone() };
            outs.push(branch.forward(input, pass));
        }
        Tensor::cat(outs, 1)
    }

    /// The maximum of the image, next to the branches, which halve it.
    fn forward_halved(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let mut outs: Vec<Tensor<4>> =
            self.branches.iter().map(|branch| branch.forward(x.clone(), pass)).collect();
        outs.push(halve_by_maximum(x, 0));
        Tensor::cat(outs, 1)
    }
}

impl Branch {
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        self.layers.iter().fold(x, |x, layer| layer.forward(x, pass))
    }
}

impl Block {
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let outs = self.branches.iter().map(|branch| branch.forward(x.clone(), pass)).collect();
        x + self.up.forward(Tensor::cat(outs, 1)) * self.scale
    }
}

fn stem(channels: usize, fresh: &mut Fresh) -> Vec<ConvNorm> {
    let square = Sizes::square;
    [
        square(channels, 32, 3, 2).padded(Padding::Valid),
        square(32, 32, 3, 1).padded(Padding::Valid),
        square(32, 64, 3, 1),
        square(64, 80, 1, 1).padded(Padding::Valid),
        square(80, 192, 3, 1).padded(Padding::Valid),
    ]
    .into_iter()
    .map(|sizes| conv_norm(sizes, fresh))
    .collect()
}

fn blocks(width: usize, plan: &[&[Layer]], scales: &[f32], fresh: &mut Fresh) -> Vec<Block> {
    let inner: usize = plan.iter().filter_map(|branch| branch.last()).map(|layer| layer.0).sum();
    let block = |scale: &f32| Block {
        branches: branches(width, plan, fresh),
        up: fresh.biased_convolution(Sizes::square(inner, width, 1, 1)),
        scale: *scale,
    };
    scales.iter().map(block).collect()
}

fn branches(from: usize, plan: &[&[Layer]], fresh: &mut Fresh) -> Vec<Branch> {
    let mut branch = |layers: &[Layer]| {
        let mut from = from;
        let mut out = vec![];
        for plan in layers {
            out.push(layer(from, *plan, fresh));
            from = plan.0;
        }
        Branch { layers: out }
    };
    plan.iter().map(|layers| branch(layers)).collect()
}

fn layer(from: usize, (to, kernel, stride): Layer, fresh: &mut Fresh) -> ConvNorm {
    let padding = if stride == 1 { Padding::Half } else { Padding::Valid };
    conv_norm(Sizes { from, to, kernel, stride, padding, groups: 1 }, fresh)
}

fn conv_norm(sizes: Sizes, fresh: &mut Fresh) -> ConvNorm {
    let conv = fresh.convolution(sizes);
    ConvNorm::new(conv, fresh.norm_without_scale(sizes.to), Relu)
}
