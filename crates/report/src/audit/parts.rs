//! What labels are judged by: every example once, with the predictions of a model that did not see
//! its label, wherever those come from.

use std::ops::Range;
use std::path::{Path, PathBuf};

use aleator_run::{ExampleRow, Field, Link, Noise, PredictionsFile, RunError};

use crate::covariance::Covariances;
use crate::error::ReportError;

/// All examples and their predictions.
#[derive(Debug)]
pub(super) struct Parts {
    pub task: Task,
    /// The judged examples, in the order of the data.
    pub examples: Vec<Example>,
    /// The predictions, divided by the model that made them.
    pub parts: Vec<Part>,
}

/// What all parts have in common.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub link: Link,
    pub noise: Noise,
    pub fingerprint: String,
    pub class_names: Vec<String>,
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
    pub file: PredictionsFile,
    /// Of each row of the file, its position in [`Parts::examples`].
    pub examples: Vec<usize>,
    /// `None` without a noise model, and where each class is on or off.
    pub covariances: Option<Covariances>,
}

/// The most numbers of one tensor that are read at a time.
const PIECE: usize = 1 << 22;

impl Example {
    /// The labels that count as evidence.
    pub fn evidence(row: &ExampleRow, votes: &[(u32, u32)]) -> Vec<u32> {
        match votes {
            [] => row.label.clone().unwrap_or_default(),
            _ => votes.iter().map(|(_, class)| *class).collect(),
        }
    }

    /// The true class, where it is known.
    pub fn truth(&self) -> Option<u32> {
        self.row.clean_label.as_ref().and_then(|classes| classes.first()).copied()
    }

    /// The given label, which must be one class.
    pub fn given(&self) -> Result<u32, ReportError> {
        match self.row.label.as_deref() {
            Some([class]) => Ok(*class),
            _ => Err(damaged(
                Path::new("examples.csv"),
                format!("example {:?} must have a label of one class", self.row.id),
            )),
        }
    }
}

impl Part {
    /// The rows of the file that are read together.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.examples.len();
        let step = (PIECE / self.file.classes()).max(1);
        (0..rows).step_by(step).map(move |start| start..rows.min(start + step))
    }

    /// Some rows of a tensor that every file has.
    pub fn read(&mut self, field: Field, rows: Range<usize>) -> Result<Vec<f32>, ReportError> {
        let values = self.file.read(field, rows.clone())?.unwrap_or_default();
        // An impossible class has the logarithm −∞; a mean is finite.
        let valid = |value: &f32| {
            value.is_finite() || (field != Field::Mean && *value == f32::NEG_INFINITY)
        };
        match values.iter().position(|value| !valid(value)) {
            None => Ok(values),
            Some(at) => {
                let row = rows.start + at / self.file.classes();
                let message = format!("tensor {:?}: row {row} is not finite", field.name());
                Err(damaged(self.file.path(), message))
            }
        }
    }
}

pub(super) fn damaged(path: &Path, message: String) -> ReportError {
    RunError::Damaged { path: path.to_path_buf(), message }.into()
}
