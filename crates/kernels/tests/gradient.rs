//! The reference's gradients are those of its own log-probabilities: central differences in f64.

use crate::support::{Case, Kind, Random};
use aleator_kernels::reference::{Example, Noise};

fn objective(example: &Example, noise: &Noise, upstream: &[f64]) -> f64 {
    example.log_probs(noise).iter().zip(upstream).map(|(l, g)| l * g).sum()
}

fn sigmoid_objective(example: &Example, noise: &Noise, on: &[f64], off: &[f64]) -> f64 {
    let (log_p, log_q) = example.sigmoid_log_probs(noise);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&log_p, on) + dot(&log_q, off)
}

/// Compares every entry of a gradient with central differences of `f`.
fn check(example: &Example, grad: &aleator_kernels::reference::Grad, f: impl Fn(&Example) -> f64) {
    let h = 1e-5;
    let difference = |change: &dyn Fn(&mut Example, f64)| {
        let moved = |by: f64| {
            let mut moved = example.clone();
            change(&mut moved, by);
            f(&moved)
        };
        (moved(h) - moved(-h)) / (2.0 * h)
    };
    // Truncation h²·f‴ and cancellation 1e-16/h are both near 1e-10.
    let close = |name: &str, found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-7, "{name}: {found} {expected}");
    };
    for k in 0..example.mean.len() {
        close("mean", grad.mean[k], difference(&|e, by| e.mean[k] += by));
        close("diag", grad.diag_scale[k], difference(&|e, by| e.diag_scale[k] += by));
        for r in 0..example.loadings[k].len() {
            close("loadings", grad.loadings[k][r], difference(&|e, by| e.loadings[k][r] += by));
        }
    }
    close("temperature", grad.temperature, difference(&|e, by| e.temperature += by));
}

#[test]
fn softmax_reference_gradients_equal_central_differences() {
    for kind in [Kind::None, Kind::Diagonal, Kind::LowRank, Kind::Shared] {
        for (classes, samples, temperature) in
            [(1, 3, 1.0), (2, 1, 0.3), (5, 17, 0.9), (12, 8, 3.0)]
        {
            let case = Case { temperature, ..Case::new(kind, 1, classes, 3, samples) };
            let upstream: Vec<f64> =
                Random(1).vector(classes, -1.0, 1.0).iter().map(|g| *g as f64).collect();
            let (example, noise) = (case.reference(0), case.noise(0));
            let grad = example.backward(&noise, &upstream);
            check(&example, &grad, |example| objective(example, &noise, &upstream));
        }
    }
}

#[test]
fn sigmoid_reference_gradients_equal_central_differences() {
    let case = Case::new(Kind::LowRank, 1, 5, 2, 11);
    let on: Vec<f64> = Random(2).vector(5, -1.0, 1.0).iter().map(|g| *g as f64).collect();
    let off: Vec<f64> = Random(3).vector(5, -1.0, 1.0).iter().map(|g| *g as f64).collect();
    let (example, noise) = (case.reference(0), case.noise(0));
    let grad = example.sigmoid_backward(&noise, &on, &off);
    check(&example, &grad, |example| sigmoid_objective(example, &noise, &on, &off));
}

#[test]
fn joint_reference_gradients_equal_central_differences() {
    for kind in [Kind::Diagonal, Kind::LowRank, Kind::Shared] {
        let case = Case { temperature: 0.7, ..Case::new(kind, 1, 5, 2, 11) };
        let labels = [1.0, 0.0, 0.3, 1.0, 0.0];
        let (example, noise) = (case.reference(0), case.noise(0));
        let grad = example.joint_backward(&noise, &labels);
        check(&example, &grad, |example| example.joint_log_prob(&noise, &labels));
    }
}
