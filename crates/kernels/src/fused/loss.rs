//! −log p of the labels and all gradients in one pass over the samples.

use pulp::Simd;
use rayon::prelude::*;

use super::Targets;
use super::log_probs::backward_example;
use super::predict::predict_example;
use super::rows::{RowGrad, pieces, split_rows, write_grad};
use super::worker::{Call, Rows, Target, Worker, Workers};
use crate::draws::Sampling;
use crate::latent::{Latent, LatentGrad, NotFinite, Temperature};
use crate::simd::{LANES, Level, Vectorised, Vectors, Wide};
use crate::tile::operations::{Accumulate, Exponentiate};
use crate::tile::{ClassLanes, SampleLanes, Tile, has_few_classes};

/// Up to this many target classes are computed in one pass. More need a second pass over the same
/// noise, whose cost does not depend on their number.
const ONE_PASS_TARGETS: usize = 4;

/// The number of examples whose gradients of shared loadings are in memory at once. They are summed
/// in the order of the batch, so this number does not affect the result.
pub(super) const SHARED_WAVE: usize = 8;

/// The result of [`loss_and_grad`].
#[derive(Clone, Debug, PartialEq)]
pub struct LossGrad {
    /// −Σ_c target_c log p_c of each example, not weighted, `[B]`.
    pub losses: Vec<f32>,
    /// The gradient of Σ_i weight_i loss_i.
    pub grad: LatentGrad,
}

impl LossGrad {
    /// From the loss and ∂/∂τ of each example, and the gradients of all other parameters.
    pub(crate) fn new(examples: Vec<(f32, f64)>, mut grad: LatentGrad) -> Self {
        grad.temperature = examples.iter().map(|(_, tau)| tau).sum::<f64>() as f32;
        Self { losses: examples.into_iter().map(|(loss, _)| loss).collect(), grad }
    }
}

/// The loss of each example and the gradient of their weighted sum, in one pass.
///
/// # Shapes
/// - targets: `[B]`; weights: `[B]`
///
/// # Panics
/// If shapes do not match, a label is out of range, or utilities are not finite.
///
/// ```
/// use aleator_kernels::{
///     fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Targets, Temperature, Vectors,
/// };
///
/// let covariance = Covariance::LowRank {
///     diag_scale: &[0.5, 0.5, 0.5],
///     loadings: &[1.0, -1.0, 0.0], // classes 0 and 1 are substitutes
///     rank: 1,
/// };
/// let latent = Latent { batch: 1, classes: 3, mean: &[1.0, 1.0, -2.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1000, draws, law };
/// let out = fused::loss_and_grad(
///     &latent,
///     Temperature::try_from(0.9).unwrap(),
///     &sampling,
///     Targets::Classes(&[0]),
///     &[1.0],
///     Vectors::Detected,
/// );
/// assert!((out.losses[0] - 0.7).abs() < 0.1);
/// assert!(out.grad.mean[0] < 0.0); // a larger mean makes the label more probable
/// ```
pub fn loss_and_grad(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    targets: Targets,
    weights: &[f32],
    vectors: Vectors,
) -> LossGrad {
    let buffers = Buffers { grad: LatentGrad::zeros(latent), log_probs: None };
    loss_and_grad_into(latent, temperature, sampling, targets, weights, vectors, buffers)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Buffers that a caller of [`loss_and_grad_into`] already has.
#[derive(Clone, Debug)]
pub struct Buffers<'a> {
    /// Memory for the gradients, such as that of the previous step: page faults of large new
    /// allocations cost more than the writes.
    pub grad: LatentGrad,
    /// The output of [`log_probs`](crate::fused::log_probs) for the same noise, [B, K]: examples
    /// with many target classes then take one pass instead of two, to the same bits.
    pub log_probs: Option<&'a [f32]>,
}

/// [`loss_and_grad`] with buffers of the caller.
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// # Panics
/// If shapes do not match or a label is out of range.
pub fn loss_and_grad_into(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    targets: Targets,
    weights: &[f32],
    vectors: Vectors,
    buffers: Buffers,
) -> Result<LossGrad, NotFinite> {
    let Latent { batch, classes, .. } = *latent;
    targets.check(batch, classes);
    let found = weights.len();
    assert!(found == batch, "weights must be [B] = {batch} long, found {found}");
    let known = buffers.log_probs.is_none_or(|known| known.len() == batch * classes);
    assert!(known, "log_probs must be [B, K]");
    let call = Call::new(latent, temperature, sampling, vectors)?;
    Ok(if has_few_classes(classes) {
        over_batch::<SampleLanes>(&call, targets, weights, buffers)
    } else {
        over_batch::<ClassLanes>(&call, targets, weights, buffers)
    })
}

fn over_batch<T: Tile + Send>(
    call: &Call,
    targets: Targets,
    weights: &[f32],
    buffers: Buffers,
) -> LossGrad {
    let Buffers { grad, log_probs } = buffers;
    let classes = call.latent.classes;
    reduce_batch(call, grad, |worker: &mut Worker<T>, row, out| {
        let targets = targets.of(row, classes);
        if targets.len() <= ONE_PASS_TARGETS {
            return one_pass(call, worker, row, &targets, weights[row], out);
        }
        let known = log_probs.map(|known| &known[row * classes..(row + 1) * classes]);
        two_passes(call, worker, row, &targets, weights[row], known, out)
    })
}

/// [`reduce_rows`] with a worker for each thread.
pub(crate) fn reduce_batch<T: Tile + Send>(
    call: &Call,
    grad: LatentGrad,
    example: impl Fn(&mut Worker<T>, usize, &mut RowGrad) -> (f32, f64) + Sync,
) -> LossGrad {
    let workers = Workers::<T>::new(&call.latent);
    reduce_rows(&call.latent, grad, |row, out| workers.with_one(|worker| example(worker, row, out)))
}

/// Runs `example(row, out) -> (loss, ∂τ)` over the batch and sums the gradients of shared
/// parameters in the order of the batch.
pub(crate) fn reduce_rows(
    latent: &Latent,
    mut grad: LatentGrad,
    example: impl Fn(usize, &mut RowGrad) -> (f32, f64) + Sync,
) -> LossGrad {
    let batch = latent.batch;
    grad.check(latent);
    let (rows, shared) = split_rows(&mut grad, batch);
    shared.fill(0.0);
    let size = shared.len();
    let wave = if size == 0 { batch.max(1) } else { SHARED_WAVE };
    let mut partial = vec![0.0f32; size * wave];
    let mut rows = rows.into_iter();
    let mut results: Vec<(f32, f64)> = Vec::with_capacity(batch);
    for first in (0..batch).step_by(wave) {
        let parts = rows.by_ref().take(wave).zip(pieces(&mut partial, wave));
        let examples: Vec<RowGrad> =
            parts.map(|(row, shared_loadings)| RowGrad { shared_loadings, ..row }).collect();
        let count = examples.len();
        let of_wave = examples.into_par_iter().enumerate();
        results.par_extend(of_wave.map(|(index, mut out)| example(first + index, &mut out)));
        shared.par_iter_mut().enumerate().with_min_len(4096).for_each(|(at, sum)| {
            (0..count).for_each(|index| *sum += partial[index * size + at]);
        });
    }
    LossGrad::new(results, grad)
}

/// The loss of an example with few targets, its gradients, and ∂/∂τ.
fn one_pass<T: Tile>(
    call: &Call,
    worker: &mut Worker<T>,
    row: usize,
    targets: &[(usize, f32)],
    weight: f32,
    out: &mut RowGrad,
) -> (f32, f64) {
    let example = call.latent.example(row);
    let origin = example.largest_mean();
    worker.load(&example, call.temperature, origin, targets.len());
    for at in call.tiles::<T>(row) {
        worker.tile.draw(call.level, &call.plan, at);
        add_tile(call.level, worker, targets, at.samples);
    }
    let samples = call.samples() as f64;
    let used = worker.targets.iter().zip(targets);
    let losses = used.clone().map(|(target, (_, prob))| {
        let log2 = target.maximum as f64 + (target.total / samples).log2();
        -log2 * core::f64::consts::LN_2 * *prob as f64
    });
    let loss = losses.sum::<f64>() as f32;
    let parts = used.map(|(target, (_, prob))| {
        (&target.moments, (*prob as f64 * weight as f64 / target.total) as f32)
    });
    let parts: Vec<_> = parts.collect();
    (loss, write_grad(&worker.tile, &parts, &example, call.temperature, origin, out))
}

/// The same for many targets; `known` are the log-probabilities, if the caller has them.
fn two_passes<T: Tile>(
    call: &Call,
    worker: &mut Worker<T>,
    row: usize,
    targets: &[(usize, f32)],
    weight: f32,
    known: Option<&[f32]>,
    out: &mut RowGrad,
) -> (f32, f64) {
    let classes = call.latent.classes;
    let mut upstream = vec![0.0; classes];
    let mut computed = vec![];
    let log_probs = known.unwrap_or_else(|| {
        computed.resize(classes, 0.0);
        predict_example(call, worker, row, &mut computed, None);
        &computed
    });
    let mut loss = 0.0f64;
    for (class, prob) in targets {
        loss -= *prob as f64 * log_probs[*class] as f64;
        upstream[*class] -= prob * weight;
    }
    (loss as f32, backward_example(call, worker, row, log_probs, &upstream, out))
}

/// Adds one tile's samples to each target's running sums.
fn add_tile<T: Tile>(
    level: Level,
    worker: &mut Worker<T>,
    targets: &[(usize, f32)],
    samples: usize,
) {
    let Worker { tile, rows, targets: running } = worker;
    for (target, (class, _)) in running.iter_mut().zip(targets) {
        for (sample, utility) in target.utility[..samples].iter_mut().enumerate() {
            *utility = tile.utility(*class, sample);
        }
    }
    let (maximum, sum) = (&mut rows.maximum, &mut rows.sum);
    level.run(Exponentiate { tile: &mut *tile, maximum, sum });
    let last = targets.len().saturating_sub(1);
    for (index, (target, (class, _))) in running.iter_mut().zip(targets).enumerate() {
        level.run(Responsibilities { rows: &mut *rows, target: &mut *target, samples });
        // p_sk − 1[k = y], without the factors of the sample's weight and sum.
        tile.shift_class(*class, -1.0, &rows.sum);
        let (weights, moments) = (&rows.weights, &mut target.moments);
        level.run(Accumulate { tile: &mut *tile, weights, moments });
        if index < last {
            tile.shift_class(*class, 1.0, &rows.sum);
        }
    }
}

/// Weighs the samples by p_sy relative to the largest so far, divided by their sums.
struct Responsibilities<'a> {
    rows: &'a mut Rows,
    target: &'a mut Target,
    samples: usize,
}

impl Vectorised for Responsibilities<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let Self { rows, target, samples } = self;
        let vectors = || (0..samples.next_multiple_of(LANES)).step_by(LANES);
        for at in vectors() {
            let lse = Wide::<S, N>::load(simd, &rows.maximum[at..])
                .add(Wide::load(simd, &rows.sum[at..]).log2());
            Wide::load(simd, &target.utility[at..]).sub(lse).store(&mut rows.lse[at..]);
        }
        weigh::<S, N>(simd, rows, target, samples);
        for at in vectors() {
            let weights = &mut rows.weights[at..];
            Wide::<S, N>::load(simd, weights).div(Wide::load(simd, &rows.sum[at..])).store(weights);
        }
        rows.weights[samples..].fill(0.0);
    }
}

/// Turns the log₂-likelihoods of the samples in `rows.lse` into weights relative to the largest so
/// far, and adds them to the target's total.
#[inline(always)]
pub(crate) fn weigh<S: Simd, const N: usize>(
    simd: S,
    rows: &mut Rows,
    target: &mut Target,
    samples: usize,
) {
    let vectors = || (0..samples.next_multiple_of(LANES)).step_by(LANES);
    rows.lse[samples..].fill(f32::NEG_INFINITY);
    let mut largest = Wide::<S, N>::splat(simd, target.maximum);
    for at in vectors() {
        largest = largest.max(Wide::load(simd, &rows.lse[at..]));
    }
    let largest = largest.maximum();
    if largest > target.maximum {
        let factor = (target.maximum - largest).exp2();
        target.moments.iter_mut().for_each(|moment| *moment *= factor);
        target.total *= factor as f64;
        target.maximum = largest;
    }
    let shift = Wide::<S, N>::splat(simd, largest);
    for at in vectors() {
        Wide::load(simd, &rows.lse[at..]).sub(shift).exp2().store(&mut rows.weights[at..]);
    }
    rows.weights[samples..].fill(0.0);
    // A tile has few enough samples for f32; tiles are added in f64.
    let mut total = Wide::<S, N>::splat(simd, 0.0);
    for at in vectors() {
        total = total.add(Wide::load(simd, &rows.weights[at..]));
    }
    target.total += total.sum() as f64;
}
