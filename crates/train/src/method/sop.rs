//! Sparse over-parameterisation (Liu et al. 2022): every label has an error of its own, which is
//! learned next to the network and stays sparse because it starts almost at zero.
//!
//! With the given targets y (which sum to 1), the error of an example is U − V with U = u² y and
//! V = v² (1 − y), each at most 1; u is a number and v has one for each class. Its loss is
//! −Σ_k y_k log p_k + ‖o + U − V − y‖², where p is q + U − V, kept above 1e-4 and normalised, and o
//! is the most probable class as a constant. V is a constant in the first term. Gradient steps
//! without momentum move u and v, those of an example only in the steps that it is a part of.
//!
//! The authors' rates are for the mean over a batch of 128 examples: divided by 128 they are those
//! of this file, which do not depend on the batch. They draw the first u and v from N(0, 1e-8²);
//! since only squares count, all start at 1e-8.

use aleator_metrics::classification::argmax;
use aleator_run::recipe;

use super::example_loss::{ExampleLoss, contribution};
use super::{Method, Start, given, update_networks};
use crate::state::State;
use crate::step::{Contribution, Part};
use crate::tensors::NamedTensor;

pub(crate) struct Sop(pub recipe::Sop);

/// u and then v of each example, `[N, 1 + K]`.
const ERRORS: &str = "sop.errors";
const START: f32 = 1e-8;
const LEAST: f64 = 1e-4;

/// The error of an example, and how its loss changes by it.
#[derive(Clone, Debug)]
struct Errors {
    u: f64,
    v: Vec<f64>,
}

impl Method for Sop {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        let mut errors = NamedTensor::zeros(ERRORS, &[start.examples, 1 + start.shape.classes]);
        errors.values.change(|values| values.fill(START));
        state.memory = vec![errors];
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let kept = state.memory[0].values.read();
        let recipe::Sop { rate_u, rate_v } = self.0;
        let mut rows = vec![];
        let contribution = contribution(&state.networks[0], part, |row, log_probs| {
            let width = 1 + log_probs.len();
            let own = &kept[part.batch.examples[row] * width..][..width];
            let given = given(&part.batch.targets, row);
            if given.is_empty() || (rate_u == 0.0 && rate_v == 0.0) {
                // Errors that stay where they start are none.
                rows.extend(own);
                return plain(&given, log_probs.len());
            }
            let wide: Vec<f64> = own[1..].iter().map(|v| f64::from(*v)).collect();
            let mut errors = Errors { u: f64::from(own[0]), v: wide };
            let (loss, slope) = errors.loss(&given, log_probs);
            errors.u -= rate_u * slope.u;
            errors.v.iter_mut().zip(slope.v).for_each(|(v, slope)| *v -= rate_v * slope);
            rows.push(errors.u as f32);
            rows.extend(errors.v.into_iter().map(|v| v as f32));
            loss
        })?;
        Ok(Contribution { rows, ..contribution })
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        sum.keep_rows(&mut state.memory[0]);
        update_networks(state, &sum, rate);
    }
}

fn plain(given: &[(usize, f64)], classes: usize) -> ExampleLoss {
    let mut targets = vec![0.0; classes];
    given.iter().for_each(|(class, weight)| targets[*class] += weight);
    ExampleLoss::against(targets)
}

impl Errors {
    /// The loss of the network, and the slopes of the whole loss by u and v.
    fn loss(&self, given: &[(usize, f64)], log_probs: &[f64]) -> (ExampleLoss, Self) {
        let total: f64 = given.iter().map(|(_, weight)| weight).sum();
        let mut labels = vec![0.0; log_probs.len()];
        given.iter().for_each(|(class, weight)| labels[*class] += weight / total);
        let probs: Vec<f64> = log_probs.iter().map(|log_prob| log_prob.exp()).collect();
        let top = argmax(&log_probs.iter().map(|it| *it as f32).collect::<Vec<_>>());
        let (square_u, grows) = (self.u.powi(2).min(1.0), self.u.abs() < 1.0);
        let squares: Vec<f64> = self.v.iter().map(|v| v.powi(2)).collect();
        let added = |class: usize| {
            let (label, square) = (labels[class], squares[class]);
            (square_u * label, (square * (1.0 - label)).min(1.0))
        };
        let sums: Vec<f64> =
            (0..probs.len()).map(|it| probs[it] + added(it).0 - added(it).1).collect();
        let kept: Vec<f64> = sums.iter().map(|sum| sum.max(LEAST)).collect();
        let norm: f64 = kept.iter().sum();
        let mut slope = Self { u: 0.0, v: vec![0.0; probs.len()] };
        let (mut targets, mut value) = (vec![0.0; probs.len()], 0.0);
        for class in 0..probs.len() {
            let (label, (more, less)) = (labels[class], added(class));
            if label != 0.0 {
                value -= label * (kept[class] / norm).ln();
            }
            let error = f64::from(u8::from(class == top)) + more - less - label;
            value += error * error;
            // −∂/∂(q + U − V) of the first term; below the bound there is none.
            let pull = if sums[class] > LEAST { label / kept[class] - 1.0 / norm } else { 0.0 };
            targets[class] = total * probs[class] * pull;
            if grows {
                slope.u += total * 2.0 * self.u * label * (2.0 * error - pull);
            }
            if less < 1.0 {
                slope.v[class] = -total * 4.0 * self.v[class] * (1.0 - label) * error;
            }
        }
        (ExampleLoss::new(total * value, targets, log_probs), slope)
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_loss::checks::{assert_is, log_probs};
    use super::*;

    /// The loss of the network or of u; V in the first term is that of `held`.
    fn formula(errors: &Errors, held: &Errors, top: usize, label: usize, probs: &[f64]) -> f64 {
        let minus = |errors: &Errors, class: usize| {
            if class == label { 0.0 } else { errors.v[class].powi(2).min(1.0) }
        };
        let plus = |class: usize| if class == label { errors.u.powi(2).min(1.0) } else { 0.0 };
        let kept = |class: usize| (probs[class] + plus(class) - minus(held, class)).max(1e-4);
        let norm: f64 = (0..3).map(kept).sum();
        let square = |class: usize| {
            let one = |other: usize| f64::from(u8::from(class == other));
            (one(top) + plus(class) - minus(errors, class) - one(label)).powi(2)
        };
        -(kept(label) / norm).ln() + (0..3).map(square).sum::<f64>()
    }

    fn errors() -> [Errors; 3] {
        [
            Errors { u: 1e-8, v: vec![1e-8; 3] },
            Errors { u: 0.6, v: vec![0.2, 0.3, -0.4] },
            Errors { u: -1.2, v: vec![0.1, 1.1, 0.9] },
        ]
    }

    #[test]
    fn the_loss_and_all_slopes_are_those_of_the_formula() {
        for log_probs in log_probs() {
            let probs: Vec<f64> = log_probs.iter().map(|it| it.exp()).collect();
            let top = argmax(&log_probs.iter().map(|it| *it as f32).collect::<Vec<_>>());
            for label in 0..3 {
                for own in errors() {
                    let (found, slope) = own.loss(&[(label, 1.0)], &log_probs);
                    assert_is(&found, &log_probs, |probs| formula(&own, &own, top, label, probs));
                    const STEP: f64 = 1e-5;
                    let difference = |change: &dyn Fn(&mut Errors, f64)| {
                        let value = |by: f64| {
                            let mut moved = own.clone();
                            change(&mut moved, by);
                            formula(&moved, &own, top, label, &probs)
                        };
                        (value(STEP) - value(-STEP)) / (2.0 * STEP)
                    };
                    let near = |found: f64, expected: f64| {
                        // Truncation and rounding of the difference.
                        let close = (found - expected).abs() < 1e-7 * (1.0 + expected.abs());
                        assert!(close, "{own:?} {label}: {found} {expected}");
                    };
                    near(slope.u, difference(&|errors, by| errors.u += by));
                    for class in 0..3 {
                        near(slope.v[class], difference(&|errors, by| errors.v[class] += by));
                    }
                }
            }
        }
    }

    #[test]
    fn without_an_error_the_slope_is_that_of_the_likelihood() {
        let log_probs = &log_probs()[0];
        let (found, _) = errors()[0].loss(&[(1, 1.0)], log_probs);
        // Σ q_k ∂log q_k = 0, so targets say the same when a multiple of q is added.
        for (class, log_prob) in log_probs.iter().enumerate() {
            let target = found.targets[class] + log_prob.exp();
            // 1e-16 of U, and roundings.
            assert!((target - f64::from(u8::from(class == 1))).abs() < 1e-14, "{target}");
        }
    }
}
