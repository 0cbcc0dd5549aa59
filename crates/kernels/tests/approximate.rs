//! Approximations of the likelihood without sampling.

use crate::support::{Case, Kind, assert_close, for_cases};
use aleator_kernels::{Covariance, Latent, Temperature, Vectors, approximate, fused, multilabel};

const FUNCTIONS: [fn(&Latent, Temperature) -> Vec<f32>; 2] =
    [approximate::probit, approximate::mean_field];

#[test]
fn without_noise_they_are_the_softmax() {
    for_cases(40, |case, _| {
        let case = Case { kind: Kind::None, ..case.clone() };
        for function in FUNCTIONS {
            let found = function(&case.latent(), case.tau());
            for row in 0..case.batch {
                let expected = case.reference(row).log_probs(&case.noise(row));
                // The temperature and the means are f32, everything else f64.
                assert_close("log p", &found[case.entries(row)], &expected, 1e-6);
            }
        }
    });
}

#[test]
fn they_are_distributions_for_noise_of_any_size() {
    for_cases(60, |case, _| {
        for function in FUNCTIONS {
            let log_probs = function(&case.latent(), case.tau());
            for row in log_probs.chunks(case.classes) {
                let total: f64 = row.iter().map(|l| (*l as f64).exp()).sum();
                assert!((total - 1.0).abs() < 1e-5, "{total}");
            }
        }
    });
}

/// sigmoid(Δ / √(τ² + πs²/8)) against the exact E[sigmoid(N(Δ/τ, s²/τ²))].
#[test]
fn two_classes_are_within_mackays_error() {
    let tau = Temperature::try_from(0.7).unwrap();
    for (gap, d, v) in [
        (0.5f32, [0.5f32, 0.9], [1.0f32, -0.5]),
        (2.0, [2.0, 0.1], [0.3, 1.3]),
        (-4.0, [3.0; 2], [0.0; 2]),
    ] {
        let covariance = Covariance::LowRank { diag_scale: &d, loadings: &v, rank: 1 };
        let latent = Latent { batch: 1, classes: 2, mean: &[gap + 7.0, 7.0], covariance };
        let variance = d[0] * d[0] + d[1] * d[1] + (v[0] - v[1]).powi(2);
        let found = approximate::mean_field(&latent, tau)[0].exp() as f64;
        let slope = (0.49 + core::f64::consts::PI / 8.0 * variance as f64).sqrt();
        let closed = 1.0 / (1.0 + (-gap as f64 / slope).exp());
        assert!((found - closed).abs() < 1e-6, "{found} for {closed}");
        let deviation = [variance.sqrt()];
        let one = Covariance::Diagonal { diag_scale: &deviation };
        let exact = Latent { batch: 1, classes: 1, mean: &[gap], covariance: one };
        let exact = multilabel::log_probs(&exact, tau, Vectors::Detected).unwrap().on[0].exp();
        // The largest difference of the two functions, for any mean and variance.
        assert!((found - exact as f64).abs() < 0.02, "{found} for {exact}");
    }
}

/// Shared noise cancels in differences; the means shrink as if there were none of it.
#[test]
fn mean_field_knows_covariances_and_the_probit_does_not() {
    let d = [0.1f32; 3];
    let together = [2.0f32, 2.0, 2.0];
    let covariance = Covariance::LowRank { diag_scale: &d, loadings: &together, rank: 1 };
    let latent = Latent { batch: 1, classes: 3, mean: &[1.0, 0.0, -1.0], covariance };
    let case = Case { kind: Kind::LowRank, ..Case::new(Kind::None, 1, 3, 1, 1 << 14) };
    let tau = Temperature::try_from(1.0).unwrap();
    let mut sampled = [0.0; 3];
    fused::log_probs(&latent, tau, &case.sampling(), Vectors::Detected, &mut sampled).unwrap();
    let error = |log_probs: &[f32]| {
        let pairs = log_probs.iter().zip(&sampled);
        pairs.map(|(a, b)| (a.exp() - b.exp()).abs()).fold(0.0, f32::max)
    };
    let [probit, mean_field] = FUNCTIONS.map(|function| error(&function(&latent, tau)));
    assert!(mean_field < 0.005 && probit > 0.1, "{mean_field} {probit}");
}
