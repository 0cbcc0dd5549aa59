//! `audit_probabilities`: labels judged by the probabilities of any other model.

use std::path::Path;

use aleator_data::array::{Array, Values};
use aleator_data::labels::{LabelFiles, LabelledExamples};
use aleator_data::{Ids, Labels};
use aleator_report::ReportError;
use aleator_report::audit::{
    Audit, AuditInput, AuditLabels, AuditSettings, ModelOutput, ProbabilityFiles, judge,
};
use aleator_run::{AtomicFolder, Link, check_vacant};

use super::examples::votes;
use crate::{Error, Event, Watch};

/// Judges labels by out-of-sample probabilities of another model, both in files, and writes the
/// audit to `out`, which must not exist or be empty.
///
/// ```no_run
/// use aleator::report::audit::ProbabilityFiles;
/// use aleator::{Watch, audit_probabilities};
///
/// let files = ProbabilityFiles {
///     probabilities: "p.npy".to_string(), // [N, K], each row from a model that was not trained on it
///     logarithms: false,
///     multilabel: false,
///     labels: "y.npy".to_string(),
///     class_names: None,
///     ids: None,
///     clean_labels: None,
/// };
/// let audit = audit_probabilities(&files, "audit".as_ref(), &mut Watch::silent())?;
/// println!("most surely wrong: {}", audit.issues[0].id);
/// # Ok::<(), aleator::Error>(())
/// ```
///
/// For arrays in memory there is [`judge`].
///
/// # Errors
/// When a file cannot be read, or the files do not fit together; the message names the file, the
/// row and what was expected. Nothing is written then.
pub fn audit_probabilities(
    files: &ProbabilityFiles,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Audit, Error> {
    check_vacant(out)?;
    let judged = judge(read(files)?, &AuditSettings::STANDARD, &mut |step| {
        let (done, total) = (step.done, step.total);
        watch.event(Event::Progress { what: "labels judged", done, total });
    });
    let mut audit = judged.map_err(|error| files.named(error))?.audit;
    audit.summary.files = Some(files.absolute());
    let dir = AtomicFolder::create_new(out)?;
    audit.save(dir.path())?;
    dir.commit_new()?;
    Ok(audit)
}

fn read(files: &ProbabilityFiles) -> Result<AuditInput, Error> {
    let (log_probs, classes) = log_probs(files)?;
    let link = if files.multilabel { Link::Sigmoid } else { Link::Softmax };
    let label_files = LabelFiles {
        labels: files.labels.clone(),
        clean_labels: files.clean_labels.clone(),
        ids: files.ids.clone(),
        class_names: files.class_names.clone(),
    };
    let examples = log_probs.len() / classes;
    if !files.multilabel {
        refuse_multi_hot(files, classes)?;
    }
    let LabelledExamples { class_names, ids, labels, clean_labels } =
        label_files.read(examples, classes, link)?;
    if files.multilabel && !matches!(labels, Labels::MultiHot(_)) {
        let message = format!(
            "multilabel takes a table of zeros and ones for the {classes} classes; these labels \
             have one class for each example"
        );
        return Err(refused(&files.labels, message));
    }
    let (labels, output) = (audited(labels, &ids), ModelOutput::LogProbs(log_probs));
    let ids = Some((0..ids.len()).map(|at| ids.name(at).into_owned()).collect());
    Ok(AuditInput { ids, clean_labels, ..AuditInput::new(class_names, labels, output) })
}

/// The logarithms of the probabilities, `[N, K]`, and K.
fn log_probs(files: &ProbabilityFiles) -> Result<(Vec<f32>, usize), Error> {
    let refuse = |message| refused(&files.probabilities, message);
    let array = Array::load(&files.probabilities)?;
    let [examples, classes] = array.shape[..] else {
        let message = format!("probabilities must be [N, K], found the shape {:?}", array.shape);
        return Err(refuse(message));
    };
    if examples == 0 || classes == 0 {
        return Err(refuse(format!("is empty: {examples} rows of {classes} probabilities")));
    }
    if let Values::Text(_) = array.values {
        return Err(refuse("probabilities must be numbers, found words".to_string()));
    }
    let log = |at: usize| {
        let value = array.values.float(at);
        let (row, class) = (at / classes, at % classes);
        match value {
            _ if files.logarithms => Ok(value as f32),
            _ if value.is_nan() => {
                Err(refuse(format!("row {row}, class {class} is not a number (NaN)")))
            }
            _ if value < 0.0 => Err(refuse(format!(
                "row {row}, class {class}: a probability is at least 0, found {value}; if \
                 these are logits, apply the softmax first; if they are logarithms of \
                 probabilities, say so (--log-probabilities on the command line)"
            ))),
            _ => Ok(value.ln() as f32),
        }
    };
    let logs = (0..examples * classes).map(log).collect::<Result<Vec<f32>, _>>()?;
    Ok((logs, classes))
}

/// A table of zeros and ones means that classes are on or off.
fn refuse_multi_hot(files: &ProbabilityFiles, classes: usize) -> Result<(), Error> {
    let array = Array::load(&files.labels)?;
    let binary = match &array.values {
        Values::Int(values) => values.iter().all(|value| matches!(value, 0 | 1)),
        Values::Float(_) | Values::Text(_) => false,
    };
    if array.shape.len() == 2 && array.shape[1] == classes && binary {
        let message = format!(
            "is a table of zeros and ones for {classes} classes; if each class is on or off, \
             say so (--multilabel on the command line); if each row has one class, give its number"
        );
        return Err(refused(&files.labels, message));
    }
    Ok(())
}

fn refused(file: &str, message: String) -> Error {
    ReportError::AuditInput { field: file.to_string(), message }.into()
}

/// Labels as the audit takes them.
fn audited(labels: Labels, ids: &Ids) -> AuditLabels {
    // Ties between annotators are broken as in training.
    let hard = labels.hard(0, ids);
    match (labels, hard) {
        (Labels::MultiHot(rows), _) => {
            let count = rows.offsets.len() - 1;
            AuditLabels::Multilabel((0..count).map(|at| rows.row(at).to_vec()).collect())
        }
        (Labels::Annotations(all), labels) => {
            let votes = (0..all.len()).map(|at| votes(&all, at)).collect();
            AuditLabels::Votes { votes, annotators: all.annotator_names, labels }
        }
        (Labels::Single(_) | Labels::Soft(_), hard) => {
            AuditLabels::Single(hard.unwrap_or_default())
        }
    }
}
