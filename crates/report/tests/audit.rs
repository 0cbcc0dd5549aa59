//! Wrong labels from files: what is found, what is written, and what is refused.

use crate::audit_support;
use std::collections::BTreeSet;
use std::fs;

use crate::audit_support::{EXAMPLES, FOLDS, Folds, given, truth};
use aleator_report::audit::{Answer, Audit, analyse};
use aleator_run::{Predictions, RunDir, Split};

fn audit(folds: &Folds) -> Audit {
    analyse(&folds.dirs(), &folds.source, &mut |_| {}).unwrap()
}

fn refusal(folds: &Folds) -> String {
    analyse(&folds.dirs(), &folds.source, &mut |_| {}).unwrap_err().to_string()
}

fn wrong() -> BTreeSet<String> {
    (0..EXAMPLES)
        .filter(|example| given(*example) != truth(*example))
        .map(|it| it.to_string())
        .collect()
}

#[test]
fn wrong_labels_come_first_with_the_right_suggestion() {
    let folds = Folds::new();
    let audit = audit(&folds);
    let wrong = wrong();
    assert_eq!(audit.issues.len(), EXAMPLES);
    assert!(audit.issues.is_sorted_by(|a, b| a.score >= b.score));
    let known = audit.summary.known.unwrap();
    assert_eq!(known.wrong, wrong.len());
    assert!(known.auroc > 0.995 && known.average_precision > 0.95, "{known:?}");
    assert!(known.suggestions_right > 0.95, "{known:?}");
    let first = &audit.issues[0];
    assert!(wrong.contains(&first.id));
    assert_eq!(first.suggested, Answer::Class(truth(first.id.parse().unwrap())));
    assert_eq!(first.path, Some(format!("images/{}.png", first.id).into()));
}

#[test]
fn the_number_of_wrong_labels_is_estimated() {
    let folds = Folds::new();
    let audit = audit(&folds);
    let (estimate, truth) = (audit.summary.wrong, wrong().len() as f64);
    assert!(estimate.low <= truth && truth <= estimate.high, "{estimate:?} for {truth}");
    assert!((estimate.count - truth).abs() < 0.2 * truth, "{estimate:?} for {truth}");
    let marked = audit.issues.iter().filter(|issue| issue.wrong).count();
    assert_eq!(marked, estimate.count.round() as usize);
    assert!(audit.issues[..marked].iter().all(|issue| issue.wrong));
}

#[test]
fn classes_and_pairs_say_what_is_confused() {
    let folds = Folds::new();
    let audit = audit(&folds);
    let top = &audit.pairs[0];
    assert_eq!((top.given, top.truth), (1, 0));
    // Σ₀₁ = −1 before centring, in a rank of one: the two are substitutes.
    assert!(top.correlation.unwrap() < -0.9 && top.covariance.unwrap() < 0.0, "{top:?}");
    assert!(top.flip_probability.unwrap() > 0.0);
    let total: f64 = audit.pairs.iter().map(|pair| pair.count).sum();
    assert!((total - EXAMPLES as f64).abs() < 1e-6, "the joint is of all examples, found {total}");
    let dog = &audit.classes[1];
    assert_eq!(dog.confused_with[0].0, 0);
    assert!((dog.noise_rate - dog.known_noise_rate.unwrap()).abs() < 0.05, "{dog:?}");
    let expected: f64 = audit.classes.iter().map(|class| class.expected).sum();
    assert!((expected - EXAMPLES as f64).abs() < 1e-6);
}

#[test]
fn annotators_are_told_apart() {
    let mut folds = Folds::new();
    folds.source.annotators = ["careful", "careless"].map(String::from).to_vec();
    for (number, example) in folds.source.examples.iter_mut().enumerate() {
        example.votes = vec![(0, truth(number)), (0, truth(number)), (1, given(number))];
    }
    let audit = audit(&folds);
    let names: Vec<&str> = audit.annotators.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["careless", "careful"]);
    let careless = &audit.annotators[0];
    let rate = wrong().len() as f64 / EXAMPLES as f64;
    assert!((careless.error_rate - rate).abs() < 0.01, "{careless:?}");
    assert_eq!(careless.known_error_rate, Some(rate));
    assert_eq!((careless.confuses[0].0, careless.confuses[0].1), (0, 1));
    assert!(audit.annotators[1].error_rate < 0.01);
}

#[test]
fn findings_are_the_same_from_files() {
    let folds = Folds::new();
    let audit = audit(&folds);
    assert!(!Audit::is_at(&folds.out()));
    audit.save(&folds.out()).unwrap();
    assert!(Audit::is_at(&folds.out()));
    let read = Audit::load(&folds.out()).unwrap();
    assert_eq!(read.summary, audit.summary);
    assert_eq!(read.examples, audit.examples);
    assert_eq!(read.issues.len(), audit.issues.len());
    for (read, written) in read.issues.iter().zip(&audit.issues) {
        assert_eq!((&read.id, &read.path), (&written.id, &written.path));
        assert_eq!(
            (read.given, read.suggested, read.truth),
            (written.given, written.suggested, written.truth)
        );
        // To the last bit, so that sorting again keeps the order.
        assert_eq!(
            (read.given_probability, read.suggested_probability, read.score),
            (written.given_probability, written.suggested_probability, written.score)
        );
    }
    let text = fs::read_to_string(folds.out().join("issues.csv")).unwrap();
    assert!(
        text.contains(",'=cat,") && !text.contains(",=cat,"),
        "a class that is a formula is guarded"
    );
}

#[test]
fn threads_do_not_change_a_bit() {
    let folds = Folds::new();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| audit(&folds))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn examples_that_were_not_judged_keep_their_labels() {
    let folds = Folds::new();
    let audit = analyse(&folds.dirs()[1..], &folds.source, &mut |_| {}).unwrap();
    let judged = EXAMPLES - EXAMPLES / FOLDS;
    assert_eq!((audit.issues.len(), audit.summary.examples), (judged, judged));
    assert_eq!(audit.summary.folds, FOLDS - 1);
    // Else training on corrected labels would miss them.
    let labels: Vec<Option<Vec<u32>>> =
        audit.examples.iter().map(|example| example.label.clone()).collect();
    assert!(labels.into_iter().eq((0..EXAMPLES).map(|example| Some(vec![given(example)]))));
}

#[test]
fn without_a_noise_model_there_is_no_covariance() {
    let folds = Folds::new();
    for dir in folds.dirs() {
        let path = dir.join("run.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut info: serde_json::Value = serde_json::from_str(&text).unwrap();
        info["noise"] = serde_json::json!({ "kind": "none" });
        fs::write(&path, info.to_string()).unwrap();
        let path = RunDir::open(&dir).unwrap().predictions_path(Split::Test);
        let predictions = Predictions::load(&path).unwrap();
        Predictions { rank: 0, diag_scale: None, loadings: None, ..predictions }
            .save(&path)
            .unwrap();
    }
    let audit = audit(&folds);
    assert!(audit.summary.known.unwrap().auroc > 0.99);
    assert!(audit.issues.iter().all(|issue| issue.covariance.is_none()));
    assert!(audit.pairs.iter().all(|pair| pair.flip_probability.is_none()));
}

#[test]
fn a_row_of_impossible_labels_spoils_nothing_else() {
    let folds = Folds::new();
    let path = RunDir::open(&folds.dirs()[0]).unwrap().predictions_path(Split::Test);
    let mut predictions = Predictions::load(&path).unwrap();
    predictions.log_probs[..4].fill(f32::NEG_INFINITY);
    predictions.save(&path).unwrap();
    let audit = audit(&folds);
    assert!(audit.issues.iter().all(|issue| issue.score.is_finite()));
    assert!(audit.summary.known.unwrap().auroc > 0.98);
}

#[test]
fn annotations_of_classes_that_the_runs_do_not_know_are_refused() {
    let mut folds = Folds::new();
    folds.source.annotators = vec!["ann".to_string()];
    folds.source.examples[7].votes = vec![(0, 4)];
    let message = refusal(&folds);
    assert!(message.contains("\"7\"") && message.contains("audit them again"), "{message}");
}

#[test]
fn folds_that_do_not_go_together_are_refused() {
    let folds = Folds::new();
    let path = folds.dirs()[1].join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("owl", "hawk")).unwrap();
    assert!(refusal(&folds).contains("their classes are not the same"), "{}", refusal(&folds));
    fs::write(&path, text.replace("5d41", "5d42")).unwrap();
    assert!(refusal(&folds).contains("their data differ"), "{}", refusal(&folds));
}

#[test]
fn a_fold_without_predictions_is_named() {
    let folds = Folds::new();
    let run = RunDir::open(&folds.dirs()[2]).unwrap();
    fs::remove_file(run.predictions_path(Split::Test)).unwrap();
    let message = refusal(&folds);
    assert!(message.contains("fold-2") && message.contains("aleator eval"), "{message}");
}

#[test]
fn predictions_of_other_examples_are_refused() {
    let folds = Folds::new();
    let run = RunDir::open(&folds.dirs()[0]).unwrap();
    audit_support::predictions(&[0, 1]).save(&run.predictions_path(Split::Test)).unwrap();
    let message = refusal(&folds);
    assert!(message.contains("holds 2 examples of 4 classes"), "{message}");
}

#[test]
fn examples_that_left_the_data_or_came_twice_are_named() {
    let mut folds = Folds::new();
    let last = folds.source.examples.pop().unwrap();
    let message = refusal(&folds);
    assert!(message.contains(&format!("{:?} is not in the training data", last.id)), "{message}");
    folds.source.examples.push(last);
    let run = RunDir::open(&folds.dirs()[0]).unwrap();
    let mut rows = run.read_examples().unwrap();
    rows[0].id = "1".to_string();
    run.write_examples(rows).unwrap();
    assert!(refusal(&folds).contains("\"1\" is in two folds"), "{}", refusal(&folds));
}

#[test]
fn means_that_are_not_finite_are_refused() {
    let folds = Folds::new();
    let path = RunDir::open(&folds.dirs()[0]).unwrap().predictions_path(Split::Test);
    let mut predictions = Predictions::load(&path).unwrap();
    predictions.mean[9] = f32::INFINITY;
    predictions.save(&path).unwrap();
    let message = refusal(&folds);
    assert!(message.contains("\"mean\"") && message.contains("row 2"), "{message}");
}

#[test]
fn a_folder_without_an_audit_says_what_makes_one() {
    let folds = Folds::new();
    let message = Audit::load(&folds.out()).unwrap_err().to_string();
    assert!(message.contains("audit.json") && message.contains("aleator audit"), "{message}");
}

#[test]
fn damaged_tables_are_named_with_their_line() {
    let folds = Folds::new();
    audit(&folds).save(&folds.out()).unwrap();
    let path = folds.out().join("issues.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen(",yes,", ",perhaps,", 1)).unwrap();
    let message = Audit::load(&folds.out()).unwrap_err().to_string();
    assert!(message.contains("issues.csv: line 2: column wrong must be yes or no"), "{message}");
    fs::write(&path, text.replacen("dog", "cow", 1)).unwrap();
    let message = Audit::load(&folds.out()).unwrap_err().to_string();
    assert!(message.contains("one of the audit's classes, found \"cow\""), "{message}");
    fs::write(&path, "id,label\n").unwrap();
    let message = Audit::load(&folds.out()).unwrap_err().to_string();
    assert!(message.contains("the columns must be"), "{message}");
}

#[test]
fn an_audit_of_another_format_is_refused() {
    let folds = Folds::new();
    audit(&folds).save(&folds.out()).unwrap();
    let path = folds.out().join("audit.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"format\": 1", "\"format\": 9")).unwrap();
    assert!(Audit::load(&folds.out()).unwrap_err().to_string().contains("format 9"));
}
