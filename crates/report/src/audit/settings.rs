//! The numbers that the judgement depends on.

use serde::{Deserialize, Serialize};

use super::arrays::require;
use crate::error::ReportError;

/// How labels are judged; `audit.json` records it.
///
/// The formulas are those of `docs/audit.md`: π = softmax(a μ/τ), P(y | c, x) ∝ C_cy p_y(x)^b.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// a: sharpens the prior, because softmax(μ/τ) is the law of a label and not of the truth. It
    /// and `label_power` are used with annotators; otherwise the labels choose both, or weigh
    /// several values of them.
    pub sharpness: f64,
    /// b: the power of p in the law of a label. Less than 1 keeps the label from being counted
    /// twice, as evidence for p and for the truth.
    pub label_power: f64,
    /// The number of classes of each example that may be true; all others are too improbable to
    /// matter. The classes of its labels are always among them.
    pub candidates: usize,
    /// The largest number of classes for which C is a matrix; with more it has one number for
    /// each class. A matrix of 2048 classes takes 32 MB.
    pub confusion_classes: usize,
    /// How many examples the previous C counts for in each pass.
    pub smoothing: f64,
    /// The share of right labels that C starts from.
    pub initial_accuracy: f64,
    /// The largest number of passes over the data.
    pub passes: usize,
    /// The largest number of passes where each class is on or off.
    pub multilabel_passes: usize,
    /// Passes end when the log-likelihood of an example changes by less than this.
    pub tolerance: f64,
}

impl AuditSettings {
    /// What `aleator audit` uses; `docs/results.md` has the measurements.
    pub const STANDARD: Self = Self {
        sharpness: 2.0,
        label_power: 0.5,
        candidates: 16,
        confusion_classes: 2048,
        smoothing: 1.0,
        initial_accuracy: 0.7,
        passes: 60,
        multilabel_passes: 100,
        tolerance: 1e-6,
    };

    pub(super) fn check(&self) -> Result<(), ReportError> {
        let Self { sharpness, label_power, smoothing, initial_accuracy, tolerance, .. } = *self;
        let checks = [
            (sharpness.is_finite() && sharpness > 0.0, "sharpness must be a number above 0"),
            ((0.0..=1.0).contains(&label_power), "label_power must be from 0 to 1"),
            (self.candidates >= 2, "candidates must be at least 2"),
            (smoothing.is_finite() && smoothing > 0.0, "smoothing must be a number above 0"),
            (
                initial_accuracy > 0.0 && initial_accuracy < 1.0,
                "initial_accuracy must be between 0 and 1",
            ),
            (self.passes > 0 && self.multilabel_passes > 0, "passes must be at least 1"),
            (tolerance >= 0.0, "tolerance must be at least 0"),
        ];
        checks
            .into_iter()
            .try_for_each(|(valid, expected)| require(valid, "settings", || expected.to_string()))
    }
}
