//! Arrays in memory that labels are judged by, and what can be wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aleator_run::{ExampleRow, Link, Predictions, Split};

use super::in_memory::{divide, fingerprint, noise};
use super::parts::{Example, Parts, Task};
use super::settings::AuditSettings;
use crate::error::ReportError;

/// What is judged: the labels of N examples and what a model predicts for them.
#[derive(Clone, Debug)]
pub struct AuditInput {
    /// The names of the K classes, all different.
    pub class_names: Vec<String>,
    /// The labels to judge.
    pub labels: AuditLabels,
    /// The predictions, each made by a model that was not trained on its example.
    pub output: ModelOutput,
    /// The ids of the examples, all different; `None` numbers the rows from 0.
    pub ids: Option<Vec<String>>,
    /// The image file of each example.
    pub paths: Option<Vec<PathBuf>>,
    /// The true classes, where they are known, to measure the ranking with.
    pub clean_labels: Option<Vec<u32>>,
    /// The fold of each example, counted from 0: which of several models made its predictions.
    /// The bounds on the number of wrong labels then include how much the folds differ.
    pub folds: Option<Vec<usize>>,
}

/// Labels of N examples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditLabels {
    /// One class for each example.
    Single(Vec<u32>),
    /// The labels of several annotators.
    Votes {
        /// Annotator and class of each annotation, for each example.
        votes: Vec<Vec<(u32, u32)>>,
        /// The names of the annotators.
        annotators: Vec<String>,
        /// The one label that is listed for each example; `None` takes the most frequent vote and
        /// among equally frequent ones the most probable.
        labels: Option<Vec<u32>>,
    },
    /// The classes that are on, for each example.
    Multilabel(Vec<Vec<u32>>),
}

/// What a model predicts for N examples.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelOutput {
    /// The logarithms of probabilities, `[N, K]`: of the classes, each row summing to one, or with
    /// [`AuditLabels::Multilabel`] of each class being on. They serve as the mean of the utilities
    /// too, after the noise that differs between the classes has been divided out.
    LogProbs(Vec<f32>),
    /// Log-probabilities with the mean of the utilities and, where there is one, their covariance.
    Predictions(Predictions),
}

/// How far from one a row of probabilities may sum: as rounding to two or three decimals does.
const SUM_TOLERANCE: f64 = 0.01;

impl AuditInput {
    /// Labels and predictions, with nothing else known.
    pub fn new(class_names: Vec<String>, labels: AuditLabels, output: ModelOutput) -> Self {
        let (ids, paths, clean_labels, folds) = (None, None, None, None);
        Self { class_names, labels, output, ids, paths, clean_labels, folds }
    }

    /// The examples with the predictions that judge them, if all of it fits together.
    pub(super) fn parts(self, settings: &AuditSettings) -> Result<Parts, ReportError> {
        settings.check()?;
        self.check()?;
        self.labels.check(self.class_names.len())?;
        let (link, classes) = (self.labels.link(), self.class_names.len());
        let examples = self.examples();
        let (predictions, self_confidence) = self.output.predictions(&examples, classes, link)?;
        let folds = self.folds.iter().flatten().max().map_or(0, |last| last + 1);
        let task = Task {
            link,
            noise: noise(&predictions),
            fingerprint: fingerprint(&self.class_names, &examples),
            class_names: self.class_names,
            folds,
            self_confidence,
        };
        let annotators = match self.labels {
            AuditLabels::Votes { annotators, .. } => annotators,
            _ => vec![],
        };
        let parts = divide(predictions, &examples, folds.max(1), link)?;
        Ok(Parts { task, annotators, examples, parts, planting: None, dynamics: None })
    }

    /// Everything but the labels and the predictions themselves.
    fn check(&self) -> Result<(), ReportError> {
        let (examples, classes) = (self.labels.len(), self.class_names.len());
        let is_single = self.labels.link() == Link::Softmax;
        require(examples > 0, "labels", || "at least one example is needed, found none".into())?;
        let least = if is_single { 2 } else { 1 };
        require(classes >= least, "class_names", || {
            format!("at least {least} classes are needed, found {classes}")
        })?;
        distinct("class_names", &self.class_names)?;
        let lengths = [
            ("ids", self.ids.as_ref().map(Vec::len)),
            ("paths", self.paths.as_ref().map(Vec::len)),
            ("clean_labels", self.clean_labels.as_ref().map(Vec::len)),
            ("folds", self.folds.as_ref().map(Vec::len)),
        ];
        for (field, length) in lengths {
            let found = length.unwrap_or(examples);
            require(found == examples, field, || {
                format!("must have one entry for each of the {examples} labels, found {found}")
            })?;
        }
        for (row, fold) in self.folds.iter().flatten().enumerate() {
            require(*fold < examples, "folds", || {
                format!(
                    "row {row}: folds are numbered from 0, found {fold} for {examples} examples"
                )
            })?;
        }
        distinct("ids", self.ids.as_deref().unwrap_or_default())?;
        require(is_single || self.clean_labels.is_none(), "clean_labels", || {
            "true labels are used for labels of one class only; leave them out".into()
        })?;
        let mut clean = self.clean_labels.iter().flatten().enumerate();
        clean.try_for_each(|(row, class)| check_class("clean_labels", row, *class, classes))?;
        let numbers = self.output.log_probs().len();
        require(numbers == examples * classes, "log_probs", || {
            format!(
                "must be [N, K] = [{examples}, {classes}], as there are labels and classes; found \
                 {numbers} numbers"
            )
        })
    }

    /// The examples with the labels that are listed for them.
    fn examples(&self) -> Vec<Example> {
        let log_probs = self.output.log_probs().chunks_exact(self.class_names.len());
        let example = |(at, log_probs): (usize, &[f32])| {
            let row = ExampleRow {
                id: self.ids.as_ref().map_or_else(|| at.to_string(), |ids| ids[at].clone()),
                split: Split::Train,
                label: Some(self.labels.given(at, log_probs)),
                clean_label: self.clean_labels.as_ref().map(|clean| vec![clean[at]]),
            };
            let votes = match &self.labels {
                AuditLabels::Votes { votes, .. } => votes[at].clone(),
                _ => vec![],
            };
            let path = self.paths.as_ref().map(|paths| paths[at].clone());
            let part = self.folds.as_ref().map_or(0, |folds| folds[at]);
            Example::new(row, path, votes, part)
        };
        log_probs.enumerate().map(example).collect()
    }
}

impl AuditLabels {
    fn len(&self) -> usize {
        match self {
            Self::Single(labels) => labels.len(),
            Self::Votes { votes, .. } => votes.len(),
            Self::Multilabel(rows) => rows.len(),
        }
    }

    fn link(&self) -> Link {
        match self {
            Self::Single(_) | Self::Votes { .. } => Link::Softmax,
            Self::Multilabel(_) => Link::Sigmoid,
        }
    }

    fn check(&self, classes: usize) -> Result<(), ReportError> {
        let check = |(row, class): (usize, &u32)| check_class("labels", row, *class, classes);
        let (votes, annotators, labels) = match self {
            Self::Single(labels) => return labels.iter().enumerate().try_for_each(check),
            Self::Multilabel(rows) => {
                let mut rows = rows.iter().enumerate();
                return rows
                    .try_for_each(|(row, on)| on.iter().try_for_each(|on| check((row, on))));
            }
            Self::Votes { votes, annotators, labels } => (votes, annotators, labels),
        };
        distinct("annotators", annotators)?;
        let found = labels.as_ref().map_or(votes.len(), Vec::len);
        require(found == votes.len(), "labels", || {
            format!("{found} labels for the votes of {} examples", votes.len())
        })?;
        for (row, votes) in votes.iter().enumerate() {
            for (annotator, class) in votes {
                check((row, class))?;
                let known = annotators.len();
                require((*annotator as usize) < known, "labels", || {
                    format!(
                        "row {row}: annotator {annotator} must be below {known}, the number of \
                         annotators"
                    )
                })?;
            }
            require(labels.is_some() || !votes.is_empty(), "labels", || {
                format!("row {row} has no vote and no label")
            })?;
        }
        labels.iter().flatten().enumerate().try_for_each(check)
    }

    /// The classes that the label of an example names, ascending.
    fn given(&self, row: usize, log_probs: &[f32]) -> Vec<u32> {
        match self {
            Self::Single(labels) | Self::Votes { labels: Some(labels), .. } => vec![labels[row]],
            Self::Votes { votes, labels: None, .. } => vec![majority(&votes[row], log_probs)],
            Self::Multilabel(rows) => {
                let mut on = rows[row].clone();
                on.sort_unstable();
                on.dedup();
                on
            }
        }
    }
}

impl ModelOutput {
    fn log_probs(&self) -> &[f32] {
        match self {
            Self::LogProbs(values) => values,
            Self::Predictions(predictions) => &predictions.log_probs,
        }
    }
}

pub(super) fn check_log_probs(
    log_probs: &[f32],
    classes: usize,
    link: Link,
) -> Result<(), ReportError> {
    let most = SUM_TOLERANCE.ln_1p() as f32;
    for (row, values) in log_probs.chunks_exact(classes).enumerate() {
        for (class, value) in values.iter().enumerate() {
            require(!value.is_nan(), "log_probs", || {
                format!("row {row}, class {class} is not a number (NaN)")
            })?;
            require(*value <= most, "log_probs", || {
                format!(
                    "row {row}, class {class}: a probability is at most 1, found {}; if these are \
                     logits, apply the softmax (with several classes on, the sigmoid) first",
                    f64::from(*value).exp()
                )
            })?;
        }
        let sum: f64 = values.iter().map(|value| f64::from(*value).exp()).sum();
        require(link == Link::Sigmoid || (sum - 1.0).abs() <= SUM_TOLERANCE, "log_probs", || {
            format!(
                "row {row}: the probabilities of the classes must sum to 1, found {sum}; if these \
                 are logits, apply the softmax first"
            )
        })?;
    }
    Ok(())
}

pub(super) fn check_predictions(
    predictions: &Predictions,
    classes: usize,
    link: Link,
) -> Result<(), ReportError> {
    let found = predictions.classes;
    require(found == classes, "predictions", || {
        format!("must be of {classes} classes, found {found}")
    })?;
    let is_on_or_off = predictions.log_probs_off.is_some();
    require(is_on_or_off == (link == Link::Sigmoid), "predictions", || {
        "log_probs_off belongs to labels that are on or off, and only to them".into()
    })
}

/// The most frequent class; among equally frequent ones the most probable, then the first.
fn majority(votes: &[(u32, u32)], log_probs: &[f32]) -> u32 {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    votes.iter().for_each(|(_, class)| *counts.entry(*class).or_insert(0) += 1);
    let rank = |class: u32, count: usize| (count, log_probs[class as usize]);
    let better = |best: Option<(u32, usize)>, (class, count): (u32, usize)| match best {
        Some((other, most)) if rank(class, count) <= rank(other, most) => best,
        _ => Some((class, count)),
    };
    counts.into_iter().fold(None, better).map_or(0, |(class, _)| class)
}

fn check_class(
    field: &'static str,
    row: usize,
    class: u32,
    classes: usize,
) -> Result<(), ReportError> {
    require((class as usize) < classes, field, || {
        format!("row {row}: class {class} must be below {classes}, the number of classes")
    })
}

fn distinct(field: &'static str, names: &[String]) -> Result<(), ReportError> {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, name) in names.iter().enumerate() {
        require(!name.is_empty(), field, || format!("row {row} is empty; it must have a name"))?;
        let first = rows.insert(name, row);
        require(first.is_none(), field, || {
            let first = first.unwrap_or_default();
            format!("rows {first} and {row} are both {name:?}; they must differ")
        })?;
    }
    Ok(())
}

/// Refuses an array unless it is `valid`.
pub(super) fn require(
    valid: bool,
    field: &'static str,
    message: impl FnOnce() -> String,
) -> Result<(), ReportError> {
    let refused = || ReportError::AuditInput { field: field.to_string(), message: message() };
    valid.then_some(()).ok_or_else(refused)
}
