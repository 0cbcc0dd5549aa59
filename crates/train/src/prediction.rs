//! What is predicted for some examples: arrays, and words for people.

use std::sync::Arc;

use aleator_kernels::multilabel::LabelSet;
use aleator_metrics::classification::argmax;
use aleator_run::Predictions;
use aleator_run::recipe::Link;
use serde::Serialize;

use crate::outputs;

/// Predictions for some examples, as arrays in the order of the examples.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The ids of the examples, `[N]`.
    pub ids: Vec<String>,
    /// The names of the classes, `[K]`.
    pub class_names: Arc<[String]>,
    /// Whether one class is right, or each is on or off.
    pub link: Link,
    /// The probabilities of the labels `[N, K]`, calibrated where the run is, and the Normal on the
    /// utilities that they come from. Of an ensemble they are means, and there is no covariance.
    pub predictions: Predictions,
    /// How far the noise in the labels moves each probability: its variance, `[N, K]`. Of an
    /// ensemble also how far the members disagree.
    pub variance: Vec<f32>,
    /// log p of each class being the true one, `[N, K]`; `None` for multilabel classes, and for
    /// runs that were evaluated before there was such a probability.
    pub true_log_probs: Option<Vec<f32>>,
    /// The predictions of the members of an ensemble; none for a single run.
    pub members: Vec<Predictions>,
    /// Sets of labels, of a joint likelihood.
    pub sets: Option<SetPredictions>,
    /// The step of the checkpoint that predicts, where the caller named it.
    pub checkpoint: Option<usize>,
}

/// What a joint likelihood says of the labels of some examples together.
#[derive(Clone, Debug, PartialEq)]
pub struct SetPredictions {
    /// The most probable set of labels of each example, given those that are known, `[N]`.
    pub most_probable: Vec<LabelSet>,
    /// log P of the known labels of each example, `[N]`; `None` where none is known.
    pub known: Option<Vec<f64>>,
}

/// What is predicted for one example, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExamplePrediction {
    /// The example's id.
    pub id: String,
    /// The most probable classes, the most probable first.
    pub classes: Vec<ClassProbability>,
    /// The entropy of the probabilities, in nats; summed over classes that are on or off.
    pub entropy: f64,
    /// The most probable set of labels, of a joint likelihood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_probable_set: Option<Vec<String>>,
    /// How probable it is that exactly these are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_probability: Option<f64>,
    /// How probable the labels are that the caller knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_probability: Option<f64>,
    /// The class that is probably the true one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_class: Option<String>,
    /// How probable it is that this is the true class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub true_probability: Option<f64>,
    /// Classes that annotators may have chosen instead, the most likely first; none where each
    /// class is on or off by itself.
    pub confused_with: Vec<Confusion>,
    /// The step of the checkpoint that predicts, where the caller named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
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

/// Less probable confusions are not worth a reader's time.
const SMALLEST_FLIP: f64 = 0.01;

/// At most this many confusions are named.
const CONFUSIONS: usize = 3;

/// At least this many classes that are on or off are named, even if all are probably off.
const FEWEST_MULTILABEL: usize = 3;

impl Prediction {
    /// The number of examples.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The most probable class of each example, `[N]`.
    pub fn classes(&self) -> Vec<usize> {
        self.predictions.log_probs.chunks_exact(self.class_names.len()).map(argmax).collect()
    }

    /// The probabilities of the labels of one example, `[K]`.
    pub fn probabilities(&self, row: usize) -> Vec<f32> {
        self.row(&self.predictions.log_probs, row).iter().map(|log_p| log_p.exp()).collect()
    }

    /// The probability of each class of one example to be the true one, `[K]`.
    pub fn true_probabilities(&self, row: usize) -> Option<Vec<f32>> {
        let log_probs = self.true_log_probs.as_deref()?;
        Some(self.row(log_probs, row).iter().map(|log_p| log_p.exp()).collect())
    }

    /// Adds the predictions of further examples by the same run.
    pub fn append(&mut self, mut other: Self) {
        outputs::append(&mut self.predictions, other.predictions);
        self.variance.append(&mut other.variance);
        self.ids.append(&mut other.ids);
        if let (Some(to), Some(mut from)) = (&mut self.true_log_probs, other.true_log_probs) {
            to.append(&mut from);
        }
        for (to, from) in self.members.iter_mut().zip(other.members) {
            outputs::append(to, from);
        }
        if let (Some(to), Some(from)) = (&mut self.sets, other.sets) {
            to.most_probable.extend(from.most_probable);
            to.known.iter_mut().for_each(|known| known.extend(from.known.iter().flatten()));
        }
    }

    /// The prediction for one example, in words, with the `top` most probable classes; without a
    /// number the most probable one, of multilabel classes those more likely on than off, and at
    /// least three.
    pub fn describe(&self, row: usize, top: Option<usize>) -> ExamplePrediction {
        let log_probs = self.row(&self.predictions.log_probs, row);
        let probs: Vec<f64> = log_probs.iter().map(|p| (*p as f64).exp()).collect();
        let variance = self.row(&self.variance, row);
        let named = |class: usize| ClassProbability {
            class: self.class_names[class].clone(),
            probability: probs[class],
            spread: (variance[class] as f64).max(0.0).sqrt(),
        };
        let order = ranked(log_probs);
        let count = top.unwrap_or_else(|| match self.link {
            Link::Softmax => 1,
            Link::Sigmoid => FEWEST_MULTILABEL.max(probs.iter().filter(|p| **p > 0.5).count()),
        });
        let truth = self.true_log_probs.as_deref().map(|all| {
            let row = self.row(all, row);
            let class = argmax(row);
            (self.class_names[class].clone(), (row[class] as f64).exp())
        });
        let (true_class, true_probability) = truth.unzip();
        ExamplePrediction {
            id: self.ids[row].clone(),
            classes: order.iter().take(count).map(|class| named(*class)).collect(),
            entropy: entropy(&probs, self.link),
            most_probable_set: self.most_probable_set(row),
            set_probability: self.sets.as_ref().map(|it| it.most_probable[row].log_prob.exp()),
            known_probability: self.known_probability(row),
            true_class,
            true_probability,
            confused_with: match self.link {
                Link::Softmax => self.confusions(row, order[0]),
                Link::Sigmoid => vec![],
            },
            checkpoint: self.checkpoint,
        }
    }

    /// The names of the most probable set of labels, of a joint likelihood.
    pub fn most_probable_set(&self, row: usize) -> Option<Vec<String>> {
        let on = &self.sets.as_ref()?.most_probable[row].on;
        let named = self.class_names.iter().zip(on).filter(|(_, on)| **on);
        Some(named.map(|(name, _)| name.clone()).collect())
    }

    fn known_probability(&self, row: usize) -> Option<f64> {
        Some(self.sets.as_ref()?.known.as_ref()?[row].exp())
    }

    fn row<'a>(&self, values: &'a [f32], row: usize) -> &'a [f32] {
        let classes = self.class_names.len();
        &values[row * classes..(row + 1) * classes]
    }

    fn confusions(&self, row: usize, top: usize) -> Vec<Confusion> {
        let models = match &self.members[..] {
            [] => std::slice::from_ref(&self.predictions),
            members => members,
        };
        let flips = (0..self.class_names.len()).filter(|class| *class != top).map(|class| {
            let flips = models.iter().map(|model| model.flip_probability(row, class, top));
            let flip_probability = flips.sum::<f64>() / models.len() as f64;
            Confusion { class: self.class_names[class].clone(), flip_probability }
        });
        let mut flips: Vec<Confusion> =
            flips.filter(|flip| flip.flip_probability >= SMALLEST_FLIP).collect();
        flips.sort_by(|a, b| b.flip_probability.total_cmp(&a.flip_probability));
        flips.truncate(CONFUSIONS);
        flips
    }
}

/// The classes, the most probable first; of equals the first.
fn ranked(log_probs: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..log_probs.len()).collect();
    order.sort_by(|a, b| log_probs[*b].total_cmp(&log_probs[*a]));
    order
}

fn entropy(probs: &[f64], link: Link) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    match link {
        Link::Softmax => probs.iter().map(|p| term(*p)).sum(),
        Link::Sigmoid => probs.iter().map(|p| term(*p) + term(1.0 - p)).sum(),
    }
}
