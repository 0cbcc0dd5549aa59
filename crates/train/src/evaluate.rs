//! A checkpoint and a split → probabilities, and how good they are.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use aleator_data::{Labels, SparseTargets, Split, Targets, evaluation_batches};
use aleator_kernels::NoiseKey;
use aleator_kernels::multilabel::LabelSet;
use aleator_metrics::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, SplitEvaluation, Summary, TrueClass,
    Truth,
};
use aleator_model::{BatchNoise, Classifier, Scores};
use aleator_run::recipe::{EvaluatedWeights, Likelihood, Link, Recipe};
use aleator_run::{EVALUATION, Predictions, RunError};
use burn::tensor::Tensor;

use crate::joint::JointLabels;
use crate::method::view;
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
    if settings.calibrate && job.recipe.head.likelihood == Likelihood::Joint {
        let message = "a temperature is fitted to each class by itself, and the run has a joint \
                       likelihood of its labels: leave out --calibrate";
        return Err(TrainError::Recipe(message.to_string()));
    }
    let weights = settings.weights.unwrap_or(job.recipe.evaluation.weights);
    let state = state_to_evaluate(job.run, job.recipe, weights, settings.checkpoint)?;
    let samples = settings.samples.unwrap_or(job.recipe.evaluation.samples);
    let seed = job.run.info().seed;
    let scorer = Scorer::new(job.recipe, seed, &state, samples);
    let loadings_mib = job.recipe.evaluation.loadings_mib;
    let data = job.data;

    let earlier =
        before_joining(job, &state)?.map(|it| Scorer::new(job.recipe, seed, &it, samples));
    let validator = earlier.as_ref().unwrap_or(&scorer);
    let validated = validator.predictions(&data.validation, loadings_mib, observer)?;
    let given = truth(&data.validation);
    let calibrate = settings.calibrate || job.recipe.evaluation.calibrate;
    let calibration = calibrate.then(|| Calibration::fit(&validated.log_probs(), &given));
    let Predictions { mean, temperature, classes, .. } = &validated.predictions;
    let utilities: Vec<f32> = mean.iter().map(|mean| mean / temperature).collect();
    let true_class = TrueClass::fit(&utilities, *classes, &given);
    let writes = settings.checkpoint.is_none();
    if writes {
        forget(job.run.path().join(EVALUATION))?;
    }
    let save = |predictions: &Predictions, split: aleator_run::Split| match writes {
        true => predictions.save(&job.run.predictions_path(split)),
        false => Ok(()),
    };
    let measure = |split: &Split, scored: &ScoredSplit| {
        let clean = split.clean_labels.clone().map(Truth::Classes);
        let (log_probs, given) = (scored.log_probs(), truth(split));
        let all = SplitEvaluation::new(&log_probs, &given, clean.as_ref(), calibration.as_ref());
        SplitEvaluation { given: scored.joint(all.given), ..all }
    };
    let validation = measure(&data.validation, &validated);
    save(&validated.predictions, aleator_run::Split::Validation)?;
    let test = match &data.test {
        None => None,
        Some(split) => {
            let scored = scorer.predictions(split, loadings_mib, observer)?;
            save(&scored.predictions, aleator_run::Split::Test)?;
            Some(measure(split, &scored))
        }
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
        class_names: data.class_names.clone(),
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

/// Removes the file of an earlier evaluation.
fn forget(path: PathBuf) -> Result<(), TrainError> {
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(RunError::Io { action: "remove", path, source }.into())
        }
        _ => Ok(()),
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
    let scored = scorer.predictions(&job.data.validation, 0, observer)?;
    Ok(scored.joint(scored.log_probs().summary(&truth(&job.data.validation))))
}

/// −log p of the given labels of each example of a split, by the weights as they are.
pub(crate) fn losses(
    recipe: &Recipe,
    seed: u64,
    state: &State,
    split: &Arc<Split>,
) -> Result<Vec<f64>, TrainError> {
    let scorer = Scorer::new(recipe, seed, state, recipe.evaluation.samples);
    let scored = scorer.predictions(split, 0, &mut |_| {})?;
    Ok(match &scored.predictions.joint_log_probs {
        Some(log_probs) => log_probs.iter().map(|log_prob| -*log_prob as f64).collect(),
        None => scored.log_probs().example_nll(&truth(split)),
    })
}

/// The labels of a split in the form that probabilities are compared with.
pub(crate) fn truth(split: &Split) -> Truth {
    let on = |values: Vec<f32>| values.into_iter().map(|value| value > 0.0).collect();
    match &split.labels {
        Labels::Single(labels) => Truth::Classes(labels.clone()),
        Labels::Soft(rows) if split.link == Link::Sigmoid => {
            Truth::MultiHot(rows.values.iter().map(|prob| is_on(*prob)).collect())
        }
        Labels::Soft(rows) => Truth::Soft(rows.values.clone()),
        Labels::MultiHot(_) => {
            let dense = split.labels.multi_hot_dense(split.classes);
            Truth::MultiHot(on(dense.expect("multi-hot labels have rows")))
        }
        Labels::Annotations(_) => {
            let majority = split.labels.hard(TIE_SEED, &split.ids);
            Truth::Classes(majority.expect("annotated examples have a majority"))
        }
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

/// A class with a probability of its own counts as on where that is the likelier.
pub(crate) fn is_on(prob: f32) -> bool {
    prob > 0.5
}

/// Ties between annotators fall the same way in every run, so that runs can be compared.
pub(crate) const TIE_SEED: u64 = 0;

/// What a model says of the examples of a split.
pub(crate) struct ScoredSplit {
    pub predictions: Predictions,
    /// Of a joint likelihood: whether the most probable set of labels is the given one, `[N]`.
    hits: Option<Vec<bool>>,
}

impl ScoredSplit {
    fn log_probs(&self) -> LogProbs {
        let Predictions { classes, log_probs, log_probs_off, .. } = &self.predictions;
        LogProbs { classes: *classes, on: log_probs.clone(), off: log_probs_off.clone() }
    }

    /// The scores against the given labels; of a joint likelihood those of all labels together.
    pub fn joint(&self, summary: Summary) -> Summary {
        match &self.predictions.joint_log_probs {
            Some(log_probs) => summary.with_joint(log_probs, self.hits.as_deref()),
            None => summary,
        }
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

    fn append(&mut self, next: Self) {
        outputs::append(&mut self.predictions, next.predictions);
        if let (Some(hits), Some(next)) = (&mut self.hits, next.hits) {
            hits.extend(next);
        }
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
    pub likelihood: Likelihood,
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

    /// The predictions of a split, with loadings where they take at most `loadings_mib` MiB.
    pub fn predictions(
        &self,
        split: &Arc<Split>,
        loadings_mib: usize,
        observer: &mut Observer<'_>,
    ) -> Result<ScoredSplit, TrainError> {
        let total = split.len();
        let mut all: Option<ScoredSplit> = None;
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
            let joint = self.likelihood == Likelihood::Joint;
            let predictions = outputs::predictions(on, off, latent, keep_loadings || joint);
            let mut found =
                ScoredSplit { predictions: predictions.map_err(not_finite)?, hits: None };
            if joint {
                found.add_joint(&noise, &batch.targets).map_err(not_finite)?;
                if !keep_loadings {
                    found.predictions.forget_loadings();
                }
            }
            let all = match &mut all {
                Some(all) => {
                    all.append(found);
                    all
                }
                None => all.insert(found),
            };
            let done = all.predictions.examples();
            observer(Event::Evaluating { split: split.name.name(), done, total });
        }
        Ok(all.expect("a split has examples"))
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
