//! All files of a place, to compare them and to bring them back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Place;

/// The content of every file by its path; folders have none.
#[derive(Clone, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Option<Vec<u8>>>);

impl Tree {
    /// What is in a place, except files that say which process is at work.
    pub fn of(place: &Place) -> Self {
        let root = place.path("");
        let mut files = BTreeMap::new();
        collect(&root, &root, &mut files);
        Self(files)
    }

    /// Makes a place as it was.
    pub fn restore(&self, place: &Place) {
        let found = Self::of(place);
        // Files come after their folders, so that they are gone before these.
        for (name, content) in found.0.iter().rev().filter(|(name, _)| !self.0.contains_key(*name))
        {
            let path = place.path(name);
            let removed = match content {
                Some(_) => fs::remove_file(&path),
                None => fs::remove_dir_all(&path),
            };
            removed.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (name, content) in &self.0 {
            match content {
                Some(content) if found.0.get(name) != Some(&Some(content.clone())) => {
                    place.write(name, content);
                }
                Some(_) => {}
                None => fs::create_dir_all(place.path(name)).expect("a folder"),
            }
        }
    }

    /// Fails with the names of the files that differ. What a killed process leaves in a folder that
    /// nobody locks, such as that of the results, may stay.
    pub fn assert_same(&self, whole: &Self, what: &str) {
        let all = self.0.keys().chain(whole.0.keys().filter(|name| !self.0.contains_key(*name)));
        let differ: Vec<&String> = all
            .filter(|name| !is_same(name, self.0.get(*name), whole.0.get(*name)))
            .filter(|name| !name.trim_start_matches("figures/").starts_with(".tmp-"))
            .collect();
        assert!(differ.is_empty(), "{what}: these files differ or are left over: {differ:?}");
    }

    /// Fails if a file with a final name is neither as it was nor as it will be, or is gone.
    pub fn assert_between(&self, before: &Self, whole: &Self, what: &str) {
        for (name, content) in self.0.iter().filter(|(name, _)| !is_temporary(name)) {
            let Some(content) = content else { continue };
            // What becomes `untuned.toml` is `recipe.toml` at first.
            let is_in = |tree: &Self| tree.0.values().any(|it| it.as_ref() == Some(content));
            let is_log = name.ends_with(".jsonl") && starts(whole.0.get(name), content);
            let is_untuned = name.ends_with("run.json") && is_untuned(whole.0.get(name), content);
            let is_whole = has_times(name) || is_in(whole) || is_in(before) || is_log || is_untuned;
            assert!(is_whole, "{what}: half of {name} is left");
        }
        // Without `evaluation.json` a run is not finished, and nobody takes new predictions and an
        // old evaluation for those of one network.
        let gone = |name: &&String| {
            let is_kept = whole.0.contains_key(*name) && !name.ends_with("evaluation.json");
            is_kept && !self.0.contains_key(*name)
        };
        let gone: Vec<&String> = before.0.keys().filter(gone).collect();
        assert!(gone.is_empty(), "{what}: lost {gone:?}");
    }

    /// The files, without folders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, content)| content.is_some()).map(|(name, _)| name.as_str())
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        if path.is_dir() {
            files.insert(name, None);
            collect(root, &path, files);
        } else if !name.ends_with(".lock") {
            files.insert(name, Some(fs::read(&path).expect("a file")));
        }
    }
}

/// Names that say that something is not finished.
fn is_temporary(name: &str) -> bool {
    let begins = |part: &str| part.starts_with(".tmp") || part.starts_with(".old-");
    name.split('/').any(|part| begins(part) || part == "tuning-trials")
        || name.ends_with(".partial")
        || name.ends_with(".progress")
}

/// Whether a log begins like this.
fn starts(log: Option<&Option<Vec<u8>>>, with: &[u8]) -> bool {
    matches!(log, Some(Some(log)) if log.starts_with(with))
}

/// Whether this is `run.json` before settings were chosen: the rank of its noise may be another.
fn is_untuned(tuned: Option<&Option<Vec<u8>>>, content: &[u8]) -> bool {
    let without_noise = |content: &[u8]| {
        let mut info: serde_json::Value = serde_json::from_slice(content).ok()?;
        info.as_object_mut()?.remove("noise")?;
        Some(info)
    };
    let found = without_noise(content);
    matches!(tuned, Some(Some(tuned)) if found.is_some() && found == without_noise(tuned))
}

/// Of a file with times only the length must be the same.
fn is_same(name: &str, one: Option<&Option<Vec<u8>>>, other: Option<&Option<Vec<u8>>>) -> bool {
    match (one, other) {
        (Some(Some(one)), Some(Some(other))) if has_times(name) => one.len() == other.len(),
        _ => one == other,
    }
}

/// The format of TensorBoard has the time of each event.
fn has_times(name: &str) -> bool {
    name.contains(".tfevents.")
}
