//! The joint likelihood of several labels: loss and gradients in one pass over the samples.

use pulp::Simd;
use rayon::prelude::*;

use crate::draws::Sampling;
use crate::fused::Targets;
use crate::fused::loss::{LossGrad, reduce_batch, weigh};
use crate::fused::rows::{RowGrad, write_grad};
use crate::fused::worker::{Call, Rows, Target, Worker, Workers};
use crate::latent::{Latent, LatentGrad, NotFinite, Temperature};
use crate::simd::{Vectorised, Vectors};
use crate::tile::operations::{Accumulate, LabelSlopes};
use crate::tile::{ClassLanes, SampleLanes, Tile, has_few_classes};

/// −log P(all labels) = −log (1/S) Σ_s Π_c P(y_c ∣ u_sc) of each example, and the gradient of their
/// weighted sum, in one pass.
///
/// The labels of an example are independent given its utilities, but not otherwise: unlike the sum
/// of the marginals ([`loss_and_grad`](super::loss_and_grad)), which depends on the variances
/// alone, this loss depends on the covariances, and learns them. With a label between 0 and 1 the
/// factor is σ(x)^y (1 − σ(x))^(1 − y).
///
/// # Shapes
/// - targets: `[B]`, each class between 0 (off) and 1 (on); weights: `[B]`
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// # Panics
/// When shapes do not fit or a target is not in [0, 1].
///
/// ```
/// use aleator_kernels::{
///     multilabel, Covariance, Draws, Latent, LatentGrad, NoiseKey, NoiseLaw, Sampling, Targets,
///     Temperature, Vectors,
/// };
///
/// // Both labels are on. The classes are taken for opposites, so this is improbable, and the
/// // gradient turns the loadings toward each other.
/// let loadings = [2.0, -2.0];
/// let covariance =
///     Covariance::LowRank { diag_scale: &[0.1, 0.1], loadings: &loadings, rank: 1 };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1000, draws, law };
/// let out = multilabel::joint_loss_and_grad(
///     &latent,
///     Temperature::try_from(1.0).unwrap(),
///     &sampling,
///     Targets::Dense(&[1.0, 1.0]),
///     &[1.0],
///     Vectors::Detected,
///     LatentGrad::zeros(&latent),
/// )?;
/// assert!(out.losses[0] > 4.0f32.ln());
/// assert!(out.grad.loadings[0] > 0.0 && out.grad.loadings[1] < 0.0);
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn joint_loss_and_grad(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    targets: Targets,
    weights: &[f32],
    vectors: Vectors,
    grad: LatentGrad,
) -> Result<LossGrad, NotFinite> {
    let (batch, found) = (latent.batch, weights.len());
    assert!(found == batch, "weights must be [B] = {batch} long, found {found}");
    let call = checked(latent, temperature, sampling, targets, vectors)?;
    Ok(if has_few_classes(latent.classes) {
        gradients::<SampleLanes>(&call, targets, weights, grad)
    } else {
        gradients::<ClassLanes>(&call, targets, weights, grad)
    })
}

/// log P(all labels) of each example, `[B]`: the negative loss of [`joint_loss_and_grad`].
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// # Panics
/// When shapes do not fit or a target is not in [0, 1].
///
/// ```
/// use aleator_kernels::{
///     multilabel, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Targets, Temperature, Vectors,
/// };
///
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0; 2], covariance: Covariance::None };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1, draws, law };
/// let (tau, on) = (Temperature::try_from(1.0).unwrap(), Targets::Dense(&[1.0, 0.0]));
/// let log_probs = multilabel::joint_log_probs(&latent, tau, &sampling, on, Vectors::Detected)?;
/// assert!((log_probs[0] - 0.25f32.ln()).abs() < 1e-6); // without noise labels are independent
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn joint_log_probs(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    targets: Targets,
    vectors: Vectors,
) -> Result<Vec<f32>, NotFinite> {
    let call = checked(latent, temperature, sampling, targets, vectors)?;
    Ok(if has_few_classes(latent.classes) {
        log_probs::<SampleLanes>(&call, targets)
    } else {
        log_probs::<ClassLanes>(&call, targets)
    })
}

fn checked<'a>(
    latent: &Latent<'a>,
    temperature: Temperature,
    sampling: &Sampling<'a>,
    targets: Targets,
    vectors: Vectors,
) -> Result<Call<'a>, NotFinite> {
    targets.check(latent.batch, latent.classes);
    for row in 0..latent.batch {
        for (class, label) in targets.of(row, latent.classes) {
            let valid = (0.0..=1.0).contains(&label);
            assert!(valid, "label of example {row}, class {class} must be in [0, 1]: {label}");
        }
    }
    Call::new(latent, temperature, sampling, vectors)
}

fn gradients<T: Tile + Send>(
    call: &Call,
    targets: Targets,
    weights: &[f32],
    grad: LatentGrad,
) -> LossGrad {
    reduce_batch(call, grad, |worker: &mut Worker<T>, row, out: &mut RowGrad| {
        let log_prob = over_samples(call, worker, row, targets, Want::Gradient);
        let example = call.latent.example(row);
        let target = &worker.targets[0];
        let parts = [(&target.moments, (-weights[row] as f64 / target.total) as f32)];
        let slope = write_grad(&worker.tile, &parts, &example, call.temperature, ORIGIN, out);
        (-log_prob, slope)
    })
}

fn log_probs<T: Tile + Send>(call: &Call, targets: Targets) -> Vec<f32> {
    let workers = Workers::<T>::new(&call.latent);
    let rows = (0..call.latent.batch).into_par_iter();
    let of_row = |row| {
        workers.with_one(|worker| over_samples(call, worker, row, targets, Want::Probability))
    };
    rows.map(of_row).collect()
}

/// Each utility is compared with zero.
const ORIGIN: f32 = 0.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    Probability,
    Gradient,
}

/// log P(all labels) of one example; its moments are in the worker's target where they are wanted.
fn over_samples<T: Tile>(
    call: &Call,
    worker: &mut Worker<T>,
    row: usize,
    targets: Targets,
    want: Want,
) -> f32 {
    let example = call.latent.example(row);
    worker.load(&example, call.temperature, ORIGIN, 1);
    let Worker { tile, rows, targets: running } = worker;
    let target = &mut running[0];
    let mut labels = vec![0.0; tile.padded_classes()];
    for (class, label) in targets.of(row, call.latent.classes) {
        labels[class] = label;
    }
    for at in call.tiles::<T>(row) {
        tile.draw(call.level, &call.plan, at);
        let (labels, lse) = (&labels, &mut rows.lse);
        call.level.run(LabelSlopes { tile: &mut *tile, labels, rows: lse });
        call.level.run(Weigh { rows: &mut *rows, target: &mut *target, samples: at.samples });
        if want == Want::Gradient {
            let (weights, moments) = (&rows.weights, &mut target.moments);
            call.level.run(Accumulate { tile: &mut *tile, weights, moments });
        }
    }
    let log2 = target.maximum as f64 + (target.total / call.samples() as f64).log2();
    (log2 * core::f64::consts::LN_2) as f32
}

/// [`weigh`] as an operation.
struct Weigh<'a> {
    rows: &'a mut Rows,
    target: &'a mut Target,
    samples: usize,
}

impl Vectorised for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        weigh::<S, N>(simd, self.rows, self.target, self.samples);
        self.rows.weights[self.samples..].fill(0.0);
    }
}
