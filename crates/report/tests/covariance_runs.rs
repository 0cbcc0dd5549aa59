//! Comparisons of runs, the files they write, and runs that cannot be analysed.

use std::fs;

use crate::covariance_support::{Case, dense, random};
use aleator_report::ReportError;
use aleator_report::covariance::{
    Comparison, Covariances, Measure, write_cases, write_pairs, write_ranks, write_ties,
};
use aleator_run::{Link, Noise, Predictions, RunDir, Split};

const FULL: Noise = Noise::LowRank { rank: 2 };

/// Log-probabilities whose largest is of these classes.
fn say(predictions: &mut Predictions, classes: &[usize]) {
    predictions.log_probs.fill(-3.0);
    for (row, class) in classes.iter().enumerate() {
        predictions.log_probs[row * predictions.classes + class] = -0.1;
    }
}

/// A run with noise and one without, of five classes and ten examples, whose labels are 0 to 4
/// twice over.
fn two() -> (Case, Case) {
    let mut noisy = random(FULL, 10, 5, 4);
    say(&mut noisy, &[0, 1, 2, 3, 0, 0, 1, 2, 0, 4]);
    let mut plain = random(Noise::None, 10, 5, 5);
    say(&mut plain, &[0, 3, 4, 3, 4, 1, 1, 0, 0, 3]);
    (Case::of(noisy, FULL, Link::Softmax), Case::of(plain, Noise::None, Link::Softmax))
}

fn compare(first: &Case, other: &Case, measure: Measure) -> Result<Comparison, ReportError> {
    let run = RunDir::open(&first.dir()).unwrap_or_else(|_| first.run());
    let other = RunDir::open(&other.dir()).unwrap_or_else(|_| other.run());
    let mut opened = Covariances::open(&run, Split::Test)?;
    let predicted = opened.predicted(&mut |_| {})?;
    opened.against(&predicted, &other, measure, &mut |_| {})
}

fn refused<T>(result: Result<T, ReportError>, words: &[&str]) {
    let Err(error) = result else { panic!("{words:?} is not refused") };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

#[test]
fn mistakes_of_the_other_are_ranked_by_their_covariance_with_the_right_class() {
    let (noisy, plain) = two();
    let found = compare(&noisy, &plain, Measure::Raw).unwrap();
    let counts = (found.examples, found.both_right, found.first_right, found.other_right);
    assert_eq!(counts, (10, 3, 5, 1));
    assert_eq!(found.both_wrong, 1);
    let mut rows: Vec<usize> = found.cases.iter().map(|case| case.row).collect();
    let sizes: Vec<f64> = found.cases.iter().map(|case| case.other.covariance.abs()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b));
    for case in &found.cases {
        let sigma = dense(&noisy.predictions, case.row);
        let with = |class: usize| sigma[case.predicted * 5 + class];
        assert!((case.other.covariance - with(case.other.class)).abs() < 1e-6);
        let larger = |class: &usize| {
            *class != case.predicted && with(*class).abs() > with(case.other.class).abs()
        };
        assert_eq!(case.rank, 1 + (0..5).filter(larger).count());
    }
    rows.sort_unstable();
    assert_eq!(rows, [1, 2, 5, 7, 9]);
    assert_eq!(found.ranks.counts.len(), 4);
    assert_eq!(found.ranks.total(), 5);
    for rank in 1..=4 {
        let with_rank = found.cases.iter().filter(|case| case.rank == rank).count();
        assert_eq!(found.ranks.counts[rank - 1], with_rank);
    }
}

#[test]
fn examples_are_matched_by_id_and_judged_by_the_true_label() {
    let (mut noisy, mut plain) = two();
    let expected = compare(&noisy, &plain, Measure::Centred).unwrap();
    fs::remove_dir_all(plain.dir()).unwrap();
    fs::remove_dir_all(noisy.dir()).unwrap();
    plain.examples.reverse();
    let mut rows: Vec<&[f32]> = plain.predictions.log_probs.chunks(5).collect();
    rows.reverse();
    plain.predictions.log_probs = rows.concat();
    for case in [&mut noisy, &mut plain] {
        for row in &mut case.examples {
            row.clean_label = row.label.take();
            row.label = Some(vec![4]);
        }
    }
    assert_eq!(compare(&noisy, &plain, Measure::Centred).unwrap(), expected);
}

#[test]
fn examples_without_a_label_do_not_count() {
    let (mut noisy, mut plain) = two();
    noisy.examples[1].label = None;
    plain.examples[1].label = None;
    let found = compare(&noisy, &plain, Measure::Correlation).unwrap();
    assert_eq!((found.examples, found.first_right), (9, 4));
}

#[test]
fn runs_of_other_classes_or_examples_are_refused() {
    let (noisy, mut plain) = two();
    plain.info.class_names[2] = "fox".to_string();
    refused(compare(&noisy, &plain, Measure::Raw), &["class 2 is \"class 2\" and \"fox\""]);
    let (noisy, _) = two();
    let fewer = Case::new(Noise::None, 10, 4, 0);
    refused(compare(&noisy, &fewer, Measure::Raw), &["5 and 4 classes", "cannot be compared with"]);
    let (noisy, mut plain) = two();
    plain.examples[3].id = "elsewhere".to_string();
    refused(compare(&noisy, &plain, Measure::Raw), &["\"example 3\" is in the first only"]);
    let (noisy, _) = two();
    let more = Case::new(Noise::None, 11, 5, 0);
    refused(compare(&noisy, &more, Measure::Raw), &["\"example 10\" is in the second only"]);
    let (noisy, mut plain) = two();
    plain.examples[3].label = Some(vec![0]);
    refused(compare(&noisy, &plain, Measure::Raw), &["\"example 3\" has another label"]);
    let (noisy, mut plain) = two();
    plain.examples[3].id = "example 4".to_string();
    refused(compare(&noisy, &plain, Measure::Raw), &["\"example 4\" occurs twice"]);
    let diagonal = Case::new(Noise::Diagonal, 10, 5, 0);
    let (_, plain) = two();
    refused(compare(&diagonal, &plain, Measure::Centred), &["\"diagonal\"", "head.noise"]);
}

#[test]
fn runs_without_a_covariance_say_why_and_what_to_do() {
    let open = |case: &Case| Covariances::open(&case.run(), Split::Test);
    // Deviation D18.
    let several = Case::of(random(FULL, 4, 3, 0), FULL, Link::Sigmoid);
    refused(open(&several), &["no covariance", "\"sigmoid\"", "variance of each class alone"]);
    let none = Case::new(Noise::None, 4, 3, 0);
    refused(open(&none), &["no covariance", "head.noise = \"none\"", "\"full\" or \"shared\""]);
    let mut dropped = Case::new(FULL, 4, 3, 0);
    (dropped.predictions.loadings, dropped.predictions.rank) = (None, 0);
    refused(open(&dropped), &["neither loadings nor sums", "aleator eval"]);
    // More pairs of classes than are added up.
    let mut many = Case::new(FULL, 2, 7000, 0);
    (many.predictions.loadings, many.predictions.rank) = (None, 0);
    refused(open(&many), &["no loadings", "evaluation.loadings_mib to 1", "7000 classes"]);
    let mut averaged = Case::new(FULL, 4, 3, 0);
    averaged.predictions = random(Noise::None, 4, 3, 0);
    let run = averaged.run();
    refused(Covariances::open(&run, Split::Test), &["lack diag_scale"]);
    run.write_json("ensemble.json", &serde_json::json!({ "members": ["a/seed-0"] })).unwrap();
    refused(Covariances::open(&run, Split::Test), &["an ensemble", "a/seed-0"]);
    refused(Covariances::open(&run, Split::Validation), &["no predictions of the validation"]);
}

#[test]
fn predictions_that_do_not_belong_to_the_run_are_refused() {
    let open = |case: &Case| Covariances::open(&case.run(), Split::Test);
    let mut fewer = Case::new(FULL, 4, 3, 0);
    fewer.examples.pop();
    refused(open(&fewer), &["test.safetensors", "4 examples of 3 classes", "3 of 3"]);
    let mut empty = Case::new(FULL, 0, 3, 0);
    empty.examples.clear();
    refused(open(&empty), &["holds no examples"]);
    let mut other = Case::new(FULL, 4, 3, 0);
    other.info.noise = Noise::SharedLowRank { rank: 2 };
    refused(open(&other), &["does not hold the noise", "shared"]);
    let mut rank = Case::new(FULL, 4, 3, 0);
    rank.info.noise = Noise::LowRank { rank: 3 };
    refused(open(&rank), &["does not hold the noise"]);
}

#[test]
fn numbers_that_are_not_finite_are_named_by_their_row() {
    for spoil in [
        (|it: &mut Predictions| it.mean[7] = f32::INFINITY) as fn(&mut Predictions),
        |it| it.diag_scale.as_mut().unwrap()[7] = f32::INFINITY,
        |it| it.loadings.as_mut().unwrap()[14] = f32::NEG_INFINITY,
    ] {
        let mut case = Case::new(FULL, 4, 3, 0);
        spoil(&mut case.predictions);
        let mut opened = Covariances::open(&case.run(), Split::Test).unwrap();
        refused(opened.top_pairs(3, &mut |_| {}), &["test.safetensors", "row 2", "inf"]);
    }
}

#[test]
fn matrices_of_very_many_classes_are_refused() {
    let case = Case::new(Noise::Diagonal, 1, 2049, 0);
    let mut opened = Covariances::open(&case.run(), Split::Test).unwrap();
    refused(opened.average_covariance(&mut |_| {}), &["2049 classes", "the limit is 2048"]);
    assert_eq!(opened.top_pairs(2, &mut |_| {}).unwrap().by_centred.len(), 2);
}

#[test]
fn tables_are_csv_that_no_spreadsheet_computes() {
    let (mut noisy, mut plain) = two();
    for case in [&mut noisy, &mut plain] {
        case.info.class_names[1] = "=SUM(A1)".to_string();
        case.info.class_names[2] = "ten, gallon".to_string();
        case.examples[1].id = "-cmd".to_string();
    }
    let names = noisy.info.class_names.clone();
    let comparison = compare(&noisy, &plain, Measure::Raw).unwrap();
    let mut opened = Covariances::open(&RunDir::open(&noisy.dir()).unwrap(), Split::Test).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let pairs = opened.top_pairs(10, &mut |_| {}).unwrap();
    write_pairs(&path("pairs.csv"), &pairs, &names).unwrap();
    write_cases(&path("against.csv"), &comparison.cases, &noisy.examples, &names).unwrap();
    write_ranks(&path("ranks.csv"), &comparison.ranks).unwrap();
    let predicted = opened.predicted(&mut |_| {}).unwrap();
    let ties = path("examples.csv");
    write_ties(&ties, &noisy.examples, &names, |add| {
        opened.ties(&predicted, Measure::Raw, 2, &mut |_| {}, &mut |ties| Ok(add(&ties)?))
    })
    .unwrap();
    let lines = |name: &str| -> Vec<String> {
        fs::read_to_string(path(name)).unwrap().lines().map(str::to_string).collect()
    };
    let pairs = lines("pairs.csv");
    assert_eq!(pairs.len(), 1 + 3 * 10);
    assert!(pairs[0].starts_with("ranked_by,position,class_a,class_b,covariance,"));
    assert!(pairs.iter().any(|line| line.contains(",'=SUM(A1),")), "{pairs:?}");
    assert!(pairs.iter().any(|line| line.contains(",\"ten, gallon\",")), "{pairs:?}");
    let against = lines("against.csv");
    assert_eq!(against.len(), 6);
    assert!(against.iter().any(|line| line.starts_with("'-cmd,'=SUM(A1),'=SUM(A1),class 3,")));
    let ranks = lines("ranks.csv");
    assert_eq!(ranks[0], "rank,examples,share,cumulative_share,share_at_random");
    assert!(ranks[4].ends_with(",1.000000,0.250000"), "{ranks:?}");
    assert_eq!(lines("examples.csv").len(), 1 + 10 * 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left over");
}
