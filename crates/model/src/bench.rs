//! A training step of a head on made-up data, and layers of networks, for benchmarks and tests.

mod images;

use std::sync::Mutex;

use aleator_kernels::fused::Buffers;
use aleator_kernels::{LatentGrad, Targets, Vectors, fused, multilabel, split_mix};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::het_linear::{HetLinear, HetLinearConfig, Labels};
use crate::latent::CpuLatent;
use crate::likelihood::Link;

pub use images::{Rectifier, ResNet20, convolve, normalise_batch, normalise_fixed};

/// A layer with a batch to train it on.
pub struct HeadBench {
    layer: HetLinear,
    features: Tensor<2>,
    labels: BenchLabels,
}

enum BenchLabels {
    Classes(Vec<u32>),
    MultiHot(Vec<f32>),
}

impl HeadBench {
    /// Standard normal features; uniform labels, or about ten classes on for each example.
    pub fn new(config: &HetLinearConfig, batch: usize) -> Self {
        let device = Device::flex().autodiff();
        let (width, classes) = (config.feature_dim, config.classes);
        let mut words = split_mix(config.seed ^ 0x5eed);
        let mut unit = || (words.next().expect("endless") >> 40) as f32 / (1u64 << 24) as f32;
        // The sum of twelve uniforms: near enough to normal for timing.
        let features: Vec<f32> =
            (0..batch * width).map(|_| (0..12).map(|_| unit()).sum::<f32>() - 6.0).collect();
        let labels = match config.link {
            Link::Softmax => BenchLabels::Classes(
                (0..batch)
                    .map(|_| ((unit() * classes as f32) as u32).min(classes as u32 - 1))
                    .collect(),
            ),
            Link::Sigmoid => {
                let rate = (10.0 / classes as f32).min(0.5);
                let on = |_| if unit() < rate { 1.0 } else { 0.0 };
                BenchLabels::MultiHot((0..batch * classes).map(on).collect())
            }
        };
        let features = Tensor::from_data(TensorData::new(features, [batch, width]), &device);
        Self { layer: config.init(&device), features, labels }
    }

    /// Forward, loss and the gradients of all parameters through the public layer; the loss.
    pub fn step(&self) -> f32 {
        let loss = self.layer.loss(self.features.clone(), self.labels());
        let value = loss.clone().into_scalar();
        drop(loss.backward());
        value
    }

    /// A function that runs the likelihood's kernel alone, loss and gradients, on this batch.
    pub fn likelihood(&self) -> impl Fn() -> f32 {
        let latent = CpuLatent::new(self.layer.head().forward(self.features.clone()).inner());
        let noise = self.layer.training_noise(&self.features);
        let batch = noise.ids.len();
        // As the layer does, a step writes into the buffers of the one before.
        let spare = Mutex::new(None);
        move || {
            let (view, tau) = (latent.view(), latent.temperature());
            let weights = vec![1.0 / batch as f32; batch];
            let left = spare.lock().ok().and_then(|mut spare| spare.take());
            let grad = left.unwrap_or_else(|| LatentGrad::zeros(&view));
            let out = match &self.labels {
                BenchLabels::Classes(classes) => fused::loss_and_grad_into(
                    &view,
                    tau,
                    &noise.sampling(),
                    Targets::Classes(classes),
                    &weights,
                    Vectors::Detected,
                    Buffers { grad, log_probs: None },
                ),
                BenchLabels::MultiHot(labels) => {
                    let targets = Targets::Dense(labels);
                    multilabel::loss_and_grad(&view, tau, targets, &weights, Vectors::Detected)
                }
            };
            let out = out.expect("made-up features are finite");
            let loss = out.losses.iter().sum::<f32>() / batch as f32;
            if let Ok(mut spare) = spare.lock() {
                *spare = Some(out.grad);
            }
            loss
        }
    }

    fn labels(&self) -> Labels {
        let device = self.features.device();
        let [batch, _] = self.features.dims();
        match &self.labels {
            BenchLabels::Classes(classes) => {
                let classes: Vec<i64> = classes.iter().map(|class| *class as i64).collect();
                let data = TensorData::new(classes, [batch]);
                Labels::Classes(Tensor::<1, Int>::from_data(data, &device))
            }
            BenchLabels::MultiHot(labels) => {
                let shape = [batch, labels.len() / batch];
                Labels::Dense(Tensor::from_data(TensorData::new(labels.clone(), shape), &device))
            }
        }
    }
}
