//! How probable each class is to be true, when the input and the given labels are known.
//!
//! The utilities' mean μ says what an example is, with the noise taken out; the probabilities
//! p of the labels say what annotators make of it, with the noise left in. So
//!
//! P(true = c | x, said y) ∝ π_c(x) · Π_y P(y | c, x),  π = softmax(2 μ/τ),
//! P(y | c, x) = C_cy √p_y(x) / Σ_j C_cj √p_j(x).
//!
//! C is a confusion of the classes, learned by expectation maximisation from the labels of all
//! examples: annotators err toward the classes that are confused in general (C) and that are
//! plausible for this example (p, where Σ acts). The 2 sharpens μ, because softmax(μ/τ) is still
//! the law of a label and not of the truth; the root keeps a label from being counted twice, as
//! evidence for p and for the truth. `docs/audit.md` has the measurements.

use rayon::prelude::*;

/// Sharpens the prior.
const SHARPNESS: f64 = 2.0;
/// So much of the labels' law acts on a confusion.
const TEMPER: f64 = 0.5;
/// Classes that may be true, of each example; all others are too improbable to matter.
const CANDIDATES: usize = 16;
/// Classes whose confusions are told apart: a matrix of this side is 32 MB.
const PAIRWISE: usize = 2048;
/// An example's worth of confidence in what the matrix was before.
const SMOOTHING: f64 = 1.0;
/// The share of right labels at the start.
const RIGHT: f64 = 0.7;
/// Parts whose sums are added in their order, so that threads change nothing.
const PARTS: usize = 16;

/// What one example says.
#[derive(Clone, Debug)]
pub(super) struct Evidence<'a> {
    /// The classes that may be true, with their prior probabilities.
    pub candidates: Vec<(u32, f64)>,
    /// √p, `[K]`.
    tempered: Vec<f64>,
    total: f64,
    /// The labels that were given.
    said: &'a [u32],
}

impl<'a> Evidence<'a> {
    /// From μ/τ and log p, `[K]` each.
    pub fn new(mean: impl Iterator<Item = f64>, log_probs: &[f32], said: &'a [u32]) -> Self {
        let sharp: Vec<f64> = mean.map(|mean| SHARPNESS * mean).collect();
        let most = sharp.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut candidates: Vec<(u32, f64)> =
            (0..).zip(sharp.iter().map(|value| (value - most).exp())).collect();
        if candidates.len() > CANDIDATES {
            let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
            let (first, _, rest) = candidates.select_nth_unstable_by(CANDIDATES - 1, order);
            let missing: Vec<(u32, f64)> =
                rest.iter().filter(|(class, _)| said.contains(class)).copied().collect();
            let kept = first.len() + 1;
            candidates.truncate(kept);
            candidates.extend(missing);
            candidates.sort_unstable_by_key(|(class, _)| *class);
        }
        let sum: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        candidates.iter_mut().for_each(|(_, weight)| *weight /= sum);
        let tempered: Vec<f64> =
            log_probs.iter().map(|log_p| (TEMPER * f64::from(*log_p)).exp()).collect();
        let total = tempered.iter().sum();
        Self { candidates, tempered, total, said }
    }
}

/// Which class is named where another is true, up to the examples' own tendencies.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Confusion {
    /// C, `[K, K]`, rows are true classes.
    Pairs { classes: usize, weights: Vec<f64> },
    /// C_kk beside off-diagonals of 1, `[K]`, for very many classes.
    Classes(Vec<f64>),
}

impl Confusion {
    /// Where nothing is known yet.
    pub fn new(classes: usize) -> Self {
        let wrong = (1.0 - RIGHT) / (classes.max(2) - 1) as f64;
        if classes > PAIRWISE {
            return Self::Classes(vec![RIGHT / wrong; classes]);
        }
        let weight = |at: usize| if at / classes == at % classes { RIGHT } else { wrong };
        Self::Pairs { classes, weights: (0..classes * classes).map(weight).collect() }
    }

    fn weight(&self, truth: usize, said: usize) -> f64 {
        match self {
            Self::Pairs { classes, weights } => weights[truth * classes + said],
            Self::Classes(right) => {
                if truth == said {
                    right[truth]
                } else {
                    1.0
                }
            }
        }
    }

    /// Σ_j C_cj √p_j.
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
    /// probability of what was said.
    pub fn posterior(&self, evidence: &Evidence) -> (Vec<f64>, f64) {
        let log_weight = |(class, prior): &(u32, f64)| {
            let truth = *class as usize;
            let total = self.total(truth, evidence).ln();
            let said = evidence.said.iter().map(|said| {
                let said = *said as usize;
                (self.weight(truth, said) * evidence.tempered[said]).ln() - total
            });
            prior.ln() + said.sum::<f64>()
        };
        let logs: Vec<f64> = evidence.candidates.iter().map(log_weight).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            // No candidate could have been called so: the label says nothing.
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
    /// How often each class was said where another is true, by the posterior.
    seen: Confusion,
    /// The same by the confusion as it is.
    expected: Confusion,
    /// Σ log P(said).
    pub log_likelihood: f64,
}

impl Counts {
    /// Nothing yet.
    pub fn new(classes: usize) -> Self {
        let nothing = match Confusion::new(classes) {
            Confusion::Pairs { classes, weights } => {
                Confusion::Pairs { classes, weights: vec![0.0; weights.len()] }
            }
            Confusion::Classes(right) => Confusion::Classes(vec![0.0; right.len()]),
        };
        Self { seen: nothing.clone(), expected: nothing, log_likelihood: 0.0 }
    }

    /// Counts some examples, in parallel; the same bits for any number of threads.
    pub fn add_all(&mut self, evidence: &[Evidence], confusion: &Confusion, classes: usize) {
        let part = evidence.len().div_ceil(PARTS).max(1);
        let parts: Vec<Self> = evidence
            .par_chunks(part)
            .map(|evidence| {
                let mut counts = Self::new(classes);
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
                // Every label is impossible by the file: it says nothing of confusions.
                continue;
            }
            for said in evidence.said {
                self.seen.count(truth, *said as usize, probability);
            }
            let scale = probability * evidence.said.len() as f64 / total;
            self.expected.expect(truth, scale, evidence, confusion);
        }
    }

    /// The confusion under which what was seen is expected, one step of it.
    pub fn updated(&self, confusion: &Confusion) -> Confusion {
        let step = |weight: &f64, seen: &f64, expected: &f64, count: usize| {
            let prior = SMOOTHING / count as f64;
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
    fn count(&mut self, truth: usize, said: usize, probability: f64) {
        match self {
            Self::Pairs { classes, weights } => weights[truth * *classes + said] += probability,
            Self::Classes(right) => right[truth] += if truth == said { probability } else { 0.0 },
        }
    }

    /// `expected`: what labels `confusion` would give.
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
