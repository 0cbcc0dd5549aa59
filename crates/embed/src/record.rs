//! The progress of an unfinished file, so that the same command resumes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::EmbedError;
use crate::extractor::Identity;
use crate::file::Plan;

/// A file next to the unfinished one that describes the rows on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Everything that determines the features.
    pub identity: BTreeMap<String, String>,
    /// D.
    pub width: usize,
    /// Bytes before the first row.
    pub room: usize,
    /// Number of finished images, including those set aside.
    pub done: usize,
    /// Images that could not be decoded: row and error.
    pub set_aside: Vec<(usize, String)>,
}

/// What an earlier run left.
pub(crate) enum PreviousRun {
    /// Nothing.
    None,
    /// A file that cannot be resumed, and why.
    Other(String),
    /// A file that can be resumed.
    Same(Record),
}

/// `F.safetensors.progress` for `F.safetensors`.
fn path_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_os_string();
    name.push(".progress");
    name.into()
}

impl Record {
    /// Replaces the previous record.
    pub(crate) fn save(&self, out: &Path) -> Result<(), EmbedError> {
        let text = serde_json::to_vec_pretty(self).expect("a record is plain data");
        Ok(aleator_run::write_file(&path_of(out), &text)?)
    }

    /// Rows in the unfinished file.
    pub(crate) fn rows(&self) -> usize {
        self.done - self.set_aside.len()
    }

    /// The record of an earlier run, and whether it fits this one.
    pub(crate) fn read(out: &Path, identity: &Identity, rows: usize) -> PreviousRun {
        let Ok(text) = fs::read(path_of(out)) else { return PreviousRun::None };
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return PreviousRun::Other("its record is damaged".into());
        };
        let words = |name: &str| match name {
            "model" | "model_blake3" => "another model",
            "runtime" => "another runtime",
            "output" => "another output of the model",
            "preprocessing" => "another preprocessing",
            "input_fingerprint" => "other images",
            "type" => "another precision",
            "batch" => "another size of batches",
            _ => "other settings",
        };
        let differs = |name: &str| identity.get(name) != record.identity.get(name);
        let names = identity.keys().copied().chain(record.identity.keys().map(String::as_str));
        let mut other: Vec<&str> = names.filter(|name| differs(name)).map(words).collect();
        other.sort_unstable();
        other.dedup();
        if !other.is_empty() {
            return PreviousRun::Other(format!("it was started with {}", other.join(", ")));
        }
        let ordered = record.set_aside.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let below = record.set_aside.last().is_none_or(|last| last.0 < record.done);
        if record.done > rows || record.width == 0 || !ordered || !below {
            return PreviousRun::Other("its record is damaged".into());
        }
        PreviousRun::Same(record)
    }

    /// Whether it belongs to this plan.
    pub(crate) fn fits(&self, plan: &Plan) -> bool {
        (self.width, self.room) == (plan.width, plan.room)
    }

    /// Removes the record if it exists.
    pub(crate) fn remove(out: &Path) -> Result<(), EmbedError> {
        match fs::remove_file(path_of(out)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(EmbedError::write(&path_of(out))(error))
            }
            _ => Ok(()),
        }
    }
}
