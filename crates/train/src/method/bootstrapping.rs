//! Bootstrapping (Reed et al. 2014): labels are mixed with what the model predicts.
//!
//! With q the predicted probabilities and y the given targets, an example's loss is
//! −Σ_k [β y_k + (1 − β) t_k] log q_k, where t is q itself ("soft") or the most probable class
//! ("hard"). Soft targets are constants, or the gradient passes through them too, as the formula
//! says.

use aleator_data::{SparseTargets, Targets};
use aleator_metrics::classification::argmax;
use aleator_run::recipe::{self, BootstrapTargets};

use super::{Method, view};
use crate::state::State;
use crate::step::{Contribution, Part};

pub(crate) struct Bootstrapping(pub recipe::Bootstrapping);

impl Method for Bootstrapping {
    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let network = &state.networks[0];
        let model = network.model();
        let forward = model.forward(part.inputs.clone());
        let log_probs = model.log_probs(&forward, &part.noise)?;
        let (mixed, correction) = self.mix(part, &log_probs.read());
        let (targets, weights) = (view(&mixed), &part.weights);
        let loss = model.loss(forward, targets, weights, &part.noise, Some(&log_probs))?;
        let mut contribution = Contribution::new(part, network, loss);
        contribution.loss += correction;
        Ok(contribution)
    }
}

impl Bootstrapping {
    /// Targets that as constants have the gradient of the loss, and the mean loss minus that
    /// against them.
    fn mix(&self, part: &Part<'_>, log_probs: &[f32]) -> (SparseTargets, f64) {
        let recipe::Bootstrapping { beta, targets, burn_in } = self.0;
        let beta = if part.batch.epoch < burn_in { 1.0 } else { beta };
        let (mut mixed, mut correction) = (SparseTargets::default(), 0.0);
        let classes = log_probs.len() / part.weights.len();
        for (example, log_probs) in log_probs.chunks_exact(classes).enumerate() {
            let mut row = vec![0.0f64; classes];
            let mut total = 0.0;
            for (class, given) in given(&part.batch.targets, example) {
                row[class as usize] = beta * f64::from(given);
                total += f64::from(given);
            }
            // An example keeps the weight that its given targets have.
            let own = (1.0 - beta) * total;
            if targets == BootstrapTargets::Hard {
                row[argmax(log_probs)] += own;
            } else {
                let through = targets == BootstrapTargets::Soft;
                let lacking = add_own(&mut row, log_probs, own, through);
                correction += f64::from(part.weights[example]) * lacking;
            }
            mixed.push((0..).zip(row.into_iter().map(|target| target as f32)));
        }
        (mixed, correction)
    }
}

/// Adds `own` · q to a row of targets. Where the gradient passes through q, the slope of
/// −q log q by log q is −q (1 + log q): its targets are `own` · q (1 + log q), and what their loss
/// lacks, `own` · Σ q log² q, comes back.
fn add_own(row: &mut [f64], log_probs: &[f32], own: f64, through: bool) -> f64 {
    let mut lacking = 0.0;
    for (target, log_prob) in row.iter_mut().zip(log_probs) {
        let log_prob = f64::from(*log_prob);
        let prob = log_prob.exp();
        match through {
            // The limit of both terms at zero, where log q is infinite, is zero.
            true if prob > 0.0 => {
                *target += own * prob * (1.0 + log_prob);
                lacking += own * prob * log_prob * log_prob;
            }
            _ => *target += own * prob,
        }
    }
    lacking
}

/// The given classes of an example with their weights.
fn given(targets: &Targets, example: usize) -> Vec<(u32, f32)> {
    match targets {
        Targets::Classes(classes) => vec![(classes[example], 1.0)],
        Targets::Sparse(rows) => rows.row(example).collect(),
    }
}
