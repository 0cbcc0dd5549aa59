//! The workflows on arrays in memory, as a Rust program calls them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator::run::{EvaluatedRun, Predictions, Split};
use aleator::train::Event as TrainEvent;
use aleator::{
    ArrayInputs, ArraySplit, Arrays, EvaluateSettings, Event, Examples, Experiment, Fit, Grid,
    LabelArray, Predictor, Resumed, Temperature, Watch, audit, evaluate, fit, resume, tune,
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
    assert!(top1 > 0.8, "{top1}");
    assert!(ensemble.is_none());
    let predictor = Predictor::open(&out, &mut Watch::silent()).unwrap();
    let examples = Examples::of_rows(features(), predictor.shape()).unwrap();
    let prediction = predictor.predict(&examples).unwrap();
    let classes = prediction.classes();
    let right = (0..EXAMPLES).filter(|row| classes[*row] == class(*row)).count();
    assert!(right > EXAMPLES * 9 / 10, "{right}");
    assert_eq!(prediction.predictions.log_probs.len(), EXAMPLES * CLASSES);
    assert_eq!(prediction.variance.len(), EXAMPLES * CLASSES);
    let sum: f64 = prediction.predictions.log_probs[..3].iter().map(|p| (*p as f64).exp()).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    // A prediction does not depend on the rows around it.
    let one = Examples::of_rows(features()[..2].to_vec(), predictor.shape()).unwrap();
    let alone = predictor.predict(&one).unwrap();
    assert_eq!(alone.predictions.log_probs, prediction.predictions.log_probs[..3]);
    assert_eq!(alone.describe(0), prediction.describe(0));
}

#[test]
fn rows_that_cannot_be_predicted_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    fit(&experiment(&[0]), &out, &mut Watch::silent()).unwrap();
    let shape = Predictor::open(&out, &mut Watch::silent()).unwrap().shape();
    let message = |values: Vec<f32>| Examples::of_rows(values, shape).unwrap_err().to_string();
    let odd = message(vec![0.0; 3]);
    assert!(odd.contains("3 numbers are not whole rows"), "{odd}");
    let bad = message(vec![0.0, 1.0, f32::NAN, 0.0]);
    assert!(bad.contains("row 1, column 0") && bad.contains("finite"), "{bad}");
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
    assert!(resume(&parts, Some(others), &mut Watch::silent()).is_err());

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
    assert!(evaluate(&out, &settings, None, &mut Watch::silent()).is_err());
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
    assert!(tuning.recipe_file.is_file());
    let error = tune(&experiment(&[0, 1]), &grid, &out, &mut Watch::silent()).unwrap_err();
    assert!(error.to_string().contains("one seed"), "{error}");
}

#[test]
fn an_audit_of_arrays_finds_the_wrong_labels_as_one_of_files_does() {
    let dir = tempfile::tempdir().unwrap();
    let out = |name: &str| dir.path().join(name);
    let found = audit(&experiment(&[0]), 3, &out("arrays"), &mut Watch::silent()).unwrap();
    let wrong = (0..EXAMPLES).filter(|row| is_wrong(*row)).count();
    let first = found.issues.iter().take(wrong);
    let hits = first.filter(|issue| is_wrong(issue.id.parse().unwrap())).count();
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
