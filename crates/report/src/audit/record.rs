//! The findings of an audit, as its directory holds them.

use std::path::{Path, PathBuf};

use aleator_run::{
    AUDIT, ExampleRow, Link, Noise, RunError, read_examples, write_examples, write_file,
};
use serde::{Deserialize, Serialize};

use super::files::ProbabilityFiles;
use super::lists::ExampleLists;
use super::settings::AuditSettings;
use super::tables;
use crate::error::ReportError;

/// The findings of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// `audit.json`.
    pub summary: AuditSummary,
    /// `issues.csv`: every label, the one that is most surely wrong first.
    pub issues: Vec<Issue>,
    /// `classes.csv`: in the order of the classes.
    pub classes: Vec<ClassFinding>,
    /// `pairs.csv`: how often each class is given where another is true, most frequent first.
    pub pairs: Vec<PairFinding>,
    /// `annotators.csv`: empty where annotators are not known.
    pub annotators: Vec<AnnotatorFinding>,
    /// `consensus.csv`: one label for each example, in the order of the data; empty where annotators
    /// are not known.
    pub consensus: Vec<Consensus>,
    /// `examples.csv`: what was audited, in the order of the data.
    pub examples: Vec<ExampleRow>,
    /// Examples that need a look for another reason than their label.
    pub lists: ExampleLists,
}

/// `audit.json`: the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditSummary {
    /// The version of the layout.
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// Whether one class is right, or each is on or off.
    pub link: Link,
    /// The noise model of the head.
    pub noise: Noise,
    /// Identifies the data.
    pub fingerprint: String,
    /// The names of the classes, in their order.
    pub class_names: Vec<String>,
    /// How many parts the data were divided into, each judged by a model of the others; 0 where
    /// probabilities were given and nothing is known of their folds.
    pub folds: usize,
    /// The step of the checkpoint whose network embedded the images, where the user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
    /// The name of the score that labels are ranked by.
    pub score: String,
    /// How many examples there are.
    pub examples: usize,
    /// How many labels were judged: one for each example, or one for each class of each example
    /// where each class is on or off.
    pub labels: usize,
    /// How many labels are wrong.
    pub wrong: Estimate,
    /// How the labels compare with planted errors; `None` with annotators, and where each class is
    /// on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ErrorComparison>,
    /// How well the ranking does, where the true labels are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
    /// How the labels were judged; audits by earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<AuditSettings>,
    /// What the probabilities of each class were divided by, `[K]`; `None` where the model gives
    /// means, and where each class is on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_confidence: Option<Vec<f64>>,
    /// How many labels the common confusion counts for in the confusion of each annotator, for each
    /// true class; `None` where annotators are not known or share one confusion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotator_concentration: Option<f64>,
    /// The files that were judged; `None` for models that the audit trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ProbabilityFiles>,
}

/// A number that is not known exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub count: f64,
    /// The lower end of an interval over all laws of the errors; with annotators, and
    /// where each class is on or off, one that holds if the model is right.
    pub low: f64,
    /// The upper end of the same.
    pub high: f64,
}

/// How the labels compare with errors that were planted on purpose, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorComparison {
    /// How much the predictions count that were made without the label.
    pub out_of_sample_weight: f64,
    /// How much training dynamics count, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamics_weight: Option<f64>,
    /// How many labels are wrong if errors fall on all examples alike.
    pub anywhere: f64,
    /// How many labels are wrong if errors fall where examples are ambiguous.
    pub ambiguous: f64,
    /// How many labels must be wrong even if all other doubt is the model's.
    pub replaced: f64,
    /// How many labels are wrong if all doubt about the truth is wrong labels, at least.
    pub least_doubted: f64,
    /// The same at most, over several readings of the predictions.
    pub most_doubted: f64,
}

/// The ranking compared with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// How many labels are wrong.
    pub wrong: usize,
    /// Area under the ROC curve of the score.
    pub auroc: f64,
    /// Average precision of the score.
    pub average_precision: f64,
    /// Of the labels that are wrong, the share for which the true answer is suggested.
    pub suggestions_right: f64,
}

/// The content of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// This class is the right one.
    Class(u32),
    /// This class is on.
    On(u32),
    /// This class is off.
    Off(u32),
}

impl Answer {
    /// The class that it is about.
    pub fn class(self) -> u32 {
        match self {
            Self::Class(class) | Self::On(class) | Self::Off(class) => class,
        }
    }
}

/// One label, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Issue {
    /// The id of the example.
    pub id: String,
    /// The file of its image, where it has one of its own.
    pub path: Option<PathBuf>,
    /// The label.
    pub given: Answer,
    /// The most probable other answer.
    pub suggested: Answer,
    /// How probable the given answer is to be true.
    pub given_probability: f64,
    /// How probable the suggested one is.
    pub suggested_probability: f64,
    /// How probable the label is to be wrong; issues are sorted by it.
    pub score: f64,
    /// Whether it is among as many as are estimated to be wrong.
    pub wrong: bool,
    /// The covariance of the two classes' utilities for this example, over τ² and centred;
    /// `None` without a noise model, and where a class is on or off.
    pub covariance: Option<f64>,
    /// The correlation of the same.
    pub correlation: Option<f64>,
    /// The true answer, where it is known.
    pub truth: Option<Answer>,
}

/// The findings about one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassFinding {
    /// The class.
    pub class: u32,
    /// How many labels name it.
    pub given: usize,
    /// How many examples are expected to be of it.
    pub expected: f64,
    /// Of the labels that name it, the share that is expected to be wrong.
    pub noise_rate: f64,
    /// Of the examples that are expected to be of it, the share that is labelled otherwise.
    pub missed_rate: f64,
    /// The same as `noise_rate` by the true labels, where they are known.
    pub known_noise_rate: Option<f64>,
    /// The classes that examples with this label more likely belong to: class and share of the
    /// labels, most frequent first.
    pub confused_with: Vec<(u32, f64)>,
}

/// One cell of the joint of given and true label.
#[derive(Clone, Debug, PartialEq)]
pub struct PairFinding {
    /// The label that is given.
    pub given: u32,
    /// The class that is expected to be true.
    pub truth: u32,
    /// How many examples are expected to be so.
    pub count: f64,
    /// How likely the utility of `given` is above that of `truth`, averaged over the examples
    /// whose most probable class is `truth`; `None` on the diagonal and without a noise model.
    pub flip_probability: Option<f64>,
    /// The mean covariance of the two utilities over τ² and centred.
    pub covariance: Option<f64>,
    /// The correlation of the same.
    pub correlation: Option<f64>,
}

/// The findings about one annotator.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotatorFinding {
    /// The name.
    pub name: String,
    /// How many labels are theirs.
    pub annotations: usize,
    /// The share that is expected to be wrong.
    pub error_rate: f64,
    /// The same by the true labels, where they are known.
    pub known_error_rate: Option<f64>,
    /// Their confusions: (true, given, expected number), most frequent first.
    pub confuses: Vec<(u32, u32, f64)>,
}

/// What several annotators and the model agree on for one example.
#[derive(Clone, Debug, PartialEq)]
pub struct Consensus {
    /// The id of the example.
    pub id: String,
    /// The most probable class.
    pub label: u32,
    /// How probable it is to be true; `None` for an example that could not be judged, which keeps
    /// its label.
    pub probability: Option<f64>,
    /// The class that most annotators named.
    pub majority: u32,
    /// How many annotations the example has.
    pub annotations: usize,
}

impl Audit {
    /// Whether a directory holds an audit that was finished.
    pub fn is_at(dir: &Path) -> bool {
        dir.join(AUDIT).is_file()
    }

    /// Writes all files; `audit.json` last, so that where it is, the audit is finished.
    pub fn save(&self, dir: &Path) -> Result<(), ReportError> {
        tables::write(&dir.join("issues.csv"), &self.issues, &self.summary)?;
        tables::write(&dir.join("classes.csv"), &self.classes, &self.summary)?;
        tables::write(&dir.join("pairs.csv"), &self.pairs, &self.summary)?;
        if !self.annotators.is_empty() {
            tables::write(&dir.join("annotators.csv"), &self.annotators, &self.summary)?;
            tables::write(&dir.join("consensus.csv"), &self.consensus, &self.summary)?;
        }
        write_examples(&dir.join("examples.csv"), self.examples.iter().cloned())?;
        ExampleLists::save(self, dir)?;
        let path = dir.join(AUDIT);
        let text = serde_json::to_string_pretty(&self.summary)
            .map_err(|error| RunError::damaged(&path, error.to_string()))?;
        Ok(write_file(&path, (text + "\n").as_bytes())?)
    }

    /// Reads what [`save`](Self::save) wrote.
    pub fn load(dir: &Path) -> Result<Self, ReportError> {
        let summary = AuditSummary::load(dir)?;
        Ok(Self {
            issues: tables::read(&dir.join("issues.csv"), &summary)?,
            classes: tables::read(&dir.join("classes.csv"), &summary)?,
            pairs: tables::read(&dir.join("pairs.csv"), &summary)?,
            annotators: tables::read_if_there(&dir.join("annotators.csv"), &summary)?,
            consensus: tables::read_if_there(&dir.join("consensus.csv"), &summary)?,
            examples: read_examples(&dir.join("examples.csv"))?,
            lists: ExampleLists::load(dir, &summary)?,
            summary,
        })
    }
}

impl AuditSummary {
    /// The version of the files that this program writes and reads.
    pub const FORMAT: u32 = 1;

    fn load(dir: &Path) -> Result<Self, ReportError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            version: String,
        }
        let path = dir.join(AUDIT);
        if !dir.exists() {
            return Err(RunError::Missing { path: dir.to_path_buf() }.into());
        }
        if !path.exists() {
            return Err(ReportError::NoAudit { dir: dir.to_path_buf() });
        }
        let text = std::fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        let damaged = |error: serde_json::Error| RunError::damaged(&path, error.to_string());
        let Version { format, version } = serde_json::from_str(&text).map_err(damaged)?;
        if format != Self::FORMAT {
            let found = format.to_string();
            return Err(RunError::Format { path, found, writer: version }.into());
        }
        Ok(serde_json::from_str(&text).map_err(damaged)?)
    }
}
