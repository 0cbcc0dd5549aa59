//! Statistics of classifiers over plain slices.
//!
//! | module | contents |
//! |---|---|
//! | [`summary`] | [`Summary`]: all scores of one model on one set of examples, as written to JSON; [`SummaryAccumulator`] adds them up batch by batch |
//! | `evaluation` | [`Evaluation`]: the contents of `evaluation.json`, computed from probabilities, whole or by [`SplitAccumulator`] |
//! | [`classification`] | top-k accuracy, NLL, Brier score, counts and confusions, one class per example |
//! | [`classification::multilabel`] | the same for classes that are each positive or negative; average precision |
//! | [`calibration`] | reliability bins, expected calibration error, temperature scaling |
//! | `true_class` | [`TrueClass`]: the probability of the true class, without the noise of the labels |
//! | [`ranking`] | AUROC and average precision |
//! | [`significance`] | mean, standard deviation, t-tests |
//! | `normal` | the standard normal distribution function |
//! | `checks` | the checks of arguments that all functions share |
//!
//! Matrices are rows of examples, `[N, K]`. Probabilities are logarithms in f32; `−∞` stands for a
//! probability of zero. Sums are in f64 and in index order, so the same numbers give the same bits.
//!
//! Callers must check what users provide. A NaN, a logit in place of a log-probability, a label out
//! of range, shapes that do not match and an empty set of examples are bugs of the caller: functions
//! panic, and the message names the argument and the index.
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
mod true_class;

pub use calibration::{ReliabilityBin, TemperatureSample};
pub use evaluation::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, OtherScores, OtherWeights,
    RELIABILITY_BINS, SplitAccumulator, SplitEvaluation, Truth,
};
pub use normal::{normal_cdf, normal_quantile, probability_above_zero};
pub use summary::{ClassSummary, Summary, SummaryAccumulator};
pub use true_class::{MOST_CONFUSED, TrueClass, TrueClassSample};

/// The mean over at least one example, summed in index order.
fn mean_of_examples(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
