//! [`Latent`] + noise key → log-probabilities: the one place where kernels meet autograd.

use aleator_kernels::fused::Buffers;
use aleator_kernels::taylor::{self, Form};
use aleator_kernels::{
    self as kernels, Draws, LatentGrad, NoiseKey, NoiseLaw, NotFinite, Sampling, Vectors,
};
pub use aleator_vocabulary::{Likelihood, Link};
use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::class_space::CpuFeatures;
use crate::custom_grad::custom_grad;
use crate::latent::{Covariance, CpuLatent, Latent};
use crate::recycled;
use crate::slices::{Floats, is_cpu};
use crate::{on_device, on_device_sigmoid};

/// Which noise a batch sees: the key and the ids of its examples.
///
/// With stable ids an example sees the same noise at any place in the batch:
///
/// ```
/// # use aleator_model::*;
/// # let device = burn::tensor::Device::flex();
/// # let layer = HetLinearConfig {
/// #     feature_dim: 8, classes: 3, noise: Noise::LowRank { rank: 2 }, link: Link::Softmax,
/// #     likelihood: Likelihood::Marginal,
/// #     temperature: HeadTemperature::Fixed(Temperature::try_from(0.9).unwrap()),
/// #     diag_scale: DiagScale::Softplus, samples: 100, draws: Draws::Antithetic, seed: 0,
/// # }.init(&device);
/// use burn::tensor::Tensor;
///
/// let noise = |ids: Vec<u64>| BatchNoise {
///     key: NoiseKey { seed: 0, step: 7 },
///     ids,
///     samples: 100,
///     draws: Draws::Antithetic,
/// };
/// let x = Tensor::<2>::ones([2, 8], &device);
/// let both = layer.forward_with(x.clone(), &noise(vec![12, 40]));
/// let second = layer.forward_with(x.narrow(0, 0, 1), &noise(vec![40]));
/// let difference: f32 = (both.narrow(0, 1, 1) - second).abs().max().into_scalar();
/// assert_eq!(difference, 0.0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchNoise {
    /// Seed and step.
    pub key: NoiseKey,
    /// Stable example ids, `[B]`.
    pub ids: Vec<u64>,
    /// S.
    pub samples: usize,
    /// How the samples are drawn.
    pub draws: Draws,
}

impl BatchNoise {
    pub(crate) fn sampling(&self) -> Sampling<'_> {
        let Self { key, ref ids, samples, draws } = *self;
        Sampling { key, ids, samples, draws, law: NoiseLaw::Normal }
    }

    pub(crate) fn check(&self, batch: usize) {
        let found = self.ids.len();
        assert!(found == batch, "example ids must be [B] = {batch} long, found {found}");
        assert!(self.samples > 0, "samples must be at least 1, found 0");
        let countable = u32::try_from(self.samples).is_ok();
        assert!(countable, "samples must be below 2^32, found {}", self.samples);
    }
}

/// log p of every class under the softmax link, differentiable in everything in `latent`.
///
/// # Shapes
/// - returns: [B, K]
///
/// # Panics
/// When utilities are not finite; the message names the example.
pub fn softmax_log_probs(latent: Latent, noise: &BatchNoise) -> Tensor<2> {
    try_softmax_log_probs(latent, noise).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn try_softmax_log_probs(
    latent: Latent,
    noise: &BatchNoise,
) -> Result<Tensor<2>, NotFinite> {
    noise.check(latent.dims()[0]);
    let latent = latent.for_likelihood(Link::Softmax, Likelihood::Marginal, noise.samples);
    let noise = noise.clone();
    if !is_cpu(&latent.device()) {
        let inner = latent.inner();
        let value = on_device::log_probs(&inner, &noise);
        let saved = value.clone();
        return Ok(custom_grad(value, latent.tensors(), move |upstream, _| {
            on_device::backward(&inner, &noise, saved, upstream)
        }));
    }
    if let Covariance::OnFeatures(of) = &latent.covariance {
        let cpu = CpuFeatures::new(&latent, of);
        let value = recycled::tensor(cpu.batch().log_probs(&noise)?, latent.dims());
        return Ok(custom_grad(value, latent.tensors(), move |upstream: Tensor<2>, _| {
            let upstream = Floats::new(-upstream);
            let ones = vec![1.0; noise.ids.len()];
            let targets = kernels::Targets::Dense(upstream.as_slice());
            let out = cpu.batch().loss_and_grad(&noise, targets, &ones);
            let (_, grad) = out.expect("the numbers were finite in the forward pass");
            cpu.gradients(grad, 1.0)
        }));
    }
    let cpu = CpuLatent::new(&latent);
    let mut log_probs = recycled::take(latent.dims().iter().product());
    let (view, tau) = (cpu.view(), cpu.temperature());
    kernels::fused::log_probs(&view, tau, &noise.sampling(), Vectors::Detected, &mut log_probs)?;
    let value = recycled::tensor(log_probs, latent.dims());
    let saved = Floats::new(value.clone());
    Ok(custom_grad(value, latent.tensors(), move |upstream: Tensor<2>, _| {
        let upstream = Floats::new(upstream);
        let grad = kernels::fused::backward(
            &cpu.view(),
            cpu.temperature(),
            &noise.sampling(),
            Vectors::Detected,
            saved.as_slice(),
            upstream.as_slice(),
        );
        gradients(grad, &cpu)
    }))
}

/// log p − log(1 − p) of every class under the sigmoid link, exact, differentiable.
///
/// # Shapes
/// - returns: [B, K]
///
/// # Panics
/// When utilities are not finite; the message names the example.
pub fn sigmoid_logits(latent: Latent) -> Tensor<2> {
    let latent = latent.for_likelihood(Link::Sigmoid, Likelihood::Marginal, 0);
    if !is_cpu(&latent.device()) {
        let (value, rule) = on_device_sigmoid::logits(&latent.inner());
        return custom_grad(value, latent.tensors(), move |upstream, _| rule.pull(upstream));
    }
    let cpu = CpuLatent::new(&latent);
    let log_probs =
        kernels::multilabel::log_probs(&cpu.view(), cpu.temperature(), Vectors::Detected)
            .unwrap_or_else(|error| panic!("{error}"));
    let logits = log_probs.on.iter().zip(&log_probs.off).map(|(on, off)| on - off).collect();
    let value = recycled::tensor(logits, latent.dims());
    custom_grad(value, latent.tensors(), move |upstream: Tensor<2>, _| {
        let on = Floats::new(upstream);
        let off: Vec<f32> = on.as_slice().iter().map(|up| -up).collect();
        let (view, tau) = (cpu.view(), cpu.temperature());
        let grad =
            kernels::multilabel::backward(&view, tau, Vectors::Detected, on.as_slice(), &off);
        gradients(grad, &cpu)
    })
}

/// The loss of a batch under a weight for each example.
#[derive(Clone, Debug)]
pub struct WeightedLoss {
    /// Σ weight · loss over the examples, `[1]`; its gradient is that of the training step.
    pub sum: Tensor<1>,
    /// −log p of the labels of each example, not weighted and without gradient, `[B]`.
    pub losses: Tensor<1>,
}

/// Everything that a loss is computed from but the Normal.
#[derive(Clone, Copy)]
pub(crate) struct LossInputs<'a> {
    pub targets: kernels::Targets<'a>,
    /// `[B]`.
    pub weights: &'a [f32],
    pub noise: &'a BatchNoise,
    /// log p for the same noise, [B, K], where it is known.
    pub log_probs: Option<&'a [f32]>,
}

/// The loss, and all gradients in the same pass.
pub(crate) fn loss_on_cpu(
    latent: Latent,
    link: Link,
    likelihood: Likelihood,
    inputs: LossInputs<'_>,
) -> Result<WeightedLoss, NotFinite> {
    let LossInputs { targets, weights, noise, log_probs } = inputs;
    let latent = latent.for_likelihood(link, likelihood, noise.samples);
    if let Covariance::OnFeatures(of) = &latent.covariance {
        let cpu = CpuFeatures::new(&latent, of);
        let (log_probs, grad) = cpu.batch().loss_and_grad(noise, targets, weights)?;
        let losses = targets.losses(&log_probs, latent.dims()[1]);
        return Ok(weighted(losses, weights, latent, move |scale| cpu.gradients(grad, scale)));
    }
    let cpu = CpuLatent::new(&latent);
    let (view, tau, vectors) = (cpu.view(), cpu.temperature(), Vectors::Detected);
    let (sampling, grad) = (noise.sampling(), || LatentGrad::from_buffers(&view, recycled::take));
    let expand = |form| taylor::loss_and_grad(&view, tau, targets, weights, form, grad());
    let out = match (likelihood, link) {
        (Likelihood::Marginal, Link::Softmax) => {
            let buffers = Buffers { grad: grad(), log_probs };
            kernels::fused::loss_and_grad_into(
                &view, tau, &sampling, targets, weights, vectors, buffers,
            )
        }
        (Likelihood::Marginal, Link::Sigmoid) => {
            kernels::multilabel::loss_and_grad(&view, tau, targets, weights, vectors)
        }
        (Likelihood::Joint, _) => kernels::multilabel::joint_loss_and_grad(
            &view,
            tau,
            &sampling,
            targets,
            weights,
            vectors,
            grad(),
        ),
        (Likelihood::Expansion, _) => expand(Form::Probability),
        (Likelihood::LogExpansion, _) => expand(Form::LogProbability),
    }?;
    let grad = out.grad;
    Ok(weighted(out.losses, weights, latent, move |scale| gradients(scaled(grad, scale), &cpu)))
}

/// The weighted sum of losses, whose gradients are `pull(upstream)`.
fn weighted(
    losses: Vec<f32>,
    weights: &[f32],
    latent: Latent,
    pull: impl FnOnce(f32) -> Vec<Option<DispatchTensor>> + Send + 'static,
) -> WeightedLoss {
    let batch = losses.len();
    let terms = losses.iter().zip(weights);
    let sum: f64 = terms.map(|(loss, weight)| *loss as f64 * *weight as f64).sum();
    let value = recycled::tensor(vec![sum as f32], [1]);
    let sum = custom_grad(value, latent.tensors(), move |upstream: Tensor<1>, _| {
        pull(upstream.into_scalar())
    });
    WeightedLoss { sum, losses: recycled::tensor(losses, [batch]) }
}

fn scaled(mut grad: LatentGrad, scale: f32) -> LatentGrad {
    if scale != 1.0 {
        let LatentGrad { mean, diag_scale, loadings, loading_scale, shared_loadings, .. } =
            &mut grad;
        for values in [mean, diag_scale, loadings, loading_scale, shared_loadings] {
            values.iter_mut().for_each(|value| *value *= scale);
        }
        grad.temperature *= scale;
    }
    grad
}

/// Gradients in the order of [`Latent::tensors`].
fn gradients(grad: LatentGrad, latent: &CpuLatent) -> Vec<Option<DispatchTensor>> {
    let kernels::Latent { batch, classes, covariance, .. } = latent.view();
    let two = |values: Vec<f32>| recycled::tensor(values, [batch, classes]).into_dispatch();
    let temperature = recycled::tensor(vec![grad.temperature], [1]).into_dispatch();
    let mut out = vec![two(grad.mean), temperature];
    match covariance {
        kernels::Covariance::None => {}
        kernels::Covariance::Diagonal { .. } => out.push(two(grad.diag_scale)),
        kernels::Covariance::LowRank { rank, .. } => {
            out.push(two(grad.diag_scale));
            out.push(recycled::tensor(grad.loadings, [batch, classes, rank]).into_dispatch());
        }
        kernels::Covariance::SharedLowRank { rank, .. } => {
            out.extend([two(grad.diag_scale), two(grad.loading_scale)]);
            out.push(recycled::tensor(grad.shared_loadings, [classes, rank]).into_dispatch());
        }
    }
    out.into_iter().map(Some).collect()
}
