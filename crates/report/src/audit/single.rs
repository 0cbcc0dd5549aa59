//! Labels of one class: which class each example belongs to.

use std::collections::BTreeMap;

use aleator_run::Field;
use rayon::prelude::*;

use super::annotators;
use super::arrays::require;
use super::comparison::{self, Bounds, Comparison, Source};
use super::findings::{self, Findings, Label, WrongLabels};
use super::pair_noise::{self, PairNoise};
use super::parts::{Example, Parts, Row};
use super::planted::{self, ErrorLaw, PlantedError};
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{ErrorComparison, Estimate, Issue};
use super::replaced;
use super::settings::AuditSettings;
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// The classes that an example may belong to, ascending, each with its probability.
pub(super) type Posterior = Vec<(u32, f64)>;

/// Judges every label; `kept` gets the posterior of every example, in the order of the data.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    kept: Option<&mut Vec<Posterior>>,
    observer: Observer,
) -> Result<Findings, ReportError> {
    let given: Vec<u32> = parts.examples.iter().map(Example::given).collect::<Result<_, _>>()?;
    let judged = match crowd(parts, settings, observer)? {
        Some(judged) => judged,
        None => planted(parts, &given, settings, observer)?,
    };
    let Judged { posteriors, concentration, wrong, comparison } = judged;
    let Parts { task, annotators, examples, parts, .. } = parts;
    let classes = task.class_names.len();
    let labels: Vec<Label> = examples
        .iter()
        .zip(given)
        .zip(&posteriors)
        .map(|((example, given), posterior)| Label { example, given, posterior })
        .collect();
    let pairs: Vec<(u32, u32)> =
        labels.iter().map(|label| (label.given, label.suggested().0)).collect();
    let ties = pair_noise::ties(parts, &pairs, observer)?;
    let noise = PairNoise::measure(parts, classes, &posteriors, observer)?;
    let issues: Vec<Issue> =
        labels.iter().zip(&ties).map(|(label, tie)| label.issue(*tie)).collect();
    let joint = findings::joint(&labels);
    let found = Findings {
        classes: findings::classes(classes, &labels, &joint),
        pairs: findings::pairs(classes, &joint, noise.as_ref()),
        annotators: findings::annotators(annotators, &labels),
        consensus: findings::consensus(annotators, &labels),
        concentration,
        wrong: wrong.unwrap_or_else(|| counted(examples, parts.len(), &issues)),
        comparison,
        issues,
    };
    if let Some(kept) = kept {
        *kept = posteriors;
    }
    Ok(found)
}

/// What the predictions say of every label.
struct Judged {
    /// Of every example, in the order of the data.
    posteriors: Vec<Posterior>,
    /// κ of the annotators' confusions, where they have their own.
    concentration: Option<f64>,
    /// The number of wrong labels; `None` where the scores alone say it.
    wrong: Option<Estimate>,
    /// How the labels compare with planted errors.
    comparison: Option<ErrorComparison>,
}

/// The sum of the scores.
fn counted(examples: &[Example], parts: usize, issues: &[Issue]) -> Estimate {
    let mut wrong = WrongLabels::new(parts);
    let scores = examples.iter().zip(issues);
    scores.for_each(|(example, issue)| wrong.add(example.part, issue.score));
    wrong.estimate()
}

/// Judges by several annotators, each with a confusion of their own: their labels say together what
/// is true. `None` where annotators are not known, or are too many.
fn crowd(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Option<Judged>, ReportError> {
    if parts.annotators.len() < 2 {
        return Ok(None);
    }
    let confusion = Confusion::new(parts.task.class_names.len(), settings);
    let confusion = learn(parts, confusion, settings.passes, settings, observer)?;
    let Some(crowd) = annotators::learn(parts, &confusion, settings, observer)? else {
        return Ok(None);
    };
    let mut posteriors = vec![vec![]; parts.examples.len()];
    each_piece(parts, settings, |rows, evidence| {
        let found: Vec<Posterior> = rows
            .par_iter()
            .zip(evidence)
            .map(|(row, evidence)| {
                let (posterior, _) = crowd.posterior(evidence, &row.example.votes);
                with_classes(evidence, posterior)
            })
            .collect();
        rows.iter().zip(found).for_each(|(row, found)| posteriors[row.position] = found);
    })?;
    let concentration = Some(crowd.concentration);
    Ok(Some(Judged { posteriors, concentration, wrong: None, comparison: None }))
}

/// Judges by comparison with planted errors.
fn planted(
    parts: &mut Parts,
    given: &[u32],
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Judged, ReportError> {
    let examples = parts.examples.len();
    let (confusion, judged) = out_of_sample(parts, given, settings, observer)?;
    let laws: Vec<ErrorLaw> = judged.iter().map(|one| one.law).collect();
    let rounds = planted::draw(parts, &confusion, settings, given, &laws)?;
    let mut doubts = vec![judged.iter().map(|one| one.signs.doubt()).sum()];
    for (sharpness, label_power) in OTHER_READINGS {
        let settings = AuditSettings { sharpness, label_power, ..*settings };
        doubts.push(doubted(parts, &confusion, given, &settings, observer)?);
    }
    let contradicted = judged.iter().filter(|one| one.is_contradicted).count();
    let bounds = Bounds {
        replaced: replaced::share(parts, given)? * examples as f64,
        least_doubted: doubts.iter().copied().fold(f64::INFINITY, f64::min),
        most_doubted: doubts.iter().copied().fold(contradicted as f64, f64::max),
    };
    let mut sources = vec![Source {
        given: judged.iter().map(|one| one.signs).collect(),
        kept: vec![],
        errors: rounds.iter().flatten().map(|error| error.signs).collect(),
        posteriors: judged.into_iter().map(|one| one.posterior).collect(),
    }];
    if let Some(dynamics) = &parts.dynamics {
        let (found, expected) = (dynamics.planted.len(), rounds.len());
        require(found == expected, "dynamics", || {
            format!(
                "planted must have the {expected} trainings on the sets of planted_labels, found \
                 {found}"
            )
        })?;
        let classes = parts.task.class_names.len();
        sources.push(dynamics.read(given, &rounds, classes, settings).into());
    }
    let comparison = Comparison::new(&sources, &rounds, doubts[0] / examples as f64);
    let (scores, counts) = comparison.scores(&sources);
    let weights = comparison.weights();
    let posterior = |(at, score): (usize, &f64)| {
        let parts = sources.iter().map(|source| &source.posteriors[at]).zip(&weights);
        combined(parts, given[at], *score)
    };
    Ok(Judged {
        posteriors: scores.par_iter().enumerate().map(posterior).collect(),
        concentration: None,
        wrong: Some(comparison::estimate(&scores, &counts, bounds)),
        comparison: Some(comparison.record(counts, bounds)),
    })
}

/// Other sharpnesses and label powers by which the doubt about the labels is summed up: errors that
/// do not depend on the example, and a truth that is clearer than the predictions.
const OTHER_READINGS: [(f64, f64); 2] = [(2.0, 0.0), (3.0, 0.5)];

/// The sum of the posterior probabilities of being wrong; C is learned again from `start`.
fn doubted(
    parts: &mut Parts,
    start: &Confusion,
    given: &[u32],
    settings: &AuditSettings,
    observer: Observer,
) -> Result<f64, ReportError> {
    // Its sum of doubt hardly changes after that, and it bounds an interval only.
    let passes = settings.passes.min(20);
    let confusion = learn(parts, start.clone(), passes, settings, observer)?;
    let mut sum = 0.0;
    each_piece(parts, settings, |rows, evidence| {
        let doubt = |(row, evidence): (&Row<2>, &Evidence)| {
            let posterior = with_classes(evidence, confusion.posterior(evidence).0);
            1.0 - findings::probability(&posterior, given[row.position])
        };
        let doubts: Vec<f64> = rows.par_iter().zip(evidence).map(doubt).collect();
        sum += doubts.iter().sum::<f64>();
    })?;
    Ok(sum)
}

/// C, and every example judged by it.
pub(super) fn out_of_sample(
    parts: &mut Parts,
    given: &[u32],
    settings: &AuditSettings,
    observer: Observer,
) -> Result<(Confusion, Vec<planted::Judged>), ReportError> {
    let confusion = Confusion::new(parts.task.class_names.len(), settings);
    let confusion = learn(parts, confusion, settings.passes, settings, observer)?;
    let mut judged: Vec<Option<planted::Judged>> = given.iter().map(|_| None).collect();
    each_piece(parts, settings, |rows, evidence| {
        let found: Vec<planted::Judged> = rows
            .par_iter()
            .zip(evidence)
            .map(|(row, evidence)| {
                let [_, log_probs] = row.fields;
                planted::judge(evidence, log_probs, &confusion, given[row.position])
            })
            .collect();
        rows.iter().zip(found).for_each(|(row, found)| judged[row.position] = Some(found));
    })?;
    Ok((confusion, judged.into_iter().flatten().collect()))
}

/// The labels of each round of planted errors, for trainings whose dynamics are evidence.
pub(super) fn planted_labels(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Vec<Vec<u32>>, ReportError> {
    let given: Vec<u32> = parts.examples.iter().map(Example::given).collect::<Result<_, _>>()?;
    let (confusion, judged) = out_of_sample(parts, &given, settings, observer)?;
    let laws: Vec<ErrorLaw> = judged.iter().map(|one| one.law).collect();
    let rounds = planted::draw(parts, &confusion, settings, &given, &laws)?;
    let labels = |errors: Vec<PlantedError>| {
        let mut labels = given.clone();
        errors.iter().for_each(|error| labels[error.example] = error.label);
        labels
    };
    Ok(rounds.into_iter().map(labels).collect())
}

/// One posterior of several, each as much as it counts, that calls the given label wrong with
/// probability `score`.
fn combined<'a>(
    parts: impl Iterator<Item = (&'a Posterior, &'a f64)>,
    given: u32,
    score: f64,
) -> Posterior {
    let mut logs: BTreeMap<u32, f64> = BTreeMap::new();
    let mut least = 0.0;
    for (posterior, weight) in parts {
        // A class that one source does not name is as improbable there as a probability can be.
        let floor = weight * 1e-12f64.ln();
        let known: BTreeMap<u32, f64> = posterior.iter().copied().collect();
        for (class, log) in &mut logs {
            *log += known.get(class).map_or(floor, |value| weight * value.max(1e-12).ln());
        }
        for (class, value) in known {
            logs.entry(class).or_insert_with(|| least + weight * value.max(1e-12).ln());
        }
        least += floor;
    }
    logs.remove(&given);
    let most = logs.values().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.values().map(|log| (log - most).exp()).sum();
    let mut all: Posterior =
        logs.into_iter().map(|(class, log)| (class, score * (log - most).exp() / sum)).collect();
    all.push((given, 1.0 - score));
    all.sort_unstable_by_key(|(class, _)| *class);
    all
}

pub(super) fn with_classes(evidence: &Evidence, posterior: Vec<f64>) -> Posterior {
    evidence.candidates.iter().map(|(class, _)| *class).zip(posterior).collect()
}

/// C, by expectation maximisation from a first guess.
fn learn(
    parts: &mut Parts,
    mut confusion: Confusion,
    passes: usize,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Confusion, ReportError> {
    let mut before = f64::NEG_INFINITY;
    for pass in 0..passes {
        let mut counts = Counts::new(&confusion);
        each_piece(parts, settings, |_, evidence| counts.add_all(evidence, &confusion))?;
        confusion = counts.updated(&confusion, settings);
        let (done, total) = (pass + 1, passes);
        observer(Step { what: "confusion of the labels", done, total });
        let change = (counts.log_likelihood - before) / parts.examples.len() as f64;
        if change.abs() < settings.tolerance {
            break;
        }
        before = counts.log_likelihood;
    }
    Ok(confusion)
}

/// Gives `take` some examples at a time, with what is known of them.
pub(super) fn each_piece(
    parts: &mut Parts,
    settings: &AuditSettings,
    mut take: impl FnMut(&[Row<2>], &[Evidence]),
) -> Result<(), ReportError> {
    parts.each_piece([Field::Mean, Field::LogProbs], |rows| {
        let evidence: Vec<Evidence> = rows.par_iter().map(|row| evidence(row, settings)).collect();
        take(rows, &evidence);
    })
}

fn evidence<'a>(row: &Row<'a, 2>, settings: &AuditSettings) -> Evidence<'a> {
    row_evidence(row, &row.example.labels, settings)
}

/// What is known of an example, if it had these labels.
pub(super) fn row_evidence<'a>(
    row: &Row<'_, 2>,
    labels: &'a [u32],
    settings: &AuditSettings,
) -> Evidence<'a> {
    let [mean, log_probs] = row.fields;
    let mean = mean.iter().map(|mean| f64::from(*mean) / row.temperature);
    Evidence::new(mean, log_probs, labels, settings)
}
