//! Predictions as probabilities.

use rayon::prelude::*;

use super::{BLOCK, class_means};

/// log softmax(a ŷ + b), with a and b of the largest likelihood of the targets.
///
/// b by iterative scaling, a by Newton's steps; both raise the likelihood, which is concave.
pub(super) fn calibrated(predicted: &[f32], targets: &[f32], classes: usize) -> Vec<f32> {
    const ROUNDS: usize = 30;
    let examples = (targets.len() / classes) as f64;
    // Half an example more for each class, so that a class without a label stays possible.
    let wanted: Vec<f64> =
        class_means(targets, classes).iter().map(|mean| mean * examples + 0.5).collect();
    let (mut scale, mut shift) = (5.0f64, vec![0.0f64; classes]);
    for _ in 0..ROUNDS {
        let sums = predicted
            .par_chunks(BLOCK * classes)
            .zip(targets.par_chunks(BLOCK * classes))
            .map(|(predicted, targets)| Sums::of(predicted, targets, scale, &shift))
            .collect::<Vec<Sums>>();
        let mut total = Sums::new(classes);
        sums.iter().for_each(|sums| total.add(sums));
        let step = total.slope / total.curvature.max(f64::MIN_POSITIVE);
        // The first steps may leave the range in which the second order is right.
        scale = (scale + step).clamp(0.5 * scale, 2.0 * scale);
        for ((shift, wanted), found) in shift.iter_mut().zip(&wanted).zip(&total.probs) {
            *shift += (wanted / (found + 0.5)).ln();
        }
    }
    let rows = predicted.par_chunks(classes);
    rows.flat_map_iter(|row| {
        let logs = log_softmax(row, scale, &shift);
        logs.into_iter().map(|value| value as f32)
    })
    .collect()
}

fn log_softmax(row: &[f32], scale: f64, shift: &[f64]) -> Vec<f64> {
    let utilities: Vec<f64> =
        row.iter().zip(shift).map(|(value, shift)| scale * f64::from(*value) + shift).collect();
    let most = utilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = utilities.iter().map(|value| (value - most).exp()).sum();
    let log_sum = most + sum.ln();
    utilities.iter().map(|value| value - log_sum).collect()
}

/// What one pass over some examples adds up.
struct Sums {
    /// Σ p of each class.
    probs: Vec<f64>,
    /// First and (negative) second derivative of the log-likelihood by a.
    slope: f64,
    curvature: f64,
}

impl Sums {
    fn new(classes: usize) -> Self {
        Self { probs: vec![0.0; classes], slope: 0.0, curvature: 0.0 }
    }

    fn of(predicted: &[f32], targets: &[f32], scale: f64, shift: &[f64]) -> Self {
        let classes = shift.len();
        let mut sums = Self::new(classes);
        for (row, target) in predicted.chunks_exact(classes).zip(targets.chunks_exact(classes)) {
            let (mut mean, mut square) = (0.0, 0.0);
            let probs = log_softmax(row, scale, shift).into_iter().map(f64::exp);
            for (at, prob) in probs.enumerate() {
                let value = f64::from(row[at]);
                sums.probs[at] += prob;
                sums.slope += value * (f64::from(target[at]) - prob);
                (mean, square) = (mean + prob * value, square + prob * value * value);
            }
            sums.curvature += square - mean * mean;
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.probs.iter_mut().zip(&other.probs).for_each(|(sum, value)| *sum += value);
        self.slope += other.slope;
        self.curvature += other.curvature;
    }
}
