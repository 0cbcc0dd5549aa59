//! From posteriors to findings: issues, classes, pairs, annotators.

use std::collections::BTreeMap;

use aleator_metrics::ranking::{auroc, average_precision};
use aleator_run::ExampleRow;

use super::annotators::ErrorRates;
use super::pair_noise::PairNoise;
use super::parts::Example;
use super::record::{
    AnnotatorFinding, Answer, ClassFinding, Consensus, ErrorComparison, Estimate, Issue, Known,
    PairFinding,
};
use super::single::Posterior;
use super::tables::CONFUSIONS;
use crate::covariance::Tie;

/// Up to this many classes all pairs are listed; with more, those with at least half an example.
const ALL_PAIRS: usize = 64;
const WORTH_LISTING: f64 = 0.5;

/// What is found about all labels.
pub(super) struct Findings {
    /// In the order of the data, or those most surely wrong first.
    pub issues: Vec<Issue>,
    pub classes: Vec<ClassFinding>,
    pub pairs: Vec<PairFinding>,
    pub annotators: Vec<AnnotatorFinding>,
    pub consensus: Vec<Consensus>,
    /// κ of the annotators' confusions, where they have their own.
    pub concentration: Option<f64>,
    pub wrong: Estimate,
    /// How the labels compare with planted errors.
    pub comparison: Option<ErrorComparison>,
}

/// An example with its label and the posterior of its true class.
pub(super) struct Label<'a> {
    pub example: &'a Example,
    pub given: u32,
    pub posterior: &'a Posterior,
}

impl Label<'_> {
    /// The most probable class other than the given one.
    pub fn suggested(&self) -> (u32, f64) {
        let others = self.posterior.iter().filter(|(other, _)| *other != self.given);
        most_probable(others).unwrap_or((u32::from(self.given == 0), 0.0))
    }

    /// The class that most annotators named; of equal ones the given label, then the first.
    fn majority(&self) -> u32 {
        let mut counts = BTreeMap::new();
        self.example.votes.iter().for_each(|(_, class)| *counts.entry(*class).or_insert(0) += 1);
        let most = counts.values().copied().max();
        let is_most = |class: &u32| counts.get(class).copied() == most;
        if most.is_none() || is_most(&self.given) {
            return self.given;
        }
        counts.keys().copied().find(is_most).unwrap_or(self.given)
    }

    /// Its row of `issues.csv`.
    pub fn issue(&self, tie: Option<Tie>) -> Issue {
        let (suggested, suggested_probability) = self.suggested();
        let given_probability = probability(self.posterior, self.given);
        Issue {
            id: self.example.row.id.clone(),
            path: self.example.path.clone(),
            given: Answer::Class(self.given),
            suggested: Answer::Class(suggested),
            given_probability,
            suggested_probability,
            score: 1.0 - given_probability,
            wrong: false,
            covariance: tie.map(|tie| tie.centred),
            correlation: tie.and_then(|tie| tie.correlation),
            truth: self.example.truth().map(Answer::Class),
        }
    }
}

/// The probability of a class; those that are no candidates have none.
pub(super) fn probability(posterior: &[(u32, f64)], class: u32) -> f64 {
    let found = posterior.iter().find(|(other, _)| *other == class);
    found.map_or(0.0, |(_, probability)| *probability)
}

/// The most probable class; of equal ones the first.
pub(super) fn most_probable<'a>(
    posterior: impl IntoIterator<Item = &'a (u32, f64)>,
) -> Option<(u32, f64)> {
    let known = posterior.into_iter().copied().filter(|(_, probability)| !probability.is_nan());
    known.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// How many labels are wrong, while they are counted.
pub(super) struct WrongLabels {
    /// Of each part: the sum of the probabilities of being wrong, and the number of labels.
    parts: Vec<(f64, usize)>,
    /// Σ s (1 − s), the variance of independent labels.
    chance: f64,
}

impl WrongLabels {
    pub fn new(parts: usize) -> Self {
        Self { parts: vec![(0.0, 0); parts], chance: 0.0 }
    }

    /// Counts a label of a part that is wrong with probability `score`.
    pub fn add(&mut self, part: usize, score: f64) {
        let (sum, size) = &mut self.parts[part];
        *sum += score;
        *size += 1;
        self.chance += score * (1.0 - score);
    }

    /// The sum of the probabilities. The bounds add the variance between parts to that of
    /// independent labels.
    pub fn estimate(&self) -> Estimate {
        let count: f64 = self.parts.iter().map(|(sum, _)| sum).sum();
        let all: f64 = self.parts.iter().map(|(_, size)| *size as f64).sum();
        let rate = count / all;
        let square = |(sum, size): &(f64, usize)| {
            let size = *size as f64;
            size / all * (sum / size - rate).powi(2)
        };
        let squares: f64 = self.parts.iter().filter(|(_, size)| *size > 0).map(square).sum();
        let spread = squares / (self.parts.len().max(2) - 1) as f64;
        let deviation = (self.chance + all * all * spread).sqrt();
        let bound = |sign: f64| (count + sign * 1.96 * deviation).clamp(0.0, all);
        Estimate { count, low: bound(-1.0), high: bound(1.0) }
    }
}

/// Sorts by score and marks as many issues as labels are estimated to be wrong.
pub(super) fn rank(issues: &mut [Issue], wrong: &Estimate) {
    // Stable, so that equal scores stay in the order of the data.
    issues.sort_by(|a, b| b.score.total_cmp(&a.score));
    let count = wrong.count.round() as usize;
    issues.iter_mut().take(count).for_each(|issue| issue.wrong = true);
}

/// How well the score finds the labels that are wrong; `None` unless all true labels are known.
pub(super) fn known(issues: &[Issue]) -> Option<Known> {
    let wrong: Option<Vec<bool>> =
        issues.iter().map(|issue| issue.truth.map(|truth| truth != issue.given)).collect();
    let wrong = wrong?;
    let scores: Vec<f64> = issues.iter().map(|issue| issue.score).collect();
    let count = wrong.iter().filter(|wrong| **wrong).count();
    let right = issues.iter().filter(|issue| issue.truth == Some(issue.suggested)).count();
    Some(Known {
        wrong: count,
        suggestions_right: right as f64 / count as f64,
        auroc: auroc(&scores, &wrong)?,
        average_precision: average_precision(&scores, &wrong)?,
    })
}

/// How many examples are expected of each pair (given, true).
pub(super) fn joint(labels: &[Label]) -> BTreeMap<(u32, u32), f64> {
    let mut joint = BTreeMap::new();
    for label in labels {
        for (truth, probability) in label.posterior {
            *joint.entry((label.given, *truth)).or_insert(0.0) += probability;
        }
    }
    joint
}

/// `classes.csv`.
pub(super) fn classes(
    count: usize,
    labels: &[Label],
    joint: &BTreeMap<(u32, u32), f64>,
) -> Vec<ClassFinding> {
    let (mut expected, mut missed) = (vec![0.0; count], vec![0.0; count]);
    let mut confused: Vec<Vec<(u32, f64)>> = vec![vec![]; count];
    for ((label, truth), weight) in joint {
        expected[*truth as usize] += weight;
        if label != truth {
            missed[*truth as usize] += weight;
            confused[*label as usize].push((*truth, *weight));
        }
    }
    let (mut given, mut wrong) = (vec![0_usize; count], vec![Some(0_usize); count]);
    for label in labels {
        given[label.given as usize] += 1;
        let wrong = &mut wrong[label.given as usize];
        let truth = label.example.truth();
        *wrong = wrong.zip(truth).map(|(wrong, truth)| wrong + usize::from(truth != label.given));
    }
    let finding = |class: usize| {
        let size = given[class] as f64;
        let mut confused = confused[class].clone();
        confused.sort_by(|a, b| b.1.total_cmp(&a.1));
        let wrong_labels: f64 = confused.iter().map(|(_, weight)| weight).sum();
        let shares =
            confused.iter().take(CONFUSIONS).map(|(to, weight)| (*to, share(*weight, size)));
        ClassFinding {
            class: class as u32,
            given: given[class],
            expected: expected[class],
            noise_rate: share(wrong_labels, size),
            missed_rate: share(missed[class], expected[class]),
            known_noise_rate: wrong[class].filter(|_| size > 0.0).map(|wrong| wrong as f64 / size),
            confused_with: shares.filter(|(_, share)| *share > 0.0).collect(),
        }
    };
    (0..count).map(finding).collect()
}

/// `pairs.csv`: pairs of different classes come first.
pub(super) fn pairs(
    classes: usize,
    joint: &BTreeMap<(u32, u32), f64>,
    noise: Option<&PairNoise>,
) -> Vec<PairFinding> {
    let finding = |(given, truth): (u32, u32), count: f64| {
        let noise = noise.filter(|_| given != truth);
        PairFinding {
            given,
            truth,
            count,
            flip_probability: noise.and_then(|noise| noise.flip(truth, given)),
            covariance: noise.map(|noise| noise.covariance(given, truth)),
            correlation: noise.and_then(|noise| noise.correlation(given, truth)),
        }
    };
    let mut pairs: Vec<PairFinding> = if classes <= ALL_PAIRS {
        let all = (0..classes as u32).flat_map(|a| (0..classes as u32).map(move |b| (a, b)));
        all.map(|pair| finding(pair, joint.get(&pair).copied().unwrap_or(0.0))).collect()
    } else {
        let listed = joint.iter().filter(|(_, count)| **count >= WORTH_LISTING);
        listed.map(|(pair, count)| finding(*pair, *count)).collect()
    };
    pairs.sort_by(|a, b| {
        (a.given == a.truth).cmp(&(b.given == b.truth)).then(b.count.total_cmp(&a.count))
    });
    pairs
}

/// `annotators.csv`: those who err most first.
pub(super) fn annotators(names: &[String], labels: &[Label]) -> Vec<AnnotatorFinding> {
    #[derive(Clone, Default)]
    struct Sums {
        annotations: usize,
        wrong: f64,
        /// Σ s (1 − s), the variance of independent labels.
        chance: f64,
        known: Option<usize>,
        confuses: BTreeMap<(u32, u32), f64>,
    }
    let empty = Sums { known: Some(0), ..Sums::default() };
    let mut sums = vec![empty; names.len()];
    for label in labels {
        let truth = label.example.truth();
        for (annotator, class) in &label.example.votes {
            let sums = &mut sums[*annotator as usize];
            sums.annotations += 1;
            let score = 1.0 - probability(label.posterior, *class);
            sums.wrong += score;
            sums.chance += score * (1.0 - score);
            sums.known =
                sums.known.zip(truth).map(|(wrong, truth)| wrong + usize::from(truth != *class));
            for (truth, probability) in label.posterior.iter().filter(|(truth, _)| truth != class) {
                *sums.confuses.entry((*truth, *class)).or_insert(0.0) += probability;
            }
        }
    }
    sums.iter_mut().for_each(|it| it.wrong = it.wrong.max(0.0));
    let counts: Vec<(f64, f64)> = sums.iter().map(|it| (it.wrong, it.annotations as f64)).collect();
    let rates = ErrorRates::of(&counts);
    let bounds = |rate: f64, deviation: f64| {
        [-1.96, 1.96].map(|width: f64| (rate + width * deviation).clamp(0.0, 1.0))
    };
    let finding = |(name, sums): (&String, Sums)| {
        let all = sums.annotations as f64;
        let (new, deviation) = rates.of_new_labels(sums.wrong, sums.chance, all);
        let mut confuses: Vec<(u32, u32, f64)> = sums
            .confuses
            .into_iter()
            .map(|((truth, given), count)| (truth, given, count))
            .collect();
        confuses.sort_by(|a, b| b.2.total_cmp(&a.2));
        confuses.truncate(CONFUSIONS);
        AnnotatorFinding {
            name: name.clone(),
            annotations: sums.annotations,
            error_rate: sums.wrong / all,
            error_rate_bounds: bounds(sums.wrong / all, sums.chance.max(0.0).sqrt() / all),
            new_error_rate: new,
            new_error_rate_bounds: bounds(new, deviation),
            known_error_rate: sums.known.map(|wrong| wrong as f64 / all),
            confuses,
        }
    };
    let active = names.iter().zip(sums).filter(|(_, sums)| sums.annotations > 0);
    let mut findings: Vec<AnnotatorFinding> = active.map(finding).collect();
    findings.sort_by(|a, b| b.error_rate.total_cmp(&a.error_rate));
    findings
}

/// `consensus.csv`: the most probable class of every example, where annotators are known.
pub(super) fn consensus(annotators: &[String], labels: &[Label]) -> Vec<Consensus> {
    if annotators.is_empty() {
        return vec![];
    }
    let consensus = |it: &Label| {
        let (label, probability) = most_probable(it.posterior).unwrap_or((it.given, 0.0));
        Consensus {
            id: it.example.row.id.clone(),
            label,
            probability: Some(probability),
            majority: it.majority(),
            annotations: it.example.votes.len(),
        }
    };
    labels.iter().map(consensus).collect()
}

/// The consensus with the examples that could not be judged, so that training finds all.
pub(super) fn with_unjudged(consensus: Vec<Consensus>, rows: &[ExampleRow]) -> Vec<Consensus> {
    if consensus.is_empty() {
        return consensus;
    }
    let mut judged = consensus.into_iter().peekable();
    let one = |row: &ExampleRow| {
        judged.next_if(|it| it.id == row.id).or_else(|| {
            let label = *row.label.as_ref()?.first()?;
            let id = row.id.clone();
            Some(Consensus { id, label, probability: None, majority: label, annotations: 0 })
        })
    };
    rows.iter().filter_map(one).collect()
}

/// `classes.csv` of classes that are on or off, from `[given][true]` of each.
pub(super) fn entry_classes(tables: &[[[f64; 2]; 2]]) -> Vec<ClassFinding> {
    let finding = |(class, [off, on]): (u32, &[[f64; 2]; 2])| {
        let given = on[0] + on[1];
        let expected = off[1] + on[1];
        ClassFinding {
            class,
            given: given.round() as usize,
            expected,
            noise_rate: share(on[0], given),
            missed_rate: share(off[1], expected),
            known_noise_rate: None,
            confused_with: vec![],
        }
    };
    (0..).zip(tables).map(finding).collect()
}

fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}
