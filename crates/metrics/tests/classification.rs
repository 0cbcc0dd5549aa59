//! Accuracy, NLL, Brier score and counts, with one class per example.

use crate::support::{CLASSES, Data, Draws, EXAMPLES, TOLERANCE, assert_all_close, assert_close};
use crate::support::{complaint, logs};
use aleator_metrics::classification::*;

#[test]
fn hand_computed_answers_of_two_examples() {
    let log_probs = logs(&[0.5, 0.25, 0.25, 0.125, 0.75, 0.125]);
    let labels = [0, 2];
    assert_eq!(predictions(&log_probs, 3), [0, 1]);
    assert_eq!(top_k_accuracy(&log_probs, 3, &labels, 1), 0.5);
    // −(ln ½ + ln ⅛)/2 = 2 ln 2; f32 logarithms are within 6e-8.
    assert_close(nll(&log_probs, 3, &labels), 2.0 * 2f64.ln(), TOLERANCE);
    // ¼ + 1/16 + 1/16 and 1/64 + 9/16 + 49/64
    assert_close(brier(&log_probs, 3, &labels), (0.375 + 1.34375) / 2.0, TOLERANCE);
    let targets = [0.5, 0.5, 0.0, 0.0, 1.0, 0.0];
    let expected = (1.5 * 2f64.ln() - 0.75f64.ln()) / 2.0;
    assert_close(nll_soft(&log_probs, 3, &targets), expected, TOLERANCE);
    assert_close(brier_soft(&log_probs, 3, &targets), (0.125 + 0.09375) / 2.0, TOLERANCE);
    assert_eq!(target_labels(&targets, 3), [0, 1]);
}

/// `print([(order[:, :k] == labels[:, None]).any(1).mean() for k in (1, 2, 5)])`
#[test]
fn top_k_accuracy_equals_numpys_stable_sort() {
    let data = Data::new();
    let top = |k| top_k_accuracy(&data.log_probs, CLASSES, &data.labels, k);
    assert_close(top(1), 0.5666666666666667, f64::EPSILON);
    assert_close(top(2), 0.6, f64::EPSILON);
    assert_close(top(5), 0.8666666666666667, f64::EPSILON);
    assert_eq!((top(CLASSES), top(CLASSES + 1)), (1.0, 1.0));
}

#[test]
fn of_tied_classes_the_lower_index_comes_first() {
    let log_probs = logs(&[0.25; 4]);
    for k in 1..=4 {
        for label in 0..4 {
            let expected = if (label as usize) < k { 1.0 } else { 0.0 };
            assert_eq!(top_k_accuracy(&log_probs, 4, &[label], k), expected);
        }
    }
    assert_eq!(predictions(&log_probs, 4), [0]);
    assert_eq!(argmax(&[-0.0, 0.0]), 0);
}

/// ```python
/// print(m.log_loss(labels, probs, labels=range(K)))
/// print(-(targets * log_probs).sum(1).mean())
/// ```
#[test]
fn nll_equals_scikit_learns_log_loss() {
    let data = Data::new();
    assert_close(nll(&data.log_probs, CLASSES, &data.labels), 2.3905378240471085, TOLERANCE);
    assert_close(nll_soft(&data.log_probs, CLASSES, &data.targets), 3.6723394220847063, TOLERANCE);
}

/// ```python
/// print(m.brier_score_loss(labels, probs, labels=range(K), scale_by_half=False))
/// print(((probs - targets)**2).sum(1).mean())
/// ```
#[test]
fn brier_score_equals_scikit_learns() {
    let data = Data::new();
    assert_close(brier(&data.log_probs, CLASSES, &data.labels), 0.765654138348033, TOLERANCE);
    let soft = brier_soft(&data.log_probs, CLASSES, &data.targets);
    assert_close(soft, 0.4124277679596959, TOLERANCE);
}

#[test]
fn one_hot_targets_are_labels() {
    for seed in 0..20 {
        let data = Data::drawn(&mut Draws::new(seed), 9, 4);
        let mut one_hot = vec![0.0; 36];
        for (row, label) in data.labels.iter().enumerate() {
            one_hot[row * 4 + *label as usize] = 1.0;
        }
        assert_eq!(target_labels(&one_hot, 4), data.labels);
        let (hard, soft) =
            (nll(&data.log_probs, 4, &data.labels), nll_soft(&data.log_probs, 4, &one_hot));
        assert_eq!(hard, soft);
        // p − 1 by `exp_m1` and by subtraction differ in the last bits.
        let soft = brier_soft(&data.log_probs, 4, &one_hot);
        assert_close(brier(&data.log_probs, 4, &data.labels), soft, 1e-14);
    }
}

/// ```python
/// print(m.recall_score(labels, predictions, average=None))
/// print(m.precision_score(labels, predictions, average=None))
/// print([-log_probs[labels == k, k].mean() for k in range(K)])
/// ```
#[test]
fn recall_precision_and_nll_of_classes_equal_scikit_learns() {
    let data = Data::new();
    let predictions = predictions(&data.log_probs, CLASSES);
    let nll = example_nll(&data.log_probs, CLASSES, &data.labels);
    let tallies = per_class(&predictions, &data.labels, &nll, CLASSES);
    let all =
        |f: fn(&ClassTally) -> Option<f64>| -> Vec<f64> { tallies.iter().flat_map(f).collect() };
    let recall = [
        0.5714285714285714,
        0.7777777777777778,
        0.5384615384615384,
        0.5,
        0.6,
        0.5454545454545454,
        0.42857142857142855,
    ];
    let precision = [
        0.36363636363636365,
        0.6363636363636364,
        0.7777777777777778,
        0.4444444444444444,
        0.375,
        1.0,
        0.5,
    ];
    let class_nll = [
        2.688953676394054,
        0.8702030413680606,
        2.4955473014941583,
        2.0135008902288973,
        2.533715784549713,
        3.3806735879995604,
        2.624522271965231,
    ];
    assert_all_close(&all(ClassTally::recall), &recall, f64::EPSILON);
    assert_all_close(&all(ClassTally::precision), &precision, f64::EPSILON);
    assert_all_close(&all(ClassTally::mean_nll), &class_nll, TOLERANCE);
    assert_eq!(tallies.iter().map(|tally| tally.count).sum::<usize>(), EXAMPLES);
}

#[test]
fn a_class_without_examples_or_predictions_has_no_rates() {
    let tallies = per_class(&[1, 1], &[0, 0], &[1.0, f64::INFINITY], 3);
    let rates = |tally: &ClassTally| (tally.recall(), tally.precision(), tally.mean_nll());
    assert_eq!(rates(&tallies[0]), (Some(0.0), None, Some(f64::INFINITY)));
    assert_eq!(rates(&tallies[1]), (None, Some(0.0), None));
    assert_eq!(rates(&tallies[2]), (None, None, None));
}

/// `print(m.confusion_matrix(labels, predictions))`
#[test]
fn confusion_equals_scikit_learns() {
    let data = Data::new();
    let predictions = predictions(&data.log_probs, CLASSES);
    let confusion = Confusion::new(&predictions, &data.labels, CLASSES);
    let expected = [
        [4, 0, 0, 1, 0, 0, 2],
        [1, 7, 0, 0, 1, 0, 0],
        [4, 0, 7, 0, 1, 0, 1],
        [1, 0, 1, 4, 2, 0, 0],
        [0, 1, 0, 1, 3, 0, 0],
        [1, 1, 1, 1, 1, 6, 0],
        [0, 2, 0, 2, 0, 0, 3],
    ];
    assert_eq!(confusion.to_dense(), expected.concat());
    assert_eq!(confusion.count(2, 0), 4);
    assert_eq!(confusion.count(0, 2), 0);
    assert!(confusion.counts.values().all(|count| *count > 0));
}

#[test]
fn an_impossible_label_has_infinite_nll_and_a_certain_one_none() {
    let log_probs = [0.0, f32::NEG_INFINITY];
    assert_eq!(nll(&log_probs, 2, &[1]), f64::INFINITY);
    assert_eq!(nll_soft(&log_probs, 2, &[0.5, 0.5]), f64::INFINITY);
    assert_eq!(brier(&log_probs, 2, &[1]), 2.0);
    // 0 · −∞ is left out of the sum, and zero is 0, not −0.
    for certain in [nll(&log_probs, 2, &[0]), nll_soft(&log_probs, 2, &[1.0, 0.0])] {
        assert_eq!(certain.to_bits(), 0f64.to_bits());
    }
}

#[test]
fn brier_score_keeps_the_digits_of_a_nearly_certain_prediction() {
    // p = 1 − 1e-20 is 1 in f64; its logarithm −1e-20 is representable in f32.
    let score = brier(&[-1e-20, f32::NEG_INFINITY], 2, &[0]);
    assert!((score / 1e-40 - 1.0).abs() < 1e-6, "{score}");
}

#[test]
fn mistakes_of_the_caller_are_named() {
    let nan = complaint(|| nll(&[-1.0, f32::NAN], 2, &[0]));
    assert!(nan.contains("log_probs[1] is NaN"), "{nan}");
    let logit = complaint(|| brier(&[-1.0, 3.5], 2, &[0]));
    assert!(logit.contains("log_probs[1] is 3.5") && logit.contains("logarithm"), "{logit}");
    let label = complaint(|| nll(&[-1.0, -1.0], 2, &[2]));
    assert!(label.contains("labels[0] is 2") && label.contains("below 2"), "{label}");
    let shape = complaint(|| nll(&[-1.0, -1.0, -1.0], 2, &[0]));
    assert!(shape.contains("log_probs must be [N, K]"), "{shape}");
    let count = complaint(|| nll(&[-1.0, -1.0], 2, &[0, 1]));
    assert!(count.contains("labels has 2 values, expected 1"), "{count}");
    let empty = complaint(|| nll(&[], 2, &[]));
    assert!(empty.contains("log_probs contains no examples"), "{empty}");
    let classes = complaint(|| nll(&[], 0, &[]));
    assert!(classes.contains("classes is 0"), "{classes}");
    let target = complaint(|| nll_soft(&[-1.0, -1.0], 2, &[f32::NAN, 0.0]));
    assert!(target.contains("targets[0] is NaN"), "{target}");
    let negative = complaint(|| nll_soft(&[-1.0, -1.0], 2, &[1.0, -0.5]));
    assert!(negative.contains("targets[1] is -0.5"), "{negative}");
    let impossible = [f32::NEG_INFINITY; 2];
    let row = complaint(move || predictions(&impossible, 2));
    assert!(row.contains("log_probs of example 0 are all −∞"), "{row}");
    let k = complaint(|| top_k_accuracy(&[-1.0, -1.0], 2, &[0], 0));
    assert!(k.contains("k is 0"), "{k}");
    let prediction = complaint(|| Confusion::new(&[5], &[0], 2));
    assert!(prediction.contains("predictions[0] is 5"), "{prediction}");
    let nll = complaint(|| per_class(&[0], &[0], &[f64::NAN], 2));
    assert!(nll.contains("nll contains a NaN"), "{nll}");
}
