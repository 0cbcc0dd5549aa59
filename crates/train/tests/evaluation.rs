//! Evaluation and prediction: which labels predictions are compared with, and what is written.

use std::fs;
use std::sync::atomic::AtomicBool;

use crate::support::{DIGITS, Files, RECIPE, Trial, adam, column, cycle, npy};
use aleator_data::Ids;
use aleator_metrics::classification;
use aleator_run::recipe::EvaluatedWeights;
use aleator_run::{RunDir, Split};
use aleator_train::{EvaluateSettings, Job, Predictor, evaluate, finish_run};

#[test]
fn predictions_do_not_depend_on_the_size_of_batches() {
    let networks: [&[&str]; 3] = [
        &["network.kind=none"],
        &["network.kind=mlp", "network.hidden=[20]"],
        &["network.kind=conv", "network.channels=[3,5]"],
    ];
    for network in networks {
        let sets = [DIGITS, "head.noise=full", "head.rank=2", "schedule.epochs=1"];
        let sets: Vec<&str> = sets.into_iter().chain(network.iter().copied()).collect();
        let mut trial = Trial::new(RECIPE, &sets);
        trial.train();
        let mut written = |batch: usize| {
            trial.recipe.evaluation.batch = batch;
            trial.evaluate(EvaluateSettings::default()).unwrap();
            fs::read(trial.run.predictions_path(Split::Validation)).unwrap()
        };
        let whole = written(1000);
        for batch in [1, 7, 64] {
            assert!(written(batch) == whole, "batches of {batch}, {network:?}");
        }
    }
}

#[test]
fn clean_labels_are_held_against_the_same_predictions() {
    let sets = [DIGITS, "data.noise.kind=symmetric", "data.noise.rate=0.3", "data.noise.seed=0"];
    let sets: Vec<&str> =
        sets.into_iter().chain(["data.test.fraction=0.2", "data.test.seed=1"]).collect();
    let trial = Trial::new(RECIPE, &sets);
    let evaluation = trial.finish();
    let split = &trial.data.validation;
    let log_probs = trial.predictions(Split::Validation).log_probs;
    let top1 = |labels: &[u32]| classification::top_k_accuracy(&log_probs, 10, labels, 1);
    let clean = split.clean_labels.as_ref().unwrap();
    assert_eq!(evaluation.validation.clean.unwrap().top1, top1(clean));
    let given = split.labels.hard(0, &split.ids).unwrap();
    assert_eq!(evaluation.validation.given.top1, top1(&given));
    assert_ne!(*clean, given);
    assert!(evaluation.test.unwrap().clean.is_none(), "test labels are never made wrong");
    let rows = trial.run.read_examples().unwrap();
    let of_validation: Vec<_> = rows.iter().filter(|row| row.split == Split::Validation).collect();
    assert_eq!(of_validation.len(), split.len());
    for ((row, label), clean) in of_validation.iter().zip(&given).zip(clean) {
        assert_eq!(row.label, Some(vec![*label]));
        assert_eq!(row.clean_label, Some(vec![*clean]));
    }
}

/// A table with a column for each of three classes.
fn table(rows: impl Iterator<Item = [f32; 3]>) -> String {
    rows.fold("a,b,c\n".to_string(), |text, [a, b, c]| format!("{text}{a},{b},{c}\n"))
}

#[test]
fn several_labels_have_an_average_precision() {
    let files = Files::new();
    let classes = cycle(40);
    let hot = |class: &usize| [0, 1, 2].map(|k| if k == *class || k == 2 { 1.0 } else { 0.0 });
    let source = files.source(&classes, &table(classes.iter().map(hot)));
    for noise in ["head.noise=none", "head.noise=full"] {
        let sets = ["head.link=sigmoid", "data.label_kind=multi-hot", "head.rank=2", noise];
        let sets: Vec<&str> = sets.into_iter().chain(["schedule.epochs=20"]).collect();
        let trial = Trial::on(RECIPE, &source, &sets);
        let evaluation = trial.finish();
        let gap = evaluation.validation.given.gap.unwrap();
        assert!(gap > 0.9, "{noise}: {gap}");
        let predictions = trial.predictions(Split::Validation);
        let off = predictions.log_probs_off.unwrap();
        for (on, off) in predictions.log_probs.iter().zip(&off) {
            let sum = on.exp() + off.exp();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
}

#[test]
fn one_class_that_is_on_or_off_is_enough_for_the_sigmoid_link() {
    let files = Files::new();
    let classes: Vec<usize> = (0..20).map(|at| at % 2).collect();
    let labels = classes.iter().fold("on\n".to_string(), |text, class| format!("{text}{class}\n"));
    let source = files.source(&classes, &labels);
    for noise in ["none", "diagonal", "full"] {
        let noise = format!("head.noise={noise}");
        let mut sets = vec!["head.link=sigmoid", "data.label_kind=multi-hot", &noise];
        if noise.ends_with("full") {
            sets.push("head.rank=2");
        }
        let evaluation = Trial::on(RECIPE, &source, &sets).finish();
        assert_eq!(evaluation.class_names.len(), 1);
        assert!(evaluation.validation.given.gap.is_some());
    }
}

#[test]
fn single_labels_may_be_learned_by_the_sigmoid_link() {
    let trial = Trial::on_clusters(RECIPE, 40, &["head.link=sigmoid", "schedule.epochs=10"]);
    let events = trial.train();
    assert_eq!(events.steps.last().unwrap().accuracy, 1.0);
    let given = trial.finish().validation.given;
    assert_eq!(given.top1, 1.0);
    assert!(given.gap.unwrap() > 1.0 - 1e-12); // sums of shares round
}

/// Most of the probability is on the example's class.
fn soft(class: &usize) -> [f32; 3] {
    [0, 1, 2].map(|k| if k == *class { 0.75 } else { 0.125 })
}

#[test]
fn soft_labels_are_learned_by_either_link() {
    let files = Files::new();
    let classes = cycle(40);
    let source = files.source(&classes, &table(classes.iter().map(soft)));
    let sets = ["data.label_kind=soft", "schedule.epochs=20"];
    let softmax = Trial::on(RECIPE, &source, &sets);
    let given = softmax.finish().validation.given;
    let lowest = -(0.75 * 0.75f64.ln() + 0.25 * 0.125f64.ln()); // the entropy of a label
    assert_eq!(given.top1, 1.0);
    assert!((lowest..lowest + 0.1).contains(&given.nll), "{} for {lowest}", given.nll);

    let sets = ["data.label_kind=soft", "schedule.epochs=20", "head.link=sigmoid"];
    let sigmoid = Trial::on(RECIPE, &source, &sets);
    let evaluation = sigmoid.finish();
    let given = evaluation.validation.given;
    assert_eq!(given.top1, 1.0);
    assert!(given.gap.unwrap() > 1.0 - 1e-12); // sums of shares round
    let rows = sigmoid.run.read_examples().unwrap();
    let likely = rows.iter().find(|row| row.id == "2").unwrap();
    assert_eq!(likely.label, Some(vec![2]), "the classes that are likelier on than off");
    let settings = EvaluateSettings { calibrate: true, ..EvaluateSettings::default() };
    assert!(sigmoid.evaluate(settings).unwrap().calibration.is_some());
}

#[test]
fn annotations_are_learned_by_majority_by_draw_and_each() {
    let files = Files::new();
    let classes = cycle(48);
    // Three annotators: the first is right, the second every other time, the third seldom says
    // anything.
    let row = |(at, class): (usize, &usize)| {
        let second = if at % 2 == 0 { *class } else { (class + 1) % 3 };
        let third = if at % 4 == 1 { class.to_string() } else { String::new() };
        format!("{class},{second},{third}\n")
    };
    let labels: String = std::iter::once("ann,bob,cyd\n".to_string())
        .chain(classes.iter().enumerate().map(row))
        .collect();
    let source = files.source(&classes, &labels);
    for annotations in ["majority", "sampled", "each"] {
        let annotations = format!("data.annotations={annotations}");
        let sets = ["data.label_kind=annotators", &annotations, "head.noise=full", "head.rank=2"];
        let sets: Vec<&str> = sets.into_iter().chain(["schedule.epochs=15"]).collect();
        let trial = Trial::on(RECIPE, &source, &sets);
        let events = trial.train();
        let mean = |steps: &[aleator_train::StepReport]| {
            steps.iter().map(|step| step.loss).sum::<f64>() / steps.len() as f64
        };
        let (early, late) =
            (mean(&events.steps[..6]), mean(&events.steps[events.steps.len() - 6..]));
        assert!(late < 0.8 * early, "{annotations}: {early} → {late}");
        let top1 = trial.finish().validation.given.top1;
        assert!(top1 > 0.6, "{annotations}: {top1}");
    }
}

#[test]
fn calibration_never_worsens_the_validation_nll_and_is_forgotten_by_the_next_evaluation() {
    for link in ["head.link=softmax", "head.link=sigmoid"] {
        // A high rate makes predictions too sure of themselves.
        let sets = [DIGITS, link, "optimizer.learning_rate=0.5", "evaluation.weights=last"];
        let trial = Trial::new(RECIPE, &sets);
        trial.train();
        let settings = EvaluateSettings { calibrate: true, ..EvaluateSettings::default() };
        let evaluation = trial.evaluate(settings).unwrap();
        let calibration = evaluation.calibration.unwrap();
        assert_ne!(calibration.temperature, 1.0);
        assert!(calibration.nll_after < calibration.nll_before, "{calibration:?}");
        let calibrated = evaluation.validation.calibrated.unwrap();
        assert_eq!(calibrated.nll, calibration.nll_after);
        let again = trial.evaluate(EvaluateSettings::default()).unwrap();
        assert!(again.calibration.is_none());
    }
}

#[test]
fn other_weights_and_samples_may_be_asked_for() {
    let sets = ["optimizer.learning_rate=30.0", "schedule.epochs=5"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let events = trial.train();
    let last = EvaluateSettings { weights: Some(EvaluatedWeights::Last), ..Default::default() };
    let evaluation = trial.evaluate(last).unwrap();
    assert_eq!((evaluation.weights.as_str(), evaluation.step), ("last", Some(events.steps.len())));
    let best = trial.evaluate(EvaluateSettings::default()).unwrap();
    assert_eq!(best.weights, "best");
    assert!(best.step < evaluation.step);

    let noisy = Trial::on_clusters(RECIPE, 40, &["head.noise=diagonal"]);
    let usual = noisy.finish();
    let few = EvaluateSettings { samples: Some(2), ..Default::default() };
    assert_ne!(noisy.evaluate(few).unwrap().validation.given.nll, usual.validation.given.nll);
}

#[test]
fn data_that_have_changed_are_refused() {
    let files = Files::new();
    let source = files.source(&cycle(40), &column(&cycle(40)));
    let mut trial = Trial::on(RECIPE, &source, &[]);
    trial.train();
    files.source(&cycle(40), &column(&[0, 1, 2, 2].repeat(10)));
    let recipe = &trial.recipe;
    trial.data = aleator_data::DataSet::open(&recipe.data, recipe.head.link).unwrap();
    let message = trial.evaluate(EvaluateSettings::default()).unwrap_err().to_string();
    assert!(message.contains("the data have changed"), "{message}");
}

#[test]
fn a_run_without_checkpoints_cannot_be_evaluated() {
    let trial = Trial::on_clusters(RECIPE, 40, &[]);
    let message = trial.evaluate(EvaluateSettings::default()).unwrap_err().to_string();
    assert!(message.contains("there is no checkpoint"), "{message}");
}

#[test]
fn a_damaged_best_checkpoint_is_an_error_and_an_older_one_is_taken_only_by_name() {
    let sets = ["optimizer.learning_rate=30.0", "schedule.epochs=5"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let evaluation = trial.finish();
    let best = evaluation.step.unwrap();
    let last = *trial.steps().last().unwrap();
    assert!(best < last);
    let written = || {
        let files = [Split::Validation].map(|split| trial.run.predictions_path(split));
        let files = files.into_iter().chain([trial.run.path().join("evaluation.json")]);
        files.map(|file| fs::read(file).unwrap()).collect::<Vec<_>>()
    };
    let before = written();
    let predictor = |step| Predictor::new(&trial.run, &trial.recipe, step);
    assert!(predictor(None).unwrap().knows_true_class());
    fs::remove_file(trial.checkpoint(best).join("state.json")).unwrap();
    let advice =
        ["state.json: is missing", "aleator resume", "--checkpoint STEP", &last.to_string()];
    let message = trial.evaluate(EvaluateSettings::default()).unwrap_err().to_string();
    advice.iter().for_each(|words| assert!(message.contains(words), "{words}: {message}"));
    let message = predictor(None).err().unwrap().to_string();
    advice.iter().for_each(|words| assert!(message.contains(words), "{words}: {message}"));
    let named = EvaluateSettings { checkpoint: Some(last), ..Default::default() };
    let other = trial.evaluate(named).unwrap();
    assert_eq!((other.weights.as_str(), other.step), ("checkpoint", Some(last)));
    // The best has the lowest loss of all; on clusters this clear others may reach it.
    assert!(other.validation.given.nll >= evaluation.validation.given.nll);
    // What was fitted to the best weights does not suit the others.
    let predictor = predictor(Some(last)).unwrap();
    assert_eq!(predictor.checkpoint, Some(last));
    assert!(!predictor.knows_true_class());
    let missing = EvaluateSettings { checkpoint: Some(last + 1), ..Default::default() };
    let message = trial.evaluate(missing).unwrap_err().to_string();
    assert!(message.contains("no such checkpoint"), "{message}");
    assert!(written() == before);
}

#[test]
fn run_json_that_contradicts_the_data_or_the_weights_is_refused() {
    let trial = Trial::on_clusters(RECIPE, 40, &["head.noise=full", "head.rank=2"]);
    trial.train();
    let file = trial.run.path().join("run.json");
    let written = fs::read_to_string(&file).unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    let refusals = |field: &str, value: serde_json::Value| {
        let mut changed = json.clone();
        changed[field] = value;
        fs::write(&file, changed.to_string()).unwrap();
        let run = RunDir::open(trial.run.path()).unwrap();
        let job = Job { run: &run, ..trial.job(&GO) };
        let evaluated = evaluate(&job, &EvaluateSettings::default(), &mut |_| {});
        let finished = finish_run(&job, &mut |_| {});
        let predictor = Predictor::new(&run, &trial.recipe, None);
        [evaluated.err(), finished.err(), predictor.err()].map(|it| it.map(|it| it.to_string()))
    };
    let assert_all = |field: &str, value: serde_json::Value| {
        for refusal in refusals(field, value) {
            let message = refusal.unwrap_or_else(|| panic!("{field} was not refused"));
            assert!(message.contains("run.json"), "{message}");
            assert!(message.contains(field), "{field}: {message}");
        }
    };
    assert_all("class_names", serde_json::json!(["a", "b"]));
    assert_all("class_names", serde_json::json!(vec!["a"; 100_000]));
    assert_all("input_shape", serde_json::json!([5]));
    assert_all("input_shape", serde_json::json!([1, 16_384, 16_384]));
    // New inputs need not be as many, and are predicted under the model of the recipe.
    for (field, value) in [
        ("examples", serde_json::json!({ "train": 1, "validation": 1, "test": 9 })),
        ("link", serde_json::json!("sigmoid")),
        ("noise", serde_json::json!({ "kind": "full", "rank": 3 })),
    ] {
        let [evaluated, finished, _] = refusals(field, value);
        for message in [evaluated.unwrap(), finished.unwrap()] {
            assert!(message.contains(field), "{field}: {message}");
        }
    }
}

static GO: AtomicBool = AtomicBool::new(false);

#[test]
fn an_evaluation_that_fails_leaves_no_evaluation_of_other_predictions() {
    let trial = Trial::on_clusters(RECIPE, 40, &[]);
    trial.finish();
    let predictions = trial.run.predictions_path(Split::Validation);
    fs::remove_file(&predictions).unwrap();
    fs::create_dir(&predictions).unwrap(); // cannot be written
    trial.evaluate(EvaluateSettings::default()).unwrap_err();
    assert!(!trial.run.path().join("evaluation.json").exists());
    fs::remove_dir(&predictions).unwrap();
    assert_eq!(trial.finish().validation.given.examples, 10);
}

#[test]
fn predictions_of_new_examples_are_those_of_the_evaluation() {
    for link in ["softmax", "sigmoid"] {
        let link = format!("head.link={link}");
        let sets = [link.as_str(), "head.noise=full", "head.rank=2", "schedule.epochs=8"];
        let trial = Trial::on_clusters(&adam(), 40, &sets);
        trial.train();
        trial.evaluate(EvaluateSettings::default()).unwrap();
        let written = trial.predictions(Split::Validation);
        let split = &trial.data.validation;
        let predict = || {
            let predictor = Predictor::new(&trial.run, &trial.recipe, None).unwrap();
            let row = split.rows[3];
            let ids = Ids::Rows(split.inputs.len());
            predictor.predict(&split.inputs, &ids, row..row + 1).unwrap().describe(0, None)
        };
        let row = &written.log_probs[3 * 3..4 * 3];
        let top = classification::argmax(row);
        let found = predict();
        let chance = found.classes.iter().find(|it| it.class == top.to_string()).unwrap();
        assert!((chance.probability - (row[top] as f64).exp()).abs() < 1e-6, "{link}: {found:?}");
        assert_eq!(found.id, split.ids.name(3));
        let settings = EvaluateSettings { calibrate: true, ..EvaluateSettings::default() };
        trial.evaluate(settings).unwrap();
        let scaled = predict();
        let calibrated = scaled.classes.iter().find(|it| it.class == top.to_string()).unwrap();
        assert!((calibrated.probability - chance.probability).abs() > 1e-4, "{link}");
    }
}

#[test]
fn a_test_split_that_is_too_large_for_f32_is_an_error_that_names_the_examples() {
    let files = Files::new();
    let source = files.source(&cycle(40), &column(&cycle(40)));
    let features =
        files.write("test.npy", npy(2, 4, &[1.0, 1.0, 1.0, 1.0, 3e38, 3e38, 3e38, 3e38]));
    let labels = files.write("test.csv", "label\n0\n1\n");
    let own = [format!("data.test.features={features}"), format!("data.test.labels={labels}")];
    let all: Vec<String> = source.into_iter().chain(own).collect();
    // Where the features overflow, and where only what the head makes of them does.
    let settings: [&[&str]; 4] = [
        &["network.kind=mlp", "network.hidden=[8]"],
        &["optimizer.learning_rate=50.0", "head.noise=none"],
        &["optimizer.learning_rate=50.0", "head.noise=full", "head.rank=2"],
        &["optimizer.learning_rate=50.0", "head.noise=shared", "head.rank=2"],
    ];
    for sets in settings {
        let trial = Trial::on(RECIPE, &all, sets);
        trial.train();
        let message = trial.evaluate(EvaluateSettings::default()).unwrap_err().to_string();
        assert!(message.contains("1 examples of the test split are not finite: 1\n"), "{message}");
    }
}
