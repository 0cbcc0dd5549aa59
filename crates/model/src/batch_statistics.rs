//! What the norms of a network found in a batch, and the running averages of it.

use burn::module::{ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

use crate::params::{Parameter, RUNNING_MEAN, RUNNING_VARIANCE};

/// Mean and variance of a batch, as one norm saw it.
///
/// ```
/// use aleator_model::BatchStatistics;
/// use aleator_model::params::Parameter;
///
/// let of = |name: &str, value| Parameter {
///     name: format!("network.norm.{name}"),
///     shape: vec![1],
///     values: vec![value],
/// };
/// let mut parameters = [of("running_mean", 0.0), of("running_variance", 1.0)];
/// let found = BatchStatistics {
///     name: "network.norm".to_string(),
///     mean: vec![10.0],
///     variance: vec![3.0],
/// };
/// found.update(&mut parameters, 0.5);
/// assert_eq!((parameters[0].values[0], parameters[1].values[0]), (5.0, 2.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStatistics {
    /// The norm's path in the classifier.
    pub name: String,
    /// The mean of each channel.
    pub mean: Vec<f32>,
    /// The variance of each channel, divided by one less than the number of values.
    pub variance: Vec<f32>,
}

impl BatchStatistics {
    /// running = momentum · running + (1 − momentum) · batch, for the two parameters of this norm.
    ///
    /// # Panics
    /// When the norm's running statistics are not among the parameters.
    pub fn update(&self, parameters: &mut [Parameter], momentum: f32) {
        for (ending, batch) in [(RUNNING_MEAN, &self.mean), (RUNNING_VARIANCE, &self.variance)] {
            let of_this = |name: &str| {
                name.strip_suffix(ending).and_then(|rest| rest.strip_suffix('.'))
                    == Some(self.name.as_str())
            };
            let running = parameters.iter_mut().find(|parameter| of_this(&parameter.name));
            let running = running.unwrap_or_else(|| panic!("no parameter {}.{ending}", self.name));
            assert_eq!(running.values.len(), batch.len(), "channels of {}", self.name);
            for (running, batch) in running.values.iter_mut().zip(batch) {
                *running = momentum * *running + (1.0 - momentum) * batch;
            }
        }
    }
}

/// The norms of a model by the ids of their running means, in the order of its fields.
#[derive(Default)]
pub(crate) struct NormNames {
    path: Vec<String>,
    pub found: Vec<(ParamId, String)>,
}

impl ModuleVisitor for NormNames {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some((last, path)) = self.path.split_last()
            && last == RUNNING_MEAN
        {
            self.found.push((param.id, path.join(".")));
        }
    }
}
