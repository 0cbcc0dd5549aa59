//! The fused kernels equal the f64 reference on the same noise.

#![allow(clippy::needless_range_loop, reason = "indices are the classes of the formulas")]

use crate::support::{Case, Kind, Random, assert_close, for_cases, norm};
use aleator_kernels::fused::{self, Buffers, LossGrad};
use aleator_kernels::{LatentGrad, Targets, Vectors};

/// Reference gradients of Σ upstream · log p for the whole batch, in the shapes of a `LatentGrad`.
struct Expected {
    mean: Vec<f64>,
    diag_scale: Vec<f64>,
    loadings: Vec<f64>,
    loading_scale: Vec<f64>,
    shared_loadings: Vec<f64>,
    temperature: f64,
}

fn expected_grad(case: &Case, upstream: &[f64]) -> Expected {
    let mut out = Expected {
        mean: vec![],
        diag_scale: vec![],
        loadings: vec![],
        loading_scale: vec![],
        shared_loadings: vec![0.0; case.classes * case.rank],
        temperature: 0.0,
    };
    for row in 0..case.batch {
        let grad = case.reference(row).backward(&case.noise(row), &upstream[case.entries(row)]);
        out.mean.extend(&grad.mean);
        out.temperature += grad.temperature;
        if case.kind != Kind::None {
            out.diag_scale.extend(&grad.diag_scale);
        }
        match case.kind {
            Kind::LowRank => out.loadings.extend(grad.loadings.iter().flatten()),
            Kind::Shared => {
                for (class, row_grad) in grad.loadings.iter().enumerate() {
                    let shared = &case.shared_loadings[class * case.rank..][..case.rank];
                    let scale = case.loading_scale[case.entries(row)][class] as f64;
                    let dot = row_grad.iter().zip(shared).map(|(g, v)| g * *v as f64).sum();
                    out.loading_scale.push(dot);
                    for (r, g) in row_grad.iter().enumerate() {
                        out.shared_loadings[class * case.rank + r] += scale * g;
                    }
                }
            }
            _ => {}
        }
    }
    if case.kind != Kind::Shared {
        out.shared_loadings.clear();
    }
    out
}

/// A gradient is a sum over samples of responsibilities, probabilities and draws. The first two
/// have the relative error of log p, so its error is that share of its largest entry, plus the
/// rounding of probabilities near one (1e-7 each, times draws of up to 5).
fn assert_grad(case: &Case, found: &LatentGrad, expected: &Expected) {
    let floor = 4e-6 / case.temperature as f64;
    let check = |name: &str, found: &[f32], expected: &[f64], terms: f64| {
        let tolerance = 4.0 * case.tolerance() * norm(expected) + terms * floor;
        assert_close(name, found, expected, tolerance);
    };
    let (batch, rank) = (case.batch as f64, case.rank as f64);
    check("mean", &found.mean, &expected.mean, 1.0);
    check("diag_scale", &found.diag_scale, &expected.diag_scale, 1.0);
    check("loadings", &found.loadings, &expected.loadings, 1.0);
    check("loading_scale", &found.loading_scale, &expected.loading_scale, rank);
    check("shared_loadings", &found.shared_loadings, &expected.shared_loadings, batch);
    // ∂τ is a sum of parameter · gradient over all parameters, which are at most 4 after the
    // largest mean is subtracted: the errors of its terms add up.
    let terms: f64 = expected.mean.iter().chain(&expected.diag_scale).map(|g| g.abs()).sum::<f64>()
        + expected.loadings.iter().chain(&expected.loading_scale).map(|g| g.abs()).sum::<f64>();
    let count = batch * case.classes as f64;
    let allowed =
        (4.0 * case.tolerance() * 4.0 * terms + 0.1 * floor * count) / case.temperature as f64;
    assert_close("temperature", &[found.temperature], &[expected.temperature], allowed + floor);
}

fn log_probs(case: &Case, vectors: Vectors) -> Vec<f32> {
    let mut out = vec![0.0; case.batch * case.classes];
    fused::log_probs(&case.latent(), case.tau(), &case.sampling(), vectors, &mut out).unwrap();
    out
}

fn check_case(case: &Case, vectors: Vectors) {
    let found = log_probs(case, vectors);
    let expected: Vec<f64> =
        (0..case.batch).flat_map(|row| case.reference(row).log_probs(&case.noise(row))).collect();
    assert_close("log_probs", &found, &expected, case.tolerance());

    // Hard labels, weighted.
    let weights = Random(3).vector(case.batch, 0.1, 2.0);
    let targets = Targets::Classes(&case.labels);
    let LossGrad { losses, grad } = fused::loss_and_grad(
        &case.latent(),
        case.tau(),
        &case.sampling(),
        targets,
        &weights,
        vectors,
    );
    let at = |row: usize| row * case.classes + case.labels[row] as usize;
    let nll: Vec<f64> = (0..case.batch).map(|row| -expected[at(row)]).collect();
    assert_close("losses", &losses, &nll, case.tolerance());
    let mut upstream = vec![0.0; expected.len()];
    (0..case.batch).for_each(|row| upstream[at(row)] = -weights[row] as f64);
    assert_grad(case, &grad, &expected_grad(case, &upstream));

    // Any upstream gradient.
    let upstream = Random(4).vector(expected.len(), -1.0, 1.0);
    let (latent, sampling) = (case.latent(), case.sampling());
    let grad = fused::backward(&latent, case.tau(), &sampling, vectors, &found, &upstream);
    let wide: Vec<f64> = upstream.iter().map(|g| *g as f64).collect();
    assert_grad(case, &grad, &expected_grad(case, &wide));
}

#[test]
fn fused_equals_reference() {
    for_cases(96, |case, _| {
        check_case(case, Vectors::Detected);
    });
}

#[test]
fn portable_vectors_equal_reference() {
    for_cases(24, |case, _| {
        check_case(case, Vectors::Portable);
    });
}

#[test]
fn soft_targets_equal_reference() {
    for_cases(24, |case, random| {
        let count = random.within(1..8);
        // Up to four targets take one pass, more take two.
        let count = count.min(case.classes);
        let mut random = Random(9);
        let (mut offsets, mut classes, mut probs) = (vec![0], vec![], vec![]);
        let mut upstream = vec![0.0; case.batch * case.classes];
        for row in 0..case.batch {
            for j in 0..count {
                let (class, prob) = ((row + j * 5) % case.classes, random.unit());
                classes.push(class as u32);
                probs.push(prob);
                upstream[row * case.classes + class] -= 0.5 * prob as f64;
            }
            offsets.push(classes.len());
        }
        let targets = Targets::Sparse { offsets: &offsets, classes: &classes, probs: &probs };
        let weights = vec![0.5; case.batch];
        let found = fused::loss_and_grad(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            targets,
            &weights,
            Vectors::Detected,
        );
        let losses: Vec<f64> = (0..case.batch)
            .map(|row| {
                let log_probs = case.reference(row).log_probs(&case.noise(row));
                (offsets[row]..offsets[row + 1])
                    .map(|at| -probs[at] as f64 * log_probs[classes[at] as usize])
                    .sum()
            })
            .collect();
        assert_close("losses", &found.losses, &losses, count as f64 * case.tolerance());
        assert_grad(case, &found.grad, &expected_grad(case, &upstream));
        // Log-probabilities that are already known save a pass and change no bit.
        let known = log_probs(case, Vectors::Detected);
        let grad = LatentGrad::zeros(&case.latent());
        let again = fused::loss_and_grad_into(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            targets,
            &weights,
            Vectors::Detected,
            Buffers { grad, log_probs: Some(&known) },
        );
        assert_eq!(again.unwrap(), found);
    });
}

#[test]
fn predictive_variance_equals_reference() {
    for_cases(24, |case, _| {
        let found = fused::predict(&case.latent(), case.tau(), &case.sampling(), Vectors::Detected)
            .unwrap();
        for row in 0..case.batch {
            let samples = case.reference(row).sample_log_probs(&case.noise(row));
            let count = samples.len() as f64;
            let expected: Vec<f64> = (0..case.classes)
                .map(|c| {
                    let mean = samples.iter().map(|s| s[c].exp()).sum::<f64>() / count;
                    samples.iter().map(|s| (s[c].exp() - mean).powi(2)).sum::<f64>() / count
                })
                .collect();
            // The error of each probability is at most the tolerance, and its deviation at most one.
            let tolerance = 2.0 * case.tolerance();
            assert_close("variance", &found.variance[case.entries(row)], &expected, tolerance);
        }
        assert_eq!(found.log_probs, log_probs(case, Vectors::Detected));
    });
}

#[test]
fn many_classes_and_tiles_equal_reference() {
    check_case(&Case::new(Kind::LowRank, 2, 1000, 15, 100), Vectors::Detected);
    check_case(&Case::new(Kind::Shared, 10, 300, 5, 64), Vectors::Detected);
    check_case(&Case::new(Kind::LowRank, 2, 10, 6, 1000), Vectors::Detected);
}
