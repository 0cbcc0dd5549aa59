//! `evaluation.json`: every kind of labels with its kind of probabilities, and the round trip through JSON.

use aleator_metrics::{
    Calibration, EVALUATION_FORMAT, Evaluation, LogProbs, OtherScores, OtherWeights,
    SplitEvaluation, Summary, Truth,
};

fn logs(probs: &[f32]) -> Vec<f32> {
    probs.iter().map(|p| p.ln()).collect()
}

/// Two examples of three classes.
const PROBS: [f32; 6] = [0.7, 0.2, 0.1, 0.25, 0.25, 0.5];

fn one_is_right() -> LogProbs {
    LogProbs { classes: 3, on: logs(&PROBS), off: None }
}

fn on_or_off() -> LogProbs {
    let off: Vec<f32> = PROBS.iter().map(|p| 1.0 - p).collect();
    LogProbs { classes: 3, on: logs(&PROBS), off: Some(logs(&off)) }
}

#[test]
fn classes_are_compared_with_probabilities_of_either_kind() {
    let truth = Truth::Classes(vec![0, 1]);
    let softmax = one_is_right().summary(&truth);
    assert!((softmax.nll - -(0.7f64.ln() + 0.25f64.ln()) / 2.0).abs() < 1e-6);
    assert_eq!((softmax.top1, softmax.gap), (0.5, None));
    let sigmoid = on_or_off().summary(&truth);
    let first = 0.7f64.ln() + 0.8f64.ln() + 0.9f64.ln();
    let second = 0.75f64.ln() + 0.25f64.ln() + 0.5f64.ln();
    assert!((sigmoid.nll - -(first + second) / 2.0).abs() < 1e-6);
    assert_eq!(sigmoid.top1, 0.5);
    let hot = Truth::MultiHot(vec![true, false, false, false, true, false]);
    assert_eq!(on_or_off().summary(&hot), sigmoid, "one class is a set of one");
}

#[test]
fn soft_labels_are_compared_with_all_probabilities() {
    let targets = vec![0.5, 0.5, 0.0, 0.0, 0.0, 1.0];
    let summary = one_is_right().summary(&Truth::Soft(targets));
    let nll = -(0.5 * 0.7f64.ln() + 0.5 * 0.2f64.ln() + 0.5f64.ln()) / 2.0;
    assert!((summary.nll - nll).abs() < 1e-6);
    assert_eq!(summary.top1, 1.0);
}

#[test]
#[should_panic(expected = "multilabel scores need log(1 - p)")]
fn sets_of_classes_need_both_sides() {
    one_is_right().summary(&Truth::MultiHot(vec![true; 6]));
}

#[test]
#[should_panic(expected = "soft labels cannot be compared")]
fn soft_labels_are_not_for_classes_on_or_off() {
    on_or_off().summary(&Truth::Soft(vec![0.5; 6]));
}

#[test]
fn a_temperature_of_one_changes_nothing_and_a_high_one_makes_all_alike() {
    for log_probs in [one_is_right(), on_or_off()] {
        let same = log_probs.scaled(1.0);
        for (a, b) in same.on.iter().zip(&log_probs.on) {
            assert!((a - b).abs() < 1e-6, "{a} for {b}");
        }
        let flat = log_probs.scaled(1e6);
        let each: f32 = if log_probs.off.is_some() { 0.5 } else { 1.0 / 3.0 };
        assert!(flat.on.iter().all(|p| (p.exp() - each).abs() < 1e-4), "{:?}", flat.on);
    }
}

#[test]
fn every_kind_of_calibration_lowers_the_nll_that_it_reports() {
    let cases = [
        (one_is_right(), Truth::Classes(vec![0, 1])),
        (one_is_right(), Truth::Soft(vec![0.4, 0.3, 0.3, 0.3, 0.3, 0.4])),
        (on_or_off(), Truth::Classes(vec![0, 1])),
        (on_or_off(), Truth::MultiHot(vec![false, true, false, true, false, false])),
    ];
    for (log_probs, truth) in cases {
        let calibration = Calibration::fit(&log_probs, &truth);
        assert_eq!(calibration.nll_before, log_probs.summary(&truth).nll);
        let after = log_probs.scaled(calibration.temperature).summary(&truth).nll;
        assert_eq!(calibration.nll_after, after);
        assert!(after < calibration.nll_before, "{truth:?}: {calibration:?}");
    }
}

fn evaluation(validation: SplitEvaluation, calibration: Option<Calibration>) -> Evaluation {
    Evaluation {
        format: EVALUATION_FORMAT,
        weights: "best".to_string(),
        step: Some(7),
        class_names: ["a", "b", "c"].map(String::from).to_vec(),
        calibration,
        true_class: None,
        test: calibration.map(|_| validation.clone()),
        validation,
        other_weights: None,
    }
}

#[test]
fn evaluations_survive_the_round_trip_through_json() {
    let (given, clean) = (Truth::Classes(vec![0, 1]), Truth::Classes(vec![0, 2]));
    let calibration = Calibration::fit(&one_is_right(), &given);
    let split = SplitEvaluation::new(&one_is_right(), &given, Some(&clean), Some(&calibration));
    assert_eq!(split.clean.as_ref().unwrap().top1, 1.0);
    assert_eq!(split.calibrated.as_ref().unwrap().nll, calibration.nll_after);
    let whole = evaluation(split, Some(calibration));
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), whole);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json["validation"]["top1"], 0.5,
        "the scores against the given labels are at the top level"
    );
    assert_eq!(json["validation"]["clean"]["top1"], 1.0);
}

#[test]
fn an_evaluation_tells_the_best_weights_from_the_last() {
    let split = |labels: Vec<u32>| {
        SplitEvaluation::new(&one_is_right(), &Truth::Classes(labels), None, None)
    };
    let mut whole = evaluation(split(vec![0, 1]), None);
    assert_eq!(whole.of_weights("best"), Some(whole.clone()));
    assert_eq!((whole.of_weights("last"), whole.other()), (None, None));
    let mut other = OtherWeights { weights: "last".to_string(), step: 9, scores: None };
    whole.other_weights = Some(other.clone());
    // The best epoch is the last: one set of scores with two names.
    let last = whole.of_weights("last").unwrap();
    assert_eq!((last.weights.as_str(), last.step), ("last", Some(9)));
    assert_eq!((last.validation, whole.other()), (whole.validation.clone(), None));
    let validation = split(vec![2, 2]);
    other.scores =
        Some(OtherScores { calibration: None, validation: validation.clone(), test: None });
    whole.other_weights = Some(other);
    let last = whole.other().unwrap();
    assert_eq!((last.weights.as_str(), last.step), ("last", Some(9)));
    assert_eq!((last.validation, &last.other_weights), (validation, &None));
    assert_ne!(
        whole.of_weights("best").unwrap().validation,
        whole.of_weights("last").unwrap().validation
    );
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<Evaluation>(&text).unwrap(), whole);
}

#[test]
fn absent_scores_are_not_written() {
    let split = SplitEvaluation::new(&one_is_right(), &Truth::Classes(vec![0, 1]), None, None);
    let text = serde_json::to_string(&evaluation(split, None)).unwrap();
    for word in ["clean", "calibrated", "calibration", "test", "other_weights", "null"] {
        assert!(
            !text.contains(&format!("\"{word}\"")) && !text.contains(":null"),
            "{word}: {text}"
        );
    }
    serde_json::from_str::<Evaluation>(&text).unwrap();
}

#[test]
fn an_infinite_nll_survives_json() {
    let impossible = LogProbs { classes: 2, on: vec![0.0, f32::NEG_INFINITY], off: None };
    let truth = Truth::Classes(vec![1]);
    let calibration = Calibration::fit(&impossible, &truth);
    assert_eq!((calibration.temperature, calibration.nll_after), (1.0, f64::INFINITY));
    let text = serde_json::to_string(&calibration).unwrap();
    assert!(text.contains("\"nll_before\":\"Infinity\""), "{text}");
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
    let summary = impossible.summary(&truth);
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}
