//! Marginals, loss and gradients in closed form.

use pulp::Simd;
use rayon::prelude::*;

use super::LogProbs;
use crate::fused::rows::{RowGrad, pieces, split_rows};
use crate::fused::{LossGrad, Targets};
use crate::latent::{Covariance, Example, Latent, LatentGrad, Loadings, NotFinite, Temperature};
use crate::probit::{Marginal, marginal};
use crate::simd::{LANES, Level, Vectorised, Vectors};

/// log p_c and log(1 − p_c) of every class, exact.
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// ```
/// use aleator_kernels::{multilabel, Covariance, Latent, Temperature, Vectors};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[3.0, 0.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, -50.0], covariance };
/// let tau = Temperature::try_from(1.0).unwrap();
/// let log_probs = multilabel::log_probs(&latent, tau, Vectors::Detected)?;
/// assert!((log_probs.on[0] - 0.5f32.ln()).abs() < 1e-6); // symmetric noise around 0
/// assert!((log_probs.on[1] + 50.0).abs() < 1e-4); // no underflow in the tail
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn log_probs(
    latent: &Latent,
    temperature: Temperature,
    vectors: Vectors,
) -> Result<LogProbs, NotFinite> {
    latent.check()?;
    let size = latent.batch * latent.classes;
    let mut out = LogProbs { on: vec![0.0; size], off: vec![0.0; size] };
    let call = Call::new(latent, temperature, vectors);
    let rows = out.on.par_chunks_mut(latent.classes).zip(out.off.par_chunks_mut(latent.classes));
    rows.enumerate().for_each_init(Scratch::default, |scratch, (row, (on, off))| {
        call.evaluate(row, Task::Forward, scratch);
        on.copy_from_slice(&scratch.first[..call.latent.classes]);
        off.copy_from_slice(&scratch.second[..call.latent.classes]);
    });
    Ok(out)
}

/// The gradient of Σ (on · log p + off · log(1 − p)), of what [`log_probs`] has checked.
///
/// # Shapes
/// - on, off: [B, K]
pub fn backward(
    latent: &Latent,
    temperature: Temperature,
    vectors: Vectors,
    on: &[f32],
    off: &[f32],
) -> LatentGrad {
    latent.expect_finite();
    let entries = latent.batch * latent.classes;
    assert_eq!(on.len(), entries, "upstream of log p must be [B, K]");
    assert_eq!(off.len(), entries, "upstream of log(1 − p) must be [B, K]");
    let classes = latent.classes;
    let call = Call::new(latent, temperature, vectors);
    call.gradients(|row, scratch| {
        let at = row * classes..(row + 1) * classes;
        scratch.set_upstream(&on[at.clone()], &off[at]);
        call.evaluate(row, Task::Backward, scratch);
        0.0
    })
    .grad
}

/// Binary cross-entropy −Σ_c [y_c log p_c + (1 − y_c) log(1 − p_c)] of each example and the
/// gradient of their weighted sum, in one pass.
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
/// use aleator_kernels::{multilabel, Covariance, Latent, Targets, Temperature, Vectors};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 1.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[2.0, -2.0], covariance };
/// let tau = Temperature::try_from(1.0).unwrap();
/// let on = Targets::Sparse { offsets: &[0, 1], classes: &[0], probs: &[1.0] };
/// let out = multilabel::loss_and_grad(&latent, tau, on, &[1.0], Vectors::Detected)?;
/// assert!(out.losses[0] < 0.6);
/// assert!(out.grad.mean[0] < 0.0 && out.grad.mean[1] > 0.0);
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn loss_and_grad(
    latent: &Latent,
    temperature: Temperature,
    targets: Targets,
    weights: &[f32],
    vectors: Vectors,
) -> Result<LossGrad, NotFinite> {
    latent.check()?;
    let Latent { batch, classes, .. } = *latent;
    targets.check(batch, classes);
    assert!(weights.len() == batch, "weights must be [B] = {batch} long, found {}", weights.len());
    let call = Call::new(latent, temperature, vectors);
    Ok(call.gradients(|row, scratch| {
        scratch.resize(classes);
        // The upstream gradients of an off class: −0 of log p, −1 of log(1 − p).
        scratch.on[..classes].fill(-0.0);
        scratch.off[..classes].fill(-1.0);
        for (class, label) in targets.of(row, classes) {
            let valid = (0.0..=1.0).contains(&label);
            assert!(valid, "label of example {row}, class {class} must be in [0, 1]: {label}");
            scratch.on[class] = -label;
            scratch.off[class] = label - 1.0;
        }
        call.evaluate(row, Task::Loss, scratch);
        for grad in scratch.first.iter_mut().chain(&mut scratch.second) {
            *grad *= weights[row];
        }
        scratch.total
    }))
}

struct Call<'a> {
    latent: Latent<'a>,
    temperature: f32,
    level: Level,
    /// ‖V_c‖² of shared loadings, `[K]`.
    shared_norms: Vec<f32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Forward,
    Backward,
    /// [`Task::Backward`] that also sums the upstream-weighted log-probabilities.
    Loss,
}

/// The row of one example, padded to whole vectors.
#[derive(Default)]
struct Scratch {
    mean: Vec<f32>,
    variance: Vec<f32>,
    on: Vec<f32>,
    off: Vec<f32>,
    /// log p and log(1 − p), or the gradients by m and v.
    first: Vec<f32>,
    second: Vec<f32>,
    total: f64,
}

impl Scratch {
    fn resize(&mut self, classes: usize) {
        let padded = classes.next_multiple_of(LANES);
        let Self { mean, variance, on, off, first, second, .. } = self;
        for buffer in [mean, variance, on, off, first, second] {
            buffer.resize(padded, 0.0);
        }
    }

    fn set_upstream(&mut self, on: &[f32], off: &[f32]) {
        self.resize(on.len());
        self.on[..on.len()].copy_from_slice(on);
        self.off[..off.len()].copy_from_slice(off);
    }
}

impl<'a> Call<'a> {
    fn new(latent: &Latent<'a>, temperature: Temperature, vectors: Vectors) -> Self {
        let shared_norms = match latent.covariance {
            Covariance::SharedLowRank { shared_loadings, rank, .. } => shared_loadings
                .par_chunks(rank)
                .map(|row| row.iter().map(|loading| loading * loading).sum())
                .collect(),
            _ => Vec::new(),
        };
        Self {
            latent: *latent,
            temperature: temperature.get(),
            level: vectors.level(),
            shared_norms,
        }
    }

    fn evaluate(&self, row: usize, task: Task, scratch: &mut Scratch) {
        scratch.resize(self.latent.classes);
        self.level.run(EvaluateRow { call: self, row, task, scratch });
    }

    /// Runs `upstream_and_evaluate(row, scratch) -> loss` over the batch and turns the gradients
    /// by m and v into those of the parameters.
    fn gradients(&self, evaluate: impl Fn(usize, &mut Scratch) -> f64 + Sync) -> LossGrad {
        let batch = self.latent.batch;
        let mut grad = LatentGrad::zeros(&self.latent);
        // v² ∂/∂σ² of each example, for the shared loadings.
        let shared_size = self.shared_norms.len();
        let mut pulls = vec![0.0f32; batch * shared_size];
        let (rows, shared) = split_rows(&mut grad, batch);
        let pull_rows: Vec<&mut [f32]> = pieces(&mut pulls, batch).collect();
        let rows = rows.into_par_iter().zip(pull_rows).enumerate();
        let examples = rows.map_init(Scratch::default, |scratch, (row, (mut out, pull))| {
            let loss = evaluate(row, scratch) as f32;
            (loss, self.chain(row, scratch, &mut out, pull))
        });
        let examples: Vec<(f32, f64)> = examples.collect();
        if let Covariance::SharedLowRank { shared_loadings, rank, .. } = self.latent.covariance {
            let rows = shared.par_chunks_mut(rank).zip(shared_loadings.par_chunks(rank));
            rows.enumerate().for_each(|(class, (out, loadings))| {
                let total: f32 = (0..batch).map(|row| pulls[row * shared_size + class]).sum();
                out.iter_mut().zip(loadings).for_each(|(out, v)| *out = 2.0 * v * total);
            });
        }
        LossGrad::new(examples, grad)
    }

    /// From ∂/∂m and ∂/∂v of one example to its parameters; returns ∂/∂τ by Euler's theorem.
    fn chain(&self, row: usize, scratch: &Scratch, out: &mut RowGrad, pull: &mut [f32]) -> f64 {
        let example = self.latent.example(row);
        let inverse = 1.0 / self.temperature;
        let mut euler = 0.0f64;
        for class in 0..self.latent.classes {
            let mean = scratch.first[class] * inverse;
            let variance = scratch.second[class] * inverse * inverse;
            out.mean[class] = mean;
            euler += example.mean[class] as f64 * mean as f64;
            // Each scale enters Σ_cc squared, so the sum of parameter · gradient is 2 Σ_cc ∂Σ_cc.
            euler += 2.0 * self.variance(&example, class) as f64 * variance as f64;
            if let Some(diag_scale) = example.diag_scale {
                out.diag_scale[class] = 2.0 * diag_scale[class] * variance;
            }
            match example.loadings {
                Loadings::None => {}
                Loadings::Own { loadings, rank } => {
                    let to = &mut out.loadings[class * rank..][..rank];
                    for (to, loading) in to.iter_mut().zip(&loadings[class * rank..]) {
                        *to = 2.0 * loading * variance;
                    }
                }
                Loadings::Shared { scale, .. } => {
                    let scale = scale[class];
                    out.loading_scale[class] = 2.0 * scale * self.shared_norms[class] * variance;
                    pull[class] = scale * scale * variance;
                }
            }
        }
        -euler * inverse as f64
    }

    /// Σ_cc.
    fn variance(&self, example: &Example, class: usize) -> f32 {
        match (example.diag_scale, example.loadings) {
            (Some(diag_scale), Loadings::Shared { scale, .. }) => {
                let (diag_scale, scale) = (diag_scale[class], scale[class]);
                diag_scale * diag_scale + scale * scale * self.shared_norms[class]
            }
            _ => example.variance(class),
        }
    }
}

struct EvaluateRow<'a> {
    call: &'a Call<'a>,
    row: usize,
    task: Task,
    scratch: &'a mut Scratch,
}

impl Vectorised for EvaluateRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let Self { call, row, task, scratch } = self;
        let example = call.latent.example(row);
        let inverse = 1.0 / call.temperature;
        for class in 0..call.latent.classes {
            scratch.mean[class] = example.mean[class] * inverse;
            scratch.variance[class] = call.variance(&example, class) * inverse * inverse;
        }
        let (means, _) = S::as_simd_f32s(&scratch.mean);
        let (variances, _) = S::as_simd_f32s(&scratch.variance);
        let (on, _) = S::as_simd_f32s(&scratch.on);
        let (off, _) = S::as_simd_f32s(&scratch.off);
        let (first, _) = S::as_mut_simd_f32s(&mut scratch.first);
        let (second, _) = S::as_mut_simd_f32s(&mut scratch.second);
        let mut total = 0.0f64;
        for at in 0..means.len() {
            let Marginal { log_on, log_off, mean_on, mean_off, variance_on, variance_off } =
                marginal(simd, means[at], variances[at]);
            if task == Task::Forward {
                (first[at], second[at]) = (log_on, log_off);
                continue;
            }
            let upstream = (on[at], off[at]);
            first[at] = weigh(simd, upstream, mean_on, mean_off);
            second[at] = weigh(simd, upstream, variance_on, variance_off);
            if task == Task::Loss {
                let log_probs = weigh(simd, upstream, log_on, log_off);
                total += simd.reduce_sum_f32s(log_probs) as f64;
            }
        }
        scratch.total = total;
    }
}

#[inline(always)]
fn weigh<S: Simd>(simd: S, upstream: (S::f32s, S::f32s), on: S::f32s, off: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(upstream.0, on, simd.mul_f32s(upstream.1, off))
}
