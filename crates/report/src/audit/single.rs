//! Labels of one class: which class each example belongs to.

use aleator_run::Field;
use rayon::prelude::*;

use super::findings::{self, Findings, Label, WrongLabels};
use super::pair_noise::{self, PairNoise};
use super::parts::{Example, Parts, Row};
use super::posterior::{Confusion, Counts, Evidence};
use super::record::Issue;
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
    let posteriors = posteriors(parts, settings, observer)?;
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
    let mut wrong = WrongLabels::new(parts.len());
    let scores = examples.iter().zip(&issues);
    scores.for_each(|(example, issue)| wrong.add(example.part, issue.score));
    let joint = findings::joint(&labels);
    let found = Findings {
        classes: findings::classes(classes, &labels, &joint),
        pairs: findings::pairs(classes, &joint, noise.as_ref()),
        annotators: findings::annotators(annotators, &labels),
        wrong: wrong.estimate(),
        issues,
    };
    if let Some(kept) = kept {
        *kept = posteriors;
    }
    Ok(found)
}

/// The posterior of every example, in the order of the data.
fn posteriors(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Vec<Posterior>, ReportError> {
    let confusion = learn(parts, settings, observer)?;
    let mut posteriors = vec![vec![]; parts.examples.len()];
    each_piece(parts, settings, |rows, evidence| {
        let found: Vec<Posterior> = evidence
            .par_iter()
            .map(|evidence| {
                let (posterior, _) = confusion.posterior(evidence);
                let classes = evidence.candidates.iter().map(|(class, _)| *class);
                classes.zip(posterior).collect()
            })
            .collect();
        rows.iter().zip(found).for_each(|(row, found)| posteriors[row.position] = found);
    })?;
    Ok(posteriors)
}

/// C, by expectation maximisation.
fn learn(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Confusion, ReportError> {
    let mut confusion = Confusion::new(parts.task.class_names.len(), settings);
    let mut before = f64::NEG_INFINITY;
    for pass in 0..settings.passes {
        let mut counts = Counts::new(&confusion);
        each_piece(parts, settings, |_, evidence| counts.add_all(evidence, &confusion))?;
        confusion = counts.updated(&confusion, settings);
        let (done, total) = (pass + 1, settings.passes);
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
fn each_piece(
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
