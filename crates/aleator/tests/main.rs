//! The workflows on arrays in memory, as a Rust program calls them.

#[path = "../../report/tests/covariance_support/mod.rs"]
mod covariance_support;
mod theory;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use aleator::report::audit::ProbabilityFiles;
use aleator::report::covariance::Measure;
use aleator::run::recipe::HeadTemperature;
use aleator::run::{EvaluatedRun, Predictions, Split};
use aleator::train::Event as TrainEvent;
use aleator::{
    AnalyseSettings, ArrayInputs, ArraySplit, Arrays, Error, EvaluateSettings, Event, Experiment,
    Fit, Grid, LabelArray, Predictor, ReportSettings, Resumed, Temperature, Watch, analyse, audit,
    audit_probabilities, audit_run, ensemble, evaluate, fit, report, resume, sweep, tune,
};

const EXAMPLES: usize = 300;
const CLASSES: usize = 3;

fn class(row: usize) -> usize {
    row % CLASSES
}

/// One label in fifteen is wrong.
fn is_wrong(row: usize) -> bool {
    row % 15 == 4
}

/// Three clouds of points that hardly touch.
fn features() -> Vec<f32> {
    let point = |row: usize| {
        let noise = |salt: usize| ((row * 7919 + salt * 104_729) % 1000) as f32 / 1000.0 - 0.5;
        let center = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]][class(row)];
        [center[0] + 1.5 * noise(1), center[1] + 1.5 * noise(2)]
    };
    (0..EXAMPLES).flat_map(point).collect()
}

fn labels() -> Vec<i64> {
    let label = |row: usize| (class(row) + usize::from(is_wrong(row))) % CLASSES;
    (0..EXAMPLES).map(|row| label(row) as i64).collect()
}

fn arrays() -> Arrays {
    let inputs = ArrayInputs::Features { values: features(), width: 2 };
    Arrays::new(ArraySplit::new(inputs, LabelArray::numbers(labels())))
}

/// A short training.
fn experiment(seeds: &[u64]) -> Experiment {
    let mut experiment = Experiment::on_arrays(arrays(), "features-full", &[], None).unwrap();
    let recipe = &mut experiment.recipe;
    (recipe.seeds, recipe.schedule.epochs) = (seeds.to_vec(), 12);
    (recipe.head.samples, recipe.evaluation.samples) = (32, 64);
    experiment
}

fn predictions(run: &Path) -> Predictions {
    let run = EvaluatedRun::open(run).unwrap();
    Predictions::load(&run.dir.predictions_path(Split::Validation)).unwrap()
}

#[test]
fn arrays_are_fitted_and_new_rows_predicted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let Fit { runs, ensemble, .. } = fit(&experiment(&[3]), &out, &mut Watch::silent()).unwrap();
    let top1 = runs[0].evaluation.validation.given.top1;
    // The clouds hardly touch, so a classifier disagrees with the wrong labels alone: 14 of 15
    // agree, within three standard deviations of a validation split of 30.
    assert!(top1 > 14.0 / 15.0 - 3.0 * (14.0 / 225.0 / 30.0_f64).sqrt(), "{top1}");
    assert!(ensemble.is_none());
    let predictor = Predictor::open(&out).unwrap();
    let examples = predictor.rows(features()).unwrap();
    let prediction = predictor.predict(&examples).unwrap();
    let classes = prediction.classes();
    let right = (0..EXAMPLES).filter(|row| classes[*row] == class(*row)).count();
    assert!(right > EXAMPLES * 9 / 10, "{right}");
    assert_eq!(prediction.predictions.log_probs.len(), EXAMPLES * CLASSES);
    assert_eq!(prediction.variance.len(), EXAMPLES * CLASSES);
    let sum: f64 = prediction.predictions.log_probs[..3].iter().map(|p| (*p as f64).exp()).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    // A prediction does not depend on the rows around it.
    let one = predictor.rows(features()[..2].to_vec()).unwrap();
    let alone = predictor.predict(&one).unwrap();
    assert_eq!(alone.predictions.log_probs, prediction.predictions.log_probs[..3]);
    assert_eq!(alone.describe(0, None), prediction.describe(0, None));
}

#[test]
fn rows_that_cannot_be_predicted_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    fit(&experiment(&[0]), &out, &mut Watch::silent()).unwrap();
    let predictor = Predictor::open(&out).unwrap();
    let message = |values: Vec<f32>| predictor.rows(values).unwrap_err().to_string();
    for (count, words) in [(0, "0 numbers are not rows"), (3, "3 numbers are not rows")] {
        let message = message(vec![0.0; count]);
        assert!(message.contains(words) && message.contains("give 2"), "{message}");
    }
    let bad = message(vec![0.0, 1.0, f32::NAN, 0.0]);
    assert!(bad.contains("row 1, column 0") && bad.contains("finite"), "{bad}");

    // Examples of one run in the predictor of another.
    let inputs = ArrayInputs::Features { values: features(), width: 1 };
    let labels = LabelArray::numbers((0..2 * EXAMPLES).map(|row| class(row) as i64));
    let narrow = Arrays::new(ArraySplit::new(inputs, labels));
    let mut narrow = Experiment::on_arrays(narrow, "features-none", &[], Some(0)).unwrap();
    narrow.recipe.schedule.epochs = 1;
    let other = dir.path().join("other");
    fit(&narrow, &other, &mut Watch::silent()).unwrap();
    let examples = Predictor::open(&other).unwrap().rows(vec![0.0]).unwrap();
    let error = predictor.predict(&examples).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
}

#[test]
fn a_stopped_fit_resumes_with_the_same_arrays_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    let experiment = experiment(&[3, 4]);
    fit(&experiment, &whole, &mut Watch::silent()).unwrap();
    let stop = AtomicBool::new(false);
    let mut watch = Watch::new(&stop, |event| {
        if let Event::Training { run: "seed-4", event: TrainEvent::Step { step: 3, .. } } = event {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let error = fit(&experiment, &parts, &mut watch).unwrap_err();
    assert!(error.is_interruption() && error.to_string().contains("step 3 of seed-4"), "{error}");

    let error = resume(&parts, None, &mut Watch::silent()).unwrap_err().to_string();
    assert!(error.contains("arrays"), "{error}");
    let mut others = arrays();
    others.train.labels = LabelArray::numbers((0..EXAMPLES).map(|row| class(row) as i64));
    let error = resume(&parts, Some(others), &mut Watch::silent()).unwrap_err().to_string();
    assert!(error.contains("fingerprint"), "{error}");

    let Resumed::Fit(fit) = resume(&parts, Some(arrays()), &mut Watch::silent()).unwrap() else {
        panic!("a fit is resumed as a fit");
    };
    assert_eq!(fit.runs.len(), 2);
    for run in ["seed-3", "seed-4", "ensemble"] {
        assert_eq!(predictions(&parts.join(run)), predictions(&whole.join(run)), "{run}");
    }
}

#[test]
fn a_run_on_arrays_is_evaluated_again_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let fit = fit(&experiment(&[3]), &out, &mut Watch::silent()).unwrap();
    let settings = EvaluateSettings::default();
    let error = evaluate(&out, &settings, None, &mut Watch::silent()).unwrap_err().to_string();
    assert!(error.contains("arrays"), "{error}");
    let again = evaluate(&out, &settings, Some(arrays()), &mut Watch::silent()).unwrap();
    assert_eq!(again, fit.runs[0].evaluation);
}

#[test]
fn tuning_chooses_the_lowest_validation_nll() {
    let dir = tempfile::tempdir().unwrap();
    let temperature = |value: f32| Temperature::try_from(value).unwrap();
    let grid = Grid { temperatures: vec![temperature(0.5), temperature(2.0)], ranks: vec![1] };
    let out = dir.path().join("tuning");
    let tuning = tune(&experiment(&[0]), &grid, &out, &mut Watch::silent()).unwrap();
    let nll: Vec<f64> = tuning.trials.iter().map(|trial| trial.validation_nll).collect();
    assert!(nll.iter().all(|other| nll[tuning.best] <= *other), "{nll:?}");
    let chosen = Experiment::load(&tuning.recipe_file.display().to_string(), &[], None).unwrap();
    assert_eq!(chosen.recipe, tuning.recipe);
    let HeadTemperature::Fixed(best) = tuning.recipe.head.temperature else { panic!("fixed") };
    assert_eq!(best.get(), tuning.trials[tuning.best].temperature);
    let error = tune(&experiment(&[0, 1]), &grid, &out, &mut Watch::silent()).unwrap_err();
    assert!(error.to_string().contains("one seed"), "{error}");
    let empty = Grid { temperatures: vec![], ranks: vec![1] };
    let elsewhere = dir.path().join("empty");
    let error = tune(&experiment(&[0]), &empty, &elsewhere, &mut Watch::silent()).unwrap_err();
    assert!(error.to_string().contains("nothing to try") && !elsewhere.exists(), "{error}");
}

#[test]
fn finished_runs_are_averaged_analysed_audited_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let out = |name: &str| dir.path().join(name);
    let watch = &mut Watch::silent();
    let runs = fit(&experiment(&[0, 1]), &out("runs"), watch).unwrap();
    let dirs: Vec<PathBuf> = runs.runs.iter().map(|run| run.dir.clone()).collect();
    let again = ensemble(&dirs, &out("both")).unwrap();
    assert_eq!(Some(again), runs.ensemble.map(|(_, evaluation)| evaluation));

    let settings = AnalyseSettings {
        split: None,
        against: None,
        measure: Some(Measure::Centred),
        top: 2,
        out: Some(out("analysis")),
    };
    let findings = analyse(&dirs[0], &settings, watch).unwrap();
    assert_eq!(findings.pairs.by(Measure::Centred).len(), 2);
    assert!(out("analysis").join("analysis.json").is_file());

    // The run names no files, so the audit needs its arrays.
    let error = audit_run(&dirs[0], &[], Some(0), None, 3, &out("audit"), watch).unwrap_err();
    assert!(error.to_string().contains("arrays") && !out("audit").exists(), "{error}");

    let page = ReportSettings::inside(&out("runs"));
    report(&[out("runs")], &page, watch).unwrap();
    assert!(fs::read_to_string(&page.page).unwrap().contains("<!doctype html>"));
    let error = sweep(vec![], &out("sweep"), watch).unwrap_err();
    assert!(error.to_string().contains("nothing to train") && !out("sweep").exists(), "{error}");
}

#[test]
fn labels_of_one_class_are_no_multilabel_audit() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("p.csv"), "0.9,0.1\n0.2,0.8\n0.7,0.3\n0.4,0.6\n").unwrap();
    fs::write(path("y.csv"), "0\n1\n0\n1\n").unwrap();
    let files = ProbabilityFiles {
        probabilities: path("p.csv"),
        logarithms: false,
        multilabel: true,
        labels: path("y.csv"),
        class_names: None,
        ids: None,
        clean_labels: None,
    };
    let out = dir.path().join("audit");
    let error = audit_probabilities(&files, &out, &mut Watch::silent()).unwrap_err().to_string();
    assert!(error.contains("y.csv") && error.contains("zeros and ones"), "{error}");
    assert!(!out.exists());
}

#[test]
fn an_audit_of_arrays_finds_the_wrong_labels_as_one_of_files_does() {
    let dir = tempfile::tempdir().unwrap();
    let out = |name: &str| dir.path().join(name);
    let found = audit(&experiment(&[0]), 3, &out("arrays"), &mut Watch::silent()).unwrap();
    let wrong = (0..EXAMPLES).filter(|row| is_wrong(*row)).count();
    let first = found.issues.iter().take(wrong);
    let hits = first.filter(|issue| is_wrong(issue.id.parse().unwrap())).count();
    // The points of different classes are apart, so wrong labels stand out: nearly all come first.
    assert!(hits * 10 >= wrong * 9, "{hits} of {wrong}");

    fs::write(out("x.npy"), npy(&features())).unwrap();
    let labels: Vec<String> = labels().iter().map(i64::to_string).collect();
    fs::write(out("y.csv"), labels.join("\n") + "\n").unwrap();
    let path = |name: &str| out(name).display().to_string();
    let sets = [
        format!("data.train.features={}", path("x.npy")),
        format!("data.train.labels={}", path("y.csv")),
    ];
    let mut files = Experiment::load("features-full", &sets, Some(0)).unwrap();
    let recipe = experiment(&[0]).recipe;
    (files.recipe.schedule, files.recipe.head) = (recipe.schedule, recipe.head);
    files.recipe.evaluation = recipe.evaluation;
    audit(&files, 3, &out("files"), &mut Watch::silent()).unwrap();
    for file in ["issues.csv", "classes.csv", "pairs.csv", "examples.csv"] {
        let read = |audit: &str| fs::read(out(audit).join(file)).unwrap();
        assert_eq!(read("arrays"), read("files"), "{file}");
    }
}

/// `[N, 2]` numbers in the format of NumPy.
fn npy(values: &[f32]) -> Vec<u8> {
    let shape = values.len() / 2;
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}, 2), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}
