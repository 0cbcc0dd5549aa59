//! The generative process itself: the label is the class of the largest utility.

use rayon::prelude::*;

use super::worker::{Call, Worker, Workers};
use crate::draws::Sampling;
use crate::latent::{Latent, NotFinite, Temperature};
use crate::simd::Vectors;
use crate::tile::operations::AddWins;
use crate::tile::{ClassLanes, SampleLanes, Tile, has_few_classes};

/// P(argmax u = c), the limit τ → 0 of the likelihood, as the share of samples (paper, Eq. 1).
///
/// Classes that tie share a sample equally, as they do in the limit. A share has the standard error
/// √(p(1 − p)/S) with independent draws.
///
/// # Shapes
/// - out: [B, K]
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// ```
/// use aleator_kernels::{
///     fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Vectors,
/// };
///
/// // With Gumbel noise of scale 1 the shares are softmax(μ) = 1/4, 3/4.
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 1.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 3f32.ln()], covariance };
/// let (draws, law) = (Draws::Sobol, NoiseLaw::Gumbel);
/// let key = NoiseKey { seed: 0, step: 0 };
/// let sampling = Sampling { key, ids: &[0], samples: 4096, draws, law };
/// let mut probs = [0.0; 2];
/// fused::choice_probs(&latent, &sampling, Vectors::Detected, &mut probs)?;
/// assert!((probs[0] - 0.25).abs() < 0.01);
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn choice_probs(
    latent: &Latent,
    sampling: &Sampling,
    vectors: Vectors,
    out: &mut [f32],
) -> Result<(), NotFinite> {
    let one = Temperature::try_from(1.0).expect("1 is a temperature");
    let call = Call::new(latent, one, sampling, vectors)?;
    assert_eq!(out.len(), latent.batch * latent.classes, "probs must be [B, K]");
    if has_few_classes(latent.classes) {
        over_batch::<SampleLanes>(&call, out);
    } else {
        over_batch::<ClassLanes>(&call, out);
    }
    Ok(())
}

fn over_batch<T: Tile + Send>(call: &Call, out: &mut [f32]) {
    let workers = Workers::<T>::new(&call.latent);
    out.par_chunks_mut(call.latent.classes).enumerate().for_each(|(row, out)| {
        workers.with_one(|worker| choices_of_example(call, worker, row, out));
    });
}

fn choices_of_example<T: Tile>(call: &Call, worker: &mut Worker<T>, row: usize, out: &mut [f32]) {
    let example = call.latent.example(row);
    worker.load(&example, call.temperature, example.largest_mean(), 0);
    let Worker { tile, rows, .. } = worker;
    let mut wins = vec![0.0f32; tile.padded_classes()];
    // f32 would stop counting at 2²⁴ samples.
    let mut totals = vec![0.0f64; out.len()];
    for at in call.tiles::<T>(row) {
        tile.draw(call.level, &call.plan, at);
        wins.fill(0.0);
        let rows = (&mut rows.maximum[..], &mut rows.weights[..]);
        call.level.run(AddWins { tile: &*tile, rows, wins: &mut wins });
        totals.iter_mut().zip(&wins).for_each(|(total, wins)| *total += f64::from(*wins));
    }
    for (prob, total) in out.iter_mut().zip(&totals) {
        *prob = (total / call.samples() as f64) as f32;
    }
}
