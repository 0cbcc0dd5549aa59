//! Ensembles from files: the arithmetic, and every way in which runs do not go together.

use std::fs;
use std::path::{Path, PathBuf};

use aleator_report::ReportError;
use aleator_report::confusion::Confusions;
use aleator_report::ensemble::{ensemble, ensemble_once};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, Predictions, RunDir, RunInfo, Split, SplitCounts,
};
use tempfile::TempDir;

const CLASSES: usize = 3;

fn info(link: Link) -> RunInfo {
    RunInfo {
        format: FORMAT,
        version: "0.1.0".to_string(),
        seed: 0,
        fingerprint: "5d41".to_string(),
        link,
        likelihood: Default::default(),
        noise: Noise::None,
        class_names: ["a", "b", "c"].map(String::from).to_vec(),
        input_shape: vec![4],
        feature_names: None,
        examples: SplitCounts { train: 1, validation: 2, test: 1 },
        set_aside: vec![],
        pretrained: None,
    }
}

fn row(id: &str, split: Split, label: &[u32]) -> ExampleRow {
    let label = Some(label.to_vec());
    ExampleRow { id: id.to_string(), split, label, clean_label: None }
}

fn examples() -> Vec<ExampleRow> {
    vec![
        row("t", Split::Train, &[0]),
        row("v0", Split::Validation, &[0]),
        row("v1", Split::Validation, &[2]),
        row("w", Split::Test, &[1]),
    ]
}

fn predictions(probs: &[f32], link: Link, temperature: f32) -> Predictions {
    Predictions {
        classes: CLASSES,
        rank: 0,
        temperature,
        log_probs: probs.iter().map(|p| p.ln()).collect(),
        log_probs_off: (link == Link::Sigmoid)
            .then(|| probs.iter().map(|p| (1.0 - p).ln()).collect()),
        mean: probs.to_vec(),
        diag_scale: Some(vec![1.0; probs.len()]),
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
    }
}

const VALIDATION: [[f32; 6]; 2] =
    [[0.7, 0.2, 0.1, 0.5, 0.25, 0.25], [0.1, 0.3, 0.6, 0.0, 0.125, 0.875]];
const TEST: [[f32; 3]; 2] = [[0.25, 0.5, 0.25], [0.75, 0.125, 0.125]];

/// Two runs that go together, to be spoiled.
struct Runs(TempDir);

impl Runs {
    fn new(link: Link) -> Self {
        let runs = Self(tempfile::tempdir().unwrap());
        for (at, dir) in runs.dirs().iter().enumerate() {
            let create = CreateRun { recipe: "summary = \"x\"\n".to_string(), info: info(link) };
            let run = RunDir::create(dir, &create).unwrap();
            run.write_examples(examples()).unwrap();
            let temperature = 1.0 + at as f32;
            let save = |split, probs: &[f32]| {
                predictions(probs, link, temperature).save(&run.predictions_path(split)).unwrap();
            };
            save(Split::Validation, &VALIDATION[at]);
            save(Split::Test, &TEST[at]);
        }
        runs
    }

    fn dirs(&self) -> [PathBuf; 2] {
        ["one", "two"].map(|name| self.0.path().join(name))
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("deep").join("ensemble")
    }

    fn second(&self) -> RunDir {
        RunDir::open(&self.dirs()[1]).unwrap()
    }

    fn refusal(&self) -> String {
        let error: ReportError = ensemble(&self.dirs(), &self.out()).unwrap_err();
        assert!(!self.out().exists(), "nothing is left of an ensemble that failed");
        error.to_string()
    }

    /// Changes `run.json` of the second run.
    fn edit_info(&self, from: &str, to: &str) {
        let path = self.dirs()[1].join("run.json");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        // f32 logarithms.
        assert!((*found as f64 - expected).abs() < 1e-6, "{found} for {expected}");
    }
}

#[test]
fn probabilities_are_averaged_and_measured() {
    let runs = Runs::new(Link::Softmax);
    let evaluation = ensemble(&runs.dirs(), &runs.out()).unwrap();
    let mean: [f64; 6] = [0.4, 0.25, 0.35, 0.25, 0.1875, 0.5625];
    let run = RunDir::open(&runs.out()).unwrap();
    let written = Predictions::load(&run.predictions_path(Split::Validation)).unwrap();
    assert_close(&written.log_probs, &mean.map(f64::ln));
    // Means of utilities at their own temperatures, 1 and 2; a covariance there is none.
    let utilities: Vec<f64> = (0..6)
        .map(|at| (VALIDATION[0][at] as f64 + VALIDATION[1][at] as f64 / 2.0) / 2.0)
        .collect();
    assert_close(&written.mean, &utilities);
    assert_eq!((written.temperature, &written.diag_scale), (1.0, &None));

    let given = &evaluation.validation.given;
    assert!((given.nll - -(0.4f64.ln() + 0.5625f64.ln()) / 2.0).abs() < 1e-6);
    assert_eq!(given.top1, 1.0);
    let test = evaluation.test.as_ref().unwrap();
    assert!((test.given.nll - -0.3125f64.ln()).abs() < 1e-6);
    assert_eq!(test.given.top1, 0.0);
    assert_eq!((evaluation.weights.as_str(), evaluation.step), ("ensemble", None));
    assert_eq!(run.read_examples().unwrap(), examples());
    assert_eq!(ensemble_once(&runs.dirs(), &runs.out()).unwrap(), evaluation);
}

#[test]
fn a_class_that_all_members_hold_impossible_stays_impossible() {
    let runs = Runs::new(Link::Softmax);
    for dir in runs.dirs() {
        let path = RunDir::open(&dir).unwrap().predictions_path(Split::Test);
        predictions(&[0.5, 0.5, 0.0], Link::Softmax, 1.0).save(&path).unwrap();
    }
    ensemble(&runs.dirs(), &runs.out()).unwrap();
    let run = RunDir::open(&runs.out()).unwrap();
    let written = Predictions::load(&run.predictions_path(Split::Test)).unwrap();
    assert_eq!(written.log_probs[2], f32::NEG_INFINITY);
    assert_close(&written.log_probs[..2], &[0.5f64.ln(); 2]);
}

#[test]
fn classes_on_or_off_are_averaged_on_both_sides() {
    let runs = Runs::new(Link::Sigmoid);
    let evaluation = ensemble(&runs.dirs(), &runs.out()).unwrap();
    let run = RunDir::open(&runs.out()).unwrap();
    let written = Predictions::load(&run.predictions_path(Split::Test)).unwrap();
    let mean: [f64; 3] = [0.5, 0.3125, 0.1875];
    assert_close(&written.log_probs, &mean.map(f64::ln));
    assert_close(&written.log_probs_off.unwrap(), &mean.map(|p| (1.0 - p).ln()));
    let nll = -(0.5f64.ln() + 0.3125f64.ln() + 0.8125f64.ln());
    let test = evaluation.test.unwrap().given;
    assert!((test.nll - nll).abs() < 1e-6);
    assert!(test.gap.is_some());
}

#[test]
fn one_run_is_no_ensemble() {
    let runs = Runs::new(Link::Softmax);
    let message = ensemble(&runs.dirs()[..1], &runs.out()).unwrap_err().to_string();
    assert!(message.contains("at least two runs, found 1"), "{message}");
}

#[test]
fn runs_of_other_classes_are_refused() {
    let runs = Runs::new(Link::Softmax);
    runs.edit_info("\"c\"", "\"d\"");
    let message = runs.refusal();
    assert!(message.contains("classes are not the same"), "{message}");
    assert!(message.contains("one") && message.contains("two"), "{message}");
}

#[test]
fn runs_of_other_links_are_refused() {
    let runs = Runs::new(Link::Softmax);
    runs.edit_info("\"softmax\"", "\"sigmoid\"");
    let message = runs.refusal();
    assert!(message.contains("link"), "{message}");
}

#[test]
fn runs_that_held_out_other_examples_are_refused() {
    let runs = Runs::new(Link::Softmax);
    let mut rows = examples();
    rows.swap(1, 2);
    runs.second().write_examples(rows).unwrap();
    let message = runs.refusal();
    assert!(message.contains("one has example \"v0\" where the other has \"v1\""), "{message}");
    runs.second().write_examples(examples().into_iter().take(3)).unwrap();
    let message = runs.refusal();
    assert!(message.contains("held out 3 and 2"), "{message}");
}

#[test]
fn other_training_examples_do_no_harm() {
    let runs = Runs::new(Link::Softmax);
    let other = row("other", Split::Train, &[1]);
    runs.second().write_examples(std::iter::once(other).chain(examples())).unwrap();
    ensemble(&runs.dirs(), &runs.out()).unwrap();
}

#[test]
fn a_run_without_predictions_is_named_with_the_command_that_makes_them() {
    let runs = Runs::new(Link::Softmax);
    fs::remove_file(runs.second().predictions_path(Split::Test)).unwrap();
    let message = runs.refusal();
    assert!(message.contains("no predictions of the test split"), "{message}");
    assert!(message.contains("aleator eval"), "{message}");
}

#[test]
fn predictions_of_another_number_of_examples_are_named() {
    let runs = Runs::new(Link::Softmax);
    let path = runs.second().predictions_path(Split::Validation);
    predictions(&TEST[0], Link::Softmax, 1.0).save(&path).unwrap();
    let message = runs.refusal();
    assert!(message.contains("holds 1 examples of 3 classes, and the run has 2 of 3"), "{message}");
}

#[test]
fn numbers_that_are_no_probabilities_are_named() {
    let spoiled = |link: Link, spoil: &dyn Fn(&mut Predictions)| {
        let runs = Runs::new(link);
        let path = runs.second().predictions_path(Split::Test);
        let mut predictions = predictions(&TEST[1], link, 1.0);
        spoil(&mut predictions);
        predictions.save(&path).unwrap();
        let message = runs.refusal();
        assert!(message.contains("test.safetensors"), "{message}");
        message
    };
    let above_one = spoiled(Link::Softmax, &|it| it.log_probs[1] = 2.5);
    assert!(above_one.contains("2.5 is not the logarithm of a probability"), "{above_one}");
    let nothing = spoiled(Link::Softmax, &|it| it.log_probs.fill(f32::NEG_INFINITY));
    assert!(nothing.contains("row 0 has no class that is possible"), "{nothing}");
    let off = spoiled(Link::Softmax, &|it| it.log_probs_off = Some(it.log_probs.clone()));
    assert!(off.contains("log_probs_off"), "{off}");
    let no_off = spoiled(Link::Sigmoid, &|it| it.log_probs_off = None);
    assert!(no_off.contains("log_probs_off is missing"), "{no_off}");
    let neither = spoiled(Link::Sigmoid, &|it| {
        it.log_probs[0] = f32::NEG_INFINITY;
        it.log_probs_off.as_mut().unwrap()[0] = f32::NEG_INFINITY;
    });
    assert!(neither.contains("neither on nor off"), "{neither}");
}

#[test]
fn labels_that_are_no_classes_of_the_run_are_named() {
    let labels: [Option<&[u32]>; 4] = [Some(&[3]), Some(&[]), Some(&[0, 1]), None];
    for label in labels {
        let runs = Runs::new(Link::Softmax);
        let mut rows = examples();
        rows[3].label = label.map(<[u32]>::to_vec);
        for dir in runs.dirs() {
            RunDir::open(&dir).unwrap().write_examples(rows.clone()).unwrap();
        }
        let message = runs.refusal();
        assert!(message.contains("examples.csv: example \"w\""), "{message}");
    }
}

#[test]
fn what_stands_in_the_place_is_left_alone() {
    let runs = Runs::new(Link::Softmax);
    let file = runs.0.path().join("thesis.txt");
    fs::write(&file, "years of work").unwrap();
    let message = ensemble(&runs.dirs(), &file).unwrap_err().to_string();
    assert!(message.contains("exists"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "years of work");
    let leftovers = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with('.')).count()
    };
    assert_eq!(leftovers(runs.0.path()), 0);
    let empty = runs.0.path().join("empty");
    fs::create_dir(&empty).unwrap();
    ensemble(&runs.dirs(), &empty).unwrap();
}

#[test]
fn learned_confusions_are_averaged_over_runs_and_over_the_examples_of_a_class() {
    let mut two = predictions(&[0.7, 0.2, 0.1, 0.6, 0.2, 0.2], Link::Softmax, 1.0);
    two.mean = vec![1.0, 0.0, -1.0, 2.0, 0.0, 0.0];
    let learned = Confusions::by_noise(&two);
    let phi = aleator_metrics::normal_cdf;
    let root = 2f64.sqrt(); // two unit variances
    let expected = (phi(-1.0 / root) + phi(-2.0 / root)) / 2.0;
    assert!((learned.rate(0, 1) - expected).abs() < 1e-12);
    assert_eq!(learned.rate(1, 0), 0.0, "no example has its largest mean there");
    let none = Confusions::by_noise(&Predictions { diag_scale: None, ..two });
    assert_eq!(none.rate(0, 1), 0.0, "without noise nothing is confused");
    let mean = Confusions::mean(&[learned.clone(), none]).unwrap();
    assert!((mean.rate(0, 1) - expected / 2.0).abs() < 1e-12);
    let pairs = mean.pairs();
    assert_eq!(pairs.len(), 6);
    assert_eq!((pairs[0].from, pairs[0].to), (0, 1));
    assert!(Confusions::mean(&[]).is_none());
}

#[test]
fn expected_confusions_are_the_probabilities_of_the_other_classes() {
    let probs = [0.7, 0.2, 0.1, 0.6, 0.1, 0.3, 0.25, 0.25, 0.5];
    let expected = Confusions::expected(&predictions(&probs, Link::Softmax, 1.0));
    assert!((expected.rate(0, 1) - 0.15).abs() < 1e-7);
    assert!((expected.rate(0, 2) - 0.2).abs() < 1e-7);
    assert!((expected.rate(2, 0) - 0.25).abs() < 1e-7);
    assert_eq!(expected.rate(0, 0), 0.0);
}
