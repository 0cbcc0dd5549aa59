//! Labels of one class: which class each example belongs to.

use aleator_run::Field;
use rayon::prelude::*;

use super::annotators;
use super::findings::{self, Findings, Label, WrongLabels, probability};
use super::pair_noise::{self, PairNoise};
use super::parts::{Example, Parts, Row};
use super::posterior::{Confusion, Counts, Evidence};
use super::readings::Readings;
use super::record::{AuditReading, Estimate, Issue};
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
        None => readings(parts, &given, settings, observer)?,
    };
    let Judged { posteriors, concentration, wrong, readings } = judged;
    let Parts { task, annotators, examples, parts } = parts;
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
        readings,
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
    readings: Vec<AuditReading>,
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
    Ok(Some(Judged { posteriors, concentration, wrong: None, readings: vec![] }))
}

/// Judges by all readings of the predictions, each as much as it counts.
fn readings(
    parts: &mut Parts,
    given: &[u32],
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Judged, ReportError> {
    let (examples, classes) = (parts.examples.len(), parts.task.class_names.len());
    let mut readings = Readings::learn(parts, given, settings, observer)?;
    let passes = Readings::last_passes(examples, classes, settings);
    let mut posteriors: Vec<Posterior> = vec![vec![]; examples];
    let mut sums = vec![];
    for reading in &mut readings.all {
        let (start, settings) = (reading.confusion.clone(), &reading.settings);
        reading.confusion = learn(parts, start, passes, settings, observer)?;
        let (confusion, weight) = (&reading.confusion, readings.any_wrong * reading.weight);
        let mut scores = vec![0.0; examples];
        each_piece(parts, settings, |rows, evidence| {
            let found: Vec<Posterior> = evidence
                .par_iter()
                .map(|evidence| with_classes(evidence, confusion.posterior(evidence).0))
                .collect();
            for (row, found) in rows.iter().zip(found) {
                scores[row.position] = 1.0 - probability(&found, given[row.position]);
                add(&mut posteriors[row.position], found, weight);
            }
        })?;
        sums.push((scores.iter().sum(), scores.iter().map(|score| score * (1.0 - score)).sum()));
    }
    for (posterior, given) in posteriors.iter_mut().zip(given) {
        add(posterior, vec![(*given, 1.0)], 1.0 - readings.any_wrong);
    }
    Ok(Judged {
        posteriors,
        concentration: None,
        wrong: Some(readings.estimate(&sums, examples)),
        readings: readings.record(&sums),
    })
}

fn with_classes(evidence: &Evidence, posterior: Vec<f64>) -> Posterior {
    evidence.candidates.iter().map(|(class, _)| *class).zip(posterior).collect()
}

/// Adds a weighted posterior to the sum of others; both are ascending by class.
fn add(sum: &mut Posterior, posterior: Posterior, weight: f64) {
    for (class, value) in posterior {
        match sum.binary_search_by_key(&class, |(other, _)| *other) {
            Ok(at) => sum[at].1 += weight * value,
            Err(at) => sum.insert(at, (class, weight * value)),
        }
    }
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
    let [mean, log_probs] = row.fields;
    let mean = mean.iter().map(|mean| f64::from(*mean) / row.temperature);
    Evidence::new(mean, log_probs, &row.example.labels, settings)
}
