//! Mean, standard deviation and t-tests, against scipy.

use crate::support::{Draws, assert_close, complaint};
use aleator_metrics::significance::*;

/// Top-1 accuracies in percent of five runs, of four, and of five with the seeds of the first.
const OURS: [f64; 5] = [79.31, 79.18, 79.42, 79.27, 79.36];
const THEIRS: [f64; 4] = [76.71, 76.9, 76.48, 76.83];
const NEAR: [f64; 5] = [79.02, 79.11, 79.2, 79.01, 79.19];

#[track_caller]
fn assert_relative(found: f64, expected: f64, tolerance: f64) {
    let close = (found - expected).abs() <= tolerance * expected.abs();
    assert!(close, "found {found:e}, expected {expected:e}");
}

#[track_caller]
fn assert_test(found: Option<TTest>, t: f64, degrees_of_freedom: f64, p_value: f64) {
    let found = found.expect("a test");
    assert_relative(found.t, t, 1e-10);
    assert_relative(found.degrees_of_freedom, degrees_of_freedom, 1e-10);
    assert_relative(found.p_value, p_value, 1e-10);
}

/// `print(np.mean(ours), np.std(ours, ddof=1))`
#[test]
fn mean_and_standard_deviation_equal_numpys() {
    assert_relative(mean(&OURS).unwrap(), 79.308, 1e-14);
    assert_relative(sample_std(&OURS).unwrap(), 0.09093954035511573, 1e-12);
    assert_eq!(mean(&[2.0, 4.0, 9.0]), Some(5.0));
    assert_eq!(sample_std(&[2.0, 4.0, 9.0]), Some(13f64.sqrt()));
}

/// ```python
/// from scipy import stats
/// for a, b in ((ours, theirs), (ours, near), (near, ours)):
///     r = stats.ttest_ind(a, b, equal_var=False)
///     print(r.statistic, r.df, r.pvalue)
/// ```
#[test]
fn welchs_test_equals_scipys() {
    let (t, df, p) = (25.604780047453026, 4.1651157121589675, 9.684659225596113e-06);
    assert_test(welch_t_test(&OURS, &THEIRS), t, df, p);
    let (t, df, p) = (3.52707299363662, 7.9994170561633675, 0.007766064491478833);
    assert_test(welch_t_test(&OURS, &NEAR), t, df, p);
    assert_test(welch_t_test(&NEAR, &OURS), -t, df, p);
}

/// The same with `stats.ttest_ind(a, b)`.
#[test]
fn pooled_test_equals_scipys() {
    let (t, p) = (27.685469797475985, 2.059336862438276e-08);
    assert_test(pooled_t_test(&OURS, &THEIRS), t, 7.0, p);
    let (t, p) = (3.5270729936366196, 0.007765158746043725);
    assert_test(pooled_t_test(&OURS, &NEAR), t, 8.0, p);
    assert_test(pooled_t_test(&NEAR, &OURS), -t, 8.0, p);
}

/// The same with `stats.ttest_rel(ours, near)`.
#[test]
fn paired_test_equals_scipys() {
    let (t, p) = (5.226080206422847, 0.006400803631572995);
    assert_test(paired_t_test(&OURS, &NEAR), t, 4.0, p);
    assert_test(paired_t_test(&NEAR, &OURS), -t, 4.0, p);
}

/// `print(2 * scipy.stats.t.sf(t, nu))`
#[test]
fn p_values_equal_scipys_over_the_whole_range() {
    for (t, nu, expected) in [
        (0.0, 5.0, 1.0),
        (1e-8, 3.0, 0.999999992648948),
        (0.5, 1.0, 0.7048327646991335),
        (1.0, 1.0, 0.5),
        (2.0, 2.5, 0.1573914957579659),
        (2.776445105197793, 4.0, 0.05000000000000008),
        (0.1, 8.0, 0.922804909430597),
        (4.2, 7.3, 0.0036750570016489126),
        (12.0, 8.0, 2.143866747688769e-06),
        (150.0, 3.0, 6.533223056575826e-07),
        (1e6, 2.0, 9.999999999985e-13),
        (1.96, 1e3, 0.050273184955748736),
        (0.7, 31.9, 0.48900120575599765),
        (6.0, 1e5, 1.9799294556017718e-9),
        (3.0, 1e6, 0.0026998625414218),
        (20.0, 1e6, 5.733087047390268e-89),
        (30.0, 1e6, 1.2020094233664118e-197),
    ] {
        assert_relative(two_tailed_p_value(t, nu), expected, 1e-10);
        assert_eq!(two_tailed_p_value(-t, nu), two_tailed_p_value(t, nu));
    }
}

#[test]
fn p_values_have_closed_forms_for_one_and_two_degrees_of_freedom() {
    let mut draws = Draws::new(7);
    for _ in 0..200 {
        let t = draws.below(1 << 20) as f64 / 1024.0 + 1e-3;
        let cauchy = (1.0 / t).atan() * std::f64::consts::FRAC_2_PI;
        assert_relative(two_tailed_p_value(t, 1.0), cauchy, 1e-12);
        // 1 − t/√(2 + t²), without its cancellation.
        let root = (2.0 + t * t).sqrt();
        assert_relative(two_tailed_p_value(t, 2.0), 2.0 / (root * (root + t)), 1e-12);
    }
}

#[test]
fn p_values_fall_as_t_grows_and_stay_in_their_interval() {
    for nu in [0.5, 1.0, 3.7, 8.0, 100.0, 1e6] {
        let mut last = 1.0;
        for step in 1..400 {
            let p = two_tailed_p_value(step as f64 / 16.0, nu);
            assert!((0.0..last).contains(&p), "nu {nu}, step {step}: {p} after {last}");
            last = p;
        }
        assert_eq!(two_tailed_p_value(f64::INFINITY, nu), 0.0);
        assert_eq!(two_tailed_p_value(0.0, nu), 1.0);
    }
}

#[test]
fn equal_values_have_no_spread_to_the_bit() {
    for value in [0.1, 79.3, 1e-300, -3.3e7] {
        for count in 2..9 {
            let values = vec![value; count];
            assert_eq!(mean(&values), Some(value));
            assert_eq!(sample_std(&values), Some(0.0));
        }
    }
}

#[test]
fn a_large_common_offset_leaves_the_spread() {
    let moved: Vec<f64> = [1.0, 2.0, 4.0].iter().map(|value| value + 1e9).collect();
    // The values are exact; their mean is not, by at most 1.2e-7.
    assert_close(sample_std(&moved).unwrap(), (7f64 / 3.0).sqrt(), 1e-12);
}

#[test]
fn tiny_spreads_do_not_underflow() {
    let scaled = |values: &[f64]| values.iter().map(|v| (v - 79.0) * 1e-120).collect::<Vec<f64>>();
    let (t, df, p) = (3.52707299363662, 7.9994170561633675, 0.007766064491478833);
    assert_test(welch_t_test(&scaled(&OURS), &scaled(&NEAR)), t, df, p);
}

#[test]
fn undetermined_statistics_are_none() {
    assert_eq!(mean(&[]), None);
    assert_eq!(sample_std(&[1.0]), None);
    for test in [welch_t_test, pooled_t_test] {
        assert_eq!(test(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(test(&[1.0, 2.0], &[]), None);
        // Without variance the difference has no scale.
        assert_eq!(test(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(test(&[1.0, 1.0], &[1.0, 1.0]), None);
        assert!(test(&[1.0, 1.0], &[2.0, 2.5]).is_some());
    }
    assert_eq!(paired_t_test(&[1.0], &[2.0]), None);
    assert_eq!(paired_t_test(&[1.0, 2.0], &[3.0, 4.0]), None);
}

#[test]
fn infinite_values_have_a_mean_at_most() {
    let infinite = [1.0, f64::INFINITY, 2.0];
    assert_eq!(mean(&infinite), Some(f64::INFINITY));
    assert_eq!(mean(&[f64::INFINITY, f64::NEG_INFINITY]), None);
    assert_eq!(sample_std(&infinite), None);
    assert_eq!(welch_t_test(&infinite, &[1.0, 2.0]), None);
    assert_eq!(pooled_t_test(&[1.0, 2.0], &infinite), None);
    assert_eq!(paired_t_test(&infinite, &infinite), None);
}

#[test]
fn mistakes_of_the_caller_are_named() {
    let nan = complaint(|| mean(&[1.0, f64::NAN]));
    assert!(nan.contains("values[1] is NaN"), "{nan}");
    let nan = complaint(|| welch_t_test(&[1.0, 2.0], &[f64::NAN, 2.0]));
    assert!(nan.contains("second[0] is NaN"), "{nan}");
    let nan = complaint(|| paired_t_test(&[f64::NAN, 2.0], &[1.0, 2.0]));
    assert!(nan.contains("first[0] is NaN"), "{nan}");
    let pairs = complaint(|| paired_t_test(&[1.0], &[1.0, 2.0]));
    assert!(pairs.contains("must have the same length"), "{pairs}");
    let freedom = complaint(|| two_tailed_p_value(1.0, 0.0));
    assert!(freedom.contains("degrees_of_freedom is 0"), "{freedom}");
    let t = complaint(|| two_tailed_p_value(f64::NAN, 1.0));
    assert!(t.contains("t is NaN"), "{t}");
}
