//! A model that scores splits, batch by batch.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Batch, SparseTargets, Split, Targets, evaluation_batches};
use aleator_kernels::NoiseKey;
use aleator_kernels::multilabel::LabelSet;
use aleator_metrics::{LogProbs, Summary};
use aleator_model::{BatchNoise, Classifier, Scores};
use aleator_run::recipe::{EvaluatedNetworks, Likelihood, Link, Recipe};
use aleator_run::{Predictions, log_mean};
use burn::tensor::Tensor;

use crate::evaluate::is_on;
use crate::joint::JointLabels;
use crate::kept_predictions::WantedLoadings;
use crate::method::view;
use crate::network::Network;
use crate::outputs::{self, floats};
use crate::state::{State, device};
use crate::{Event, Normalization, Observer, TrainError};

/// A model that gives every example the same probabilities in any batch.
///
/// With several networks, probabilities are the means of theirs: a mixture of their predictive
/// distributions. All else has no mean that belongs to these, and is that of the first.
pub(crate) struct Scorer {
    /// The first network.
    pub model: Classifier,
    /// Networks whose probabilities are averaged with those of the first.
    pub further: Vec<Classifier>,
    pub link: Link,
    pub likelihood: Likelihood,
    normalization: Normalization,
    seed: u64,
    samples: usize,
    draws: aleator_model::Draws,
    pub batch: usize,
    pub workers: usize,
}

impl Scorer {
    /// Of the networks that the recipe evaluates.
    pub fn new(recipe: &Recipe, seed: u64, state: &State, samples: usize) -> Self {
        let further = match recipe.evaluation.networks {
            EvaluatedNetworks::First => &[],
            EvaluatedNetworks::All => &state.networks[1..],
        };
        let further = further.iter().map(Network::evaluated).collect();
        Self { further, ..Self::of_network(recipe, seed, state, 0, samples) }
    }

    /// Of one network, whatever the recipe evaluates.
    pub fn of_network(
        recipe: &Recipe,
        seed: u64,
        state: &State,
        network: usize,
        samples: usize,
    ) -> Self {
        Self {
            model: state.networks[network].evaluated(),
            further: vec![],
            link: recipe.head.link,
            likelihood: recipe.head.likelihood,
            normalization: state.normalization.clone(),
            seed,
            samples,
            draws: recipe.head.draws,
            batch: recipe.evaluation.batch,
            workers: recipe.training.workers,
        }
    }

    /// The inputs as the model takes them.
    pub fn inputs(&self, values: Vec<f32>) -> Tensor<2> {
        self.normalization.tensor(values, &device())
    }

    /// The noise of examples that stand one after the other. An example is named by its content:
    /// its row, its file and its neighbours change nothing, and equal examples get equal results.
    pub fn noise(&self, values: &[f32]) -> BatchNoise {
        BatchNoise {
            key: NoiseKey { seed: self.seed, step: NoiseKey::EVALUATION_STEP },
            ids: values.chunks_exact(self.normalization.center.len()).map(content_key).collect(),
            samples: self.samples,
            draws: self.draws,
        }
    }

    /// log of the mean probabilities of all networks, given those of the first. Methods with several
    /// have the softmax link, so there are no complements to average.
    fn averaged(
        &self,
        first: Vec<f32>,
        inputs: &Tensor<2>,
        noise: &BatchNoise,
    ) -> Result<Vec<f32>, Vec<usize>> {
        if self.further.is_empty() {
            return Ok(first);
        }
        let mut all = vec![first];
        for model in &self.further {
            all.push(floats(model.score(inputs.clone(), noise)?.log_probs));
        }
        Ok(log_mean(&all))
    }

    /// Passes the predictions of a split to `visit`, batch by batch, with the loadings of each example
    /// where they are wanted.
    pub fn score(
        &self,
        split: &Arc<Split>,
        loadings: WantedLoadings,
        observer: &mut Observer<'_>,
        visit: &mut dyn FnMut(Range<usize>, ScoredBatch) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        let total = split.len();
        let mut done = 0;
        for batch in evaluation_batches(split.clone(), self.batch, self.workers) {
            let found = self.score_batch(split, batch?, loadings)?;
            let rows = done..done + found.predictions.examples();
            done = rows.end;
            visit(rows, found)?;
            observer(Event::Evaluating { split: split.name.name(), done, total });
        }
        Ok(())
    }

    /// The predictions of a batch of a split.
    pub fn score_batch(
        &self,
        split: &Split,
        batch: Batch,
        loadings: WantedLoadings,
    ) -> Result<ScoredBatch, TrainError> {
        let noise = self.noise(&batch.inputs);
        let not_finite = |rows: Vec<usize>| {
            let names = rows.into_iter().map(|row| split.ids.name(batch.examples[row]));
            TrainError::prediction_not_finite(split.name.name(), names.map(String::from).collect())
        };
        let inputs = self.inputs(batch.inputs);
        let Scores { log_probs, log_complements, latent } =
            self.model.score(inputs.clone(), &noise).map_err(not_finite)?;
        let keep_loadings = loadings.are_wanted(split.classes, latent.rank());
        let on = self.averaged(floats(log_probs), &inputs, &noise).map_err(not_finite)?;
        let off = log_complements.map(floats);
        let joint = self.likelihood == Likelihood::Joint;
        let predictions = outputs::predictions(on, off, latent, keep_loadings || joint);
        let mut found = ScoredBatch { predictions: predictions.map_err(not_finite)?, hits: None };
        if joint {
            found.add_joint(&noise, &batch.targets).map_err(not_finite)?;
            if !keep_loadings {
                found.predictions.forget_loadings();
            }
        }
        Ok(found)
    }
}

/// What a model says of the examples of a batch.
pub(crate) struct ScoredBatch {
    pub predictions: Predictions,
    /// Of a joint likelihood: whether the most probable set of labels is the given one, `[N]`.
    hits: Option<Vec<bool>>,
}

impl ScoredBatch {
    /// What several models say of the same batch, at least one; no set is the most probable one of
    /// several.
    pub fn average(mut members: Vec<Self>) -> Self {
        if members.len() == 1 {
            return members.remove(0);
        }
        let members: Vec<Predictions> = members.into_iter().map(|it| it.predictions).collect();
        Self { predictions: outputs::average(&members), hits: None }
    }

    /// The probabilities of the labels one by one.
    pub fn log_probs(&self) -> LogProbs {
        let Predictions { classes, log_probs, log_probs_off, .. } = &self.predictions;
        LogProbs { classes: *classes, on: log_probs.clone(), off: log_probs_off.clone() }
    }

    /// The probability of the labels together, and whether their set is the most probable one.
    ///
    /// # Errors
    /// The rows of examples whose utilities are not finite.
    fn add_joint(&mut self, noise: &BatchNoise, targets: &Targets) -> Result<(), Vec<usize>> {
        let labels = on_or_off(targets);
        let joint = JointLabels::new(&self.predictions, noise);
        let log_probs = joint.log_probs(view(&labels))?;
        let sets = joint.sets(&[]).into_iter().enumerate();
        let is_hit = |(row, set): (usize, LabelSet)| {
            let on = set.on.iter().enumerate().filter(|(_, on)| **on);
            on.map(|(class, _)| (class as u32, 1.0)).eq(labels.row(row))
        };
        self.hits = Some(sets.map(is_hit).collect());
        self.predictions.joint_log_probs = Some(log_probs);
        Ok(())
    }
}

/// The labels of the examples so far together, under a joint likelihood; empty under any other.
#[derive(Default)]
pub(crate) struct JointScores {
    /// log P of all labels of each example, `[N]`.
    pub log_probs: Vec<f32>,
    hits: Vec<bool>,
}

impl JointScores {
    pub fn add(&mut self, batch: &ScoredBatch) {
        self.log_probs.extend(batch.predictions.joint_log_probs.iter().flatten());
        self.hits.extend(batch.hits.iter().flatten());
    }

    /// The scores against the given labels; of a joint likelihood those of all labels together.
    pub fn complete(&self, summary: Summary) -> Summary {
        if self.log_probs.is_empty() {
            return summary;
        }
        let hits = (!self.hits.is_empty()).then_some(&self.hits[..]);
        summary.with_joint(&self.log_probs, hits)
    }
}

/// The classes that are on, in ascending order.
fn on_or_off(targets: &Targets) -> SparseTargets {
    match targets {
        Targets::Classes(classes) => classes.iter().map(|class| [(*class, 1.0)]).collect(),
        Targets::Sparse(rows) => {
            let of_row = |row| {
                let on = rows.row(row).filter(|(_, prob)| is_on(*prob));
                let mut on: Vec<(u32, f32)> = on.map(|(class, _)| (class, 1.0)).collect();
                on.sort_by_key(|(class, _)| *class);
                on
            };
            (0..rows.len()).map(of_row).collect()
        }
    }
}

/// The first 64 bits of BLAKE3 of the numbers of an example; −0 is 0.
fn content_key(example: &[f32]) -> u64 {
    let bytes: Vec<u8> = example.iter().flat_map(|value| (value + 0.0).to_le_bytes()).collect();
    let hash = blake3::hash(&bytes);
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::content_key;

    #[test]
    fn equal_examples_have_equal_keys_and_others_have_others() {
        assert_eq!(content_key(&[0.0, 1.5]), content_key(&[-0.0, 1.5]));
        assert_ne!(content_key(&[0.0, 1.5]), content_key(&[1.5, 0.0]));
        assert_ne!(content_key(&[0.0]), content_key(&[0.0, 0.0]));
    }
}
