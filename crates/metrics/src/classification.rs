//! One class per example: accuracy, NLL, Brier score, counts for each class.
//!
//! `log_probs` is `log p`, `[N, K]`. A label is a class, `[N]`; a soft target is a distribution
//! over classes, `[N, K]`. Classes of equal probability are ranked by index.

pub mod multilabel;

use std::collections::BTreeMap;

use crate::{checks, mean_of_examples};

/// The index of the largest value; the first of several equal ones.
pub fn argmax(row: &[f32]) -> usize {
    (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
}

/// The most probable class of each example, `[N]`.
pub fn predictions(log_probs: &[f32], classes: usize) -> Vec<u32> {
    checks::log_probs(log_probs, classes);
    log_probs.chunks(classes).map(|row| argmax(row) as u32).collect()
}

/// The most probable class of each soft target, `[N]`.
pub fn target_labels(targets: &[f32], classes: usize) -> Vec<u32> {
    checks::examples("targets", targets.len(), classes);
    checks::targets(targets, targets.len());
    targets.chunks(classes).map(|row| argmax(row) as u32).collect()
}

/// The fraction of examples whose label is among the `k` most probable classes.
///
/// ```
/// # use aleator_metrics::classification::top_k_accuracy;
/// let log_probs = [-1.0, -2.0, -1.5, -1.0, -1.0, -1.0];
/// assert_eq!(top_k_accuracy(&log_probs, 3, &[2, 1], 1), 0.0); // equal classes: 0 ranks before 1
/// assert_eq!(top_k_accuracy(&log_probs, 3, &[2, 1], 2), 1.0);
/// ```
pub fn top_k_accuracy(log_probs: &[f32], classes: usize, labels: &[u32], k: usize) -> f64 {
    let examples = checks::log_probs(log_probs, classes);
    checks::labels(labels, examples, classes);
    assert!(k > 0, "k is 0, expected at least 1");
    top_k_hits(log_probs, classes, labels, k) as f64 / examples as f64
}

/// The number of examples whose label is among the `k` most probable classes.
pub(crate) fn top_k_hits(log_probs: &[f32], classes: usize, labels: &[u32], k: usize) -> usize {
    let rows = log_probs.chunks(classes).zip(labels);
    rows.filter(|(row, label)| classes_before(row, **label as usize) < k).count()
}

/// The number of classes that are more probable, or equally probable with a lower index.
fn classes_before(row: &[f32], class: usize) -> usize {
    let (lower, rest) = row.split_at(class);
    let lower = lower.iter().filter(|value| **value >= row[class]).count();
    lower + rest.iter().filter(|value| **value > row[class]).count()
}

/// `−log p_y` of each example, `[N]`; `∞` where the label has probability 0.
pub fn example_nll(log_probs: &[f32], classes: usize, labels: &[u32]) -> Vec<f64> {
    let examples = checks::log_probs(log_probs, classes);
    checks::labels(labels, examples, classes);
    let rows = log_probs.chunks(classes).zip(labels);
    // Not `−x`: the NLL of a certain prediction is 0, not −0.
    rows.map(|(row, label)| 0.0 - row[*label as usize] as f64).collect()
}

/// The negative log-likelihood of the labels, averaged over examples.
pub fn nll(log_probs: &[f32], classes: usize, labels: &[u32]) -> f64 {
    mean_of_examples(&example_nll(log_probs, classes, labels))
}

/// `−Σ_k t_k log p_k` of each example, `[N]`; `∞` where a class of the target has probability 0.
pub fn example_nll_soft(log_probs: &[f32], classes: usize, targets: &[f32]) -> Vec<f64> {
    checks::log_probs(log_probs, classes);
    checks::targets(targets, log_probs.len());
    let row_nll = |(row, target): (&[f32], &[f32])| {
        let terms = row.iter().zip(target).filter(|(_, t)| **t > 0.0);
        terms.fold(0.0, |sum, (log_p, t)| sum - *t as f64 * *log_p as f64)
    };
    log_probs.chunks(classes).zip(targets.chunks(classes)).map(row_nll).collect()
}

/// The cross-entropy of the soft targets, averaged over examples.
pub fn nll_soft(log_probs: &[f32], classes: usize, targets: &[f32]) -> f64 {
    mean_of_examples(&example_nll_soft(log_probs, classes, targets))
}

/// The Brier score: the mean over examples of `Σ_k (p_k − 1[k = y])²`, between 0 and 2.
///
/// ```
/// # use aleator_metrics::classification::brier;
/// let uniform = [0.25f32.ln(); 4];
/// assert!((brier(&uniform, 4, &[2]) - 0.75).abs() < 1e-7);
/// ```
pub fn brier(log_probs: &[f32], classes: usize, labels: &[u32]) -> f64 {
    let examples = checks::log_probs(log_probs, classes);
    checks::labels(labels, examples, classes);
    squared_errors(log_probs, classes, labels).sum::<f64>() / examples as f64
}

/// `(p_k − 1[k = y])²` of each class of each example.
pub(crate) fn squared_errors(
    log_probs: &[f32],
    classes: usize,
    labels: &[u32],
) -> impl Iterator<Item = f64> {
    log_probs.chunks(classes).zip(labels).flat_map(|(row, label)| {
        row.iter().enumerate().map(|(class, log_p)| {
            let log_p = *log_p as f64;
            // exp_m1 keeps the digits of p − 1 where p is close to 1.
            let error = if class == *label as usize { log_p.exp_m1() } else { log_p.exp() };
            error * error
        })
    })
}

/// The mean over examples of `Σ_k (p_k − t_k)²`.
pub fn brier_soft(log_probs: &[f32], classes: usize, targets: &[f32]) -> f64 {
    let examples = checks::log_probs(log_probs, classes);
    checks::targets(targets, log_probs.len());
    squared_errors_soft(log_probs, targets).sum::<f64>() / examples as f64
}

/// `(p_k − t_k)²` of each class of each example.
pub(crate) fn squared_errors_soft(log_probs: &[f32], targets: &[f32]) -> impl Iterator<Item = f64> {
    let error = |(log_p, target): (&f32, &f32)| (*log_p as f64).exp() - *target as f64;
    log_probs.iter().zip(targets).map(error).map(|error| error * error)
}

/// Counts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassTally {
    /// Examples with this label.
    pub count: usize,
    /// Examples predicted to be of this class.
    pub predicted: usize,
    /// Examples that are both.
    pub correct: usize,
    /// The sum of the NLL over the examples with this label.
    pub nll: f64,
}

impl ClassTally {
    /// The fraction of the class's examples that is predicted correctly; `None` without examples.
    pub fn recall(&self) -> Option<f64> {
        (self.count > 0).then(|| self.correct as f64 / self.count as f64)
    }

    /// The fraction of the predictions of this class that is correct; `None` without predictions.
    pub fn precision(&self) -> Option<f64> {
        (self.predicted > 0).then(|| self.correct as f64 / self.predicted as f64)
    }

    /// The NLL averaged over the class's examples; `None` without examples.
    pub fn mean_nll(&self) -> Option<f64> {
        (self.count > 0).then(|| self.nll / self.count as f64)
    }
}

/// The counts of each class, `[K]`, from predictions, labels and NLL of the examples, each `[N]`.
pub fn per_class(
    predictions: &[u32],
    labels: &[u32],
    nll: &[f64],
    classes: usize,
) -> Vec<ClassTally> {
    checks::labels(labels, predictions.len(), classes);
    checks::classes("predictions", predictions, classes);
    checks::same_shape("nll", nll.len(), labels.len());
    let mut tallies = vec![ClassTally::default(); classes];
    tally(&mut tallies, predictions, labels, nll);
    tallies
}

/// Adds examples to the counts of the classes.
pub(crate) fn tally(tallies: &mut [ClassTally], predictions: &[u32], labels: &[u32], nll: &[f64]) {
    for ((prediction, label), nll) in predictions.iter().zip(labels).zip(nll) {
        assert!(!nll.is_nan(), "nll contains a NaN");
        tallies[*prediction as usize].predicted += 1;
        let tally = &mut tallies[*label as usize];
        tally.count += 1;
        tally.nll += nll;
        tally.correct += usize::from(prediction == label);
    }
}

/// The confusion matrix: how often each label occurs with each prediction.
///
/// Only pairs that occur are stored: with many classes, `K²` counts would not fit in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    /// `K`.
    pub classes: usize,
    /// The number of examples of each (label, prediction) that occurs.
    pub counts: BTreeMap<(u32, u32), usize>,
}

impl Confusion {
    /// The confusion matrix of these labels and predictions, each `[N]`.
    ///
    /// ```
    /// # use aleator_metrics::classification::Confusion;
    /// let confusion = Confusion::new(&[0, 1, 1, 1], &[0, 1, 0, 0], 2);
    /// assert_eq!(confusion.count(0, 1), 2); // label 0, predicted as 1
    /// assert_eq!(confusion.count(1, 0), 0);
    /// ```
    pub fn new(predictions: &[u32], labels: &[u32], classes: usize) -> Self {
        checks::labels(labels, predictions.len(), classes);
        checks::classes("predictions", predictions, classes);
        let mut counts = BTreeMap::new();
        for (prediction, label) in predictions.iter().zip(labels) {
            *counts.entry((*label, *prediction)).or_insert(0) += 1;
        }
        Self { classes, counts }
    }

    /// The number of examples with this label and this prediction.
    pub fn count(&self, label: u32, prediction: u32) -> usize {
        self.counts.get(&(label, prediction)).copied().unwrap_or(0)
    }

    /// All counts, `[K, K]`: a row for each label, a column for each prediction.
    pub fn to_dense(&self) -> Vec<usize> {
        let mut dense = vec![0; self.classes * self.classes];
        for ((label, prediction), count) in &self.counts {
            dense[*label as usize * self.classes + *prediction as usize] = *count;
        }
        dense
    }
}
