//! A checkpoint and a split → probabilities, and how good they are.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Labels, Split, evaluation_batches};
use aleator_kernels::NoiseKey;
use aleator_metrics::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, SplitAccumulator, SplitEvaluation,
    Summary, TemperatureSample, TrueClass, TrueClassSample, Truth,
};
use aleator_model::{BatchNoise, Classifier, Scores};
use aleator_run::recipe::{EvaluatedWeights, Link, Recipe};
use aleator_run::{EVALUATION, Field, Predictions, PredictionsFile};
use burn::tensor::Tensor;

use crate::kept_predictions::{SplitFile, forget};

use crate::outputs::{self, floats};
use crate::runs::check_job;
use crate::state::{State, device};
use crate::trained::{state_of, state_to_evaluate};
use crate::{Event, Job, Normalization, Observer, TrainError};

/// Settings of [`evaluate`] that override the recipe.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvaluateSettings {
    /// Other weights than the recipe's.
    pub weights: Option<EvaluatedWeights>,
    /// Another number of samples.
    pub samples: Option<usize>,
    /// Whether to fit a temperature on the validation split even if the recipe does not ask.
    pub calibrate: bool,
    /// The step of the checkpoint to evaluate, in place of the best or the last one. The scores are
    /// returned and the files of the run stay as they are.
    pub checkpoint: Option<usize>,
}

/// Evaluates a trained run on its validation and test splits, and writes `evaluation.json`
/// and `predictions/` of the run directory.
///
/// Until `evaluation.json` is written again there is none: it is never next to the predictions
/// of other weights.
///
/// # Errors
/// When the data are not those of the run, or the checkpoint is damaged; no other one is taken.
pub fn evaluate(
    job: &Job<'_>,
    settings: &EvaluateSettings,
    observer: &mut Observer<'_>,
) -> Result<Evaluation, TrainError> {
    check_job(job)?;
    let weights = settings.weights.unwrap_or(job.recipe.evaluation.weights);
    let state = state_to_evaluate(job.run, job.recipe, weights, settings.checkpoint)?;
    let samples = settings.samples.unwrap_or(job.recipe.evaluation.samples);
    let seed = job.run.info().seed;
    let scorer = Scorer::new(job.recipe, seed, &state, samples);
    let earlier =
        before_joining(job, &state)?.map(|it| Scorer::new(job.recipe, seed, &it, samples));
    let validator = earlier.as_ref().unwrap_or(&scorer);
    let calibrate = settings.calibrate || job.recipe.evaluation.calibrate;
    let writes = settings.checkpoint.is_none();
    let pass = Pass { job, writes };
    let Validated { scores: mut validation, temperature, true_class } =
        pass.validation(validator, calibrate, observer)?;
    let calibration = match temperature {
        None => None,
        Some(temperature) => {
            let calibrated = pass.calibrated(validator, temperature, observer)?;
            let (nll_before, nll_after) = (validation.given.nll, calibrated.nll);
            validation.calibrated = Some(calibrated);
            Some(Calibration { temperature, nll_before, nll_after })
        }
    };
    let test = match &job.data.test {
        None => None,
        Some(split) => Some(pass.test(&scorer, split, temperature, observer)?),
    };
    let evaluation = Evaluation {
        format: EVALUATION_FORMAT,
        weights: match (settings.checkpoint, weights) {
            (Some(_), _) => "checkpoint",
            (None, EvaluatedWeights::Best) => "best",
            (None, EvaluatedWeights::Last) => "last",
        }
        .to_string(),
        step: Some(state.progress.step),
        class_names: job.data.class_names.clone(),
        calibration,
        true_class,
        validation,
        test,
    };
    if writes {
        job.run.write_json(EVALUATION, &evaluation)?;
    }
    Ok(evaluation)
}

/// The state before the validation examples were trained on, where these weights have seen them:
/// they cannot be validated by them.
fn before_joining(job: &Job<'_>, state: &State) -> Result<Option<State>, TrainError> {
    let joined = state.progress.joined.filter(|step| *step != state.progress.step);
    joined.map(|step| state_of(job.run, job.recipe, step)).transpose()
}

/// One pass over each split, which adds up its scores and writes its predictions.
struct Pass<'a> {
    job: &'a Job<'a>,
    /// Whether the files of the run are written.
    writes: bool,
}

/// What the validation split gives.
struct Validated {
    scores: SplitEvaluation,
    /// The temperature of the calibration, where one is wanted.
    temperature: Option<f64>,
    true_class: Option<TrueClass>,
}

impl Pass<'_> {
    fn validation(
        &self,
        scorer: &Scorer,
        calibrate: bool,
        observer: &mut Observer<'_>,
    ) -> Result<Validated, TrainError> {
        let split = &self.job.data.validation;
        let mut scores = SplitAccumulator::new(None);
        let mut sample = calibrate.then(|| TemperatureSample::new(split.len(), split.classes));
        let mut true_class = TrueClassSample::new(split.len(), split.classes);
        let mut file = self.file(split)?;
        scorer.score(split, self.loadings_mib(), observer, &mut |rows, predictions| {
            let (log_probs, given) = (log_probs(&predictions), truth(split, rows.clone()));
            scores.add(&log_probs, &given, clean(split, rows).as_ref());
            if let Some(sample) = &mut sample {
                sample.add(&log_probs, &given);
            }
            let utilities = predictions.mean.iter().map(|mean| mean / predictions.temperature);
            true_class.add(&utilities.collect::<Vec<_>>(), &given);
            file.push(&predictions)
        })?;
        let temperature = sample.map(|sample| sample.fit());
        let true_class = true_class.fit();
        if self.writes {
            forget(self.job.run.path().join(EVALUATION))?;
        }
        file.commit()?;
        Ok(Validated { scores: scores.finish(), temperature, true_class })
    }

    /// The scores of the validation split at this temperature, which is known only after a pass:
    /// from the file of predictions, or else by the model once more.
    fn calibrated(
        &self,
        scorer: &Scorer,
        temperature: f64,
        observer: &mut Observer<'_>,
    ) -> Result<Summary, TrainError> {
        let split = &self.job.data.validation;
        let mut scores = SplitAccumulator::new(None);
        let mut add = |log_probs: LogProbs, rows: Range<usize>| {
            scores.add(&log_probs.scaled(temperature), &truth(split, rows), None);
        };
        if self.writes && SplitFile::is_complete(self.job.recipe) {
            let mut file = PredictionsFile::open(&self.job.run.predictions_path(split.name))?;
            let (total, classes, batch) = (file.examples(), file.classes(), scorer.batch);
            for start in (0..total).step_by(batch) {
                let rows = start..total.min(start + batch);
                let on = file.read(Field::LogProbs, rows.clone())?.unwrap_or_default();
                let off = file.read(Field::LogProbsOff, rows.clone())?;
                add(LogProbs { classes, on, off }, rows);
            }
        } else {
            scorer.score(split, 0, observer, &mut |rows, predictions| {
                add(log_probs(&predictions), rows);
                Ok(())
            })?;
        }
        Ok(scores.finish().given)
    }

    fn test(
        &self,
        scorer: &Scorer,
        split: &Arc<Split>,
        temperature: Option<f64>,
        observer: &mut Observer<'_>,
    ) -> Result<SplitEvaluation, TrainError> {
        let mut scores = SplitAccumulator::new(temperature);
        let mut file = self.file(split)?;
        scorer.score(split, self.loadings_mib(), observer, &mut |rows, predictions| {
            let given = truth(split, rows.clone());
            scores.add(&log_probs(&predictions), &given, clean(split, rows).as_ref());
            file.push(&predictions)
        })?;
        file.commit()?;
        Ok(scores.finish())
    }

    fn file(&self, split: &Split) -> Result<SplitFile, TrainError> {
        match self.writes {
            true => SplitFile::create(self.job, split),
            false => Ok(SplitFile::none()),
        }
    }

    fn loadings_mib(&self) -> usize {
        let kept = self.writes && SplitFile::is_complete(self.job.recipe);
        if kept { self.job.recipe.evaluation.loadings_mib } else { 0 }
    }
}

/// The validation split, by the weights as they are.
pub(crate) fn validate(
    job: &Job<'_>,
    state: &State,
    observer: &mut Observer<'_>,
) -> Result<Summary, TrainError> {
    let samples = job.recipe.evaluation.samples;
    let scorer = Scorer::new(job.recipe, job.run.info().seed, state, samples);
    let split = &job.data.validation;
    let mut scores = SplitAccumulator::new(None);
    scorer.score(split, 0, observer, &mut |rows, predictions| {
        scores.add(&log_probs(&predictions), &truth(split, rows), None);
        Ok(())
    })?;
    Ok(scores.finish().given)
}

/// −log p of the given label of each example of a split, by the weights as they are.
pub(crate) fn losses(
    recipe: &Recipe,
    seed: u64,
    state: &State,
    split: &Arc<Split>,
) -> Result<Vec<f64>, TrainError> {
    let scorer = Scorer::new(recipe, seed, state, recipe.evaluation.samples);
    let mut losses = Vec::with_capacity(split.len());
    scorer.score(split, 0, &mut |_| {}, &mut |rows, predictions| {
        losses.extend(log_probs(&predictions).example_nll(&truth(split, rows)));
        Ok(())
    })?;
    Ok(losses)
}

/// The labels of some examples in the form that probabilities are compared with.
pub(crate) fn truth(split: &Split, rows: Range<usize>) -> Truth {
    match &split.labels {
        Labels::Single(labels) => Truth::Classes(labels[rows].to_vec()),
        Labels::Soft(soft) => {
            let values = &soft.values[rows.start * soft.classes..rows.end * soft.classes];
            match split.link {
                Link::Sigmoid => Truth::MultiHot(values.iter().map(|prob| is_on(*prob)).collect()),
                Link::Softmax => Truth::Soft(values.to_vec()),
            }
        }
        Labels::MultiHot(sets) => {
            let mut hot = vec![false; rows.len() * split.classes];
            for (row, hot) in rows.zip(hot.chunks_exact_mut(split.classes)) {
                sets.row(row).iter().for_each(|class| hot[*class as usize] = true);
            }
            Truth::MultiHot(hot)
        }
        Labels::Annotations(votes) => {
            let majority = |row| votes.majority(row, TIE_SEED, split.ids.key(row));
            Truth::Classes(rows.map(majority).collect())
        }
    }
}

/// The true labels of some examples, where they are known.
pub(crate) fn clean(split: &Split, rows: Range<usize>) -> Option<Truth> {
    Some(Truth::Classes(split.clean_labels.as_ref()?[rows].to_vec()))
}

/// A class with a probability of its own counts as on where that is the likelier.
pub(crate) fn is_on(prob: f32) -> bool {
    prob > 0.5
}

/// Ties between annotators fall the same way in every run, so that runs can be compared.
pub(crate) const TIE_SEED: u64 = 0;

fn log_probs(predictions: &Predictions) -> LogProbs {
    LogProbs {
        classes: predictions.classes,
        on: predictions.log_probs.clone(),
        off: predictions.log_probs_off.clone(),
    }
}

/// The first 64 bits of BLAKE3 of the numbers of an example; −0 is 0.
fn content_key(example: &[f32]) -> u64 {
    let bytes: Vec<u8> = example.iter().flat_map(|value| (value + 0.0).to_le_bytes()).collect();
    let hash = blake3::hash(&bytes);
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}

const MIB: f64 = (1 << 20) as f64;

/// A model that gives every example the same probabilities in any batch.
pub(crate) struct Scorer {
    pub model: Classifier,
    pub link: Link,
    normalization: Normalization,
    seed: u64,
    samples: usize,
    draws: aleator_model::Draws,
    batch: usize,
    workers: usize,
}

impl Scorer {
    pub fn new(recipe: &Recipe, seed: u64, state: &State, samples: usize) -> Self {
        Self {
            model: state.networks[0].evaluated(),
            link: recipe.head.link,
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

    /// Passes the predictions of a split to `visit`, batch by batch, with loadings where those of
    /// the whole split take at most `loadings_mib` MiB.
    fn score(
        &self,
        split: &Arc<Split>,
        loadings_mib: usize,
        observer: &mut Observer<'_>,
        visit: &mut dyn FnMut(Range<usize>, Predictions) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        let total = split.len();
        let mut done = 0;
        for batch in evaluation_batches(split.clone(), self.batch, self.workers) {
            let batch = batch?;
            let noise = self.noise(&batch.inputs);
            let not_finite = |rows: Vec<usize>| {
                let names = rows.into_iter().map(|row| split.ids.name(batch.examples[row]));
                TrainError::prediction_not_finite(
                    split.name.name(),
                    names.map(String::from).collect(),
                )
            };
            let Scores { log_probs, log_complements, latent } =
                self.model.score(self.inputs(batch.inputs), &noise).map_err(not_finite)?;
            let loadings = split.classes * latent.rank() * size_of::<f32>();
            let keep_loadings = total as f64 * loadings as f64 <= loadings_mib as f64 * MIB;
            let (on, off) = (floats(log_probs), log_complements.map(floats));
            let found = outputs::predictions(on, off, latent, keep_loadings).map_err(not_finite)?;
            let rows = done..done + found.examples();
            done = rows.end;
            visit(rows, found)?;
            observer(Event::Evaluating { split: split.name.name(), done, total });
        }
        Ok(())
    }
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
