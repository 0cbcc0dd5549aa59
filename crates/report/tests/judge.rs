//! Labels judged by arrays: the same as by files, and what is refused.

use std::path::PathBuf;

use aleator_report::audit::{
    Answer, Audit, AuditInput, AuditLabels, AuditSettings, Consensus, Issue, Judgement,
    ModelOutput, Source, SourceExample, analyse, judge,
};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, Predictions, RunDir, RunInfo, Split, SplitCounts,
};

use crate::audit_support::{CLASSES, EXAMPLES, FOLDS, Folds, given, predictions, truth, uniform};

fn judged(input: AuditInput) -> Judgement {
    judge(input, &AuditSettings::STANDARD, &mut |_| {}).unwrap()
}

fn refusal(input: AuditInput) -> String {
    judge(input, &AuditSettings::STANDARD, &mut |_| {}).unwrap_err().to_string()
}

fn names() -> Vec<String> {
    ["=cat", "dog", "<b>fox</b>", "owl"].map(String::from).to_vec()
}

/// The examples from the last to the first, which is the order within each fold's file.
fn order() -> Vec<usize> {
    (0..EXAMPLES).rev().collect()
}

/// The numbers of the folds as arrays.
fn arrays() -> AuditInput {
    let order = order();
    AuditInput {
        class_names: names(),
        labels: AuditLabels::Single(order.iter().map(|example| given(*example)).collect()),
        output: ModelOutput::Predictions(predictions(&order)),
        ids: Some(order.iter().map(usize::to_string).collect()),
        paths: Some(order.iter().map(|it| PathBuf::from(format!("images/{it}.png"))).collect()),
        clean_labels: Some(order.iter().map(|example| truth(*example)).collect()),
        folds: Some(order.iter().map(|example| example % FOLDS).collect()),
    }
}

/// Probabilities alone.
fn probabilities() -> AuditInput {
    let order = order();
    let labels = AuditLabels::Single(order.iter().map(|example| given(*example)).collect());
    let log_probs = ModelOutput::LogProbs(predictions(&order).log_probs);
    let clean_labels = Some(order.iter().map(|example| truth(*example)).collect());
    AuditInput { clean_labels, ..AuditInput::new(names(), labels, log_probs) }
}

fn log_probs(input: &mut AuditInput) -> &mut Vec<f32> {
    match &mut input.output {
        ModelOutput::LogProbs(values) => values,
        ModelOutput::Predictions(predictions) => &mut predictions.log_probs,
    }
}

/// Files and arrays name the data differently; everything else must be the same.
fn assert_same(mut files: Audit, arrays: &Audit) {
    files.summary.fingerprint.clone_from(&arrays.summary.fingerprint);
    assert_eq!(&files, arrays);
}

#[test]
fn arrays_are_judged_as_the_folds_that_hold_the_same_numbers() {
    let mut folds = Folds::new();
    folds.source.examples.reverse();
    let files = analyse(&folds.dirs(), &folds.source, &mut |_| {}).unwrap();
    let arrays = judged(arrays());
    assert!(files.issues[0].covariance.is_some() && files.pairs[0].flip_probability.is_some());
    assert_same(files, &arrays.audit);
}

#[test]
fn votes_in_arrays_are_judged_as_those_of_folds() {
    let votes = |example: usize| vec![(0, truth(example)), (1, given(example))];
    let mut folds = Folds::new();
    folds.source.examples.reverse();
    folds.source.annotators = ["ann", "bob"].map(String::from).to_vec();
    for example in &mut folds.source.examples {
        example.votes = votes(example.id.parse().unwrap());
    }
    let files = analyse(&folds.dirs(), &folds.source, &mut |_| {}).unwrap();
    let labels = AuditLabels::Votes {
        votes: order().into_iter().map(votes).collect(),
        annotators: folds.source.annotators.clone(),
        labels: Some(order().into_iter().map(given).collect()),
    };
    let arrays = judged(AuditInput { labels, ..arrays() });
    assert_eq!(files.annotators.len(), 2);
    assert_same(files, &arrays.audit);
}

/// Which classes are on: the true one and the next, or with one example in ten another one.
fn on(example: usize) -> Vec<u32> {
    let flipped = u32::from(uniform(3, example, 0) < 0.1);
    let mut on = vec![truth(example), (truth(example) + 1 + flipped) % CLASSES as u32];
    on.sort_unstable();
    on
}

fn multilabel_predictions() -> Predictions {
    let mean: Vec<f32> = (0..EXAMPLES)
        .flat_map(|example| {
            (0..CLASSES).map(move |class| {
                let step = (class + CLASSES - truth(example) as usize) % CLASSES;
                let sign = if step < 2 { 2.0 } else { -2.0 };
                (sign + uniform(2, example, class)) as f32
            })
        })
        .collect();
    let log = |sign: f32| mean.iter().map(|mean| -(-sign * mean).exp().ln_1p()).collect();
    Predictions {
        classes: CLASSES,
        rank: 0,
        temperature: 1.0,
        log_probs: log(1.0),
        log_probs_off: Some(log(-1.0)),
        mean: mean.clone(),
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    }
}

#[test]
fn entries_in_arrays_are_judged_as_those_of_a_fold() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("fold-0");
    let info = RunInfo {
        format: FORMAT,
        version: "0.1.0".to_string(),
        seed: 0,
        fingerprint: "5d41".to_string(),
        link: Link::Sigmoid,
        likelihood: Default::default(),
        noise: Noise::None,
        class_names: names(),
        input_shape: vec![4],
        feature_names: None,
        examples: SplitCounts { train: 1, validation: 1, test: EXAMPLES },
        set_aside: vec![],
        pretrained: None,
    };
    let run = RunDir::create(&dir, &CreateRun { recipe: String::new(), info }).unwrap();
    let row = |example: usize| ExampleRow {
        id: example.to_string(),
        split: Split::Test,
        label: Some(on(example)),
        clean_label: None,
    };
    run.write_examples((0..EXAMPLES).map(row)).unwrap();
    multilabel_predictions().save(&run.predictions_path(Split::Test)).unwrap();
    let example = |example: usize| SourceExample {
        id: example.to_string(),
        label: on(example),
        path: None,
        votes: vec![],
    };
    let source = Source { examples: (0..EXAMPLES).map(example).collect(), annotators: vec![] };
    let files = analyse(&[dir], &source, &mut |_| {}).unwrap();

    let labels = AuditLabels::Multilabel((0..EXAMPLES).map(on).collect());
    let output = ModelOutput::Predictions(multilabel_predictions());
    let input = AuditInput {
        folds: Some(vec![0; EXAMPLES]),
        ..AuditInput::new(names(), labels.clone(), output)
    };
    assert_same(files, &judged(input).audit);

    // From the probabilities of being on alone, the means are found again up to rounding.
    let output = ModelOutput::LogProbs(multilabel_predictions().log_probs);
    let alone = judged(AuditInput::new(names(), labels, output));
    assert_eq!(alone.posteriors[7].len(), CLASSES);
    let first = &alone.audit.issues[0];
    let example: usize = first.id.parse().unwrap();
    let (class, is_on) = (first.given.class(), matches!(first.given, Answer::On(_)));
    let true_on = [truth(example), (truth(example) + 1) % CLASSES as u32].contains(&class);
    assert_ne!(is_on, true_on, "{first:?}");
}

/// Three classes of which a model knows nothing: the second is on with the first, the third is on
/// without it. One entry in twenty is flipped.
#[test]
fn labels_of_classes_that_go_together_show_errors_that_no_model_sees() {
    const ROWS: usize = 600;
    let flipped = |row: usize, class: usize| uniform(21, row, class) < 0.05;
    let is_on = |row: usize, class: usize| {
        let first = uniform(20, row, 0) < 0.5;
        (if class == 2 { !first } else { first }) != flipped(row, class)
    };
    let labels = (0..ROWS).map(|row| (0..3).filter(|class| is_on(row, *class as usize)).collect());
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    // The model is unsure at random.
    let log_probs = (0..ROWS * 3).map(|at| (0.45 + 0.1 * uniform(22, at, 0)).ln() as f32).collect();
    let labels = AuditLabels::Multilabel(labels.collect());
    let found = judged(AuditInput::new(names, labels, ModelOutput::LogProbs(log_probs))).audit;
    let wrong = |issue: &&Issue| flipped(issue.id.parse().unwrap(), issue.given.class() as usize);
    let all = found.issues.iter().filter(wrong).count();
    let first = found.issues.iter().take(all).filter(wrong).count();
    // Two flips in a row look like one, of the third class.
    assert!(first * 10 >= all * 8, "{first} of {all} flips are among the first {all}");
    let count = found.summary.wrong.count;
    assert!((count - all as f64).abs() < 0.3 * all as f64, "{count} for {all}");
}

#[test]
fn probabilities_alone_find_wrong_labels() {
    let judgement = judged(probabilities());
    let summary = &judgement.audit.summary;
    let known = summary.known.unwrap();
    assert!(known.auroc > 0.99 && known.average_precision > 0.95, "{known:?}");
    assert!(known.suggestions_right > 0.95, "{known:?}");
    assert_eq!((summary.folds, summary.noise), (0, Noise::None));
    assert_eq!(summary.settings, Some(AuditSettings::STANDARD));
    assert_eq!(summary.self_confidence.as_ref().unwrap().len(), CLASSES);
    assert!(judgement.audit.issues.iter().all(|issue| issue.covariance.is_none()));
    let matrix = judgement.posterior_matrix();
    assert_eq!(matrix.len(), EXAMPLES * CLASSES);
    for row in matrix.chunks_exact(CLASSES) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
    }
    let first = &judgement.audit.issues[0];
    let row: usize = first.id.parse().unwrap();
    let given = matrix[row * CLASSES + first.given.class() as usize];
    assert_eq!(given, first.given_probability);
}

#[test]
fn threads_do_not_change_a_bit() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| judged(probabilities()))
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn impossible_classes_and_empty_classes_are_judged() {
    // Certain probabilities: the label is right or impossible.
    let certain = |labels: Vec<u32>, names: &[&str]| {
        let logs = [1.0_f32, 0.0, 1.0, 0.0, 0.0, 1.0].map(f32::ln);
        let classes = names.len();
        let rows = logs.chunks_exact(2).flat_map(|row| {
            let padding = std::iter::repeat_n(f32::NEG_INFINITY, classes - 2);
            row.iter().copied().chain(padding).collect::<Vec<f32>>()
        });
        let names = names.iter().map(|name| name.to_string()).collect();
        AuditInput::new(names, AuditLabels::Single(labels), ModelOutput::LogProbs(rows.collect()))
    };
    for names in [&["cat", "dog"][..], &["cat", "dog", "owl"]] {
        let audit = judged(certain(vec![0, 1, 1], names)).audit;
        let first = &audit.issues[0];
        assert!(first.id == "1" && first.score > 0.99, "{first:?}");
        assert_eq!((first.given, first.suggested), (Answer::Class(1), Answer::Class(0)));
        assert!(audit.issues[1..].iter().all(|issue| issue.score < 0.01), "{:?}", audit.issues);
        assert!(audit.issues.iter().all(|issue| issue.score.is_finite()));
    }
}

#[test]
fn the_majority_stands_for_the_votes_and_the_model_breaks_ties() {
    let log_probs = [[0.3_f32, 0.7], [0.3, 0.7]].concat().iter().map(|p| p.ln()).collect();
    let labels = AuditLabels::Votes {
        votes: vec![vec![(0, 0), (1, 1)], vec![(0, 0), (1, 0)]],
        annotators: ["ann", "bob"].map(String::from).to_vec(),
        labels: None,
    };
    let names = ["cat", "dog"].map(String::from).to_vec();
    let audit = judged(AuditInput::new(names, labels, ModelOutput::LogProbs(log_probs))).audit;
    let labels: Vec<_> = audit.examples.iter().map(|row| row.label.clone().unwrap()).collect();
    assert_eq!(labels, [[1], [0]]);
    assert_eq!(audit.annotators.len(), 2);
}

/// Votes of ten annotators on the examples of [`probabilities`], three on each: the first four are
/// right 19 times in 20, the others name any class.
fn crowd() -> AuditInput {
    let vote = |example: usize, place: usize| {
        let annotator = (example / 10 + 3 * place + example % 10) % 10;
        let (draw, class) = (uniform(7, example, place), uniform(8, example, place));
        let spammed = (class * CLASSES as f64) as u32;
        let label = if annotator < 4 && draw < 0.95 { truth(example) } else { spammed };
        (annotator as u32, label)
    };
    let votes = order().into_iter().map(|it| (0..3).map(|at| vote(it, at)).collect()).collect();
    let annotators = (0..10).map(|at| format!("annotator {at}")).collect();
    AuditInput { labels: AuditLabels::Votes { votes, annotators, labels: None }, ..probabilities() }
}

#[test]
fn the_consensus_trusts_those_who_are_right() {
    let audit = judged(crowd()).audit;
    // A spammer is wrong three times in four, the others by one in twenty and that by three in four.
    for found in &audit.annotators {
        let number: usize = found.name.split(' ').next_back().unwrap().parse().unwrap();
        let expected = if number < 4 { 0.0375 } else { 0.75 };
        assert!((found.error_rate - expected).abs() < 0.12, "{found:?}");
        assert!((found.error_rate - found.known_error_rate.unwrap()).abs() < 0.05, "{found:?}");
    }
    let wrong = |of: &dyn Fn(&Consensus) -> u32| {
        let truths = order().into_iter().map(truth);
        audit.consensus.iter().zip(truths).filter(|(it, truth)| of(it) != *truth).count()
    };
    let (consensus, majority) = (wrong(&|it| it.label), wrong(&|it| it.majority));
    assert!(consensus * 5 < majority, "{consensus} and {majority} of {EXAMPLES} are wrong");
    let concentration = audit.summary.annotator_concentration.unwrap();
    assert!(concentration < 10.0, "annotators differ, but a row counts {concentration} as common");
}

#[test]
fn the_order_of_annotators_does_not_matter() {
    let mut turned = crowd();
    if let AuditLabels::Votes { votes, annotators, .. } = &mut turned.labels {
        annotators.reverse();
        votes.iter_mut().flatten().for_each(|(by, _)| *by = 9 - *by);
    }
    let (here, there) = (judged(crowd()).audit, judged(turned).audit);
    for (a, b) in here.consensus.iter().zip(&there.consensus) {
        let (p, q) = (a.probability.unwrap(), b.probability.unwrap());
        assert!(a.label == b.label && (p - q).abs() < 1e-6, "{a:?} {b:?}");
    }
}

#[test]
fn input_that_does_not_fit_is_refused_with_field_row_and_expectation() {
    let check = |change: &dyn Fn(&mut AuditInput), words: &[&str]| {
        let mut input = probabilities();
        change(&mut input);
        let message = refusal(input);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    let single = AuditLabels::Single;
    check(&|it| log_probs(it)[4 * 7 + 2] = f32::NAN, &["log_probs", "row 7, class 2", "NaN"]);
    check(&|it| log_probs(it)[4 * 7 + 2] = 3.0, &["row 7, class 2", "at most 1", "logits"]);
    check(&|it| log_probs(it)[4 * 7..4 * 8].fill(-0.3), &["row 7", "sum to 1", "2.96", "softmax"]);
    check(&|it| log_probs(it)[4 * 7..4 * 8].fill(f32::NEG_INFINITY), &["row 7", "found 0"]);
    check(&|it| log_probs(it).truncate(2399), &["[600, 4]", "2399 numbers"]);
    check(&|it| it.labels = single(vec![]), &["labels", "at least one example"]);
    check(&|it| it.labels = single(vec![4; 600]), &["row 0", "class 4 must be below 4"]);
    check(&|it| it.clean_labels = Some(vec![0]), &["clean_labels", "600 labels, found 1"]);
    check(&|it| it.clean_labels = Some(vec![9; 600]), &["clean_labels", "class 9"]);
    check(&|it| it.class_names.truncate(1), &["class_names", "at least 2", "found 1"]);
    check(&|it| it.class_names[3] = "dog".to_string(), &["class_names", "rows 1 and 3", "differ"]);
    check(&|it| it.class_names[2].clear(), &["class_names", "row 2 is empty"]);
    check(&|it| it.ids = Some(vec!["a".to_string(); 600]), &["ids", "rows 0 and 1", "\"a\""]);
    check(&|it| it.folds = Some(vec![1; 600]), &["folds", "fold 0 of 2 has no example"]);
    check(&|it| it.folds = Some(vec![600; 600]), &["folds", "row 0", "numbered from 0"]);
    let votes = |votes: Vec<(u32, u32)>| AuditLabels::Votes {
        votes: vec![votes; 600],
        annotators: vec!["ann".to_string()],
        labels: None,
    };
    check(&|it| it.labels = votes(vec![(0, 7)]), &["row 0", "class 7"]);
    check(&|it| it.labels = votes(vec![(2, 0)]), &["row 0", "annotator 2 must be below 1"]);
    check(&|it| it.labels = votes(vec![]), &["row 0", "no vote"]);
    let multilabel = AuditLabels::Multilabel(vec![vec![0]; 600]);
    check(&|it| it.labels = multilabel.clone(), &["clean_labels", "one class only"]);
}

#[test]
fn predictions_that_do_not_fit_are_refused() {
    let check = |change: &dyn Fn(&mut Predictions), words: &[&str]| {
        let mut input = arrays();
        if let ModelOutput::Predictions(predictions) = &mut input.output {
            change(predictions);
        }
        let message = refusal(input);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    check(&|it| it.mean[9] = f32::INFINITY, &["\"mean\"", "row", "holds inf, not a finite number"]);
    check(&|it| it.mean[9] = f32::NAN, &["\"mean\"", "row"]);
    check(&|it| it.mean.truncate(5), &["\"mean\"", "[600, 4]", "found 5 numbers"]);
    check(&|it| it.classes = 3, &["of 4 classes, found 3"]);
    check(&|it| it.temperature = 0.0, &["temperature"]);
    check(&|it| it.log_probs_off = Some(it.log_probs.clone()), &["log_probs_off"]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let settings = AuditSettings { candidates: 0, ..AuditSettings::STANDARD };
    let message = judge(probabilities(), &settings, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(message, "settings: candidates must be at least 2");
}
