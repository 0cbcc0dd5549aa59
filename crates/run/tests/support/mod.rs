//! What tests of files share.

use std::fs;
use std::path::Path;

use aleator_run::RunError;

/// Names in a folder, sorted.
pub fn entries(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

/// An error whose message has all these words.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, RunError>, words: &[&str]) {
    let message = result.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word:?}");
    }
}
