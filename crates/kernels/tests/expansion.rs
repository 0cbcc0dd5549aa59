//! Training by the second-order expansion.

#![allow(clippy::needless_range_loop, reason = "indices are the examples of the formulas")]

use crate::support::{Case, Kind, Random, assert_close, for_cases};
use aleator_kernels::fused::LossGrad;
use aleator_kernels::taylor::{self, Form};
use aleator_kernels::{Draws, LatentGrad, Targets, Vectors, fused, reference};

const FORMS: [Form; 2] = [Form::Probability, Form::LogProbability];

fn loss(case: &Case, targets: Targets, weights: &[f32], form: Form) -> LossGrad {
    let latent = case.latent();
    let grad = LatentGrad::from_buffers(&latent, |len| vec![f32::NAN; len]);
    taylor::loss_and_grad(&latent, case.tau(), targets, weights, form, grad).unwrap()
}

/// The loss with Σ written out, in f64.
fn dense_loss(example: &reference::Example, targets: &[f64], form: Form) -> f64 {
    let (tau, classes) = (example.temperature, example.mean.len());
    let scaled: Vec<f64> = example.mean.iter().map(|mean| mean / tau).collect();
    let total = reference::log_sum_exp(&scaled);
    let s: Vec<f64> = scaled.iter().map(|u| (u - total).exp()).collect();
    let sigma = |i: usize, j: usize| {
        let rows = example.loadings[i].iter().zip(&example.loadings[j]);
        let diag = if i == j { example.diag_scale[i].powi(2) } else { 0.0 };
        (rows.map(|(a, b)| a * b).sum::<f64>() + diag) / (tau * tau)
    };
    // tr(∇²s_k Σ)/s_k, with ∇²s_k/s_k = (e_k − s)(e_k − s)ᵀ − diag(s) + s sᵀ.
    let correction = |k: usize| {
        let mut trace = 0.0;
        for i in 0..classes {
            for j in 0..classes {
                let e = |at: usize| if at == k { 1.0 } else { 0.0 };
                let diag = if i == j { s[i] } else { 0.0 };
                trace += ((e(i) - s[i]) * (e(j) - s[j]) - diag + s[i] * s[j]) * sigma(i, j);
            }
        }
        trace
    };
    let log_probs: Vec<f64> = match form {
        // The cases have little noise: the guard is not met.
        Form::Probability => {
            (0..classes).map(|k| (s[k] * (1.0 + 0.5 * correction(k))).ln()).collect()
        }
        Form::LogProbability => {
            let scores: Vec<f64> = (0..classes).map(|k| s[k].ln() + 0.5 * correction(k)).collect();
            let total = reference::log_sum_exp(&scores);
            scores.iter().map(|score| score - total).collect()
        }
    };
    -targets.iter().zip(&log_probs).map(|(target, log_prob)| target * log_prob).sum::<f64>()
}

/// With noise small enough for the guard not to be met.
fn calm(case: &Case) -> Case {
    let shrink = |values: &[f32]| values.iter().map(|v| 0.3 * v).collect::<Vec<f32>>();
    Case {
        temperature: case.temperature.max(0.8),
        diag_scale: shrink(&case.diag_scale),
        loadings: shrink(&case.loadings),
        loading_scale: shrink(&case.loading_scale),
        ..case.clone()
    }
}

/// Central differences of the dense loss by every parameter of one example.
struct Differences<'a> {
    example: &'a reference::Example,
    targets: &'a [f64],
    form: Form,
}

impl Differences<'_> {
    fn by(&self, at: impl Fn(&mut reference::Example) -> &mut f64) -> f64 {
        let h = 1e-5;
        let moved = |step: f64| {
            let mut example = self.example.clone();
            *at(&mut example) += step;
            dense_loss(&example, self.targets, self.form)
        };
        (moved(h) - moved(-h)) / (2.0 * h)
    }
}

#[test]
fn loss_and_gradients_equal_differences_of_the_dense_formula() {
    for_cases(40, |case, random: &mut Random| {
        if case.classes > 12 {
            return;
        }
        let case = calm(case);
        let targets = random.vector(case.batch * case.classes, 0.0, 1.0);
        let weights = random.vector(case.batch, 0.5, 1.5);
        for form in FORMS {
            let found = loss(&case, Targets::Dense(&targets), &weights, form);
            let mut temperature = 0.0;
            let mut shared = vec![0.0; found.grad.shared_loadings.len()];
            for row in 0..case.batch {
                let (example, at) = (case.reference(row), case.entries(row));
                let own: Vec<f64> = targets[at.clone()].iter().map(|t| *t as f64).collect();
                let expected = dense_loss(&example, &own, form);
                assert_close("loss", &found.losses[row..=row], &[expected], 1e-5);
                let weight = weights[row] as f64;
                let by = Differences { example: &example, targets: &own, form };
                let classes = 0..case.classes;
                let mean: Vec<f64> =
                    classes.clone().map(|k| weight * by.by(|it| &mut it.mean[k])).collect();
                assert_close("mean", &found.grad.mean[at.clone()], &mean, 1e-5);
                temperature += weight * by.by(|it| &mut it.temperature);
                if case.kind == Kind::None {
                    continue;
                }
                let diag: Vec<f64> =
                    classes.clone().map(|k| weight * by.by(|it| &mut it.diag_scale[k])).collect();
                assert_close("diag", &found.grad.diag_scale[at.clone()], &diag, 1e-5);
                let flat: Vec<f64> = classes
                    .flat_map(|k| (0..case.rank).map(move |r| (k, r)))
                    .filter(|_| case.kind != Kind::Diagonal)
                    .map(|(k, r)| weight * by.by(|it| &mut it.loadings[k][r]))
                    .collect();
                match case.kind {
                    Kind::LowRank => {
                        let range = at.start * case.rank..at.end * case.rank;
                        assert_close("loadings", &found.grad.loadings[range], &flat, 1e-5);
                    }
                    Kind::Shared => {
                        let scale = &case.loading_scale[at.clone()];
                        let of_class = |k: usize| k * case.rank..(k + 1) * case.rank;
                        let own = |k: usize| {
                            let entries = case.shared_loadings[of_class(k)].iter();
                            entries.zip(&flat[of_class(k)]).map(|(v, g)| *v as f64 * g).sum()
                        };
                        let scales: Vec<f64> = (0..case.classes).map(own).collect();
                        assert_close("scale", &found.grad.loading_scale[at], &scales, 1e-5);
                        for (entry, (sum, grad)) in shared.iter_mut().zip(&flat).enumerate() {
                            *sum += grad * scale[entry / case.rank] as f64;
                        }
                    }
                    Kind::None | Kind::Diagonal => {}
                }
            }
            assert_close("shared", &found.grad.shared_loadings, &shared, 1e-5);
            assert_close("tau", &[found.grad.temperature], &[temperature], 1e-4);
        }
    });
}

#[test]
fn without_noise_it_is_cross_entropy() {
    for_cases(12, |case, _| {
        let silent = Case { kind: Kind::None, ..case.clone() };
        let (targets, weights) = (Targets::Classes(&silent.labels), vec![1.0; silent.batch]);
        let exact = fused::loss_and_grad(
            &silent.latent(),
            silent.tau(),
            &silent.sampling(),
            targets,
            &weights,
            Vectors::Detected,
        );
        let wide = |values: &[f32]| values.iter().map(|v| *v as f64).collect::<Vec<f64>>();
        for form in FORMS {
            let found = loss(&silent, targets, &weights, form);
            assert_close("loss", &found.losses, &wide(&exact.losses), 1e-4);
            assert_close("mean", &found.grad.mean, &wide(&exact.grad.mean), 1e-4);
        }
    });
}

/// The first term that is left out is of the second order in Σ: half of Σ, a quarter of the error.
#[test]
fn halving_the_covariance_quarters_the_error() {
    let base = Case::new(Kind::LowRank, 1, 4, 2, 1 << 17);
    let error = |variance: f32, form: Form| {
        let shrink = |values: &[f32]| values.iter().map(|v| variance.sqrt() * v).collect();
        let case = Case {
            draws: Draws::Sobol,
            diag_scale: shrink(&base.diag_scale),
            loadings: shrink(&base.loadings),
            ..base.clone()
        };
        let targets = Targets::Classes(&case.labels);
        let sampled = fused::loss_and_grad(
            &case.latent(),
            case.tau(),
            &case.sampling(),
            targets,
            &[1.0],
            Vectors::Detected,
        );
        (loss(&case, targets, &[1.0], form).losses[0] - sampled.losses[0]) as f64
    };
    for form in FORMS {
        let ratio = error(0.2, form) / error(0.1, form);
        assert!((3.0..5.0).contains(&ratio), "{form:?}: {ratio}");
    }
}

/// Of the probability the expansion is negative here: −0.19 for s = ¾ and σ² = 20.
#[test]
fn noise_that_makes_the_expansion_negative_gives_a_finite_loss_that_leads_back() {
    let case = Case {
        temperature: 1.0,
        mean: vec![3.0f32.ln(), 0.0],
        diag_scale: vec![20.0f32.sqrt(), 0.0],
        labels: vec![0],
        ..Case::new(Kind::Diagonal, 1, 2, 0, 1)
    };
    let negative = taylor::probs(&case.latent(), case.tau())[0];
    assert!((negative + 0.19).abs() < 0.01, "{negative}");
    let out = loss(&case, Targets::Classes(&case.labels), &[1.0], Form::Probability);
    assert!(out.losses[0].is_finite() && out.losses[0] > 1.0, "{:?}", out.losses);
    assert!(out.grad.diag_scale[0] > 0.0, "a step lowers the noise: {:?}", out.grad.diag_scale);
}
