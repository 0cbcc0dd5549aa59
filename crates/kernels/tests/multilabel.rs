//! The sigmoid link: closed form, sampling, joint and conditional probabilities.

#![allow(clippy::needless_range_loop, reason = "indices are the classes of the formulas")]

use crate::support::{Case, Kind, Random, assert_close, for_cases};
use aleator_kernels::reference::log_sigmoid;
use aleator_kernels::{Covariance, Draws, Latent, Targets, Temperature, Vectors, multilabel};

/// One example of one class, which is on.
const ON: Targets = Targets::Dense(&[1.0]);

/// E[sigmoid(u)], u ~ N(m, s²), by the trapezoidal rule in f64 on the exponentially tilted
/// integrand's own scale: spectrally accurate for a smooth integrand over the whole line.
fn quadrature(m: f64, s: f64) -> f64 {
    let log_integrand =
        |z: f64| log_sigmoid(m + s * z) - 0.5 * z * z - 0.5 * (2.0 * std::f64::consts::PI).ln();
    // The integrand peaks between the Normal's mean and the tilted one's, z = s.
    let (low, high) = (-12.0f64, 12.0 + s.min(60.0));
    let step = (0.02f64).min(0.5 / s.max(1.0));
    let count = ((high - low) / step) as usize;
    let logs: Vec<f64> = (0..=count).map(|i| log_integrand(low + i as f64 * step)).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + (logs.iter().map(|l| (l - largest).exp()).sum::<f64>() * step).ln()
}

fn exact(m: f32, s: f32, vectors: Vectors) -> (f64, f64) {
    let covariance = Covariance::Diagonal { diag_scale: &[s] };
    let latent = Latent { batch: 1, classes: 1, mean: &[m], covariance };
    let out = multilabel::log_probs(&latent, Temperature::try_from(1.0).unwrap(), vectors).unwrap();
    (out.on[0] as f64, out.off[0] as f64)
}

/// Deviation D8: the sigmoid link is exact where the paper samples.
#[test]
fn closed_form_equals_quadrature_in_both_tails() {
    for vectors in [Vectors::Detected, Vectors::Portable] {
        for s in [0.0f32, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0] {
            for m in [0.0f32, 1e-3, 0.1, 0.3, 1.0, 3.0, 7.5, 15.0, 40.0, 88.0, 300.0, 1000.0] {
                for m in [m, -m] {
                    let (on, off) = exact(m, s, vectors);
                    // The small side by quadrature; the other follows from it without cancellation.
                    let small = quadrature(-(m as f64).abs(), s as f64);
                    let large = (-small.exp()).ln_1p();
                    let expected = if m > 0.0 { (large, small) } else { (small, large) };
                    for (found, expected) in [(on, expected.0), (off, expected.1)] {
                        // Relative in the tails, absolute near one; 1e-6 covers the mixture
                        // (2e-7), f32 (3e-7) and the rounding of m and s² themselves.
                        let error = (found - expected).abs() / expected.abs().max(1.0);
                        assert!(error < 1e-6, "m {m} s {s}: {found} for {expected}");
                        // A logarithm near zero is accurate relative to its own size.
                        if expected.abs() < 1.0 && expected < -1e-30 {
                            let relative = (found / expected - 1.0).abs();
                            assert!(relative < 2e-5, "m {m} s {s}: {found} for {expected}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn extreme_means_and_scales_stay_finite() {
    for m in [0.0f32, 1e-30, 1.0, 1e4, 2e5, 1e9] {
        for s in [0.0f32, 1e-20, 1.0, 1e4, 1e9] {
            for m in [m, -m] {
                let case = Latent {
                    batch: 1,
                    classes: 1,
                    mean: &[m],
                    covariance: Covariance::Diagonal { diag_scale: &[s] },
                };
                for tau in [0.05, 1.0, 20.0] {
                    let tau = Temperature::try_from(tau).unwrap();
                    let out = multilabel::loss_and_grad(&case, tau, ON, &[1.0], Vectors::Detected)
                        .unwrap();
                    let grad = &out.grad;
                    let all = [out.losses[0], grad.mean[0], grad.diag_scale[0], grad.temperature];
                    assert!(all.iter().all(|v| v.is_finite()), "m {m} s {s}: {all:?}");
                }
            }
        }
    }
}

/// Central differences of the closed form itself, in every parameter.
#[test]
fn gradients_equal_finite_differences_of_quadrature() {
    let tau = 0.7f64;
    for (m, d) in [(0.3f64, 0.8f64), (-2.0, 0.5), (4.0, 2.0), (-9.0, 1.5), (0.05, 3.0)] {
        let loss = |m: f64, d: f64, tau: f64| -quadrature(m / tau, (d / tau).abs());
        let h = 1e-4;
        let expected = [
            (loss(m + h, d, tau) - loss(m - h, d, tau)) / (2.0 * h),
            (loss(m, d + h, tau) - loss(m, d - h, tau)) / (2.0 * h),
            (loss(m, d, tau + h) - loss(m, d, tau - h)) / (2.0 * h),
        ];
        let latent = Latent {
            batch: 1,
            classes: 1,
            mean: &[m as f32],
            covariance: Covariance::Diagonal { diag_scale: &[d as f32] },
        };
        let temperature = Temperature::try_from(tau as f32).unwrap();
        let out =
            multilabel::loss_and_grad(&latent, temperature, ON, &[1.0], Vectors::Detected).unwrap();
        let found = [out.grad.mean[0], out.grad.diag_scale[0], out.grad.temperature];
        // h² truncation is below 1e-7; the mixture's gradient error of 1e-6 grows by 2d/τ², m/τ.
        let tolerance = 2e-5;
        assert_close("gradient", &found, &expected, tolerance);
    }
}

#[test]
fn backward_is_the_gradient_of_the_loss() {
    for_cases(32, |case, _| {
        let labels: Vec<f32> = Random(1)
            .vector(case.batch * case.classes, 0.0, 1.0)
            .iter()
            .map(|u| u.round())
            .collect();
        let weights = Random(2).vector(case.batch, 0.5, 1.5);
        let (latent, tau) = (case.latent(), case.tau());
        let targets = Targets::Dense(&labels);
        let out =
            multilabel::loss_and_grad(&latent, tau, targets, &weights, Vectors::Detected).unwrap();
        let log_probs = multilabel::log_probs(&latent, tau, Vectors::Detected).unwrap();
        for row in 0..case.batch {
            let at = case.entries(row);
            let loss: f64 = at
                .map(|i| {
                    let (on, off) = (log_probs.on[i] as f64, log_probs.off[i] as f64);
                    -(labels[i] as f64 * on + (1.0 - labels[i] as f64) * off)
                })
                .sum();
            assert_close("loss", &out.losses[row..=row], &[loss], 1e-5);
        }
        let weight = |i: usize| weights[i / case.classes];
        let on: Vec<f32> = (0..labels.len()).map(|i| -labels[i] * weight(i)).collect();
        let off: Vec<f32> = (0..labels.len()).map(|i| (labels[i] - 1.0) * weight(i)).collect();
        let grad = multilabel::backward(&latent, tau, Vectors::Detected, &on, &off);
        let wide = |values: &[f32]| values.iter().map(|v| *v as f64).collect::<Vec<f64>>();
        // The same sums with the weight inside or outside: a few roundings apart.
        assert_close("mean", &out.grad.mean, &wide(&grad.mean), 1e-5);
        assert_close("diag", &out.grad.diag_scale, &wide(&grad.diag_scale), 1e-4);
        assert_close("loadings", &out.grad.loadings, &wide(&grad.loadings), 1e-4);
        assert_close("scale", &out.grad.loading_scale, &wide(&grad.loading_scale), 1e-4);
        assert_close("shared", &out.grad.shared_loadings, &wide(&grad.shared_loadings), 1e-4);
    });
}

#[test]
fn sampled_link_equals_reference() {
    for_cases(32, |case, _| {
        let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
        let found = multilabel::sampled_log_probs(&latent, tau, &sampling);
        let on = Random(5).vector(case.batch * case.classes, -1.0, 1.0);
        let off = Random(6).vector(case.batch * case.classes, -1.0, 1.0);
        let grad = multilabel::sampled_backward(&latent, tau, &sampling, &found, &on, &off);
        let wide = |values: &[f32]| values.iter().map(|v| *v as f64).collect::<Vec<f64>>();
        let mut temperature = 0.0;
        for row in 0..case.batch {
            let (example, noise, at) = (case.reference(row), case.noise(row), case.entries(row));
            let (log_p, log_q) = example.sigmoid_log_probs(&noise);
            assert_close("log p", &found.on[at.clone()], &log_p, case.tolerance());
            assert_close("log q", &found.off[at.clone()], &log_q, case.tolerance());
            let expected =
                example.sigmoid_backward(&noise, &wide(&on[at.clone()]), &wide(&off[at.clone()]));
            let tolerance = 20.0 * case.tolerance() / case.temperature.min(1.0) as f64;
            assert_close("mean", &grad.mean[at.clone()], &expected.mean, tolerance);
            if case.kind != Kind::None {
                assert_close("diag", &grad.diag_scale[at.clone()], &expected.diag_scale, tolerance);
            }
            if case.kind == Kind::LowRank {
                let flat: Vec<f64> = expected.loadings.into_iter().flatten().collect();
                let range = at.start * case.rank..at.end * case.rank;
                assert_close("loadings", &grad.loadings[range], &flat, tolerance);
            }
            temperature += expected.temperature;
        }
        let many = (case.batch * case.classes) as f64 / case.temperature.min(1.0) as f64;
        assert_close("tau", &[grad.temperature], &[temperature], 40.0 * many * case.tolerance());
    });
}

#[test]
fn an_example_of_weight_zero_has_a_loss_and_no_gradient() {
    let case = Case::new(Kind::LowRank, 2, 3, 2, 1);
    let labels = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
    let out = multilabel::loss_and_grad(
        &case.latent(),
        case.tau(),
        Targets::Dense(&labels),
        &[0.0, 1.0],
        Vectors::Detected,
    )
    .unwrap();
    assert!(out.losses.iter().all(|loss| loss.is_finite() && *loss > 0.0), "{:?}", out.losses);
    assert!(out.grad.mean[..3].iter().all(|grad| *grad == 0.0));
    assert!(out.grad.mean[3..].iter().all(|grad| *grad != 0.0));
}

/// Full-gradient check of low-rank and shared loadings through the chain rule: perturb each
/// parameter and compare with the difference of the exact loss in f64 quadrature.
#[test]
fn loadings_gradients_equal_finite_differences() {
    for kind in [Kind::LowRank, Kind::Shared] {
        let case = Case { temperature: 0.8, ..Case::new(kind, 2, 3, 2, 1) };
        let labels = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
        let weights = [0.3, 0.9];
        let loss = |case: &Case| -> f64 {
            (0..2)
                .map(|row| {
                    let example = case.reference(row);
                    let tau = example.temperature;
                    let terms = (0..3).map(|c| {
                        let norm: f64 = example.loadings[c].iter().map(|v| v * v).sum();
                        let sd = (example.diag_scale[c].powi(2) + norm).sqrt();
                        let sign = if labels[row * 3 + c] == 1.0 { 1.0 } else { -1.0 };
                        -quadrature(sign * example.mean[c] / tau, sd / tau)
                    });
                    weights[row] as f64 * terms.sum::<f64>()
                })
                .sum()
        };
        let out = multilabel::loss_and_grad(
            &case.latent(),
            case.tau(),
            Targets::Dense(&labels),
            &weights,
            Vectors::Detected,
        )
        .unwrap();
        let check = |name: &str, found: &[f32], field: &dyn Fn(&mut Case) -> &mut Vec<f32>| {
            for (at, found) in found.iter().enumerate() {
                let moved = |by: f32| {
                    let mut moved = case.clone();
                    field(&mut moved)[at] += by;
                    loss(&moved)
                };
                let h = 1.0 / 256.0; // exact in f32; truncation h²/6 ~ 3e-6
                let expected = (moved(h) - moved(-h)) / (2.0 * h as f64);
                assert!(
                    (*found as f64 - expected).abs() < 3e-5,
                    "{name}[{at}]: {found} {expected}"
                );
            }
        };
        check("mean", &out.grad.mean, &|case| &mut case.mean);
        check("diag", &out.grad.diag_scale, &|case| &mut case.diag_scale);
        check("loadings", &out.grad.loadings, &|case| &mut case.loadings);
        check("loading_scale", &out.grad.loading_scale, &|case| &mut case.loading_scale);
        check("shared", &out.grad.shared_loadings, &|case| &mut case.shared_loadings);
    }
}

#[test]
fn joint_of_one_label_is_its_marginal_and_the_joints_of_all_sets_sum_to_one() {
    let case = Case { draws: Draws::Sobol, ..Case::new(Kind::LowRank, 1, 3, 2, 4096) };
    let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
    let sampled = multilabel::sampled_log_probs(&latent, tau, &sampling);
    let exact = multilabel::log_probs(&latent, tau, Vectors::Detected).unwrap();
    for class in 0..3 {
        let joint = multilabel::joint_log_prob(&latent, tau, &sampling, 0, &[(class, true)]);
        assert!((joint - sampled.on[class] as f64).abs() < 1e-6);
        // 4096 Sobol' points: the error is far below Monte Carlo's 1/64.
        assert!((joint - exact.on[class] as f64).abs() < 4e-3, "{joint} {}", exact.on[class]);
    }
    let total: f64 = (0..8)
        .map(|set| {
            let labels: Vec<(usize, bool)> = (0..3).map(|c| (c, set >> c & 1 == 1)).collect();
            multilabel::joint_log_prob(&latent, tau, &sampling, 0, &labels).exp()
        })
        .sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn conditionals_follow_from_joints_and_respect_the_sign_of_the_correlation() {
    let covariance =
        Covariance::LowRank { diag_scale: &[0.1, 0.1, 0.1], loadings: &[2.0, 2.0, -2.0], rank: 1 };
    let latent = Latent { batch: 1, classes: 3, mean: &[0.0, 0.0, 0.0], covariance };
    let case = Case::new(Kind::None, 1, 3, 1, 2000);
    let sampling = case.sampling();
    let tau = Temperature::try_from(0.5).unwrap();
    let given = multilabel::conditional(&latent, tau, &sampling, 0, &[(0, true)]).log_probs;
    let joint =
        |labels: &[(usize, bool)]| multilabel::joint_log_prob(&latent, tau, &sampling, 0, labels);
    let expected = joint(&[(0, true), (1, true)]) - joint(&[(0, true)]);
    assert!((given[1] - expected).abs() < 1e-9);
    assert_eq!(given[0], 0.0);
    assert!(given[1].exp() > 0.8 && given[2].exp() < 0.2, "{given:?}");
}
