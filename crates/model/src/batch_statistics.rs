//! Batch statistics of the norms of a network, and their running averages.

use crate::params::{RUNNING_MEAN, RUNNING_VARIANCE};

/// Mean and variance of a batch, as one norm saw it.
///
/// ```
/// use aleator_model::BatchStatistics;
///
/// let found = BatchStatistics {
///     name: "network.norm".to_string(),
///     mean: vec![10.0],
///     variance: vec![3.0],
/// };
/// let mut running_mean = [0.0];
/// found.update("network.norm.running_mean", &mut running_mean, 0.5);
/// found.update("network.other.running_mean", &mut running_mean, 0.5); // of another norm
/// assert_eq!(running_mean, [5.0]);
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
    /// running = momentum · running + (1 − momentum) · batch, where the parameter of this name is a
    /// running statistic of this norm.
    ///
    /// # Panics
    /// When the norm has another number of channels.
    pub fn update(&self, name: &str, running: &mut [f32], momentum: f32) {
        let Some((norm, statistic)) = name.rsplit_once('.') else { return };
        let batch = match statistic {
            RUNNING_MEAN => &self.mean,
            RUNNING_VARIANCE => &self.variance,
            _ => return,
        };
        if norm != self.name {
            return;
        }
        assert_eq!(running.len(), batch.len(), "channels of {norm}");
        for (running, batch) in running.iter_mut().zip(batch) {
            *running = momentum * *running + (1.0 - momentum) * batch;
        }
    }
}
