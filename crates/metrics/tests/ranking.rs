//! AUROC and average precision.

use crate::support::{CLASSES, Data, Draws, assert_all_close, assert_close, complaint};
use aleator_metrics::ranking::{auroc, average_precision};

/// ```python
/// print(m.roc_auc_score(multi_hot.ravel(), log_on.ravel()))
/// print([m.roc_auc_score(multi_hot[:, k], log_on[:, k]) for k in range(K)])
/// ```
#[test]
fn auroc_with_ties_equals_scikit_learns() {
    let Data { log_on, multi_hot, .. } = Data::new();
    assert_close(auroc(&log_on, &multi_hot).unwrap(), 0.8419238531485974, 1e-14);
    let of_class = |class: usize| {
        let scores: Vec<f32> = log_on.iter().skip(class).step_by(CLASSES).copied().collect();
        let on: Vec<bool> = multi_hot.iter().skip(class).step_by(CLASSES).copied().collect();
        auroc(&scores, &on).unwrap()
    };
    let found: Vec<f64> = (0..CLASSES).map(of_class).collect();
    let expected = [
        0.8158482142857144,
        0.8804713804713805,
        0.8703703703703703,
        0.783888888888889,
        0.882647385984427,
        0.8361391694725028,
        0.8484136310223267,
    ];
    assert_all_close(&found, &expected, 1e-14);
}

/// The definitions, pair by pair and threshold by threshold.
#[test]
fn both_equal_their_definitions_in_quadratic_time() {
    for seed in 0..50 {
        let mut draws = Draws::new(seed);
        let scores: Vec<f64> = (0..23).map(|_| draws.below(9) as f64).collect();
        let relevant: Vec<bool> = (0..23).map(|_| draws.below(3) == 0).collect();
        let items = || scores.iter().zip(&relevant);
        let found = |threshold: f64| items().filter(|(s, r)| **r && **s >= threshold).count();
        let seen = |threshold: f64| items().filter(|(s, _)| **s >= threshold).count();
        let total = found(0.0);
        if total == 0 || total == 23 {
            continue;
        }
        let mut pairs = 0.0;
        for (a, _) in items().filter(|(_, r)| **r) {
            for (b, _) in items().filter(|(_, r)| !**r) {
                pairs += if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                };
            }
        }
        let expected = pairs / (total * (23 - total)) as f64;
        assert_close(auroc(&scores, &relevant).unwrap(), expected, 1e-15);
        let precision = |(s, _): (&f64, &bool)| found(*s) as f64 / seen(*s) as f64;
        let expected = items().filter(|(_, r)| **r).map(precision).sum::<f64>() / total as f64;
        assert_close(average_precision(&scores, &relevant).unwrap(), expected, 1e-14);
    }
}

#[test]
fn only_the_order_of_scores_matters_and_not_that_of_items() {
    for seed in 0..20 {
        let mut draws = Draws::new(seed);
        let scores: Vec<f64> = (0..40).map(|_| draws.quarter()).collect();
        let relevant: Vec<bool> = (0..40).map(|at| at % 3 == 0).collect();
        let both = |s: &[f64], r: &[bool]| (auroc(s, r).unwrap(), average_precision(s, r).unwrap());
        let expected = both(&scores, &relevant);
        let monotone: Vec<f64> = scores.iter().map(|score| score.exp()).collect();
        assert_eq!(both(&monotone, &relevant), expected);
        let reversed = |v: &[f64]| v.iter().rev().copied().collect::<Vec<f64>>();
        let relevant_reversed: Vec<bool> = relevant.iter().rev().copied().collect();
        assert_eq!(both(&reversed(&scores), &relevant_reversed), expected);
        let opposite: Vec<f64> = scores.iter().map(|score| -score).collect();
        assert_close(auroc(&opposite, &relevant).unwrap(), 1.0 - expected.0, 1e-15);
    }
}

#[test]
fn extremes() {
    let relevant = [true, true, false, false];
    let perfect = [f64::INFINITY, 2.0, 1.0, f64::NEG_INFINITY];
    assert_eq!(auroc(&perfect, &relevant), Some(1.0));
    assert_eq!(average_precision(&perfect, &relevant), Some(1.0));
    // Constant scores give 0.5 and the share of relevant items. 0 and −0 are equal.
    let silent = [0.0, 0.0, -0.0, -0.0];
    assert_eq!(auroc(&silent, &relevant), Some(0.5));
    assert_eq!(average_precision(&silent, &relevant), Some(0.5));
}

#[test]
fn without_both_kinds_there_is_nothing_to_rank() {
    assert_eq!(auroc(&[1.0, 2.0], &[true, true]), None);
    assert_eq!(auroc(&[1.0, 2.0], &[false, false]), None);
    assert_eq!(auroc::<f32>(&[], &[]), None);
    assert_eq!(average_precision(&[1.0, 2.0], &[false, false]), None);
    assert_eq!(average_precision(&[1.0, 2.0], &[true, true]), Some(1.0));
    assert_eq!(average_precision::<f32>(&[], &[]), None);
}

#[test]
fn mistakes_of_the_caller_are_named() {
    let nan = complaint(|| auroc(&[0.0, f64::NAN], &[true, false]));
    assert!(nan.contains("scores[1] is NaN"), "{nan}");
    let shape = complaint(|| average_precision(&[0.0], &[true, false]));
    assert!(shape.contains("scores and relevant"), "{shape}");
}
