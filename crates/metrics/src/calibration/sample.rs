//! The examples that a temperature is fitted to.

use crate::evaluation::{LogProbs, Truth};

/// Probabilities and labels of a split, which come batch by batch: all of them up to 2²⁴
/// probabilities, else those of every n-th example.
///
/// ```
/// use aleator_metrics::{LogProbs, TemperatureSample, Truth};
///
/// // 99 % confident each time, and correct three times out of four.
/// let mut sample = TemperatureSample::new(4, 2);
/// for label in [0, 0, 0, 1] {
///     let batch = LogProbs { classes: 2, on: vec![0.99f32.ln(), 0.01f32.ln()], off: None };
///     sample.add(&batch, &Truth::Classes(vec![label]));
/// }
/// assert!((sample.fit() - 99f64.ln() / 3f64.ln()).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct TemperatureSample {
    every: usize,
    /// Examples that were added.
    seen: usize,
    held: Option<(LogProbs, Truth)>,
}

impl TemperatureSample {
    /// For a split of `examples` examples.
    pub fn new(examples: usize, classes: usize) -> Self {
        Self::within(1 << 24, examples, classes)
    }

    fn within(most: usize, examples: usize, classes: usize) -> Self {
        Self { every: (examples * classes).div_ceil(most).max(1), seen: 0, held: None }
    }

    /// Adds examples.
    ///
    /// # Panics
    /// If labels or probabilities are of another kind than before.
    pub fn add(&mut self, log_probs: &LogProbs, truth: &Truth) {
        let classes = log_probs.classes;
        let examples = log_probs.on.len() / classes;
        let first = self.seen.next_multiple_of(self.every) - self.seen;
        let rows: Vec<usize> = (first..examples).step_by(self.every).collect();
        self.seen += examples;
        let empty = || (log_probs.select(&[]), truth.select(classes, &[]));
        let (held, labels) = self.held.get_or_insert_with(empty);
        let new = log_probs.select(&rows);
        held.on.extend(new.on);
        if let (Some(held), Some(new)) = (&mut held.off, new.off) {
            held.extend(new);
        }
        match (labels, truth.select(classes, &rows)) {
            (Truth::Classes(labels), Truth::Classes(new)) => labels.extend(new),
            (Truth::Soft(targets), Truth::Soft(new)) => targets.extend(new),
            (Truth::MultiHot(hot), Truth::MultiHot(new)) => hot.extend(new),
            _ => panic!("labels of one split are of one kind"),
        }
    }

    /// The temperature for which the held examples have the lowest NLL.
    ///
    /// # Panics
    /// If no example was added.
    pub fn fit(&self) -> f64 {
        let (log_probs, truth) = self.held.as_ref().expect("a split has examples");
        log_probs.fit_temperature(truth)
    }
}

impl LogProbs {
    fn select(&self, rows: &[usize]) -> Self {
        let pick = |values: &Vec<f32>| select(values, self.classes, rows);
        Self { classes: self.classes, on: pick(&self.on), off: self.off.as_ref().map(pick) }
    }
}

impl Truth {
    fn select(&self, classes: usize, rows: &[usize]) -> Self {
        match self {
            Self::Classes(labels) => Self::Classes(select(labels, 1, rows)),
            Self::Soft(targets) => Self::Soft(select(targets, classes, rows)),
            Self::MultiHot(hot) => Self::MultiHot(select(hot, classes, rows)),
        }
    }
}

/// Rows of a matrix with `width` columns.
fn select<T: Copy>(values: &[T], width: usize, rows: &[usize]) -> Vec<T> {
    rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_example_is_held_whatever_the_batches_are() {
        let all: Vec<f32> = (0..20).map(|at| -1.0 - at as f32).collect();
        for size in [1, 3, 10] {
            let mut sample = TemperatureSample::within(7, 10, 2);
            for (at, on) in all.chunks(2 * size).enumerate() {
                let log_probs = LogProbs { classes: 2, on: on.to_vec(), off: None };
                let labels = (at * size..at * size + on.len() / 2).map(|row| row as u32);
                sample.add(&log_probs, &Truth::Classes(labels.collect()));
            }
            let (log_probs, truth) = sample.held.unwrap();
            assert_eq!(log_probs.on, [-1.0, -2.0, -7.0, -8.0, -13.0, -14.0, -19.0, -20.0]);
            assert_eq!(truth, Truth::Classes(vec![0, 3, 6, 9]));
        }
    }
}
