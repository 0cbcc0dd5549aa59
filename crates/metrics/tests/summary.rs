//! The record of scores, in memory and as JSON.

use crate::support::{CLASSES, Data, EXAMPLES, TOLERANCE, assert_close, complaint, logs};
use aleator_metrics::Summary;
use serde_json::Value;

fn json(summary: &Summary) -> Value {
    serde_json::to_value(summary).unwrap()
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[track_caller]
fn assert_round_trip(summary: &Summary) {
    let text = serde_json::to_string(summary).unwrap();
    assert!(!has_null(&serde_json::from_str(&text).unwrap()), "{text}");
    assert_eq!(&serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

/// The numbers are those of `classification.rs` and `calibration.rs`.
#[test]
fn single_labels() {
    let data = Data::new();
    let summary = Summary::single_label(&data.log_probs, CLASSES, &data.labels, 15);
    assert_eq!(summary.examples, EXAMPLES);
    assert_close(summary.top1, 0.5666666666666667, f64::EPSILON);
    assert_close(summary.top5.unwrap(), 0.8666666666666667, f64::EPSILON);
    assert_close(summary.nll, 2.3905378240471085, TOLERANCE);
    assert_close(summary.brier, 0.765654138348033, TOLERANCE);
    assert_close(summary.ece, 0.2101810650702496, TOLERANCE);
    assert_eq!((summary.gap, summary.mean_ap), (None, None));
    assert_eq!(summary.reliability.len(), 15);
    let class = &summary.per_class[2];
    assert_eq!((class.class, class.count, class.ap), (2, 13, None));
    assert_close(class.top1.unwrap(), 0.5384615384615384, f64::EPSILON);
    assert_close(class.precision.unwrap(), 0.7777777777777778, f64::EPSILON);
    assert_close(class.nll.unwrap(), 2.4955473014941583, TOLERANCE);
    assert_round_trip(&summary);
}

/// ```python
/// print((predictions == targets.argmax(1)).mean())
/// print([(targets.argmax(1) == k).sum() for k in range(K)])
/// ```
#[test]
fn soft_targets() {
    let data = Data::new();
    let summary = Summary::soft(&data.log_probs, CLASSES, &data.targets, 15);
    assert_close(summary.top1, 0.31666666666666665, f64::EPSILON);
    assert_close(summary.nll, 3.6723394220847063, TOLERANCE);
    assert_close(summary.brier, 0.4124277679596959, TOLERANCE);
    assert_close(summary.ece, 0.44853163639774063, TOLERANCE);
    let counts: Vec<usize> = summary.per_class.iter().map(|class| class.count).collect();
    assert_eq!(counts, [18, 13, 7, 6, 7, 7, 2]);
    let total = |class: &aleator_metrics::ClassSummary| class.count as f64 * class.nll.unwrap();
    let sum: f64 = summary.per_class.iter().map(total).sum();
    assert_close(sum / EXAMPLES as f64, summary.nll, 1e-14);
    assert_round_trip(&summary);
}

/// `print(multi_hot[each, log_on.argmax(1)].mean(), multi_hot[:, 3].sum())`;
/// the other numbers are those of `multilabel.rs` and `calibration.rs`.
#[test]
fn classes_on_and_off() {
    let Data { log_on, log_off, multi_hot, .. } = Data::new();
    let summary = Summary::multilabel(&log_on, &log_off, CLASSES, &multi_hot, 15);
    assert_eq!((summary.examples, summary.top5), (EXAMPLES, None));
    assert_close(summary.top1, 0.95, f64::EPSILON);
    assert_close(summary.nll, 3.6536636730035146, TOLERANCE);
    assert_close(summary.brier, 1.1990090724290012, TOLERANCE);
    assert_close(summary.ece, 0.10044222701177402, TOLERANCE);
    assert_close(summary.gap.unwrap(), 0.8387136935978564, 1e-14);
    assert_close(summary.mean_ap.unwrap(), 0.849125200320073, 1e-14);
    let class = &summary.per_class[3];
    assert_eq!((class.count, class.top1, class.precision), (30, None, None));
    assert_close(class.ap.unwrap(), 0.7862334339254162, 1e-14);
    let sum: f64 = summary.per_class.iter().flat_map(|class| class.nll).sum();
    assert_close(sum, summary.nll, 1e-14);
    assert_eq!(summary.reliability.iter().map(|bin| bin.count).sum::<usize>(), EXAMPLES * CLASSES);
    assert_round_trip(&summary);
}

#[test]
fn top5_needs_more_than_five_classes() {
    assert_eq!(Summary::single_label(&logs(&[0.2; 5]), 5, &[4], 15).top5, None);
    assert_eq!(Summary::single_label(&logs(&[0.125; 6]), 6, &[5], 15).top5, Some(0.0));
}

#[test]
fn unknown_scores_are_not_written() {
    let summary = Summary::single_label(&logs(&[0.75, 0.125, 0.125]), 3, &[0], 4);
    let json = json(&summary);
    assert!(!has_null(&json), "{json}");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let top: Vec<String> = keys(&json);
    assert!(!top.contains(&"top5".into()) && !top.contains(&"gap".into()), "{top:?}");
    assert_eq!(keys(&json["per_class"][1]), ["class", "count"]);
    assert_eq!(keys(&json["reliability"][0]), ["count", "high", "low"]);
    assert_round_trip(&summary);

    let (log_on, log_off) = (logs(&[0.25, 0.5]), logs(&[0.75, 0.5]));
    let nothing_on = Summary::multilabel(&log_on, &log_off, 2, &[false; 2], 4);
    assert_eq!((nothing_on.gap, nothing_on.mean_ap, nothing_on.top1), (None, None, 0.0));
    assert_round_trip(&nothing_on);
}

#[test]
fn an_infinite_nll_survives_the_file() {
    let impossible = f32::NEG_INFINITY;
    let summary = Summary::single_label(&[0.0, impossible, 0.0, impossible], 2, &[0, 1], 15);
    assert_eq!(summary.nll, f64::INFINITY);
    assert_eq!(summary.per_class[0].nll, Some(0.0));
    assert_eq!(summary.per_class[1].nll, Some(f64::INFINITY));
    let json = json(&summary);
    assert_eq!(json["nll"], "Infinity");
    assert_eq!(json["per_class"][1]["nll"], "Infinity");
    assert_round_trip(&summary);
    let multi = Summary::multilabel(&[0.0, -0.5], &[impossible, -0.9], 2, &[false, true], 15);
    assert_eq!(multi.nll, f64::INFINITY);
    assert_round_trip(&multi);
}

#[test]
fn a_string_other_than_infinity_is_rejected() {
    let summary = Summary::single_label(&logs(&[0.5, 0.5]), 2, &[0], 2);
    for bad in [Value::from("many"), Value::Null, Value::from(true)] {
        let mut json = json(&summary);
        json["nll"] = bad;
        let error = serde_json::from_value::<Summary>(json).unwrap_err().to_string();
        assert!(error.contains("a number or \"Infinity\""), "{error}");
    }
    let mut json = json(&summary);
    json["nll"] = Value::from(2);
    assert_eq!(serde_json::from_value::<Summary>(json).unwrap().nll, 2.0);
}

#[test]
fn a_nan_nll_is_rejected_and_not_written() {
    let mut summary = Summary::single_label(&logs(&[0.5, 0.5]), 2, &[0], 2);
    summary.nll = f64::NAN;
    let error = serde_json::to_string(&summary).unwrap_err().to_string();
    assert!(error.contains("nll is NaN"), "{error}");
}

#[test]
fn mistakes_of_the_caller_are_named() {
    let nan = complaint(|| Summary::single_label(&[f32::NAN, -0.7], 2, &[0], 15));
    assert!(nan.contains("log_probs[0] is NaN"), "{nan}");
    let nan = complaint(|| Summary::soft(&[-0.7, -0.7], 2, &[f32::NAN, 1.0], 15));
    assert!(nan.contains("targets[0] is NaN"), "{nan}");
    let nan = complaint(|| Summary::multilabel(&[-0.7], &[f32::NAN], 1, &[true], 15));
    assert!(nan.contains("log_off[0] is NaN"), "{nan}");
    let empty = complaint(|| Summary::multilabel(&[], &[], 1, &[], 15));
    assert!(empty.contains("log_on contains no examples"), "{empty}");
}
