//! A checkpoint and a split → probabilities, and how good they are.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Labels, Split};
use aleator_metrics::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, OtherScores, OtherWeights,
    SplitAccumulator, SplitEvaluation, Summary, TemperatureSample, TrueClass, TrueClassSample,
    Truth,
};
use aleator_run::recipe::{EvaluatedWeights, Likelihood, Link, Recipe};
use aleator_run::{EVALUATION, Field, Predictions, PredictionsFile};

use crate::kept_predictions::{SplitFile, WantedLoadings, forget};
use crate::runs::check_job;
use crate::scorer::{JointScores, Scorer};
use crate::state::State;
use crate::trained::{other_step, state_of, state_to_evaluate};
use crate::{Event, Job, Observer, TrainError};

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
/// Where the best epoch is not the last one, the scores of the weights that were not chosen stand
/// beside the others in `evaluation.json`; their predictions are not kept.
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
    let writes = settings.checkpoint.is_none();
    let pass = Pass {
        job,
        samples: settings.samples.unwrap_or(job.recipe.evaluation.samples),
        calibrate: settings.calibrate || job.recipe.evaluation.calibrate,
        writes,
    };
    let state = state_to_evaluate(job.run, job.recipe, weights, settings.checkpoint)?;
    let step = state.progress.step;
    let Scored { calibration, true_class, validation, test } = pass.score(state, observer)?;
    let evaluation = Evaluation {
        format: EVALUATION_FORMAT,
        weights: if writes { weights.name() } else { "checkpoint" }.to_string(),
        step: Some(step),
        class_names: job.data.class_names.clone(),
        calibration,
        true_class,
        validation,
        test,
        other_weights: match writes {
            true => other_weights(&pass, weights, step, observer)?,
            false => None,
        },
    };
    if writes {
        job.run.write_json(EVALUATION, &evaluation)?;
    }
    Ok(evaluation)
}

/// The weights that were not chosen, with their scores unless they are those of `step`, which were.
/// Where their checkpoint is damaged or their predictions are not finite, the caller is told, and
/// the chosen ones are evaluated nevertheless.
fn other_weights(
    chosen: &Pass<'_>,
    weights: EvaluatedWeights,
    step: usize,
    observer: &mut Observer<'_>,
) -> Result<Option<OtherWeights>, TrainError> {
    let Job { run, recipe, .. } = *chosen.job;
    let Some(other) = other_step(run, recipe, weights)? else { return Ok(None) };
    let name = weights.other().name();
    let pass = Pass { writes: false, ..*chosen };
    let scored = match other == step {
        true => Ok(None),
        false => state_of(run, recipe, other).and_then(|it| pass.score(it, observer)).map(Some),
    };
    let scores = match scored {
        Ok(scored) => scored.map(|it| OtherScores {
            calibration: it.calibration,
            validation: it.validation,
            test: it.test,
        }),
        Err(error @ (TrainError::Checkpoint { .. } | TrainError::PredictionNotFinite { .. })) => {
            let message = format!("the scores of the {name} weights are left out: {error}");
            observer(Event::Warning(&message));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(Some(OtherWeights { weights: name.to_string(), step: other, scores }))
}

/// The state before the validation examples were trained on, where these weights have seen them:
/// they cannot be validated by them.
fn before_joining(job: &Job<'_>, state: &State) -> Result<Option<State>, TrainError> {
    let joined = state.progress.joined.filter(|step| *step != state.progress.step);
    joined.map(|step| state_of(job.run, job.recipe, step)).transpose()
}

/// One pass over each split, which adds up its scores and writes its predictions.
#[derive(Clone, Copy)]
struct Pass<'a> {
    job: &'a Job<'a>,
    samples: usize,
    /// Whether a temperature is fitted.
    calibrate: bool,
    /// Whether the files of the run are written.
    writes: bool,
}

/// The scores of one state.
struct Scored {
    calibration: Option<Calibration>,
    true_class: Option<TrueClass>,
    validation: SplitEvaluation,
    test: Option<SplitEvaluation>,
}

/// What the validation split gives.
struct Validated {
    scores: SplitEvaluation,
    /// The temperature of the calibration, where one is wanted.
    temperature: Option<f64>,
    true_class: Option<TrueClass>,
}

impl Pass<'_> {
    /// All splits, by these weights.
    fn score(&self, state: State, observer: &mut Observer<'_>) -> Result<Scored, TrainError> {
        let scorer = self.scorer(&state);
        let earlier = before_joining(self.job, &state)?.map(|it| self.scorer(&it));
        drop(state);
        let validator = earlier.as_ref().unwrap_or(&scorer);
        let Validated { scores: mut validation, temperature, true_class } =
            self.validation(validator, observer)?;
        let calibration = match temperature {
            None => None,
            Some(temperature) => {
                let calibrated = self.calibrated(validator, temperature, observer)?;
                let (nll_before, nll_after) = (validation.given.nll, calibrated.nll);
                validation.calibrated = Some(calibrated);
                Some(Calibration { temperature, nll_before, nll_after })
            }
        };
        let test = match &self.job.data.test {
            None => None,
            Some(split) => Some(self.test(&scorer, split, temperature, observer)?),
        };
        Ok(Scored { calibration, true_class, validation, test })
    }

    fn scorer(&self, state: &State) -> Scorer {
        Scorer::new(self.job.recipe, self.job.run.info().seed, state, self.samples)
    }

    fn validation(
        &self,
        scorer: &Scorer,
        observer: &mut Observer<'_>,
    ) -> Result<Validated, TrainError> {
        let split = &self.job.data.validation;
        let (mut scores, mut joint) = (SplitAccumulator::new(None), JointScores::default());
        let mut sample = self.calibrate.then(|| TemperatureSample::new(split.len(), split.classes));
        let mut true_class = TrueClassSample::new(split.len(), split.classes);
        let mut file = self.file(split)?;
        scorer.score(split, file.loadings(), observer, &mut |rows, batch| {
            let (log_probs, given) = (batch.log_probs(), truth(split, rows.clone()));
            joint.add(&batch);
            scores.add(&log_probs, &given, clean(split, rows).as_ref());
            if let Some(sample) = &mut sample {
                sample.add(&log_probs, &given);
            }
            let Predictions { mean, temperature, .. } = &batch.predictions;
            let utilities: Vec<f32> = mean.iter().map(|mean| mean / temperature).collect();
            true_class.add(&utilities, &given);
            file.push(batch.predictions)
        })?;
        let temperature = sample.map(|sample| sample.fit());
        let true_class = true_class.fit();
        if self.writes {
            forget(self.job.run.path().join(EVALUATION))?;
        }
        file.commit()?;
        let scores = scores.finish();
        let scores = SplitEvaluation { given: joint.complete(scores.given), ..scores };
        Ok(Validated { scores, temperature, true_class })
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
            scorer.score(split, WantedLoadings::None, observer, &mut |rows, batch| {
                add(batch.log_probs(), rows);
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
        let (mut scores, mut joint) = (SplitAccumulator::new(temperature), JointScores::default());
        let mut file = self.file(split)?;
        scorer.score(split, file.loadings(), observer, &mut |rows, batch| {
            let given = truth(split, rows.clone());
            scores.add(&batch.log_probs(), &given, clean(split, rows).as_ref());
            joint.add(&batch);
            file.push(batch.predictions)
        })?;
        file.commit()?;
        let scores = scores.finish();
        Ok(SplitEvaluation { given: joint.complete(scores.given), ..scores })
    }

    fn file(&self, split: &Split) -> Result<SplitFile, TrainError> {
        match self.writes {
            true => SplitFile::create(self.job, split),
            false => Ok(SplitFile::none()),
        }
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
    let (mut scores, mut joint) = (SplitAccumulator::new(None), JointScores::default());
    scorer.score(split, WantedLoadings::None, observer, &mut |rows, batch| {
        scores.add(&batch.log_probs(), &truth(split, rows), None);
        joint.add(&batch);
        Ok(())
    })?;
    Ok(joint.complete(scores.finish().given))
}

/// −log p of the given labels of each example of a split, by the weights as they are.
pub(crate) fn losses(
    recipe: &Recipe,
    seed: u64,
    state: &State,
    split: &Arc<Split>,
) -> Result<Vec<f64>, TrainError> {
    let scorer = Scorer::new(recipe, seed, state, recipe.evaluation.samples);
    let mut losses = Vec::with_capacity(split.len());
    scorer.score(split, WantedLoadings::None, &mut |_| {}, &mut |rows, batch| {
        match &batch.predictions.joint_log_probs {
            Some(log_probs) => losses.extend(log_probs.iter().map(|log_prob| -*log_prob as f64)),
            None => losses.extend(batch.log_probs().example_nll(&truth(split, rows))),
        }
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
