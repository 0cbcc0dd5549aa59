//! Identities that hold for all inputs.

#![allow(clippy::needless_range_loop, reason = "indices are the classes of the formulas")]

use crate::support::{Case, Kind, Random, assert_close, for_cases};
use aleator_kernels::{
    Covariance, Draws, Latent, Targets, Temperature, Vectors, fused, multilabel, taylor,
};

fn log_probs(case: &Case) -> Vec<f32> {
    let mut out = vec![0.0; case.batch * case.classes];
    fused::log_probs(&case.latent(), case.tau(), &case.sampling(), Vectors::Detected, &mut out)
        .unwrap();
    out
}

#[test]
fn probabilities_sum_to_one() {
    for_cases(48, |case, _| {
        for row in log_probs(case).chunks(case.classes) {
            let total: f64 = row.iter().map(|l| (*l as f64).exp()).sum();
            assert!((total - 1.0).abs() < 4.0 * case.tolerance(), "{}", total);
        }
    });
}

#[test]
fn a_constant_added_to_all_utilities_changes_nothing() {
    for_cases(48, |case, random| {
        let shift = random.within(0..16) as i32 - 8;
        // A power of two and means on a coarse grid: the shifted means are exact in f32.
        let grid = |m: &f32| (m * 1024.0).round() / 1024.0;
        let mean: Vec<f32> = case.mean.iter().map(grid).collect();
        let moved: Vec<f32> = mean.iter().map(|m| m + 2.0 * shift as f32).collect();
        let before = log_probs(&Case { mean, ..case.clone() });
        let after = log_probs(&Case { mean: moved, ..case.clone() });
        assert_eq!(before, after);
    });
}

#[test]
fn gradients_of_the_mean_sum_to_zero() {
    for_cases(48, |case, _| {
        let weights = vec![1.0; case.batch];
        let targets = Targets::Classes(&case.labels);
        let out = fused::loss_and_grad(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            targets,
            &weights,
            Vectors::Detected,
        );
        for row in out.grad.mean.chunks(case.classes) {
            let total: f64 = row.iter().map(|g| *g as f64).sum();
            assert!(total.abs() < 4.0 * case.tolerance() / case.temperature.min(1.0) as f64);
        }
    });
}

#[test]
fn shared_loadings_equal_their_low_rank_form() {
    for_cases(48, |case, _| {
        let shared = Case { kind: Kind::Shared, ..case.clone() };
        let entries = case.batch * case.classes;
        let loadings = (0..entries)
            .flat_map(|at| {
                let row = &shared.shared_loadings[at % case.classes * case.rank..][..case.rank];
                row.iter().map(|v| shared.loading_scale[at] * v).collect::<Vec<f32>>()
            })
            .collect();
        let full = Case { kind: Kind::LowRank, loadings, ..case.clone() };
        let expected: Vec<f64> = log_probs(&full).iter().map(|l| *l as f64).collect();
        assert_close("log_probs", &log_probs(&shared), &expected, case.tolerance());
    });
}

#[test]
fn temperature_is_a_pure_rescaling() {
    for_cases(48, |case, _| {
        let tau = case.temperature;
        let scaled = |values: &[f32]| values.iter().map(|v| v / tau).collect::<Vec<f32>>();
        let unit = Case {
            kind: Kind::LowRank,
            temperature: 1.0,
            mean: scaled(&case.mean),
            diag_scale: scaled(&case.diag_scale),
            loadings: scaled(&case.loadings),
            ..case.clone()
        };
        let expected: Vec<f64> = log_probs(&unit).iter().map(|l| *l as f64).collect();
        let found = log_probs(&Case { kind: Kind::LowRank, ..case.clone() });
        assert_close("log_probs", &found, &expected, 2.0 * case.tolerance());
    });
}

#[test]
fn zero_noise_is_plain_softmax_and_sigmoid() {
    for_cases(48, |case, _| {
        let silent = Case {
            kind: Kind::LowRank,
            diag_scale: vec![0.0; case.batch * case.classes],
            loadings: vec![0.0; case.batch * case.classes * case.rank],
            ..case.clone()
        };
        let plain = Case { kind: Kind::None, ..case.clone() };
        let expected: Vec<f64> = (0..case.batch)
            .flat_map(|row| {
                let scaled: Vec<f64> = case.mean[case.entries(row)]
                    .iter()
                    .map(|m| *m as f64 / case.temperature as f64)
                    .collect();
                let total = scaled.iter().map(|u| u.exp()).sum::<f64>().ln();
                scaled.into_iter().map(move |u| u - total).collect::<Vec<_>>()
            })
            .collect();
        assert_close("silent", &log_probs(&silent), &expected, case.tolerance());
        assert_close("plain", &log_probs(&plain), &expected, case.tolerance());
        assert_close(
            "taylor",
            &taylor::log_probs(&silent.latent(), case.tau()),
            &expected,
            case.tolerance(),
        );
        let on = multilabel::log_probs(&silent.latent(), case.tau(), Vectors::Detected).unwrap().on;
        let sigmoid: Vec<f64> = case
            .mean
            .iter()
            .map(|m| -(-*m as f64 / case.temperature as f64).exp().ln_1p())
            .collect();
        assert_close("sigmoid", &on, &sigmoid, case.tolerance());
        let prediction =
            fused::predict(&silent.latent(), case.tau(), &case.sampling(), Vectors::Detected)
                .unwrap();
        assert!(prediction.variance.iter().all(|v| *v < 1e-12), "no noise, no variance");
    });
}

/// Two classes as τ → 0: p₀ = Φ((μ₀ − μ₁) / sd(u₀ − u₁)).
#[test]
fn two_classes_without_smoothing_are_a_probit() {
    let samples = 1 << 15;
    for (gap, d, v) in [(0.7f32, [0.5f32, 0.9], [1.0f32, -0.5]), (-1.3, [1.0, 0.2], [0.3, 0.3])] {
        let covariance = Covariance::LowRank { diag_scale: &d, loadings: &v, rank: 1 };
        let latent = Latent { batch: 1, classes: 2, mean: &[gap, 0.0], covariance };
        let case = Case { draws: Draws::Sobol, ..Case::new(Kind::None, 1, 2, 1, samples) };
        let tau = Temperature::try_from(1e-3).unwrap();
        let mut out = [0.0; 2];
        fused::log_probs(&latent, tau, &case.sampling(), Vectors::Detected, &mut out).unwrap();
        let sd = (d[0] * d[0] + d[1] * d[1] + (v[0] - v[1]).powi(2)).sqrt();
        // With a tiny temperature the closed form of the sigmoid link is Φ.
        let z = [gap / sd * 1e3];
        let unit = Covariance::Diagonal { diag_scale: &[1e3] };
        let one = Latent { batch: 1, classes: 1, mean: &z, covariance: unit };
        let probit =
            multilabel::log_probs(&one, Temperature::try_from(1.0).unwrap(), Vectors::Detected)
                .unwrap()
                .on[0]
                .exp();
        // Monte Carlo's standard error is 0.003 here; scrambled Sobol' stays within it.
        assert!((out[0].exp() - probit).abs() < 0.003, "{} {probit}", out[0].exp());
    }
}

#[test]
fn permuting_the_classes_permutes_the_probabilities() {
    // The draws of the diagonal depend on the order of the classes, those of the factors do not:
    // without diagonal noise the probabilities are equal.
    let classes = 40;
    let case =
        Case { diag_scale: vec![0.0; classes], ..Case::new(Kind::LowRank, 1, classes, 3, 64) };
    let order: Vec<usize> = (0..classes).map(|k| k * 7 % classes).collect();
    let permuted = Case {
        mean: order.iter().map(|k| case.mean[*k]).collect(),
        loadings: order.iter().flat_map(|k| case.loadings[k * 3..k * 3 + 3].to_vec()).collect(),
        ..case.clone()
    };
    let before = log_probs(&case);
    let expected: Vec<f64> = order.iter().map(|k| before[*k] as f64).collect();
    assert_close("permuted", &log_probs(&permuted), &expected, case.tolerance());
}

/// Extremes that f32 cannot represent as probabilities. The reference code clips them at 1e-7,
/// which removes their gradient (deviation D7).
#[test]
fn utilities_of_ten_thousand_give_finite_losses_and_gradients() {
    for classes in [1usize, 2, 3, 33, 200] {
        for temperature in [0.05f32, 1.0, 20.0] {
            for kind in [Kind::None, Kind::Diagonal, Kind::LowRank, Kind::Shared] {
                let mean = Random(7).vector(2 * classes, -1e4, 1e4);
                let case = Case { mean, temperature, ..Case::new(kind, 2, classes, 3, 20) };
                let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
                let targets = Targets::Classes(&case.labels);
                let out = fused::loss_and_grad(
                    &latent,
                    tau,
                    &sampling,
                    targets,
                    &[1.0, 1.0],
                    Vectors::Detected,
                );
                let log_probs = log_probs(&case);
                let grad = fused::backward(
                    &latent,
                    tau,
                    &sampling,
                    Vectors::Detected,
                    &log_probs,
                    &log_probs,
                );
                let mut all = [out.losses.clone(), log_probs.clone()].concat();
                for grad in [&out.grad, &grad] {
                    all.extend([&grad.mean[..], &grad.diag_scale, &grad.loadings].concat());
                    all.extend([&grad.loading_scale[..], &grad.shared_loadings].concat());
                    all.push(grad.temperature);
                }
                assert!(all.into_iter().all(|v| v.is_finite()), "K {classes} τ {temperature}");
                for row in 0..2 {
                    let expected = case.reference(row).log_probs(&case.noise(row));
                    // Means of 1e4 have a rounding of their own: half a unit of 2⁻¹⁰.
                    let tolerance = case.tolerance();
                    assert_close("log_probs", &log_probs[case.entries(row)], &expected, tolerance);
                }
            }
        }
    }
}

#[test]
fn a_hundred_thousand_classes_work() {
    let case = Case::new(Kind::LowRank, 1, 100_000, 2, 8);
    let targets = Targets::Classes(&case.labels);
    let out = fused::loss_and_grad(
        &case.latent(),
        case.tau(),
        &case.sampling(),
        targets,
        &[1.0],
        Vectors::Detected,
    );
    let expected = case.reference(0).log_probs(&case.noise(0));
    let loss = [-expected[case.labels[0] as usize]];
    assert_close("loss", &out.losses, &loss, case.tolerance());
    assert!(out.grad.loadings.iter().all(|g| g.is_finite()));
}

#[test]
fn one_class_has_probability_one_and_no_gradient() {
    let case = Case::new(Kind::LowRank, 2, 1, 3, 100);
    let targets = Targets::Classes(&case.labels);
    let out = fused::loss_and_grad(
        &case.latent(),
        case.tau(),
        &case.sampling(),
        targets,
        &[1.0, 1.0],
        Vectors::Detected,
    );
    assert!(out.losses.iter().all(|l| l.abs() < 1e-6), "{:?}", out.losses);
    assert!(out.grad.mean.iter().chain(&out.grad.loadings).all(|g| g.abs() < 1e-6));
}

/// Deviation D1: the cross term of the expansion is −Σ_{j≠y} s_j (1 − 2 s_y) Σ_jy, without the
/// paper's extra ½. Checked against the trace written out, with the Hessian by differences.
#[test]
fn expansion_is_half_the_trace_of_hessian_times_covariance() {
    let case = Case { temperature: 1.3, ..Case::new(Kind::LowRank, 1, 4, 2, 1) };
    let example = case.reference(0);
    let tau = example.temperature;
    let softmax = |mean: &[f64]| {
        let powers: Vec<f64> = mean.iter().map(|m| (m / tau).exp()).collect();
        let total: f64 = powers.iter().sum();
        powers.into_iter().map(|p| p / total).collect::<Vec<f64>>()
    };
    let found = taylor::probs(&case.latent(), case.tau());
    let h = 1e-4;
    for k in 0..4 {
        let at = |i: usize, j: usize, a: f64, b: f64| {
            let mut mean = example.mean.clone();
            mean[i] += a;
            mean[j] += b;
            softmax(&mean)[k]
        };
        let mut trace = 0.0;
        for i in 0..4 {
            for j in 0..4 {
                let hessian = (at(i, j, h, h) - at(i, j, h, -h) - at(i, j, -h, h)
                    + at(i, j, -h, -h))
                    / (4.0 * h * h);
                let dot: f64 =
                    example.loadings[i].iter().zip(&example.loadings[j]).map(|(a, b)| a * b).sum();
                let diag = if i == j { example.diag_scale[i].powi(2) } else { 0.0 };
                trace += hessian * (dot + diag);
            }
        }
        let expected = softmax(&example.mean)[k] + 0.5 * trace;
        // Second differences with h = 1e-4 are good to 1e-7 in f64.
        assert!((found[k] as f64 - expected).abs() < 1e-6, "{k}: {} {expected}", found[k]);
    }
}

/// For small noise the expansion is the likelihood up to fourth order, also when normalised
/// (deviation D9).
#[test]
fn expansion_meets_sampling_when_noise_is_small() {
    let base = Case::new(Kind::LowRank, 1, 5, 2, 1 << 16);
    let shrink = |values: &[f32]| values.iter().map(|v| 0.1 * v).collect::<Vec<f32>>();
    let case = Case {
        draws: Draws::Sobol,
        diag_scale: shrink(&base.diag_scale),
        loadings: shrink(&base.loadings),
        ..base
    };
    let sampled: Vec<f64> = log_probs(&case).iter().map(|l| *l as f64).collect();
    let expansion: Vec<f32> =
        taylor::probs(&case.latent(), case.tau()).iter().map(|p| p.ln()).collect();
    let safe = taylor::log_probs(&case.latent(), case.tau());
    // Variances are at most 0.03/τ² = 0.037: the fourth-order term is below 0.037² / 4.
    assert_close("expansion", &expansion, &sampled, 4e-4);
    assert_close("safe", &safe, &sampled, 4e-4);
}

/// Wherever a number that is not finite stands, the error names the examples that have one.
#[test]
fn the_examples_whose_utilities_are_not_finite_are_named() {
    type Field<'a> = &'a dyn Fn(&mut Case) -> &mut Vec<f32>;
    let kinds: [(Kind, Field<'_>, &[usize], &str); 5] = [
        (Kind::None, &|case| &mut case.mean, &[1], "mean must be finite: example 1, class 2"),
        (Kind::Diagonal, &|case| &mut case.diag_scale, &[1], "diag_scale"),
        (Kind::LowRank, &|case| &mut case.loadings, &[0], "loadings"),
        (Kind::Shared, &|case| &mut case.loading_scale, &[1], "loading_scale"),
        (Kind::Shared, &|case| &mut case.shared_loadings, &[0, 1, 2], "shared_loadings"),
    ];
    for (kind, field, rows, words) in kinds {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut case = Case::new(kind, 3, 4, 2, 8);
            field(&mut case)[6] = bad; // example 1, class 2; with two factors example 0, class 3
            let mut out = vec![0.0; 12];
            let (latent, tau, sampling) = (case.latent(), case.tau(), case.sampling());
            let vectors = Vectors::Detected;
            let error = fused::log_probs(&latent, tau, &sampling, vectors, &mut out).unwrap_err();
            assert_eq!(error.rows, rows, "{kind:?}");
            assert!(error.to_string().starts_with(words), "{error}");
            let targets = Targets::Classes(&case.labels);
            let of_sigmoid = multilabel::loss_and_grad(&latent, tau, targets, &[1.0; 3], vectors);
            assert_eq!(of_sigmoid.unwrap_err(), error);
        }
    }
}
