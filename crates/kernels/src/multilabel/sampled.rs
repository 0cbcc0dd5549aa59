//! Sampled quantities: joint and conditional probabilities of labels, and sampled marginals.

use rayon::prelude::*;

use super::LogProbs;
use crate::draws::Sampling;
use crate::fused::rows::{RowGrad, split_rows};
use crate::fused::{for_each_noise_block, for_each_utility_block};
use crate::latent::{Example, Latent, LatentGrad, Loadings, Temperature};

/// Known labels, as (class, whether it is on).
pub type Joint<'a> = &'a [(usize, bool)];

/// A running log Σ exp with one weight for each sample.
#[derive(Clone)]
pub(super) struct LogSum {
    maximum: f64,
    sum: f64,
}

impl LogSum {
    pub fn new() -> Self {
        Self { maximum: f64::NEG_INFINITY, sum: 0.0 }
    }

    pub fn add(&mut self, value: f64) {
        if value > self.maximum {
            self.sum *= (self.maximum - value).exp();
            self.maximum = value;
        }
        self.sum += (value - self.maximum).exp();
    }

    pub fn log(&self) -> f64 {
        self.maximum + self.sum.ln()
    }
}

pub(super) fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

fn joint_of_sample(utility: &[f32], observed: Joint, temperature: f64) -> f64 {
    let term = |(class, on): &(usize, bool)| {
        let x = utility[*class] as f64 / temperature;
        log_sigmoid(if *on { x } else { -x })
    };
    observed.iter().map(term).sum()
}

/// Calls `visit` with the utilities of each sample of one example, `[K]`, and returns S.
pub(super) fn for_each_sample(
    latent: &Latent,
    sampling: &Sampling,
    row: usize,
    mut visit: impl FnMut(&[f32]),
) -> f64 {
    let mut count = 0;
    for_each_utility_block(latent, sampling, row, |_, block| {
        let samples = block.chunks_exact(latent.classes);
        count += samples.len();
        samples.for_each(&mut visit);
    });
    count as f64
}

pub(super) fn check_observed(observed: Joint, classes: usize) {
    for (class, _) in observed {
        assert!(*class < classes, "observed class must be below {classes}, found {class}");
    }
}

/// log P(all of these labels) of one example.
///
/// ```
/// use aleator_kernels::{
///     multilabel, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature,
/// };
///
/// // Two classes that share all their noise are on together.
/// let covariance =
///     Covariance::LowRank { diag_scale: &[0.0, 0.0], loadings: &[9.0, 9.0], rank: 1 };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 4000, draws, law };
/// let tau = Temperature::try_from(0.1).unwrap();
/// let both = multilabel::joint_log_prob(&latent, tau, &sampling, 0, &[(0, true), (1, true)]);
/// assert!((both.exp() - 0.5).abs() < 0.02); // not 0.25
/// ```
pub fn joint_log_prob(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    row: usize,
    observed: Joint,
) -> f64 {
    check_observed(observed, latent.classes);
    let tau = temperature.get() as f64;
    let mut total = LogSum::new();
    let samples = for_each_sample(latent, sampling, row, |utility| {
        total.add(joint_of_sample(utility, observed, tau));
    });
    total.log() - samples.ln()
}

/// P(u_c > 0), the limit τ → 0 of the marginals, as the share of samples, [B, K].
///
/// With Normal noise it is Φ(μ_c/σ_c). With Logistic noise of scale 1 and no factors it is
/// sigmoid(μ_c): the sigmoid cross-entropy has this generative process.
///
/// ```
/// use aleator_kernels::{multilabel, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0] };
/// let latent = Latent { batch: 1, classes: 1, mean: &[3f32.ln()], covariance };
/// let (draws, law) = (Draws::Sobol, NoiseLaw::Logistic);
/// let key = NoiseKey { seed: 0, step: 0 };
/// let sampling = Sampling { key, ids: &[0], samples: 4096, draws, law };
/// assert!((multilabel::choice_probs(&latent, &sampling)[0] - 0.75).abs() < 0.01);
/// ```
pub fn choice_probs(latent: &Latent, sampling: &Sampling) -> Vec<f32> {
    let example = |row: usize| {
        let mut on = vec![0usize; latent.classes];
        let samples = for_each_sample(latent, sampling, row, |utility| {
            on.iter_mut().zip(utility).for_each(|(on, u)| *on += usize::from(*u > 0.0));
        });
        on.into_iter().map(|on| (on as f64 / samples) as f32).collect::<Vec<_>>()
    };
    (0..latent.batch).into_par_iter().flat_map_iter(example).collect()
}

/// The labels of one example, given some of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditional {
    /// log P(class c is on | these labels), `[K]`. An observed class has its observed value: 0 or
    /// −∞.
    pub log_probs: Vec<f64>,
    /// The variance of sigmoid(u_c/τ) over the noise that these labels leave, `[K]`.
    pub variance: Vec<f64>,
    /// log P(all of these labels).
    pub log_evidence: f64,
}

/// The labels of one example, given some of them.
///
/// ```
/// use aleator_kernels::{
///     multilabel, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature,
/// };
///
/// // Classes 0 and 1 go together, class 2 goes against them.
/// let loadings = [3.0, 3.0, -3.0];
/// let covariance =
///     Covariance::LowRank { diag_scale: &[0.1; 3], loadings: &loadings, rank: 1 };
/// let latent = Latent { batch: 1, classes: 3, mean: &[0.0; 3], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 2000, draws, law };
/// let tau = Temperature::try_from(0.5).unwrap();
/// let given = multilabel::conditional(&latent, tau, &sampling, 0, &[(0, true)]);
/// assert!(given.log_probs[1].exp() > 0.8 && given.log_probs[2].exp() < 0.2);
/// assert!((given.log_evidence.exp() - 0.5).abs() < 0.05);
/// ```
pub fn conditional(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    row: usize,
    observed: Joint,
) -> Conditional {
    check_observed(observed, latent.classes);
    let tau = temperature.get() as f64;
    let mut evidence = LogSum::new();
    // Of the first and the second power of the probability of each class.
    let mut powers = vec![[LogSum::new(), LogSum::new()]; latent.classes];
    let samples = for_each_sample(latent, sampling, row, |utility| {
        let weight = joint_of_sample(utility, observed, tau);
        evidence.add(weight);
        for ([first, second], u) in powers.iter_mut().zip(utility) {
            let log_prob = log_sigmoid(*u as f64 / tau);
            first.add(weight + log_prob);
            second.add(weight + 2.0 * log_prob);
        }
    });
    let total = evidence.log();
    let mut log_probs: Vec<f64> = powers.iter().map(|[first, _]| first.log() - total).collect();
    let spread = |[first, second]: &[LogSum; 2]| {
        (second.log() - total).exp() - (2.0 * (first.log() - total)).exp()
    };
    let mut variance: Vec<f64> = powers.iter().map(|powers| spread(powers).max(0.0)).collect();
    for (class, on) in observed {
        log_probs[*class] = if *on { 0.0 } else { f64::NEG_INFINITY };
        variance[*class] = 0.0;
    }
    Conditional { log_probs, variance, log_evidence: total - samples.ln() }
}

/// log p_c and log(1 − p_c) by sampling, to compare with the closed form.
pub fn sampled_log_probs(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
) -> LogProbs {
    let classes = latent.classes;
    let tau = temperature.get() as f64;
    let mut out =
        LogProbs { on: vec![0.0; latent.batch * classes], off: vec![0.0; latent.batch * classes] };
    let rows = out.on.par_chunks_mut(classes).zip(out.off.par_chunks_mut(classes));
    rows.enumerate().for_each(|(row, (on, off))| {
        let mut sums = vec![[LogSum::new(), LogSum::new()]; classes];
        let samples = for_each_sample(latent, sampling, row, |utility| {
            for ([sum_on, sum_off], u) in sums.iter_mut().zip(utility) {
                let x = *u as f64 / tau;
                sum_on.add(log_sigmoid(x));
                sum_off.add(log_sigmoid(-x));
            }
        });
        for ((on, off), sums) in on.iter_mut().zip(off).zip(&sums) {
            [*on, *off] = sums.each_ref().map(|sum| (sum.log() - samples.ln()) as f32);
        }
    });
    out
}

/// The variance over the noise of sigmoid(u_c/τ), [B, K].
pub fn predictive_variance(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
) -> Vec<f32> {
    latent.expect_finite();
    let (classes, tau) = (latent.classes, temperature.get());
    let mut out = vec![0.0; latent.batch * classes];
    out.par_chunks_mut(classes).enumerate().for_each(|(row, out)| {
        // Deviations from the noiseless probability: their squares do not cancel.
        let origin: Vec<f32> = latent.example(row).mean.iter().map(|m| sigmoid(m / tau)).collect();
        let mut sums = vec![(0.0f64, 0.0f64); classes];
        let samples = for_each_sample(latent, sampling, row, |utility| {
            for ((first, second), (u, origin)) in sums.iter_mut().zip(utility.iter().zip(&origin)) {
                let deviation = (sigmoid(u / tau) - origin) as f64;
                *first += deviation;
                *second += deviation * deviation;
            }
        });
        for (out, (first, second)) in out.iter_mut().zip(sums) {
            *out = (second / samples - (first / samples).powi(2)).max(0.0) as f32;
        }
    });
    out
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// The gradient of Σ (on · log p + off · log(1 − p)) of [`sampled_log_probs`], by drawing the
/// same noise again.
///
/// # Shapes
/// - log_probs: the output of [`sampled_log_probs`]; on, off: [B, K]
pub fn sampled_backward(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    log_probs: &LogProbs,
    on: &[f32],
    off: &[f32],
) -> LatentGrad {
    latent.expect_finite();
    let entries = latent.batch * latent.classes;
    assert_eq!(log_probs.on.len(), entries, "log p must be [B, K]");
    assert_eq!(log_probs.off.len(), entries, "log(1 − p) must be [B, K]");
    assert_eq!(on.len(), entries, "upstream of log p must be [B, K]");
    assert_eq!(off.len(), entries, "upstream of log(1 − p) must be [B, K]");
    let mut grad = LatentGrad::zeros(latent);
    let shared_size = grad.shared_loadings.len();
    let (rows, shared) = split_rows(&mut grad, latent.batch);
    let mut temperature_grad = 0.0;
    for (row, out) in rows.into_iter().enumerate() {
        let at = row * latent.classes..(row + 1) * latent.classes;
        let pull: Vec<Pull> = at
            .map(|at| Pull {
                on: on[at] as f64,
                off: off[at] as f64,
                log_on: log_probs.on[at] as f64,
                log_off: log_probs.off[at] as f64,
            })
            .collect();
        let mut part = vec![0.0; shared_size];
        let out = RowGrad { shared_loadings: &mut part, ..out };
        temperature_grad += backward_row(latent, temperature, sampling, row, &pull, out);
        shared.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    grad.temperature = temperature_grad as f32;
    grad
}

/// The upstream gradients of one class, and its log-probabilities.
struct Pull {
    on: f64,
    off: f64,
    log_on: f64,
    log_off: f64,
}

impl Pull {
    /// on · sigmoid′(x)/p − off · sigmoid′(x)/(1 − p), by differences of logarithms, which cannot
    /// overflow.
    fn of(&self, x: f64) -> f64 {
        let log_slope = log_sigmoid(x) + log_sigmoid(-x);
        self.on * (log_slope - self.log_on).exp() - self.off * (log_slope - self.log_off).exp()
    }
}

/// Adds one example's gradients and returns its ∂/∂τ.
fn backward_row(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    row: usize,
    pull: &[Pull],
    out: RowGrad,
) -> f64 {
    let (classes, rank) = (latent.classes, latent.rank());
    let (example, tau) = (latent.example(row), temperature.get() as f64);
    let samples = if latent.is_noisy() { sampling.samples } else { 1 };
    let mut sums = vec![0.0f64; classes * (rank + 2)];
    let mut temperature_grad = 0.0;
    for_each_noise_block(latent, sampling, row, |_, noise| {
        let count = noise.diag_draws.len() / classes;
        for (class, sums) in sums.chunks_exact_mut(rank + 2).enumerate() {
            let loadings: Vec<f32> = example.loadings.row(class, 1.0).collect();
            let diag_scale = example.diag_scale.map_or(0.0, |d| d[class]);
            for sample in 0..count {
                let draw = noise.diag_draws[sample * classes + class];
                let draws = &noise.factor_draws[sample * rank..][..rank];
                let factor: f32 = loadings.iter().zip(draws).map(|(v, e)| v * e).sum();
                let u = (example.mean[class] + diag_scale * draw + factor) as f64;
                let g = pull[class].of(u / tau) / (samples as f64 * tau);
                sums[0] += g;
                sums[1] += g * draw as f64;
                sums[2..].iter_mut().zip(draws).for_each(|(sum, e)| *sum += g * *e as f64);
                temperature_grad -= g * u / tau;
            }
        }
    });
    write_sums(&example, &sums, out);
    temperature_grad
}

/// `sums` holds [∂μ, ∂d, ∂V…] of each class.
fn write_sums(example: &Example, sums: &[f64], out: RowGrad) {
    let rank = example.loadings.rank();
    for (class, sums) in sums.chunks_exact(rank + 2).enumerate() {
        out.mean[class] = sums[0] as f32;
        if example.diag_scale.is_some() {
            out.diag_scale[class] = sums[1] as f32;
        }
        let entries = class * rank..(class + 1) * rank;
        match example.loadings {
            Loadings::None => {}
            Loadings::Own { .. } => {
                let to = out.loadings[entries].iter_mut();
                to.zip(&sums[2..]).for_each(|(to, g)| *to = *g as f32);
            }
            Loadings::Shared { scale, loadings, .. } => {
                let own = loadings[entries.clone()].iter().zip(&sums[2..]);
                out.loading_scale[class] = own.map(|(v, g)| *v as f64 * g).sum::<f64>() as f32;
                let to = out.shared_loadings[entries].iter_mut();
                to.zip(&sums[2..]).for_each(|(to, g)| *to = scale[class] * *g as f32);
            }
        }
    }
}
