//! The most probable set of labels under the joint likelihood.

use super::sampled::{Joint, LogSum, check_observed, for_each_sample, log_sigmoid};
use crate::draws::Sampling;
use crate::latent::{Latent, Temperature};

/// Which classes are on, and how probable it is that exactly these are.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelSet {
    /// `[K]`.
    pub on: Vec<bool>,
    /// log P(exactly this set), given the observed labels.
    pub log_prob: f64,
}

/// Samples whose own signs are starting points of the search.
const STARTS: usize = 16;

/// Utilities that a search holds: of very many classes it sees fewer samples, at least these.
const MOST_UTILITIES: usize = 1 << 20;
const FEWEST_SAMPLES: usize = 64;

/// Utilities over τ are cut off here: their exponentials and all products with weights are finite.
const LARGEST: f64 = 300.0;

/// The most probable set of labels of one example, given some observed ones.
///
/// The probability of a set is a mean of products over the samples. The search climbs by the best
/// change of one class from the set of the probable classes and from the signs of some samples, and
/// takes the highest point; no single change improves the result. For few classes it is almost
/// always the best of all 2^K sets. Of more than 1,000 classes fewer samples are used, 2²⁰/K and at
/// least 64, for the probability too.
///
/// ```
/// use aleator_kernels::{
///     multilabel, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling, Temperature,
/// };
///
/// // Either both labels are on or none is; the first alone is as probable as not.
/// let covariance =
///     Covariance::LowRank { diag_scale: &[0.1, 0.1], loadings: &[9.0, 9.0], rank: 1 };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 0, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 4000, draws, law };
/// let tau = Temperature::try_from(0.1).unwrap();
/// let best = multilabel::most_probable_set(&latent, tau, &sampling, 0, &[(0, true)]);
/// assert_eq!(best.on, [true, true]);
/// assert!(best.log_prob.exp() > 0.9);
/// ```
pub fn most_probable_set(
    latent: &Latent,
    temperature: Temperature,
    sampling: &Sampling,
    row: usize,
    observed: Joint,
) -> LabelSet {
    check_observed(observed, latent.classes);
    let tau = temperature.get() as f64;
    let samples = sampling.samples.min((MOST_UTILITIES / latent.classes).max(FEWEST_SAMPLES));
    let sampling = &Sampling { samples, ..*sampling };
    let mut utilities = vec![];
    for_each_sample(latent, sampling, row, |utility| {
        utilities.extend(utility.iter().map(|u| (*u as f64 / tau).clamp(-LARGEST, LARGEST)));
    });
    let search = Search::new(latent.classes, utilities, observed);
    let found = search.starts().into_iter().map(|start| search.climb(start));
    found.max_by(|a, b| a.log_prob.total_cmp(&b.log_prob)).expect("there is a start")
}

struct Search<'a> {
    classes: usize,
    /// u/τ, [S, K].
    utilities: Vec<f64>,
    /// exp(u/τ), [S, K]: what the probability of a sample gains where a class is switched on.
    odds: Vec<f64>,
    observed: Joint<'a>,
    /// log Σ_s P(observed ∣ u_s).
    evidence: f64,
}

impl<'a> Search<'a> {
    fn new(classes: usize, utilities: Vec<f64>, observed: Joint<'a>) -> Self {
        let odds = utilities.iter().map(|u| u.exp()).collect();
        let mut search = Self { classes, utilities, odds, observed, evidence: 0.0 };
        search.evidence = log_sum(search.evidence_of_samples());
        search
    }

    fn samples(&self) -> impl Iterator<Item = &[f64]> {
        self.utilities.chunks_exact(self.classes)
    }

    /// log P(observed ∣ u_s) of each sample.
    fn evidence_of_samples(&self) -> impl Iterator<Item = f64> {
        self.samples().map(|u| self.observed.iter().map(|(class, on)| term(u[*class], *on)).sum())
    }

    /// The classes that are on with more than even odds given what is observed, then the signs of
    /// samples, which stand evenly in the order of their weights under what is observed.
    fn starts(&self) -> Vec<Vec<bool>> {
        let mut total = vec![0.0; self.classes];
        let (mut passed, mut signs) = (0.0, vec![]);
        for (weight, u) in self.evidence_of_samples().zip(self.samples()) {
            let weight = (weight - self.evidence).exp();
            let probs = u.iter().map(|u| 1.0 / (1.0 + (-u).exp()));
            total.iter_mut().zip(probs).for_each(|(sum, prob)| *sum += weight * prob);
            passed += weight;
            if passed * STARTS as f64 > signs.len() as f64 + 0.5 {
                signs.push(u.iter().map(|u| *u > 0.0).collect());
            }
        }
        let probable: Vec<bool> = total.iter().map(|prob| *prob > 0.5).collect();
        let mut starts = [vec![probable], signs].concat();
        for (class, on) in self.observed {
            starts.iter_mut().for_each(|set| set[*class] = *on);
        }
        starts.sort();
        starts.dedup();
        starts
    }

    /// Changes one class after another, always the one that gains most, until none gains.
    fn climb(&self, mut on: Vec<bool>) -> LabelSet {
        let mut of_samples: Vec<f64> =
            self.samples().map(|u| u.iter().zip(&on).map(|(u, on)| term(*u, *on)).sum()).collect();
        loop {
            let log_prob = log_sum(of_samples.iter().copied());
            let Some(class) = self.best_change(&on, &of_samples) else {
                return LabelSet { on, log_prob: log_prob - self.evidence };
            };
            let sign = if on[class] { -1.0 } else { 1.0 };
            let changes = of_samples.iter_mut().zip(self.samples());
            changes.for_each(|(log_prob, u)| *log_prob += sign * u[class]);
            on[class] = !on[class];
        }
    }

    /// The class whose change raises the probability most, if one does.
    fn best_change(&self, on: &[bool], of_samples: &[f64]) -> Option<usize> {
        let largest = of_samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut changed = vec![0.0; self.classes];
        let mut total = 0.0;
        for (log_prob, odds) in of_samples.iter().zip(self.odds.chunks_exact(self.classes)) {
            let weight = (log_prob - largest).exp();
            total += weight;
            for ((sum, odds), on) in changed.iter_mut().zip(odds).zip(on) {
                *sum += if *on { weight / odds } else { weight * odds };
            }
        }
        let free = |class: &usize| self.observed.iter().all(|(known, _)| known != class);
        let best =
            (0..self.classes).filter(free).max_by(|a, b| changed[*a].total_cmp(&changed[*b]));
        // Beyond rounding, so that two equal sets do not take turns.
        best.filter(|class| changed[*class] > total * (1.0 + 1e-12))
    }
}

/// log P(class is on, or off) at a utility over τ.
fn term(utility: f64, on: bool) -> f64 {
    log_sigmoid(if on { utility } else { -utility })
}

fn log_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = LogSum::new();
    values.for_each(|value| sum.add(value));
    sum.log()
}
