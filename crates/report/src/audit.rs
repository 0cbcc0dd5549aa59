//! Which labels are wrong, and what they should be.
//!
//! [`judge`] is a pure function of labels and of what a model predicts for examples that it was
//! not trained on. The model may be any model; where it gives means and covariances of utilities
//! besides probabilities, as ours do, these are used too. [`analyse`] does the same with the folds
//! of a cross-fitted recipe: run directories whose test splits are together all of the data.

mod arrays;
mod files;
mod findings;
mod folds;
mod in_memory;
mod multilabel;
mod pair_noise;
mod parts;
mod posterior;
mod record;
mod self_confidence;
mod settings;
mod single;
mod tables;

use std::path::PathBuf;

use aleator_run::{ExampleRow, Link};

pub use arrays::{AuditInput, AuditLabels, ModelOutput};
pub use files::ProbabilityFiles;
pub use folds::{Source, SourceExample};
pub use record::{
    AnnotatorFinding, Answer, Audit, AuditSummary, ClassFinding, Estimate, Issue, Known,
    PairFinding,
};
pub use settings::AuditSettings;

use crate::covariance::Observer;
use crate::error::ReportError;
use findings::Judged;
use pair_noise::PairNoise;
use parts::{Parts, Task};

/// The name of the score that labels are ranked by: the posterior probability of being wrong.
const SCORE: &str = "posterior";

/// An audit together with the posterior of every example, not only of the listed issues.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The findings, as they are written to a directory.
    pub audit: Audit,
    /// For each example the classes that may be true, ascending, with their probabilities; classes
    /// that are not listed have none. Where each class is on or off: all classes, with their
    /// probabilities to be on.
    pub posteriors: Vec<Vec<(u32, f64)>>,
}

impl Judgement {
    /// The posterior as a matrix, `[N, K]`.
    pub fn posterior_matrix(&self) -> Vec<f64> {
        let classes = self.audit.summary.class_names.len();
        let mut matrix = vec![0.0; self.posteriors.len() * classes];
        for (row, posterior) in matrix.chunks_exact_mut(classes).zip(&self.posteriors) {
            posterior.iter().for_each(|(class, value)| row[*class as usize] = *value);
        }
        matrix
    }
}

/// Judges every label by predictions that were made without it.
///
/// ```
/// use aleator_report::audit::{Answer, AuditInput, AuditLabels, AuditSettings, ModelOutput, judge};
///
/// // Probabilities of any model, each row from a model that was not trained on that example.
/// let probabilities: [[f32; 2]; 5] =
///     [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.95, 0.05]];
/// let log_probs = probabilities.iter().flatten().map(|p| p.ln()).collect();
/// let input = AuditInput::new(
///     vec!["cat".to_string(), "dog".to_string()],
///     AuditLabels::Single(vec![0, 0, 1, 1, 1]),
///     ModelOutput::LogProbs(log_probs),
/// );
/// let judgement = judge(input, &AuditSettings::STANDARD, &mut |_| {})?;
/// let first = &judgement.audit.issues[0];
/// assert_eq!(first.id, "4");
/// assert_eq!((first.given, first.suggested), (Answer::Class(1), Answer::Class(0)));
/// assert_eq!(judgement.posterior_matrix().len(), 5 * 2);
/// # Ok::<(), aleator_report::ReportError>(())
/// ```
///
/// # Errors
/// When the input does not fit together or holds impossible numbers; the message names the field,
/// the row and what was expected.
pub fn judge(
    input: AuditInput,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Judgement, ReportError> {
    let arrays::Checked { mut parts, annotators, self_confidence, folds } =
        input.check(settings)?;
    let rows: Vec<ExampleRow> = parts.examples.iter().map(|example| example.row.clone()).collect();
    let mut posteriors = vec![];
    let mut audit =
        conclude(&mut parts, &annotators, rows, settings, Some(&mut posteriors), observer)?;
    audit.summary.folds = folds;
    audit.summary.self_confidence = self_confidence;
    Ok(Judgement { audit, posteriors })
}

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
    let mut parts = Parts::open(dirs, source)?;
    let rows = source.rows(&parts.examples);
    conclude(&mut parts, &source.annotators, rows, &AuditSettings::STANDARD, None, observer)
}

/// The one judgement, whatever the predictions come from; `rows` are all examples of the data.
fn conclude(
    parts: &mut Parts,
    annotators: &[String],
    rows: Vec<ExampleRow>,
    settings: &AuditSettings,
    posteriors: Option<&mut Vec<Vec<(u32, f64)>>>,
    observer: Observer,
) -> Result<Audit, ReportError> {
    match parts.task.link {
        Link::Softmax => {
            let (audit, found) = single_labels(parts, annotators, rows, settings, observer)?;
            if let Some(posteriors) = posteriors {
                *posteriors = found;
            }
            Ok(audit)
        }
        Link::Sigmoid => entries(parts, rows, settings, posteriors, observer),
    }
}

fn single_labels(
    parts: &mut Parts,
    annotators: &[String],
    rows: Vec<ExampleRow>,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<(Audit, Vec<single::Posterior>), ReportError> {
    let given: Vec<u32> =
        parts.examples.iter().map(parts::Example::given).collect::<Result<_, _>>()?;
    let posteriors = single::judge(parts, settings, observer)?;
    let Parts { task, examples, parts } = parts;
    let classes = task.class_names.len();
    let judged: Vec<Judged> = examples
        .iter()
        .zip(given)
        .zip(&posteriors)
        .map(|((example, given), posterior)| Judged { example, given, posterior })
        .collect();
    let pairs: Vec<(u32, u32)> =
        judged.iter().map(|label| (label.given, label.suggested().0)).collect();
    let ties = pair_noise::ties(parts, &pairs, observer)?;
    let noise = PairNoise::measure(parts, classes, &posteriors, observer)?;
    let mut issues: Vec<Issue> =
        judged.iter().zip(&ties).map(|(label, tie)| label.issue(*tie)).collect();
    let wrong = findings::estimate(parts.len(), examples, &issues);
    findings::rank(&mut issues, &wrong);
    let joint = findings::joint(&judged);
    let counted = Counted { folds: parts.len(), examples: examples.len(), labels: issues.len() };
    let audit = Audit {
        summary: summary(task, settings, &counted, wrong, findings::known(&issues)),
        classes: findings::classes(classes, &judged, &joint),
        pairs: findings::pairs(classes, &joint, noise.as_ref()),
        annotators: findings::annotators(annotators, &judged),
        examples: rows,
        issues,
    };
    Ok((audit, posteriors))
}

fn entries(
    parts: &mut Parts,
    rows: Vec<ExampleRow>,
    settings: &AuditSettings,
    mut posteriors: Option<&mut Vec<Vec<(u32, f64)>>>,
    observer: Observer,
) -> Result<Audit, ReportError> {
    if let Some(posteriors) = &mut posteriors {
        **posteriors = vec![vec![]; parts.examples.len()];
    }
    let mut keep = |at: usize, class: usize, on: f64| {
        if let Some(posteriors) = &mut posteriors {
            posteriors[at].push((class as u32, on));
        }
    };
    let judged = multilabel::judge(parts, settings, &mut keep, observer)?;
    let wrong = findings::bounds(&judged.wrong, judged.chance);
    let mut issues = judged.issues;
    findings::rank(&mut issues, &wrong);
    let (folds, examples) = (parts.parts.len(), parts.examples.len());
    let counted = Counted { folds, examples, labels: judged.labels };
    Ok(Audit {
        summary: summary(&parts.task, settings, &counted, wrong, None),
        classes: findings::entry_classes(&judged.tables),
        pairs: vec![],
        annotators: vec![],
        examples: rows,
        issues,
    })
}

/// How much was judged.
struct Counted {
    folds: usize,
    examples: usize,
    labels: usize,
}

fn summary(
    task: &Task,
    settings: &AuditSettings,
    counted: &Counted,
    wrong: Estimate,
    known: Option<Known>,
) -> AuditSummary {
    AuditSummary {
        format: AuditSummary::FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        link: task.link,
        noise: task.noise,
        fingerprint: task.fingerprint.clone(),
        class_names: task.class_names.clone(),
        folds: counted.folds,
        score: SCORE.to_string(),
        examples: counted.examples,
        labels: counted.labels,
        wrong,
        known,
        settings: Some(*settings),
        self_confidence: None,
        files: None,
    }
}
