//! Statistics of classifiers over plain slices.
//!
//! - [`Summary`] is the record that an evaluation writes; the modules hold its parts.
//! - [`classification`]: top-k accuracy, NLL, Brier score, counts for each class; for classes that
//!   are each on or off, [`classification::multilabel`].
//! - [`calibration`]: reliability bins, their expected error, temperature scaling.
//! - [`ranking`]: AUROC and average precision.
//! - [`significance`]: mean, standard deviation, t-tests.
//!
//! Matrices are rows of examples, `[N, K]`. Probabilities come as logarithms in f32; `−∞`, a
//! probability of zero, is a value like any other. Sums are in f64 and in index order, so the same
//! numbers give the same bits.
//!
//! Whoever calls has checked what users gave. A NaN, a logit that passes for a log-probability, a
//! label out of range, shapes that do not fit and a set of no examples are mistakes of the calling
//! program: functions panic on them and name the argument and the place.
//!
//! ```
//! use aleator_metrics::Summary;
//!
//! let log_probs = [0.7f32.ln(), 0.2f32.ln(), 0.1f32.ln(), 0.3f32.ln(), 0.3f32.ln(), 0.4f32.ln()];
//! let summary = Summary::single_label(&log_probs, 3, &[0, 1], 15);
//! assert_eq!(summary.top1, 0.5);
//! assert!((summary.nll + (0.7f64.ln() + 0.3f64.ln()) / 2.0).abs() < 1e-7);
//! ```

pub mod calibration;
mod checks;
pub mod classification;
mod evaluation;
mod normal;
pub mod ranking;
pub mod significance;
pub mod summary;

pub use calibration::ReliabilityBin;
pub use evaluation::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, RELIABILITY_BINS, SplitEvaluation, Truth,
};
pub use normal::{normal_cdf, probability_above_zero};
pub use summary::{ClassSummary, Summary};

/// The mean of what the examples have, in index order; of at least one example.
fn mean_of_examples(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
