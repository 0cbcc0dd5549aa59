//! The progress of an unfinished file, so that the same command resumes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use aleator_run::{read_file, remove_leftovers_of, write_file};
use blake3::Hasher;
use serde::{Deserialize, Serialize};

use crate::error::EmbedError;
use crate::file::{Metadata, with_suffix};

/// A file next to the unfinished one that describes the rows on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Everything that determines the features.
    pub identity: Metadata,
    /// D.
    pub width: usize,
    /// Bytes before the first row.
    pub room: usize,
    /// Number of finished images, including those set aside.
    pub done: usize,
    /// Images that could not be decoded: row and error.
    pub set_aside: Vec<(usize, String)>,
    /// BLAKE3 of the rows on disk and of all other fields; empty before they are saved.
    pub checksum: String,
}

/// `F.safetensors.progress` for `F.safetensors`.
fn path_of(out: &Path) -> PathBuf {
    with_suffix(out, ".progress")
}

impl Record {
    /// Replaces the previous record; `rows` has hashed the rows on disk.
    pub(crate) fn save(&self, out: &Path, rows: &Hasher) -> Result<(), EmbedError> {
        let record = Self { checksum: self.sum(rows), ..self.clone() };
        let text = serde_json::to_vec_pretty(&record).expect("a record is plain data");
        Ok(write_file(&path_of(out), &text)?)
    }

    /// Whether this is what was saved, and `rows` has hashed what was on disk then.
    pub(crate) fn is_of(&self, rows: &Hasher) -> bool {
        self.sum(rows) == self.checksum
    }

    fn sum(&self, rows: &Hasher) -> String {
        let fields = Self { checksum: String::new(), ..self.clone() };
        let fields = serde_json::to_vec(&fields).expect("a record is plain data");
        rows.clone().update(&fields).finalize().to_string()
    }

    /// Rows in the unfinished file.
    pub(crate) fn rows(&self) -> usize {
        self.done - self.set_aside.len()
    }

    /// The record of an earlier run, if there is one; the error says why it cannot be resumed.
    pub(crate) fn read(
        out: &Path,
        identity: &Metadata,
        rows: usize,
    ) -> Result<Option<Self>, String> {
        let damaged = || "its record is damaged".to_string();
        let Ok(text) = read_file(&path_of(out)) else { return Ok(None) };
        let record: Self = serde_json::from_slice(&text).map_err(|_| damaged())?;
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
        let differs = |name: &&String| identity.get(*name) != record.identity.get(*name);
        let names = identity.keys().chain(record.identity.keys()).filter(differs);
        let other: BTreeSet<&str> = names.map(|name| words(name)).collect();
        if !other.is_empty() {
            let other: Vec<&str> = other.into_iter().collect();
            return Err(format!("it was started with {}", other.join(", ")));
        }
        let ordered = record.set_aside.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let below = record.set_aside.last().is_none_or(|last| last.0 < record.done);
        if record.done > rows || record.width == 0 || !ordered || !below {
            return Err(damaged());
        }
        Ok(Some(record))
    }

    /// Removes the record if it exists, and those that a killed process did not complete.
    pub(crate) fn remove(out: &Path) -> Result<(), EmbedError> {
        remove_leftovers_of(&path_of(out))?;
        match fs::remove_file(path_of(out)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(EmbedError::write(&path_of(out))(error))
            }
            _ => Ok(()),
        }
    }
}
