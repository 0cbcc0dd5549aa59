//! `evaluation.json`: the scores of a run on its splits, against given and clean labels.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::calibration::{
    fit_temperature, fit_temperature_multilabel, fit_temperature_soft, scale_log_probs,
    scale_multilabel,
};
use crate::classification::{example_nll, example_nll_soft, multilabel};
use crate::summary::{Summary, SummaryAccumulator};
use crate::true_class::TrueClass;

/// The format of `evaluation.json`.
pub const EVALUATION_FORMAT: u32 = 1;

/// The number of reliability bins of every evaluation.
pub const RELIABILITY_BINS: usize = 15;

/// The labels that predictions are compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// One class per example, `[N]`.
    Classes(Vec<u32>),
    /// Soft labels: probabilities, `[N, K]`.
    Soft(Vec<f32>),
    /// Multilabel: which classes are positive, `[N, K]`.
    MultiHot(Vec<bool>),
}

/// The probabilities of N examples.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbs {
    /// K.
    pub classes: usize,
    /// log p, `[N, K]`.
    pub on: Vec<f32>,
    /// log(1 − p), `[N, K]`, of multilabel classes only.
    pub off: Option<Vec<f32>>,
}

impl LogProbs {
    /// The scores of these probabilities.
    ///
    /// # Panics
    /// If the labels do not fit the probabilities, in kind or size.
    pub fn summary(&self, truth: &Truth) -> Summary {
        let mut scores = self.accumulator();
        scores.add(self, truth);
        scores.finish()
    }

    /// The empty scores of probabilities of this kind.
    fn accumulator(&self) -> SummaryAccumulator {
        match self.off {
            None => SummaryAccumulator::of_one_class(self.classes, RELIABILITY_BINS),
            Some(_) => SummaryAccumulator::of_multilabel(self.classes, RELIABILITY_BINS),
        }
    }

    /// −log p of the label of each example, `[N]`; of several labels the sum.
    ///
    /// # Panics
    /// If the labels do not fit the probabilities, in kind or size.
    pub fn example_nll(&self, truth: &Truth) -> Vec<f64> {
        let (on, classes) = (&self.on, self.classes);
        match (&self.off, truth) {
            (None, Truth::Classes(labels)) => example_nll(on, classes, labels),
            (None, Truth::Soft(targets)) => example_nll_soft(on, classes, targets),
            (None, Truth::MultiHot(_)) => panic!("multilabel scores need log(1 - p)"),
            (Some(off), _) => multilabel::example_nll(on, off, classes, &truth.multi_hot(classes)),
        }
    }

    /// The temperature T for which softmax(log p / T), or the sigmoid of multilabel classes, has
    /// the lowest NLL.
    pub fn fit_temperature(&self, truth: &Truth) -> f64 {
        let (on, classes) = (&self.on, self.classes);
        match (&self.off, truth) {
            (None, Truth::Classes(labels)) => fit_temperature(on, classes, labels),
            (None, Truth::Soft(targets)) => fit_temperature_soft(on, classes, targets),
            (None, Truth::MultiHot(_)) => panic!("multilabel scores need log(1 - p)"),
            (Some(off), _) => fit_temperature_multilabel(on, off, &truth.multi_hot(classes)),
        }
    }

    /// The same probabilities at another temperature.
    pub fn scaled(&self, temperature: f64) -> Self {
        let (on, off) = match &self.off {
            None => (scale_log_probs(&self.on, self.classes, temperature), None),
            Some(off) => {
                let (on, off) = scale_multilabel(&self.on, off, temperature);
                (on, Some(off))
            }
        };
        Self { classes: self.classes, on, off }
    }
}

impl Truth {
    /// The classes that are positive, `[N, K]`.
    pub(crate) fn multi_hot(&self, classes: usize) -> Cow<'_, [bool]> {
        match self {
            Self::MultiHot(hot) => Cow::Borrowed(hot),
            Self::Classes(labels) => {
                let row = |label: u32| (0..classes as u32).map(move |class| class == label);
                labels.iter().copied().flat_map(row).collect()
            }
            Self::Soft(_) => panic!("soft labels cannot be compared with multilabel probabilities"),
        }
    }
}

/// One split of [`Evaluation`].
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct SplitEvaluation {
    /// Scores against the given labels.
    #[serde(flatten)]
    pub given: Summary,
    /// Scores against the true labels, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<Summary>,
    /// Scores against the given labels at the temperature of the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Summary>,
}

impl SplitEvaluation {
    /// The scores of one split.
    pub fn new(
        log_probs: &LogProbs,
        given: &Truth,
        clean: Option<&Truth>,
        calibration: Option<&Calibration>,
    ) -> Self {
        let mut scores = SplitAccumulator::new(calibration.map(|it| it.temperature));
        scores.add(log_probs, given, clean);
        scores.finish()
    }
}

/// Adds up a [`SplitEvaluation`], one batch after the other.
///
/// ```
/// use aleator_metrics::{LogProbs, SplitAccumulator, Truth};
///
/// let mut scores = SplitAccumulator::new(None);
/// for label in [0, 1] {
///     let batch = LogProbs { classes: 2, on: vec![0.9f32.ln(), 0.1f32.ln()], off: None };
///     scores.add(&batch, &Truth::Classes(vec![label]), Some(&Truth::Classes(vec![0])));
/// }
/// let split = scores.finish();
/// assert_eq!((split.given.top1, split.clean.unwrap().top1), (0.5, 1.0));
/// ```
#[derive(Clone, Debug)]
pub struct SplitAccumulator {
    temperature: Option<f64>,
    given: Option<SummaryAccumulator>,
    clean: Option<SummaryAccumulator>,
    calibrated: Option<SummaryAccumulator>,
}

impl SplitAccumulator {
    /// With scores at this temperature, where there is one.
    pub fn new(temperature: Option<f64>) -> Self {
        Self { temperature, given: None, clean: None, calibrated: None }
    }

    /// Adds examples, whose true labels are known for all batches or none.
    ///
    /// # Panics
    /// If the labels do not fit the probabilities, in kind or size.
    pub fn add(&mut self, log_probs: &LogProbs, given: &Truth, clean: Option<&Truth>) {
        let empty = || log_probs.accumulator();
        self.given.get_or_insert_with(empty).add(log_probs, given);
        if let Some(clean) = clean {
            self.clean.get_or_insert_with(empty).add(log_probs, clean);
        }
        if let Some(temperature) = self.temperature {
            let scaled = log_probs.scaled(temperature);
            self.calibrated.get_or_insert_with(empty).add(&scaled, given);
        }
    }

    /// The scores of all examples.
    ///
    /// # Panics
    /// If no example was added.
    pub fn finish(self) -> SplitEvaluation {
        SplitEvaluation {
            given: self.given.expect("a split has examples").finish(),
            clean: self.clean.map(SummaryAccumulator::finish),
            calibrated: self.calibrated.map(SummaryAccumulator::finish),
        }
    }
}

/// Temperature scaling after training.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The temperature, by which log-probabilities are divided.
    pub temperature: f64,
    /// The NLL of the validation split without scaling.
    #[serde(with = "crate::summary::extended")]
    pub nll_before: f64,
    /// The NLL of the validation split with scaling.
    #[serde(with = "crate::summary::extended")]
    pub nll_after: f64,
}

impl Calibration {
    /// Fits the temperature on the validation split.
    pub fn fit(log_probs: &LogProbs, given: &Truth) -> Self {
        let temperature = log_probs.fit_temperature(given);
        Self {
            temperature,
            nll_before: log_probs.summary(given).nll,
            nll_after: log_probs.scaled(temperature).summary(given).nll,
        }
    }
}

/// The contents of `evaluation.json`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// [`EVALUATION_FORMAT`].
    pub format: u32,
    /// The weights that were evaluated: `"best"`, `"last"`, or `"ensemble"`; `"checkpoint"` for a
    /// step that the user named, whose scores are not written.
    pub weights: String,
    /// The training step of the weights; `None` for an ensemble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The names of the classes.
    pub class_names: Vec<String>,
    /// Temperature scaling, if the recipe asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The law of the true class, fitted to the validation split; `None` for multilabel classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_class: Option<TrueClass>,
    /// The validation split.
    pub validation: SplitEvaluation,
    /// The test split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<SplitEvaluation>,
    /// Of the last epoch where the rest is of the best one, and the other way round; `None` where
    /// there is no choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_weights: Option<OtherWeights>,
}

/// The weights that were not chosen for [`Evaluation`], and how good they are.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct OtherWeights {
    /// `"best"` or `"last"`.
    pub weights: String,
    /// The training step of the weights.
    pub step: usize,
    /// Their scores; `None` where both are the same weights, because the best epoch is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<OtherScores>,
}

/// The scores of [`OtherWeights`], each as in [`Evaluation`].
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct OtherScores {
    /// Temperature scaling, fitted to these weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// The validation split.
    pub validation: SplitEvaluation,
    /// The test split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<SplitEvaluation>,
}

impl Evaluation {
    /// The evaluation of the `"best"` or the `"last"` weights, whichever of them it was written
    /// for; `None` where it does not hold their scores.
    pub fn of_weights(&self, weights: &str) -> Option<Self> {
        if self.weights == weights {
            return Some(Self { other_weights: None, ..self.clone() });
        }
        let other = self.other_weights.as_ref().filter(|other| other.weights == weights)?;
        let renamed = Self {
            weights: other.weights.clone(),
            step: Some(other.step),
            other_weights: None,
            ..self.clone()
        };
        Some(match other.scores.clone() {
            None => renamed,
            Some(OtherScores { calibration, validation, test }) => {
                Self { calibration, true_class: None, validation, test, ..renamed }
            }
        })
    }

    /// The evaluation of the other weights, where they are not the same ones.
    pub fn other(&self) -> Option<Self> {
        let other = self.other_weights.as_ref().filter(|other| other.scores.is_some())?;
        self.of_weights(&other.weights)
    }
}
