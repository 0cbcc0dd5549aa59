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

use rayon::prelude::*;

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
    tempered: Vec<f64>,
    total: f64,
    /// The labels that it was given.
    labels: &'a [u32],
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
            let (first, _, rest) =
                candidates.select_nth_unstable_by(settings.candidates - 1, order);
            let missing: Vec<(u32, f64)> =
                rest.iter().filter(|(class, _)| labels.contains(class)).copied().collect();
            let kept = first.len() + 1;
            candidates.truncate(kept);
            candidates.extend(missing);
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
}

/// Which label is given where a class is true, apart from what is particular to an example.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Confusion {
    /// C, `[K, K]`, rows are true classes.
    Pairs { classes: usize, weights: Vec<f64> },
    /// C_kk where all off-diagonals are 1, `[K]`, for very many classes.
    Classes(Vec<f64>),
}

impl Confusion {
    /// The confusion to start from.
    pub fn new(classes: usize, settings: &AuditSettings) -> Self {
        let right = settings.initial_accuracy;
        let wrong = (1.0 - right) / (classes.max(2) - 1) as f64;
        if classes > settings.confusion_classes {
            return Self::Classes(vec![right / wrong; classes]);
        }
        let weight = |at: usize| if at / classes == at % classes { right } else { wrong };
        Self::Pairs { classes, weights: (0..classes * classes).map(weight).collect() }
    }

    /// All weights zero, to count in.
    fn zeros_like(&self) -> Self {
        match self {
            Self::Pairs { classes, weights } => {
                Self::Pairs { classes: *classes, weights: vec![0.0; weights.len()] }
            }
            Self::Classes(right) => Self::Classes(vec![0.0; right.len()]),
        }
    }

    fn weight(&self, truth: usize, label: usize) -> f64 {
        match self {
            Self::Pairs { classes, weights } => weights[truth * classes + label],
            Self::Classes(right) if truth == label => right[truth],
            Self::Classes(_) => 1.0,
        }
    }

    /// Σ_j C_cj p_j^b.
    fn total(&self, truth: usize, evidence: &Evidence) -> f64 {
        match self {
            Self::Pairs { classes, weights } => {
                let row = &weights[truth * classes..(truth + 1) * classes];
                row.iter().zip(&evidence.tempered).map(|(weight, root)| weight * root).sum()
            }
            Self::Classes(right) => {
                let own = evidence.tempered[truth];
                evidence.total - own + right[truth] * own
            }
        }
    }

    /// The probability of each candidate to be true, in their order, and the logarithm of the
    /// probability of the labels.
    pub fn posterior(&self, evidence: &Evidence) -> (Vec<f64>, f64) {
        let log_weight = |(class, prior): &(u32, f64)| {
            let truth = *class as usize;
            let total = self.total(truth, evidence).ln();
            let labels = evidence.labels.iter().map(|label| {
                let label = *label as usize;
                (self.weight(truth, label) * evidence.tempered[label]).ln() - total
            });
            prior.ln() + labels.sum::<f64>()
        };
        let logs: Vec<f64> = evidence.candidates.iter().map(log_weight).collect();
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
}

/// What one pass over all examples counts.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// How often each label was given where a class is true, by the posterior.
    seen: Confusion,
    /// The same by the confusion as it is.
    expected: Confusion,
    /// Σ log P(labels).
    pub log_likelihood: f64,
}

impl Counts {
    /// No examples yet.
    pub fn new(confusion: &Confusion) -> Self {
        let zeros = confusion.zeros_like();
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
        for part in parts {
            self.seen.add(&part.seen);
            self.expected.add(&part.expected);
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
                self.seen.count(truth, *label as usize, probability);
            }
            let scale = probability * evidence.labels.len() as f64 / total;
            self.expected.expect(truth, scale, evidence, confusion);
        }
    }

    /// One step toward the confusion under which the labels that were seen are expected.
    pub fn updated(&self, confusion: &Confusion, settings: &AuditSettings) -> Confusion {
        let step = |weight: &f64, seen: &f64, expected: &f64, count: usize| {
            let prior = settings.smoothing / count as f64;
            weight * (seen + prior) / (expected + prior)
        };
        match (confusion, &self.seen, &self.expected) {
            (
                Confusion::Pairs { classes, weights },
                Confusion::Pairs { weights: seen, .. },
                Confusion::Pairs { weights: expected, .. },
            ) => {
                let all = weights.iter().zip(seen.iter().zip(expected));
                let weights =
                    all.map(|(weight, (seen, expected))| step(weight, seen, expected, *classes));
                Confusion::Pairs { classes: *classes, weights: weights.collect() }
            }
            (Confusion::Classes(right), Confusion::Classes(seen), Confusion::Classes(expected)) => {
                let all = right.iter().zip(seen.iter().zip(expected));
                Confusion::Classes(
                    all.map(|(right, (seen, expected))| step(right, seen, expected, 1)).collect(),
                )
            }
            _ => unreachable!("counts have the form of their confusion"),
        }
    }
}

impl Confusion {
    fn add(&mut self, other: &Self) {
        let (sums, values) = match (self, other) {
            (Self::Pairs { weights: sums, .. }, Self::Pairs { weights: values, .. }) => {
                (sums, values)
            }
            (Self::Classes(sums), Self::Classes(values)) => (sums, values),
            _ => unreachable!("sums have one form"),
        };
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    /// `seen`: one label.
    fn count(&mut self, truth: usize, label: usize, probability: f64) {
        match self {
            Self::Pairs { classes, weights } => weights[truth * *classes + label] += probability,
            Self::Classes(right) => right[truth] += if truth == label { probability } else { 0.0 },
        }
    }

    /// `expected`: the labels that `confusion` would give.
    fn expect(&mut self, truth: usize, scale: f64, evidence: &Evidence, confusion: &Self) {
        match (self, confusion) {
            (Self::Pairs { classes, weights: sums }, Self::Pairs { weights, .. }) => {
                let row = truth * *classes..(truth + 1) * *classes;
                let terms = weights[row.clone()].iter().zip(&evidence.tempered);
                let sums = sums[row].iter_mut();
                sums.zip(terms).for_each(|(sum, (weight, root))| *sum += scale * weight * root);
            }
            (Self::Classes(sums), Self::Classes(right)) => {
                sums[truth] += scale * right[truth] * evidence.tempered[truth];
            }
            _ => unreachable!("sums have the form of their confusion"),
        }
    }
}
