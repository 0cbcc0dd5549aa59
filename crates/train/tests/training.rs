//! What training does: normalization, parts, averages, early stopping, learning.

use crate::support::{
    DIGITS, Files, RECIPE, Trial, adam, column, cycle, distance, npy, resolve, tensors,
};
use aleator_data::DataSet;
use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Normalize, Source};
use aleator_train::{Normalization, check_recipe};

/// Three examples: a feature that varies, and one that does not.
fn tiny(files: &Files) -> DataSet {
    let features = files.write("tiny.npy", npy(3, 2, &[0.0, 5.0, 2.0, 5.0, 4.0, 5.0]));
    let labels = files.write("tiny.csv", "label\n0\n1\n0\n");
    let source = Source {
        inputs: InputSource::Features(features),
        labels: Some(labels),
        clean_labels: None,
        ids: None,
    };
    let data = Data::of(source.clone(), HeldOut::Source(source));
    DataSet::open(&data, Link::Softmax).unwrap()
}

#[test]
fn inputs_are_normalised_by_the_moments_of_the_training_split() {
    let files = Files::new();
    let data = tiny(&files);
    let applied = |kind: Normalize| {
        let mut inputs = vec![6.0, 7.0, 2.0, 5.0];
        Normalization::fit(kind, &data.train).unwrap().apply(&mut inputs);
        inputs
    };
    let close = |found: Vec<f32>, expected: [f32; 4]| {
        let near = found.iter().zip(expected).all(|(found, it)| (found - it).abs() < 1e-6);
        assert!(near, "{found:?} for {expected:?}");
    };
    assert_eq!(applied(Normalize::None), [6.0, 7.0, 2.0, 5.0]);
    // Means 2 and 5; variances 8/3 and 0, so 4/3 over both features.
    let one = 4.0 / (8.0f32 / 3.0).sqrt();
    let both = (3.0f32 / 4.0).sqrt();
    close(applied(Normalize::PerFeature), [one, 0.0, 0.0, 0.0]); // a constant becomes 0
    close(applied(Normalize::Global), [4.0 * both, 2.0 * both, 0.0, 0.0]);
}

#[test]
fn inputs_that_never_vary_become_zero() {
    let files = Files::new();
    let features = files.write("x.npy", npy(8, 4, &[0.1; 32]));
    let labels = files.write("labels.csv", column(&cycle(8)));
    let source = [format!("data.train.features={features}"), format!("data.train.labels={labels}")];
    let trial = Trial::on(RECIPE, &source, &[]);
    for kind in [Normalize::Global, Normalize::PerFeature] {
        let fitted = Normalization::fit(kind, &trial.data.train).unwrap();
        assert_eq!(fitted.scale, [0.0; 4]);
    }
}

#[test]
fn parts_make_the_step_of_the_whole_batch() {
    let sets = ["head.noise=full", "head.rank=2", "schedule.epochs=3"];
    let with = |parts: &str| {
        let sets: Vec<&str> = sets.iter().copied().chain(["training.batch=10", parts]).collect();
        let trial = Trial::on_clusters(RECIPE, 40, &sets);
        let events = trial.train();
        (events, trial)
    };
    let (whole, one) = with("training.parts=1");
    let (parts, two) = with("training.parts=4");
    assert_eq!((whole.steps.len(), parts.steps.len()), (9, 9));
    for (whole, parts) in whole.steps.iter().zip(&parts.steps) {
        // The noise is named by the example, so only the order of sums differs.
        assert!((whole.loss - parts.loss).abs() < 1e-5 * whole.loss, "{whole:?} {parts:?}");
        assert_eq!(whole.accuracy, parts.accuracy);
    }
    assert!(distance(&one.weights(9), &two.weights(9)) < 1e-5);
    assert!(distance(&one.weights(9), &one.weights(3)) > 1e-2, "something was learned");
}

#[test]
fn more_parts_than_examples_are_as_many_as_examples() {
    let trial = Trial::on_clusters(RECIPE, 8, &["training.parts=100"]);
    assert_eq!(trial.train().steps.len(), 2);
}

/// Labels that are only given are plain labels, however they would be mixed.
#[test]
fn bootstrapping_with_all_weight_on_the_label_is_plain_training_bit_for_bit() {
    let base = ["head.noise=full", "head.rank=2", "checkpoint.every_steps=2"];
    let plain = Trial::on_clusters(&adam(), 40, &base);
    plain.train();
    for targets in ["hard", "soft", "soft-fixed"] {
        let targets = format!("bootstrapping.targets={targets}");
        let neutral = ["bootstrapping.beta=1.0", "bootstrapping.burn_in=0", "method=bootstrapping"];
        let sets: Vec<&str> =
            base.iter().chain(&neutral).copied().chain([targets.as_str()]).collect();
        let trial = Trial::on_clusters(&adam(), 40, &sets);
        trial.train();
        assert_eq!(trial.steps(), plain.steps());
        for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
            for step in plain.steps() {
                assert!(trial.bytes(step, file) == plain.bytes(step, file), "{targets} {file}");
            }
        }
        let log = |trial: &Trial| std::fs::read(trial.run.metrics_path()).unwrap();
        assert!(log(&trial) == log(&plain), "{targets}");
    }
}

#[test]
fn the_running_average_follows_its_formula() {
    let sets = ["training.ema=0.3", "checkpoint.every_steps=1"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let steps = trial.train().steps.len();
    let averages = |step| tensors(&trial.bytes(step, "average.safetensors"));
    for step in 2..=steps {
        // While it is young it follows faster; from step 3 on 0.3 is the lower.
        let decay = 0.3f32.min((1.0 + step as f32) / (10.0 + step as f32));
        let (mut expected, current) = (averages(step - 1), trial.weights(step));
        for (name, (_, values)) in &mut expected {
            for (average, current) in values.iter_mut().zip(&current[name].1) {
                *average = decay * *average + (1.0 - decay) * current;
            }
        }
        assert!(distance(&expected, &averages(step)) < 1e-7, "step {step}");
    }
    assert!(distance(&trial.weights(steps), &averages(steps)) > 1e-4);
}

#[test]
fn the_average_is_what_is_evaluated() {
    let trial = Trial::on_clusters(RECIPE, 40, &["training.ema=0.999"]);
    let plain = Trial::on_clusters(RECIPE, 40, &[]);
    let (averaged, last) = (trial.finish(), plain.finish());
    assert!(trial.bytes(4, "model.safetensors") == plain.bytes(4, "model.safetensors"));
    assert_ne!(averaged.validation.given.nll, last.validation.given.nll);
}

#[test]
fn patience_ends_training_and_the_best_epoch_is_evaluated() {
    // Labels without any relation to the inputs: soon memorised, and never generalised.
    let files = Files::new();
    let random: Vec<usize> =
        aleator_kernels::split_mix(1).take(48).map(|word| (word >> 20) as usize % 3).collect();
    let source = files.source(&[0; 48], &column(&random));
    let sets = [
        "network.kind=mlp",
        "network.hidden=[32]",
        "optimizer.learning_rate=0.1",
        "schedule.epochs=200",
        "training.patience=3",
        "checkpoint.keep=1",
    ];
    let trial = Trial::on(RECIPE, &source, &sets);
    let events = trial.train();
    let best = events.epochs.iter().rfind(|(_, _, best)| *best).unwrap();
    let last = events.epochs.last().unwrap().0;
    assert_eq!(last, best.0 + 3);
    assert_eq!(events.stopped_early, Some(last));
    assert!(last < 200);
    let lowest = events.epochs.iter().map(|(_, nll, _)| *nll).fold(f64::INFINITY, f64::min);
    assert_eq!(best.1, lowest);
    let evaluation = trial.finish();
    assert_eq!(evaluation.validation.given.nll, lowest);
    assert_eq!(evaluation.step, Some(best.0 * events.steps.len() / last));
    assert!(trial.train().steps.is_empty(), "a run that stopped early is over");
}

#[test]
fn patience_counts_on_after_an_interruption() {
    let sets = ["optimizer.learning_rate=30.0", "schedule.epochs=30", "training.patience=2"];
    let whole = Trial::on_clusters(RECIPE, 40, &sets);
    let events = whole.train();
    let all = events.steps.len();
    assert!(events.stopped_early.is_some());
    for step in [all - 1, all - 2, all - 3] {
        let parts = Trial::on_clusters(RECIPE, 40, &sets);
        parts.train_until(step);
        assert_eq!(parts.train().steps.len(), all - step);
    }
}

#[test]
fn a_learned_temperature_moves_and_stays_within_its_bounds() {
    let sets = [
        "head.noise=diagonal",
        "head.temperature={ low = 0.5, high = 1.5 }",
        "optimizer.learning_rate=1.0",
        "schedule.epochs=10",
        "evaluation.weights=last",
    ];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    trial.finish();
    let logit = trial.weights(20)["output.head.temperature_logit"].1[0];
    assert!(logit.abs() > 0.1, "it starts at 0 and is {logit}");
    let temperature = trial.predictions(aleator_run::Split::Validation).temperature;
    let expected = 0.5 + 1.0 / (1.0 + (-logit).exp());
    assert!((temperature - expected).abs() < 1e-6, "{temperature} for {expected}");
    assert!((0.5..=1.5).contains(&temperature));
}

#[test]
fn a_head_that_begins_with_zeros_gives_every_class_the_same_probability() {
    let sets = ["head.mean_init=0", "optimizer.learning_rate=0.1"];
    let events = Trial::on_clusters(RECIPE, 40, &sets).train();
    let (first, last) = (events.steps[0], events.steps.last().unwrap());
    assert!((first.loss - 3f64.ln()).abs() < 1e-6, "{first:?}");
    assert!(last.loss < first.loss, "{last:?}");
    let drawn = Trial::on_clusters(RECIPE, 40, &[]).train().steps[0];
    assert!((drawn.loss - 3f64.ln()).abs() > 1e-3, "{drawn:?}");
}

#[test]
fn every_head_learns_one_batch_by_heart() {
    for link in ["head.link=softmax", "head.link=sigmoid"] {
        for noise in ["none", "diagonal", "full", "shared"] {
            let noise = format!("head.noise={noise}");
            let mut sets = vec![link, &noise, "optimizer.learning_rate=0.05"];
            sets.extend(["schedule.epochs=150", "head.samples=64"]);
            if !noise.ends_with("diagonal") {
                sets.push("head.rank=2");
            }
            let events = Trial::on_clusters(&adam(), 16, &sets).train();
            let (first, last) = (events.steps[0], events.steps[149]);
            assert_eq!(last.accuracy, 1.0, "{link} {noise}");
            let (from, to) = (first.loss, last.loss);
            assert!(to < 0.2 * from, "{link} {noise}: {from} → {to}");
        }
    }
}

#[test]
fn networks_learn_digits_from_labels_of_which_a_fifth_are_wrong() {
    let networks: [(&[&str], f64); 2] = [
        (&["network.kind=mlp", "network.hidden=[64]", "optimizer.learning_rate=0.004"], 0.92),
        (&["network.kind=conv", "network.channels=[16,32]", "optimizer.learning_rate=0.02"], 0.9),
    ];
    for (network, at_least) in networks {
        let mut sets = vec![DIGITS, "network.normalize=global", "training.batch=64"];
        sets.extend(["data.noise.kind=symmetric", "data.noise.rate=0.2", "data.noise.seed=0"]);
        sets.extend(["schedule.epochs=10", "schedule.kind=cosine"]);
        sets.extend(network);
        let evaluation = Trial::new(&adam(), &sets).finish();
        let validation = evaluation.validation;
        let clean = validation.clean.unwrap().top1;
        assert!(clean > at_least, "{network:?}: {clean}");
        assert!(validation.given.top1 < 0.9, "the labels compared with are wrong too");
    }
}

#[test]
fn threads_and_workers_do_not_change_a_bit() {
    for network in [
        ["network.kind=mlp", "network.hidden=[32]"],
        ["network.kind=conv", "network.channels=[4,8]"],
    ] {
        let mut sets = vec![DIGITS, "head.noise=full", "head.rank=3", "schedule.epochs=1"];
        sets.extend(["training.batch=150", "network.normalize=global"]);
        sets.extend(network);
        let weights = |threads: usize, workers: usize| {
            let mut recipe = resolve(&adam(), &sets);
            recipe.training.workers = workers;
            let trial = Trial::of(recipe);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let steps = pool.install(|| trial.train().steps.len());
            trial.bytes(steps, "optimizer.safetensors")
        };
        let one = weights(1, 1);
        for (threads, workers) in [(2, 1), (2, 0), (1, 3)] {
            assert!(weights(threads, workers) == one, "{threads} threads, {workers} workers");
        }
    }
}

#[test]
fn a_rate_that_is_far_too_high_is_an_error_that_names_examples_and_keeps_the_checkpoint() {
    let sets = ["optimizer.learning_rate=1e37", "checkpoint.every_steps=1", "training.batch=2"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let (events, outcome) = trial.try_train_until(usize::MAX);
    let error = outcome.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("not finite"), "{message}");
    assert!(message.contains("optimizer.learning_rate"), "{message}");
    assert_eq!(trial.steps().last().copied().unwrap_or(0), events.steps.len());
}

#[test]
fn convolutions_on_vectors_are_refused() {
    let files = Files::new();
    let source = files.source(&cycle(9), &column(&cycle(9)));
    let all: Vec<&str> = source.iter().map(String::as_str).collect();
    let mut recipe = resolve(RECIPE, &all);
    recipe.network.layers = aleator_run::recipe::Layers::Conv { channels: vec![2] };
    let data = DataSet::open(&recipe.data, Link::Softmax).unwrap();
    let message = check_recipe(&recipe, &data).unwrap_err().to_string();
    assert!(message.contains("vectors of 4 numbers"), "{message}");
}

#[test]
fn the_smallest_data_that_can_be_divided_are_trained_on() {
    // One example to train on each step, one to validate with, batches larger than the data.
    let sets = ["data.validation.fraction=0.2", "training.batch=1"];
    let one_each = Trial::on_clusters(RECIPE, 5, &sets);
    assert_eq!(one_each.train().steps.len(), 8);
    let sets = ["data.validation.fraction=0.2", "training.batch=1000", "checkpoint.every_steps=99"];
    let all_at_once = Trial::on_clusters(RECIPE, 5, &sets);
    assert_eq!(all_at_once.finish().validation.given.examples, 1);
    assert_eq!(all_at_once.steps(), [1, 2]);
}

#[test]
fn small_data_are_taken_in_smaller_batches() {
    let steps = |sets: &[&str]| {
        let events = Trial::on_clusters(RECIPE, 40, sets).train();
        events.steps.len() / events.epochs.len()
    };
    let large = "training.batch=1000";
    assert_eq!(steps(&[large]), 1);
    let many = steps(&[large, "training.min_steps=6"]);
    assert!((6..=8).contains(&many), "{many}"); // batches of ⌊30 / 6⌋ examples
    assert_eq!(steps(&["training.batch=1", "training.min_steps=6"]), steps(&["training.batch=1"]));
}
