//! A trained run and new inputs → class, probability, uncertainty, likely confusions.

use std::ops::Range;
use std::sync::Arc;

use aleator_data::{Ids, InputShape, Inputs};
use aleator_metrics::classification::argmax;
use aleator_metrics::{Calibration, LogProbs};
use aleator_run::recipe::{EvaluatedWeights, Link, Recipe};
use aleator_run::{Predictions, RunDir};
use serde::Serialize;

use crate::evaluate::{Scorer, trained_state};
use crate::outputs::{self, floats};
use crate::session::input_shape;
use crate::{Observer, TrainError};

/// Predictions for some examples, as arrays in the order of the examples.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The ids of the examples, `[N]`.
    pub ids: Vec<String>,
    /// The names of the classes, `[K]`.
    pub class_names: Arc<[String]>,
    /// Whether one class is right, or each is on or off.
    pub link: Link,
    /// The probabilities `[N, K]`, calibrated where the run is, and the Normal on the utilities
    /// that they come from.
    pub predictions: Predictions,
    /// How far the noise in the labels moves each probability: its variance, `[N, K]`.
    pub variance: Vec<f32>,
}

/// What is predicted for one example, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExamplePrediction {
    /// The example's id.
    pub id: String,
    /// The most probable class; with several labels, all that are more likely on than off.
    pub classes: Vec<ClassProbability>,
    /// The entropy of the probabilities, in nats; summed over classes that are on or off.
    pub entropy: f64,
    /// Classes that annotators may have chosen instead, the most likely first; none where each
    /// class is on or off by itself.
    pub confused_with: Vec<Confusion>,
}

/// A class and how likely it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassProbability {
    /// Its name.
    pub class: String,
    /// p.
    pub probability: f64,
    /// How far the noise in the labels moves this probability: its standard deviation.
    pub spread: f64,
}

/// A class whose utility may exceed that of the predicted class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confusion {
    /// Its name.
    pub class: String,
    /// P(u_class > u_predicted).
    pub flip_probability: f64,
}

/// A trained run that predicts.
pub struct Predictor {
    scorer: Scorer,
    /// The shape of an example.
    pub shape: InputShape,
    /// The names of the classes, `[K]`.
    pub class_names: Arc<[String]>,
    link: Link,
    calibration: Option<Calibration>,
}

/// Less probable confusions are not worth a reader's time.
const SMALLEST_FLIP: f64 = 0.01;

/// At most this many confusions are named.
const CONFUSIONS: usize = 3;

impl Predictor {
    /// From a trained run, whose data need not be there: the weights that were evaluated last,
    /// and their calibration.
    pub fn new(
        run: &RunDir,
        recipe: &Recipe,
        observer: &mut Observer<'_>,
    ) -> Result<Self, TrainError> {
        let evaluation = run.evaluation()?;
        let weights = match evaluation.as_ref().map(|it| it.weights.as_str()) {
            Some("last") => EvaluatedWeights::Last,
            Some("best") => EvaluatedWeights::Best,
            _ => recipe.evaluation.weights,
        };
        let state = trained_state(run, recipe, weights, observer)?;
        let scorer = Scorer::new(recipe, run.info().seed, &state, recipe.evaluation.samples);
        Ok(Self {
            scorer,
            shape: input_shape(run.info()),
            class_names: run.info().class_names.clone().into(),
            link: recipe.head.link,
            calibration: evaluation.and_then(|it| it.calibration),
        })
    }

    /// Predicts some rows of `inputs`, whose ids are `ids`.
    pub fn predict(
        &self,
        inputs: &Inputs,
        ids: &Ids,
        rows: Range<usize>,
    ) -> Result<Prediction, TrainError> {
        let width = inputs.shape().len();
        let mut values = vec![0.0; rows.len() * width];
        for (row, example) in rows.clone().zip(values.chunks_exact_mut(width)) {
            inputs.read(row, example)?;
        }
        let noise = self.scorer.noise(rows.clone().map(|row| ids.key(row)).collect());
        let names: Vec<String> = rows.map(|row| ids.name(row).into_owned()).collect();
        let not_finite = |bad: Vec<usize>| {
            let names = bad.into_iter().map(|at| names[at].clone()).collect();
            TrainError::prediction_not_finite("given", names)
        };
        let inputs = self.scorer.inputs(values);
        let output = self.scorer.model.predict(inputs, &noise).map_err(not_finite)?;
        let on = floats(output.log_probs);
        let off = (self.link == Link::Sigmoid).then(|| on.iter().map(log_complement).collect());
        let raw = outputs::predictions(on, off, output.latent, true).map_err(not_finite)?;
        let predictions = match &self.calibration {
            Some(calibration) => {
                let Predictions { classes, log_probs: on, log_probs_off: off, .. } = raw;
                let calibrated = LogProbs { classes, on, off }.scaled(calibration.temperature);
                let (log_probs, log_probs_off) = (calibrated.on, calibrated.off);
                Predictions { log_probs, log_probs_off, ..raw }
            }
            None => raw,
        };
        Ok(Prediction {
            ids: names,
            class_names: self.class_names.clone(),
            link: self.link,
            predictions,
            variance: floats(output.variance),
        })
    }
}

impl Prediction {
    /// The most probable class of each example, `[N]`.
    pub fn classes(&self) -> Vec<usize> {
        self.predictions.log_probs.chunks_exact(self.class_names.len()).map(argmax).collect()
    }

    /// Adds the predictions of further examples by the same run.
    pub fn append(&mut self, mut other: Self) {
        outputs::append(&mut self.predictions, other.predictions);
        self.variance.append(&mut other.variance);
        self.ids.append(&mut other.ids);
    }

    /// The prediction for one example, in words.
    pub fn describe(&self, row: usize) -> ExamplePrediction {
        let classes = self.class_names.len();
        let at = row * classes;
        let log_probs = &self.predictions.log_probs[at..at + classes];
        let probs: Vec<f64> = log_probs.iter().map(|p| (*p as f64).exp()).collect();
        let top = argmax(log_probs);
        let named = |class: usize| ClassProbability {
            class: self.class_names[class].clone(),
            probability: probs[class],
            spread: (self.variance[at + class] as f64).max(0.0).sqrt(),
        };
        let (likely, confused_with) = match self.link {
            Link::Softmax => (vec![named(top)], self.confusions(row, top)),
            Link::Sigmoid => {
                ((0..classes).filter(|k| probs[*k] > 0.5).map(named).collect(), vec![])
            }
        };
        ExamplePrediction {
            id: self.ids[row].clone(),
            classes: likely,
            entropy: entropy(&probs, self.link),
            confused_with,
        }
    }

    fn confusions(&self, row: usize, top: usize) -> Vec<Confusion> {
        let flips = (0..self.class_names.len()).filter(|class| *class != top).map(|class| {
            let flip_probability = self.predictions.flip_probability(row, class, top);
            Confusion { class: self.class_names[class].clone(), flip_probability }
        });
        let mut flips: Vec<Confusion> =
            flips.filter(|flip| flip.flip_probability >= SMALLEST_FLIP).collect();
        flips.sort_by(|a, b| b.flip_probability.total_cmp(&a.flip_probability));
        flips.truncate(CONFUSIONS);
        flips
    }
}

/// log(1 − p) from log p, accurate enough for display.
fn log_complement(log_p: &f32) -> f32 {
    let p_minus_one = (*log_p as f64).min(0.0).exp_m1();
    (-p_minus_one).ln() as f32
}

fn entropy(probs: &[f64], link: Link) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    match link {
        Link::Softmax => probs.iter().map(|p| term(*p)).sum(),
        Link::Sigmoid => probs.iter().map(|p| term(*p) + term(1.0 - p)).sum(),
    }
}
