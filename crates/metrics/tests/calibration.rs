//! Reliability bins, ECE and temperature scaling.

use crate::support::{CLASSES, Data, Draws, EXAMPLES, TOLERANCE, assert_all_close, assert_close};
use crate::support::{complaint, logs};
use aleator_metrics::calibration::*;
use aleator_metrics::classification::{multilabel, nll, nll_soft};

const IMPOSSIBLE: f32 = f32::NEG_INFINITY;

/// ```python
/// def ece(confidence, outcome, bins):
///     at = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], confidence)
///     gap = [abs((confidence - outcome)[at == b].sum()) for b in range(bins)]
///     return sum(gap) / confidence.size
/// print(ece(probs.max(1), predictions == labels, 15))
/// print(ece(probs.max(1), targets[each, predictions], 15))
/// print(ece(on.ravel(), multi_hot.ravel(), 15))
/// ```
#[test]
fn ece_equals_numpys() {
    let data = Data::new();
    let hard = reliability(&data.log_probs, CLASSES, &data.labels, 15);
    assert_close(expected_calibration_error(&hard), 0.2101810650702496, TOLERANCE);
    let soft = reliability_soft(&data.log_probs, CLASSES, &data.targets, 15);
    assert_close(expected_calibration_error(&soft), 0.44853163639774063, TOLERANCE);
    let multi = reliability_multilabel(&data.log_on, &data.multi_hot, 15);
    assert_close(expected_calibration_error(&multi), 0.10044222701177402, TOLERANCE);
}

/// ```python
/// from sklearn.calibration import calibration_curve
/// print(*calibration_curve(predictions == labels, probs.max(1), n_bins=10))
/// print(np.bincount(np.searchsorted(np.linspace(0, 1, 11)[1:-1], probs.max(1)), minlength=10))
/// ```
#[test]
fn bins_equal_scikit_learns_calibration_curve() {
    let data = Data::new();
    let bins = reliability(&data.log_probs, CLASSES, &data.labels, 10);
    let counts: Vec<usize> = bins.iter().map(|bin| bin.count).collect();
    assert_eq!(counts, [0, 0, 1, 6, 14, 10, 8, 6, 9, 6]);
    let accuracies: Vec<f64> = bins.iter().flat_map(|bin| bin.accuracy).collect();
    let expected = [1.0, 0.5, 0.5, 0.7, 0.625, 2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0];
    assert_all_close(&accuracies, &expected, f64::EPSILON);
    let confidences: Vec<f64> = bins.iter().flat_map(|bin| bin.confidence).collect();
    let expected = [
        0.29078549601879694,
        0.3544629689320888,
        0.44428002867644906,
        0.5517634038383475,
        0.6685596767024966,
        0.7551497047297421,
        0.8459609966857641,
        0.9285980602184364,
    ];
    assert_all_close(&confidences, &expected, TOLERANCE);
    assert_eq!((bins[0].confidence, bins[0].accuracy), (None, None));
    assert_eq!((bins[3].low, bins[3].high), (0.3, 0.4));
}

#[test]
fn impossible_and_certain_predictions_are_in_the_outer_bins() {
    // p = 0, almost 1, 1, and slightly above 1 by rounding.
    let log_on = [IMPOSSIBLE, -1e-30, 0.0, 1e-7];
    let bins = reliability_multilabel(&log_on, &[false, true, true, true], 4);
    let counts: Vec<usize> = bins.iter().map(|bin| bin.count).collect();
    assert_eq!(counts, [1, 0, 0, 3]);
    assert_eq!(expected_calibration_error(&bins[..1]), 0.0);
    // With a single bin it is the distance between the means.
    let all = reliability_multilabel(&log_on, &[true; 4], 1);
    assert_close(expected_calibration_error(&all), 0.25, TOLERANCE);
}

#[test]
fn a_model_that_predicts_the_soft_targets_is_calibrated() {
    let targets = [0.75, 0.25, 0.5, 0.5, 0.125, 0.875];
    let bins = reliability_soft(&logs(&targets), 2, &targets, 15);
    assert_close(expected_calibration_error(&bins), 0.0, TOLERANCE);
}

#[test]
fn every_prediction_is_in_its_bin() {
    for seed in 0..20 {
        let mut draws = Draws::new(seed);
        let data = Data::drawn(&mut draws, 30, 3);
        for count in 1..20 {
            let bins = reliability(&data.log_probs, 3, &data.labels, count);
            assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 30);
            for bin in bins.iter().filter(|bin| bin.count > 0) {
                let mean = bin.confidence.unwrap();
                assert!(bin.low < mean && mean <= bin.high + 1e-15, "{bin:?}");
            }
        }
    }
}

/// ```python
/// from scipy.optimize import brentq
/// def temperature(slope):
///     return 1 / brentq(slope, 1e-3, 1e3, xtol=1e-15, rtol=1e-14)
/// z, l = log_probs, log_on - log_off
/// print(temperature(lambda b: (softmax(b * z, 1) * z).sum() - z[each, labels].sum()))
/// share = targets.sum(1, keepdims=True)
/// print(temperature(lambda b: ((share * softmax(b * z, 1) - targets) * z).sum()))
/// print(temperature(lambda b: ((expit(b * l) - multi_hot) * l).sum()))
/// ```
#[test]
fn fitted_temperatures_equal_scipys() {
    let data = Data::new();
    let hard = fit_temperature(&data.log_probs, CLASSES, &data.labels);
    assert_close(hard, 3.421991321444443, TOLERANCE);
    let soft = fit_temperature_soft(&data.log_probs, CLASSES, &data.targets);
    // A slope this flat multiplies the inputs' rounding by the temperature.
    assert_close(soft, 54.111798326467415, 54.0 * TOLERANCE);
    let multi = fit_temperature_multilabel(&data.log_on, &data.log_off, &data.multi_hot);
    assert_close(multi, 1.5460609005946042, TOLERANCE);
}

#[test]
fn no_other_temperature_has_a_lower_nll() {
    for seed in 0..30 {
        let Data { log_probs, labels, targets, log_on, log_off, multi_hot } =
            Data::drawn(&mut Draws::new(seed), 25, 4);
        let hard = |t: f64| nll(&scale_log_probs(&log_probs, 4, t), 4, &labels);
        let soft = |t: f64| nll_soft(&scale_log_probs(&log_probs, 4, t), 4, &targets);
        let multi = |t: f64| {
            let (on, off) = scale_multilabel(&log_on, &log_off, t);
            multilabel::nll(&on, &off, 4, &multi_hot)
        };
        let best = fit_temperature(&log_probs, 4, &labels);
        let best_soft = fit_temperature_soft(&log_probs, 4, &targets);
        let best_multi = fit_temperature_multilabel(&log_on, &log_off, &multi_hot);
        for factor in [0.5, 0.9, 0.99, 1.01, 1.1, 2.0] {
            let other = |t: f64| (t * factor).clamp(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE);
            // The scaled logarithms are f32: 6e-8 of an NLL of a few units.
            assert!(hard(best) <= hard(other(best)) + 3e-7, "seed {seed}, factor {factor}");
            assert!(soft(best_soft) <= soft(other(best_soft)) + 3e-7, "seed {seed}");
            assert!(multi(best_multi) <= multi(other(best_multi)) + 3e-7, "seed {seed}");
        }
    }
}

#[test]
fn scaling_by_a_power_moves_the_fitted_temperature_by_it() {
    let data = Data::new();
    let fitted = fit_temperature(&data.log_probs, CLASSES, &data.labels);
    for factor in [0.05, 0.5, 2.0, 20.0] {
        let scaled = scale_log_probs(&data.log_probs, CLASSES, factor);
        let refitted = fit_temperature(&scaled, CLASSES, &data.labels);
        // The scaled logarithms have been rounded to f32 once more.
        assert!((refitted * factor / fitted - 1.0).abs() < 1e-5, "{factor}: {refitted}");
    }
}

#[test]
fn the_fitted_temperature_of_a_repeated_answer_is_in_closed_form() {
    // σ(l/T) = share that is right, so T = l / logit(share).
    let expected = (0.9f64 / 0.1).ln() / (0.6f64 / 0.4).ln();
    let log_probs = logs(&[0.9, 0.1]).repeat(5);
    let found = fit_temperature(&log_probs, 2, &[0, 0, 0, 1, 1]);
    assert_close(found, expected, 3.0 * TOLERANCE);
    let (on, off) = (logs(&[0.9; 5]), logs(&[0.1; 5]));
    let found = fit_temperature_multilabel(&on, &off, &[true, false, true, false, true]);
    assert_close(found, expected, 3.0 * TOLERANCE);
}

#[test]
fn a_fit_without_a_minimum_ends_at_a_limit_of_the_range() {
    let log_probs = logs(&[0.9, 0.1, 0.2, 0.8]);
    assert_eq!(fit_temperature(&log_probs, 2, &[0, 1]), LOWEST_TEMPERATURE);
    assert_eq!(fit_temperature(&log_probs, 2, &[1, 0]), HIGHEST_TEMPERATURE);
    let (on, off) = (logs(&[0.9]), logs(&[0.1]));
    assert_eq!(fit_temperature_multilabel(&on, &off, &[true]), LOWEST_TEMPERATURE);
    assert_eq!(fit_temperature_multilabel(&on, &off, &[false]), HIGHEST_TEMPERATURE);
}

#[test]
fn the_temperature_is_one_if_all_are_equally_good() {
    assert_eq!(fit_temperature(&logs(&[0.25; 8]), 4, &[0, 3]), 1.0);
    assert_eq!(fit_temperature(&[0.0, IMPOSSIBLE], 2, &[0]), 1.0);
    assert_eq!(fit_temperature_multilabel(&[0.0], &[IMPOSSIBLE], &[true]), 1.0);
}

#[test]
fn impossible_classes_and_labels_do_not_move_the_temperature() {
    let labels = [0, 0, 0, 1, 1];
    let expected = fit_temperature(&logs(&[0.9, 0.1]).repeat(5), 2, &labels);
    let with_impossible = logs(&[0.9, 0.1, 0.0]).repeat(5);
    assert_eq!(fit_temperature(&with_impossible, 3, &labels), expected);
    let with_infinite_nll = logs(&[0.9, 0.1, 0.0]).repeat(6);
    let labels = [0, 0, 0, 1, 1, 2];
    assert_eq!(fit_temperature(&with_infinite_nll, 3, &labels), expected);
    let mut targets = vec![0.0; 18];
    for (row, label) in labels.iter().enumerate() {
        targets[3 * row + *label as usize] = 1.0;
    }
    assert_eq!(fit_temperature_soft(&with_infinite_nll, 3, &targets), expected);
}

#[test]
fn logarithms_at_the_end_of_f32_stay_numbers() {
    let log_probs = [0.0, f32::MIN, -1.0, -0.5, -0.5, -1.0];
    for labels in [[0, 0, 0], [1, 0, 1], [1, 1, 1]] {
        let temperature = fit_temperature(&log_probs, 2, &labels);
        assert!((LOWEST_TEMPERATURE..=HIGHEST_TEMPERATURE).contains(&temperature));
    }
    for temperature in [1e-3, 1.0, 1e3] {
        let scaled = scale_log_probs(&[0.0, f32::MIN, IMPOSSIBLE], 3, temperature);
        assert_eq!((scaled[0], scaled[2]), (0.0, IMPOSSIBLE));
        assert!(scaled[1].is_finite() && scaled[1] < -1e34);
        let (on, off) = scale_multilabel(&[f32::MIN, IMPOSSIBLE], &[0.0; 2], temperature);
        assert!(on[0].is_finite() && on[0] < -1e34);
        assert_eq!((on[1], off[0], off[1]), (IMPOSSIBLE, 0.0, 0.0));
    }
}

#[test]
fn scaled_probabilities_sum_to_one_and_keep_their_order() {
    let data = Data::new();
    for temperature in [0.1, 1.0, 7.0] {
        let scaled = scale_log_probs(&data.log_probs, CLASSES, temperature);
        for (after, before) in scaled.chunks(CLASSES).zip(data.log_probs.chunks(CLASSES)) {
            let total: f64 = after.iter().map(|log_p| (*log_p as f64).exp()).sum();
            assert_close(total, 1.0, 1e-6);
            for (a, b) in after.windows(2).zip(before.windows(2)) {
                assert_eq!(a[0].total_cmp(&a[1]), b[0].total_cmp(&b[1]));
            }
        }
        let (on, off) = scale_multilabel(&data.log_on, &data.log_off, temperature);
        for (on, off) in on.iter().zip(&off) {
            assert_close((*on as f64).exp() + (*off as f64).exp(), 1.0, 1e-6);
        }
    }
    let same = scale_log_probs(&data.log_probs, CLASSES, 1.0);
    assert_eq!(same.len(), EXAMPLES * CLASSES);
    for (after, before) in same.iter().zip(&data.log_probs) {
        assert_close(*after as f64, *before as f64, 2.0 * TOLERANCE);
    }
}

#[test]
fn mistakes_of_the_caller_are_named() {
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = complaint(move || scale_log_probs(&[-0.7, -0.7], 2, temperature));
        assert!(message.contains(&format!("temperature is {temperature}")), "{message}");
        let message = complaint(move || scale_multilabel(&[-0.7], &[-0.7], temperature));
        assert!(message.contains("finite number above 0"), "{message}");
    }
    let bins = complaint(|| reliability(&[-0.7, -0.7], 2, &[0], 0));
    assert!(bins.contains("bins is 0"), "{bins}");
    let empty = complaint(|| expected_calibration_error(&[]));
    assert!(empty.contains("bins contain no predictions"), "{empty}");
    let nan = complaint(|| fit_temperature(&[f32::NAN, -0.7], 2, &[0]));
    assert!(nan.contains("log_probs[0] is NaN"), "{nan}");
    let nan = complaint(|| fit_temperature_multilabel(&[-0.7], &[f32::NAN], &[true]));
    assert!(nan.contains("log_off[0] is NaN"), "{nan}");
    let nan = complaint(|| reliability_multilabel(&[f32::NAN], &[true], 15));
    assert!(nan.contains("log_on[0] is NaN"), "{nan}");
}
