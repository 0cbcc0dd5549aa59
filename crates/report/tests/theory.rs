//! Temperature, the expansion's coefficients and predictions without sampling.

use crate::covariance_support::Case;
use aleator_kernels::{
    Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors, fused, taylor,
};
use aleator_report::covariance::{Covariances, Latents, MadeUp};
use aleator_report::expansion::{
    coefficient_figures, covariance, other_variance, own_variance, placed,
};
use aleator_report::sampling_free::{Prediction, compare_predictions};
use aleator_report::temperature::{
    TemperatureGrid, TemperaturePoint, bias_and_variance, temperature_figures, write_temperatures,
};
use aleator_run::{Noise, Split};

fn tau(value: f32) -> Temperature {
    Temperature::try_from(value).unwrap()
}

fn grid(temperatures: &[f32], samples: usize, keys: usize) -> TemperatureGrid {
    TemperatureGrid {
        temperatures: temperatures.iter().copied().map(tau).collect(),
        samples,
        draws: Draws::Independent,
        keys,
        reference_samples: 1 << 13,
    }
}

/// ∫ f(z) φ(z) dz by the trapezoidal rule, exact to rounding for smooth f.
fn expectation(f: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-3;
    let normal = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (-12_000..=12_000).map(|at| at as f64 * step).map(|z| f(z) * normal(z) * step).sum()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Two classes: bias and, with one sample, the gradient's mean and variance are integrals.
#[test]
fn two_classes_are_the_integrals_of_the_definition() {
    for rank in [0, 2] {
        let made = MadeUp { examples: 3, classes: 2, rank, spread: 1.0, scale: 0.8, seed: 7 };
        let latents = Latents::made_up(&made);
        let view = latents.view();
        let labels = [0, 1, 0];
        let keys = 4000;
        let points = bias_and_variance(&latents, &labels, &grid(&[0.3, 1.0], 1, keys), &mut |_| {});
        for point in &points {
            let tau = point.temperature;
            let (mut bias, mut mean, mut variance, mut fourth) = (0.0, 0.0, 0.0, 0.0);
            for (row, label) in labels.into_iter().enumerate() {
                let gap = f64::from(view.mean[2 * row]) - f64::from(view.mean[2 * row + 1]);
                let deviation = deviation(&view, row);
                let hard = expectation(|z| f64::from(u8::from(gap + deviation * z > 0.0)));
                let soft = expectation(|z| sigmoid((gap + deviation * z) / tau));
                bias += (soft - hard).abs() / 3.0;
                // −log softmax(u/τ)_y has the gradient ±(1 − p_y)/τ by both means.
                let sign = if label == 0 { 1.0 } else { -1.0 };
                let slope = |z: f64| sigmoid(-sign * (gap + deviation * z) / tau) / tau;
                let (first, second) = (expectation(slope), expectation(|z| slope(z).powi(2)));
                mean += 2.0 * first * first / 3.0;
                variance += 2.0 * (second - first * first) / 3.0;
                fourth += expectation(|z| (slope(z) - first).powi(4)) * 4.0 / 9.0;
            }
            // The indicator is cut at a step of the trapezoidal rule.
            assert!((point.bias - bias).abs() < 5e-4, "{point:?}: {bias}");
            // Five standard errors: of a variance from its fourth moment, of a mean from it.
            let allowed = 5.0 * (fourth / keys as f64).sqrt();
            assert!((point.gradient_variance - variance).abs() < allowed, "{point:?}: {variance}");
            let allowed = 10.0 * (mean * variance / keys as f64).sqrt() + variance / keys as f64;
            assert!((point.gradient - mean).abs() < allowed, "{point:?}: {mean}");
        }
    }
}

fn deviation(latent: &Latent, row: usize) -> f64 {
    let square = |value: f32| f64::from(value).powi(2);
    match latent.covariance {
        Covariance::Diagonal { diag_scale: d } => square(d[2 * row]) + square(d[2 * row + 1]),
        Covariance::LowRank { diag_scale: d, loadings, rank } => {
            let [a, b] = [0, 1].map(|class| &loadings[(2 * row + class) * rank..][..rank]);
            let apart: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
            square(d[2 * row]) + square(d[2 * row + 1]) + apart
        }
        _ => unreachable!("made up Normals have their own loadings"),
    }
    .sqrt()
}

/// The trade-off of the paper: the bias grows with τ, the variance of the gradient falls.
#[test]
fn bias_grows_and_variance_falls_with_the_temperature() {
    let made = MadeUp { examples: 20, classes: 8, rank: 3, spread: 1.0, scale: 1.0, seed: 1 };
    let latents = Latents::made_up(&made);
    let taus = [0.1, 0.3, 1.0, 3.0];
    let points = bias_and_variance(&latents, &latents.leading(), &grid(&taus, 50, 60), &mut |_| {});
    let rises =
        |value: fn(&TemperaturePoint) -> f64| points.is_sorted_by(|a, b| value(a) < value(b));
    assert!(rises(|point| point.bias) && rises(|point| -point.gradient_variance), "{points:?}");
    assert!(points[0].bias < 0.05 && points[3].bias > 0.2, "{points:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    write_temperatures(&path, &points).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 5);
    for figure in temperature_figures(&points, Some(0.5)) {
        let svg = figure.standalone();
        assert!(!svg.contains("NaN") && svg.contains("temperature τ") && svg.contains("dasharray"));
    }
}

/// The coefficients are derivatives of ½ correction, which is linear in Σ: differences are exact.
#[test]
fn coefficients_are_differences_of_the_expansion() {
    let mean = [0.9f32, -0.4, 0.3, 1.2];
    let total: f64 = mean.iter().map(|m| f64::from(*m).exp()).sum();
    let s = mean.map(|m| f64::from(m).exp() / total);
    // ½ correction of class k, with these variances and the covariance of two classes.
    let half = |k: usize, d_square: [f32; 4], tied: Option<(usize, usize, f32)>| {
        let (mut d, mut loadings) = (d_square, [0.0f32; 4]);
        if let Some((i, j, size)) = tied {
            // Σ_ij = ±size, and both variances as before.
            for class in [i, j] {
                d[class] -= size.abs();
                loadings[class] = size.abs().sqrt();
            }
            loadings[j] *= size.signum();
        }
        let diag_scale = d.map(f32::sqrt);
        let covariance =
            Covariance::LowRank { diag_scale: &diag_scale, loadings: &loadings, rank: 1 };
        let latent = Latent { batch: 1, classes: 4, mean: &mean, covariance };
        f64::from(taylor::probs(&latent, tau(1.0))[k]) / s[k] - 1.0
    };
    let ones = [1.0f32; 4];
    for k in 0..4 {
        for j in 0..4 {
            let mut more = ones;
            more[j] += 1.0;
            let found = half(k, more, None) - half(k, ones, None);
            let expected = if j == k { own_variance(s[k]) } else { other_variance(s[j]) } / 2.0;
            // f32 probabilities around one.
            assert!((found - expected).abs() < 3e-6, "∂Σ_{j}{j} of {k}: {found}, {expected}");
            if j != k {
                // Deviation D1: no further ½, since Σ_jk and Σ_kj move together.
                let found =
                    (half(k, ones, Some((j, k, 0.5))) - half(k, ones, Some((j, k, -0.5)))) / 1.0;
                let expected = covariance(s[j], s[k]);
                assert!((found - expected).abs() < 3e-6, "∂Σ_{j}{k}: {found}, {expected}");
            }
        }
    }
}

#[test]
fn coefficients_vanish_at_one_half_and_where_nothing_can_change() {
    assert_eq!([own_variance(0.5), other_variance(0.5), covariance(0.3, 0.5)], [0.0; 3]);
    assert_eq!([own_variance(1.0), other_variance(0.0), covariance(0.0, 0.2)], [0.0; 3]);
    assert!(own_variance(0.2) > 0.0 && other_variance(0.2) < 0.0 && covariance(0.5, 0.2) < 0.0);
    assert!(own_variance(0.8) < 0.0 && other_variance(0.8) > 0.0 && covariance(0.5, 0.8) > 0.0);
}

#[test]
fn a_runs_examples_are_on_the_figures() {
    let case = Case::new(Noise::LowRank { rank: 2 }, 30, 4, 3);
    let mut covariances = Covariances::open(&case.run(), Split::Test).unwrap();
    let temperature = covariances.link_temperature().unwrap();
    let (latents, labels) = covariances.some_latents(10).unwrap();
    assert_eq!((latents.view().batch, labels[1]), (10, 3));
    let found = placed(&latents, temperature, &labels);
    // Example 3 of the run is the second of every third one.
    let powers: Vec<f64> =
        case.predictions.mean[12..16].iter().map(|m| (f64::from(*m) / 0.7).exp()).collect();
    let total: f64 = powers.iter().sum();
    assert!((found[1].label - powers[3] / total).abs() < 1e-6, "{found:?}");
    let other = powers[..3].iter().copied().fold(0.0, f64::max) / total;
    assert!((found[1].other - other).abs() < 1e-6, "{found:?}");
    let [variances, covariances] = coefficient_figures(&found).map(|it| it.standalone());
    let circles = |svg: &str| svg.matches("<circle").count();
    assert_eq!((circles(&variances), circles(&covariances)), (20, 10));
    let [variances, covariances] = coefficient_figures(&[]).map(|it| it.standalone());
    assert_eq!((circles(&variances), circles(&covariances)), (0, 0));
}

/// The stored probabilities are sampled from the case's own Normals, so that errors are small.
#[test]
fn predictions_without_sampling_are_compared_with_the_runs_own() {
    for noise in [Noise::Diagonal, Noise::LowRank { rank: 2 }, Noise::SharedLowRank { rank: 2 }] {
        let (examples, classes, samples) = (25, 5, 1 << 14);
        let mut case = Case::new(noise, examples, classes, 11);
        let shrink = |values: &mut Option<Vec<f32>>| {
            values.iter_mut().flatten().for_each(|value| *value *= 0.3);
        };
        shrink(&mut case.predictions.diag_scale);
        shrink(&mut case.predictions.loadings);
        shrink(&mut case.predictions.loading_scale);
        let mut covariances = Covariances::open(&case.run(), Split::Test).unwrap();
        let latents = covariances.latents(0..examples).unwrap();
        let ids: Vec<u64> = (0..examples as u64).collect();
        let (key, law) = (NoiseKey { seed: 5, step: 1 }, NoiseLaw::Normal);
        let sampling = Sampling { key, ids: &ids, samples, draws: Draws::Sobol, law };
        let vectors = Vectors::Detected;
        let out = &mut case.predictions.log_probs;
        fused::log_probs(&latents.view(), tau(0.7), &sampling, vectors, out).unwrap();
        let again = Case::of(case.predictions.clone(), noise, aleator_run::Link::Softmax);
        let found = compare_predictions(&again.run(), Split::Test, samples, &mut |_| {}).unwrap();
        assert_eq!(found.iter().map(|it| it.prediction).collect::<Vec<_>>(), Prediction::ALL);
        let labels = |row: usize| row % classes;
        let nll = |row: usize| -f64::from(again.predictions.log_probs[row * classes + labels(row)]);
        let expected = (0..examples).map(nll).sum::<f64>() / examples as f64;
        assert!((found[0].nll - expected).abs() < 1e-9 && found[0].error == 0.0, "{found:?}");
        for scores in &found[1..] {
            // Noise of 0.3 against τ = 0.7: all approximations are within some percent, and sampling
            // within its standard error.
            let allowed = if scores.prediction == Prediction::SampledAgain { 0.005 } else { 0.03 };
            assert!(scores.error > 0.0 && scores.error < allowed, "{noise:?}: {scores:?}");
            assert!(scores.largest_error >= scores.error / 2.0 && scores.largest_error < 0.1);
            assert!((scores.nll - found[0].nll).abs() < 0.1 && (0.0..=1.0).contains(&scores.top1));
        }
    }
}
