//! Predictions: probabilities, how much they vary with the noise, and the Normal behind them.

use aleator_kernels::{self as kernels, NotFinite, Vectors};
use burn::tensor::Tensor;
use burn::tensor::activation::log_sigmoid;

use crate::class_space::CpuFeatures;
use crate::expansion;
use crate::het_linear::HetLinearConfig;
use crate::latent::{Covariance, CpuLatent, Latent};
use crate::likelihood::{BatchNoise, Likelihood, Link, sigmoid_logits, try_softmax_log_probs};
use crate::on_device;
use crate::recycled;
use crate::slices::is_cpu;

/// What [`HetLinear::predict`](crate::HetLinear::predict) gives.
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
/// let prediction = layer.predict(Tensor::ones([4, 8], &device));
/// let probs = prediction.log_probs.exp(); // [4, 3]
/// let how_sure = prediction.variance; // [4, 3]
/// let noise_of_the_first = prediction.latent.covariance(0); // [3, 3]
/// # assert_eq!(probs.dims(), how_sure.dims());
/// # assert_eq!(noise_of_the_first.dims(), [3, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct Prediction {
    /// log p of every class, [B, K].
    pub log_probs: Tensor<2>,
    /// The variance over the noise of softmax(u/τ) or sigmoid(u/τ), [B, K].
    pub variance: Tensor<2>,
    /// μ(x), Σ(x) and τ: `latent.mean`, `latent.covariance(example)`.
    pub latent: Latent,
}

/// What [`HetLinear::score_with`](crate::HetLinear::score_with) gives.
#[derive(Clone, Debug)]
pub struct Scores {
    /// log p of every class, [B, K].
    pub log_probs: Tensor<2>,
    /// log(1 − p), [B, K], under the sigmoid link: it cannot be had from log p near p = 1.
    pub log_complements: Option<Tensor<2>>,
    /// μ(x), Σ(x) and τ.
    pub latent: Latent,
}

pub(crate) fn score(
    latent: Latent,
    config: &HetLinearConfig,
    noise: &BatchNoise,
) -> Result<Scores, NotFinite> {
    let own = latent;
    let latent = own.clone().for_likelihood(config.link, config.likelihood, noise.samples);
    let (log_probs, log_complements) = match config.link {
        Link::Softmax if is_expanded(config.likelihood) => (expanded(&latent)?, None),
        Link::Softmax => (try_softmax_log_probs(latent.clone(), noise)?, None),
        Link::Sigmoid if is_cpu(&latent.device()) => {
            let cpu = CpuLatent::new(&latent);
            let both =
                kernels::multilabel::log_probs(&cpu.view(), cpu.temperature(), Vectors::Detected)?;
            let shape = latent.dims();
            (recycled::tensor(both.on, shape), Some(recycled::tensor(both.off, shape)))
        }
        Link::Sigmoid => {
            let logits = sigmoid_logits(latent.clone());
            (log_sigmoid(logits.clone()), Some(log_sigmoid(-logits)))
        }
    };
    Ok(Scores { log_probs, log_complements, latent: own })
}

pub(crate) fn predict(
    latent: Latent,
    config: &HetLinearConfig,
    noise: &BatchNoise,
) -> Result<Prediction, NotFinite> {
    let (on_cpu, link) = (is_cpu(&latent.device()), config.link);
    let form = latent.clone().for_likelihood(link, config.likelihood, noise.samples);
    let (shape, sampling) = (form.dims(), noise.sampling());
    let tensor = |values| recycled::tensor(values, shape);
    if on_cpu && link == Link::Softmax {
        // One pass over the samples gives both.
        let (log_probs, variance) = if let Covariance::OnFeatures(of) = &form.covariance {
            CpuFeatures::new(&form, of).batch().predict(noise)?
        } else {
            let cpu = CpuLatent::new(&form);
            let (view, tau) = (cpu.view(), cpu.temperature());
            let out = kernels::fused::predict(&view, tau, &sampling, Vectors::Detected)?;
            (out.log_probs, out.variance)
        };
        let log_probs = match is_expanded(config.likelihood) {
            true => expanded(&form)?,
            false => tensor(log_probs),
        };
        return Ok(Prediction { log_probs, variance: tensor(variance), latent });
    }
    let Scores { log_probs, .. } = score(latent.clone(), config, noise)?;
    let variance = if on_cpu {
        let cpu = CpuLatent::new(&form);
        tensor(kernels::multilabel::predictive_variance(&cpu.view(), cpu.temperature(), &sampling))
    } else {
        on_device::variance(&form, link, noise)
    };
    Ok(Prediction { log_probs, variance, latent })
}

fn is_expanded(likelihood: Likelihood) -> bool {
    matches!(likelihood, Likelihood::Expansion | Likelihood::LogExpansion)
}

/// log p of every class by the normalised expansion, [B, K].
fn expanded(latent: &Latent) -> Result<Tensor<2>, NotFinite> {
    latent.check()?;
    Ok(expansion::log_probs(latent))
}
