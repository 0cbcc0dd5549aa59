//! The likelihood of the given labels: the method of the paper.

use super::Method;
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct Plain;

impl Method for Plain {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let loss = model.loss(forward, part.targets(), &part.weights, &part.noise, None)?;
        Ok(Contribution::new(part, network, loss))
    }
}
