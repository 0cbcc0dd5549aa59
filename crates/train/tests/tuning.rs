//! L-BFGS in the training loop, and settings that are chosen for the data.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_run::recipe::{Noise, Normalize, Recipe, Tune};
use aleator_train::group::{self, Group, GroupOutcome, Kind};
use aleator_train::{Event, Settings, Tuning, load_run};

use crate::support::{DIGITS, Files, RECIPE, Trial, column, cycle, npy, resolve};

/// [`RECIPE`] by L-BFGS on all examples.
fn lbfgs() -> String {
    let sgd = "kind = \"sgd\"\nmomentum = 0.9\nnesterov = false";
    let lbfgs = "kind = \"lbfgs\"\nmemory = 5\ntolerance = 1e-5\nrefit = false";
    let batch = "batch = 16\nparts = 1";
    let all = "batch = 16777216\nparts = 4096\nvalidate_every = 10";
    assert!(RECIPE.contains(sgd) && RECIPE.contains(batch));
    let text = RECIPE.replace(sgd, lbfgs).replace(batch, all).replace("epochs = 2", "epochs = 200");
    text.replace("weights = \"best\"", "weights = \"last\"")
}

const FULL: [&str; 2] = ["head.noise=full", "head.rank=2"];
const ON_FEATURES: [&str; 2] = ["head.noise=xl", "head.rank=2"];

#[test]
fn softmax_regression_converges_to_where_the_gradient_vanishes() {
    let trial = Trial::new(&lbfgs(), &[DIGITS, "data.limit=400", "optimizer.l2.mean=0.01"]);
    let events = trial.train();
    let (first, last) = (&events.steps[0], events.steps.last().unwrap());
    assert!(events.steps.len() < 200, "it ends by itself, after {}", events.steps.len());
    assert!(last.loss < 0.2 * first.loss, "{} from {}", last.loss, first.loss);
    // λ‖w‖ balances the gradient of the loss, so that of the whole objective is small.
    let steps = trial.steps();
    let weights = trial.weights(*steps.last().unwrap());
    let (_, weight) = &weights["output.head.mean.weight"];
    let norm = weight.iter().map(|w| (*w as f64).powi(2)).sum::<f64>().sqrt();
    assert!((last.gradient_norm - 0.01 * norm).abs() < 0.05 * last.gradient_norm);
}

#[test]
fn a_resumed_search_comes_to_the_same_bits() {
    let sets = [&[DIGITS, "data.limit=300"][..], &FULL].concat();
    let whole = Trial::new(&lbfgs(), &sets);
    let steps = whole.train().steps.len();
    assert!(steps > 30, "{steps}");
    let parts = Trial::new(&lbfgs(), &sets);
    // In the middle of a line search, between validations, and right after one.
    for stop in [1, 2, 13, 20, 27] {
        parts.train_until(stop);
    }
    parts.train();
    for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
        assert_eq!(whole.bytes(steps, file), parts.bytes(steps, file), "{file}");
    }
    assert_eq!(whole.finish(), parts.finish());
}

#[test]
fn validation_examples_join_in_the_end_and_are_scored_by_weights_that_have_not_seen_them() {
    let test = ["data.test.fraction=0.2", "data.test.seed=1"];
    let sets = [&[DIGITS, "data.limit=300", "optimizer.l2.mean=0.01"][..], &test].concat();
    let apart = Trial::new(&lbfgs(), &sets);
    let first = apart.train().steps.len();
    let refit = [&sets[..], &["optimizer.refit=true"]].concat();
    let joined = Trial::new(&lbfgs(), &refit);
    let steps = joined.train().steps.len();
    assert!(steps > first + 5, "{first} steps without the validation examples, {steps} in all");
    let (apart, evaluation) = (apart.finish(), joined.finish());
    assert_eq!(apart.validation, evaluation.validation);
    assert_ne!(apart.test, evaluation.test);
    assert_eq!(joined.evaluate(Default::default()).unwrap(), evaluation);

    let parts = Trial::new(&lbfgs(), &refit);
    for stop in [5, first, first + 1, first + 4] {
        parts.train_until(stop);
    }
    parts.train();
    for file in ["model.safetensors", "state.json"] {
        assert_eq!(joined.bytes(steps, file), parts.bytes(steps, file), "{file}");
    }
    assert_eq!(parts.finish(), evaluation);
}

#[test]
fn a_validation_split_of_its_own_is_never_trained_on() {
    let files = Files::new();
    let classes = cycle(60);
    let train = files.source(&classes, &column(&classes));
    let [x, y] = train.clone().map(|set| set.replacen("data.train", "data.validation", 1));
    let sets = ["data.validation=", &x, &y, "optimizer.refit=true"];
    let trial = Trial::on(&lbfgs(), &train, &sets);
    trial.train();
    let state = trial.bytes(*trial.steps().last().unwrap(), "state.json");
    assert!(!String::from_utf8(state).unwrap().contains("joined"));
}

#[test]
fn without_a_use_for_noise_the_run_has_none() {
    let mut recipe = resolve(&lbfgs(), &[&[DIGITS, "tune=auto"][..], &FULL].concat());
    Settings { normalize: Normalize::Global, mean: 0.5, noise: None }.write_to(&mut recipe, 0.1);
    assert_eq!((recipe.head.noise, recipe.tune), (Noise::None, Tune::Off));
    assert!((recipe.optimizer.l2.mean - 0.05).abs() < 1e-12);
    recipe.check().unwrap();
}

#[test]
fn a_batch_that_leaves_examples_out_is_refused() {
    let recipe = resolve(&lbfgs(), &[DIGITS, "training.batch=64", "training.parts=1"]);
    let data = aleator_data::DataSet::open(&recipe.data, recipe.head.link).unwrap();
    let message = aleator_train::check_recipe(&recipe, &data).unwrap_err().to_string();
    assert!(message.contains("training.batch is 64"), "{message}");
}

/// Three classes in features of which one is a million times as large as the others and says
/// nothing; a fifth of the labels is wrong.
fn units(files: &Files, sets: &[&str]) -> Recipe {
    let classes = cycle(150);
    let mut words = aleator_kernels::split_mix(3);
    let mut unit = || (words.next().unwrap() >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
    let row = |class: &usize| {
        let mut row: Vec<f32> =
            (0..3).map(|at| unit() + f32::from(u8::from(at == *class))).collect();
        row.push(1e6 * unit());
        row
    };
    let features: Vec<f32> = classes.iter().flat_map(row).collect();
    let labels: Vec<usize> = classes
        .iter()
        .enumerate()
        .map(|(at, class)| (class + usize::from(at % 5 == 0)) % 3)
        .collect();
    let features = files.write("x.npy", npy(150, 4, &features));
    let labels = files.write("labels.csv", column(&labels));
    let source = [format!("data.train.features={features}"), format!("data.train.labels={labels}")];
    let sets = source.iter().map(String::as_str).chain(sets.iter().copied());
    let sets: Vec<&str> = sets.chain(["tune=auto", "network.normalize=global"]).collect();
    resolve(&lbfgs(), &sets)
}

/// Trains a recipe in a directory, stopping after some trials; the trials made, and whether it
/// came to its end.
fn run(out: &Path, recipe: &Recipe, stop_after: usize) -> (usize, bool) {
    let stop = AtomicBool::new(false);
    let mut trials = 0;
    let group = if out.exists() {
        group::open(out).unwrap()
    } else {
        let group = Group::new(Kind::Seeds, group::members("", recipe)).unwrap();
        group::create(out, &group).unwrap();
        group
    };
    let outcome = group::finish(out, &group, None, &stop, &mut |_, event| {
        if let Event::Trial { .. } = event {
            trials += 1;
            stop.store(trials >= stop_after, Ordering::Relaxed);
        }
    });
    (trials, matches!(outcome.unwrap(), GroupOutcome::Evaluated(_)))
}

fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap()
}

#[test]
fn the_scale_is_chosen_so_that_no_feature_drowns_the_others() {
    let files = Files::new();
    let out = files.path().join("run");
    let (_, finished) = run(&out, &units(&files, &FULL), usize::MAX);
    assert!(finished);
    let (run, recipe) = load_run(&out).unwrap();
    assert_eq!(recipe.network.normalize, Normalize::PerFeature);
    assert_eq!(recipe.tune, Tune::Off, "the recipe of the run has the values themselves");
    assert_eq!(run.info().noise, recipe.head.noise);
    assert!(matches!(recipe.head.noise, Noise::None | Noise::LowRank { rank: 1 | 2 }));
    assert!(read(&out, "untuned.toml").contains("tune = \"auto\""));
    let tuning: Tuning = run.read_json(Tuning::NAME).unwrap();
    // The best of its kind: noise is left out where the gain may be chance.
    let kind = |trial: &&aleator_train::Trial| {
        trial.settings.noise.is_some() == tuning.chosen.noise.is_some()
    };
    let alike = tuning.trials.iter().filter(kind);
    let best = alike.min_by(|a, b| a.nll.total_cmp(&b.nll)).unwrap();
    let chosen = tuning.trials.iter().find(|trial| trial.settings == tuning.chosen).unwrap();
    assert!(chosen.nll <= best.nll * 1.001, "{} {}", chosen.nll, best.nll);
    // More examples need in proportion less decay.
    let share = tuning.trained_on as f64 / run.info().examples.train as f64;
    assert!((recipe.optimizer.l2.mean - tuning.chosen.mean * share).abs() < 1e-12);
    assert!(tuning.to_string().contains("each feature divided by its own"), "{tuning}");
    // The recipe of the run gives the same run.
    let again = files.path().join("again");
    run_silently(&again, &recipe);
    assert_eq!(read(&again, "evaluation.json"), read(&out, "evaluation.json"));
}

fn run_silently(out: &Path, recipe: &Recipe) {
    assert_eq!(run(out, recipe, usize::MAX), (0, true), "nothing is left to choose");
}

#[test]
fn stopped_tuning_resumes_to_the_same_bits() {
    for noise in [FULL, ON_FEATURES] {
        let files = Files::new();
        let recipe = units(&files, &noise);
        let (whole, parts) = (files.path().join("whole"), files.path().join("parts"));
        let (trials, _) = run(&whole, &recipe, usize::MAX);
        let mut made = 0;
        for _ in 0..100 {
            let (trials, finished) = run(&parts, &recipe, 3);
            made += trials;
            if finished {
                break;
            }
        }
        assert!(made <= trials + 40, "trials before a stop are not made again: {made}, {trials}");
        for file in ["tuning.json", "recipe.toml", "evaluation.json", "untuned.toml"] {
            assert_eq!(read(&whole, file), read(&parts, file), "{file}");
        }
        assert!(!parts.join("tuning-trials").exists());
    }
}

/// Noise on the features passes through W, so its decay begins at another size.
#[test]
fn the_decay_of_noise_on_the_features_begins_with_the_size_of_the_weights() {
    let files = Files::new();
    for (name, noise, is_scaled) in [("utilities", FULL, false), ("features", ON_FEATURES, true)] {
        let out = files.path().join(name);
        run(&out, &units(&files, &noise), usize::MAX);
        let tuning: Tuning = serde_json::from_str(&read(&out, "tuning.json")).unwrap();
        let mut with_noise = tuning.trials.iter().filter_map(|trial| {
            let settings = trial.settings;
            Some((settings.mean, settings.noise?))
        });
        let (mean, noise) = with_noise.next().unwrap();
        assert_eq!(noise.diagonal, noise.loadings);
        assert_eq!(noise.loadings != mean, is_scaled, "{name}: {mean} {noise:?}");
    }
}

#[cfg(unix)]
#[test]
fn trials_that_cannot_be_read_are_not_made_again_and_stay() {
    let files = Files::new();
    let recipe = units(&files, &FULL);
    let out = files.path().join("run");
    assert_eq!(run(&out, &recipe, 3), (3, false));
    let trials = out.join("tuning-trials/trials.json");
    let kept = out.join("kept.json");
    std::fs::rename(&trials, &kept).unwrap();
    // A link to itself cannot be read, whoever the user is.
    std::os::unix::fs::symlink(&trials, &trials).unwrap();
    let group = group::open(&out).unwrap();
    let stop = AtomicBool::new(false);
    let refused = group::finish(&out, &group, None, &stop, &mut |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains("cannot read"), "{refused}");
    std::fs::rename(&kept, &trials).unwrap();
    let (whole, _) = run(&files.path().join("whole"), &recipe, usize::MAX);
    assert_eq!(run(&out, &recipe, usize::MAX), (whole - 3, true));
}

#[test]
fn seeds_and_folds_share_what_was_chosen() {
    let files = Files::new();
    let recipe = units(&files, &["seeds=[1,2]"]);
    let out = files.path().join("seeds");
    let (trials, finished) = run(&out, &recipe, usize::MAX);
    assert!(finished);
    let [one, two] = ["seed-1", "seed-2"].map(|name| out.join(name));
    assert_eq!(read(&one, "tuning.json"), read(&two, "tuning.json"));
    assert_eq!(
        trials,
        serde_json::from_str::<Tuning>(&read(&one, "tuning.json")).unwrap().trials.len()
    );
    // A member that is missing takes the choice of one that is there.
    let evaluation = read(&two, "evaluation.json");
    std::fs::remove_dir_all(&two).unwrap();
    assert_eq!(run(&out, &recipe, usize::MAX), (0, true));
    assert_eq!(read(&two, "evaluation.json"), evaluation);
}

#[test]
fn no_more_parts_are_held_out_than_chance_makes_necessary() {
    let files = Files::new();
    // 500 validation examples are few, a third of all examples is not.
    for (examples, folds) in [(4_500, 2), (6_300, 1)] {
        let classes = cycle(examples);
        let source = files.source(&classes, &column(&classes));
        let sets = [source[0].as_str(), &source[1], "tune=auto", "optimizer.refit=true"];
        let out = files.path().join(format!("run-{examples}"));
        let (_, finished) = run(&out, &resolve(&lbfgs(), &sets), usize::MAX);
        assert!(finished);
        let tuning: Tuning = serde_json::from_str(&read(&out, "tuning.json")).unwrap();
        assert_eq!((tuning.folds, tuning.trained_on), (folds, examples * 2 / 3));
    }
}
