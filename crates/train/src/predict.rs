//! A trained run and new inputs → class, probability, uncertainty, likely confusions.

use aleator_data::{InputShape, Inputs};
use aleator_metrics::classification::argmax;
use aleator_metrics::{Calibration, LogProbs};
use aleator_model::Prediction;
use aleator_run::recipe::{EvaluatedWeights, Link, Recipe};
use aleator_run::{Predictions, RunDir};
use burn::tensor::Tensor;
use serde::Serialize;

use crate::Observer;
use crate::error::TrainError;
use crate::evaluate::{Scorer, trained_state};
use crate::gathered::{Gathered, LoadingsLimit, append, bad_rows};
use crate::session::input_shape;

/// The prediction for one example.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// The example's id.
    pub id: String,
    /// The most probable class; with several labels, all that are more likely on than off.
    pub classes: Vec<Chance>,
    /// The entropy of the probabilities, in nats; summed over classes that are on or off.
    pub entropy: f64,
    /// Classes that annotators may have named in its place, the likeliest first; none where each
    /// class is on or off by itself.
    pub confused_with: Vec<Confusion>,
}

/// A class and how likely it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chance {
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
    shape: InputShape,
    class_names: Vec<String>,
    link: Link,
    calibration: Option<Calibration>,
}

/// Confusions below this probability are not worth a reader's time.
const SMALLEST_FLIP: f64 = 0.01;

/// Confusions named at most.
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
            class_names: run.info().class_names.clone(),
            link: recipe.head.link,
            calibration: evaluation.and_then(|it| it.calibration),
        })
    }

    /// What an example must be.
    pub fn shape(&self) -> InputShape {
        self.shape
    }

    /// Predicts some rows of `inputs`, named by `id` and keyed by `key`.
    pub fn predict(
        &self,
        inputs: &Inputs,
        rows: std::ops::Range<usize>,
        name: impl Fn(usize) -> String,
        key: impl Fn(usize) -> u64,
    ) -> Result<Vec<Predicted>, TrainError> {
        let width = inputs.shape().len();
        let mut values = vec![0.0; rows.len() * width];
        for (row, example) in rows.clone().zip(values.chunks_exact_mut(width)) {
            inputs.read(row, example)?;
        }
        let noise = self.scorer.noise(rows.clone().map(key).collect());
        let not_finite = |bad: Vec<usize>| {
            let names = bad.into_iter().map(|at| name(rows.start + at)).collect();
            TrainError::prediction_not_finite("given", names)
        };
        let inputs = self.scorer.inputs(values);
        let prediction = self.scorer.model().predict(inputs, &noise).map_err(not_finite)?;
        let log_probs = floats(prediction.log_probs.clone());
        match bad_rows(&log_probs, self.class_names.len(), self.link) {
            bad if bad.is_empty() => Ok(self.describe(prediction, rows.map(name))),
            bad => Err(not_finite(bad)),
        }
    }

    fn describe(
        &self,
        prediction: Prediction,
        names: impl Iterator<Item = String>,
    ) -> Vec<Predicted> {
        let classes = self.class_names.len();
        let on = floats(prediction.log_probs);
        let off = (self.link == Link::Sigmoid).then(|| on.iter().map(log_complement).collect());
        let raw = LogProbs { classes, on, off };
        let log_probs = match &self.calibration {
            Some(calibration) => raw.scaled(calibration.temperature),
            None => raw,
        };
        let spread: Vec<f64> =
            floats(prediction.variance).iter().map(|v| (*v as f64).max(0.0).sqrt()).collect();
        let mut gathered = Gathered::default();
        gathered.add_latent(prediction.latent, 0, LoadingsLimit(usize::MAX));
        let latent = gathered.finish(classes);
        let one = |(row, id): (usize, String)| {
            let at = row * classes;
            let probs: Vec<f64> =
                log_probs.on[at..at + classes].iter().map(|p| (*p as f64).exp()).collect();
            let top = argmax(&log_probs.on[at..at + classes]);
            let chance = |class: usize| Chance {
                class: self.class_names[class].clone(),
                probability: probs[class],
                spread: spread[at + class],
            };
            let named = match self.link {
                Link::Softmax => vec![chance(top)],
                Link::Sigmoid => (0..classes).filter(|k| probs[*k] > 0.5).map(chance).collect(),
            };
            Predicted {
                id,
                classes: named,
                entropy: entropy(&probs, self.link),
                confused_with: match self.link {
                    Link::Softmax => self.confusions(&latent, row, top),
                    Link::Sigmoid => vec![],
                },
            }
        };
        names.enumerate().map(one).collect()
    }

    fn confusions(&self, latent: &Predictions, row: usize, top: usize) -> Vec<Confusion> {
        let flips = (0..self.class_names.len()).filter(|class| *class != top).map(|class| {
            let flip_probability = latent.flip_probability(row, class, top);
            Confusion { class: self.class_names[class].clone(), flip_probability }
        });
        let mut flips: Vec<Confusion> =
            flips.filter(|flip| flip.flip_probability >= SMALLEST_FLIP).collect();
        flips.sort_by(|a, b| b.flip_probability.total_cmp(&a.flip_probability));
        flips.truncate(CONFUSIONS);
        flips
    }
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let mut out = vec![];
    append(&mut out, tensor);
    out
}

/// log(1 − p) from log p, near enough for numbers that are shown.
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
