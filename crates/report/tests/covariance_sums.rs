//! Covariances that were added up during the evaluation, against the analysis of stored loadings.

use std::fs;

use crate::covariance_support::{Case, average, centred, dense, flip, random, rows};
use aleator_covariance::CovarianceRecorder;
use aleator_report::ReportError;
use aleator_report::covariance::{Comparison, Covariances, ExampleTies, Measure};
use aleator_run::{Likelihood, Link, Noise, Predictions, Split};

const FULL: Noise = Noise::LowRank { rank: 3 };

/// Numbers of single examples are stored in 32-bit floats.
const STORED: f64 = 6e-8;

/// The covariances that an evaluation in batches writes, with those of single examples or without.
fn record(case: &Case, batch: usize, ties: bool) {
    let path = case.dir().join("predictions/test.covariance.safetensors");
    let all = &case.predictions;
    let mut recorder =
        CovarianceRecorder::create(&path, all.examples(), all, ties).unwrap().unwrap();
    for start in (0..all.examples()).step_by(batch) {
        recorder.push(&rows(all, start..all.examples().min(start + batch))).unwrap();
    }
    recorder.commit().unwrap();
}

/// A run whose loadings are stored, and the same without them.
fn both(predictions: Predictions, link: Link) -> (Case, Case) {
    let of = |predictions: Predictions| {
        let mut case = Case::of(predictions, FULL, link);
        if link == Link::Sigmoid {
            case.info.likelihood = Likelihood::Joint;
        }
        case
    };
    let mut without = of(predictions.clone());
    without.predictions.forget_loadings();
    without.run();
    without.predictions = predictions.clone();
    record(&without, 7, true);
    let with = of(predictions);
    with.run();
    (with, without)
}

fn open(case: &Case) -> Covariances {
    try_open(case).unwrap()
}

fn try_open(case: &Case) -> Result<Covariances, ReportError> {
    Covariances::open(&aleator_run::RunDir::open(&case.dir()).unwrap(), Split::Test)
}

fn refused<T>(result: Result<T, ReportError>, words: &[&str]) {
    let Err(error) = result else { panic!("{words:?} is not refused") };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

fn multilabel(examples: usize, classes: usize) -> Predictions {
    let mut predictions = random(FULL, examples, classes, 31);
    predictions.log_probs_off = Some(vec![-0.1; examples * classes]);
    predictions
}

#[test]
fn the_average_has_the_bits_of_the_analysis_of_stored_loadings() {
    for (examples, classes) in [(1, 2), (40, 13), (700, 5), (2, 300), (3, 1)] {
        let (with, without) = both(random(FULL, examples, classes, 3), Link::Softmax);
        let (mut with, mut without) = (open(&with), open(&without));
        assert!(with.has_latents() && !without.has_latents() && without.has_examples());
        let expected = with.top_pairs(20, &mut |_| {}).unwrap();
        assert_eq!(without.top_pairs(20, &mut |_| {}).unwrap(), expected);
        let matrices = [&mut with, &mut without]
            .map(|covariances| covariances.average_covariance(&mut |_| {}).unwrap());
        assert_eq!(matrices[0].raw, matrices[1].raw);
        assert_eq!(matrices[0].centred, matrices[1].centred);
        let bits = |values: &[f64]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&matrices[0].correlation), bits(&matrices[1].correlation));
    }
    let (with, without) = both(multilabel(30, 6), Link::Sigmoid);
    let expected = open(&with).top_pairs(20, &mut |_| {}).unwrap();
    assert_eq!(open(&without).top_pairs(20, &mut |_| {}).unwrap(), expected);
    assert!(!open(&without).is_shift_free() && expected.by_centred[0].flip.is_none());
}

#[test]
fn named_pairs_have_the_same_numbers_and_no_examples() {
    let (with, without) = both(random(FULL, 40, 6, 9), Link::Softmax);
    for (first, second) in [(0, 1), (5, 2), (4, 5)] {
        let expected = open(&with).pair(first, second, 3, &mut |_| {}).unwrap();
        let found = open(&without).pair(first, second, 3, &mut |_| {}).unwrap();
        assert_eq!(found.examples, None);
        // That of the stored loadings is taken in f64, the sums in products of 32-bit floats.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{found:?}\n{expected:?}");
        near(found.pair.covariance, expected.pair.covariance);
        near(found.pair.centred, expected.pair.centred);
        assert_eq!(found.pair.flip, expected.pair.flip);
        assert_eq!(found.pair.flip_back, expected.pair.flip_back);
    }
}

fn ties(case: &Case, measure: Measure) -> Vec<ExampleTies> {
    let mut opened = open(case);
    let predicted = opened.predicted(&mut |_| {}).unwrap();
    let mut all = vec![];
    opened
        .ties(&predicted, measure, 9, &mut |_| {}, &mut |example| {
            all.push(example);
            Ok(())
        })
        .unwrap();
    all
}

#[test]
fn ties_of_examples_are_those_of_stored_loadings() {
    for (predictions, link) in
        [(random(FULL, 50, 8, 4), Link::Softmax), (multilabel(50, 8), Link::Sigmoid)]
    {
        let (with, without) = both(predictions, link);
        for measure in [Measure::Raw, Measure::Centred, Measure::Correlation] {
            let (expected, found) = (ties(&with, measure), ties(&without, measure));
            assert_eq!((expected.len(), found.len()), (50, 50));
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!((expected.row, expected.predicted), (found.row, found.predicted));
                assert_eq!(expected.ties.len(), found.ties.len());
                for (expected, found) in expected.ties.iter().zip(&found.ties) {
                    assert_eq!(expected.class, found.class);
                    let near = |a: f64, b: f64| assert!((a - b).abs() <= STORED * b.abs());
                    near(found.covariance, expected.covariance);
                    near(found.centred, expected.centred);
                    near(found.correlation.unwrap(), expected.correlation.unwrap());
                }
            }
        }
    }
}

/// A class without noise of its own has no correlation, with stored loadings and without.
#[test]
fn undefined_correlations_stay_undefined() {
    let mut predictions = random(FULL, 4, 3, 3);
    predictions.diag_scale = Some(vec![0.0; 12]);
    predictions.loadings = Some([1.0_f32, 2.0, 3.0].repeat(12));
    let (_, without) = both(predictions, Link::Softmax);
    let pairs = open(&without).top_pairs(3, &mut |_| {}).unwrap();
    assert!(pairs.by_correlation.is_empty() && !pairs.by_covariance.is_empty());
    let all = ties(&without, Measure::Raw);
    assert!(all.iter().flat_map(|it| &it.ties).all(|tie| tie.correlation.is_none()));
}

#[test]
fn mistakes_of_another_run_have_the_same_ranks() {
    let mut predictions = random(FULL, 60, 7, 14);
    // Every other example is right.
    for (row, log_probs) in predictions.log_probs.chunks_exact_mut(7).enumerate() {
        log_probs.fill(-3.0);
        log_probs[if row % 2 == 0 { row % 7 } else { (row + 1) % 7 }] = -0.1;
    }
    let (with, without) = both(predictions, Link::Softmax);
    let plain = Case::new(Noise::None, 60, 7, 5);
    let plain = plain.run();
    let compare = |case: &Case, measure: Measure| -> Comparison {
        let mut opened = open(case);
        let predicted = opened.predicted(&mut |_| {}).unwrap();
        opened.against(&predicted, &plain, measure, &mut |_| {}).unwrap()
    };
    for measure in [Measure::Raw, Measure::Centred, Measure::Correlation] {
        let (expected, found) = (compare(&with, measure), compare(&without, measure));
        assert!(found.first_right > 5 && found.ranks == expected.ranks, "{found:?}");
        for (expected, found) in expected.cases.iter().zip(&found.cases) {
            assert_eq!((expected.row, expected.rank), (found.row, found.rank));
            let sigma = dense(&with.predictions, found.row);
            let covariance = sigma[found.predicted * 7 + found.other.class];
            assert!((found.other.covariance - covariance).abs() < 1e-6);
        }
    }
}

/// The numbers of the definition, in f64.
#[test]
fn all_kinds_of_noise_are_added_up_where_predictions_are_not_kept() {
    for noise in [Noise::Diagonal, FULL, Noise::SharedLowRank { rank: 2 }] {
        let (n, k) = (37, 9);
        let case = Case::new(noise, n, k, 17);
        let run = case.run();
        let expected = open(&case).top_pairs(36, &mut |_| {}).unwrap();
        fs::remove_file(run.predictions_path(Split::Test)).unwrap();
        record(&case, 10, false);
        let mut opened = open(&case);
        assert!(!opened.has_examples() && opened.examples().len() == n);
        let found = opened.top_pairs(36, &mut |_| {}).unwrap();
        assert_eq!(found, expected, "{noise:?}");
        let raw = average(&case.predictions);
        let middle = centred(&raw, k);
        for pair in &found.by_centred {
            let at = pair.first * k + pair.second;
            assert!((pair.covariance - raw[at]).abs() < 1e-6, "{pair:?}");
            assert!((pair.centred - middle[at] / 0.49).abs() < 1e-6, "{pair:?}");
            let expected = flip(&case.predictions, pair.first, pair.second);
            let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-6;
            assert!(pair.flip.zip(expected).is_none_or(near), "{pair:?} {expected:?}");
        }
        refused(opened.predicted(&mut |_| {}), &["no complete predictions of the test split"]);
        let mut none = |_| Ok(());
        refused(
            opened.ties(&vec![0; n], Measure::Raw, 1, &mut |_| {}, &mut none).and(
                if noise == Noise::Diagonal {
                    opened.predicted(&mut |_| {}).map(drop)
                } else {
                    Ok(())
                },
            ),
            &["no complete predictions"],
        );
        refused(opened.some_latents(3), &["no loadings of single examples", "loadings_mib to 1"]);
    }
}

#[test]
fn what_needs_the_loadings_of_examples_says_so() {
    let (_, without) = both(random(FULL, 5, 4, 0), Link::Softmax);
    let mut opened = open(&without);
    let words = ["no loadings of single examples", "evaluation.loadings_mib to 1", "aleator eval"];
    refused(opened.latents(0..2), &words);
    refused(opened.between(&[(0, 1); 5], &mut |_| {}), &words);
}

#[test]
fn sums_of_another_run_or_evaluation_are_refused() {
    let file = "predictions/test.covariance.safetensors";
    let (_, without) = both(random(FULL, 5, 4, 0), Link::Softmax);
    let own = fs::read(without.dir().join(file)).unwrap();
    let from = |other: Predictions| {
        let (_, case) = both(other, Link::Softmax);
        fs::copy(case.dir().join(file), without.dir().join(file)).unwrap();
    };
    from(random(FULL, 6, 4, 0));
    refused(try_open(&without), &[file, "(6, 4, 3)", "(5, 4, 3)", "aleator eval"]);
    from(random(FULL, 5, 3, 0));
    refused(try_open(&without), &["(5, 3, 3)"]);
    from(random(Noise::LowRank { rank: 2 }, 5, 4, 0));
    refused(try_open(&without), &["(5, 4, 2)"]);
    from(Predictions { temperature: 0.5, ..random(FULL, 5, 4, 0) });
    refused(try_open(&without), &["does not belong to", "test.safetensors", "0.5", "0.7"]);
    // The same sizes, but other predictions: found when the examples are read.
    let mut other = random(FULL, 5, 4, 0);
    other.log_probs.rotate_right(1);
    from(other);
    let mut opened = open(&without);
    let predicted = opened.predicted(&mut |_| {}).unwrap();
    let mut none = |_| Ok(());
    let ties = opened.ties(&predicted, Measure::Raw, 1, &mut |_| {}, &mut none);
    refused(ties, &["row 0 is of class", "another evaluation", "aleator eval"]);
    // Averages alone do not go with complete predictions.
    record(&without, 5, false);
    refused(try_open(&without), &["does not belong to"]);
    // Half a file is no file.
    fs::write(without.dir().join(file), &own[..own.len() / 2]).unwrap();
    refused(try_open(&without), &[file, "not a complete safetensors file"]);
    fs::remove_file(without.dir().join(file)).unwrap();
    refused(try_open(&without), &["neither loadings nor sums"]);
    fs::write(without.dir().join(file), own).unwrap();
    try_open(&without).unwrap();
}
