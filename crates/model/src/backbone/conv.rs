//! A small convolutional network for small images.

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::layers::{Convolution, Fresh, Sizes, average};

/// 3 × 3 convolutions with bias, a rectifier after each, then the average over the image.
#[derive(Module, Debug)]
pub struct Conv {
    layers: Vec<Convolution>,
    #[module(skip)]
    image: [usize; 3],
}

impl Conv {
    pub(super) fn init(image: [usize; 3], channels: &[usize], seed: u64, device: &Device) -> Self {
        let mut fresh = Fresh::new(seed, 0.0, device); // it has no norms
        let widths = std::iter::once(&image[0]).chain(channels).zip(channels);
        let layer = |(index, (from, to)): (usize, (&usize, &usize))| {
            let stride = if index == 0 { 1 } else { 2 };
            fresh.biased_convolution(Sizes::square(*from, *to, 3, stride))
        };
        Self { layers: widths.enumerate().map(layer).collect(), image }
    }

    pub(super) fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let [batch, _] = inputs.dims();
        let [channels, height, width] = self.image;
        let images = inputs.reshape([batch, channels, height, width]);
        average(self.layers.iter().fold(images, |x, layer| relu(layer.forward(x))))
    }
}
