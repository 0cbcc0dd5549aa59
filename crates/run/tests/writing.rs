//! Files that appear complete or not at all, and files that grow.

use std::fs;
use std::path::Path;

use crate::support::{entries, refused};
use aleator_run::{
    AtomicFolder, EventFile, MetricsLog, Predictions, RunError, remove_folder, remove_leftovers,
    write_file, write_file_by,
};
use serde_json::json;

#[test]
fn a_file_is_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_file(&path, b"long content").unwrap();
    write_file(&path, b"short").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"short");
    assert_eq!(entries(folder.path()), ["a.json"]);
}

#[test]
fn a_writer_that_fails_changes_nothing_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write_file(&path, b"old").unwrap();
    let failed: Result<(), RunError> = write_file_by(&path, |temporary| {
        fs::write(temporary, "half of the new").unwrap();
        Err(RunError::Exists { path: temporary.to_path_buf() })
    });
    assert!(failed.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entries(folder.path()), ["a.json"]);
}

#[test]
fn what_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nowhere/a.json");
    refused(write_file(&path, b""), &["cannot write", "nowhere/a.json"]);
    refused(AtomicFolder::create(&path), &["cannot create", "nowhere/a.json"]);
    refused(write_file(Path::new(".."), b""), &["no file name"]);
    // A folder stands in the way of a file.
    fs::create_dir_all(path.join("x")).unwrap();
    refused(write_file(&path, b""), &["cannot write", "a.json"]);
    assert_eq!(entries(path.parent().unwrap()), ["a.json"]);
}

#[test]
fn a_folder_appears_when_it_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("step-1");
    let made = AtomicFolder::create(&place).unwrap();
    fs::create_dir(made.path().join("inner")).unwrap();
    fs::write(made.path().join("inner/w"), "1").unwrap();
    assert!(!place.exists());
    made.commit().unwrap();
    assert_eq!(fs::read(place.join("inner/w")).unwrap(), b"1");
    assert_eq!(entries(folder.path()), ["step-1"]);
}

#[test]
fn a_committed_folder_replaces_the_one_before_it_whole() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("best");
    for (file, content) in [("a", "1"), ("b", "2")] {
        let made = AtomicFolder::create(&place).unwrap();
        fs::write(made.path().join(file), content).unwrap();
        made.commit().unwrap();
    }
    assert_eq!(entries(&place), ["b"]);
    assert_eq!(entries(folder.path()), ["best"]);
}

#[test]
fn a_folder_that_is_not_committed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = AtomicFolder::create(&folder.path().join("step-1")).unwrap();
    fs::write(made.path().join("w"), "1").unwrap();
    drop(made);
    assert_eq!(entries(folder.path()), Vec::<String>::new());
}

#[test]
fn a_folder_is_removed_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("step-1");
    fs::create_dir_all(place.join("inner")).unwrap();
    fs::write(place.join("inner/w"), "1").unwrap();
    remove_folder(&place).unwrap();
    assert_eq!(entries(folder.path()), Vec::<String>::new());
    remove_folder(&place).unwrap();
}

#[test]
fn leftovers_of_a_killed_writer_go_and_everything_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    write_file(&folder.path().join("kept"), b"").unwrap();
    fs::write(folder.path().join(".hidden"), "").unwrap();
    let killed = AtomicFolder::create(&folder.path().join("step-1")).unwrap();
    fs::write(killed.path().join("w"), "half").unwrap();
    std::mem::forget(killed);
    assert_eq!(entries(folder.path()).len(), 3);
    remove_leftovers(folder.path()).unwrap();
    assert_eq!(entries(folder.path()), [".hidden", "kept"]);
    remove_leftovers(&folder.path().join("nowhere")).unwrap();
}

/// Replacing a folder takes two renames; a kill between them must lose nothing.
#[test]
fn a_folder_that_was_being_replaced_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".old-best")).unwrap();
    fs::write(folder.path().join(".old-best/w"), "old").unwrap();
    fs::create_dir(folder.path().join(".tmp-1-1-best")).unwrap();
    remove_leftovers(folder.path()).unwrap();
    assert_eq!(entries(folder.path()), ["best"]);
    assert_eq!(fs::read(folder.path().join("best/w")).unwrap(), b"old");
    // Killed after the second rename: the successor stays.
    fs::create_dir(folder.path().join(".old-best")).unwrap();
    remove_leftovers(folder.path()).unwrap();
    assert_eq!(fs::read(folder.path().join("best/w")).unwrap(), b"old");
    assert_eq!(entries(folder.path()), ["best"]);
}

#[test]
fn a_log_goes_on_where_the_checkpoint_was_and_forgets_what_came_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let mut log = MetricsLog::create(&path).unwrap();
    assert_eq!(log.position(), 0);
    log.append(&json!({ "step": 1, "loss": 0.5 })).unwrap();
    log.sync().unwrap();
    let position = log.position();
    assert_eq!(position, fs::metadata(&path).unwrap().len());
    log.append(&json!({ "step": 2, "loss": f64::NAN })).unwrap();
    assert_eq!(MetricsLog::read(&path).unwrap()[1]["loss"], json!(null));
    drop(log);
    // Killed in the middle of a line.
    let mut torn = fs::read(&path).unwrap();
    torn.extend(b"{\"step\": 3, \"lo");
    fs::write(&path, &torn).unwrap();
    refused(MetricsLog::read(&path), &["metrics.jsonl", "line 3 is cut off", "aleator resume"]);
    let mut log = MetricsLog::open_at(&path, position).unwrap();
    log.append(&json!({ "step": 2, "loss": 0.25 })).unwrap();
    let lines = MetricsLog::read(&path).unwrap();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["loss"], 0.25);
    let log = MetricsLog::open_at(&path, 0).unwrap();
    assert_eq!((log.position(), fs::metadata(&path).unwrap().len()), (0, 0));
}

#[test]
fn a_log_that_is_not_what_the_checkpoint_saw_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    refused(MetricsLog::open_at(&path, 1), &["cannot open", "metrics.jsonl"]);
    assert_eq!(MetricsLog::open_at(&path, 0).unwrap().position(), 0);
    fs::write(&path, "{\"a\":1}\n").unwrap();
    refused(MetricsLog::open_at(&path, 9), &["had 9 bytes", "only 8"]);
    refused(MetricsLog::open_at(&path, 3), &["byte 3 is within a line"]);
    assert_eq!(fs::read(&path).unwrap(), b"{\"a\":1}\n");
}

#[test]
fn lines_that_are_no_objects_are_named_by_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    for (text, line) in [("{}\n{x}\n", 2), ("{}\n\n{}\n", 2), ("[1]\n", 1)] {
        fs::write(&path, text).unwrap();
        refused(MetricsLog::read(&path), &[&format!("line {line} is not a JSON object")]);
    }
    fs::write(&path, "").unwrap();
    assert_eq!(MetricsLog::read(&path).unwrap(), []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_no_log() {
    let log = MetricsLog::create(Path::new("/dev/full"));
    refused(log, &["cannot create /dev/full", "it is a device; a file was expected"]);
}

/// `golden/events.tfevents` was made by `golden/events.py` with TensorBoard's own writer.
#[test]
fn events_are_byte_for_byte_those_of_tensorboard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.out.tfevents.0.aleator");
    let mut events = EventFile::create(&path, 1_700_000_000.25).unwrap();
    let values = [("train/loss", 2.25), ("train/learning_rate", 0.002)];
    events.scalars(1, 1_700_000_001.5, &values).unwrap();
    events.scalars(0, 1_700_000_002.0, &[("validation/nll", 0.0)]).unwrap();
    let name = "τ".repeat(100);
    let values = [(&name[..], f32::NAN), ("x", f32::NEG_INFINITY)];
    events.scalars(5_000_000_000, 0.0, &values).unwrap();
    let written = fs::read(&path).unwrap();
    assert_eq!(events.position(), written.len() as u64);
    assert!(written == include_bytes!("golden/events.tfevents"), "other bytes");
}

#[test]
fn events_go_on_where_the_checkpoint_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let mut events = EventFile::create(&path, 1.0).unwrap();
    events.scalars(1, 2.0, &[("a", 1.0)]).unwrap();
    let position = events.position();
    events.scalars(2, 3.0, &[("a", 2.0)]).unwrap();
    events.sync().unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"torn"].concat()).unwrap();
    let mut events = EventFile::open_at(&path, position).unwrap();
    events.scalars(2, 3.0, &[("a", 2.0)]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), whole);
    refused(EventFile::open_at(&path, position + 1), &["within a record"]);
    refused(EventFile::open_at(&path, whole.len() as u64 + 1), &["only"]);
    fs::write(&path, [0xff; 64]).unwrap();
    refused(EventFile::open_at(&path, 64), &["within a record"]);
    assert_eq!(fs::read(&path).unwrap().len(), 64);
}

fn predictions() -> Predictions {
    Predictions {
        classes: 3,
        rank: 2,
        temperature: 0.9,
        log_probs: vec![-1.0, -2.0, f32::NEG_INFINITY, -1.5, -0.5, -3.0],
        log_probs_off: Some(vec![-0.5; 6]),
        mean: (0..6).map(|value| value as f32).collect(),
        diag_scale: Some(vec![0.25; 6]),
        loadings: Some((0..12).map(|value| value as f32 / 8.0).collect()),
        loading_scale: Some(vec![2.0; 6]),
        shared_loadings: Some(vec![1.0; 6]),
        joint_log_probs: Some(vec![-2.0; 2]),
    }
}

#[test]
fn predictions_read_back_and_have_the_same_bytes_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.safetensors");
    let full = predictions();
    let bare = Predictions {
        rank: 0,
        log_probs_off: None,
        diag_scale: None,
        loadings: None,
        loading_scale: None,
        shared_loadings: None,
        joint_log_probs: None,
        ..predictions()
    };
    let empty = Predictions { log_probs: vec![], mean: vec![], ..bare.clone() };
    for case in [full, bare, empty] {
        case.save(&path).unwrap();
        let first = fs::read(&path).unwrap();
        assert_eq!(Predictions::load(&path).unwrap(), case);
        case.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first);
        assert_eq!(entries(folder.path()), ["test.safetensors"]);
    }
    assert_eq!(predictions().examples(), 2);
}

#[test]
fn predictions_whose_fields_disagree_are_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.safetensors");
    let good = predictions();
    for (case, words) in [
        (Predictions { classes: 0, ..good.clone() }, "classes"),
        (Predictions { classes: 4, ..good.clone() }, "log_probs"),
        (Predictions { temperature: 0.0, ..good.clone() }, "temperature"),
        (Predictions { mean: vec![0.0; 5], ..good.clone() }, "\"mean\" must be [2, 3], found 5"),
        (Predictions { rank: 3, ..good.clone() }, "\"loadings\" must be [2, 3, 3]"),
        (Predictions { shared_loadings: None, ..good.clone() }, "must both be present"),
        (
            Predictions { mean: vec![f32::NAN; 6], ..good.clone() },
            "\"mean\": row 0, number 0 is not",
        ),
        (Predictions { classes: usize::MAX, rank: usize::MAX, ..good }, "must be"),
    ] {
        refused(case.save(&path), &["test.safetensors", words]);
    }
    assert_eq!(entries(folder.path()), Vec::<String>::new());
}

#[test]
fn every_truncation_of_a_predictions_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.safetensors");
    predictions().save(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        refused(Predictions::load(&path), &["test.safetensors", "complete safetensors"]);
    }
    refused(Predictions::load(&folder.path().join("x")), &["cannot read"]);
}

/// The header of the file with one text in place of another of the same length.
fn load_altered(from: &str, to: &str) -> Result<Predictions, RunError> {
    assert_eq!(from.len(), to.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.safetensors");
    predictions().save(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes());
    let at = at.unwrap_or_else(|| panic!("no {from}"));
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(&path, bytes).unwrap();
    Predictions::load(&path)
}

#[test]
fn altered_predictions_files_are_named_by_what_disagrees() {
    refused(load_altered("\"log_probs\"", "\"log_prons\""), &["\"log_probs\" is missing"]);
    refused(load_altered("\"aleator\"", "\"alegtor\""), &["not a file of predictions"]);
    refused(load_altered("F32", "I32"), &["must hold F32, found I32"]);
    refused(load_altered("[2,3,2]", "[2,2,3]"), &["must be [2, 3, 2], found [2, 2, 3]"]);
    refused(load_altered("classes\\\":3", "classes\\\":2"), &["tensor"]);
    refused(load_altered("rank\\\":2", "rank\\\":x"), &["the metadata's entry"]);
}
