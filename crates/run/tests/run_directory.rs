//! The run directory and its files: what is written reads back, what is damaged is named.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{entries, refused};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Link, Noise, RunDir, RunError, RunInfo, Split, SplitCounts,
};
use serde_json::json;
use tempfile::TempDir;

fn info() -> RunInfo {
    RunInfo {
        format: FORMAT,
        version: "0.1.0".to_string(),
        seed: u64::MAX,
        fingerprint: "5d41402a".to_string(),
        link: Link::Softmax,
        likelihood: Default::default(),
        noise: Noise::SharedLowRank { rank: 6 },
        class_names: vec!["cat".to_string(), "dög".to_string()],
        input_shape: vec![3, 32, 32],
        feature_names: None,
        examples: SplitCounts { train: 900, validation: 100, test: 0 },
        set_aside: vec![],
        pretrained: None,
    }
}

fn create(path: &Path) -> Result<RunDir, RunError> {
    RunDir::create(path, &CreateRun { recipe: "seeds = [0]\n".to_string(), info: info() })
}

fn run() -> (TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = create(&folder.path().join("run")).unwrap();
    (folder, run)
}

#[test]
fn a_new_run_has_its_recipe_its_facts_and_its_folders_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/below/run");
    let run = create(&path).unwrap();
    assert_eq!(run.path(), path);
    assert_eq!(
        entries(&path),
        ["checkpoints", "predictions", "recipe.toml", "run.json", "tensorboard"]
    );
    assert_eq!(entries(path.parent().unwrap()), ["run"]);
    assert_eq!(fs::read_to_string(run.recipe_path()).unwrap(), "seeds = [0]\n");
    let opened = RunDir::open(&path).unwrap();
    assert_eq!(opened.info(), &info());
    assert_eq!(opened.info().examples.of(Split::Validation), 100);
}

#[test]
fn run_json_is_as_documented() {
    let (_folder, run) = run();
    let found: serde_json::Value = run.read_json("run.json").unwrap();
    let expected = json!({
        "format": 1,
        "version": "0.1.0",
        "seed": u64::MAX,
        "fingerprint": "5d41402a",
        "link": "softmax",
        "noise": { "kind": "shared", "rank": 6 },
        "class_names": ["cat", "dög"],
        "input_shape": [3, 32, 32],
        "examples": { "train": 900, "validation": 100, "test": 0 },
    });
    assert_eq!(found, expected);
    for (noise, written) in [
        (Noise::None, json!({ "kind": "none" })),
        (Noise::Diagonal, json!({ "kind": "diagonal" })),
        (Noise::LowRank { rank: 2 }, json!({ "kind": "full", "rank": 2 })),
    ] {
        assert_eq!(serde_json::to_value(noise).unwrap(), written);
        assert_eq!(serde_json::from_value::<Noise>(written).unwrap(), noise);
    }
}

#[test]
fn an_empty_folder_may_become_a_run_and_anything_else_that_exists_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    create(&empty).unwrap();
    refused(create(&empty), &["exists: choose another --out", "aleator resume", "empty"]);
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    refused(create(&file), &["exists"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(entries(folder.path()), ["empty", "file"]);
}

#[cfg(unix)]
#[test]
fn links_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dangling = folder.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    refused(create(&dangling), &["exists"]);
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    refused(create(&link), &["mount point or a link", "--out"]);
    assert_eq!(entries(folder.path()), ["dangling", "link", "target"]);
}

#[test]
fn what_is_no_run_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    refused(RunDir::open(folder.path()), &["not a run directory", "no run.json"]);
    refused(RunDir::open(&folder.path().join("nothing")), &["nothing does not exist"]);
    refused(create(Path::new("/")), &["exists"]);
}

#[test]
fn another_format_is_named_with_both_versions() {
    let (_folder, run) = run();
    for (format, found) in [(json!(2), "format 2"), (json!("x"), "format x"), (json!(null), "null")]
    {
        run.write_json("run.json", &json!({ "format": format, "version": "9.9.9" })).unwrap();
        let here = env!("CARGO_PKG_VERSION");
        refused(RunDir::open(run.path()), &[found, "aleator 9.9.9", here, "reads format 1"]);
    }
}

#[test]
fn a_damaged_run_json_is_named() {
    let (_folder, run) = run();
    let path = run.path().join("run.json");
    fs::write(&path, "{\"format\": 1, ").unwrap();
    refused(RunDir::open(run.path()), &["run.json", "line 1"]);
    fs::write(&path, "[]").unwrap();
    refused(RunDir::open(run.path()), &["run.json", "(none)"]);
    fs::write(&path, "{\"format\": 1, \"version\": \"0.1.0\"}").unwrap();
    refused(RunDir::open(run.path()), &["run.json", "missing field `seed`"]);
    fs::write(&path, b"\xff").unwrap();
    refused(RunDir::open(run.path()), &["cannot read", "run.json", "UTF-8"]);
}

#[test]
fn the_recipe_of_a_run_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let resolved = aleator_run::load("digits-full", &[], Some(4)).unwrap();
    let recipe = resolved.recipe.to_toml();
    let run = RunDir::create(&path, &CreateRun { recipe, info: info() }).unwrap();
    assert_eq!(run.recipe().unwrap().recipe, resolved.recipe);
    fs::write(run.recipe_path(), "summary = 3\n").unwrap();
    let message = run.recipe().unwrap_err().to_string();
    assert!(message.contains("recipe.toml:1: summary must be a text"), "{message}");
}

#[test]
fn a_run_is_locked_until_its_lock_is_dropped() {
    let (_folder, run) = run();
    let lock = run.lock().unwrap();
    let again = RunDir::open(run.path()).unwrap();
    refused(again.lock(), &["in use by process", &std::process::id().to_string()]);
    drop(lock);
    again.lock().unwrap();
}

#[test]
fn the_lock_takes_away_what_killed_writers_left() {
    let (_folder, run) = run();
    let left: [PathBuf; 3] = [
        run.path().join(".tmp-1-2-evaluation.json"),
        run.path().join("checkpoints/.tmp-1-3-step-9"),
        run.path().join("predictions/.tmpAb12"),
    ];
    fs::write(&left[0], "half").unwrap();
    fs::create_dir_all(left[1].join("inner")).unwrap();
    fs::write(&left[2], "half").unwrap();
    let _lock = run.lock().unwrap();
    assert!(left.iter().all(|path| !path.exists()));
}

#[test]
fn json_files_read_back_and_their_damage_is_named() {
    let (_folder, run) = run();
    run.write_json("evaluation.json", &json!({ "nll": 0.5 })).unwrap();
    assert_eq!(run.read_json::<serde_json::Value>("evaluation.json").unwrap()["nll"], 0.5);
    refused(run.read_json::<Vec<f64>>("evaluation.json"), &["evaluation.json", "sequence"]);
    refused(run.read_json::<f64>("absent.json"), &["cannot read", "absent.json"]);
}

fn example(id: &str, split: Split, label: Option<&[u32]>, clean: Option<&[u32]>) -> ExampleRow {
    ExampleRow {
        id: id.to_string(),
        split,
        label: label.map(<[u32]>::to_vec),
        clean_label: clean.map(<[u32]>::to_vec),
    }
}

#[test]
fn examples_read_back_whatever_their_ids() {
    let (_folder, run) = run();
    let rows = vec![
        example("0", Split::Train, Some(&[3]), Some(&[5])),
        example("a, \"b\"\nc;d", Split::Train, Some(&[0, 2, 70_000]), None),
        example("", Split::Validation, Some(&[]), Some(&[])),
        example(" cats/ö.png\r", Split::Test, None, Some(&[1])),
    ];
    run.write_examples(rows.clone()).unwrap();
    assert_eq!(run.read_examples().unwrap(), rows);
    let text = fs::read_to_string(run.examples_path()).unwrap();
    assert!(text.starts_with("id,split,label,clean_label\n0,train,3,5\n"), "{text}");
    assert!(text.contains(",train,0;2;70000,\n"), "{text}");
    assert!(text.contains(",validation,-,-\n"), "{text}");
    run.write_examples([]).unwrap();
    assert_eq!(run.read_examples().unwrap(), []);
}

#[test]
fn damaged_examples_are_named_with_their_line() {
    let (_folder, run) = run();
    refused(run.read_examples(), &["cannot read", "examples.csv"]);
    let header = "id,split,label,clean_label\n";
    for (text, words) in [
        ("id,label\n".to_string(), &["the columns must be", "clean_label"][..]),
        (format!("{header}a,train,0,\nb,dev,0,\n"), &["line 3", "train, validation or test"]),
        (format!("{header}a,train,cat,\n"), &["line 2", "label must be class indices", "cat"]),
        (format!("{header}a,train,0,1;\n"), &["line 2", "clean_label must be"]),
        (format!("{header}a,train,0\n"), &["line: 2", "3 fields"]),
    ] {
        fs::write(run.examples_path(), text).unwrap();
        refused(run.read_examples(), words);
    }
}

#[test]
fn sizes_that_no_run_has_are_damage_and_not_allocated() {
    let cases = [
        ("class_names", json!([]), "at least one class"),
        ("input_shape", json!([]), "input_shape must be"),
        ("input_shape", json!([3, 0, 32]), "input_shape must be"),
        ("input_shape", json!([3, 32]), "input_shape must be"),
        ("input_shape", json!([1_000_000_000_000_u64]), "input_shape must be"),
        ("input_shape", json!([u64::MAX, u64::MAX, 2]), "input_shape must be"),
    ];
    for (field, value, words) in cases {
        let (_folder, run) = run();
        let mut facts: serde_json::Value = run.read_json("run.json").unwrap();
        facts[field] = value;
        run.write_json("run.json", &facts).unwrap();
        refused(RunDir::open(run.path()), &["run.json", words]);
    }
}
