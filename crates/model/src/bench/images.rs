//! The layers of convolutional networks by themselves, and a ResNet-20 of them.

use burn::module::{Module, Param};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::batch_norm::{self, Activation};
use crate::convolution;
use crate::dense::{Dense, uniform};

/// The crate's convolution.
pub fn convolve(
    x: Tensor<4>,
    weight: Tensor<4>,
    stride: [usize; 2],
    padding: [usize; 4],
    groups: usize,
) -> Tensor<4> {
    convolution::convolve(x, weight, stride, padding, groups)
}

/// What follows a normalisation.
#[derive(Clone, Copy, Debug)]
pub enum Rectifier {
    /// Nothing.
    None,
    /// `max(0, y)`.
    Relu,
    /// `min(6, max(0, y))`.
    Relu6,
}

impl Rectifier {
    fn activation(self) -> Activation {
        match self {
            Self::None => Activation::None,
            Self::Relu => Activation::Relu,
            Self::Relu6 => Activation::Relu6,
        }
    }
}

/// The crate's batch normalisation, with the mean and variance of the batch.
pub fn normalise_batch(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    epsilon: f32,
    rectifier: Rectifier,
) -> (Tensor<4>, Vec<f32>, Vec<f32>) {
    let activation = rectifier.activation();
    let normalised = batch_norm::normalise_batch(x, scale, shift, epsilon, activation);
    (normalised.out, normalised.mean, normalised.variance)
}

/// The crate's batch normalisation with given mean and variance.
pub fn normalise_fixed(
    x: Tensor<4>,
    [scale, shift, mean, variance]: [Tensor<1>; 4],
    epsilon: f32,
    rectifier: Rectifier,
) -> Tensor<4> {
    let activation = rectifier.activation();
    batch_norm::normalise_fixed(x, Some(scale), shift, mean, variance, epsilon, activation)
}

/// ResNet-20 for images of 3 × 32 × 32 and ten classes, to be timed.
#[derive(Module, Debug)]
pub struct ResNet20 {
    first: Layer,
    blocks: Vec<Block>,
    last: Dense,
}

/// Two layers around which the input goes, through a layer of its own where sizes change.
#[derive(Module, Debug)]
struct Block {
    first: Layer,
    second: Layer,
    around: Option<Layer>,
}

/// A convolution and its normalisation.
#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<4>>,
    scale: Param<Tensor<1>>,
    shift: Param<Tensor<1>>,
    #[module(skip)]
    stride: usize,
}

impl Layer {
    fn new(from: usize, to: usize, kernel: usize, stride: usize, device: &Device) -> Self {
        let fan_in = from * kernel * kernel;
        let seed = (from * 1000 + to * 10 + stride) as u64;
        let weight = uniform(seed, to * fan_in, (6.0 / fan_in as f32).sqrt());
        let weight = TensorData::new(weight, [to, from, kernel, kernel]);
        Self {
            weight: Param::from_data(weight, device),
            scale: Param::from_data(TensorData::ones::<f32, _>([to]), device),
            shift: Param::from_data(TensorData::zeros::<f32, _>([to]), device),
            stride,
        }
    }

    fn forward(&self, x: Tensor<4>, activation: Activation) -> Tensor<4> {
        let [_, _, kernel, _] = self.weight.dims();
        let x = convolution::convolve(x, self.weight.val(), [self.stride; 2], [kernel / 2; 4], 1);
        let (scale, shift) = (Some(self.scale.val()), self.shift.val());
        batch_norm::normalise_batch(x, scale, shift, 1e-5, activation).out
    }
}

impl Block {
    fn new(from: usize, to: usize, stride: usize, device: &Device) -> Self {
        let around = (from != to).then(|| Layer::new(from, to, 1, stride, device));
        let first = Layer::new(from, to, 3, stride, device);
        Self { first, second: Layer::new(to, to, 3, 1, device), around }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let around = match &self.around {
            Some(layer) => layer.forward(x.clone(), Activation::None),
            None => x.clone(),
        };
        let x = self.first.forward(x, Activation::Relu);
        relu(self.second.forward(x, Activation::None) + around)
    }
}

impl ResNet20 {
    /// Fresh weights.
    pub fn new(device: &Device) -> Self {
        let widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64];
        let block = |pair: &[usize]| Block::new(pair[0], pair[1], pair[1] / pair[0], device);
        Self {
            first: Layer::new(3, 16, 3, 1, device),
            blocks: widths.windows(2).map(block).collect(),
            last: Dense::init(64, 10, 1, device),
        }
    }

    /// The cross-entropy of a batch of images [B, 3, 32, 32] with their classes `[B]`.
    pub fn loss(&self, images: Tensor<4>, classes: Tensor<1, Int>) -> Tensor<1> {
        let x = self.first.forward(images, Activation::Relu);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        let [batch, channels, height, width] = x.dims();
        let x = x.reshape([batch, channels, height * width]).mean_dim(2);
        let logits = self.last.forward(x.reshape([batch, channels]));
        -log_softmax(logits, 1).gather(1, classes.reshape([batch, 1])).mean()
    }
}
