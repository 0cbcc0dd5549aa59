//! The measures by which runs are compared.

use aleator_metrics::Summary;
use serde::Deserialize;

/// A number of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share of examples whose most probable class is right.
    Top1,
    /// The share of examples whose right class is among the five most probable.
    Top5,
    /// Negative log-likelihood.
    Nll,
    /// The squared error of the probabilities.
    Brier,
    /// Expected calibration error.
    Ece,
    /// gAP: average precision of all (example, class) pairs ranked together.
    Gap,
    /// The mean of the classes' average precision.
    MeanAp,
    /// The share of examples whose predicted set of classes is exactly right.
    SubsetAccuracy,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The larger.
    Higher,
    /// The smaller.
    Lower,
}

impl Measure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Top1,
        Self::Top5,
        Self::Nll,
        Self::Brier,
        Self::Ece,
        Self::Gap,
        Self::MeanAp,
        Self::SubsetAccuracy,
    ];

    /// Its name in `evaluation.json`.
    pub fn key(self) -> &'static str {
        self.names().0
    }

    /// The measure of a key.
    ///
    /// ```
    /// use aleator_report::compare::Measure;
    ///
    /// assert_eq!(Measure::of_key("mean_ap"), Some(Measure::MeanAp));
    /// assert_eq!(Measure::of_key("accuracy"), None);
    /// ```
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.key() == key)
    }

    /// The heading of its column, without a unit.
    pub fn heading(self) -> &'static str {
        self.names().1
    }

    /// The key and the heading.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Top1 => ("top1", "top-1"),
            Self::Top5 => ("top5", "top-5"),
            Self::Nll => ("nll", "NLL"),
            Self::Brier => ("brier", "Brier"),
            Self::Ece => ("ece", "ECE"),
            Self::Gap => ("gap", "gAP"),
            Self::MeanAp => ("mean_ap", "mean AP"),
            Self::SubsetAccuracy => ("subset_accuracy", "whole set"),
        }
    }

    /// Whether it is shown in percent.
    pub fn is_share(self) -> bool {
        matches!(self, Self::Top1 | Self::Top5 | Self::Gap | Self::MeanAp | Self::SubsetAccuracy)
    }

    /// Which of two values is the better one.
    pub fn direction(self) -> Direction {
        // Shares are of what is right, all others are losses and errors.
        if self.is_share() { Direction::Higher } else { Direction::Lower }
    }

    /// Whether it has another meaning for multilabel runs: a sum over classes, or over pairs of
    /// example and class.
    pub fn depends_on_link(self) -> bool {
        matches!(self, Self::Nll | Self::Brier | Self::Ece)
    }

    /// Its value; `None` if it is undefined for these labels.
    pub fn read(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Top1 => Some(summary.top1),
            Self::Top5 => summary.top5,
            Self::Nll => Some(summary.nll),
            Self::Brier => Some(summary.brier),
            Self::Ece => Some(summary.ece),
            Self::Gap => summary.gap,
            Self::MeanAp => summary.mean_ap,
            Self::SubsetAccuracy => summary.subset_accuracy,
        }
    }
}

impl Direction {
    /// Whether `value` is better than `other`.
    pub fn is_better(self, value: f64, other: f64) -> bool {
        match self {
            Self::Higher => value > other,
            Self::Lower => value < other,
        }
    }
}
