//! One network in training: its weights, their running average, its optimizer.

use std::path::Path;

use aleator_model::params::{self, Live, Values};
use aleator_model::{BatchStatistics, Classifier, load_network};
use aleator_run::recipe::Recipe;
use aleator_run::{RunError, check_kind};
use burn::module::Module;
use burn::tensor::Device;

use crate::experiment::{self, Shape};
use crate::lbfgs::Search;
use crate::sum::{Summand, change_each};
use crate::tensors::NamedTensor;
use crate::{Optimizer, TrainError};

/// A network and what moves it. Its weights are held once, in the model, where they are updated in
/// place.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// None only while it is being updated.
    model: Option<Classifier>,
    pub average: Option<Average>,
    pub optimizer: Optimizer,
}

/// The running average of the weights, where the recipe asks for one.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    decay: f64,
    values: Vec<Values>,
}

/// What a part, or a sum of parts, says about the weights of a network.
#[derive(Clone, Debug)]
pub(crate) struct Gradients {
    /// In the order of the parameters.
    pub values: Vec<Values>,
    /// What the norms found.
    pub statistics: Vec<BatchStatistics>,
}

impl Summand for Gradients {
    fn add(&mut self, next: Self) {
        self.values.add(next.values);
        self.statistics.add(next.statistics);
    }
}

impl Gradients {
    /// Times the share of a part in its step.
    pub fn scale(&mut self, share: f32) {
        for one in &mut self.statistics {
            one.mean.iter_mut().chain(&mut one.variance).for_each(|value| *value *= share);
        }
        self.scale_values(share);
    }

    /// The gradients alone, and not what the norms found.
    pub fn scale_values(&mut self, factor: f32) {
        if factor != 1.0 {
            let scale = |values: &mut [f32]| values.iter_mut().for_each(|value| *value *= factor);
            self.values.iter_mut().for_each(|values| values.change(scale));
        }
    }
}

impl Network {
    /// Fresh weights.
    pub fn start(recipe: &Recipe, seed: u64, shape: Shape, device: &Device) -> Self {
        let model = experiment::classifier(recipe, seed, shape).init(device);
        let (mean, covariance) = (recipe.head.mean_init, recipe.head.covariance_init);
        let model = params::update(model, |_, Live { name, values, .. }| {
            let factor = match name {
                _ if is_covariance(name) => Some(covariance),
                _ if name.starts_with("output.head.mean.") => mean,
                _ => None,
            };
            if let Some(factor) = factor {
                let scale = |value: &mut f32| *value *= factor as f32;
                values.change(|values| values.iter_mut().for_each(scale));
            }
        });
        let mut network = Self {
            optimizer: Optimizer::new(&recipe.optimizer, recipe.network.frozen),
            average: recipe.training.ema.map(|decay| Average { decay, values: vec![] }),
            model: Some(model),
        };
        network.restart();
        network
    }

    /// Begins with these weights instead, where names and shapes are the same.
    pub fn begin_with(&mut self, weights: &[NamedTensor]) {
        let model = self.model.take().expect("an update puts the model back");
        self.model = Some(params::update(model, |_, Live { name, shape, values }| {
            let same = |own: &&NamedTensor| own.name == name && own.shape == shape;
            if let Some(own) = weights.iter().find(same) {
                *values = own.values.clone();
            }
        }));
        self.restart();
    }

    /// Whether the optimizer can lower the loss no further.
    pub fn has_converged(&self) -> bool {
        self.optimizer.search().is_some_and(|search| search.converged)
    }

    /// Leaves a point that the optimizer has not accepted.
    pub fn settle(&mut self) {
        let optimizer = &self.optimizer;
        let model = self.model.take().expect("an update puts the model back");
        self.model = Some(params::update(model, |index, Live { values, .. }| {
            if let Some(accepted) = optimizer.accepted(index) {
                *values = accepted.clone();
            }
        }));
    }

    /// The model that is trained.
    pub fn model(&self) -> &Classifier {
        self.model.as_ref().expect("an update puts the model back")
    }

    /// The model that is evaluated: without autodiff, with the averaged weights if there are any.
    pub fn evaluated(&self) -> Classifier {
        let model = self.model().clone().valid();
        let Some(average) = &self.average else { return model };
        params::update(model, |index, parameter| *parameter.values = average.values[index].clone())
    }

    /// Takes the weights of the layers before the head from a file.
    pub fn load(&mut self, path: &Path) -> Result<(), TrainError> {
        check_kind(path).map_err(RunError::io("read", path))?;
        let model = load_network(self.model().clone(), path)
            .map_err(|error| TrainError::Weights(error.to_string()))?;
        self.model = Some(model);
        self.restart();
        Ok(())
    }

    /// One update of the weights, of the running statistics, and of the average of both.
    pub fn update(&mut self, gradients: &Gradients, loss: f64, rate: f64) {
        let Gradients { values: gradients, statistics } = gradients;
        let momentum = self.model().norm_momentum();
        let mut step = self.optimizer.step(gradients, loss, rate);
        let updates = step.updates() as f64;
        let mut average = self.average.as_mut().map(|average| {
            // It starts as the weights themselves, and follows faster while it is young.
            let decay = average.decay.min((1.0 + updates) / (10.0 + updates)) as f32;
            (decay, &mut average.values)
        });
        let model = self.model.take().expect("an update puts the model back");
        self.model = Some(params::update(model, |index, parameter| {
            let Live { name, shape, values } = parameter;
            step.apply(index, Live { name, shape, values: &mut *values });
            if let (Some(momentum), true) = (momentum, params::is_statistic(name)) {
                let found = statistics.iter();
                values.change(|values| {
                    found.for_each(|found| found.update(name, values, momentum));
                });
            }
            if let Some((decay, average)) = &mut average {
                let decay = *decay;
                change_each(&mut average[index], values, |average, current| {
                    *average = decay * *average + (1.0 - decay) * current;
                });
            }
        }));
    }

    /// The tensors of a checkpoint: weights, their average, and the optimizer's averages.
    pub fn parts(&self) -> [Option<Vec<NamedTensor>>; 3] {
        let weights = self.weights();
        let average = self.average.as_ref().map(|average| {
            let pairs = weights.iter().zip(&average.values);
            pairs
                .map(|(weight, values)| NamedTensor { values: values.clone(), ..weight.clone() })
                .collect()
        });
        let optimizer = self.optimizer.tensors(&weights);
        [Some(weights), average, Some(optimizer)]
    }

    /// Continues from what [`Network::parts`] gave.
    pub fn restore(
        &mut self,
        updates: u64,
        search: Option<Search>,
        parts: [Option<Vec<NamedTensor>>; 3],
    ) {
        let [weights, average, optimizer] = parts.map(|part| {
            part.unwrap_or_default().into_iter().map(|named| named.values).collect::<Vec<_>>()
        });
        let model = self.model.take().expect("an update puts the model back");
        let device = model.device();
        let mut weights = weights.into_iter().map(|values| values.on(&device));
        self.model = Some(params::update(model, |_, parameter| {
            *parameter.values = weights.next().expect("as many values as parameters");
        }));
        if let Some(own) = &mut self.average {
            own.values = average.into_iter().map(|values| values.on(&device)).collect();
        }
        let optimizer = optimizer.into_iter().map(|values| values.on(&device));
        self.optimizer.restore(updates, search, optimizer);
    }

    /// The weights by name, shared with the model.
    pub fn weights(&self) -> Vec<NamedTensor> {
        let mut named = vec![];
        params::update(self.model().clone(), |_, Live { name, shape, values }| {
            let (name, shape) = (name.to_string(), shape.to_vec());
            named.push(NamedTensor { name, shape, values: values.clone() });
        });
        named
    }

    /// Forgets what came before these weights.
    pub fn restart(&mut self) {
        let weights = self.weights();
        self.optimizer = self.optimizer.restarted();
        for NamedTensor { name, shape, values } in &weights {
            self.optimizer.add(name, shape, values);
        }
        if let Some(average) = &mut self.average {
            average.values = weights.into_iter().map(|weight| weight.values).collect();
        }
    }
}

fn is_covariance(name: &str) -> bool {
    // Biases too: what matters is how much noise there is at the start.
    name.starts_with("output.")
        && !name.starts_with("output.head.mean.")
        && !name.ends_with("temperature_logit")
}
