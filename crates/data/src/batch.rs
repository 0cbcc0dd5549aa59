//! Batches: some examples of a split, their inputs and what the loss compares with.

mod mixup;
mod order;
mod prefetch;
mod targets;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dataset::Split;
use crate::draws::{self, Purpose};
use crate::error::DataError;

pub use order::Order;
pub use prefetch::Batches;
use targets::Step;
pub use targets::{SparseTargets, Targets};

/// The examples of a step, or of one part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The step, counted from the start of training.
    pub step: usize,
    /// The pass over the data that the step belongs to.
    pub epoch: usize,
    /// The part of the step.
    pub part: usize,
    /// Examples of the whole step.
    pub step_examples: usize,
    /// Positions in the split, `[B]`.
    pub examples: Vec<usize>,
    /// What names the examples in random draws, `[B]`.
    pub keys: Vec<u64>,
    /// `[B, shape]`.
    pub inputs: Vec<f32>,
    /// The same examples varied by other draws, `[B, shape]`, where [`Views`] asks for it.
    pub second_view: Option<Vec<f32>>,
    /// What the loss compares with.
    pub targets: Targets,
}

/// How often a training batch holds each of its examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Views {
    /// Once.
    One,
    /// From this epoch on twice, varied by draws of its own each time.
    TwoFrom {
        /// The first epoch with two.
        epoch: usize,
    },
}

impl Views {
    fn are_two(self, in_epoch: usize) -> bool {
        matches!(self, Self::TwoFrom { epoch } if in_epoch >= epoch)
    }
}

/// These parts of each of these steps, one after the other, in the order that `order` gives,
/// prepared by `workers` threads ahead of use, or by the caller's thread when `workers` is 0.
///
/// A part is the same for any number of workers, wherever the steps start and whichever other
/// parts are asked for: training resumes at any step, and a process prepares only the parts that it
/// computes.
///
/// ```
/// use aleator_data::{DataSet, Order, training_batches};
/// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
///
/// let validation = HeldOut::Fraction { fraction: 0.1, seed: 0 };
/// let data = Data::of(Source::of(InputSource::Digits), validation);
/// let train = DataSet::open(&data, Link::Softmax)?.train;
/// let order = Order { examples: train.len(), batch: 100, part: 50, seed: 0 };
/// let (steps, parts) = (0..order.steps_per_epoch(), 0..order.parts());
/// for batch in training_batches(train, order, steps, parts, 2) {
///     let batch = batch?;
///     assert_eq!(batch.inputs.len(), batch.examples.len() * 64);
/// }
/// # Ok::<(), aleator_data::DataError>(())
/// ```
///
/// # Panics
/// When `order` is not of as many examples as the split has, or has no such parts.
pub fn training_batches(
    split: Arc<Split>,
    order: Order,
    steps: Range<usize>,
    parts: Range<usize>,
    workers: usize,
) -> Batches {
    training_views(split, order, steps, parts, Views::One, workers)
}

/// [`training_batches`] with this number of views of each example. The first does not depend on it.
///
/// # Panics
/// As [`training_batches`].
pub fn training_views(
    split: Arc<Split>,
    order: Order,
    steps: Range<usize>,
    parts: Range<usize>,
    views: Views,
    workers: usize,
) -> Batches {
    assert_eq!(order.examples, split.len(), "the order must be of the split's examples");
    assert!(parts.end <= order.parts(), "a step has {} parts, not {parts:?}", order.parts());
    let count = parts.len();
    let job = Job { split, plan: Plan::Training { order, parts, views } };
    Batches::new(job, steps.start * count..steps.end * count, workers)
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

/// What to prepare for any index of [`Batches`].
#[derive(Clone)]
struct Job {
    split: Arc<Split>,
    plan: Plan,
}

#[derive(Clone)]
enum Plan {
    /// Index n is part n mod P of step n div P, of P parts.
    Training { order: Order, parts: Range<usize>, views: Views },
    /// Index n is the n-th batch.
    Evaluation { batch: usize },
}

impl Job {
    /// Bytes of the inputs of a batch, about.
    fn batch_bytes(&self) -> usize {
        let batch = match &self.plan {
            Plan::Training { order, .. } => order.batch.min(order.part),
            Plan::Evaluation { batch } => *batch,
        };
        let views = match &self.plan {
            Plan::Training { views: Views::TwoFrom { .. }, .. } => 2,
            _ => 1,
        };
        let numbers = batch.min(self.split.len()).saturating_mul(self.split.inputs.shape().len());
        numbers.saturating_mul(views * size_of::<f32>())
    }

    /// The batch of an index; `None` when `stop` was raised meanwhile.
    fn prepare(&self, index: usize, stop: &AtomicBool) -> Result<Option<Batch>, DataError> {
        let split = &*self.split;
        match &self.plan {
            Plan::Training { order, parts, views } => {
                let (step, part) = (index / parts.len(), parts.start + index % parts.len());
                self.prepare_training(order, *views, step, part, stop)
            }
            Plan::Evaluation { batch } => {
                let from = index * batch;
                let examples: Vec<usize> = (from..split.len().min(from + batch)).collect();
                let Some(inputs) = self.read(&examples, None, stop)? else { return Ok(None) };
                Ok(Some(Batch {
                    step: index,
                    epoch: 0,
                    part: 0,
                    step_examples: examples.len(),
                    keys: self.keys(&examples),
                    targets: targets::evaluation(split, &examples),
                    examples,
                    inputs,
                    second_view: None,
                }))
            }
        }
    }

    fn prepare_training(
        &self,
        order: &Order,
        views: Views,
        step: usize,
        part: usize,
        stop: &AtomicBool,
    ) -> Result<Option<Batch>, DataError> {
        let (split, epoch) = (&*self.split, order.epoch(step));
        let of_step: Vec<usize> = order.examples_of(step).collect();
        let rows = order.rows_of(step, part);
        let mut examples = of_step[rows.clone()].to_vec();
        let shares = mixup::shares(split, &self.keys(&examples), order.seed, epoch)
            .filter(|_| of_step.len() > 1);
        let mixed = shares.is_some();
        if mixed && examples.len() < of_step.len() {
            // The last example of a part is mixed with the first of the next one.
            examples.push(of_step[rows.end % of_step.len()]);
        }
        let view = |seed: u64| self.view(&examples, (seed, epoch), shares.as_deref(), stop);
        let Some(inputs) = view(order.seed)? else { return Ok(None) };
        let second_view = match views.are_two(epoch) {
            false => None,
            true => match view(draws::word(order.seed, Purpose::SecondView, &[]))? {
                None => return Ok(None),
                second => second,
            },
        };
        examples.truncate(rows.len());
        let step_targets = Step { split, examples: &of_step, seed: order.seed, epoch };
        let targets = step_targets.targets(rows, mixed);
        let (keys, step_examples) = (self.keys(&examples), of_step.len());
        Ok(Some(Batch {
            step,
            epoch,
            part,
            step_examples,
            examples,
            keys,
            inputs,
            second_view,
            targets,
        }))
    }

    /// Some examples varied for this seed and epoch, and mixed by `shares` where there are some;
    /// `None` when `stop` was raised meanwhile.
    fn view(
        &self,
        examples: &[usize],
        varied: (u64, usize),
        shares: Option<&[f64]>,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<f32>>, DataError> {
        let Some(mut inputs) = self.read(examples, Some(varied), stop)? else { return Ok(None) };
        if let Some(shares) = shares {
            mixup::mix_rows(&mut inputs, shares, self.split.inputs.shape().len());
        }
        Ok(Some(inputs))
    }

    fn keys(&self, examples: &[usize]) -> Vec<u64> {
        examples.iter().map(|example| self.split.ids.key(*example)).collect()
    }

    /// The inputs of some examples, varied for this seed and epoch where the recipe says so;
    /// `None` when `stop` was raised meanwhile.
    fn read(
        &self,
        examples: &[usize],
        varied: Option<(u64, usize)>,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<f32>>, DataError> {
        let split = &self.split;
        let width = split.inputs.shape().len();
        let mut inputs = vec![0.0; examples.len() * width];
        for (input, example) in inputs.chunks_exact_mut(width).zip(examples) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let (row, key) = (split.rows[*example], split.ids.key(*example));
            match (varied, &split.augment) {
                (Some((seed, epoch)), Some(augmenter)) => {
                    split.inputs.read_augmented(row, augmenter, seed, epoch, key, input)?;
                }
                _ => split.inputs.read(row, input)?,
            }
        }
        Ok(Some(inputs))
    }
}
