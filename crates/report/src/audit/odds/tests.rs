//! The law of the odds against simulated evidence, and its derivatives against differences.

use aleator_metrics::normal_cdf;

use super::*;

/// Evidence of right labels from N(−2, 1), of wrong ones from N(2, 1): e^η has β = 4.
fn labels(count: usize, wrong: f64) -> Labels {
    let quantile = |share: f64| {
        let (mut low, mut high) = (-9.0, 9.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if normal_cdf(middle) < share { low = middle } else { high = middle }
        }
        low
    };
    let errors = (wrong * count as f64).round() as usize;
    let spread = |at: usize, of: usize| quantile((at as f64 + 0.5) / of as f64);
    let right = (0..count - errors).map(|at| spread(at, count - errors) - 2.0);
    let evidence = right.chain((0..errors).map(|at| spread(at, errors) + 2.0)).collect();
    Labels { evidence, weights: vec![1.0; count] }
}

#[test]
fn the_share_of_wrong_labels_and_the_slope_are_recovered_without_the_truth() {
    let planted = labels(1000, 1.0);
    for share in [0.02, 0.1, 0.3] {
        let given = labels(5000, share);
        let odds = Odds::learn(&given, &planted, 1, Prior { share, constant: 0.0 });
        assert!((odds.slopes[0] - 4.0).abs() < 0.2, "{share}: {odds:?}");
        let count: f64 = given.evidence.iter().map(|value| odds.wrong(&[*value])).sum();
        let expected = share * 5000.0;
        assert!((count - expected).abs() < 0.05 * expected + 2.0, "{share}: {count}");
    }
}

#[test]
fn where_no_label_looks_like_an_error_none_is_wrong() {
    let given = labels(5000, 0.0);
    let odds = Odds::learn(&given, &labels(1000, 1.0), 1, Prior { share: 0.0, constant: 0.0 });
    let count: f64 = given.evidence.iter().map(|value| odds.wrong(&[*value])).sum();
    assert!(count < 5.0, "{count}");
}

#[test]
fn gradient_and_curvature_are_those_of_the_likelihood() {
    // Two kinds of evidence, the second a square of the first.
    let doubled = |labels: Labels| Labels {
        evidence: labels.evidence.iter().flat_map(|it| [*it, 0.5 * (it * it - 1.0)]).collect(),
        ..labels
    };
    let (given, planted) = (doubled(labels(40, 0.2)), doubled(labels(10, 1.0)));
    let prior = Prior { share: 0.3, constant: 0.5 };
    let scales = [2.0, 3.0];
    let problem = Problem { given: &given, planted: &planted, scales: &scales, prior };
    let at = [-1.0, 0.3, -0.2, -1.5];
    let here = problem.evaluate(&at);
    for index in 0..4 {
        let near = |step: f64| {
            let mut there = at;
            there[index] += step;
            problem.evaluate(&there)
        };
        let (above, below) = (near(1e-5), near(-1e-5));
        let expected = (above.value - below.value) / 2e-5;
        assert!((here.gradient[index] - expected).abs() < 1e-8, "{index}: {here:?} {expected}");
        for (row, curvature) in here.curvature.iter().enumerate() {
            let expected = (below.gradient[row] - above.gradient[row]) / 2e-5;
            let found = curvature[index];
            assert!((found - expected).abs() < 1e-8, "{row} {index}: {found} {expected}");
        }
    }
}

#[test]
fn evidence_beyond_the_range_of_f64_has_finite_derivatives() {
    let law = Law { intercept: 0.0, slopes: vec![1.0], wrong: 1e-6, right: 1.0 - 1e-6 };
    for eta in [-1e4, -800.0, 800.0, 1e4] {
        for is_planted in [false, true] {
            let Term { value, by_eta, by_odds, by_eta_twice, by_both, by_odds_twice } =
                law.term(eta, is_planted);
            let all = [value, by_eta, by_odds, by_eta_twice, by_both, by_odds_twice];
            assert!(all.iter().all(|it| it.is_finite()), "{eta} {is_planted}: {all:?}");
        }
    }
}
