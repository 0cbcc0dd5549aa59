//! Adam over the tensors of a method's own small network.

use aleator_model::params::{Live, Values};
use aleator_run::recipe::{self, Moments, Rule, WeightDecay};

use crate::Optimizer;
use crate::tensors::NamedTensor;

/// Tensors, and what moves them.
pub(super) struct Adam {
    pub tensors: Vec<NamedTensor>,
    optimizer: Optimizer,
    rate: f64,
    steps: usize,
    done: usize,
}

/// Gradients of a larger norm are scaled down to it.
const CLIP_NORM: f64 = 5.0;

impl Adam {
    /// For this many steps, in which the learning rate falls linearly to 0.
    pub fn new(tensors: Vec<NamedTensor>, rate: f64, steps: usize) -> Self {
        let moments = Moments { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        let settings = recipe::Optimizer {
            rule: Rule::Adam(moments),
            learning_rate: rate,
            network_rate: None,
            clip_norm: Some(CLIP_NORM),
            l2: WeightDecay::of_all(0.0),
        };
        let mut optimizer = Optimizer::new(&settings, false);
        for NamedTensor { name, shape, values } in &tensors {
            optimizer.add(name, shape, values);
        }
        Self { tensors, optimizer, rate, steps, done: 0 }
    }

    /// Moves every tensor by its gradient.
    pub fn step(&mut self, gradients: &[Values], loss: f64) {
        let rate = self.rate * (1.0 - self.done as f64 / self.steps as f64);
        self.done += 1;
        let mut step = self.optimizer.step(gradients, loss, rate);
        for (index, NamedTensor { name, shape, values }) in self.tensors.iter_mut().enumerate() {
            step.apply(index, Live { name, shape, values });
        }
    }
}
