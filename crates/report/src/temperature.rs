//! Temperature as bias against variance.
//!
//! The paper's process has no temperature: p_0 = P(argmax u = c). The likelihood p_τ is smooth, and
//! differs from p_0 by a bias that grows with τ; its sampled gradient has a variance that grows as τ
//! falls. Both are measured here for given Normals and some temperatures.

use std::path::Path;

use aleator_kernels::{
    Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Targets, Temperature, Vectors, fused,
    multilabel,
};
use aleator_metrics::normal_cdf;
use aleator_run::{CsvFile, RunError};
use serde::Serialize;

use crate::covariance::{Latents, Observer, Step};
use crate::figure::Figure;
use crate::figure::curves::{Axis, Curve, Curves};

/// What [`bias_and_variance`] measures.
#[derive(Clone, Debug)]
pub struct TemperatureGrid {
    /// The temperatures, ascending.
    pub temperatures: Vec<Temperature>,
    /// S of the gradient, as in training.
    pub samples: usize,
    /// How the samples of the gradient are drawn.
    pub draws: Draws,
    /// The number of noise keys over which the gradient varies; at least 2.
    pub keys: usize,
    /// Samples of p_τ and p_0, which share their noise.
    pub reference_samples: usize,
}

/// Bias and variance at one temperature, means over the examples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TemperaturePoint {
    /// τ.
    pub temperature: f64,
    /// The total variation ½ Σ_c ∣p_τ − p_0∣.
    pub bias: f64,
    /// The largest ∣p_τ − p_0∣ of any example and class.
    pub largest_bias: f64,
    /// ‖E g‖² of the gradient g of −log p_τ(label) by μ.
    pub gradient: f64,
    /// E‖g − E g‖² over the keys.
    pub gradient_variance: f64,
}

/// Measures each temperature.
///
/// With two classes p_τ and p_0 are exact: E\[sigmoid\] in closed form, and Φ. With more they are
/// simulated with the same noise.
///
/// # Panics
/// When there is not one label for each example, or fewer than two keys.
pub fn bias_and_variance(
    latents: &Latents,
    labels: &[u32],
    grid: &TemperatureGrid,
    observer: Observer,
) -> Vec<TemperaturePoint> {
    let latent = latents.view();
    assert_eq!(labels.len(), latent.batch, "one label for each example");
    assert!(grid.keys >= 2, "a variance needs at least two keys, found {}", grid.keys);
    let hard = probs(&latent, None, grid);
    let total = grid.temperatures.len();
    let point = |(done, tau): (usize, &Temperature)| {
        let soft = probs(&latent, Some(*tau), grid);
        let errors: Vec<f64> = soft.iter().zip(&hard).map(|(a, b)| (a - b).abs()).collect();
        let (gradient, gradient_variance) = gradient(&latent, *tau, labels, grid);
        observer(Step { what: "temperatures", done: done + 1, total });
        TemperaturePoint {
            temperature: f64::from(tau.get()),
            bias: errors.iter().sum::<f64>() / (2 * latent.batch) as f64,
            largest_bias: errors.iter().copied().fold(0.0, f64::max),
            gradient,
            gradient_variance,
        }
    };
    grid.temperatures.iter().enumerate().map(point).collect()
}

/// p_τ, or p_0 without a temperature, `[n, K]`.
fn probs(latent: &Latent, tau: Option<Temperature>, grid: &TemperatureGrid) -> Vec<f64> {
    if latent.classes == 2 {
        return two_classes(latent, tau);
    }
    let ids: Vec<u64> = (0..latent.batch as u64).collect();
    let key = NoiseKey { seed: 0, step: NoiseKey::EVALUATION_STEP };
    let (samples, draws, law) = (grid.reference_samples, Draws::Sobol, NoiseLaw::Normal);
    let sampling = Sampling { key, ids: &ids, samples, draws, law };
    let mut out = vec![0.0; latent.batch * latent.classes];
    let done = match tau {
        Some(tau) => fused::log_probs(latent, tau, &sampling, Vectors::Detected, &mut out),
        None => fused::choice_probs(latent, &sampling, Vectors::Detected, &mut out),
    };
    done.unwrap_or_else(|error| panic!("{error}"));
    let prob =
        |value: &f32| if tau.is_some() { f64::from(*value).exp() } else { f64::from(*value) };
    out.iter().map(prob).collect()
}

/// u_0 − u_1 is a Normal: its logistic mean is closed, and so is the probability of its sign.
fn two_classes(latent: &Latent, tau: Option<Temperature>) -> Vec<f64> {
    let (gaps, deviations): (Vec<f32>, Vec<f32>) = differences(latent).into_iter().unzip();
    let both = |first: f64| [first, 1.0 - first];
    let Some(tau) = tau else {
        let first = |(gap, deviation): (&f32, &f32)| match (*gap, *deviation) {
            (0.0, 0.0) => 0.5,
            (gap, deviation) => normal_cdf(f64::from(gap) / f64::from(deviation)),
        };
        return gaps.iter().zip(&deviations).map(first).flat_map(both).collect();
    };
    let covariance = Covariance::Diagonal { diag_scale: &deviations };
    let one = Latent { batch: latent.batch, classes: 1, mean: &gaps, covariance };
    let log_probs = multilabel::log_probs(&one, tau, Vectors::Detected);
    let on = log_probs.unwrap_or_else(|error| panic!("{error}")).on;
    on.iter().flat_map(|log_prob| both(f64::from(*log_prob).exp())).collect()
}

/// Mean and standard deviation of u_0 − u_1 of each example.
fn differences(latent: &Latent) -> Vec<(f32, f32)> {
    let of_example = |row: usize| {
        let two = |values: &[f32]| [values[2 * row], values[2 * row + 1]].map(f64::from);
        let own = |d: &[f32]| two(d).iter().map(|d| d * d).sum::<f64>();
        let variance = match latent.covariance {
            Covariance::None => 0.0,
            Covariance::Diagonal { diag_scale } => own(diag_scale),
            Covariance::LowRank { diag_scale, loadings, rank } => {
                let rows = loadings[2 * row * rank..].chunks_exact(rank).take(2);
                own(diag_scale) + apart(rows, [1.0, 1.0])
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, rank } => {
                own(diag_scale) + apart(shared_loadings.chunks_exact(rank), two(loading_scale))
            }
        };
        let [first, second] = two(latent.mean);
        ((first - second) as f32, variance.sqrt() as f32)
    };
    (0..latent.batch).map(of_example).collect()
}

/// ‖a V_0 − b V_1‖².
fn apart<'a>(mut rows: impl Iterator<Item = &'a [f32]>, [a, b]: [f64; 2]) -> f64 {
    let (Some(first), Some(second)) = (rows.next(), rows.next()) else { return 0.0 };
    let pairs = first.iter().zip(second);
    pairs.map(|(x, y)| (a * f64::from(*x) - b * f64::from(*y)).powi(2)).sum()
}

/// ‖E g‖² and E‖g − E g‖² over the keys, means over the examples.
fn gradient(
    latent: &Latent,
    tau: Temperature,
    labels: &[u32],
    grid: &TemperatureGrid,
) -> (f64, f64) {
    let ids: Vec<u64> = (0..latent.batch as u64).collect();
    let weights = vec![1.0; latent.batch];
    let mut sums = vec![0.0f64; latent.batch * latent.classes];
    let mut squares = 0.0;
    for seed in 0..grid.keys as u64 {
        let (key, law) = (NoiseKey { seed, step: 0 }, NoiseLaw::Normal);
        let sampling = Sampling { key, ids: &ids, samples: grid.samples, draws: grid.draws, law };
        let targets = Targets::Classes(labels);
        let vectors = Vectors::Detected;
        let out = fused::loss_and_grad(latent, tau, &sampling, targets, &weights, vectors);
        for (sum, g) in sums.iter_mut().zip(&out.grad.mean) {
            *sum += f64::from(*g);
            squares += f64::from(*g).powi(2);
        }
    }
    let (keys, examples) = (grid.keys as f64, latent.batch as f64);
    let of_sums = sums.iter().map(|sum| sum * sum).sum::<f64>() / keys;
    let variance = (squares - of_sums) / (keys - 1.0);
    // The square of a mean over keys has the variance of that mean in it.
    let mean = (of_sums / keys - variance / keys).max(0.0);
    (mean / examples, variance.max(0.0) / examples)
}

/// A row for each temperature.
pub fn write_temperatures(path: &Path, points: &[TemperaturePoint]) -> Result<(), RunError> {
    let header = ["temperature", "bias", "largest_bias", "gradient", "gradient_variance"];
    CsvFile::write(path, &header, |table| {
        for point in points {
            let TemperaturePoint { temperature, bias, largest_bias, gradient, gradient_variance } =
                point;
            let cells = [temperature, bias, largest_bias, gradient, gradient_variance];
            table.row(&cells.map(|cell| cell.to_string()))?;
        }
        Ok(())
    })
}

/// Bias, and variance of the gradient, over the temperature; `own` is that of a run.
pub fn temperature_figures(points: &[TemperaturePoint], own: Option<f64>) -> [Figure; 2] {
    let curve = |label: &str, colour, value: fn(&TemperaturePoint) -> f64| Curve {
        label: label.to_string(),
        colour,
        points: points.iter().map(|point| (point.temperature, value(point))).collect(),
        marks: vec![],
    };
    let draw = |name, title, description: &str, curves| {
        let (x, y) = (Axis::logarithmic("temperature τ"), Axis::logarithmic(""));
        let description = description.to_string();
        Curves { name, title, description, x, y, curves, at: own }.draw()
    };
    [
        draw(
            "temperature-bias",
            "Bias against the limit τ → 0",
            "How far the probabilities at each temperature are from those without one.",
            vec![
                curve("mean", 0, |point| point.bias),
                curve("largest", 1, |point| point.largest_bias),
            ],
        ),
        draw(
            "temperature-variance",
            "Gradient by μ: variance over the noise",
            "The variance of the sampled gradient at each temperature, and the square of its mean.",
            vec![
                curve("variance", 1, |point| point.gradient_variance),
                curve("mean²", 0, |point| point.gradient),
            ],
        ),
    ]
}
