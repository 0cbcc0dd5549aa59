//! Calibration: reliability bins, expected calibration error, temperature scaling.

mod sample;
mod temperature;

use serde::{Deserialize, Serialize};

pub use sample::TemperatureSample;
pub use temperature::{
    HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, fit_temperature, fit_temperature_multilabel,
    fit_temperature_soft, scale_log_probs, scale_multilabel,
};

use crate::checks;
use crate::classification::{argmax, multilabel};

/// The predictions whose confidence lies in `(low, high]`; the first bin also includes 0.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct ReliabilityBin {
    /// The exclusive lower bound of the confidences.
    pub low: f64,
    /// The inclusive upper bound of the confidences.
    pub high: f64,
    /// Predictions in the bin.
    pub count: usize,
    /// Their mean confidence; `None` in an empty bin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The fraction of them that is correct; `None` in an empty bin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

/// Bins of equal width by the probability of the most probable class.
pub fn reliability(
    log_probs: &[f32],
    classes: usize,
    labels: &[u32],
    bins: usize,
) -> Vec<ReliabilityBin> {
    let examples = checks::log_probs(log_probs, classes);
    checks::labels(labels, examples, classes);
    let mut sums = ReliabilitySums::new(bins);
    sums.add_labels(log_probs, classes, labels);
    sums.finish()
}

/// The same for soft targets: a prediction is correct to the extent of its class's probability in
/// the target.
///
/// Compared with the most probable class of each target instead, a model that predicts the targets
/// exactly would look underconfident.
pub fn reliability_soft(
    log_probs: &[f32],
    classes: usize,
    targets: &[f32],
    bins: usize,
) -> Vec<ReliabilityBin> {
    checks::log_probs(log_probs, classes);
    checks::targets(targets, log_probs.len());
    let mut sums = ReliabilitySums::new(bins);
    sums.add_soft(log_probs, classes, targets);
    sums.finish()
}

/// Bins of equal width by the probability of the positive label, over all (example, class) pairs.
///
/// The bins are of p, not of the larger of p and 1 − p: there, overconfidence in positive classes
/// and underconfidence in negative ones would cancel.
pub fn reliability_multilabel(
    log_on: &[f32],
    multi_hot: &[bool],
    bins: usize,
) -> Vec<ReliabilityBin> {
    multilabel::check_on(log_on, 1, multi_hot);
    let mut sums = ReliabilitySums::new(bins);
    log_on.iter().zip(multi_hot).for_each(|(log_p, on)| sums.add_entry(*log_p, *on));
    sums.finish()
}

/// ECE: the distance between accuracy and confidence in each bin, averaged over predictions.
///
/// With the bins of [`reliability`] it is the ECE of Guo et al. (2017).
///
/// ```
/// # use aleator_metrics::calibration::{expected_calibration_error, reliability};
/// let sure = 0.8f32.ln();
/// let unsure = 0.2f32.ln();
/// let log_probs = [sure, unsure, sure, unsure];
/// let bins = reliability(&log_probs, 2, &[0, 1], 15);
/// assert!((expected_calibration_error(&bins) - (0.8 - 0.5)).abs() < 1e-7);
/// ```
pub fn expected_calibration_error(bins: &[ReliabilityBin]) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for bin in bins {
        if let (Some(confidence), Some(accuracy)) = (bin.confidence, bin.accuracy) {
            sum += bin.count as f64 * (accuracy - confidence).abs();
            count += bin.count;
        }
    }
    assert!(count > 0, "bins contain no predictions");
    sum / count as f64
}

/// Reliability bins that are filled one prediction after the other.
#[derive(Clone, Debug)]
pub(crate) struct ReliabilitySums {
    /// Of each bin: predictions, the sum of their confidences, the sum of their outcomes.
    sums: Vec<(usize, f64, f64)>,
}

impl ReliabilitySums {
    pub fn new(bins: usize) -> Self {
        assert!(bins > 0, "bins is 0, expected at least 1");
        Self { sums: vec![(0, 0.0, 0.0); bins] }
    }

    /// Examples as [`reliability`] takes them.
    pub fn add_labels(&mut self, log_probs: &[f32], classes: usize, labels: &[u32]) {
        for (row, label) in log_probs.chunks(classes).zip(labels) {
            let top = argmax(row);
            self.add((row[top] as f64).exp(), f64::from(top == *label as usize));
        }
    }

    /// Examples as [`reliability_soft`] takes them.
    pub fn add_soft(&mut self, log_probs: &[f32], classes: usize, targets: &[f32]) {
        for (row, target) in log_probs.chunks(classes).zip(targets.chunks(classes)) {
            let top = argmax(row);
            self.add((row[top] as f64).exp(), target[top] as f64);
        }
    }

    /// One class of an example as [`reliability_multilabel`] takes them.
    pub fn add_entry(&mut self, log_on: f32, is_on: bool) {
        self.add((log_on as f64).exp(), f64::from(is_on));
    }

    fn add(&mut self, confidence: f64, outcome: f64) {
        let bins = self.sums.len();
        // An edge belongs to the bin below it; a confidence rounded above 1 to the last bin.
        let bin = (confidence * bins as f64).ceil().max(1.0) as usize - 1;
        let (count, confidences, outcomes) = &mut self.sums[bin.min(bins - 1)];
        *count += 1;
        *confidences += confidence;
        *outcomes += outcome;
    }

    pub fn finish(self) -> Vec<ReliabilityBin> {
        let bins = self.sums.len();
        let edge = |at: usize| at as f64 / bins as f64;
        let bin = |(at, (count, confidences, outcomes)): (usize, (usize, f64, f64))| {
            let mean = |sum: f64| (count > 0).then(|| sum / count as f64);
            ReliabilityBin {
                low: edge(at),
                high: edge(at + 1),
                count,
                confidence: mean(confidences),
                accuracy: mean(outcomes),
            }
        };
        self.sums.into_iter().enumerate().map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_the_bin_below_and_zero_to_the_first() {
        let confidences = [0.0, 0.25, 0.25001, 0.5, 0.75, 1.0, 1.0000001];
        let mut sums = ReliabilitySums::new(4);
        confidences.iter().for_each(|confidence| sums.add(*confidence, 1.0));
        let counts: Vec<usize> = sums.finish().iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [2, 2, 1, 2]);
    }
}
