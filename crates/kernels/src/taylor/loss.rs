//! Training by the expansion: loss and all gradients in one pass, without samples.

use super::{Expansion, dot, normalised, times_covariance};
use crate::fused::Targets;
use crate::fused::loss::{LossGrad, reduce_rows};
use crate::fused::rows::RowGrad;
use crate::latent::{Example, Latent, LatentGrad, Loadings, NotFinite, Temperature};

/// What the expansion approximates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The probability: log p = log s + log(1 + ½c), as the paper trains. Where the noise is so
    /// large that 1 + ½c is below [`SMALLEST_FACTOR`], its logarithm goes on as a straight line:
    /// the loss stays finite, and its gradient leads back.
    Probability,
    /// Its logarithm, normalised: log p = log s + ½c − log Σ s exp(½c), which is a distribution for
    /// noise of any size.
    LogProbability,
}

/// See [`Form::Probability`].
pub const SMALLEST_FACTOR: f64 = 0.1;

/// −Σ_c target_c log p_c of each example by the expansion, and the gradient of their weighted sum,
/// written to the buffers of `grad`.
///
/// # Shapes
/// - targets: `[B]`; weights: `[B]`
///
/// # Errors
/// The examples whose utilities are not finite.
///
/// # Panics
/// If shapes do not match or a label is out of range.
///
/// ```
/// use aleator_kernels::taylor::{self, Form};
/// use aleator_kernels::{Covariance, Latent, LatentGrad, Targets, Temperature};
///
/// // The label is the less probable class: more noise makes it more probable.
/// let covariance = Covariance::Diagonal { diag_scale: &[0.3, 0.3] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[-1.0, 1.0], covariance };
/// let (tau, label) = (Temperature::try_from(1.0).unwrap(), Targets::Classes(&[0]));
/// let (form, grad) = (Form::LogProbability, LatentGrad::zeros(&latent));
/// let out = taylor::loss_and_grad(&latent, tau, label, &[1.0], form, grad)?;
/// assert!(out.grad.diag_scale.iter().all(|grad| *grad < 0.0));
/// # Ok::<(), aleator_kernels::NotFinite>(())
/// ```
pub fn loss_and_grad(
    latent: &Latent,
    temperature: Temperature,
    targets: Targets,
    weights: &[f32],
    form: Form,
    grad: LatentGrad,
) -> Result<LossGrad, NotFinite> {
    latent.check()?;
    let Latent { batch, classes, .. } = *latent;
    targets.check(batch, classes);
    assert!(weights.len() == batch, "weights must be [B] = {batch} long, found {}", weights.len());
    let tau = temperature.get() as f64;
    Ok(reduce_rows(latent, grad, |row, out| {
        let example = latent.example(row);
        let expansion = Expansion::new(&example, tau);
        let (loss, pull) = pull(&expansion, &targets.of(row, classes), form);
        let pull = pull.times(weights[row] as f64);
        (loss as f32, expansion.backward(&example, &pull, tau, out))
    }))
}

/// The derivatives of a loss by log s and by c, `[K]` each.
struct Pull {
    log_softmax: Vec<f64>,
    correction: Vec<f64>,
}

impl Pull {
    fn times(mut self, weight: f64) -> Self {
        let all = self.log_softmax.iter_mut().chain(&mut self.correction);
        all.for_each(|value| *value *= weight);
        self
    }
}

/// The loss of one example and its derivatives.
fn pull(expansion: &Expansion, targets: &[(usize, f32)], form: Form) -> (f64, Pull) {
    let classes = expansion.softmax.len();
    let Expansion { log_softmax, correction, .. } = expansion;
    match form {
        Form::Probability => {
            let mut pull = Pull { log_softmax: vec![0.0; classes], correction: vec![0.0; classes] };
            let mut loss = 0.0;
            for (class, target) in targets {
                let target = *target as f64;
                let (log, slope) = guarded_log(1.0 + 0.5 * correction[*class]);
                loss -= target * (log_softmax[*class] + log);
                pull.log_softmax[*class] -= target;
                pull.correction[*class] -= 0.5 * target * slope;
            }
            (loss, pull)
        }
        Form::LogProbability => {
            let scores = log_softmax.iter().zip(correction).map(|(l, c)| l + 0.5 * c).collect();
            let log_probs = normalised(scores);
            let total: f64 = targets.iter().map(|(_, target)| *target as f64).sum();
            let mut by_score: Vec<f64> = log_probs.iter().map(|l| total * l.exp()).collect();
            let mut loss = 0.0;
            for (class, target) in targets {
                loss -= *target as f64 * log_probs[*class];
                by_score[*class] -= *target as f64;
            }
            let correction = by_score.iter().map(|pull| 0.5 * pull).collect();
            (loss, Pull { log_softmax: by_score, correction })
        }
    }
}

/// The logarithm and its slope; below [`SMALLEST_FACTOR`] those of the tangent there.
fn guarded_log(x: f64) -> (f64, f64) {
    let tangent_at = x.max(SMALLEST_FACTOR);
    (tangent_at.ln() + (x - tangent_at) / tangent_at, 1.0 / tangent_at)
}

impl Expansion {
    /// Writes the gradients of one example and returns its ∂/∂τ.
    ///
    /// With α the derivatives by c and A their sum,
    /// Σ α_k c_k = αᵀ diag Σ − 2 αᵀΣs + 2A sᵀΣs − A sᵀ diag Σ.
    fn backward(&self, example: &Example, pull: &Pull, tau: f64, out: &mut RowGrad) -> f64 {
        let (s, alpha) = (&self.softmax, &pull.correction);
        let (classes, rank) = (s.len(), self.projected.len());
        let total: f64 = alpha.iter().sum();
        let (projected_alpha, covariance_alpha) = times_covariance(example, alpha, tau);
        let by_softmax: Vec<f64> = (0..classes)
            .map(|k| {
                4.0 * total * self.covariance_s[k]
                    - 2.0 * covariance_alpha[k]
                    - total * self.variance[k]
            })
            .collect();
        let pulled: f64 = pull.log_softmax.iter().sum();
        let centre = dot(s, &by_softmax);
        // As in sampling: softmax is invariant to an origin, and the sum for ∂/∂τ cancels less.
        let origin = example.largest_mean();
        let mut loadings = vec![0.0; rank];
        let mut euler = 0.0;
        for k in 0..classes {
            let mean =
                (pull.log_softmax[k] - s[k] * pulled + s[k] * (by_softmax[k] - centre)) / tau;
            out.mean[k] = mean as f32;
            euler += (example.mean[k] as f64 - origin as f64) * mean;
            let own = 2.0 * (alpha[k] - total * s[k]);
            if let Some(scale) = example.diag_scale {
                let by_variance = own - 4.0 * alpha[k] * s[k] + 4.0 * total * s[k] * s[k];
                let diag = scale[k] as f64 * by_variance / (tau * tau);
                out.diag_scale[k] = diag as f32;
                euler += scale[k] as f64 * diag;
            }
            let across = 4.0 * total * s[k] - 2.0 * alpha[k];
            let row = example.loadings.row(k, 1.0);
            for (at, loading) in row.enumerate() {
                let scaled = loading as f64 / tau;
                let factor = across * self.projected[at] - 2.0 * s[k] * projected_alpha[at];
                loadings[at] = (own * scaled + factor) / tau;
                euler += loading as f64 * loadings[at];
            }
            write_loadings(example, k, &loadings, out);
        }
        -euler / tau
    }
}

/// The gradients of the loadings of one class, in the form that the latent has.
fn write_loadings(example: &Example, class: usize, grad: &[f64], out: &mut RowGrad) {
    let entries = class * grad.len()..(class + 1) * grad.len();
    match example.loadings {
        Loadings::None => {}
        Loadings::Own { .. } => {
            out.loadings[entries].iter_mut().zip(grad).for_each(|(to, grad)| *to = *grad as f32);
        }
        Loadings::Shared { scale, loadings, .. } => {
            let own = loadings[entries.clone()].iter().zip(grad);
            out.loading_scale[class] = own.map(|(v, grad)| *v as f64 * grad).sum::<f64>() as f32;
            let to = out.shared_loadings[entries].iter_mut();
            to.zip(grad).for_each(|(to, grad)| *to = (scale[class] as f64 * grad) as f32);
        }
    }
}
