//! Prediction: log-probabilities, and the variance of each probability over the noise.

use rayon::prelude::*;

use super::worker::{Call, Worker, Workers};
use crate::draws::Sampling;
use crate::latent::{Example, Latent, NotFinite, Temperature};
use crate::simd::Vectors;
use crate::tile::operations::{AddDeviations, AddLogMean, LogSumExp};
use crate::tile::{ClassLanes, Deviations, LogMean, SampleLanes, Tile, has_few_classes};

/// The result of [`predict`].
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// log p_c, [B, K].
    pub log_probs: Vec<f32>,
    /// The variance over the noise of softmax(u/τ)_c, [B, K].
    pub variance: Vec<f32>,
}

/// Log-probabilities with the predictive variance of each class.
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// ```
/// use aleator_kernels::{
///     fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors,
/// };
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1e4, 1e4] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1000, draws, law };
/// let tau = Temperature::try_from(1.0).unwrap();
/// let prediction = fused::predict(&latent, tau, &sampling, Vectors::Detected)?;
/// assert!((prediction.variance[0] - 0.25).abs() < 1e-2); // a coin toss
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn predict(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    vectors: Vectors,
) -> Result<Prediction, NotFinite> {
    let call = Call::new(latent, temperature, sampling, vectors)?;
    Ok(if has_few_classes(latent.classes) {
        over_batch::<SampleLanes>(&call)
    } else {
        over_batch::<ClassLanes>(&call)
    })
}

fn over_batch<T: Tile + Send>(call: &Call) -> Prediction {
    let Latent { batch, classes, .. } = call.latent;
    let mut prediction =
        Prediction { log_probs: vec![0.0; batch * classes], variance: vec![0.0; batch * classes] };
    let log_probs = prediction.log_probs.par_chunks_mut(classes);
    let variance = prediction.variance.par_chunks_mut(classes);
    let workers = Workers::<T>::new(&call.latent);
    log_probs.zip(variance).enumerate().for_each(|(row, (log_probs, variance))| {
        workers.with_one(|worker| predict_example(call, worker, row, log_probs, Some(variance)));
    });
    prediction
}

/// log p of one example and, where it is asked for, the variance of its probabilities.
pub(super) fn predict_example<T: Tile>(
    call: &Call,
    worker: &mut Worker<T>,
    row: usize,
    log_probs: &mut [f32],
    variance: Option<&mut [f32]>,
) {
    let example = call.latent.example(row);
    worker.load(&example, call.temperature, example.largest_mean(), 0);
    let Worker { tile, rows, .. } = worker;
    let padded = tile.padded_classes();
    let mut mean = LogMean::new(padded);
    let mut deviations = variance.is_some().then(|| Deviations {
        origin: noiseless_probs(&example, call.temperature, padded),
        first: vec![0.0; padded],
        second: vec![0.0; padded],
    });
    for at in call.tiles::<T>(row) {
        tile.draw(call.level, &call.plan, at);
        call.level.run(LogSumExp { tile: &*tile, rows: &mut rows.lse });
        let lse = &rows.lse;
        call.level.run(AddLogMean { tile: &*tile, lse, mean: &mut mean });
        if let Some(out) = &mut deviations {
            call.level.run(AddDeviations { tile: &*tile, lse, out });
        }
    }
    let parts = mean.maximum.iter().zip(&mean.sum);
    for (log_prob, (maximum, sum)) in log_probs.iter_mut().zip(parts) {
        let log2 = *maximum as f64 + (*sum as f64 / call.samples() as f64).log2();
        *log_prob = (log2 * core::f64::consts::LN_2) as f32;
    }
    if let (Some(variance), Some(Deviations { first, second, .. })) = (variance, deviations) {
        let samples = call.samples() as f32;
        for (variance, (first, second)) in variance.iter_mut().zip(first.iter().zip(&second)) {
            let mean = first / samples;
            *variance = (second / samples - mean * mean).max(0.0);
        }
    }
}

/// softmax(μ/τ). With little noise the deviations from it are small, so that their sums of squares
/// do not cancel.
fn noiseless_probs(example: &Example, temperature: f32, padded: usize) -> Vec<f32> {
    let largest = example.largest_mean();
    let mut probs: Vec<f32> =
        example.mean.iter().map(|mean| ((mean - largest) / temperature).exp()).collect();
    let sum: f32 = probs.iter().sum();
    probs.iter_mut().for_each(|prob| *prob /= sum);
    probs.resize(padded, 0.0);
    probs
}
