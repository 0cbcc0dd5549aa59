//! What a model predicts for a whole split, for methods that ask between epochs.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{DataSet, Split, evaluation_batches};
use aleator_run::recipe::Recipe;

use crate::TrainError;
use crate::kept_predictions::WantedLoadings;
use crate::outputs::floats;
use crate::scorer::Scorer;
use crate::state::State;

/// The data of a run, and what is needed to look at them with a model.
#[derive(Clone, Copy)]
pub(crate) struct Survey<'a> {
    pub recipe: &'a Recipe,
    pub seed: u64,
    pub data: &'a DataSet,
}

impl Survey<'_> {
    /// Passes the log-probabilities of a split, as in evaluation, to `visit`: some rows, and
    /// [rows, K].
    ///
    /// # Errors
    /// When inputs cannot be read, or predictions are not finite.
    pub fn log_probs(
        &self,
        state: &State,
        network: usize,
        split: &Arc<Split>,
        visit: &mut dyn FnMut(Range<usize>, &[f32]),
    ) -> Result<(), TrainError> {
        let samples = self.recipe.head.samples;
        let scorer = Scorer::of_network(self.recipe, self.seed, state, network, samples);
        scorer.score(split, WantedLoadings::None, &mut |_| {}, &mut |rows, batch| {
            visit(rows, &batch.predictions.log_probs);
            Ok(())
        })
    }

    /// Passes the features of a split, as in evaluation, to `visit`: [rows, D].
    ///
    /// # Errors
    /// When inputs cannot be read.
    pub fn features(
        &self,
        state: &State,
        split: &Arc<Split>,
        visit: &mut dyn FnMut(Vec<f32>),
    ) -> Result<(), TrainError> {
        let scorer = Scorer::new(self.recipe, self.seed, state, self.recipe.head.samples);
        let workers = self.recipe.training.workers;
        for batch in evaluation_batches(Arc::clone(split), scorer.batch, workers) {
            visit(floats(scorer.model.features(scorer.inputs(batch?.inputs))));
        }
        Ok(())
    }

    /// −log q of the given class of each training example, by one of the networks.
    ///
    /// # Errors
    /// As [`Survey::log_probs`].
    pub fn losses(&self, state: &State, network: usize) -> Result<Vec<f64>, TrainError> {
        let split = &self.data.train;
        let (labels, mut losses) = (self.labels(split), vec![]);
        self.log_probs(state, network, split, &mut |rows, log_probs| {
            let pairs = rows.zip(log_probs.chunks_exact(split.classes));
            // That of the smallest f32 is 103: an infinite one would leave no scale for the others.
            let loss =
                |(row, own): (usize, &[f32])| -f64::from(own[labels[row] as usize].max(-104.0));
            losses.extend(pairs.map(loss));
        })?;
        Ok(losses)
    }

    /// The given class of each training example; of several it is the most frequent or the most
    /// probable one.
    pub fn labels(&self, split: &Split) -> Vec<u32> {
        split.labels.hard(crate::evaluate::TIE_SEED, &split.ids).unwrap_or_default()
    }
}
