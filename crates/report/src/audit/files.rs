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
        for (flag, _, file) in self.files() {
            words.extend(file.map(|file| format!("{flag} {}", shell(file))));
        }
        words.extend(self.multilabel.then(|| "--multilabel".to_string()));
        words.extend(self.logarithms.then(|| "--log-probabilities".to_string()));
        words.push(format!("--out {out}"));
        words.join(" ")
    }

    /// The error with the name of the file instead of the array.
    pub fn named(&self, error: ReportError) -> ReportError {
        let ReportError::AuditInput { field, message } = error else { return error };
        let file = self.files().into_iter().find(|(_, array, _)| *array == field);
        let file = file.and_then(|(.., file)| file).map(|file| file.display().to_string());
        ReportError::AuditInput { field: file.unwrap_or(field), message }
    }

    /// Of each file: its option of `aleator audit`, the array that it holds, and where it is.
    fn files(&self) -> [(&'static str, &'static str, Option<&Path>); 5] {
        [
            ("--probabilities", "log_probs", Some(Path::new(&self.probabilities))),
            ("--labels", "labels", Some(Path::new(&self.labels))),
            ("--ids", "ids", self.ids.as_ref().map(Path::new)),
            ("--clean", "clean_labels", self.clean_labels.as_ref().map(Path::new)),
            ("--names", "class_names", self.class_names.as_deref()),
        ]
    }
}
