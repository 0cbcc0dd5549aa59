//! An audit of probabilities that another program wrote.

use std::path::{Path, PathBuf};

use aleator_data::array::{Array, Values};
use aleator_data::labels::{LabelFiles, LabelledExamples};
use aleator_data::{Ids, Labels};
use aleator_run::{AtomicFolder, Link, RunError};
use serde::{Deserialize, Serialize};

use super::arrays::{AuditInput, AuditLabels, ModelOutput};
use super::record::Audit;
use super::settings::AuditSettings;
use super::{Judgement, judge};
use crate::covariance::Observer;
use crate::error::ReportError;

/// Files with probabilities and labels; each is `file`, or `file#name` for one of several arrays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbabilityFiles {
    /// Probabilities, `[N, K]`; each row by a model that was not trained on that example.
    pub probabilities: String,
    /// Whether the file holds logarithms of probabilities.
    pub logarithms: bool,
    /// Whether each class is on or off.
    pub multilabel: bool,
    /// The labels of the N examples.
    pub labels: String,
    /// The names of the classes, one per line, in the order of the probabilities.
    pub class_names: Option<PathBuf>,
    /// The ids of the examples.
    pub ids: Option<String>,
    /// The true classes, where they are known.
    pub clean_labels: Option<String>,
}

/// Judges the labels in some files and writes the audit to `out`, which must not exist.
///
/// # Errors
/// When a file cannot be read, or the files do not fit together; the message names the file, the
/// row and what was expected. Nothing is written then.
pub fn audit_files(
    files: &ProbabilityFiles,
    out: &Path,
    observer: Observer,
) -> Result<Judgement, ReportError> {
    if out.exists() && !is_empty(out) {
        return Err(RunError::Exists { path: out.to_path_buf() }.into());
    }
    let input = files.read()?;
    let judged = judge(input, &AuditSettings::STANDARD, observer);
    let mut judgement = judged.map_err(|error| files.named(error))?;
    judgement.audit.summary.files = Some(files.absolute());
    write(&judgement.audit, out)?;
    Ok(judgement)
}

impl ProbabilityFiles {
    fn read(&self) -> Result<AuditInput, ReportError> {
        let (log_probs, classes) = self.log_probs()?;
        let link = if self.multilabel { Link::Sigmoid } else { Link::Softmax };
        let files = LabelFiles {
            labels: self.labels.clone(),
            clean_labels: self.clean_labels.clone(),
            ids: self.ids.clone(),
            class_names: self.class_names.clone(),
        };
        let examples = log_probs.len() / classes;
        if !self.multilabel {
            self.refuse_multi_hot(classes)?;
        }
        let LabelledExamples { class_names, ids, labels, clean_labels } =
            files.read(examples, classes, link)?;
        let (labels, output) = (audited(labels, &ids), ModelOutput::LogProbs(log_probs));
        let ids = Some((0..ids.len()).map(|at| ids.name(at).into_owned()).collect());
        Ok(AuditInput { ids, clean_labels, ..AuditInput::new(class_names, labels, output) })
    }

    /// The logarithms of the probabilities, `[N, K]`, and K.
    fn log_probs(&self) -> Result<(Vec<f32>, usize), ReportError> {
        let refuse = |message: String| ReportError::AuditInput {
            field: self.probabilities.clone(),
            message,
        };
        let array = Array::load(&self.probabilities)?;
        let [examples, classes] = array.shape[..] else {
            let message =
                format!("probabilities must be [N, K], found the shape {:?}", array.shape);
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
                _ if self.logarithms => Ok(value as f32),
                _ if value.is_nan() => {
                    Err(refuse(format!("row {row}, class {class} is not a number (NaN)")))
                }
                _ if value < 0.0 => Err(refuse(format!(
                    "row {row}, class {class}: a probability is at least 0, found {value}; if \
                     these are logits, apply the softmax first; if they are logarithms of \
                     probabilities, say so with --log-probabilities"
                ))),
                _ => Ok(value.ln() as f32),
            }
        };
        let logs = (0..examples * classes).map(log).collect::<Result<Vec<f32>, _>>()?;
        Ok((logs, classes))
    }

    /// A table of zeros and ones means that classes are on or off.
    fn refuse_multi_hot(&self, classes: usize) -> Result<(), ReportError> {
        let array = Array::load(&self.labels)?;
        let binary = match &array.values {
            Values::Int(values) => values.iter().all(|value| matches!(value, 0 | 1)),
            Values::Float(_) | Values::Text(_) => false,
        };
        if array.shape.len() == 2 && array.shape[1] == classes && binary {
            let message = format!(
                "is a table of zeros and ones for {classes} classes; if each class is on or off, \
                 give --multilabel; if each row has one class, give its number"
            );
            return Err(ReportError::AuditInput { field: self.labels.clone(), message });
        }
        Ok(())
    }

    /// The same files from any directory.
    fn absolute(&self) -> Self {
        let spec = |spec: &String| {
            std::path::absolute(spec)
                .map_or_else(|_| spec.clone(), |path| path.display().to_string())
        };
        Self {
            probabilities: spec(&self.probabilities),
            labels: spec(&self.labels),
            class_names: self
                .class_names
                .as_ref()
                .map(|it| std::path::absolute(it).unwrap_or_else(|_| it.clone())),
            ids: self.ids.as_ref().map(spec),
            clean_labels: self.clean_labels.as_ref().map(spec),
            ..*self
        }
    }

    /// The command that makes the same audit.
    pub(crate) fn command(&self, out: &str, shell: &dyn Fn(&Path) -> String) -> String {
        let mut words = vec!["aleator audit".to_string()];
        let files = [
            ("--probabilities", Some(&self.probabilities)),
            ("--labels", Some(&self.labels)),
            ("--ids", self.ids.as_ref()),
            ("--clean", self.clean_labels.as_ref()),
        ];
        for (flag, file) in files {
            words.extend(file.map(|file| format!("{flag} {}", shell(Path::new(file)))));
        }
        words.extend(self.class_names.as_ref().map(|path| format!("--names {}", shell(path))));
        words.extend(self.multilabel.then(|| "--multilabel".to_string()));
        words.extend(self.logarithms.then(|| "--log-probabilities".to_string()));
        words.push(format!("--out {out}"));
        words.join(" ")
    }

    /// The error with the name of the file instead of the array.
    fn named(&self, error: ReportError) -> ReportError {
        let ReportError::AuditInput { field, message } = error else { return error };
        let file = match field.as_str() {
            "log_probs" => Some(self.probabilities.clone()),
            "labels" => Some(self.labels.clone()),
            "clean_labels" => self.clean_labels.clone(),
            "ids" => self.ids.clone(),
            "class_names" => self.class_names.as_ref().map(|path| path.display().to_string()),
            _ => None,
        };
        ReportError::AuditInput { field: file.unwrap_or(field), message }
    }
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
            let votes = |at: usize| {
                let span = all.offsets[at]..all.offsets[at + 1];
                let annotators = all.annotators[span.clone()].iter().copied();
                annotators.zip(all.labels[span].iter().copied()).collect()
            };
            let votes = (0..all.len()).map(votes).collect();
            AuditLabels::Votes { votes, annotators: all.annotator_names, labels }
        }
        (Labels::Single(_) | Labels::Soft(_), hard) => {
            AuditLabels::Single(hard.unwrap_or_default())
        }
    }
}

/// The directory appears complete or not at all.
fn write(audit: &Audit, out: &Path) -> Result<(), ReportError> {
    if let Some(parent) = out.parent() {
        let io = |source| RunError::Io { action: "create", path: parent.to_path_buf(), source };
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    let folder = AtomicFolder::create(out)?;
    audit.save(folder.path())?;
    Ok(folder.commit_new()?)
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}
