//! Which labels are wrong, and what they should be.
//!
//! [`judge`] is a pure function of labels and of what a model predicts for examples that it was
//! not trained on. The model may be any model; where it gives means and covariances of utilities
//! besides probabilities, as ours do, these are used too. [`analyse`] does the same with the folds
//! of a cross-fitted recipe: run directories whose test splits are together all of the data.

mod annotators;
mod arrays;
mod comparison;
mod dynamics;
mod entry_noise;
mod files;
mod findings;
mod folds;
mod in_memory;
mod lists;
mod multilabel;
mod odds;
mod pair_noise;
mod parts;
mod planted;
mod posterior;
mod record;
mod replaced;
mod review_record;
mod sample;
mod self_confidence;
mod settings;
mod single;
mod tables;
mod wrong_in_words;

use std::path::PathBuf;

use aleator_run::{ExampleRow, Link};

pub use arrays::{AuditInput, AuditLabels, ModelOutput};
pub use dynamics::TrainingDynamics;
pub use files::ProbabilityFiles;
pub use folds::{Source, SourceExample};
pub use lists::{Comparison, ExampleLists, NearDuplicate, Outlier};
pub use record::{
    AnnotatorFinding, Answer, Audit, AuditSummary, ClassFinding, Consensus, ErrorComparison,
    Estimate, Issue, Known, PairFinding,
};
pub use review_record::{Acceptance, ReviewRecord};
pub use sample::{SampledCount, SamplingOrder};
pub use settings::AuditSettings;

use crate::covariance::Observer;
use crate::error::ReportError;
use findings::Findings;
use parts::{Parts, Task};
use single::Posterior;

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
    let parts = input.parts(settings)?;
    let rows: Vec<ExampleRow> = parts.examples.iter().map(|example| example.row.clone()).collect();
    let mut posteriors = vec![vec![]; rows.len()];
    let audit = conclude(parts, rows, settings, Some(&mut posteriors), observer)?;
    Ok(Judgement { audit, posteriors })
}

/// Labels of which a few are replaced by errors that are known to be errors, in one or more rounds:
/// what [`TrainingDynamics::planted`] is trained on. Annotations and classes that are on or off have
/// none.
///
/// # Errors
/// As [`judge`].
pub fn planted_labels(
    input: AuditInput,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Vec<Vec<u32>>, ReportError> {
    match input.labels {
        AuditLabels::Single(_) => {
            single::planted_labels(&mut input.parts(settings)?, settings, observer)
        }
        _ => Ok(vec![]),
    }
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
    let parts = Parts::open(dirs, source)?;
    let rows = source.rows(&parts.examples);
    conclude(parts, rows, &AuditSettings::STANDARD, None, observer)
}

/// The one judgement, whatever the predictions come from; `rows` are all examples of the data.
fn conclude(
    mut parts: Parts,
    rows: Vec<ExampleRow>,
    settings: &AuditSettings,
    posteriors: Option<&mut Vec<Posterior>>,
    observer: Observer,
) -> Result<Audit, ReportError> {
    let judge = match parts.task.link {
        Link::Softmax => single::judge,
        Link::Sigmoid => multilabel::judge,
    };
    let found = judge(&mut parts, settings, posteriors, observer)?;
    let Findings {
        mut issues,
        classes,
        pairs,
        annotators,
        consensus,
        concentration,
        wrong,
        comparison,
    } = found;
    let consensus = findings::with_unjudged(consensus, &rows);
    findings::rank(&mut issues, &wrong);
    let Task { link, noise, fingerprint, class_names, folds, self_confidence } = parts.task;
    let examples = parts.examples.len();
    let summary = AuditSummary {
        format: AuditSummary::FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        link,
        noise,
        fingerprint,
        folds,
        checkpoint: None,
        score: SCORE.to_string(),
        examples,
        labels: match link {
            Link::Softmax => examples,
            Link::Sigmoid => examples * class_names.len(),
        },
        class_names,
        wrong,
        comparison,
        known: findings::known(&issues),
        settings: Some(*settings),
        self_confidence,
        annotator_concentration: concentration,
        files: None,
    };
    let lists = ExampleLists::default();
    Ok(Audit { summary, classes, pairs, annotators, consensus, examples: rows, issues, lists })
}
