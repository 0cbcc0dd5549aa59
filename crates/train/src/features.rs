//! A trained run as a network: inputs → features.

use std::path::PathBuf;

use aleator_data::InputShape;
use aleator_run::RunDir;
use aleator_run::recipe::{EvaluatedWeights, Layers, Recipe};

use crate::Observer;
use crate::checkpoint::Checkpoints;
use crate::error::TrainError;
use crate::evaluate::{Scorer, trained_state};
use crate::session::input_shape;

/// The layers before the head of a trained run.
pub struct FeatureExtractor {
    scorer: Scorer,
    shape: InputShape,
}

impl FeatureExtractor {
    /// The network of a run, with the weights that the recipe evaluates.
    ///
    /// # Errors
    /// When the run has no network, or no checkpoint that can be used.
    pub fn new(
        run: &RunDir,
        recipe: &Recipe,
        observer: &mut Observer<'_>,
    ) -> Result<Self, TrainError> {
        refuse_no_network(run, recipe)?;
        let state = trained_state(run, recipe, recipe.evaluation.weights, observer)?;
        let scorer = Scorer::new(recipe, run.info().seed, &state, recipe.evaluation.samples);
        Ok(Self { scorer, shape: input_shape(run.info()) })
    }

    /// The shape of one input.
    pub fn shape(&self) -> InputShape {
        self.shape
    }

    /// The features `[N, D]` of inputs `[N, shape]`.
    ///
    /// # Panics
    /// When the last input is incomplete.
    pub fn extract(&self, inputs: Vec<f32>) -> Vec<f32> {
        assert!(inputs.len().is_multiple_of(self.shape.len()), "inputs must be whole");
        let features = self.scorer.model().features(self.scorer.inputs(inputs));
        features.into_data().iter::<f32>().collect()
    }
}

/// The file with the weights that a run is evaluated by.
///
/// # Errors
/// As [`FeatureExtractor::new`].
pub fn weights_file(
    run: &RunDir,
    recipe: &Recipe,
    weights: EvaluatedWeights,
    observer: &mut Observer<'_>,
) -> Result<PathBuf, TrainError> {
    refuse_no_network(run, recipe)?;
    let state = trained_state(run, recipe, weights, observer)?;
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    Ok(checkpoints.weights_file(state.progress.step, state.networks[0].is_averaged()))
}

fn refuse_no_network(run: &RunDir, recipe: &Recipe) -> Result<(), TrainError> {
    match recipe.network.layers {
        Layers::None => Err(TrainError::Recipe(format!(
            "{}: network.kind is \"none\": there is no network before the head",
            run.path().display()
        ))),
        _ => Ok(()),
    }
}
