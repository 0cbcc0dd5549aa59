//! A layer with a random batch.

use std::sync::Mutex;

use aleator_kernels::fused::Buffers;
use aleator_kernels::{
    self as kernels, LatentGrad, NoiseKey, NoiseLaw, Sampling, Targets, Vectors, fused, multilabel,
    split_mix,
};
use aleator_model::{Covariance, HetLinear, HetLinearConfig, Labels, Link, Temperature};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// A layer with a batch to train it on.
pub struct HeadBatch {
    layer: HetLinear,
    features: Tensor<2>,
    labels: BatchLabels,
}

enum BatchLabels {
    Classes(Vec<u32>),
    MultiHot(Vec<f32>),
}

impl HeadBatch {
    /// Nearly normal features; uniform classes, or about ten positive classes per example.
    pub fn new(config: &HetLinearConfig, batch: usize) -> Self {
        let device = Device::flex().autodiff();
        let (width, classes) = (config.feature_dim, config.classes);
        let mut words = split_mix(config.seed ^ 0x5eed);
        let mut unit = || (words.next().expect("endless") >> 40) as f32 / (1u64 << 24) as f32;
        // The sum of twelve uniforms has mean 6 and variance 1.
        let features: Vec<f32> =
            (0..batch * width).map(|_| (0..12).map(|_| unit()).sum::<f32>() - 6.0).collect();
        let labels = match config.link {
            Link::Softmax => BatchLabels::Classes(
                (0..batch)
                    .map(|_| ((unit() * classes as f32) as u32).min(classes as u32 - 1))
                    .collect(),
            ),
            Link::Sigmoid => {
                let rate = (10.0 / classes as f32).min(0.5);
                let on = |_| if unit() < rate { 1.0 } else { 0.0 };
                BatchLabels::MultiHot((0..batch * classes).map(on).collect())
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

    /// A function that runs the kernel of the likelihood alone, loss and gradients, on this batch.
    pub fn likelihood(&self) -> impl Fn() -> f32 {
        let [batch, classes] = [self.features.dims()[0], self.layer.config().classes];
        let latent = LatentNumbers::new(&self.layer, self.features.clone());
        let key = NoiseKey { seed: self.layer.config().seed, step: self.layer.step() };
        let ids: Vec<u64> = (0..batch as u64).collect();
        let weights = vec![1.0 / batch as f32; batch];
        // As in the layer, each step writes into the buffers of the step before.
        let spare = Mutex::new(None);
        move || {
            let (view, tau) = (latent.view(batch, classes), latent.temperature);
            let config = self.layer.config();
            let (samples, draws) = (config.samples, config.draws);
            let sampling = Sampling { key, ids: &ids, samples, draws, law: NoiseLaw::Normal };
            let left = spare.lock().ok().and_then(|mut spare| spare.take());
            let grad = left.unwrap_or_else(|| LatentGrad::zeros(&view));
            let out = match &self.labels {
                BatchLabels::Classes(classes) => fused::loss_and_grad_into(
                    &view,
                    tau,
                    &sampling,
                    Targets::Classes(classes),
                    &weights,
                    Vectors::Detected,
                    Buffers { grad, log_probs: None },
                ),
                BatchLabels::MultiHot(labels) => {
                    let targets = Targets::Dense(labels);
                    multilabel::loss_and_grad(&view, tau, targets, &weights, Vectors::Detected)
                }
            };
            let out = out.expect("random features are finite");
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
            BatchLabels::Classes(classes) => {
                let classes: Vec<i64> = classes.iter().map(|class| *class as i64).collect();
                let data = TensorData::new(classes, [batch]);
                Labels::Classes(Tensor::<1, Int>::from_data(data, &device))
            }
            BatchLabels::MultiHot(labels) => {
                let shape = [batch, labels.len() / batch];
                Labels::Dense(Tensor::from_data(TensorData::new(labels.clone(), shape), &device))
            }
        }
    }
}

/// The output of a head as plain numbers.
struct LatentNumbers {
    mean: Vec<f32>,
    /// diag_scale, then loadings, or loading_scale and shared_loadings.
    scales: Vec<Vec<f32>>,
    rank: usize,
    temperature: Temperature,
}

impl LatentNumbers {
    fn new(layer: &HetLinear, features: Tensor<2>) -> Self {
        let latent = layer.head().forward(features).in_class_space();
        let rank = latent.rank();
        let scales = match latent.covariance {
            Covariance::None => vec![],
            Covariance::Diagonal { diag_scale } => vec![numbers(diag_scale)],
            Covariance::LowRank { diag_scale, loadings } => {
                vec![numbers(diag_scale), numbers(loadings)]
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                vec![numbers(diag_scale), numbers(loading_scale), numbers(shared_loadings)]
            }
            Covariance::OnFeatures(_) => unreachable!("it is in the space of the classes"),
        };
        let temperature: f32 = latent.temperature.into_scalar();
        let temperature = Temperature::try_from(temperature).expect("a checked temperature");
        Self { mean: numbers(latent.mean), scales, rank, temperature }
    }

    fn view(&self, batch: usize, classes: usize) -> kernels::Latent<'_> {
        let rank = self.rank;
        let covariance = match self.scales.as_slice() {
            [] => kernels::Covariance::None,
            [diag_scale] => kernels::Covariance::Diagonal { diag_scale },
            [diag_scale, loadings] => kernels::Covariance::LowRank { diag_scale, loadings, rank },
            [diag_scale, loading_scale, shared_loadings, ..] => {
                kernels::Covariance::SharedLowRank {
                    diag_scale,
                    loading_scale,
                    shared_loadings,
                    rank,
                }
            }
        };
        kernels::Latent { batch, classes, mean: &self.mean, covariance }
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
