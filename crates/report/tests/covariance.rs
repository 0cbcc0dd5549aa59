//! The analysis of covariances against plain f64, and the identities that it must keep.

use crate::covariance_support::{
    Case, Numbers, average, centred, correlation, dense, flip, random,
};
use aleator_report::covariance::{ClassPair, Covariances, Measure, Relation, TopPairs};
use aleator_run::{Link, Noise, Split};

/// Products of a thousand 32-bit floats in sequence are this exact, and better.
const TOLERANCE: f64 = 1e-5;

const NOISES: [Noise; 5] = [
    Noise::Diagonal,
    Noise::LowRank { rank: 1 },
    Noise::LowRank { rank: 3 },
    Noise::SharedLowRank { rank: 1 },
    Noise::SharedLowRank { rank: 4 },
];

fn open(case: &Case) -> Covariances {
    Covariances::open(&case.run(), Split::Test).unwrap()
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < TOLERANCE, "{what}: found {found}, expected {expected}");
}

fn maybe_close(found: Option<f64>, expected: Option<f64>, what: &str) {
    match (found, expected) {
        (Some(found), Some(expected)) => close(found, expected, what),
        (found, expected) => assert_eq!(found, expected, "{what}"),
    }
}

#[test]
fn the_average_covariance_is_that_of_the_definition() {
    for (at, noise) in NOISES.into_iter().enumerate() {
        for (examples, classes) in [(1, 2), (7, 3), (40, 13), (1100, 5), (3, 300)] {
            let case = Case::new(noise, examples, classes, at as u64);
            let found = open(&case).average_covariance(&mut |_| {}).unwrap();
            let raw = average(&case.predictions);
            let middle = centred(&raw, classes);
            let what = format!("{noise:?}, {examples} × {classes}");
            for i in 0..classes {
                for j in 0..classes {
                    let at = i * classes + j;
                    close(found.raw[at], raw[at], &what);
                    close(found.centred[at], middle[at] / 0.49, &what);
                    let expected = correlation(&middle, classes, i, j);
                    close(found.correlation[at], expected, &what);
                }
                let row = &found.centred[i * classes..(i + 1) * classes];
                let mean = row.iter().sum::<f64>() / classes as f64;
                close(mean, 0.0, &format!("{what}: the mean of a row"));
            }
        }
    }
}

fn check_pair(pair: &ClassPair, case: &Case, raw: &[f64], middle: &[f64]) {
    let k = case.predictions.classes;
    let (i, j) = (pair.first, pair.second);
    assert!(i < j);
    close(pair.covariance, raw[i * k + j], "raw");
    close(pair.centred, middle[i * k + j] / 0.49, "centred");
    maybe_close(pair.correlation, Some(correlation(middle, k, i, j)), "correlation");
    maybe_close(pair.flip, flip(&case.predictions, i, j), "flip");
    maybe_close(pair.flip_back, flip(&case.predictions, j, i), "flip back");
    let expected = match case.info.noise {
        Noise::Diagonal => Relation::Unrelated,
        _ if middle[i * k + j] < 0.0 => Relation::Substitutes,
        _ => Relation::CoOccurring,
    };
    assert_eq!(pair.relation, expected);
}

#[test]
fn the_top_pairs_are_the_largest_of_the_definition() {
    for (at, noise) in NOISES.into_iter().enumerate() {
        let k = 11;
        let case = Case::new(noise, 60, k, 100 + at as u64);
        let found = open(&case).top_pairs(9, &mut |_| {}).unwrap();
        let raw = average(&case.predictions);
        let middle = centred(&raw, k);
        let largest = |value: &dyn Fn(usize, usize) -> f64| {
            let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
            let mut all: Vec<f64> = pairs.map(|(i, j)| value(i, j).abs()).collect();
            all.sort_by(|a, b| b.total_cmp(a));
            all.truncate(9);
            all
        };
        let expected = [
            largest(&|i, j| raw[i * k + j]),
            largest(&|i, j| middle[i * k + j] / 0.49),
            largest(&|i, j| correlation(&middle, k, i, j)),
        ];
        let lists = [
            (&found.by_covariance, Measure::Raw),
            (&found.by_centred, Measure::Centred),
            (&found.by_correlation, Measure::Correlation),
        ];
        for ((list, measure), expected) in lists.into_iter().zip(expected) {
            assert_eq!(list.as_slice(), found.by(measure));
            if noise == Noise::Diagonal && measure == Measure::Raw {
                assert!(list.is_empty(), "classes share no noise");
                continue;
            }
            assert_eq!(list.len(), 9);
            for (pair, expected) in list.iter().zip(expected) {
                let value = match measure {
                    Measure::Raw => pair.covariance,
                    Measure::Centred => pair.centred,
                    Measure::Correlation => pair.correlation.unwrap(),
                };
                close(value.abs(), expected, "the place");
                check_pair(pair, &case, &raw, &middle);
            }
        }
    }
}

#[test]
fn a_named_pair_has_the_numbers_of_the_definition() {
    for (at, noise) in NOISES.into_iter().enumerate() {
        let k = 6;
        let case = Case::new(noise, 40, k, 300 + at as u64);
        let raw = average(&case.predictions);
        let middle = centred(&raw, k);
        let mut covariances = open(&case);
        for (first, second) in [(0, 1), (5, 2)] {
            let found = covariances.pair(first, second, 3, &mut |_| {}).unwrap();
            check_pair(&found.pair, &case, &raw, &middle);
            let covariance = |row: usize| dense(&case.predictions, row)[first * k + second];
            let mut all: Vec<f64> = (0..40).map(|row| covariance(row).abs()).collect();
            all.sort_by(|a, b| b.total_cmp(a));
            let examples = found.examples.unwrap();
            assert_eq!(examples.len(), 3);
            for (example, expected) in examples.iter().zip(all) {
                close(example.covariance, covariance(example.row), "an example");
                close(example.covariance.abs(), expected, "its place");
            }
        }
    }
}

/// Memory decides how often the file is read, and threads who adds: neither changes a bit.
#[test]
fn neither_memory_nor_threads_change_a_bit() {
    for noise in [Noise::LowRank { rank: 3 }, Noise::SharedLowRank { rank: 3 }] {
        let case = Case::new(noise, 50, 300, 5);
        let run = case.run();
        let pairs = |memory: usize, threads: usize| -> TopPairs {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let opened = Covariances::open(&run, Split::Test).unwrap().with_memory(memory);
                { opened }.top_pairs(20, &mut |_| {}).unwrap()
            })
        };
        let expected = pairs(1 << 30, 1);
        for (memory, threads) in [(1 << 30, 3), (0, 2), (100_000, 2), (300_000, 1)] {
            assert_eq!(pairs(memory, threads), expected, "{memory} bytes, {threads} threads");
        }
    }
}

/// Under the softmax a common change of all utilities says nothing, however noisy.
#[test]
fn a_shift_of_all_utilities_changes_nothing_that_is_identified() {
    let (n, k, rank) = (40, 9, 2);
    let case = Case::new(Noise::LowRank { rank }, n, k, 8);
    let mut shifted = case.predictions.clone();
    let mut numbers = Numbers(77);
    for example in 0..n {
        let shift: Vec<f32> = numbers.take(rank).iter().map(|value| 30.0 * value).collect();
        let up = 4.0 * numbers.next();
        for class in 0..k {
            let at = example * k + class;
            shifted.mean[at] += up;
            let row = &mut shifted.loadings.as_mut().unwrap()[at * rank..(at + 1) * rank];
            row.iter_mut().zip(&shift).for_each(|(value, shift)| *value += shift);
        }
    }
    let shifted = Case::of(shifted, Noise::LowRank { rank }, Link::Softmax);
    let before = open(&case).top_pairs(36, &mut |_| {}).unwrap();
    let after = open(&shifted).top_pairs(36, &mut |_| {}).unwrap();
    let by_classes = |list: &[ClassPair]| {
        let mut list = list.to_vec();
        list.sort_by_key(|pair| (pair.first, pair.second));
        list
    };
    let pairs = by_classes(&before.by_centred).into_iter().zip(by_classes(&after.by_centred));
    let mut moved = 0.0_f64;
    for (before, after) in pairs {
        // The shift is thirty times the loadings: what is left of them has five bits less.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-4, "{before:?}\n{after:?}");
        near(before.centred, after.centred);
        near(before.correlation.unwrap(), after.correlation.unwrap());
        near(before.flip.unwrap_or(-1.0), after.flip.unwrap_or(-1.0));
        near(before.flip_back.unwrap_or(-1.0), after.flip_back.unwrap_or(-1.0));
        moved = moved.max((before.covariance - after.covariance).abs());
    }
    assert!(moved > 100.0, "the covariances themselves do change: {moved}");
}

/// A class that has no noise but the one that all share has no correlation with any.
#[test]
fn a_class_without_noise_of_its_own_has_no_correlation() {
    let (n, k) = (5, 4);
    let mut predictions = random(Noise::LowRank { rank: 1 }, n, k, 3);
    predictions.diag_scale = Some(vec![0.0; n * k]);
    predictions.loadings = Some([1.0, 0.3, -0.3, 0.0].repeat(n).iter().map(|v| v + 7.0).collect());
    // The mean of the loadings is 7.25 and the last class is off it; the third is made equal.
    let loadings = predictions.loadings.as_mut().unwrap();
    (0..n).for_each(|example| loadings[example * k + 2] = 7.0 + 1.3 / 3.0);
    let case = Case::of(predictions, Noise::LowRank { rank: 1 }, Link::Softmax);
    let run = case.run();
    let mut opened = Covariances::open(&run, Split::Test).unwrap();
    let matrix = opened.average_covariance(&mut |_| {}).unwrap();
    for class in 0..k {
        assert!(matrix.correlation[2 * k + class].is_nan());
        assert!(matrix.correlation[class * k + 2].is_nan());
    }
    close(matrix.correlation[3].abs(), 1.0, "one factor");
    let pairs = opened.top_pairs(10, &mut |_| {}).unwrap();
    assert_eq!(pairs.by_correlation.len(), 3, "pairs without the third class");
    assert!(pairs.by_centred.iter().filter(|pair| pair.correlation.is_none()).count() <= 3);
}

#[test]
fn one_class_has_no_pairs() {
    let case = Case::new(Noise::LowRank { rank: 2 }, 4, 1, 0);
    let found = open(&case).top_pairs(5, &mut |_| {}).unwrap();
    assert_eq!(
        found,
        TopPairs { by_covariance: vec![], by_centred: vec![], by_correlation: vec![] }
    );
}

#[test]
fn ties_are_the_largest_covariances_with_the_prediction() {
    let k = 8;
    for noise in [Noise::LowRank { rank: 2 }, Noise::SharedLowRank { rank: 3 }] {
        let case = Case::new(noise, 700, k, 12);
        let mut opened = open(&case);
        let predicted = opened.predicted(&mut |_| {}).unwrap();
        for measure in [Measure::Raw, Measure::Centred, Measure::Correlation] {
            let mut rows = 0;
            let mut check = |example: aleator_report::covariance::ExampleTies| {
                assert_eq!((example.row, example.predicted), (rows, predicted[rows]));
                rows += 1;
                let raw = dense(&case.predictions, example.row);
                let middle = centred(&raw, k);
                let class = example.predicted;
                let value = |other: usize| match measure {
                    Measure::Raw => raw[class * k + other],
                    Measure::Centred => middle[class * k + other] / 0.49,
                    Measure::Correlation => correlation(&middle, k, class, other),
                };
                let others = (0..k).filter(|other| *other != class);
                let mut expected: Vec<f64> = others.map(|other| value(other).abs()).collect();
                expected.sort_by(|a, b| b.total_cmp(a));
                assert_eq!(example.ties.len(), 3);
                for (tie, expected) in example.ties.iter().zip(expected) {
                    close(tie.value(measure).abs(), expected, "the place");
                    close(tie.value(measure), value(tie.class), "the value");
                    close(tie.covariance, raw[class * k + tie.class], "raw");
                }
                Ok(())
            };
            opened.ties(&predicted, measure, 3, &mut |_| {}, &mut check).unwrap();
            assert_eq!(rows, 700);
        }
    }
}

#[test]
fn with_diagonal_noise_no_example_has_ties() {
    let case = Case::new(Noise::Diagonal, 5, 4, 2);
    let mut opened = open(&case);
    let predicted = opened.predicted(&mut |_| {}).unwrap();
    let mut refuse = |_| panic!("no ties");
    opened.ties(&predicted, Measure::Centred, 3, &mut |_| {}, &mut refuse).unwrap();
}
