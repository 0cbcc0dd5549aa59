//! Training steps of a ResNet-20 (He et al., 2015) on 32 × 32 images and ten classes.
//!
//! ```text
//! echo 128 | cargo run --release -p aleator-benchmarks -- resnet20
//! ```
//!
//! A line of the input is a batch size. A step is forward, loss, all gradients, and SGD with
//! momentum. The output is the shortest time of six steps and their mean processor time, over all
//! threads (Linux only), in seconds.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use aleator_kernels::split_mix;
use aleator_model::{Activation, Dense, convolve, normalise_batch};
use anyhow::Result;
use burn::module::{Module, Param};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};

use crate::clock::processor_seconds;

const STEPS: usize = 6;

pub fn run() -> Result<()> {
    let device = Device::flex().autodiff();
    let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
    let mut optimizer = SgdConfig::new().with_momentum(Some(momentum)).init();
    let mut model = ResNet20::new(&device);
    for line in stdin().lock().lines() {
        let line = line?;
        let Ok(batch) = line.trim().parse::<usize>() else {
            eprintln!("expected a batch size, found: {line}");
            continue;
        };
        let normal = Distribution::Normal(0.0, 1.0);
        let images = Tensor::<4>::random([batch, 3, 32, 32], normal, &device);
        let classes: Vec<i64> = (0..batch as i64).map(|image| image % 10).collect();
        let classes = Tensor::<1, Int>::from_data(TensorData::new(classes, [batch]), &device);
        let (mut shortest, mut before) = (f64::INFINITY, 0.0);
        for step in 0..=STEPS {
            if step == 1 {
                before = processor_seconds(); // the first step warms up
            }
            let start = Instant::now();
            let loss = model.loss(images.clone(), classes.clone());
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(0.01, model, gradients);
            shortest = shortest.min(start.elapsed().as_secs_f64());
        }
        let processor = (processor_seconds() - before) / STEPS as f64;
        writeln!(stdout(), "{shortest:.6} {processor:.6}")?;
    }
    Ok(())
}

/// ResNet-20 for images of 3 × 32 × 32 and ten classes.
#[derive(Module, Debug)]
struct ResNet20 {
    first: Layer,
    blocks: Vec<Block>,
    last: Dense,
}

/// Two layers and a shortcut around them; the shortcut has a layer of its own where sizes change.
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
        let bound = (6.0 / fan_in as f32).sqrt();
        let unit = |word: u64| (word >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        let weight = split_mix(seed).take(to * fan_in).map(|word| bound * unit(word)).collect();
        let weight = TensorData::new::<f32, _>(weight, [to, from, kernel, kernel]);
        Self {
            weight: Param::from_data(weight, device),
            scale: Param::from_data(TensorData::ones::<f32, _>([to]), device),
            shift: Param::from_data(TensorData::zeros::<f32, _>([to]), device),
            stride,
        }
    }

    fn forward(&self, x: Tensor<4>, activation: Activation) -> Tensor<4> {
        let [_, _, kernel, _] = self.weight.dims();
        let x = convolve(x, self.weight.val(), [self.stride; 2], [kernel / 2; 4], 1);
        let (scale, shift) = (Some(self.scale.val()), self.shift.val());
        normalise_batch(x, scale, shift, 1e-5, activation).out
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
    /// A network with initial weights.
    fn new(device: &Device) -> Self {
        let widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64];
        let block = |pair: &[usize]| Block::new(pair[0], pair[1], pair[1] / pair[0], device);
        Self {
            first: Layer::new(3, 16, 3, 1, device),
            blocks: widths.windows(2).map(block).collect(),
            last: Dense::init(64, 10, 1, device),
        }
    }

    /// The cross-entropy of a batch of images [B, 3, 32, 32] with their classes `[B]`.
    fn loss(&self, images: Tensor<4>, classes: Tensor<1, Int>) -> Tensor<1> {
        let x = self.first.forward(images, Activation::Relu);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        let [batch, channels, height, width] = x.dims();
        let x = x.reshape([batch, channels, height * width]).mean_dim(2);
        let logits = self.last.forward(x.reshape([batch, channels]));
        -log_softmax(logits, 1).gather(1, classes.reshape([batch, 1])).mean()
    }
}
