//! Scores of examples that come batch by batch.

use super::{ClassSummary, Summary};
use crate::calibration::{ReliabilitySums, expected_calibration_error};
use crate::checks;
use crate::classification::{self, ClassTally, argmax, multilabel};
use crate::evaluation::{LogProbs, Truth};
use crate::ranking::{Bounded, EntryRanking};

/// Adds up a [`Summary`], one batch after the other; holds nothing of the size N × K.
///
/// Sums are in the order of the examples: the sizes of the batches change no bit. Average
/// precision is exact up to 2²⁴ (example, class) pairs. Beyond, their log p are counted in bins, and
/// the summary says how far the values may be off.
///
/// ```
/// use aleator_metrics::{LogProbs, Summary, SummaryAccumulator, Truth};
///
/// let (high, low) = (0.9f32.ln(), 0.1f32.ln());
/// let mut scores = SummaryAccumulator::of_one_class(2, 15);
/// for label in [0, 1] {
///     let batch = LogProbs { classes: 2, on: vec![high, low], off: None };
///     scores.add(&batch, &Truth::Classes(vec![label]));
/// }
/// assert_eq!(scores.finish(), Summary::single_label(&[high, low, high, low], 2, &[0, 1], 15));
/// ```
#[derive(Clone, Debug)]
pub struct SummaryAccumulator {
    classes: usize,
    examples: usize,
    nll: f64,
    brier: f64,
    reliability: ReliabilitySums,
    counts: Counts,
}

#[derive(Clone, Debug)]
enum Counts {
    OneClass {
        top1: usize,
        top5: usize,
        tallies: Vec<ClassTally>,
    },
    Multilabel {
        top1: usize,
        /// Examples in which exactly the positive classes are more likely on than off.
        subsets: usize,
        positive: Vec<usize>,
        nll: Vec<f64>,
        ranking: Box<EntryRanking>,
    },
}

impl SummaryAccumulator {
    /// For one class per example or soft targets, with `bins` reliability bins.
    pub fn of_one_class(classes: usize, bins: usize) -> Self {
        let tallies = vec![ClassTally::default(); classes];
        Self::new(classes, bins, Counts::OneClass { top1: 0, top5: 0, tallies })
    }

    /// For classes that are each positive or negative.
    pub fn of_multilabel(classes: usize, bins: usize) -> Self {
        let ranking = Box::new(EntryRanking::new(classes));
        let (positive, nll) = (vec![0; classes], vec![0.0; classes]);
        Self::new(classes, bins, Counts::Multilabel { top1: 0, subsets: 0, positive, nll, ranking })
    }

    fn new(classes: usize, bins: usize, counts: Counts) -> Self {
        let reliability = ReliabilitySums::new(bins);
        Self { classes, examples: 0, nll: 0.0, brier: 0.0, reliability, counts }
    }

    /// Adds examples.
    ///
    /// # Panics
    /// If the labels do not fit the probabilities, or the probabilities the accumulator, in kind or
    /// size.
    pub fn add(&mut self, log_probs: &LogProbs, truth: &Truth) {
        assert_eq!(log_probs.classes, self.classes, "log_probs must be [N, {}]", self.classes);
        match (&log_probs.off, truth) {
            (None, Truth::Classes(labels)) => self.add_labels(&log_probs.on, labels),
            (None, Truth::Soft(targets)) => self.add_soft(&log_probs.on, targets),
            (None, Truth::MultiHot(_)) => panic!("multilabel scores need log(1 - p)"),
            (Some(off), _) => {
                self.add_multilabel(&log_probs.on, off, &truth.multi_hot(self.classes));
            }
        }
    }

    pub(super) fn add_labels(&mut self, log_probs: &[f32], labels: &[u32]) {
        let nll = classification::example_nll(log_probs, self.classes, labels);
        for error in classification::squared_errors(log_probs, self.classes, labels) {
            self.brier += error;
        }
        self.reliability.add_labels(log_probs, self.classes, labels);
        self.tally(log_probs, labels, &nll);
    }

    pub(super) fn add_soft(&mut self, log_probs: &[f32], targets: &[f32]) {
        let nll = classification::example_nll_soft(log_probs, self.classes, targets);
        for error in classification::squared_errors_soft(log_probs, targets) {
            self.brier += error;
        }
        self.reliability.add_soft(log_probs, self.classes, targets);
        self.tally(log_probs, &classification::target_labels(targets, self.classes), &nll);
    }

    fn tally(&mut self, log_probs: &[f32], labels: &[u32], nll: &[f64]) {
        let Counts::OneClass { top1, top5, tallies } = &mut self.counts else {
            panic!("probabilities of one class per example were added to multilabel scores");
        };
        let predictions = classification::predictions(log_probs, self.classes);
        classification::tally(tallies, &predictions, labels, nll);
        *top1 += classification::top_k_hits(log_probs, self.classes, labels, 1);
        if self.classes > 5 {
            *top5 += classification::top_k_hits(log_probs, self.classes, labels, 5);
        }
        self.examples += labels.len();
        nll.iter().for_each(|nll| self.nll += nll);
    }

    pub(super) fn add_multilabel(&mut self, log_on: &[f32], log_off: &[f32], multi_hot: &[bool]) {
        let Counts::Multilabel { top1, subsets, positive, nll, ranking } = &mut self.counts else {
            panic!("multilabel probabilities were added to scores of one class per example");
        };
        let classes = self.classes;
        self.examples += multilabel::check(log_on, log_off, classes, multi_hot);
        let rows = log_on.chunks(classes).zip(log_off.chunks(classes));
        for ((on, off), hot) in rows.zip(multi_hot.chunks(classes)) {
            *top1 += usize::from(hot[argmax(on)]);
            let (mut of_example, mut is_subset) = (0.0, true);
            for (class, ((on, off), is_on)) in on.iter().zip(off).zip(hot).enumerate() {
                let loss = multilabel::loss(*on, *off, *is_on);
                of_example += loss;
                nll[class] += loss;
                positive[class] += usize::from(*is_on);
                is_subset &= (on > off) == *is_on;
                self.brier += multilabel::squared_error(*on, *off, *is_on);
                self.reliability.add_entry(*on, *is_on);
            }
            self.nll += of_example;
            *subsets += usize::from(is_subset);
        }
        ranking.add(log_on, multi_hot);
    }

    /// The scores of all examples.
    ///
    /// # Panics
    /// If no example was added.
    pub fn finish(self) -> Summary {
        checks::examples("log_probs", self.examples * self.classes, self.classes);
        let mean = |sum: f64| sum / self.examples as f64;
        let reliability = self.reliability.finish();
        let mut summary = Summary {
            examples: self.examples,
            top1: 0.0,
            top5: None,
            nll: mean(self.nll),
            brier: mean(self.brier),
            ece: expected_calibration_error(&reliability),
            gap: None,
            gap_error: None,
            mean_ap: None,
            mean_ap_error: None,
            subset_accuracy: None,
            per_class: vec![],
            reliability,
        };
        match self.counts {
            Counts::OneClass { top1, top5, tallies } => {
                summary.top1 = mean(top1 as f64);
                summary.top5 = (self.classes > 5).then(|| mean(top5 as f64));
                summary.per_class = tallies.iter().enumerate().map(of_tally).collect();
            }
            Counts::Multilabel { top1, subsets, positive, nll, ranking } => {
                let (gap, of_classes) = ranking.finish();
                let known: Vec<Bounded> = of_classes.iter().copied().flatten().collect();
                let over_known = |read: fn(&Bounded) -> f64| {
                    let sum = known.iter().map(read).sum::<f64>();
                    (!known.is_empty()).then(|| sum / known.len() as f64)
                };
                summary.top1 = mean(top1 as f64);
                summary.subset_accuracy = Some(mean(subsets as f64));
                summary.gap = gap.map(|gap| gap.value);
                summary.gap_error = gap.map(|gap| gap.error).filter(inexact);
                summary.mean_ap = over_known(|ap| ap.value);
                summary.mean_ap_error = over_known(|ap| ap.error).filter(inexact);
                let each = nll.into_iter().zip(positive).zip(of_classes).enumerate();
                let of_class =
                    |(class, ((nll, count), ap)): (_, ((f64, _), Option<Bounded>))| ClassSummary {
                        class,
                        count,
                        top1: None,
                        precision: None,
                        nll: Some(mean(nll)),
                        ap: ap.map(|ap| ap.value),
                    };
                summary.per_class = each.map(of_class).collect();
            }
        }
        summary
    }
}

fn of_tally((class, tally): (usize, &ClassTally)) -> ClassSummary {
    ClassSummary {
        class,
        count: tally.count,
        top1: tally.recall(),
        precision: tally.precision(),
        nll: tally.mean_nll(),
        ap: None,
    }
}

fn inexact(error: &f64) -> bool {
    *error > 0.0
}
