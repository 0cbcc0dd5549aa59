//! A trained run as a network: inputs → features.

use std::path::PathBuf;

use aleator_data::InputShape;
use aleator_run::RunDir;
use aleator_run::recipe::{Layers, Recipe};

use crate::experiment::Shape;
use crate::outputs::floats;
use crate::scorer::Scorer;
use crate::trained::evaluated_state;
use crate::{Checkpoints, TrainError};

/// The layers before the head of a trained run.
pub struct FeatureExtractor {
    scorer: Scorer,
    /// The shape of one input.
    pub shape: InputShape,
    /// The file with the weights.
    pub weights_file: PathBuf,
}

impl FeatureExtractor {
    /// The network of a run, with the weights that were evaluated last; or, where the caller names
    /// a step, with those of its checkpoint.
    ///
    /// # Errors
    /// When the run has no network, or the checkpoint is missing or damaged.
    pub fn new(
        run: &RunDir,
        recipe: &Recipe,
        checkpoint: Option<usize>,
    ) -> Result<Self, TrainError> {
        if let Layers::None = recipe.network.layers {
            return Err(TrainError::Recipe(format!(
                "{}: network.kind is \"none\": there is no network before the head",
                run.path().display()
            )));
        }
        let evaluation = run.evaluation()?;
        let state = evaluated_state(run, recipe, evaluation.as_ref(), checkpoint)?;
        let checkpoints = Checkpoints::new(run.checkpoints_path());
        let averaged = state.networks[0].average.is_some();
        Ok(Self {
            scorer: Scorer::new(recipe, run.info().seed, &state, recipe.evaluation.samples),
            shape: Shape::of_run(run.info()).input,
            weights_file: checkpoints.weights_file(state.progress.step, averaged),
        })
    }

    /// The features `[N, D]` of inputs `[N, shape]`.
    ///
    /// # Panics
    /// When the last input is incomplete.
    pub fn extract(&self, inputs: Vec<f32>) -> Vec<f32> {
        assert!(inputs.len().is_multiple_of(self.shape.len()), "inputs must be whole");
        let features = self.scorer.model.features(self.scorer.inputs(inputs));
        floats(features)
    }
}
