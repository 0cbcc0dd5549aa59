//! Losses that are functions of an example's log-probabilities.
//!
//! The gradient of ℓ(log q) is that of −Σ_k t_k log q_k with the constants t_k = −∂ℓ/∂log q_k,
//! which the likelihood takes as targets, whatever noise is behind q. What ℓ is beyond that sum is
//! a number.

use aleator_data::SparseTargets;
use aleator_model::BatchNoise;
use burn::tensor::Tensor;

use super::view;
use crate::network::Network;
use crate::step::{Contribution, Part};

/// The loss of one example.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExampleLoss {
    /// −∂ℓ/∂log q, `[K]`.
    pub targets: Vec<f64>,
    /// ℓ + Σ targets · log q.
    pub beyond: f64,
}

impl ExampleLoss {
    /// −Σ targets · log q with targets that are constants.
    pub fn against(targets: Vec<f64>) -> Self {
        Self { targets, beyond: 0.0 }
    }

    /// A loss of this value and slope.
    pub fn new(loss: f64, targets: Vec<f64>, log_probs: &[f64]) -> Self {
        let beyond = loss - cross_entropy(&targets, log_probs);
        Self { targets, beyond }
    }
}

/// −Σ targets · log q.
pub(super) fn cross_entropy(targets: &[f64], log_probs: &[f64]) -> f64 {
    let terms = targets.iter().zip(log_probs).filter(|(target, _)| **target != 0.0);
    -terms.map(|(target, log_prob)| target * log_prob).sum::<f64>()
}

/// A part of a step of one network, in which the example of each row has the loss that `loss` says,
/// given its log-probabilities.
///
/// # Errors
/// The rows of the examples whose utilities are not finite.
pub(super) fn contribution(
    network: &Network,
    part: &Part<'_>,
    mut loss: impl FnMut(usize, &[f64]) -> ExampleLoss,
) -> Result<Contribution, Vec<usize>> {
    contribution_of(network, part, part.inputs.clone(), &part.noise, |log_probs, classes| {
        let rows = log_probs.chunks_exact(classes).enumerate();
        rows.map(|(row, log_probs)| loss(row, log_probs)).collect()
    })
}

/// The same of other inputs and other noise, where `losses` gives those of all examples, from all
/// log-probabilities, [B, K], and K.
///
/// # Errors
/// The rows of the examples whose utilities are not finite.
pub(super) fn contribution_of(
    network: &Network,
    part: &Part<'_>,
    inputs: Tensor<2>,
    noise: &BatchNoise,
    losses: impl FnOnce(&[f64], usize) -> Vec<ExampleLoss>,
) -> Result<Contribution, Vec<usize>> {
    let model = network.model();
    let forward = model.forward(inputs);
    let log_probs = model.log_probs(&forward, noise)?;
    let (mut targets, mut beyond) = (SparseTargets::default(), 0.0);
    let wide: Vec<f64> = log_probs.read().iter().map(|value| f64::from(*value)).collect();
    let mut bad = vec![];
    let losses = losses(&wide, wide.len() / part.weights.len());
    for (row, own) in losses.into_iter().enumerate() {
        if !(own.beyond.is_finite() && own.targets.iter().all(|target| target.is_finite())) {
            bad.push(row);
        }
        beyond += f64::from(part.weights[row]) * own.beyond;
        targets.push((0..).zip(own.targets.into_iter().map(|target| target as f32)));
    }
    if !bad.is_empty() {
        return Err(bad);
    }
    let targets = view(&targets);
    let loss = model.loss(forward, targets, &part.weights, noise, Some(&log_probs))?;
    let mut contribution = Contribution::new(part, network, loss);
    contribution.loss += beyond;
    Ok(contribution)
}

#[cfg(test)]
pub(super) mod checks {
    use super::*;

    /// log softmax of some logits of three classes, one of them far behind.
    pub fn log_probs() -> Vec<Vec<f64>> {
        [[0.3, -0.2, 0.1], [4.0, -1.0, 0.5], [-2.0, 1.5, 1.0], [0.0, 0.0, -12.0]]
            .iter()
            .map(|logits| log_softmax(logits))
            .collect()
    }

    pub fn log_softmax(logits: &[f64]) -> Vec<f64> {
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        logits.iter().map(|logit| logit - sum.ln()).collect()
    }

    /// The value is that of a formula of q, and the slope by the logits that of its differences.
    #[track_caller]
    pub fn assert_is(found: &ExampleLoss, log_probs: &[f64], formula: impl Fn(&[f64]) -> f64) {
        let of = |logits: &[f64]| -> f64 {
            let probs: Vec<f64> = log_softmax(logits).iter().map(|log| log.exp()).collect();
            formula(&probs)
        };
        let value = found.beyond + cross_entropy(&found.targets, log_probs);
        let expected = of(log_probs);
        // Roundings of f64 in sums of numbers up to a few hundred.
        assert!((value - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{value} {expected}");
        let total: f64 = found.targets.iter().sum();
        for at in 0..log_probs.len() {
            let slope = log_probs[at].exp() * total - found.targets[at];
            let moved = |by: f64| {
                let mut logits = log_probs.to_vec();
                logits[at] += by;
                of(&logits)
            };
            const STEP: f64 = 1e-5;
            let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            // Differences of h = 1e-5: h² of truncation, 1e-16 / h of rounding.
            assert!((slope - expected).abs() < 1e-8 * (1.0 + total.abs()), "{slope} {expected}");
        }
    }
}
