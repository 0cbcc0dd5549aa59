//! Which labels are wrong, and what they should be.
//!
//! [`judge`] is a pure function of labels and of what a model predicts for examples that it was
//! not trained on. The model may be any model; where it gives means and covariances of utilities
//! besides probabilities, as ours do, these are used too. [`analyse`] does the same with the folds
//! of a cross-fitted recipe: run directories whose test splits are together all of the data.

mod annotators;
mod arrays;
mod co_occurrence;
mod comparison;
mod dynamics;
mod entry_noise;
mod files;
mod findings;
mod folds;
mod in_memory;
mod law_weights;
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
mod row_errors;
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
    judge_parts(input.parts(settings)?, settings, observer)
}

fn judge_parts(
    parts: Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Judgement, ReportError> {
    let rows: Vec<ExampleRow> = parts.examples.iter().map(|example| example.row.clone()).collect();
    let mut posteriors = vec![vec![]; rows.len()];
    let audit = conclude(parts, rows, settings, Some(&mut posteriors), observer)?;
    Ok(Judgement { audit, posteriors })
}

/// Labels of one class among which errors were planted, and which wait to be judged together with
/// trainings on the planted ones.
#[derive(Debug)]
pub struct PlantedErrors {
    parts: Parts,
    settings: AuditSettings,
    labels: Vec<Vec<u32>>,
}

impl PlantedErrors {
    /// Plants errors among the labels of an input, which must be [`AuditLabels::Single`].
    ///
    /// # Errors
    /// As [`judge`], and where labels are of another kind.
    pub fn new(
        input: AuditInput,
        settings: &AuditSettings,
        observer: Observer,
    ) -> Result<Self, ReportError> {
        let is_single = matches!(input.labels, AuditLabels::Single(_));
        arrays::require(is_single, "labels", || {
            "errors are planted among labels of one class only; judge these without".to_string()
        })?;
        let mut parts = input.parts(settings)?;
        let planting = single::plant(&mut parts, settings, observer)?;
        let labels = planting.labels();
        parts.planting = Some(planting);
        Ok(Self { parts, settings: *settings, labels })
    }

    /// The labels, of which a few are errors, in one or more rounds: what
    /// [`TrainingDynamics::planted`] is trained on.
    pub fn labels(&self) -> &[Vec<u32>] {
        &self.labels
    }

    /// Judges every label by predictions that were made without it, and by training dynamics.
    ///
    /// # Errors
    /// When the dynamics are not those of a training on every set of labels.
    pub fn judge(
        mut self,
        dynamics: TrainingDynamics,
        observer: Observer,
    ) -> Result<Judgement, ReportError> {
        let (examples, classes) = (self.parts.examples.len(), self.parts.task.class_names.len());
        dynamics.check(self.labels.len(), examples, classes)?;
        self.parts.dynamics = Some(dynamics);
        judge_parts(self.parts, &self.settings, observer)
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
