//! Checkpoints: the same bits after any interruption, and a message for every kind of damage.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::support::{RECIPE, Tensors, Trial, adam, tensors};
use aleator_run::MetricsLog;
use aleator_train::dynamics;
use safetensors::tensor::{Dtype, TensorView};

/// With everything that a checkpoint has: two layers, factors, averages of weights and moments.
const RICH: [&str; 6] = [
    "network.kind=mlp",
    "network.hidden=[6]",
    "network.normalize=per-feature",
    "head.noise=full",
    "head.rank=2",
    "training.ema=0.9",
];

/// 30 training examples in batches of 6: five steps an epoch.
fn rich(sets: &[&str]) -> Trial {
    let sets: Vec<&str> = RICH.iter().chain(&["training.batch=6"]).chain(sets).copied().collect();
    Trial::on_clusters(&adam(), 40, &sets)
}

const FILES: [&str; 5] = [
    "model.safetensors",
    "average.safetensors",
    "optimizer.safetensors",
    "state.json",
    "manifest.json",
];

#[test]
fn ten_steps_are_five_and_five_bit_for_bit() {
    let whole = rich(&[]);
    whole.train();
    // At the end of an epoch, within one, and twice.
    for stops in [vec![5], vec![3], vec![2, 7]] {
        let parts = rich(&[]);
        stops.iter().for_each(|step| drop(parts.train_until(*step)));
        let events = parts.train();
        assert_eq!(events.steps.len(), 10 - stops.last().unwrap());
        for file in FILES {
            assert!(parts.bytes(10, file) == whole.bytes(10, file), "{file} after {stops:?}");
        }
        let log = |trial: &Trial| MetricsLog::read(&trial.run.metrics_path()).unwrap();
        assert_eq!(log(&parts), log(&whole));
    }
}

#[test]
fn bootstrapping_in_parts_is_killed_and_resumed_to_the_same_bits() {
    for targets in ["hard", "soft"] {
        let targets = format!("bootstrapping.targets={targets}");
        let sets = [
            "method=bootstrapping",
            "bootstrapping.beta=0.8",
            "bootstrapping.burn_in=1",
            "training.parts=3",
            "checkpoint.every_steps=3",
            &targets,
        ];
        let whole = rich(&sets);
        whole.train();
        let killed = rich(&sets);
        killed.train_until(7);
        // As if killed at step 7, before it could save: step 6 is the newest.
        fs::remove_dir_all(killed.checkpoint(7)).unwrap();
        assert_eq!(killed.train().steps.len(), 4);
        for file in FILES {
            assert!(killed.bytes(10, file) == whole.bytes(10, file), "{file} {targets}");
        }
        assert!(rich_plain(&whole) != whole.bytes(10, "model.safetensors"), "{targets}");
    }
}

/// The weights of the same run without bootstrapping.
fn rich_plain(other: &Trial) -> Vec<u8> {
    let plain = rich(&["training.parts=3", "checkpoint.every_steps=3"]);
    plain.train();
    assert!(plain.bytes(3, "model.safetensors") == other.bytes(3, "model.safetensors"), "burn-in");
    plain.bytes(10, "model.safetensors")
}

/// Of 30 training examples: the decay is 1/128, without rounding.
const DYNAMICS: [&str; 4] = [
    "method=dynamics",
    "dynamics.prior_examples=0.234375",
    "training.parts=3",
    "checkpoint.every_steps=3",
];

#[test]
fn dynamics_are_killed_and_resumed_to_the_same_memory_and_bits() {
    let whole = rich(&DYNAMICS);
    whole.train();
    let killed = rich(&DYNAMICS);
    killed.train_until(7);
    // As if killed at step 7, before it could save: step 6 is the newest.
    fs::remove_dir_all(killed.checkpoint(7)).unwrap();
    assert_eq!(killed.train().steps.len(), 4);
    for file in FILES.iter().chain(&["method.safetensors"]) {
        assert!(killed.bytes(10, file) == whole.bytes(10, file), "{file}");
    }
    let memory = tensors(&whole.bytes(10, "method.safetensors"));
    // Two epochs of 30 examples.
    assert_eq!(memory["dynamics.epochs"], (vec![30], vec![2.0; 30]));
}

#[test]
fn dynamics_move_the_weights_as_plain_training_with_the_same_decay_does() {
    let (dynamics, plain) = (
        rich(&DYNAMICS),
        rich(&[
            "training.parts=3",
            "checkpoint.every_steps=3",
            "optimizer.l2.network=0.0078125",
            "optimizer.l2.mean=0.0078125",
            "optimizer.l2.covariance=0.0078125",
        ]),
    );
    dynamics.train();
    plain.train();
    for file in ["model.safetensors", "average.safetensors", "optimizer.safetensors"] {
        assert!(dynamics.bytes(10, file) == plain.bytes(10, file), "{file}");
    }
}

#[test]
fn dynamics_of_a_split_are_those_that_a_run_on_it_keeps() {
    let trial = rich(&DYNAMICS);
    trial.train();
    let memory = tensors(&trial.bytes(10, "method.safetensors"));
    let normalize = trial.recipe.network.normalize;
    let go = AtomicBool::new(false);
    let train = Arc::clone(&trial.data.train);
    let mut steps = vec![];
    let found = dynamics(&trial.recipe, 0, normalize, &train, &go, &mut |step, total| {
        steps.push((step, total));
    });
    let found = found.unwrap().unwrap();
    assert_eq!(steps, (1..=10).map(|step| (step, 10)).collect::<Vec<_>>());
    let (_, sums) = &memory["dynamics.log_probs"];
    for (found, sums) in found.chunks_exact(3).zip(sums.chunks_exact(3)) {
        let mean: Vec<f64> = sums.iter().map(|sum| f64::from(*sum) / 2.0).collect();
        let total: f64 = mean.iter().map(|value| value.exp()).sum();
        for (found, mean) in found.iter().zip(mean) {
            // The same sums in the same order, rounded to f32 once more.
            assert!((f64::from(*found) - (mean - total.ln())).abs() < 1e-6, "{found} {mean}");
        }
    }
    let stopped =
        dynamics(&trial.recipe, 0, normalize, &train, &AtomicBool::new(true), &mut |_, _| {});
    assert_eq!(stopped.unwrap(), None);
    let plain = rich(&[]).recipe;
    let refused = dynamics(&plain, 0, normalize, &train, &go, &mut |_, _| {}).unwrap_err();
    assert!(refused.to_string().contains("method must be \"dynamics\""), "{refused}");
}

#[test]
fn what_a_killed_run_wrote_after_its_checkpoint_is_written_again() {
    let whole = rich(&[]);
    whole.train();
    let killed = rich(&["checkpoint.every_steps=3"]);
    killed.train_until(4);
    // As if killed at step 4, before it could save: step 3 is the newest.
    fs::remove_dir_all(killed.checkpoint(4)).unwrap();
    killed.train();
    assert!(killed.bytes(10, "model.safetensors") == whole.bytes(10, "model.safetensors"));
    let steps: Vec<u64> = MetricsLog::read(&killed.run.metrics_path())
        .unwrap()
        .iter()
        .filter(|line| line.contains_key("loss"))
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, (1..=10).collect::<Vec<u64>>());
}

/// Damages the newest of two checkpoints, and returns the message about it when training resumes
/// from the other one, which must come to the same weights.
fn message_of(damage: impl Fn(&Path)) -> String {
    let whole = rich(&[]);
    whole.train();
    let trial = rich(&["checkpoint.every_steps=2"]);
    trial.train_until(4);
    damage(&trial.checkpoint(4));
    let events = trial.train();
    assert_eq!(events.steps.len(), 8, "from step 2");
    assert!(trial.bytes(10, "model.safetensors") == whole.bytes(10, "model.safetensors"));
    assert_eq!(events.damaged.len(), 1);
    assert!(events.damaged[0].contains("step-00000004"), "{}", events.damaged[0]);
    events.damaged[0].clone()
}

fn assert_named(damage: impl Fn(&Path), words: &[&str]) {
    let message = message_of(damage);
    words.iter().for_each(|word| assert!(message.contains(word), "{word}: {message}"));
}

#[test]
fn a_missing_manifest_is_named() {
    assert_named(
        |folder| fs::remove_file(folder.join("manifest.json")).unwrap(),
        &["manifest.json"],
    );
}

#[test]
fn another_format_is_named() {
    let damage =
        |folder: &Path| edit(&folder.join("manifest.json"), "\"format\": 1", "\"format\": 7");
    assert_named(damage, &["format 7", "reads 1"]);
}

#[test]
fn a_manifest_that_is_no_json_is_named() {
    let damage = |folder: &Path| fs::write(folder.join("manifest.json"), "{").unwrap();
    assert_named(damage, &["manifest.json", "EOF"]);
}

#[test]
fn a_flipped_byte_is_named() {
    let damage = |folder: &Path| {
        let path = folder.join("optimizer.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
    };
    assert_named(damage, &["optimizer.safetensors", "hash"]);
}

#[test]
fn a_truncated_file_is_named_with_both_lengths() {
    let damage = |folder: &Path| {
        let path = folder.join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..100]).unwrap();
    };
    assert_named(damage, &["model.safetensors", "100 bytes long, not"]);
}

#[test]
fn a_missing_file_is_named() {
    let damage = |folder: &Path| fs::remove_file(folder.join("average.safetensors")).unwrap();
    assert_named(damage, &["average.safetensors", "is missing"]);
}

/// Changes the newest of two checkpoints so that it is whole but of another network, and returns
/// the message with which training refuses to go on. All checkpoints must stay.
fn refusal_of(change: impl Fn(&Path)) -> String {
    let trial = rich(&["checkpoint.every_steps=2"]);
    trial.train_until(4);
    change(&trial.checkpoint(4));
    let (events, outcome) = trial.try_train_until(usize::MAX);
    assert_eq!((events.steps.len(), events.damaged.len()), (0, 0));
    assert_eq!(trial.steps(), [2, 4]);
    outcome.unwrap_err().to_string()
}

fn assert_refused(change: impl Fn(&Path), words: &[&str]) {
    let message = refusal_of(change);
    words.iter().for_each(|word| assert!(message.contains(word), "{word}: {message}"));
}

#[test]
fn a_missing_tensor_is_refused() {
    let change = |folder: &Path| {
        rewrite(folder, "model.safetensors", |all| drop(all.remove("output.head.mean.bias")));
    };
    assert_refused(change, &["model.safetensors: output.head.mean.bias is missing", "recipe.toml"]);
}

#[test]
fn another_shape_is_refused_with_both() {
    let change = |folder: &Path| {
        rewrite(folder, "optimizer.safetensors", |all| {
            all.get_mut("output.head.mean.bias.average0").unwrap().0 = vec![3, 1];
        });
    };
    assert_refused(change, &["output.head.mean.bias.average0", "[3, 1], not [3]"]);
}

#[test]
fn a_normalization_of_another_width_is_refused() {
    let change = |folder: &Path| {
        rewrite(folder, "model.safetensors", |all| {
            *all.get_mut("normalization.scale").unwrap() = (vec![0], vec![]);
        });
    };
    assert_refused(change, &["normalization.scale", "[0], not [4]"]);
    let change = |folder: &Path| {
        rewrite(folder, "model.safetensors", |all| {
            *all.get_mut("normalization.center").unwrap() = (vec![1], vec![0.0]);
        });
    };
    assert_refused(change, &["run.json: input_shape is [4]", "1 numbers"]);
}

#[test]
fn a_recipe_of_another_network_is_refused_and_nothing_is_lost() {
    let mut trial = rich(&["checkpoint.every_steps=2"]);
    trial.train_until(4);
    for hidden in [5, 7, 60_000] {
        trial.recipe.network.layers = aleator_run::recipe::Layers::Mlp { hidden: vec![hidden] };
        let (_, outcome) = trial.try_train_until(usize::MAX);
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("recipe.toml"), "{message}");
        assert_eq!(trial.steps(), [2, 4]);
    }
}

#[test]
fn a_recipe_that_asks_for_more_than_was_saved_is_refused() {
    let mut trial = rich(&["checkpoint.every_steps=2"]);
    trial.recipe.training.ema = None;
    trial.train_until(4);
    trial.recipe.training.ema = Some(0.9);
    let (_, outcome) = trial.try_train_until(usize::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("average.safetensors: was never saved"), "{message}");
    assert_eq!(trial.steps(), [2, 4]);
}

#[cfg(unix)]
#[test]
fn a_checkpoint_that_cannot_be_read_stops_training_and_stays() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let trial = rich(&["checkpoint.every_steps=2"]);
    trial.train_until(4);
    let state = trial.checkpoint(4).join("state.json");
    let refused = || {
        let (events, outcome) = trial.try_train_until(usize::MAX);
        assert_eq!((events.steps.len(), events.damaged.len()), (0, 0));
        assert_eq!(trial.steps(), [2, 4]);
        outcome.unwrap_err().to_string()
    };
    // A link to itself is ELOOP, for every user.
    let content = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    symlink(&state, &state).unwrap();
    assert!(refused().contains("cannot read"), "{}", refused());
    fs::remove_file(&state).unwrap();
    fs::write(&state, content).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser reads everything.
    if fs::read(&state).is_err() {
        assert!(refused().contains("you have no permission"), "{}", refused());
    }
    fs::set_permissions(&state, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(trial.train().steps.len(), 6, "from step 4");
}

#[test]
fn a_checkpoint_under_another_step_s_name_is_named() {
    let trial = rich(&["checkpoint.every_steps=2"]);
    trial.train_until(4);
    fs::rename(trial.checkpoint(4), trial.checkpoint(9)).unwrap();
    let events = trial.train();
    assert_eq!(events.steps.len(), 8, "from step 2");
    assert!(events.damaged[0].contains("is of step 4"), "{}", events.damaged[0]);
}

#[test]
fn weights_that_are_not_numbers_stop_training_with_the_examples_named() {
    let trial = rich(&[]);
    trial.train_until(2);
    rewrite(&trial.checkpoint(2), "model.safetensors", |all| {
        all.get_mut("output.head.mean.weight").unwrap().1[0] = f32::NAN;
    });
    let (_, outcome) = trial.try_train_until(usize::MAX);
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("not finite at step 2, from 6 of the batch's examples: "),
        "{message}"
    );
}

#[test]
fn a_run_whose_checkpoints_are_all_damaged_starts_again() {
    let trial = rich(&[]);
    trial.train_until(2);
    fs::remove_file(trial.checkpoint(2).join("manifest.json")).unwrap();
    let events = trial.train();
    assert_eq!((events.steps.len(), events.damaged.len()), (10, 1));
}

#[test]
fn the_last_few_and_the_best_are_kept() {
    // The rate is so high that the first epoch is the best.
    let sets = ["optimizer.learning_rate=30.0", "schedule.epochs=6", "checkpoint.keep=2"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let events = trial.train();
    let steps_per_epoch = events.steps.len() / 6;
    let best = events.epochs.iter().rfind(|(_, _, best)| *best).unwrap().0;
    assert!(best < 5, "the test wants a best epoch that is not one of the last two: {best}");
    assert_eq!(trial.steps(), [best, 5, 6].map(|epoch| epoch * steps_per_epoch));
}

#[test]
fn a_damaged_checkpoint_stays_until_training_is_beyond_it() {
    let trial = rich(&["checkpoint.keep=2"]);
    trial.train_until(2);
    trial.train_until(4);
    fs::remove_file(trial.checkpoint(4).join("manifest.json")).unwrap();
    let passed_over = |name: &str| trial.run.checkpoints_path().join(name);
    trial.train_until(3);
    // It is not kept in place of a whole one either.
    assert_eq!(trial.steps(), [2, 3]);
    assert!(passed_over("passed-over-step-00000004").join("model.safetensors").exists());
    // Two of one step.
    for stop in [4, 5] {
        fs::create_dir(trial.checkpoint(6)).unwrap();
        trial.train_until(stop);
    }
    assert!(!passed_over("passed-over-step-00000004").exists());
    assert!(passed_over("passed-over-step-00000006").exists());
    assert!(passed_over("passed-over-step-00000006-2").exists());
    trial.train_until(7);
    assert!(!passed_over("passed-over-step-00000006").exists());
    assert!(!passed_over("passed-over-step-00000006-2").exists());
}

#[test]
fn of_a_finished_run_a_damaged_best_checkpoint_is_made_again() {
    // The rate is so high that the first epoch is the best.
    let sets = ["optimizer.learning_rate=30.0", "schedule.epochs=5", "checkpoint.keep=1"];
    let trial = Trial::on_clusters(RECIPE, 40, &sets);
    let evaluation = trial.finish();
    let (best, last) = (evaluation.step.unwrap(), trial.steps()[1]);
    assert_eq!(trial.steps(), [best, last]);
    let files = |step: usize| FILES.map(|file| fs::read(trial.checkpoint(step).join(file)).ok());
    let (of_best, of_last) = (files(best), files(last));
    let weights = trial.checkpoint(best).join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    // Stopped on the way: neither the run nor its evaluation may pass for finished or get worse.
    trial.train_until(1);
    assert_eq!(trial.run.evaluation().unwrap().unwrap(), evaluation);
    let names: Vec<String> = fs::read_dir(trial.run.checkpoints_path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| *name == format!("passed-over-step-{last:08}")), "{names:?}");
    let message = trial.evaluate(Default::default()).unwrap_err().to_string();
    assert!(message.contains("aleator resume"), "{message}");
    assert_eq!(trial.finish(), evaluation);
    assert_eq!(trial.steps(), [best, last]);
    assert!(files(best) == of_best && files(last) == of_last);
}

#[test]
fn a_finished_run_without_checkpoints_stays_as_it_is() {
    let trial = rich(&[]);
    let evaluation = trial.finish();
    fs::remove_dir_all(trial.run.checkpoints_path()).unwrap();
    assert_eq!(trial.finish(), evaluation);
    assert!(trial.steps().is_empty());
}

#[test]
fn leftovers_of_killed_writers_are_ignored_and_taken_away() {
    let trial = rich(&[]);
    trial.train_until(2);
    let leftover = trial.run.checkpoints_path().join(".tmp-1-0-step-00000009");
    fs::create_dir(&leftover).unwrap();
    fs::write(leftover.join("model.safetensors"), "half").unwrap();
    // A folder that was being replaced comes back.
    let replaced = trial.run.checkpoints_path().join(".old-step-00000002");
    fs::rename(trial.checkpoint(2), replaced).unwrap();
    let events = trial.train();
    assert_eq!((events.steps.len(), events.damaged.len()), (8, 0));
    assert!(!leftover.exists());
}

#[test]
fn a_finished_run_makes_no_step_more() {
    let trial = rich(&[]);
    trial.train();
    let before = trial.bytes(10, "manifest.json");
    assert!(trial.train().steps.is_empty());
    assert!(trial.bytes(10, "manifest.json") == before);
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Changes tensors of a file, and its hash in the manifest.
fn rewrite(folder: &Path, file: &str, change: impl Fn(&mut Tensors)) {
    let path = folder.join(file);
    let mut all = tensors(&fs::read(&path).unwrap());
    change(&mut all);
    let bytes: Vec<Vec<u8>> = all
        .values()
        .map(|(_, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = all.iter().zip(&bytes).map(|((name, (shape, _)), bytes)| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize_to_file(views, None, &path).unwrap();
    let written = fs::read(&path).unwrap();
    let manifest = folder.join("manifest.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    json["files"][file]["bytes"] = written.len().into();
    json["files"][file]["blake3"] = blake3::hash(&written).to_hex().to_string().into();
    fs::write(manifest, json.to_string()).unwrap();
}
