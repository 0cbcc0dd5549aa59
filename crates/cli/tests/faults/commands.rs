//! File operations that fail: a message that names the file, nothing half-written, nothing lost,
//! and the same bytes afterwards.

use std::fs;

use super::jobs::{self, Job};
use super::{Call, Errno, Fault, is_slow, random, sample};
use crate::support::Tree;

/// Makes `count` operations of a job fail, one in each run; in some runs all later ones fail too.
fn survives(job: &Job, count: usize) {
    for (number, at) in sample(&job.calls, count, |_| true).into_iter().enumerate() {
        let errors = job.calls[at].errors();
        let one = &errors[number % errors.len()..][..1];
        let chosen = if is_slow() { errors } else { one };
        chosen.iter().for_each(|error| fails(job, Fault::Once(at, *error)));
        if is_slow() || number % 4 == 0 {
            fails(job, Fault::Onwards(random(number as u64, job.calls.len())));
        }
    }
}

fn fails(job: &Job, fault: Fault) {
    let (ended, calls) = job.run(1, fault);
    let failed: Vec<&Call> = calls.iter().filter(|call| call.failed).collect();
    let what =
        format!("{}\nwith {fault:?}, {:?}\nsaid {}", job.name(), failed.first(), ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{what}");
    let is_named = failed.iter().any(|call| names(job, &ended.stderr, call));
    if job.warns && ended.code == Some(0) && is_named && ended.stderr.contains("warning: ") {
        return job.continues(2, &what);
    }
    let left = Tree::of(&job.place);
    left.assert_between(&job.before, &job.whole, &what);
    match ended.code {
        // What is not needed may fail, if nothing is missing then.
        Some(0) => left.assert_same(&job.whole, &what),
        Some(1) => assert!(is_named, "no file in: {what}"),
        code => panic!("exit code {code:?}: {what}"),
    }
    job.continues(2, &what);
}

/// Whether a message names the file of an operation, or the folder that it was for.
fn names(job: &Job, message: &str, call: &Call) -> bool {
    let root = fs::canonicalize(job.place.path("")).expect("the folder");
    let path = call.path.strip_prefix(root).expect("an operation below the folder");
    let parts = path.components().filter_map(|part| part.as_os_str().to_str()).map(meant);
    // A name that a library made up stands for a file of which we know only the folder.
    let parts: Vec<&str> = parts.filter(|part| !part.starts_with(".tmp")).collect();
    match parts.last() {
        // The working directory, because of a file in it, which must be named.
        None => !message.contains(" .: "),
        Some(_) => parts.iter().rev().take(2).any(|part| message.contains(part)),
    }
}

/// The file for which a temporary one was made: `.tmp-123-4-run.json` becomes `run.json`.
fn meant(part: &str) -> &str {
    let part = match part.strip_prefix(".tmp-") {
        Some(rest) => rest.splitn(3, '-').nth(2).unwrap_or(rest),
        None => part,
    };
    part.trim_end_matches(".partial").trim_end_matches(".progress")
}

#[test]
fn training_survives_failing_files() {
    survives(&jobs::train(), 12);
}

#[test]
fn training_that_chooses_its_settings_survives_failing_files() {
    survives(&jobs::tuned_train(), 1);
}

#[test]
fn resuming_survives_failing_files() {
    survives(&jobs::resume(), 10);
}

/// A file server that hiccups is no reason to train again from the beginning.
#[test]
fn a_checkpoint_that_cannot_be_read_is_neither_passed_over_nor_deleted() {
    let job = jobs::resume();
    let is_read = |call: &Call| {
        matches!(call.operation.as_str(), "open" | "read")
            && call.path.to_string_lossy().contains("/step-00000008")
    };
    let reads = sample(&job.calls, 4, is_read);
    assert!(!reads.is_empty());
    for at in reads {
        for error in [Errno::Io, Errno::Access, Errno::TooManyFiles] {
            let (ended, calls) = job.run(1, Fault::Once(at, error));
            let failed = calls.iter().find(|call| call.failed).expect("a call that failed");
            let what = format!("{error:?}, {failed:?}\nsaid {}", ended.stderr);
            ended.check_refusal(&what, &["step-00000008"]);
            assert!(!ended.stderr.contains("passing over"), "{what}");
            Tree::of(&job.place).assert_same(&job.before, &what);
            job.continues(2, &what);
        }
    }
}

#[test]
fn several_seeds_survive_failing_files() {
    survives(&jobs::seeds(), 4);
}

#[test]
fn tuning_survives_failing_files() {
    survives(&jobs::tune(), 4);
}

#[test]
fn a_sweep_survives_failing_files() {
    survives(&jobs::sweep(), 4);
}

#[test]
fn an_audit_with_folds_survives_failing_files() {
    survives(&jobs::audit_with_folds(), 5);
}

#[test]
fn an_audit_without_folds_survives_failing_files() {
    survives(&jobs::audit_without_folds(), 3);
}

#[test]
fn predictions_survive_failing_files() {
    for ending in ["csv", "npy", "parquet", "jsonl"] {
        survives(&jobs::predict(ending), 5);
    }
}

#[test]
fn evaluation_survives_failing_files() {
    survives(&jobs::eval(), 8);
}

#[test]
fn a_report_survives_failing_files() {
    survives(&jobs::report(), 8);
}

#[test]
fn accepting_suggestions_survives_failing_files() {
    survives(&jobs::accept(), 10);
}

#[test]
fn embedding_survives_failing_files() {
    survives(&jobs::embed(), 10);
}

#[test]
fn embedding_by_a_run_survives_failing_files() {
    survives(&jobs::embed_by_a_run(), 5);
}

#[test]
fn transfer_survives_failing_files() {
    survives(&jobs::transfer(), 2);
}
