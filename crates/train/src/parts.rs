//! The parts of steps, with their inputs as the network takes them.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Batch, Batches, Order, Split, Views, training_views};
use burn::tensor::Tensor;

use crate::state::device;
use crate::{Normalization, TrainError};

/// Where every step has all examples, their inputs stay in memory up to this many bytes; more are
/// read again for every step.
const MOST_HELD: usize = 1 << 30;

/// A part of a step that is ready to be computed.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// Its examples and their targets; the inputs have been taken out.
    pub batch: Batch,
    /// Normalised, [B, N].
    pub inputs: Tensor<2>,
    /// The same of the second view, where the method asks for one.
    pub second_view: Option<Tensor<2>>,
}

/// The parts of the steps of a training.
pub(crate) struct Parts {
    split: Arc<Split>,
    order: Order,
    views: Views,
    workers: usize,
    normalization: Normalization,
    /// Whether all steps have the same parts, which then stay in memory.
    repeats: bool,
    held: Vec<Loaded>,
}

impl Loaded {
    pub fn new(mut batch: Batch, normalization: &Normalization) -> Self {
        let tensor = |inputs| normalization.tensor(inputs, &device().autodiff());
        let inputs = tensor(std::mem::take(&mut batch.inputs));
        let second_view = batch.second_view.take().map(tensor);
        Self { inputs, second_view, batch }
    }
}

impl Parts {
    /// `one_objective` says that all steps minimise the same: then the order of examples in a step
    /// of all of them does not matter, and every step may have that of the first.
    pub fn new(
        split: Arc<Split>,
        order: Order,
        workers: usize,
        normalization: Normalization,
        one_objective: bool,
    ) -> Self {
        let numbers = split.len().saturating_mul(split.inputs.shape().len());
        let small = numbers.saturating_mul(size_of::<f32>()) <= MOST_HELD;
        let repeats = one_objective && small && order.steps_per_epoch() == 1;
        let views = Views::One;
        Self { split, order, views, workers, normalization, repeats, held: vec![] }
    }

    /// The same parts with this number of views of each example.
    pub fn with_views(self, views: Views) -> Self {
        Self { views, ..self }
    }

    pub fn normalization(&self) -> &Normalization {
        &self.normalization
    }

    /// How many parts a step has.
    pub fn count(&self) -> usize {
        self.order.parts()
    }

    /// The loop: every part of these steps, until `each` says that it is enough.
    pub fn for_each(
        &mut self,
        steps: Range<usize>,
        mut each: impl FnMut(&Loaded) -> Result<bool, TrainError>,
    ) -> Result<(), TrainError> {
        if !self.repeats {
            for part in self.stream(steps) {
                if !each(&Loaded::new(part?, &self.normalization))? {
                    break;
                }
            }
            return Ok(());
        }
        if self.held.is_empty() {
            let load = |part: Result<Batch, _>| Ok(Loaded::new(part?, &self.normalization));
            self.held = self.stream(0..1).map(load).collect::<Result<_, TrainError>>()?;
        }
        for step in steps {
            for part in &mut self.held {
                (part.batch.step, part.batch.epoch) = (step, self.order.epoch(step));
                if !each(part)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn stream(&self, steps: Range<usize>) -> Batches {
        let parts = 0..self.count();
        let split = Arc::clone(&self.split);
        training_views(split, self.order, steps, parts, self.views, self.workers)
    }
}
