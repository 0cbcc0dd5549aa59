//! Log-probabilities of all classes, and their backward pass by drawing the same noise again.

use rayon::prelude::*;

use super::loss::reduce_batch;
use super::predict::predict_example;
use super::rows::{RowGrad, write_grad};
use super::worker::{Call, Worker, Workers};
use crate::draws::Sampling;
use crate::latent::{Latent, LatentGrad, NotFinite, Temperature};
use crate::simd::Vectors;
use crate::tile::operations::{Accumulate, Backpropagate, LogSumExp};
use crate::tile::{ClassLanes, SampleLanes, Tile, has_few_classes};

/// log p_c = log (1/S) Σ_s softmax(u_s/τ)_c of every class, in log space throughout.
///
/// # Shapes
/// - out: [B, K]
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// ```
/// use aleator_kernels::{
///     fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors,
/// };
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 1.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1000, draws, law };
/// let mut log_probs = [0.0; 2];
/// let tau = Temperature::try_from(1.0).unwrap();
/// fused::log_probs(&latent, tau, &sampling, Vectors::Detected, &mut log_probs)?;
/// assert!((log_probs[0] - 0.5f32.ln()).abs() < 1e-5); // exact, because samples come in pairs
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn log_probs(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    vectors: Vectors,
    out: &mut [f32],
) -> Result<(), NotFinite> {
    let call = Call::new(latent, temperature, sampling, vectors)?;
    assert_eq!(out.len(), latent.batch * latent.classes, "log_probs must be [B, K]");
    if has_few_classes(latent.classes) {
        forward_batch::<SampleLanes>(&call, out);
    } else {
        forward_batch::<ClassLanes>(&call, out);
    }
    Ok(())
}

fn forward_batch<T: Tile + Send>(call: &Call, out: &mut [f32]) {
    let workers = Workers::<T>::new(&call.latent);
    out.par_chunks_mut(call.latent.classes).enumerate().for_each(|(row, out)| {
        workers.with_one(|worker| predict_example(call, worker, row, out, None));
    });
}

/// The gradient of Σ upstream · log_probs, for the same noise as [`log_probs`] drew, which has
/// checked `latent`.
///
/// # Shapes
/// - log_probs (the output of [`log_probs`]), upstream: [B, K]
///
/// ```
/// use aleator_kernels::{
///     fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors,
/// };
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 1.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.5, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 100, draws, law };
/// let tau = Temperature::try_from(1.0).unwrap();
/// let mut log_probs = [0.0; 2];
/// fused::log_probs(&latent, tau, &sampling, Vectors::Detected, &mut log_probs)?;
/// let grad =
///     fused::backward(&latent, tau, &sampling, Vectors::Detected, &log_probs, &[1.0, 0.0]);
/// assert!(grad.mean[0] > 0.0 && (grad.mean[0] + grad.mean[1]).abs() < 1e-6);
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn backward(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    vectors: Vectors,
    log_probs: &[f32],
    upstream: &[f32],
) -> LatentGrad {
    let call =
        Call::new(latent, temperature, sampling, vectors).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(log_probs.len(), latent.batch * latent.classes, "log_probs must be [B, K]");
    assert_eq!(upstream.len(), log_probs.len(), "upstream must be [B, K]");
    if has_few_classes(latent.classes) {
        backward_batch::<SampleLanes>(&call, log_probs, upstream)
    } else {
        backward_batch::<ClassLanes>(&call, log_probs, upstream)
    }
}

fn backward_batch<T: Tile + Send>(call: &Call, log_probs: &[f32], upstream: &[f32]) -> LatentGrad {
    let classes = call.latent.classes;
    let example = |worker: &mut Worker<T>, row: usize, out: &mut RowGrad| {
        let entries = row * classes..(row + 1) * classes;
        let (log_probs, upstream) = (&log_probs[entries.clone()], &upstream[entries]);
        (0.0, backward_example(call, worker, row, log_probs, upstream, out))
    };
    reduce_batch(call, LatentGrad::zeros(&call.latent), example).grad
}

/// Writes the gradients of one example and returns its ∂/∂τ.
pub(super) fn backward_example<T: Tile>(
    call: &Call,
    worker: &mut Worker<T>,
    row: usize,
    log_probs: &[f32],
    upstream: &[f32],
    out: &mut RowGrad,
) -> f64 {
    let example = call.latent.example(row);
    let origin = example.largest_mean();
    worker.load(&example, call.temperature, origin, 1);
    let Worker { tile, rows, targets } = worker;
    let moments = &mut targets[0].moments;
    let padded = |values: &[f32], scale: f32| {
        let mut padded: Vec<f32> = values.iter().map(|value| value * scale).collect();
        padded.resize(tile.padded_classes(), 0.0);
        padded
    };
    let log2_probs = padded(log_probs, core::f32::consts::LOG2_E);
    let upstream = padded(upstream, 1.0);
    for at in call.tiles::<T>(row) {
        tile.draw(call.level, &call.plan, at);
        call.level.run(LogSumExp { tile: &*tile, rows: &mut rows.lse });
        let (lse, log2_probs, upstream) = (&rows.lse, &log2_probs, &upstream);
        call.level.run(Backpropagate { tile: &mut *tile, lse, log2_probs, upstream });
        rows.weights[..at.samples].fill(1.0);
        rows.weights[at.samples..].fill(0.0);
        let weights = &rows.weights;
        call.level.run(Accumulate { tile: &mut *tile, weights, moments: &mut *moments });
    }
    let parts = [(&*moments, 1.0 / call.samples() as f32)];
    write_grad(tile, &parts, &example, call.temperature, origin, out)
}
