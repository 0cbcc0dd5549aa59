//! The predictions of an ensemble: the means of its members' probabilities.

use crate::predictions::Predictions;

/// A running mean of the predictions of several models for the same examples.
///
/// Probabilities are averaged, not their logarithms. The means of the utilities are averaged in
/// units of the temperature; an average has no covariance.
///
/// ```
/// use aleator_run::{MeanPredictions, Predictions};
///
/// let member = |p: f32| Predictions {
///     classes: 2,
///     rank: 0,
///     temperature: 1.0,
///     log_probs: vec![p.ln(), (1.0 - p).ln()],
///     log_probs_off: None,
///     mean: vec![p, 0.0],
///     diag_scale: None,
///     loadings: None,
///     loading_scale: None,
///     shared_loadings: None,
///     joint_log_probs: None,
/// };
/// let mut mean = MeanPredictions::new(&member(0.9));
/// mean.add(&member(0.5));
/// assert!((mean.finish().log_probs[0].exp() - 0.7).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct MeanPredictions {
    sum: Predictions,
    count: usize,
}

impl MeanPredictions {
    /// The mean of one.
    pub fn new(member: &Predictions) -> Self {
        let sum = Predictions {
            classes: member.classes,
            rank: 0,
            temperature: 1.0,
            log_probs: member.log_probs.clone(),
            log_probs_off: member.log_probs_off.clone(),
            mean: utilities(member).collect(),
            diag_scale: None,
            loadings: None,
            loading_scale: None,
            shared_loadings: None,
            joint_log_probs: member.joint_log_probs.clone(),
        };
        Self { sum, count: 1 }
    }

    /// Adds a member.
    pub fn add(&mut self, member: &Predictions) {
        log_add(&mut self.sum.log_probs, &member.log_probs);
        for (sum, member) in [
            (&mut self.sum.log_probs_off, &member.log_probs_off),
            (&mut self.sum.joint_log_probs, &member.joint_log_probs),
        ] {
            match (&mut *sum, member) {
                (Some(sum), Some(member)) => log_add(sum, member),
                _ => *sum = None,
            }
        }
        self.sum.mean.iter_mut().zip(utilities(member)).for_each(|(sum, value)| *sum += value);
        self.count += 1;
    }

    /// The mean of all that were added.
    pub fn finish(self) -> Predictions {
        let Self { sum: mut mean, count } = self;
        let log_count = (count as f64).ln() as f32;
        mean.log_probs.iter_mut().for_each(|value| *value -= log_count);
        let others = mean.log_probs_off.iter_mut().chain(&mut mean.joint_log_probs);
        others.flatten().for_each(|value| *value -= log_count);
        mean.mean.iter_mut().for_each(|value| *value /= count as f32);
        mean
    }
}

/// The logarithms of the mean probabilities of several models, from their logarithms.
///
/// ```
/// let mean = aleator_run::log_mean(&[vec![0.9f32.ln()], vec![0.5f32.ln()]]);
/// assert!((mean[0].exp() - 0.7).abs() < 1e-6);
/// ```
///
/// # Panics
/// If there is no model.
pub fn log_mean(members: &[Vec<f32>]) -> Vec<f32> {
    let mut sum = members[0].clone();
    members[1..].iter().for_each(|member| log_add(&mut sum, member));
    let log_count = (members.len() as f64).ln() as f32;
    sum.iter_mut().for_each(|value| *value -= log_count);
    sum
}

/// μ/τ.
fn utilities(member: &Predictions) -> impl Iterator<Item = f32> + '_ {
    member.mean.iter().map(|value| value / member.temperature)
}

/// log(eᵃ + eᵇ), in place.
fn log_add(sum: &mut [f32], other: &[f32]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        let (high, low) = (sum.max(*other) as f64, sum.min(*other) as f64);
        if low > f64::NEG_INFINITY {
            *sum = (high + (low - high).exp().ln_1p()) as f32;
        } else {
            *sum = high as f32;
        }
    }
}
