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

/// Input that fits together.
pub(super) struct Checked {
    pub parts: Parts,
    pub annotators: Vec<String>,
    /// What the probabilities of the classes were divided by.
    pub self_confidence: Option<Vec<f64>>,
    /// 0 where nothing is known of folds.
    pub folds: usize,
}

/// How far from one a row of probabilities may sum: as rounding to two or three decimals does.
const SUM_TOLERANCE: f64 = 0.01;

impl AuditInput {
    /// Labels and predictions, with nothing else known.
    pub fn new(class_names: Vec<String>, labels: AuditLabels, output: ModelOutput) -> Self {
        let (ids, paths, clean_labels, folds) = (None, None, None, None);
        Self { class_names, labels, output, ids, paths, clean_labels, folds }
    }

    pub(super) fn check(self, settings: &AuditSettings) -> Result<Checked, ReportError> {
        settings.check()?;
        let (examples, classes) = (self.labels.len(), self.class_names.len());
        self.check_names(examples)?;
        self.labels.check(classes)?;
        self.check_clean(examples, classes)?;
        let log_probs = match &self.output {
            ModelOutput::LogProbs(values) => values,
            ModelOutput::Predictions(predictions) => &predictions.log_probs,
        };
        if log_probs.len() != examples * classes {
            return Err(refused(
                "log_probs",
                format!(
                    "must be [N, K] = [{examples}, {classes}], as there are labels and classes; \
                     found {} numbers",
                    log_probs.len()
                ),
            ));
        }
        let given = self.labels.given(log_probs, classes);
        let rows = self.examples(given);
        let (predictions, self_confidence) =
            self.output.predictions(&rows, classes, self.labels.link())?;
        let task = Task {
            link: self.labels.link(),
            noise: noise(&predictions),
            fingerprint: fingerprint(&self.class_names, &rows),
            class_names: self.class_names,
        };
        let folds =
            self.folds.as_ref().map_or(0, |folds| folds.iter().max().map_or(0, |last| last + 1));
        let parts = divide(predictions, &rows, folds.max(1), &task)?;
        let annotators = match self.labels {
            AuditLabels::Votes { annotators, .. } => annotators,
            _ => vec![],
        };
        let parts = Parts { task, examples: rows, parts };
        Ok(Checked { parts, annotators, self_confidence, folds })
    }

    fn check_names(&self, examples: usize) -> Result<(), ReportError> {
        if examples == 0 {
            return Err(refused(
                "labels",
                "at least one example is needed, found none".to_string(),
            ));
        }
        let least = if self.labels.link() == Link::Softmax { 2 } else { 1 };
        if self.class_names.len() < least {
            let found = self.class_names.len();
            return Err(refused(
                "class_names",
                format!("at least {least} classes are needed, found {found}"),
            ));
        }
        distinct("class_names", &self.class_names)?;
        let lengths = [
            ("ids", self.ids.as_ref().map(Vec::len)),
            ("paths", self.paths.as_ref().map(Vec::len)),
            ("clean_labels", self.clean_labels.as_ref().map(Vec::len)),
            ("folds", self.folds.as_ref().map(Vec::len)),
        ];
        for (field, length) in lengths {
            if let Some(found) = length.filter(|length| *length != examples) {
                let message =
                    format!("must have one entry for each of the {examples} labels, found {found}");
                return Err(refused(field, message));
            }
        }
        if let Some((row, fold)) =
            self.folds.iter().flatten().enumerate().find(|(_, fold)| **fold >= examples)
        {
            let message = format!(
                "row {row}: folds are numbered from 0, found {fold} for {examples} examples"
            );
            return Err(refused("folds", message));
        }
        self.ids.as_ref().map_or(Ok(()), |ids| distinct("ids", ids))
    }

    fn check_clean(&self, examples: usize, classes: usize) -> Result<(), ReportError> {
        let Some(clean) = &self.clean_labels else { return Ok(()) };
        if self.labels.link() == Link::Sigmoid {
            let message = "true labels are used for labels of one class only; leave them out";
            return Err(refused("clean_labels", message.to_string()));
        }
        (0..examples).try_for_each(|row| check_class("clean_labels", row, clean[row], classes))
    }

    /// The examples with the labels that are listed for them.
    fn examples(&self, given: Vec<Vec<u32>>) -> Vec<Example> {
        let example = |(at, label): (usize, Vec<u32>)| {
            let row = ExampleRow {
                id: self.ids.as_ref().map_or_else(|| at.to_string(), |ids| ids[at].clone()),
                split: Split::Train,
                label: Some(label),
                clean_label: self.clean_labels.as_ref().map(|clean| vec![clean[at]]),
            };
            let votes = match &self.labels {
                AuditLabels::Votes { votes, .. } => votes[at].clone(),
                _ => vec![],
            };
            let labels = Example::evidence(&row, &votes);
            let path = self.paths.as_ref().map(|paths| paths[at].clone());
            let part = self.folds.as_ref().map_or(0, |folds| folds[at]);
            Example { row, path, votes, labels, part }
        };
        given.into_iter().enumerate().map(example).collect()
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
        let check = |row: usize, class: u32| check_class("labels", row, class, classes);
        match self {
            Self::Single(labels) => {
                labels.iter().enumerate().try_for_each(|(row, class)| check(row, *class))
            }
            Self::Multilabel(rows) => rows
                .iter()
                .enumerate()
                .try_for_each(|(row, on)| on.iter().try_for_each(|class| check(row, *class))),
            Self::Votes { votes, annotators, labels } => {
                distinct("annotators", annotators)?;
                if let Some(found) = labels.as_ref().map(Vec::len).filter(|it| *it != votes.len()) {
                    let message =
                        format!("{found} labels for the votes of {} examples", votes.len());
                    return Err(refused("labels", message));
                }
                for (row, votes) in votes.iter().enumerate() {
                    for (annotator, class) in votes {
                        check(row, *class)?;
                        if *annotator as usize >= annotators.len() {
                            let message = format!(
                                "row {row}: annotator {annotator} must be below {}, the number of annotators",
                                annotators.len()
                            );
                            return Err(refused("labels", message));
                        }
                    }
                    match labels {
                        Some(labels) => check(row, labels[row])?,
                        None if votes.is_empty() => {
                            return Err(refused(
                                "labels",
                                format!("row {row} has no vote and no label"),
                            ));
                        }
                        None => {}
                    }
                }
                Ok(())
            }
        }
    }

    /// The classes that the label of each example names, ascending.
    fn given(&self, log_probs: &[f32], classes: usize) -> Vec<Vec<u32>> {
        match self {
            Self::Single(labels) | Self::Votes { labels: Some(labels), .. } => {
                labels.iter().map(|class| vec![*class]).collect()
            }
            Self::Votes { votes, labels: None, .. } => {
                let rows = votes.iter().zip(log_probs.chunks_exact(classes));
                rows.map(|(votes, log_probs)| vec![majority(votes, log_probs)]).collect()
            }
            Self::Multilabel(rows) => {
                let sorted = |on: &Vec<u32>| {
                    let mut on = on.clone();
                    on.sort_unstable();
                    on.dedup();
                    on
                };
                rows.iter().map(sorted).collect()
            }
        }
    }
}

pub(super) fn check_log_probs(
    log_probs: &[f32],
    classes: usize,
    link: Link,
) -> Result<(), ReportError> {
    for (row, values) in log_probs.chunks_exact(classes).enumerate() {
        if let Some(class) = values.iter().position(|value| value.is_nan()) {
            let message = format!("row {row}, class {class} is not a number (NaN)");
            return Err(refused("log_probs", message));
        }
        let most = SUM_TOLERANCE.ln_1p() as f32;
        if let Some(class) = values.iter().position(|value| *value > most) {
            let message = format!(
                "row {row}, class {class}: a probability is at most 1, found {}; if these are \
                 logits, apply the softmax (with several classes on, the sigmoid) first",
                f64::from(values[class]).exp()
            );
            return Err(refused("log_probs", message));
        }
        let sum: f64 = values.iter().map(|value| f64::from(*value).exp()).sum();
        if link == Link::Softmax && (sum - 1.0).abs() > SUM_TOLERANCE {
            let message = format!(
                "row {row}: the probabilities of the classes must sum to 1, found {sum}; if these \
                 are logits, apply the softmax first"
            );
            return Err(refused("log_probs", message));
        }
    }
    Ok(())
}

pub(super) fn check_predictions(
    predictions: &Predictions,
    classes: usize,
    link: Link,
) -> Result<(), ReportError> {
    if predictions.classes != classes {
        let message = format!("must be of {classes} classes, found {}", predictions.classes);
        return Err(refused("predictions", message));
    }
    if (link == Link::Sigmoid) != predictions.log_probs_off.is_some() {
        let message = "log_probs_off belongs to labels that are on or off, and only to them";
        return Err(refused("predictions", message.to_string()));
    }
    Ok(())
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
    if (class as usize) < classes {
        return Ok(());
    }
    let message =
        format!("row {row}: class {class} must be below {classes}, the number of classes");
    Err(refused(field, message))
}

fn distinct(field: &'static str, names: &[String]) -> Result<(), ReportError> {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(refused(field, format!("row {row} is empty; it must have a name")));
        }
        if let Some(first) = rows.insert(name, row) {
            let message = format!("rows {first} and {row} are both {name:?}; they must differ");
            return Err(refused(field, message));
        }
    }
    Ok(())
}

pub(super) fn refused(field: &'static str, message: String) -> ReportError {
    ReportError::AuditInput { field: field.to_string(), message }
}
