//! Which classes are confused with which: in the labels, and as a model has learned it.

use std::collections::BTreeMap;

use aleator_covariance::RateSums;
use aleator_metrics::classification::argmax;
use aleator_run::{ExampleRow, Field, Predictions, RunError, SplitReader};

use crate::covariance::{Observer, Step, largest, pieces};

/// For each pair of classes, how often the second is named when the first is right.
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
    /// How often each label was given when another is true. Examples without a known true label
    /// do not count.
    pub fn of_labels<'a>(rows: impl IntoIterator<Item = &'a ExampleRow>, classes: usize) -> Self {
        let mut sums = RateSums::new(classes);
        for row in rows {
            let one = |label: &Option<Vec<u32>>| match label.as_deref() {
                Some([class]) => Some(*class as usize).filter(|class| *class < classes),
                _ => None,
            };
            if let (Some(given), Some(clean)) = (one(&row.label), one(&row.clean_label)) {
                sums.add_one(clean, given);
            }
        }
        Self::of(sums)
    }

    /// The probability of each label, averaged over the examples whose utility has its largest
    /// mean in one class: how often the model expects that class to be labelled as another.
    pub fn expected(predictions: &Predictions) -> Self {
        let classes = predictions.classes;
        let mut sums = RateSums::new(classes);
        let log_probs = predictions.log_probs.chunks_exact(classes);
        for (mean, log_probs) in predictions.mean.chunks_exact(classes).zip(log_probs) {
            add_expected(&mut sums, mean, log_probs);
        }
        Self::of(sums)
    }

    /// How likely each utility is to exceed that of the class with the largest mean, averaged
    /// over the examples of that class: the part of the confusions that the Normal explains.
    ///
    /// ```
    /// # use aleator_run::Predictions;
    /// # let predictions = Predictions {
    /// #     classes: 2, rank: 0, temperature: 1.0, log_probs: vec![-0.7, -0.7],
    /// #     log_probs_off: None, mean: vec![0.5, -0.5], diag_scale: Some(vec![1.0, 1.0]),
    /// #     loadings: None, loading_scale: None, shared_loadings: None, joint_log_probs: None,
    /// # };
    /// use aleator_report::confusion::Confusions;
    ///
    /// let learned = Confusions::by_noise(&predictions);
    /// assert!((learned.rate(0, 1) - 0.2398).abs() < 1e-4); // Φ(−1/√2)
    /// ```
    pub fn by_noise(predictions: &Predictions) -> Self {
        let mut sums = RateSums::new(predictions.classes);
        sums.add_flips(predictions);
        Self::of(sums)
    }

    /// The means of sums; the diagonal becomes zero.
    pub(crate) fn of(sums: RateSums) -> Self {
        Self { classes: sums.examples().len(), rates: sums.into_means() }
    }

    /// How often `to` is named when `from` is right.
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

/// Adds an example by its μ(x) and its log-probabilities, as [`Confusions::expected`] does.
pub(crate) fn add_expected(sums: &mut RateSums, mean: &[f32], log_probs: &[f32]) {
    sums.add(argmax(mean), log_probs.iter().map(|log_p| (*log_p as f64).exp()));
}

/// P(u_to > u_from) for each pair (from, to), averaged over the examples whose utility has its
/// largest mean in `from`; `None` where there are none.
pub(crate) fn flip_rates(
    reader: &mut SplitReader,
    pairs: impl IntoIterator<Item = (usize, usize)>,
    observer: Observer,
) -> Result<BTreeMap<(usize, usize), Option<f64>>, RunError> {
    // Of each `from`: its number of examples, and the sum of each `to`.
    let mut sums: BTreeMap<usize, (usize, Vec<(usize, f64)>)> = BTreeMap::new();
    for (from, to) in pairs {
        sums.entry(from).or_default().1.push((to, 0.0));
    }
    let tops = largest(reader, Field::Mean, observer)?;
    let total = tops.len();
    for rows in pieces(reader) {
        let (done, tops) = (rows.end, &tops[rows.clone()]);
        if tops.iter().any(|top| sums.contains_key(top)) {
            let predictions = reader.file.rows(rows)?;
            for (example, top) in tops.iter().enumerate() {
                let Some((examples, sums)) = sums.get_mut(top) else { continue };
                *examples += 1;
                for (to, sum) in sums {
                    *sum += predictions.flip_probability(example, *to, *top);
                }
            }
        }
        observer(Step { what: "examples: flips", done, total });
    }
    let mut rates = BTreeMap::new();
    for (from, (examples, sums)) in sums {
        let rate = |sum: f64| (examples > 0).then(|| sum / examples as f64);
        rates.extend(sums.into_iter().map(|(to, sum)| ((from, to), rate(sum))));
    }
    Ok(rates)
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
