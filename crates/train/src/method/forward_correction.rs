//! Forward correction (Patrini et al. 2017): the model predicts true classes, and a matrix makes
//! given ones of them.
//!
//! With T_kj the probability of the given label j when the true class is k, the loss of a label y
//! is −log Σ_k T_ky q_k. Its slope by log q_k is minus the posterior T_ky q_k / Σ_j T_jy q_j: the
//! label is shared out among the classes that it may stand for. The matrix is given, or estimated
//! once: its row k is what is predicted for an example that is almost certainly of class k.

use std::sync::Arc;

use aleator_data::{DataSet, noise};
use aleator_kernels::reference::log_sum_exp;
use aleator_run::recipe::{self, Transitions};

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, Start, Survey, given};
use crate::TrainError;
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct ForwardCorrection(pub recipe::ForwardCorrection);

/// T, `[K, K]`.
const TRANSITIONS: &str = "forward_correction.transitions";
/// The matrix is estimated from at most this many examples.
const MOST: usize = 50_000;

impl Method for ForwardCorrection {
    fn check(&self, data: &DataSet) -> Result<(), TrainError> {
        self.given(data.train.classes).map(drop)
    }

    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let classes = start.shape.classes;
        let mut matrix = NamedTensor::zeros(TRANSITIONS, &[classes, classes]);
        // Until it is known labels are true.
        matrix.values.change(|values| {
            values.iter_mut().step_by(classes + 1).for_each(|value| *value = 1.0);
        });
        state.memory = vec![matrix];
    }

    fn begin(&self, state: &mut State, survey: &Survey<'_>) -> Result<(), TrainError> {
        if let Some(given) = self.given(survey.data.train.classes)? {
            state.memory[0].values.change(|values| values.copy_from_slice(&given));
        }
        Ok(())
    }

    fn begin_epoch(
        &self,
        state: &mut State,
        epoch: usize,
        survey: &Survey<'_>,
    ) -> Result<(), TrainError> {
        let Transitions::Estimated { after, quantile } = self.0.transitions else { return Ok(()) };
        if epoch != after {
            return Ok(());
        }
        let examples = Arc::new(survey.data.train.sample(MOST));
        let mut log_probs = vec![];
        survey.log_probs(state, 0, &examples, &mut |_, rows| log_probs.extend(rows))?;
        let estimated = estimate(&log_probs, examples.classes, quantile);
        state.memory[0].values.change(|values| values.copy_from_slice(&estimated));
        Ok(())
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let matrix: Vec<f64> =
            state.memory[0].values.read().iter().map(|value| f64::from(*value).ln()).collect();
        contribution(&state.networks[0], part, |row, log_probs| {
            loss(&matrix, &given(&part.batch.targets, row), log_probs)
        })
    }
}

impl ForwardCorrection {
    /// The matrix of the recipe's file, where it names one.
    fn given(&self, classes: usize) -> Result<Option<Vec<f32>>, TrainError> {
        let Transitions::File { matrix } = &self.0.transitions else { return Ok(None) };
        let rows = noise::transition_matrix(matrix, classes)?;
        let values: Vec<f32> = rows.into_iter().flatten().map(|value| value as f32).collect();
        let column = |class: usize| values.iter().skip(class).step_by(classes).copied();
        match (0..classes).find(|class| column(*class).all(|value| value == 0.0)) {
            None => Ok(Some(values)),
            Some(class) => Err(TrainError::Recipe(format!(
                "{matrix}: no true class gives the label {class}: column {class} of \
                 forward_correction.matrix needs a probability above 0"
            ))),
        }
    }
}

/// `log_matrix` is [K, K].
fn loss(log_matrix: &[f64], given: &[(usize, f64)], log_probs: &[f64]) -> ExampleLoss {
    let classes = log_probs.len();
    let (mut targets, mut sum) = (vec![0.0; classes], 0.0);
    for (label, weight) in given {
        let joint: Vec<f64> = (0..classes)
            .map(|class| log_matrix[class * classes + label] + log_probs[class])
            .collect();
        let total = log_sum_exp(&joint);
        sum -= weight * total;
        let posterior = joint.into_iter().map(|joint| (joint - total).exp());
        targets.iter_mut().zip(posterior).for_each(|(sum, own)| *sum += weight * own);
    }
    ExampleLoss::new(sum, targets, log_probs)
}

/// Row k is what is predicted for the example at this quantile of the probabilities of class k.
fn estimate(log_probs: &[f32], classes: usize, quantile: f64) -> Vec<f32> {
    let rows: Vec<&[f32]> = log_probs.chunks_exact(classes).collect();
    let at = ((quantile * rows.len() as f64).ceil() as usize).clamp(1, rows.len()) - 1;
    let row = |class: usize| {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| rows[*a][class].total_cmp(&rows[*b][class]));
        rows[order[at]].iter().map(|log_prob| log_prob.exp())
    };
    (0..classes).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    #[test]
    fn the_loss_is_the_formula_of_the_paper() {
        let matrix = [0.7, 0.2, 0.1, 0.0, 1.0, 0.0, 0.25, 0.25, 0.5f64];
        let logs = matrix.map(f64::ln);
        for log_probs in log_probs() {
            for label in 0..3 {
                let found = loss(&logs, &[(label, 2.0)], &log_probs);
                assert_is(&found, &log_probs, |probs| {
                    let given: f64 = (0..3).map(|it| matrix[it * 3 + label] * probs[it]).sum();
                    -2.0 * given.ln()
                });
            }
        }
    }

    #[test]
    fn with_true_labels_it_is_the_likelihood_bit_for_bit() {
        let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0f64].map(f64::ln);
        for log_probs in log_probs() {
            let found = loss(&identity, &[(1, 1.0)], &log_probs);
            assert_eq!((found.beyond, found.targets), (0.0, vec![0.0, 1.0, 0.0]));
        }
    }

    #[test]
    fn the_estimate_takes_the_example_at_the_quantile() {
        let probs = [[0.9f32, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]];
        let logs: Vec<f32> = probs.concat().iter().map(|prob| prob.ln()).collect();
        let near = |quantile: f64, expected: [usize; 2]| {
            let found = estimate(&logs, 2, quantile);
            for (found, expected) in found.iter().zip(expected.map(|row| probs[row]).concat()) {
                // One rounding of ln and exp each.
                assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        };
        near(1.0, [0, 3]);
        near(0.75, [1, 2]);
        near(0.0, [3, 0]);
    }
}
