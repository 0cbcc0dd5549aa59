//! Probabilities made comparable between the classes.
//!
//! A model that learned from labels with noise has the noise in its probabilities: for a clear
//! example of class k it gives p_k ≈ P(label k | true k), which differs from class to class. The
//! mean μ of a noise model is free of it; probabilities of other models are not. So they are
//! divided by t_k, the mean of p_k over the examples that are labelled k and predicted as k. Then a
//! clear example of any class has the same evidence.
//!
//! Only examples whose label and prediction agree are averaged. The mean over all examples that are
//! labelled k would be close to zero for a rare class that the model never predicts, and dividing
//! by it would make every example look like that class.

use aleator_metrics::classification::argmax;

/// Divides probabilities by the self-confidence of their classes and lets each row sum to one
/// again. `labels` are those of each row. Returns t, `[K]`.
pub(super) fn divide(log_probs: &mut [f32], classes: usize, labels: &[&[u32]]) -> Vec<f64> {
    let confidence = measure(log_probs, classes, labels);
    divide_by(log_probs, &confidence);
    confidence
}

/// t, `[K]`.
fn measure(log_probs: &[f32], classes: usize, labels: &[&[u32]]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0_usize); classes];
    for (row, labels) in log_probs.chunks_exact(classes).zip(labels) {
        let predicted = argmax(row);
        for _ in labels.iter().filter(|label| **label as usize == predicted) {
            let (sum, count) = &mut sums[predicted];
            *sum += f64::from(row[predicted]).exp();
            *count += 1;
        }
    }
    let means: Vec<Option<f64>> =
        sums.iter().map(|(sum, count)| (*count > 0).then(|| sum / *count as f64)).collect();
    let known: Vec<f64> = means.iter().flatten().copied().collect();
    // A class that is never predicted where it is the label is treated as the others on average.
    let rest = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    means.into_iter().map(|mean| mean.unwrap_or(rest)).collect()
}

/// Divides by a t that was measured before.
pub(super) fn divide_by(log_probs: &mut [f32], confidence: &[f64]) {
    for row in log_probs.chunks_exact_mut(confidence.len()) {
        let divided: Vec<f64> =
            row.iter().zip(confidence).map(|(p, t)| f64::from(*p) - t.ln()).collect();
        let most = divided.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = divided.iter().map(|value| (value - most).exp()).sum();
        let log_sum = most + sum.ln();
        row.iter_mut().zip(&divided).for_each(|(p, value)| *p = (value - log_sum) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(rows: &[[f32; 3]]) -> Vec<f32> {
        rows.iter().flatten().map(|p| p.ln()).collect()
    }

    #[test]
    fn clear_examples_of_all_classes_become_alike() {
        // Class 0 reaches 0.6 where it is clear, class 1 reaches 0.9; class 2 is never predicted.
        let mut log_probs = logs(&[[0.6, 0.3, 0.1], [0.08, 0.9, 0.02], [0.5, 0.45, 0.05]]);
        let confidence = divide(&mut log_probs, 3, &[&[0], &[1], &[2]]);
        let expected = [0.6, 0.9, 0.75];
        for (found, expected) in confidence.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{confidence:?}");
        }
        let row: Vec<f32> = log_probs[..3].iter().map(|value| value.exp()).collect();
        let weights = [0.6 / 0.6, 0.3 / 0.9, 0.1 / 0.75];
        for (found, weight) in row.iter().zip(weights) {
            assert!((found - weight / weights.iter().sum::<f32>()).abs() < 1e-6, "{row:?}");
        }
    }

    #[test]
    fn a_class_that_is_never_predicted_does_not_take_over() {
        // Labels say class 2 once, the model never: its share must stay small.
        let mut log_probs = logs(&[[0.9, 0.09, 0.01], [0.09, 0.9, 0.01], [0.9, 0.09, 0.01]]);
        divide(&mut log_probs, 3, &[&[0], &[1], &[2]]);
        assert!(log_probs[2].exp() < 0.02 && log_probs[8].exp() < 0.02, "{log_probs:?}");
    }

    #[test]
    fn impossible_classes_stay_impossible() {
        let mut log_probs = logs(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        let confidence = divide(&mut log_probs, 3, &[&[1], &[0]]);
        assert_eq!(confidence, [1.0; 3]);
        assert_eq!(log_probs, logs(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]));
    }
}
