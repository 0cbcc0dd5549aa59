//! NLL, Brier score and average precision of multilabel classes.

use crate::support::{
    CLASSES, Data, Draws, TOLERANCE, assert_all_close, assert_close, complaint, logs,
};
use aleator_metrics::classification::multilabel::*;

#[test]
fn hand_computed_answers_of_two_examples() {
    let log_on = logs(&[0.5, 0.75, 0.25, 0.125]);
    let log_off = logs(&[0.5, 0.25, 0.75, 0.875]);
    let multi_hot = [true, true, false, false];
    let expected = -(0.5f64.ln() + 0.75f64.ln() + 0.75f64.ln() + 0.875f64.ln()) / 2.0;
    assert_close(nll(&log_on, &log_off, 2, &multi_hot), expected, TOLERANCE);
    let expected = (0.25 + 0.0625 + 0.0625 + 0.015625) / 2.0;
    assert_close(brier(&log_on, &log_off, 2, &multi_hot), expected, TOLERANCE);
    // An example without positive classes counts as an error.
    assert_eq!(top1_accuracy(&log_on, 2, &multi_hot), 0.5);
    assert_eq!(class_counts(&multi_hot, 2), [1, 1]);
}

/// ```python
/// print(-np.where(multi_hot, log_on, log_off).sum(1).mean())
/// print(sum(m.brier_score_loss(multi_hot[:, k], on[:, k]) for k in range(K)))
/// ```
#[test]
fn nll_and_brier_score_equal_scikit_learns() {
    let Data { log_on, log_off, multi_hot, .. } = Data::new();
    let found = nll(&log_on, &log_off, CLASSES, &multi_hot);
    assert_close(found, 3.6536636730035146, TOLERANCE);
    let found = brier(&log_on, &log_off, CLASSES, &multi_hot);
    assert_close(found, 1.1990090724290012, TOLERANCE);
}

/// ```python
/// for average in ("micro", "macro", None):
///     print(m.average_precision_score(multi_hot, log_on, average=average))
/// ```
#[test]
fn average_precisions_equal_scikit_learns() {
    let Data { log_on, multi_hot, .. } = Data::new();
    let global = global_average_precision(&log_on, &multi_hot);
    assert_close(global.unwrap(), 0.8387136935978564, 1e-14);
    let mean = mean_average_precision(&log_on, CLASSES, &multi_hot);
    assert_close(mean.unwrap(), 0.849125200320073, 1e-14);
    let of_classes = class_average_precision(&log_on, CLASSES, &multi_hot);
    let of_classes: Vec<f64> = of_classes.into_iter().flatten().collect();
    let expected = [
        0.8314852510244245,
        0.9032363109214352,
        0.8443874329902789,
        0.7862334339254162,
        0.8917727938437067,
        0.8092754122987054,
        0.8774857672365446,
    ];
    assert_all_close(&of_classes, &expected, 1e-14);
}

#[test]
fn classes_that_are_never_on_have_no_average_precision() {
    let log_on = logs(&[0.5, 0.75, 0.25, 0.125]);
    let one = [false, true, false, false];
    assert_eq!(class_average_precision(&log_on, 2, &one), [None, Some(1.0)]);
    assert_eq!(mean_average_precision(&log_on, 2, &one), Some(1.0));
    assert_eq!(mean_average_precision(&log_on, 2, &[false; 4]), None);
    assert_eq!(global_average_precision(&log_on, &[false; 4]), None);
}

#[test]
fn global_average_precision_compares_classes_and_the_mean_does_not() {
    // Each class ranks its own examples correctly; the second is less confident throughout.
    let log_on = logs(&[0.9, 0.3, 0.8, 0.2]);
    let multi_hot = [true, true, false, false];
    assert_eq!(mean_average_precision(&log_on, 2, &multi_hot), Some(1.0));
    let global = global_average_precision(&log_on, &multi_hot).unwrap();
    assert_close(global, 0.5 + 0.5 * 2.0 / 3.0, 1e-15);
}

/// `print(-np.where(multi_hot, log_on, log_off).mean(0), multi_hot.sum(0))`
#[test]
fn nll_and_counts_of_classes_equal_numpys() {
    let Data { log_on, log_off, multi_hot, .. } = Data::new();
    let expected = [
        0.571927424830695,
        0.4259515143930912,
        0.5391621579105655,
        0.6321626214310527,
        0.4438306625932455,
        0.5331941338876883,
        0.5074351579571764,
    ];
    assert_all_close(&class_nll(&log_on, &log_off, CLASSES, &multi_hot), &expected, TOLERANCE);
    assert_eq!(class_counts(&multi_hot, CLASSES), [28, 33, 27, 30, 29, 27, 37]);
}

#[test]
fn the_nll_of_classes_and_of_examples_add_up() {
    for seed in 0..20 {
        let Data { log_on, log_off, multi_hot, .. } = Data::drawn(&mut Draws::new(seed), 11, 5);
        let total = nll(&log_on, &log_off, 5, &multi_hot);
        let of_classes = class_nll(&log_on, &log_off, 5, &multi_hot);
        // The same terms in another order: a few units in the last place.
        assert_close(of_classes.iter().sum(), total, 1e-14);
        let of_examples = example_nll(&log_on, &log_off, 5, &multi_hot);
        assert_close(of_examples.iter().sum::<f64>() / 11.0, total, 1e-14);
    }
}

#[test]
fn certainty_costs_nothing_or_everything() {
    let (log_on, log_off) = ([0.0], [f32::NEG_INFINITY]);
    let right = nll(&log_on, &log_off, 1, &[true]);
    assert_eq!(right.to_bits(), 0f64.to_bits());
    assert_eq!(brier(&log_on, &log_off, 1, &[true]), 0.0);
    assert_eq!(nll(&log_on, &log_off, 1, &[false]), f64::INFINITY);
    assert_eq!(brier(&log_on, &log_off, 1, &[false]), 1.0);
}

#[test]
fn mistakes_of_the_caller_are_named() {
    let nan = complaint(|| global_average_precision(&[f32::NAN], &[true]));
    assert!(nan.contains("log_on[0] is NaN"), "{nan}");
    let off = complaint(|| nll(&[-1.0], &[f32::NAN], 1, &[true]));
    assert!(off.contains("log_off[0] is NaN"), "{off}");
    let shape = complaint(|| nll(&[-1.0], &[-1.0, -1.0], 1, &[true]));
    assert!(shape.contains("log_off has 2 values, expected 1"), "{shape}");
    let hot = complaint(|| nll(&[-1.0], &[-1.0], 1, &[true, false]));
    assert!(hot.contains("multi_hot has 2 values, expected 1"), "{hot}");
    let none = f32::NEG_INFINITY;
    let both = complaint(move || brier(&[none], &[none], 1, &[true]));
    assert!(both.contains("log_on[0] and log_off[0] are both −∞"), "{both}");
}
