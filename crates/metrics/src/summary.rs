//! The record that an evaluation writes.
//!
//! It is written as JSON and read back without loss. JSON has no infinity, but an NLL is infinite if
//! the model gives a label probability 0. In memory it is `f64::INFINITY`, in the file the string
//! `"Infinity"`, which Python's `float` and JavaScript's `Number` parse. A large finite number in
//! its place would be averaged and plotted like a measured one.

mod accumulator;

use serde::{Deserialize, Serialize};

pub use accumulator::SummaryAccumulator;

use crate::calibration::ReliabilityBin;
use crate::mean_of_examples;

/// The scores of one model on one set of examples.
///
/// A score that does not apply to the kind of labels, or has no examples, is `None` and is not
/// written.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of examples, `N`.
    pub examples: usize,
    /// The fraction of examples whose most probable class is the label, the most probable class of
    /// the soft target, or a positive class.
    pub top1: f64,
    /// The fraction of examples whose label is among the five most probable classes; `None` for
    /// five classes or fewer, and for multilabel classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top5: Option<f64>,
    /// The NLL averaged over examples, and summed over multilabel classes; of a joint likelihood
    /// that of all labels together. May be infinite.
    #[serde(with = "extended")]
    pub nll: f64,
    /// The squared error of the probabilities, summed over classes and averaged over examples.
    pub brier: f64,
    /// The expected calibration error of `reliability`.
    pub ece: f64,
    /// gAP: average precision of all (example, class) pairs ranked together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// How far `gap` may be off; `None` where it is exact, as it is up to 2²⁴ pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_error: Option<f64>,
    /// mAP: the mean of the classes' average precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ap: Option<f64>,
    /// How far `mean_ap` may be off; `None` where it is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ap_error: Option<f64>,
    /// The fraction of examples whose predicted set of multilabel classes is exactly the positive
    /// ones. Predicted are the classes more likely on than off; of a joint likelihood the most
    /// probable set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset_accuracy: Option<f64>,
    /// The scores of each class, `[K]`.
    pub per_class: Vec<ClassSummary>,
    /// Bins by the probability of the most probable class, or of each multilabel class.
    pub reliability: Vec<ReliabilityBin>,
}

/// The scores of one class.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ClassSummary {
    /// The index of the class.
    pub class: usize,
    /// The number of examples with this label, or where this class is the most probable one of the
    /// soft target, or is positive.
    pub count: usize,
    /// The fraction of them whose most probable class is this one (recall).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top1: Option<f64>,
    /// The fraction of the predictions of this class that `count` includes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// The NLL averaged over these examples; for a multilabel class over all examples, so that the
    /// classes sum to the NLL of the summary, unless that is joint. May be infinite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "extended::serialize")]
    #[serde(deserialize_with = "extended::deserialize_option")]
    pub nll: Option<f64>,
    /// The average precision of a multilabel class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ap: Option<f64>,
}

impl Summary {
    /// Scores log p, `[N, K]`, against one label per example, `[N]`, with `bins` reliability bins.
    pub fn single_label(log_probs: &[f32], classes: usize, labels: &[u32], bins: usize) -> Self {
        let mut scores = SummaryAccumulator::of_one_class(classes, bins);
        scores.add_labels(log_probs, labels);
        scores.finish()
    }

    /// Scores log p against soft targets, both `[N, K]`.
    ///
    /// Accuracies and counts use the most probable class of each target; NLL, Brier score and
    /// reliability use the whole target.
    pub fn soft(log_probs: &[f32], classes: usize, targets: &[f32], bins: usize) -> Self {
        let mut scores = SummaryAccumulator::of_one_class(classes, bins);
        scores.add_soft(log_probs, targets);
        scores.finish()
    }

    /// Scores log p and log(1 − p) against the classes that are positive, all `[N, K]`.
    ///
    /// ```
    /// # use aleator_metrics::Summary;
    /// let (high, low) = (0.9f32.ln(), 0.1f32.ln());
    /// let summary = Summary::multilabel(&[high, low], &[low, high], 2, &[true, false], 15);
    /// assert_eq!((summary.top1, summary.gap, summary.mean_ap), (1.0, Some(1.0), Some(1.0)));
    /// assert_eq!(summary.per_class[1].ap, None); // never positive
    /// ```
    pub fn multilabel(
        log_on: &[f32],
        log_off: &[f32],
        classes: usize,
        multi_hot: &[bool],
        bins: usize,
    ) -> Self {
        let mut scores = SummaryAccumulator::of_multilabel(classes, bins);
        scores.add_multilabel(log_on, log_off, multi_hot);
        scores.finish()
    }

    /// These scores under a joint likelihood: with log P of all labels of each example together,
    /// `[N]`, and whether its most probable set of labels is the right one, where that is known.
    ///
    /// ```
    /// # use aleator_metrics::Summary;
    /// let half = [0.5f32.ln(); 2];
    /// let apart = Summary::multilabel(&half, &half, 2, &[true, true], 15);
    /// let together = apart.with_joint(&[0.5f32.ln()], Some(&[true]));
    /// assert!((together.nll - 2f64.ln()).abs() < 1e-7); // not 2 ln 2
    /// assert_eq!(together.subset_accuracy, Some(1.0));
    /// ```
    pub fn with_joint(mut self, log_probs: &[f32], hits: Option<&[bool]>) -> Self {
        let losses: Vec<f64> = log_probs.iter().map(|log_prob| 0.0 - *log_prob as f64).collect();
        self.nll = mean_of_examples(&losses);
        if let Some(hits) = hits {
            let count = hits.iter().filter(|hit| **hit).count();
            self.subset_accuracy = Some(count as f64 / hits.len() as f64);
        }
        self
    }
}

/// A number that may be infinite, in formats that have only finite numbers.
pub(crate) mod extended {
    use serde::{Deserialize, Deserializer, Serializer, ser::Error};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a number or \"Infinity\"")]
    enum Written {
        Number(f64),
        Word(Word),
    }

    #[derive(Deserialize)]
    enum Word {
        Infinity,
    }

    impl From<Written> for f64 {
        fn from(written: Written) -> Self {
            match written {
                Written::Number(number) => number,
                Written::Word(Word::Infinity) => f64::INFINITY,
            }
        }
    }

    /// Serializes a number, or one that may be `None`.
    pub fn serialize<S: Serializer>(
        value: &(impl Copy + Into<Option<f64>>),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match (*value).into() {
            None => serializer.serialize_none(),
            Some(value) if value.is_finite() => serializer.serialize_f64(value),
            Some(f64::INFINITY) => serializer.serialize_str("Infinity"),
            Some(value) => {
                Err(S::Error::custom(format!("nll is {value}, expected a number or infinity")))
            }
        }
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<f64, D::Error> {
        Written::deserialize(deserializer).map(f64::from)
    }

    pub fn deserialize_option<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Written>::deserialize(deserializer)?.map(f64::from))
    }
}
