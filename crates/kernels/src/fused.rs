//! The softmax likelihood, fused: draw, add, exponentiate and reduce one tile at a time.
//!
//! No array has size B×S×K, and memory does not depend on S. Each example is computed by one thread
//! in a fixed order, so the bits do not depend on the number of threads. The functions run in the
//! rayon pool that calls them.

mod choice;
mod log_probs;
pub(crate) mod loss;
mod predict;
pub(crate) mod rows;
mod samples;
pub(crate) mod worker;

pub use choice::choice_probs;
pub use log_probs::{backward, log_probs};
pub use loss::{Buffers, LossGrad, loss_and_grad, loss_and_grad_into};
pub use predict::{Prediction, predict};
pub use samples::{Noise, drawn_noise, for_each_noise_block, for_each_utility_block};

use crate::draws::Sampling;
use crate::latent::{Latent, NotFinite};

/// The targets of a batch.
///
/// ```
/// use aleator_kernels::Targets;
///
/// // Example 0 is class 2; example 1 is a mixture of classes 0 and 3 (mixup).
/// let targets = Targets::Sparse {
///     offsets: &[0, 1, 3],
///     classes: &[2, 0, 3],
///     probs: &[1.0, 0.7, 0.3],
/// };
/// targets.check(2, 4);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// One class for each example, `[B]`.
    Classes(&'a [u32]),
    /// Weights of some classes: example i has `classes[offsets[i]..offsets[i + 1]]` with those
    /// `probs`.
    Sparse {
        /// [B + 1], ascending from 0.
        offsets: &'a [usize],
        /// Classes with a weight other than zero, example by example.
        classes: &'a [u32],
        /// Their weights.
        probs: &'a [f32],
    },
    /// A weight for each example and class, [B, K].
    Dense(&'a [f32]),
}

impl Targets<'_> {
    /// # Panics
    /// If the shapes do not match, a class is out of range or a weight is not finite; the message
    /// names the example.
    pub fn check(&self, batch: usize, classes: usize) {
        let in_range = |row: usize, class: u32| {
            assert!(
                (class as usize) < classes,
                "label of example {row} must be below {classes}, found {class}"
            );
        };
        let finite = |row: usize, prob: f32| {
            assert!(prob.is_finite(), "target probability of example {row} is {prob}");
        };
        match self {
            Self::Classes(labels) => {
                let found = labels.len();
                assert!(found == batch, "labels must be [B] = {batch} long, found {found}");
                labels.iter().enumerate().for_each(|(row, class)| in_range(row, *class));
            }
            Self::Sparse { offsets, classes, probs } => {
                let found = offsets.len();
                let expected = batch + 1;
                assert!(
                    found == expected,
                    "offsets must be [B + 1] = {expected} long, found {found}"
                );
                assert_eq!(classes.len(), probs.len(), "one probability for each target class");
                let whole =
                    offsets[0] == 0 && offsets[batch] == classes.len() && offsets.is_sorted();
                assert!(whole, "offsets must ascend from 0 to the number of target classes");
                for row in 0..batch {
                    for at in offsets[row]..offsets[row + 1] {
                        in_range(row, classes[at]);
                        finite(row, probs[at]);
                    }
                }
            }
            Self::Dense(probs) => {
                let (found, expected) = (probs.len(), batch * classes);
                assert!(found == expected, "labels must be [B, K] = {expected}, found {found}");
                probs.iter().enumerate().for_each(|(at, prob)| finite(at / classes, *prob));
            }
        }
    }

    /// −log p of the labels of each example, from log p, [B, K].
    ///
    /// # Panics
    /// When shapes do not match.
    pub fn losses(&self, log_probs: &[f32], classes: usize) -> Vec<f32> {
        let of_row = |(row, log_probs): (usize, &[f32])| {
            let terms = self.of(row, classes).into_iter();
            terms.map(|(class, prob)| f64::from(prob) * -f64::from(log_probs[class])).sum::<f64>()
        };
        log_probs.chunks_exact(classes).enumerate().map(|row| of_row(row) as f32).collect()
    }

    /// The target classes of one example of K with their weights.
    pub(crate) fn of(&self, row: usize, classes: usize) -> Vec<(usize, f32)> {
        let weighty = |(_, prob): &(usize, f32)| *prob != 0.0;
        match self {
            Self::Classes(labels) => vec![(labels[row] as usize, 1.0)],
            Self::Sparse { offsets, classes, probs } => (offsets[row]..offsets[row + 1])
                .map(|at| (classes[at] as usize, probs[at]))
                .filter(weighty)
                .collect(),
            Self::Dense(probs) => {
                let row = &probs[row * classes..(row + 1) * classes];
                row.iter().copied().enumerate().filter(weighty).collect()
            }
        }
    }
}

fn check(latent: &Latent, sampling: &Sampling) -> Result<(), NotFinite> {
    latent.check()?;
    let (ids, batch) = (sampling.ids.len(), latent.batch);
    assert!(ids == batch, "example ids must be [B] = {batch} long, found {ids}");
    assert!(sampling.samples > 0 || !latent.is_noisy(), "samples must be at least 1, found 0");
    let countable = u32::try_from(sampling.samples).is_ok();
    assert!(countable, "samples must be below 2^32, found {}", sampling.samples);
    Ok(())
}
