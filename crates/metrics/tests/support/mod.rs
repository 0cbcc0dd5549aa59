//! Test data, generated identically here and in Python, to compare with Python libraries.
//!
//! Every expected number is preceded by the Python expression that printed it (numpy 2.4,
//! scipy 1.17, scikit-learn 1.9), after this preamble:
//!
//! ```python
//! import numpy as np
//! import sklearn.metrics as m
//! from scipy.special import expit, log_expit, log_softmax, softmax
//!
//! state = 1
//! def draw(n):
//!     global state
//!     state = (6364136223846793005 * state + 1442695040888963407) % 2**64
//!     return (state >> 33) % n
//!
//! def f32(x):
//!     return x.astype(np.float32).astype(np.float64)
//!
//! N, K = 60, 7
//! logits = np.array([[draw(33) / 4 - 4 for _ in range(K)] for _ in range(N)])
//! pairs = [(draw(2), draw(K)) for _ in range(N)]
//! labels = np.array([row.argmax() if coin else other for row, (coin, other) in zip(logits, pairs)])
//! shares = np.array([[draw(4) + (k == label) for k in range(K)] for label in labels])
//! targets = f32(shares / shares.sum(1, keepdims=True))
//! multi_hot = np.array([[l > draw(33) / 4 - 4 for l in row] for row in logits])
//! log_probs = f32(log_softmax(logits, axis=1))
//! log_on, log_off = f32(log_expit(logits)), f32(log_expit(-logits))
//!
//! probs, on = np.exp(log_probs), np.exp(log_on)
//! each = np.arange(N)
//! order = np.argsort(-log_probs, axis=1, kind="stable")
//! predictions = order[:, 0]
//! ```
//!
//! Logits are multiples of ¼ between −4 and 4, so ties are frequent.

#![allow(dead_code, reason = "each test file uses its part")]

/// `N`.
pub const EXAMPLES: usize = 60;
/// `K`.
pub const CLASSES: usize = 7;

/// Two logarithms of the same number in two languages may round to neighbouring f32: 6e-8 of it.
pub const TOLERANCE: f64 = 1e-7;

/// The generator of the preamble.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    /// A multiple of ¼ between −4 and 4.
    pub fn quarter(&mut self) -> f64 {
        self.below(33) as f64 / 4.0 - 4.0
    }
}

/// The data of the preamble.
pub struct Data {
    pub labels: Vec<u32>,
    pub targets: Vec<f32>,
    pub multi_hot: Vec<bool>,
    pub log_probs: Vec<f32>,
    pub log_on: Vec<f32>,
    pub log_off: Vec<f32>,
}

impl Data {
    pub fn new() -> Self {
        Self::drawn(&mut Draws::new(1), EXAMPLES, CLASSES)
    }

    pub fn drawn(draws: &mut Draws, examples: usize, classes: usize) -> Self {
        let logits: Vec<f64> = (0..examples * classes).map(|_| draws.quarter()).collect();
        let label = |row: &[f64]| {
            let (coin, other) = (draws.below(2), draws.below(classes as u64));
            let first_of = |top: f64| row.iter().position(|l| *l == top).unwrap() as u64;
            let top = first_of(row.iter().copied().fold(f64::MIN, f64::max));
            (if coin == 1 { top } else { other }) as u32
        };
        let labels: Vec<u32> = logits.chunks(classes).map(label).collect();
        let mut targets = vec![];
        for label in &labels {
            let share = |k| draws.below(4) + u64::from(k == *label as usize);
            let shares: Vec<u64> = (0..classes).map(share).collect();
            let total: u64 = shares.iter().sum();
            targets.extend(shares.iter().map(|share| (*share as f64 / total as f64) as f32));
        }
        let multi_hot = logits.iter().map(|logit| *logit > draws.quarter()).collect();
        Self {
            labels,
            targets,
            multi_hot,
            log_probs: logits.chunks(classes).flat_map(log_softmax).collect(),
            log_on: logits.iter().map(|logit| log_sigmoid(*logit)).collect(),
            log_off: logits.iter().map(|logit| log_sigmoid(-*logit)).collect(),
        }
    }
}

pub fn log_softmax(logits: &[f64]) -> Vec<f32> {
    let top = logits.iter().copied().fold(f64::MIN, f64::max);
    let log_total = logits.iter().map(|logit| (logit - top).exp()).sum::<f64>().ln();
    logits.iter().map(|logit| (logit - top - log_total) as f32).collect()
}

pub fn log_sigmoid(logit: f64) -> f32 {
    (-(-logit).exp().ln_1p()) as f32
}

/// Logarithms of these probabilities.
pub fn logs(probs: &[f32]) -> Vec<f32> {
    probs.iter().map(|p| p.ln()).collect()
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64) {
    let close = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
    assert!(close, "found {found}, expected {expected}");
}

#[track_caller]
pub fn assert_all_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_close(*found, *expected, tolerance);
    }
}

/// The panic message of a call.
pub fn complaint<T>(call: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
    let payload = std::panic::catch_unwind(call).err().expect("the call should have panicked");
    let owned = payload.downcast_ref::<String>().cloned();
    owned.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string())).unwrap()
}
