//! The files of an audit of probabilities that another program wrote.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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

impl ProbabilityFiles {
    /// The same files from any directory.
    pub fn absolute(&self) -> Self {
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
    pub fn named(&self, error: ReportError) -> ReportError {
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
