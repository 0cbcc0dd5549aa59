//! Batches: some examples of a split, their inputs and what the loss compares with.

mod mixup;
mod order;
mod prefetch;
mod targets;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dataset::Split;
use crate::error::DataError;

pub use order::Order;
pub use prefetch::Batches;

/// What the loss compares predictions with.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// One class an example, `[B]`.
    Classes(Vec<u32>),
    /// A weight for every class, `[B, K]`: zeros and ones, probabilities, or scaled counts of
    /// annotations.
    Dense(Vec<f32>),
}

/// One step's worth of examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The step, counted from the start of training.
    pub step: usize,
    /// The pass over the data that the step belongs to.
    pub epoch: usize,
    /// Positions in the split, `[B]`.
    pub examples: Vec<usize>,
    /// What names the examples in random draws, `[B]`.
    pub keys: Vec<u64>,
    /// `[B, shape]`.
    pub inputs: Vec<f32>,
    /// What the loss compares with.
    pub targets: Targets,
}

/// The batches of `steps` in the order that `order` gives, prepared by `workers` threads ahead of
/// use, or by the caller's thread when `workers` is 0.
///
/// Batch `n` is the same for any number of workers and wherever the range starts, so training
/// resumes at any step.
///
/// ```
/// use aleator_data::{DataSet, Order, training_batches};
/// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
///
/// let validation = HeldOut::Fraction { fraction: 0.1, seed: 0 };
/// let data = Data::of(Source::of(InputSource::Digits), validation);
/// let train = DataSet::open(&data, Link::Softmax)?.train;
/// let order = Order { examples: train.len(), batch: 100, seed: 0 };
/// for batch in training_batches(train, order, 0..order.steps_per_epoch(), 2) {
///     let batch = batch?;
///     assert_eq!(batch.inputs.len(), batch.examples.len() * 64);
/// }
/// # Ok::<(), aleator_data::DataError>(())
/// ```
///
/// # Panics
/// When `order` is not of as many examples as the split has.
pub fn training_batches(
    split: Arc<Split>,
    order: Order,
    steps: Range<usize>,
    workers: usize,
) -> Batches {
    assert_eq!(order.examples, split.len(), "the order must be of the split's examples");
    Batches::new(Job { split, plan: Plan::Training(order) }, steps, workers)
}

/// Every example of the split once, in order, `batch` at a time.
///
/// # Panics
/// When `batch` is 0.
pub fn evaluation_batches(split: Arc<Split>, batch: usize, workers: usize) -> Batches {
    assert!(batch > 0, "a batch needs an example");
    let steps = split.len().div_ceil(batch);
    Batches::new(Job { split, plan: Plan::Evaluation { batch } }, 0..steps, workers)
}

/// What is made of which examples, for any step.
#[derive(Clone)]
struct Job {
    split: Arc<Split>,
    plan: Plan,
}

#[derive(Clone, Copy)]
enum Plan {
    Training(Order),
    Evaluation { batch: usize },
}

impl Job {
    /// Bytes of the inputs of a batch, about.
    fn batch_bytes(&self) -> usize {
        let (Plan::Training(Order { batch, .. }) | Plan::Evaluation { batch }) = self.plan;
        let numbers = batch.min(self.split.len()).saturating_mul(self.split.inputs.shape().len());
        numbers.saturating_mul(size_of::<f32>())
    }

    /// The batch of one step; `None` when `stop` was raised meanwhile.
    fn prepare(&self, step: usize, stop: &AtomicBool) -> Option<Result<Batch, DataError>> {
        let split = &self.split;
        let (epoch, examples): (usize, Vec<usize>) = match self.plan {
            Plan::Training(order) => (order.epoch(step), order.examples_of(step).collect()),
            Plan::Evaluation { batch } => {
                let from = step * batch;
                (0, (from..split.len().min(from + batch)).collect())
            }
        };
        let keys: Vec<u64> = examples.iter().map(|example| split.ids.key(*example)).collect();
        let width = split.inputs.shape().len();
        let mut inputs = vec![0.0; examples.len() * width];
        for ((input, example), key) in inputs.chunks_exact_mut(width).zip(&examples).zip(&keys) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let row = split.rows[*example];
            let read = match (self.plan, &split.augment) {
                (Plan::Training(order), Some(augmenter)) => {
                    split.inputs.read_augmented(row, augmenter, order.seed, epoch, *key, input)
                }
                _ => split.inputs.read(row, input),
            };
            if let Err(error) = read {
                return Some(Err(error));
            }
        }
        let targets = match self.plan {
            Plan::Training(order) => {
                let targets = targets::training(split, &examples, order.seed, epoch);
                mixup::mix(split, &keys, order.seed, epoch, &mut inputs, targets)
            }
            Plan::Evaluation { .. } => targets::evaluation(split, &examples),
        };
        Some(Ok(Batch { step, epoch, examples, keys, inputs, targets }))
    }
}
