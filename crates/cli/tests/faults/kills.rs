//! SIGKILL in place of a file operation: continued, the command comes to the same bytes.

use super::jobs::{self, Job};
use super::{Fault, is_slow, random, sample, shim};

/// Kills a job at `count` operations that change something, and again while it is resumed.
fn survives_kills(job: &Job, count: usize) {
    let changes = |call: &super::Call| !matches!(call.operation.as_str(), "open" | "read");
    for (number, at) in sample(&job.calls, count, changes).into_iter().enumerate() {
        // Killed with one number of threads, continued with the other.
        let (before, after) = (1 + number % 2, 2 - number % 2);
        let (ended, calls) = job.run(before, Fault::Kill(at));
        // With two threads the operations may come in another order, but none is left out.
        assert_eq!(ended.code, None, "{} was not killed at {at}: {}", job.name(), ended.stderr);
        let mut what = format!("{}\nkilled at {at}, {:?}", job.name(), calls.last());
        if number % 2 == 1 || is_slow() {
            let second = random(number as u64, 60);
            shim::run(&job.place, &job.again(), Fault::Kill(second));
            what += &format!("\nand at {second} of its continuation");
        }
        job.continues(after, &what);
    }
}

#[test]
fn killed_training_comes_to_the_same_bytes() {
    survives_kills(&jobs::train(), 9);
}

#[test]
fn killed_training_that_chooses_its_settings_comes_to_the_same_bytes() {
    survives_kills(&jobs::tuned_train(), 1);
}

#[test]
fn killed_resumption_comes_to_the_same_bytes() {
    survives_kills(&jobs::resume(), 6);
}

#[test]
fn killed_seeds_come_to_the_same_bytes() {
    survives_kills(&jobs::seeds(), 4);
}

#[test]
fn a_killed_tuning_comes_to_the_same_bytes() {
    survives_kills(&jobs::tune(), 3);
}

#[test]
fn a_killed_sweep_comes_to_the_same_bytes() {
    survives_kills(&jobs::sweep(), 3);
}

#[test]
fn a_killed_audit_with_folds_comes_to_the_same_bytes() {
    survives_kills(&jobs::audit_with_folds(), 4);
}

#[test]
fn a_killed_audit_without_folds_comes_to_the_same_bytes() {
    survives_kills(&jobs::audit_without_folds(), 2);
}

#[test]
fn killed_embedding_comes_to_the_same_bytes() {
    survives_kills(&jobs::embed(), 7);
    survives_kills(&jobs::embed_by_a_run(), 3);
}

#[test]
fn a_killed_transfer_comes_to_the_same_bytes() {
    survives_kills(&jobs::transfer(), 2);
}

#[test]
fn killed_writers_of_single_files_leave_the_old_or_the_new_one() {
    for job in [jobs::predict("csv"), jobs::report(), jobs::accept(), jobs::eval()] {
        survives_kills(&job, 6);
    }
}
