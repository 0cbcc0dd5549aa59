//! All that a run leaves and that must not depend on how often it was stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::read;

/// The bytes of the last checkpoint's tensors, the log, the predictions and the evaluation.
#[derive(PartialEq, Eq)]
pub struct Outcome {
    files: BTreeMap<String, Vec<u8>>,
}

impl Outcome {
    /// Of a finished run.
    pub fn of(run: &Path) -> Self {
        let mut files = BTreeMap::new();
        let checkpoint = last_checkpoint(run);
        let name = checkpoint.file_name().expect("a name").to_string_lossy().into_owned();
        for entry in sorted(&checkpoint) {
            if entry.extension().is_some_and(|ending| ending == "safetensors") {
                let file = entry.file_name().expect("a name").to_string_lossy().into_owned();
                files.insert(format!("{name}/{file}"), read(&entry));
            }
        }
        for split in sorted(&run.join("predictions")) {
            files.insert(split.strip_prefix(run).unwrap().display().to_string(), read(&split));
        }
        for file in ["metrics.jsonl", "evaluation.json", "examples.csv", "recipe.toml"] {
            files.insert(file.to_string(), read(&run.join(file)));
        }
        Self { files }
    }

    /// Fails with the names of the files that differ.
    pub fn assert_same(&self, other: &Self, what: &str) {
        let names = |outcome: &Self| outcome.files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(other), "{what}");
        let differ: Vec<&String> =
            self.files.keys().filter(|name| self.files[*name] != other.files[*name]).collect();
        assert!(differ.is_empty(), "{what}: other bits in {differ:?}");
    }

    pub fn names(&self) -> Vec<&str> {
        self.files.keys().map(String::as_str).collect()
    }
}

/// The folder of the checkpoint with the most steps.
pub fn last_checkpoint(run: &Path) -> PathBuf {
    let all = sorted(&run.join("checkpoints"));
    let named = |path: &&PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("step-"))
    };
    all.iter().rfind(named).expect("a checkpoint").clone()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}
