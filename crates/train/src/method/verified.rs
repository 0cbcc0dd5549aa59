//! Training examples whose true class somebody has checked: for methods that learn from them which
//! labels are right.

use aleator_data::{DataError, DataSet};

use crate::evaluate::TIE_SEED;
use crate::tensors::NamedTensor;

/// Right and wrong labels that there must be at least, each: from fewer nothing can be learned.
const LEAST: usize = 5;

/// The verified examples of a training split.
pub(super) struct Verified {
    /// Whether the given label of each example is right, `[N]`; none where nobody has checked.
    judgements: Vec<Option<bool>>,
}

impl Verified {
    /// Compares the true classes in a file with the given labels.
    ///
    /// # Errors
    /// When the file cannot be read, or has too few training examples.
    pub fn load(path: &str, data: &DataSet) -> Result<Self, DataError> {
        let train = &data.train;
        let given = train.labels.hard(TIE_SEED, &train.ids).unwrap_or_default();
        let judge = |(class, given): (Option<u32>, u32)| Some(class? == given);
        let judgements = data.verified(path)?.into_iter().zip(given).map(judge).collect();
        let verified = Self { judgements };
        let (right, wrong) = (verified.count(true), verified.count(false));
        if right.min(wrong) < LEAST {
            let all = right + wrong;
            return Err(DataError::invalid(
                path,
                format!(
                    "verifies {all} of the training examples, of which {right} have the right label \
                     and {wrong} a wrong one; to tell them apart takes at least {LEAST} of each: \
                     verify more, not only those that are suspected"
                ),
            ));
        }
        Ok(verified)
    }

    fn count(&self, right: bool) -> usize {
        self.judgements.iter().filter(|judgement| **judgement == Some(right)).count()
    }

    /// The tensor of a fresh state, `[N, 2]`: whether each example is verified, and whether its label
    /// is right; nobody is, yet.
    pub fn unknown(name: &str, examples: usize) -> NamedTensor {
        NamedTensor::zeros(name, &[examples, 2])
    }

    /// Keeps the judgements in the tensor of [`Verified::unknown`], so that a run needs the file
    /// only once.
    pub fn keep(&self, tensor: &mut NamedTensor) {
        tensor.values.change(|values| {
            for (row, judgement) in values.chunks_exact_mut(2).zip(&self.judgements) {
                row.copy_from_slice(&match judgement {
                    None => [0.0, 0.0],
                    Some(right) => [1.0, f32::from(u8::from(*right))],
                });
            }
        });
    }

    /// The examples that are verified, and whether their labels are right.
    pub fn kept(tensor: &NamedTensor) -> Vec<(usize, bool)> {
        let values = tensor.values.read();
        let rows = values.chunks_exact(2).enumerate().filter(|(_, row)| row[0] == 1.0);
        rows.map(|(example, row)| (example, row[1] == 1.0)).collect()
    }
}
