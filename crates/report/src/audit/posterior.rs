//! How probable each class is to be true, given the input and the labels of an example.
//!
//! The mean μ of the utilities says what an example is, without the noise; the probabilities p of
//! the labels say what annotators call it, with the noise. So
//!
//! P(true = c | x, labels y) ∝ π_c(x) · Π_y P(y | c, x),  π = softmax(a μ/τ),
//! P(y | c, x) = C_cy p_y(x)^b / Σ_j C_cj p_j(x)^b.
//!
//! C is a confusion of the classes, learned by expectation maximisation from the labels of all
//! examples: annotators err toward the classes that are confused in general (C) and that are
//! plausible for this example (p, where Σ acts). [`AuditSettings`] has a and b.

use std::ops::Range;

use rayon::prelude::*;

use super::annotators::rows_sum_to_one;
use super::settings::AuditSettings;

/// Sums are added in this many parts, in their order, so that the number of threads changes
/// nothing. Another number would change the last digits and nothing else.
const PARTS: usize = 16;

/// What is known of one example.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'a> {
    /// The classes that may be true, with their prior probabilities.
    pub candidates: Vec<(u32, f64)>,
    /// p^b, `[K]`.
    pub tempered: Vec<f64>,
    total: f64,
    /// The labels that it was given.
    pub labels: &'a [u32],
}

impl<'a> Evidence<'a> {
    /// From μ/τ and log p, `[K]` each.
    pub fn new(
        mean: impl Iterator<Item = f64>,
        log_probs: &[f32],
        labels: &'a [u32],
        settings: &AuditSettings,
    ) -> Self {
        let sharp: Vec<f64> = mean.map(|mean| settings.sharpness * mean).collect();
        let most = sharp.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut candidates: Vec<(u32, f64)> =
            (0..).zip(sharp.iter().map(|value| (value - most).exp())).collect();
        if candidates.len() > settings.candidates {
            let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
            candidates.select_nth_unstable_by(settings.candidates - 1, order);
            let rest = candidates[settings.candidates..].iter().copied();
            let labelled: Vec<(u32, f64)> =
                rest.filter(|(class, _)| labels.contains(class)).collect();
            candidates.truncate(settings.candidates);
            candidates.extend(labelled);
            candidates.sort_unstable_by_key(|(class, _)| *class);
        }
        let sum: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        candidates.iter_mut().for_each(|(_, weight)| *weight /= sum);
        let tempered: Vec<f64> = log_probs
            .iter()
            .map(|log_p| (settings.label_power * f64::from(*log_p)).exp())
            .collect();
        let total = tempered.iter().sum();
        Self { candidates, tempered, total, labels }
    }

    /// The same if errors depend on the class alone: b = 0.
    pub fn of_class_alone(&self) -> Self {
        let tempered = vec![1.0; self.tempered.len()];
        Self { total: tempered.len() as f64, tempered, ..self.clone() }
    }
}

/// Which label is given where a class is true, apart from what is particular to an example.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Confusion {
    form: Form,
    weights: Vec<f64>,
}

/// The weights that a [`Confusion`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// C, `[K, K]`, rows are true classes.
    Pairs { classes: usize },
    /// C_kk where all off-diagonals are 1, `[K]`, for very many classes.
    Diagonal,
}

impl Confusion {
    /// The confusion to start from.
    pub fn new(classes: usize, settings: &AuditSettings) -> Self {
        let right = settings.initial_accuracy;
        let wrong = (1.0 - right) / (classes.max(2) - 1) as f64;
        if classes > settings.confusion_classes {
            return Self { form: Form::Diagonal, weights: vec![right / wrong; classes] };
        }
        let weight = |at: usize| if at / classes == at % classes { right } else { wrong };
        let weights = (0..classes * classes).map(weight).collect();
        Self { form: Form::Pairs { classes }, weights }
    }

    /// Where the weight of a pair is held; `None` if it is 1.
    fn place(&self, truth: usize, label: usize) -> Option<usize> {
        match self.form {
            Form::Pairs { classes } => Some(truth * classes + label),
            Form::Diagonal => (truth == label).then_some(truth),
        }
    }

    pub fn weight(&self, truth: usize, label: usize) -> f64 {
        self.place(truth, label).map_or(1.0, |at| self.weights[at])
    }

    /// Where the weights of a true class are held, and p^b of the labels that they are for.
    fn row<'a>(&self, truth: usize, evidence: &'a Evidence) -> (Range<usize>, &'a [f64]) {
        match self.form {
            Form::Pairs { classes } => (truth * classes..(truth + 1) * classes, &evidence.tempered),
            Form::Diagonal => (truth..truth + 1, &evidence.tempered[truth..=truth]),
        }
    }

    /// Σ_j C_cj p_j^b.
    pub fn total(&self, truth: usize, evidence: &Evidence) -> f64 {
        let (row, tempered) = self.row(truth, evidence);
        let held = self.weights[row].iter().zip(tempered);
        let held: f64 = held.map(|(weight, root)| weight * root).sum();
        match self.form {
            Form::Pairs { .. } => held,
            Form::Diagonal => evidence.total - tempered[0] + held,
        }
    }

    /// The probability of each candidate to be true, in their order, and the logarithm of the
    /// probability of the labels.
    pub fn posterior(&self, evidence: &Evidence) -> (Vec<f64>, f64) {
        if let [label] = evidence.labels
            && let Some(found) = self.posterior_of(*label as usize, evidence)
        {
            return found;
        }
        let log_weight = |(class, prior): &(u32, f64)| {
            let truth = *class as usize;
            let total = self.total(truth, evidence).ln();
            let labels = evidence.labels.iter().map(|label| {
                let label = *label as usize;
                (self.weight(truth, label) * evidence.tempered[label]).ln() - total
            });
            prior.ln() + labels.sum::<f64>()
        };
        normalised(evidence, evidence.candidates.iter().map(log_weight).collect())
    }

    /// The same for one label without logarithms; `None` where products might be too small for
    /// that.
    fn posterior_of(&self, label: usize, evidence: &Evidence) -> Option<(Vec<f64>, f64)> {
        let tempered = evidence.tempered[label];
        let weight = |(class, prior): &(u32, f64)| {
            let truth = *class as usize;
            prior * (self.weight(truth, label) * tempered / self.total(truth, evidence))
        };
        let mut weights: Vec<f64> = evidence.candidates.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        if !(sum > LEAST_SUM && sum.is_finite()) {
            return None;
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Some((weights, sum.ln()))
    }

    /// C with rows that sum to one, `[K, K]`; `None` where it has no matrix.
    pub fn rows(&self) -> Option<Vec<f64>> {
        match self.form {
            Form::Pairs { classes } => Some(rows_sum_to_one(self.weights.clone(), classes)),
            Form::Diagonal => None,
        }
    }
}

/// Smaller sums may have lost terms to the range of f64.
const LEAST_SUM: f64 = 1e-200;

/// The probabilities of the candidates from the logarithms of their weights, and the logarithm of
/// the weights' sum.
pub(super) fn normalised(evidence: &Evidence, logs: Vec<f64>) -> (Vec<f64>, f64) {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        // No candidate could have this label: it is evidence for none of them.
        let prior = evidence.candidates.iter().map(|(_, prior)| *prior).collect();
        return (prior, f64::NEG_INFINITY);
    }
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    (weights.into_iter().map(|weight| weight / sum).collect(), most + sum.ln())
}

/// What one pass over all examples counts, for each weight of a [`Confusion`].
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// How often each label was given where a class is true, by the posterior.
    seen: Vec<f64>,
    /// The same by the confusion as it is.
    expected: Vec<f64>,
    /// Σ log P(labels).
    pub log_likelihood: f64,
}

impl Counts {
    /// No examples yet.
    pub fn new(confusion: &Confusion) -> Self {
        let zeros = vec![0.0; confusion.weights.len()];
        Self { seen: zeros.clone(), expected: zeros, log_likelihood: 0.0 }
    }

    /// Counts some examples, in parallel; the same bits for any number of threads.
    pub fn add_all(&mut self, evidence: &[Evidence], confusion: &Confusion) {
        let part = evidence.len().div_ceil(PARTS).max(1);
        let parts: Vec<Self> = evidence
            .par_chunks(part)
            .map(|evidence| {
                let mut counts = Self::new(confusion);
                evidence.iter().for_each(|one| counts.add(one, confusion));
                counts
            })
            .collect();
        let add = |sums: &mut [f64], values: &[f64]| {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        };
        for part in parts {
            add(&mut self.seen, &part.seen);
            add(&mut self.expected, &part.expected);
            self.log_likelihood += part.log_likelihood;
        }
    }

    fn add(&mut self, evidence: &Evidence, confusion: &Confusion) {
        let (posterior, log_likelihood) = confusion.posterior(evidence);
        self.log_likelihood += log_likelihood.max(f64::MIN);
        for ((class, _), probability) in evidence.candidates.iter().zip(posterior) {
            let truth = *class as usize;
            let total = confusion.total(truth, evidence);
            if total == 0.0 {
                // The model excludes every label: this tells nothing about confusions.
                continue;
            }
            for label in evidence.labels {
                if let Some(at) = confusion.place(truth, *label as usize) {
                    self.seen[at] += probability;
                }
            }
            let scale = probability * evidence.labels.len() as f64 / total;
            let (row, tempered) = confusion.row(truth, evidence);
            let terms = confusion.weights[row.clone()].iter().zip(tempered);
            let sums = self.expected[row].iter_mut();
            sums.zip(terms).for_each(|(sum, (weight, root))| *sum += scale * weight * root);
        }
    }

    /// One step toward the confusion under which the labels that were seen are expected.
    pub fn updated(&self, confusion: &Confusion, settings: &AuditSettings) -> Confusion {
        let prior = match confusion.form {
            Form::Pairs { classes } => settings.smoothing / classes as f64,
            Form::Diagonal => settings.smoothing,
        };
        let counts = self.seen.iter().zip(&self.expected);
        let step = |(weight, (seen, expected)): (&f64, (&f64, &f64))| {
            weight * (seen + prior) / (expected + prior)
        };
        let weights = confusion.weights.iter().zip(counts).map(step).collect();
        Confusion { form: confusion.form, weights }
    }
}
