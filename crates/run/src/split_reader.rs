//! The examples of a split together with what a run predicts for them.

use std::ops::Range;

use crate::error::RunError;
use crate::examples::ExampleRow;
use crate::predictions::{Field, PredictionsFile};
use crate::record::{RunDir, Split};

/// A split of an evaluated run: the rows of `examples.csv` and the open file of predictions.
///
/// Row n of the file is `examples[n]`, and all labels are classes of the run: [`open`](Self::open)
/// has checked both.
#[derive(Debug)]
pub struct SplitReader {
    /// The examples of the split, in the order of the predictions.
    pub examples: Vec<ExampleRow>,
    /// Their predictions.
    pub file: PredictionsFile,
    /// Which split it is.
    pub split: Split,
}

/// Numbers of a tensor that are held in memory at a time.
const PIECE: usize = 1 << 22;

impl SplitReader {
    /// Opens a split.
    ///
    /// # Errors
    /// When the split is not evaluated, its predictions were not kept, or its two files do not agree
    /// with each other or with `run.json`.
    pub fn open(run: &RunDir, split: Split) -> Result<Self, RunError> {
        let path = run.predictions_path(split);
        if !path.exists() {
            return Err(run.no_predictions(split));
        }
        let file = PredictionsFile::open(&path)?;
        let examples = run.split_examples(split)?;
        let classes = run.info().class_names.len();
        let (rows, columns) = (file.examples(), file.classes());
        if (rows, columns) != (examples.len(), classes) {
            let message = format!(
                "holds {rows} examples of {columns} classes, and the run has {} of {classes}; \
                 `aleator eval {}` writes it again",
                examples.len(),
                run.path().display()
            );
            return Err(RunError::damaged(&path, message));
        }
        Ok(Self { examples, file, split })
    }

    /// Ranges of at most `most` rows to read one after the other, where a row has `width` numbers.
    /// They do not depend on the machine.
    pub fn pieces(&self, width: usize, most: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let total = self.file.examples();
        let rows = (PIECE / width.max(1)).clamp(1, most);
        (0..total).step_by(rows).map(move |start| start..total.min(start + rows))
    }

    /// Some rows of a tensor, all numbers finite; logarithms of probabilities may be −∞.
    ///
    /// # Errors
    /// When the tensor is missing or a number is not finite.
    pub fn read(&mut self, field: Field, rows: Range<usize>) -> Result<Vec<f32>, RunError> {
        let (first, count, name) = (rows.start, rows.len(), field.name());
        let values = self.file.read(field, rows)?;
        let damaged = |message: String| RunError::damaged(self.file.path(), message);
        let values = values.ok_or_else(|| damaged(format!("tensor {name:?} is missing")))?;
        // An impossible class has log 0.
        let is_log = matches!(field, Field::LogProbs | Field::LogProbsOff);
        let valid = |value: &f32| value.is_finite() || (is_log && *value == f32::NEG_INFINITY);
        match values.iter().position(|value| !valid(value)) {
            None => Ok(values),
            Some(at) => {
                let (row, found) = (first + at / (values.len() / count), values[at]);
                Err(damaged(format!(
                    "tensor {name:?}: row {row} holds {found}, not a finite number"
                )))
            }
        }
    }
}

impl RunDir {
    /// The rows of `examples.csv` of a split, whose labels are classes of the run.
    pub fn split_examples(&self, split: Split) -> Result<Vec<ExampleRow>, RunError> {
        let mut examples = self.read_examples()?;
        examples.retain(|row| row.split == split);
        let classes = self.info().class_names.len();
        for row in &examples {
            let labels = row.label.iter().chain(&row.clean_label).flatten();
            if let Some(class) = labels.copied().find(|class| *class as usize >= classes) {
                let message = format!(
                    "example {:?} has class {class}, expected classes below {classes}",
                    row.id
                );
                return Err(RunError::damaged(&self.examples_path(), message));
            }
        }
        Ok(examples)
    }

    /// Why there are no complete predictions of a split.
    pub fn no_predictions(&self, split: Split) -> RunError {
        let (dir, kept_none) = (self.path().to_path_buf(), self.keeps_no_predictions(split));
        let split = split.name();
        match kept_none {
            true => RunError::NotKept { dir, split },
            false => RunError::NotEvaluated { dir, split },
        }
    }
}
