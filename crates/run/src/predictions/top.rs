//! The most probable classes of each example, as a file.

use std::path::Path;

use safetensors::tensor::Dtype;
use serde::Serialize;

use super::Predictions;
use super::writer::TensorWriter;
use crate::error::RunError;

/// Writes the `top` most probable classes of each example, piece by piece; the file appears when it
/// is complete.
///
/// The tensors are `classes` (I32) and `log_probs` (F32), both `[N, top]`, the most probable first;
/// of equally probable ones the first.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("test.top.safetensors");
/// use aleator_run::{Predictions, TopPredictionsWriter};
///
/// let predictions = Predictions {
///     classes: 3,
///     rank: 0,
///     temperature: 1.0,
///     log_probs: vec![-2.3, -0.2, -2.5],
///     log_probs_off: None,
///     mean: vec![0.5, 1.7, 0.0],
///     diag_scale: None,
///     loadings: None,
///     loading_scale: None,
///     shared_loadings: None,
///     joint_log_probs: None,
/// };
/// let mut writer = TopPredictionsWriter::create(&path, 1, 2)?;
/// writer.push(&predictions)?;
/// writer.commit()?;
/// assert_eq!(aleator_run::tensor_shapes(&path)?["classes"], [1, 2]);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct TopPredictionsWriter {
    file: TensorWriter,
    examples: usize,
    written: usize,
    top: usize,
}

/// The metadata of the file.
#[derive(Serialize)]
struct TopMetadata {
    classes: usize,
    top: usize,
    temperature: f32,
}

impl TopPredictionsWriter {
    /// For the `top` most probable classes of `examples` examples; all classes if there are fewer.
    pub fn create(path: &Path, examples: usize, top: usize) -> Result<Self, RunError> {
        Ok(Self { file: TensorWriter::create(path)?, examples, written: 0, top })
    }

    /// Adds the next examples.
    ///
    /// # Panics
    /// When there are more examples than were announced.
    pub fn push(&mut self, piece: &Predictions) -> Result<(), RunError> {
        let Predictions { classes, temperature, .. } = *piece;
        let top = self.top.min(classes);
        if self.written == 0 {
            let shape = || vec![self.examples, top];
            let tensors =
                vec![("classes", Dtype::I32, shape()), ("log_probs", Dtype::F32, shape())];
            self.file.begin(&TopMetadata { classes, top, temperature }, tensors)?;
        }
        let examples = piece.examples();
        assert!(self.written + examples <= self.examples, "more than {} examples", self.examples);
        let (mut best, mut log_probs) = (vec![], vec![]);
        for row in piece.log_probs.chunks_exact(classes) {
            let ranked = most_probable(row, top);
            log_probs.extend(ranked.iter().map(|class| row[*class]));
            best.extend(ranked.into_iter().map(|class| class as i32));
        }
        self.file.write(0, self.written, &best)?;
        self.file.write(1, self.written, &log_probs)?;
        self.written += examples;
        Ok(())
    }

    /// Brings the file to its place.
    ///
    /// # Panics
    /// When examples are missing.
    pub fn commit(self) -> Result<(), RunError> {
        assert_eq!(self.written, self.examples, "predictions of all examples");
        self.file.commit()
    }
}

/// The classes of the `top` largest values, the largest first.
fn most_probable(row: &[f32], top: usize) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..row.len()).collect();
    let order = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
    if top < classes.len() {
        classes.select_nth_unstable_by(top, order);
        classes.truncate(top);
    }
    classes.sort_unstable_by(order);
    classes
}

#[cfg(test)]
mod tests {
    use super::most_probable;

    #[test]
    fn of_equals_the_first_comes_first() {
        let row = [-1.0, -3.0, -1.0, f32::NEG_INFINITY, -0.5];
        assert_eq!(most_probable(&row, 3), [4, 0, 2]);
        assert_eq!(most_probable(&row, 2), [4, 0]);
        assert_eq!(most_probable(&row, 9), [4, 0, 2, 1, 3]);
    }
}
