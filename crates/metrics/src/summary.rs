//! The record that an evaluation writes.
//!
//! It can be written as JSON and read back without loss. JSON has no word for infinity, and an NLL
//! is infinite where a model held the label impossible. In memory it is `f64::INFINITY`; in the
//! file it is the string `"Infinity"`, which Python's `float` and JavaScript's `Number` read.
//! A large finite number in its place would be averaged and plotted as if it had been measured.

use serde::{Deserialize, Serialize};

use crate::calibration::{
    ReliabilityBin, expected_calibration_error, reliability, reliability_multilabel,
    reliability_soft,
};
use crate::classification::{self, ClassTally, multilabel};
use crate::mean_of_examples;

/// How good the predictions of one model on one set of examples are.
///
/// What has no meaning for the kind of labels, or no examples to be computed from, is `None` and
/// not written.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Summary {
    /// `N`.
    pub examples: usize,
    /// The share of examples whose most probable class is the label, carries most of the soft
    /// target, or is on.
    pub top1: f64,
    /// The share of examples whose label is among the five most probable classes; none for five
    /// classes or fewer, and for classes that are each on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top5: Option<f64>,
    /// Averaged over examples; summed over classes that are each on or off. May be infinite.
    #[serde(with = "extended")]
    pub nll: f64,
    /// The squared error of the probabilities, summed over classes and averaged over examples.
    pub brier: f64,
    /// Expected calibration error of `reliability`.
    pub ece: f64,
    /// gAP: average precision of all (example, class) pairs ranked together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// The mean of the classes' average precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ap: Option<f64>,
    /// `[K]`.
    pub per_class: Vec<ClassSummary>,
    /// By the probability of the most probable class, or of being on.
    pub reliability: Vec<ReliabilityBin>,
}

/// How good the predictions for one class are.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ClassSummary {
    /// Its index.
    pub class: usize,
    /// Examples with this label, or where this class carries most of the soft target, or is on.
    pub count: usize,
    /// The share of them whose most probable class is this one (recall).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top1: Option<f64>,
    /// The share of the examples predicted to be of this class that are counted above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<f64>,
    /// Averaged over the examples counted above; of a class that is on or off, over all examples,
    /// so that the classes sum to the NLL of the summary. May be infinite.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "extended::option")]
    pub nll: Option<f64>,
    /// Average precision of a class that is on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ap: Option<f64>,
}

impl Summary {
    /// Of log p, `[N, K]`, and one label an example, `[N]`, with this many reliability bins.
    pub fn single_label(log_probs: &[f32], classes: usize, labels: &[u32], bins: usize) -> Self {
        let nll = classification::example_nll(log_probs, classes, labels);
        let reliability = reliability(log_probs, classes, labels, bins);
        let brier = classification::brier(log_probs, classes, labels);
        Self::of_labels(log_probs, classes, labels, &nll, brier, reliability)
    }

    /// Of log p and soft targets, both `[N, K]`.
    ///
    /// Accuracies and the classes' counts are those of the class that carries most of each target;
    /// NLL, Brier score and reliability see the whole target.
    pub fn soft(log_probs: &[f32], classes: usize, targets: &[f32], bins: usize) -> Self {
        let nll = classification::example_nll_soft(log_probs, classes, targets);
        let labels = classification::target_labels(targets, classes);
        let reliability = reliability_soft(log_probs, classes, targets, bins);
        let brier = classification::brier_soft(log_probs, classes, targets);
        Self::of_labels(log_probs, classes, &labels, &nll, brier, reliability)
    }

    /// Of log p and log(1 − p) of classes that are each on or off, and which are on, all `[N, K]`.
    ///
    /// ```
    /// # use aleator_metrics::Summary;
    /// let (high, low) = (0.9f32.ln(), 0.1f32.ln());
    /// let summary = Summary::multilabel(&[high, low], &[low, high], 2, &[true, false], 15);
    /// assert_eq!((summary.top1, summary.gap, summary.mean_ap), (1.0, Some(1.0), Some(1.0)));
    /// assert_eq!(summary.per_class[1].ap, None); // never on
    /// ```
    pub fn multilabel(
        log_on: &[f32],
        log_off: &[f32],
        classes: usize,
        multi_hot: &[bool],
        bins: usize,
    ) -> Self {
        let nll = multilabel::class_nll(log_on, log_off, classes, multi_hot);
        let ap = multilabel::class_average_precision(log_on, classes, multi_hot);
        let counts = multilabel::class_counts(multi_hot, classes);
        let of_class = |class| ClassSummary {
            class,
            count: counts[class],
            top1: None,
            precision: None,
            nll: Some(nll[class]),
            ap: ap[class],
        };
        let reliability = reliability_multilabel(log_on, multi_hot, bins);
        Self {
            examples: log_on.len() / classes,
            top1: multilabel::top1_accuracy(log_on, classes, multi_hot),
            top5: None,
            nll: multilabel::nll(log_on, log_off, classes, multi_hot),
            brier: multilabel::brier(log_on, log_off, classes, multi_hot),
            ece: expected_calibration_error(&reliability),
            gap: multilabel::global_average_precision(log_on, multi_hot),
            mean_ap: multilabel::mean_over_known(&ap),
            per_class: (0..classes).map(of_class).collect(),
            reliability,
        }
    }

    fn of_labels(
        log_probs: &[f32],
        classes: usize,
        labels: &[u32],
        nll: &[f64],
        brier: f64,
        reliability: Vec<ReliabilityBin>,
    ) -> Self {
        let predictions = classification::predictions(log_probs, classes);
        let tallies = classification::per_class(&predictions, labels, nll, classes);
        let top = |k| classification::top_k_accuracy(log_probs, classes, labels, k);
        Self {
            examples: labels.len(),
            top1: top(1),
            top5: (classes > 5).then(|| top(5)),
            nll: mean_of_examples(nll),
            brier,
            ece: expected_calibration_error(&reliability),
            gap: None,
            mean_ap: None,
            per_class: tallies.iter().enumerate().map(ClassSummary::of_tally).collect(),
            reliability,
        }
    }
}

impl ClassSummary {
    fn of_tally((class, tally): (usize, &ClassTally)) -> Self {
        Self {
            class,
            count: tally.count,
            top1: tally.recall(),
            precision: tally.precision(),
            nll: tally.mean_nll(),
            ap: None,
        }
    }
}

/// A number that may be infinite, in formats that know finite numbers only.
pub(crate) mod extended {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged, expecting = "expected a number or \"Infinity\"")]
    enum Written {
        Number(f64),
        Word(Word),
    }

    #[derive(Serialize, Deserialize)]
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

    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            Written::Number(*value).serialize(serializer)
        } else if *value == f64::INFINITY {
            Written::Word(Word::Infinity).serialize(serializer)
        } else {
            Err(S::Error::custom(format!("nll is {value}, expected a number or infinity")))
        }
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<f64, D::Error> {
        Written::deserialize(deserializer).map(f64::from)
    }

    pub mod option {
        use super::*;

        pub fn serialize<S: Serializer>(
            value: &Option<f64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'a, D: Deserializer<'a>>(
            deserializer: D,
        ) -> Result<Option<f64>, D::Error> {
            Ok(Option::<Written>::deserialize(deserializer)?.map(f64::from))
        }
    }
}
