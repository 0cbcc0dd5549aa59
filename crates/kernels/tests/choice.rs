//! The generative process: which class has the largest utility.

use crate::support::{Case, Kind, for_cases};
use aleator_kernels::{
    Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature, Vectors, fused,
    multilabel,
};

const KEY: NoiseKey = NoiseKey { seed: 3, step: 0 };

fn choice_probs(case: &Case, vectors: Vectors) -> Vec<f32> {
    let mut out = vec![0.0; case.batch * case.classes];
    fused::choice_probs(&case.latent(), &case.sampling(), vectors, &mut out).unwrap();
    out
}

/// P(argmax u = c) and P(u_c > 0) of one example with this noise of scale d and no factors.
fn shares(mean: &[f32], d: f32, draws: Draws, law: NoiseLaw, samples: usize) -> [Vec<f32>; 2] {
    let diag_scale = vec![d; mean.len()];
    let covariance = Covariance::Diagonal { diag_scale: &diag_scale };
    let latent = Latent { batch: 1, classes: mean.len(), mean, covariance };
    let sampling = Sampling { key: KEY, ids: &[0], samples, draws, law };
    let mut choices = vec![0.0; mean.len()];
    fused::choice_probs(&latent, &sampling, Vectors::Detected, &mut choices).unwrap();
    [choices, multilabel::choice_probs(&latent, &sampling)]
}

fn assert_shares(name: &str, found: &[f32], expected: &[f64], samples: usize) {
    for (class, (found, expected)) in found.iter().zip(expected).enumerate() {
        // Five standard errors of independent draws; the others are better.
        let allowed = 5.0 * (expected * (1.0 - expected) / samples as f64).sqrt() + 1e-6;
        let error = (*found as f64 - expected).abs();
        assert!(error < allowed, "{name}, class {class}: {found} for {expected}");
    }
}

#[test]
fn shares_equal_the_reference() {
    for_cases(150, |case, _| {
        for vectors in [Vectors::Detected, Vectors::Portable] {
            let found = choice_probs(case, vectors);
            for row in 0..case.batch {
                let (example, noise) = (case.reference(row), case.noise(row));
                let expected = example.choice_probs(&noise);
                // Utilities closer than their rounding may change places.
                let rounding = case.tolerance() * case.temperature as f64;
                let close = |utility: &Vec<f64>| {
                    let largest = utility.iter().copied().fold(f64::MIN, f64::max);
                    utility.iter().filter(|u| **u > largest - rounding).count() > 1
                };
                let utilities = example.utilities(&noise);
                let unsure = utilities.iter().filter(|u| case.classes > 1 && close(u)).count();
                let allowed = unsure as f64 / utilities.len() as f64 + 1e-6;
                for (class, expected) in expected.iter().enumerate() {
                    let found = found[row * case.classes + class] as f64;
                    assert!((found - expected).abs() <= allowed, "{class}: {found}, {expected}");
                }
            }
        }
    });
}

/// The paper's Eq. 2: with Gumbel noise the process is the softmax cross-entropy.
#[test]
fn gumbel_noise_is_the_softmax() {
    let samples = 1 << 18;
    for classes in [2, 7, 60] {
        let mean: Vec<f32> = (0..classes).map(|c| (c as f32 * 1.7).sin() * 2.0).collect();
        let total: f64 = mean.iter().map(|m| (*m as f64).exp()).sum();
        let softmax: Vec<f64> = mean.iter().map(|m| (*m as f64).exp() / total).collect();
        for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
            let [choices, _] = shares(&mean, 1.0, draws, NoiseLaw::Gumbel, samples);
            assert_shares(&format!("{classes} classes, {draws:?}"), &choices, &softmax, samples);
        }
    }
}

/// A class is on where its utility is positive: with Logistic noise that is the sigmoid, with Normal
/// noise Φ.
#[test]
fn a_threshold_is_the_sigmoid_with_logistic_noise_and_a_probit_with_normal() {
    let samples = 1 << 18;
    let mean = [-3.0, -0.4, 0.0, 1.1, 2.5];
    let sigmoid = mean.map(|m| 1.0 / (1.0 + (-m as f64).exp()));
    // `from scipy.stats import norm; norm.cdf([m / 1.5 for m in mean])`
    let probit =
        [0.022750131948179195, 0.3948629104640251, 0.5, 0.7683224253652017, 0.9522096477271853];
    for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
        let [_, on] = shares(&mean, 1.0, draws, NoiseLaw::Logistic, samples);
        assert_shares(&format!("logistic, {draws:?}"), &on, &sigmoid, samples);
        let [_, on] = shares(&mean, 1.5, draws, NoiseLaw::Normal, samples);
        assert_shares(&format!("normal, {draws:?}"), &on, &probit, samples);
    }
}

/// Two classes with Normal noise: p₀ = Φ((μ₀ − μ₁) / sd(u₀ − u₁)).
#[test]
fn two_classes_with_normal_noise_are_a_probit() {
    let samples = 1 << 18;
    // gap, d, V, and `norm.cdf(gap / np.sqrt(d @ d + (v[0] - v[1]) ** 2))`
    for (gap, d, v, expected) in [
        (0.7f32, [0.5f32, 0.9], [1.0f32, -0.5], 0.6497904537715252),
        (-1.3, [1.0, 0.2], [0.3, 0.3], 0.10119800798647943),
        (0.4, [0.0, 0.0], [2.0, -1.0], 0.553035116623614),
    ] {
        let covariance = Covariance::LowRank { diag_scale: &d, loadings: &v, rank: 1 };
        let latent = Latent { batch: 1, classes: 2, mean: &[gap, 0.0], covariance };
        let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
        let sampling = Sampling { key: KEY, ids: &[0], samples, draws, law };
        let mut out = [0.0; 2];
        fused::choice_probs(&latent, &sampling, Vectors::Detected, &mut out).unwrap();
        assert_shares("probit", &out, &[expected, 1.0 - expected], samples);
    }
}

/// With the same noise the likelihood at a tiny temperature is the share of samples.
#[test]
fn shares_are_the_limit_of_the_likelihood() {
    for classes in [5, 50] {
        let case = Case::new(Kind::LowRank, 3, classes, 4, 1000);
        let shares = choice_probs(&case, Vectors::Detected);
        let mut gaps = vec![];
        for tau in [1.0, 0.1, 1e-2, 1e-5] {
            let tau = Temperature::try_from(tau).unwrap();
            let mut out = vec![0.0; shares.len()];
            let sampling = case.sampling();
            fused::log_probs(&case.latent(), tau, &sampling, Vectors::Detected, &mut out).unwrap();
            let errors = out.iter().zip(&shares).map(|(l, p)| (l.exp() - p).abs());
            gaps.push(errors.fold(0.0, f32::max));
        }
        assert!(gaps.is_sorted_by(|a, b| a > b), "{gaps:?}");
        assert!(gaps[3] < 2e-4, "{gaps:?}"); // at most a fifth of one sample
    }
}

#[test]
fn classes_that_tie_share_their_samples() {
    for classes in [3, 40] {
        let mut mean = vec![0.0; classes];
        mean[1] = 2.0;
        mean[classes - 1] = 2.0;
        let latent = Latent { batch: 1, classes, mean: &mean, covariance: Covariance::None };
        let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
        let sampling = Sampling { key: KEY, ids: &[0], samples: 10, draws, law };
        let mut out = vec![0.0; classes];
        fused::choice_probs(&latent, &sampling, Vectors::Detected, &mut out).unwrap();
        assert_eq!((out[0], out[1], out[classes - 1]), (0.0, 0.5, 0.5));
    }
}

#[test]
fn any_number_of_threads_gives_the_same_shares() {
    let case = Case { law: NoiseLaw::Gumbel, ..Case::new(Kind::Shared, 7, 40, 3, 500) };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| choice_probs(&case, Vectors::Detected))
    };
    assert_eq!(with(1), with(3));
}
