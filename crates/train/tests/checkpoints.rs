//! Checkpoints: the same bits after any interruption.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::support::{RECIPE, Trial, adam, tensors};
use aleator_run::MetricsLog;
use aleator_train::dynamics;

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
pub fn rich(sets: &[&str]) -> Trial {
    let sets: Vec<&str> = RICH.iter().chain(&["training.batch=6"]).chain(sets).copied().collect();
    Trial::on_clusters(&adam(), 40, &sets)
}

/// The files of its checkpoints.
pub const FILES: [&str; 5] = [
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
