//! What training changes: networks, counts, and what a method keeps.

use std::path::Path;

use aleator_kernels::split_mix;
use aleator_run::RunDir;
use aleator_run::recipe::{Normalize, Recipe};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::experiment::Shape;
use crate::network::Network;
use crate::tensors::NamedTensor;
use crate::{Normalization, TrainError};

/// Everything that a step reads and changes.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Counts and the best epoch so far.
    pub progress: Progress,
    /// A method may train further ones than the first; `evaluation.networks` says which are
    /// evaluated.
    pub networks: Vec<Network>,
    /// What the method keeps from step to step. Checkpoints save it by name.
    pub memory: Vec<NamedTensor>,
    /// What is done to the inputs.
    pub normalization: Normalization,
}

/// How far training is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Steps done.
    pub step: usize,
    /// The epoch with the lowest validation NLL.
    pub best: Option<Best>,
    /// Epochs since then.
    pub epochs_since_best: usize,
    /// Steps done when the validation examples joined those that are trained on; names the
    /// checkpoint that has not seen them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<usize>,
    /// Whether training is over: all steps done, or stopped early.
    pub finished: bool,
}

/// The best epoch so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    /// Steps done at its end; names its checkpoint.
    pub step: usize,
    /// Its validation NLL.
    pub nll: f64,
}

impl State {
    /// One network with fresh weights, a normalization that is not fitted yet, and no memory.
    pub fn start(recipe: &Recipe, seed: u64, shape: Shape) -> Self {
        Self {
            progress: Progress::default(),
            networks: vec![Network::start(recipe, seed, shape, &device().autodiff())],
            memory: vec![],
            normalization: Normalization {
                squash: recipe.network.normalize == Normalize::Robust,
                ..Normalization::identity(shape.input.len())
            },
        }
    }

    /// Fresh weights for a run whose data need not be there.
    pub fn of_run(run: &RunDir, recipe: &Recipe) -> Self {
        Self::start(recipe, run.info().seed, Shape::of_run(run.info()))
    }

    /// Adds a second network with weights of its own.
    pub fn add_network(&mut self, recipe: &Recipe, seed: u64, shape: Shape) {
        let seed = split_mix(seed).next().expect("it has no end");
        self.networks.push(Network::start(recipe, seed, shape, &device().autodiff()));
    }

    /// Takes the weights of the layers before the head from a file.
    pub fn load_network(&mut self, path: &Path) -> Result<(), TrainError> {
        self.networks.iter_mut().try_for_each(|network| network.load(path))
    }
}

/// Where models are trained and evaluated.
pub(crate) fn device() -> Device {
    Device::flex()
}
