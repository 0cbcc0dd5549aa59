//! Checkpoints that are damaged, that cannot be read, or that are of another network: what is said
//! of each, and what stays.

use std::fs;
use std::path::Path;

use crate::checkpoints::{FILES, rich};
use crate::support::{RECIPE, Tensors, Trial, tensors};
use safetensors::tensor::{Dtype, TensorView};

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
