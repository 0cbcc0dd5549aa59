//! Trained runs and new inputs → probabilities; labelled ones → scores.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Ids, InputShape, Inputs, Split, evaluation_batches};
use aleator_kernels::multilabel::Conditional;
use aleator_metrics::{
    Calibration, Evaluation, LogProbs, SplitAccumulator, SplitEvaluation, Summary, TrueClass,
};
use aleator_model::BatchNoise;
use aleator_run::recipe::{Likelihood, Link, Recipe};
use aleator_run::{Predictions, RunDir, log_mean};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::evaluate::{clean, truth};
use crate::experiment::Shape;
use crate::joint::JointLabels;
use crate::kept_predictions::WantedLoadings;
use crate::outputs::{self, floats};
use crate::scorer::{JointScores, ScoredBatch, Scorer};
use crate::trained::evaluated_state;
use crate::{Event, Observer, Prediction, SetPredictions, TrainError};

/// A trained run, or an ensemble of runs, that predicts.
pub struct Predictor {
    /// One, or those of an ensemble.
    members: Vec<Scorer>,
    /// The shape of an example.
    pub shape: InputShape,
    /// The names of the classes, `[K]`.
    pub class_names: Arc<[String]>,
    /// The step of the checkpoint, where the caller named it.
    pub checkpoint: Option<usize>,
    link: Link,
    /// Labels that are known of every example, as (class, whether it is on).
    known: Vec<(usize, bool)>,
    calibration: Option<Calibration>,
    true_class: Option<TrueClass>,
    batch: usize,
}

/// What is predicted for some examples that stand one after the other.
#[derive(Clone, Debug)]
pub struct PredictedPiece {
    /// Of the examples that can be read; none where no example can.
    pub prediction: Option<Prediction>,
    /// The images that cannot be decoded, in their order.
    pub damaged: Vec<DamagedImage>,
}

/// An image that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedImage {
    /// Its place among the examples of the piece.
    pub at: usize,
    /// Its id.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A warning.
impl fmt::Display for DamagedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; it is not predicted", self.id, self.reason)
    }
}

impl PredictedPiece {
    /// The number of examples, damaged ones included.
    pub fn len(&self) -> usize {
        self.prediction.as_ref().map_or(0, Prediction::len) + self.damaged.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The scores of a trained run on labelled examples that it was not evaluated on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewScores {
    /// The probabilities of the labels against the given labels; calibrated where the run is.
    pub label: Summary,
    /// The probabilities of the true class against the given labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_class: Option<Summary>,
    /// The same two against the true labels, where the data have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean: Option<CleanScores>,
    /// The step of the checkpoint, where the caller named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
}

/// Scores against labels that are known to be true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanScores {
    /// The probabilities of the labels.
    pub label: Summary,
    /// The probabilities of the true class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_class: Option<Summary>,
}

impl Predictor {
    /// From a trained run, whose data need not be there: the weights that were evaluated last,
    /// with their calibration and their law of the true class. Where the caller names a step, those
    /// of its checkpoint; what was fitted to other weights is left out.
    ///
    /// # Errors
    /// When the checkpoint is missing or damaged.
    pub fn new(
        run: &RunDir,
        recipe: &Recipe,
        checkpoint: Option<usize>,
    ) -> Result<Self, TrainError> {
        let evaluation = run.evaluation()?;
        let state = evaluated_state(run, recipe, evaluation.as_ref(), checkpoint)?;
        let samples = recipe.evaluation.samples;
        let fits = |it: &Evaluation| it.step == Some(state.progress.step);
        let fitted = evaluation.filter(fits).map(|it| (it.calibration, it.true_class));
        let (calibration, true_class) = fitted.unwrap_or_default();
        Ok(Self {
            members: vec![Scorer::new(recipe, run.info().seed, &state, samples)],
            shape: Shape::of_run(run.info()).input,
            class_names: run.info().class_names.clone().into(),
            checkpoint,
            link: recipe.head.link,
            known: vec![],
            calibration,
            true_class,
            batch: recipe.evaluation.batch,
        })
    }

    /// From the members of an ensemble, whose probabilities are averaged as its evaluation does.
    ///
    /// # Panics
    /// If there is no member.
    pub fn ensemble(
        members: &[(RunDir, Recipe)],
        evaluation: &Evaluation,
    ) -> Result<Self, TrainError> {
        let scorers = members.iter().map(|(run, recipe)| {
            let mut own = Self::new(run, recipe, None)?;
            Ok(own.members.remove(0))
        });
        let scorers = scorers.collect::<Result<Vec<_>, TrainError>>()?;
        let (run, recipe) = members.first().expect("an ensemble has members");
        for (other, _) in members {
            let (first, other_info) = (run.info(), other.info());
            if (&first.class_names, &first.input_shape, first.link)
                != (&other_info.class_names, &other_info.input_shape, other_info.link)
            {
                return Err(TrainError::Recipe(format!(
                    "{} and {} have other classes or other inputs, so they cannot predict together",
                    run.path().display(),
                    other.path().display()
                )));
            }
        }
        Ok(Self {
            members: scorers,
            shape: Shape::of_run(run.info()).input,
            class_names: run.info().class_names.clone().into(),
            checkpoint: None,
            link: recipe.head.link,
            known: vec![],
            calibration: evaluation.calibration,
            true_class: evaluation.true_class.clone(),
            batch: recipe.evaluation.batch,
        })
    }

    /// Whether it gives the probability of the true class.
    pub fn knows_true_class(&self) -> bool {
        self.true_class.is_some()
    }

    /// Whether it says which labels go together: a single run of a joint likelihood.
    pub fn knows_sets(&self) -> bool {
        matches!(&self.members[..], [member] if member.likelihood == Likelihood::Joint)
    }

    /// Predicts given these labels of every example, as (class, whether it is on).
    ///
    /// # Errors
    /// When the run does not say which labels go together, or a class is named twice.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn given(mut self, known: Vec<(usize, bool)>) -> Result<Self, TrainError> {
        if !known.is_empty() && !self.knows_sets() {
            return Err(TrainError::Recipe(
                "other labels change nothing unless a single run has learned which go together: \
                 train one with head.likelihood = \"joint\" (preset multilabel-joint)"
                    .to_string(),
            ));
        }
        for (at, (class, _)) in known.iter().enumerate() {
            let name = &self.class_names[*class];
            if known[..at].iter().any(|(other, _)| other == class) {
                return Err(TrainError::Recipe(format!("class {name:?} is named twice")));
            }
        }
        self.known = known;
        Ok(self)
    }

    /// Whether labels of the examples are known.
    pub fn is_given_labels(&self) -> bool {
        !self.known.is_empty()
    }

    /// Predicts some rows of `inputs`, whose ids are `ids`.
    pub fn predict(
        &self,
        inputs: &Inputs,
        ids: &Ids,
        rows: Range<usize>,
    ) -> Result<Prediction, TrainError> {
        let names = rows.clone().map(|row| ids.name(row).into_owned()).collect();
        let width = inputs.shape().len();
        let mut values = vec![0.0; rows.len() * width];
        for (row, example) in rows.zip(values.chunks_exact_mut(width)) {
            inputs.read(row, example)?;
        }
        self.answer(values, names)
    }

    /// [`predict`](Self::predict), without the images that cannot be decoded.
    pub fn predict_readable(
        &self,
        inputs: &Inputs,
        ids: &Ids,
        rows: Range<usize>,
    ) -> Result<PredictedPiece, TrainError> {
        let mut example = vec![0.0; inputs.shape().len()];
        let (mut values, mut names, mut damaged) = (vec![], vec![], vec![]);
        for (at, row) in rows.clone().enumerate() {
            let id = ids.name(row).into_owned();
            match inputs.read(row, &mut example) {
                Ok(()) => {
                    values.extend_from_slice(&example);
                    names.push(id);
                }
                Err(error) => damaged.push(DamagedImage { at, id, reason: error.reason() }),
            }
        }
        let prediction = if names.is_empty() { None } else { Some(self.answer(values, names)?) };
        Ok(PredictedPiece { prediction, damaged })
    }

    /// Predicts examples that stand one after the other, whose ids are `names`.
    fn answer(&self, values: Vec<f32>, names: Vec<String>) -> Result<Prediction, TrainError> {
        let not_finite = |bad: Vec<usize>| {
            let names = bad.into_iter().map(|at| names[at].clone()).collect();
            TrainError::prediction_not_finite("given", names)
        };
        let outputs = self.members.iter().map(|member| member.predict(values.clone(), &self.known));
        let outputs = outputs.collect::<Result<Vec<_>, _>>().map_err(not_finite)?;
        let sets = match &outputs[..] {
            [MemberOutput { sets, .. }] => sets.clone(),
            _ => None,
        };
        let outputs = outputs.into_iter().map(|it| (it.predictions, it.variance));
        let (mut members, variances): (Vec<_>, Vec<_>) = outputs.unzip();
        let (raw, variance) = if members.len() == 1 {
            (members.remove(0), variances.concat())
        } else {
            let log_probs: Vec<&[f32]> = members.iter().map(|it| &it.log_probs[..]).collect();
            (outputs::average(&members), total_variance(&log_probs, &variances))
        };
        let (predictions, true_log_probs) = self.concluded(raw);
        Ok(Prediction {
            ids: names,
            class_names: self.class_names.clone(),
            link: self.link,
            predictions,
            variance,
            true_log_probs,
            members,
            sets,
            checkpoint: self.checkpoint,
        })
    }

    /// The scores on labelled examples, whose classes must be those of the run.
    pub fn score(
        &self,
        split: &Arc<Split>,
        observer: &mut Observer<'_>,
    ) -> Result<NewScores, TrainError> {
        let (classes, total) = (self.class_names.len(), split.len());
        let (mut label, mut of_truth) = (SplitAccumulator::new(None), None);
        let (mut joint, mut done) = (JointScores::default(), 0);
        for batch in evaluation_batches(split.clone(), self.batch, self.members[0].workers) {
            let batch = batch?;
            let rows = done..done + batch.examples.len();
            done = rows.end;
            let own =
                |member: &Scorer| member.score_batch(split, batch.clone(), WantedLoadings::None);
            let found = self.members.iter().map(own).collect::<Result<Vec<_>, _>>()?;
            let found = ScoredBatch::average(found);
            joint.add(&found);
            let (predictions, true_log_probs) = self.concluded(found.predictions);
            let Predictions { log_probs: on, log_probs_off: off, .. } = predictions;
            let (given, clean) = (truth(split, rows.clone()), clean(split, rows));
            label.add(&LogProbs { classes, on, off }, &given, clean.as_ref());
            if let Some(on) = true_log_probs {
                let log_probs = LogProbs { classes, on, off: None };
                let scores = of_truth.get_or_insert_with(|| SplitAccumulator::new(None));
                scores.add(&log_probs, &given, clean.as_ref());
            }
            observer(Event::Evaluating { split: "given", done, total });
        }
        let SplitEvaluation { given, clean: label, .. } = label.finish();
        let of_truth = of_truth.map(SplitAccumulator::finish);
        let (true_class, true_clean) = of_truth.map(|it| (it.given, it.clean)).unzip();
        let clean = label.map(|label| CleanScores { label, true_class: true_clean.flatten() });
        let label = joint.complete(given);
        Ok(NewScores { label, true_class, clean, checkpoint: self.checkpoint })
    }

    /// The predictions as they are reported, calibrated where the run is, and log p of the true
    /// class where its law is known.
    fn concluded(&self, raw: Predictions) -> (Predictions, Option<Vec<f32>>) {
        let true_log_probs = self.true_class.as_ref().map(|law| {
            let utilities: Vec<f32> = raw.mean.iter().map(|mean| mean / raw.temperature).collect();
            law.log_probs(&utilities, raw.classes)
        });
        let Some(calibration) = &self.calibration else { return (raw, true_log_probs) };
        let Predictions { classes, log_probs: on, log_probs_off: off, .. } = raw;
        let calibrated = LogProbs { classes, on, off }.scaled(calibration.temperature);
        let (log_probs, log_probs_off) = (calibrated.on, calibrated.off);
        (Predictions { log_probs, log_probs_off, ..raw }, true_log_probs)
    }
}

/// What one model predicts.
struct MemberOutput {
    predictions: Predictions,
    /// Of the probabilities, `[N, K]`.
    variance: Vec<f32>,
    sets: Option<SetPredictions>,
}

impl Scorer {
    /// The predictions of examples that stand one after the other, given some of their labels.
    ///
    /// # Errors
    /// The rows of examples whose predictions are not finite.
    fn predict(
        &self,
        values: Vec<f32>,
        known: &[(usize, bool)],
    ) -> Result<MemberOutput, Vec<usize>> {
        let noise = self.noise(&values);
        let inputs = self.inputs(values);
        let output = self.model.predict(inputs.clone(), &noise)?;
        let (on, mut variance) =
            self.mean_and_variance(output.log_probs, output.variance, &inputs, &noise)?;
        let complements = |on: &[f32]| {
            (self.link == Link::Sigmoid).then(|| on.iter().map(log_complement).collect())
        };
        let off = complements(&on);
        let mut predictions = outputs::predictions(on, off, output.latent, true)?;
        if self.likelihood != Likelihood::Joint {
            return Ok(MemberOutput { predictions, variance, sets: None });
        }
        let joint = JointLabels::new(&predictions, &noise);
        let most_probable = joint.sets(known);
        let given = (!known.is_empty()).then(|| joint.given(known));
        if let Some(given) = &given {
            let all = |of: fn(&Conditional) -> &[f64]| {
                given.iter().flat_map(|it| of(it).iter().map(|value| *value as f32)).collect()
            };
            predictions.log_probs = all(|it| &it.log_probs);
            predictions.log_probs_off = complements(&predictions.log_probs);
            variance = all(|it| &it.variance);
        }
        let known = given.map(|given| given.iter().map(|it| it.log_evidence).collect());
        let sets = Some(SetPredictions { most_probable, known });
        Ok(MemberOutput { predictions, variance, sets })
    }
}

impl Scorer {
    /// The logarithms of the mean probabilities of all networks, and the variance of these, from
    /// those of the first.
    fn mean_and_variance(
        &self,
        log_probs: Tensor<2>,
        variance: Tensor<2>,
        inputs: &Tensor<2>,
        noise: &BatchNoise,
    ) -> Result<(Vec<f32>, Vec<f32>), Vec<usize>> {
        let (first, own) = (floats(log_probs), floats(variance));
        if self.further.is_empty() {
            return Ok((first, own));
        }
        let (mut log_probs, mut variances) = (vec![first], vec![own]);
        for model in &self.further {
            let output = model.predict(inputs.clone(), noise)?;
            log_probs.push(floats(output.log_probs));
            variances.push(floats(output.variance));
        }
        let all: Vec<&[f32]> = log_probs.iter().map(Vec::as_slice).collect();
        let variance = total_variance(&all, &variances);
        Ok((log_mean(&log_probs), variance))
    }
}

/// The mean of the members' variances, and the variance of the members' probabilities.
fn total_variance(log_probs: &[&[f32]], variances: &[Vec<f32>]) -> Vec<f32> {
    let count = log_probs.len() as f64;
    let cell = |at: usize| {
        let probs = log_probs.iter().map(|member| (member[at] as f64).exp());
        let mean = probs.clone().sum::<f64>() / count;
        let between = probs.map(|prob| (prob - mean).powi(2)).sum::<f64>() / count;
        let within = variances.iter().map(|variance| variance[at] as f64).sum::<f64>() / count;
        (between + within) as f32
    };
    (0..variances.first().map_or(0, Vec::len)).map(cell).collect()
}

/// log(1 − p) from log p, accurate enough for display.
fn log_complement(log_p: &f32) -> f32 {
    let p_minus_one = (*log_p as f64).min(0.0).exp_m1();
    (-p_minus_one).ln() as f32
}
