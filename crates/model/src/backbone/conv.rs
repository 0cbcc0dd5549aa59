//! A small convolutional network for small images.

use aleator_kernels::{NoiseKey, Stream};
use burn::module::{Module, Param};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};

use crate::convolution::convolve;
use crate::dense::uniform;

/// 3 × 3 convolutions, a rectifier after each, then the average over the image.
#[derive(Module, Debug)]
pub struct Conv {
    layers: Vec<Convolution>,
    #[module(skip)]
    image: [usize; 3],
}

/// One 3 × 3 convolution with bias.
#[derive(Module, Debug)]
struct Convolution {
    /// [to, from, 3, 3].
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    stride: usize,
}

impl Conv {
    pub(super) fn init(image: [usize; 3], channels: &[usize], seed: u64, device: &Device) -> Self {
        let key = NoiseKey { seed, step: 0 };
        let widths = std::iter::once(&image[0]).chain(channels);
        let layer = |(index, (from, to)): (usize, (&usize, &usize))| {
            let seed = key.block_seed(1, Stream::Initial, index as u64);
            let fan_in = from * 9;
            let weight = uniform(seed, to * fan_in, (6.0 / fan_in as f32).sqrt());
            Convolution {
                weight: Param::from_data(TensorData::new(weight, [*to, *from, 3, 3]), device),
                bias: Param::from_data(TensorData::zeros::<f32, _>([*to]), device),
                stride: if index == 0 { 1 } else { 2 },
            }
        };
        Self { layers: widths.zip(channels).enumerate().map(layer).collect(), image }
    }

    pub(super) fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let [batch, _] = inputs.dims();
        let [channels, height, width] = self.image;
        let images = inputs.reshape([batch, channels, height, width]);
        let out = self.layers.iter().fold(images, |x, layer| relu(layer.forward(x)));
        let [_, channels, height, width] = out.dims();
        out.reshape([batch, channels, height * width]).mean_dim(2).reshape([batch, channels])
    }
}

impl Convolution {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [channels] = self.bias.dims();
        let bias = self.bias.val().reshape([1, channels, 1, 1]);
        convolve(x, self.weight.val(), [self.stride; 2], [1; 4], 1) + bias
    }
}
