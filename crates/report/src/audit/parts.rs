//! What labels are judged by: every example once, with the predictions of a model that did not see
//! its label, wherever those come from.

use std::ops::Range;
use std::path::{Path, PathBuf};

use aleator_run::{ExampleRow, Field, Link, Noise, RunError, SplitReader};

use super::dynamics::TrainingDynamics;
use super::single::Planting;
use crate::covariance::Covariances;
use crate::error::ReportError;

/// All examples and their predictions.
#[derive(Debug)]
pub(super) struct Parts {
    pub task: Task,
    /// The names of the annotators; empty where they are not known.
    pub annotators: Vec<String>,
    /// The judged examples, in the order of the data.
    pub examples: Vec<Example>,
    /// The predictions, divided by the model that made them.
    pub parts: Vec<Part>,
    /// Errors that were planted before the labels are judged.
    pub planting: Option<Planting>,
    /// What was predicted for the examples while a network learned their labels.
    pub dynamics: Option<TrainingDynamics>,
}

/// What all parts have in common.
#[derive(Debug)]
pub(super) struct Task {
    pub link: Link,
    pub noise: Noise,
    pub fingerprint: String,
    pub class_names: Vec<String>,
    /// 0 where nothing is known of folds.
    pub folds: usize,
    /// What the probabilities of the classes were divided by.
    pub self_confidence: Option<Vec<f64>>,
}

/// An example that is judged.
#[derive(Clone, Debug)]
pub(super) struct Example {
    pub row: ExampleRow,
    /// The file of its image, where it has one of its own.
    pub path: Option<PathBuf>,
    /// Annotator and class of each annotation; empty where annotators are not known.
    pub votes: Vec<(u32, u32)>,
    /// The classes that count as evidence: those of the votes, or the given label.
    pub labels: Vec<u32>,
    /// Its position in [`Parts::parts`].
    pub part: usize,
}

/// The predictions of one model.
#[derive(Debug)]
pub(super) struct Part {
    /// The predictions; their examples are in [`Parts::examples`].
    pub reader: SplitReader,
    /// Of each row of the predictions, its position in [`Parts::examples`].
    pub positions: Vec<usize>,
    /// `None` without a noise model, and where each class is on or off.
    pub covariances: Option<Covariances>,
}

/// One example with some of its predictions.
pub(super) struct Row<'a, const F: usize> {
    /// Its position in [`Parts::examples`].
    pub position: usize,
    pub example: &'a Example,
    pub temperature: f64,
    /// The numbers of each field that was asked for, `[K]`.
    pub fields: [&'a [f32]; F],
}

impl Parts {
    /// Gives `take` the predictions of some examples at a time.
    pub fn each_piece<const F: usize>(
        &mut self,
        fields: [Field; F],
        mut take: impl FnMut(&[Row<F>]),
    ) -> Result<(), ReportError> {
        let Self { examples, parts, .. } = self;
        for part in parts {
            let file = &part.reader.file;
            let (classes, temperature) = (file.classes(), f64::from(file.temperature()));
            for rows in part.pieces() {
                let mut tensors = [const { vec![] }; F];
                for (tensor, field) in tensors.iter_mut().zip(fields) {
                    *tensor = part.reader.read(field, rows.clone())?;
                }
                let row = |(row, position): (usize, &usize)| Row {
                    position: *position,
                    example: &examples[*position],
                    temperature,
                    fields: tensors.each_ref().map(|it| &it[row * classes..(row + 1) * classes]),
                };
                let positions = part.positions[rows].iter();
                take(&positions.enumerate().map(row).collect::<Vec<Row<F>>>());
            }
        }
        Ok(())
    }
}

impl Example {
    pub fn new(
        row: ExampleRow,
        path: Option<PathBuf>,
        votes: Vec<(u32, u32)>,
        part: usize,
    ) -> Self {
        let labels = match &votes[..] {
            [] => row.label.clone().unwrap_or_default(),
            votes => votes.iter().map(|(_, class)| *class).collect(),
        };
        Self { row, path, votes, labels, part }
    }

    /// The true class, where it is known.
    pub fn truth(&self) -> Option<u32> {
        self.row.clean_label.as_ref().and_then(|classes| classes.first()).copied()
    }

    /// The given label, which must be one class.
    pub fn given(&self) -> Result<u32, RunError> {
        match self.row.label.as_deref() {
            Some([class]) => Ok(*class),
            _ => Err(RunError::damaged(
                Path::new("examples.csv"),
                format!("example {:?} must have a label of one class", self.row.id),
            )),
        }
    }
}

impl Part {
    /// The rows that are read together.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.reader.pieces(self.reader.file.classes(), usize::MAX)
    }
}
