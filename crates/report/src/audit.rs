//! Which labels are wrong, and what they should be.
//!
//! [`analyse`] reads the folds of a cross-fitted recipe: run directories whose test splits are
//! together all of the training data, each judged by a model that never saw its labels.

mod findings;
mod folds;
mod multilabel;
mod pair_noise;
mod posterior;
mod record;
mod single;
mod tables;

use std::path::PathBuf;

use aleator_run::{ExampleRow, Link, RunError};

pub use folds::{Source, SourceExample};
pub use record::{
    AnnotatorFinding, Answer, Audit, AuditSummary, ClassFinding, Estimate, Issue, Known,
    PairFinding,
};

use crate::covariance::Observer;
use crate::error::ReportError;
use folds::{Folds, Judged};
use pair_noise::PairNoise;

/// By what labels are ranked: the posterior probability that they are wrong.
const SCORE: &str = "posterior";

/// Judges every label of a source by the folds at `dirs`.
///
/// # Errors
/// When a run is not evaluated or damaged, the runs are not of one task, or the source has
/// changed.
pub fn analyse(
    dirs: &[PathBuf],
    source: &Source,
    observer: Observer,
) -> Result<Audit, ReportError> {
    let mut folds = Folds::open(dirs, source)?;
    match folds.info.link {
        Link::Softmax => single_labels(&mut folds, source, observer),
        Link::Sigmoid => entries(&mut folds, source, observer),
    }
}

fn single_labels(
    folds: &mut Folds,
    source: &Source,
    observer: Observer,
) -> Result<Audit, ReportError> {
    let given: Vec<u32> = folds.examples.iter().map(one_class).collect::<Result<_, _>>()?;
    let posteriors = single::judge(folds, observer)?;
    let suggestion = |(given, posterior): (&u32, &single::Posterior)| {
        (*given, findings::likeliest_other(posterior, *given).0)
    };
    let suggested: Vec<(u32, u32)> = given.iter().zip(&posteriors).map(suggestion).collect();
    let ties = pair_noise::ties(folds, &suggested, observer)?;
    let noise = PairNoise::measure(folds, &posteriors, observer)?;
    let mut issues = findings::issues(folds, &given, &posteriors, &ties);
    let wrong = findings::estimate(folds, &issues);
    findings::rank(&mut issues, &wrong);
    let joint = findings::joint(&given, &posteriors);
    Ok(Audit {
        summary: summary(folds, issues.len(), wrong, findings::known(&issues)),
        classes: findings::classes(folds, &given, &joint),
        pairs: findings::pairs(folds.classes(), &joint, noise.as_ref()),
        annotators: findings::annotators(folds, &source.annotators, &posteriors),
        examples: rows(folds, source),
        issues,
    })
}

fn entries(folds: &mut Folds, source: &Source, observer: Observer) -> Result<Audit, ReportError> {
    let judged = multilabel::judge(folds, observer)?;
    let wrong = findings::bounds(&judged.wrong, judged.chance);
    let mut issues = judged.issues;
    findings::rank(&mut issues, &wrong);
    Ok(Audit {
        summary: summary(folds, judged.labels, wrong, None),
        classes: findings::entry_classes(&judged.tables),
        pairs: vec![],
        annotators: vec![],
        examples: rows(folds, source),
        issues,
    })
}

fn summary(folds: &Folds, labels: usize, wrong: Estimate, known: Option<Known>) -> AuditSummary {
    AuditSummary {
        format: AuditSummary::FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        link: folds.info.link,
        noise: folds.info.noise,
        fingerprint: folds.info.fingerprint.clone(),
        class_names: folds.info.class_names.clone(),
        folds: folds.folds.len(),
        score: SCORE.to_string(),
        examples: folds.examples.len(),
        labels,
        wrong,
        known,
    }
}

/// All examples of the source, also those whose images could not be judged.
fn rows(folds: &Folds, source: &Source) -> Vec<ExampleRow> {
    // All of them are training data; that each was a fold's test split once says nothing.
    let split = aleator_run::Split::Train;
    let mut judged = folds.examples.iter().peekable();
    let row = |example: &SourceExample| match judged.next_if(|it| it.row.id == example.id) {
        Some(judged) => ExampleRow { split, ..judged.row.clone() },
        None => ExampleRow {
            id: example.id.clone(),
            split,
            label: Some(example.label.clone()),
            clean_label: None,
        },
    };
    source.examples.iter().map(row).collect()
}

/// The given label, which must be one class.
fn one_class(judged: &Judged) -> Result<u32, ReportError> {
    match judged.row.label.as_deref() {
        Some([class]) => Ok(*class),
        _ => Err(RunError::Damaged {
            path: "examples.csv".into(),
            message: format!("example {:?} must have a label of one class", judged.row.id),
        }
        .into()),
    }
}
