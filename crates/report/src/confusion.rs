//! Which classes are taken for which: as the labels have it, and as a model learned it.

use aleator_metrics::classification::argmax;
use aleator_metrics::probability_above_zero;
use aleator_run::{ExampleRow, Predictions};

/// For each pair of classes, how often the second is named where the first is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Confusions {
    classes: usize,
    /// `[K, K]`; the diagonal is zero.
    rates: Vec<f64>,
}

/// One pair of [`Confusions`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The class that is right.
    pub from: usize,
    /// The class that is named.
    pub to: usize,
    /// How often.
    pub rate: f64,
}

impl Confusions {
    /// How often each label was given where another is true. Examples whose true label is not
    /// known do not count.
    pub fn of_labels<'a>(rows: impl IntoIterator<Item = &'a ExampleRow>, classes: usize) -> Self {
        let mut sums = Sums::new(classes);
        for row in rows {
            let one = |label: &Option<Vec<u32>>| match label.as_deref() {
                Some([class]) => Some(*class as usize).filter(|class| *class < classes),
                _ => None,
            };
            if let (Some(given), Some(clean)) = (one(&row.label), one(&row.clean_label)) {
                sums.examples[clean] += 1;
                sums.rates[clean * classes + given] += 1.0;
            }
        }
        sums.finish()
    }

    /// The probability of each label, averaged over the examples whose utility has its largest
    /// mean in one class: how often the model expects that class to be labelled as another.
    pub fn expected(predictions: &Predictions) -> Self {
        let classes = predictions.classes;
        let mut sums = Sums::new(classes);
        let log_probs = predictions.log_probs.chunks_exact(classes);
        for (mean, log_probs) in predictions.mean.chunks_exact(classes).zip(log_probs) {
            let top = argmax(mean);
            sums.examples[top] += 1;
            let row = &mut sums.rates[top * classes..(top + 1) * classes];
            row.iter_mut().zip(log_probs).for_each(|(sum, log_p)| *sum += (*log_p as f64).exp());
        }
        sums.finish()
    }

    /// How likely each utility is to exceed that of the class with the largest mean, averaged
    /// over the examples of that class: the part of the confusions that the Normal explains.
    ///
    /// ```
    /// # use aleator_run::Predictions;
    /// # let predictions = Predictions {
    /// #     classes: 2, rank: 0, temperature: 1.0, log_probs: vec![-0.7, -0.7],
    /// #     log_probs_off: None, mean: vec![0.5, -0.5], diag_scale: Some(vec![1.0, 1.0]),
    /// #     loadings: None, loading_scale: None, shared_loadings: None,
    /// # };
    /// use aleator_report::confusion::Confusions;
    ///
    /// let learned = Confusions::by_noise(&predictions);
    /// assert!((learned.rate(0, 1) - 0.2398).abs() < 1e-4); // Φ(−1/√2)
    /// ```
    pub fn by_noise(predictions: &Predictions) -> Self {
        let classes = predictions.classes;
        let mut sums = Sums::new(classes);
        for (example, mean) in predictions.mean.chunks_exact(classes).enumerate() {
            let top = argmax(mean);
            sums.examples[top] += 1;
            for class in (0..classes).filter(|class| *class != top) {
                let difference = predictions.difference(example, class, top);
                let above = probability_above_zero(difference.mean, difference.variance);
                sums.rates[top * classes + class] += above;
            }
        }
        sums.finish()
    }

    /// How often `to` is named where `from` is right.
    pub fn rate(&self, from: usize, to: usize) -> f64 {
        self.rates[from * self.classes + to]
    }

    /// All pairs, the most frequent first; ties by class.
    pub fn pairs(&self) -> Vec<Pair> {
        let all = (0..self.classes).flat_map(|from| (0..self.classes).map(move |to| (from, to)));
        let apart = all.filter(|(from, to)| from != to);
        let mut pairs: Vec<Pair> =
            apart.map(|(from, to)| Pair { from, to, rate: self.rate(from, to) }).collect();
        pairs.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(a.from.cmp(&b.from)));
        pairs
    }

    /// The mean over several runs of the same classes.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        let count = all.len() as f64;
        let mean = |at: usize| all.iter().map(|one| one.rates[at]).sum::<f64>() / count;
        Some(Self { classes: first.classes, rates: (0..first.rates.len()).map(mean).collect() })
    }
}

struct Sums {
    classes: usize,
    examples: Vec<usize>,
    rates: Vec<f64>,
}

impl Sums {
    fn new(classes: usize) -> Self {
        Self { classes, examples: vec![0; classes], rates: vec![0.0; classes * classes] }
    }

    fn finish(mut self) -> Confusions {
        for (from, row) in self.rates.chunks_exact_mut(self.classes).enumerate() {
            let examples = self.examples[from].max(1) as f64;
            row.iter_mut().for_each(|rate| *rate /= examples);
            row[from] = 0.0;
        }
        Confusions { classes: self.classes, rates: self.rates }
    }
}

#[cfg(test)]
mod tests {
    use aleator_run::Split;

    use super::*;

    fn row(label: u32, clean: u32) -> ExampleRow {
        let one = |class| Some(vec![class]);
        let id = String::new();
        ExampleRow { id, split: Split::Train, label: one(label), clean_label: one(clean) }
    }

    #[test]
    fn labels_are_counted_by_their_true_class() {
        let rows = [row(0, 0), row(1, 0), row(1, 0), row(1, 1), row(0, 2), row(2, 2)];
        let confusions = Confusions::of_labels(&rows, 3);
        assert_eq!(confusions.rate(0, 1), 2.0 / 3.0);
        assert_eq!(confusions.rate(2, 0), 0.5);
        assert_eq!(confusions.rate(1, 1), 0.0);
        let first: Vec<(usize, usize)> =
            confusions.pairs().iter().take(2).map(|pair| (pair.from, pair.to)).collect();
        assert_eq!(first, [(0, 1), (2, 0)]);
    }

    #[test]
    fn rows_without_a_true_label_do_not_count() {
        let unknown = ExampleRow { clean_label: None, ..row(1, 0) };
        assert_eq!(Confusions::of_labels(&[unknown], 2).rate(0, 1), 0.0);
    }
}
