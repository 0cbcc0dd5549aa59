//! Dense layers with rectifiers.

use aleator_kernels::{NoiseKey, Stream};
use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use crate::dense::Dense;

/// Dense layers, a rectifier after each.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Dense>,
}

impl Mlp {
    pub(super) fn init(inputs: usize, hidden: &[usize], seed: u64, device: &Device) -> Self {
        let key = NoiseKey { seed, step: 0 };
        let widths = std::iter::once(&inputs).chain(hidden);
        let layer = |(index, (from, to)): (usize, (&usize, &usize))| {
            let seed = key.block_seed(1, Stream::Initial, index as u64);
            Dense::init_before_relu(*from, *to, seed, device)
        };
        Self { layers: widths.zip(hidden).enumerate().map(layer).collect() }
    }

    pub(super) fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.layers.iter().fold(inputs, |x, layer| relu(layer.forward(x)))
    }
}
