//! The files of one checkpoint, checked against its manifest as they are read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use aleator_run::{RunError, check_kind, read_file, tensor_shapes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::runs::hash_file;

/// The format of the directory.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";

/// `manifest.json`: what the directory must hold.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    files: BTreeMap<String, FileHash>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileHash {
    bytes: u64,
    blake3: String,
}

/// A checkpoint whose manifest was read.
///
/// What is missing, has another length or hash, or is not JSON is damaged:
/// [`TrainError::Checkpoint`]. Whatever else the system answers says nothing about the file.
pub(super) struct CheckpointFiles {
    pub path: PathBuf,
    manifest: Manifest,
}

impl CheckpointFiles {
    pub fn open(path: PathBuf) -> Result<Self, TrainError> {
        let file = path.join(MANIFEST);
        length(&file)?;
        let bytes = read_file(&file).map_err(|error| unreadable(&file, error))?;
        let manifest: Manifest = parse_json(&file, &bytes)?;
        if manifest.format != FORMAT {
            let found = manifest.format;
            let reason = format!("has format {found}, this program reads {FORMAT}");
            return Err(TrainError::checkpoint(&path, reason));
        }
        Ok(Self { path, manifest })
    }

    /// The content of a file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, TrainError> {
        let (path, expected) = self.of_right_length(name)?;
        let bytes = read_file(&path).map_err(|error| unreadable(&path, error))?;
        matches_hash(&path, blake3::hash(&bytes).to_hex().as_str(), expected)?;
        Ok(bytes)
    }

    /// The content of a JSON file.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, TrainError> {
        parse_json(&self.path.join(name), &self.read(name)?)
    }

    /// The shapes of the tensors of a file, by its header; its hash is not looked at.
    pub fn shapes(&self, name: &str) -> Result<BTreeMap<String, Vec<usize>>, TrainError> {
        let (path, _) = self.of_right_length(name)?;
        tensor_shapes(&path).map_err(|error| match error {
            RunError::Io { source, .. } => unreadable(&path, source),
            RunError::Damaged { message, .. } => TrainError::checkpoint(&path, message),
            other => other.into(),
        })
    }

    /// Reads all files.
    pub fn verify(&self) -> Result<(), TrainError> {
        for name in self.manifest.files.keys() {
            let (path, expected) = self.of_right_length(name)?;
            let hash = hash_file(&path).map_err(|error| match error {
                TrainError::Run(RunError::Io { source, .. }) => unreadable(&path, source),
                other => other,
            })?;
            matches_hash(&path, &hash, expected)?;
        }
        Ok(())
    }

    fn of_right_length(&self, name: &str) -> Result<(PathBuf, &FileHash), TrainError> {
        let path = self.path.join(name);
        let Some(expected) = self.manifest.files.get(name) else {
            // A damaged manifest names something else in its place.
            self.verify()?;
            return Err(other_run(format!("{}: was never saved", path.display())));
        };
        let found = length(&path)?;
        if found != expected.bytes {
            let reason = format!("is {found} bytes long, not {}", expected.bytes);
            return Err(TrainError::checkpoint(&path, reason));
        }
        Ok((path, expected))
    }
}

/// The error for a checkpoint that is what was saved, but not what the records of the run describe.
pub(super) fn other_run(found: impl Display) -> TrainError {
    TrainError::Weights(format!(
        "{found}\nThe checkpoint is as it was saved: recipe.toml or run.json were changed since. \
         Restore them."
    ))
}

/// Writes the manifest of a directory that has all other files.
pub(super) fn write_manifest(dir: &Path) -> Result<(), TrainError> {
    write_json(&dir.join(MANIFEST), &Manifest { format: FORMAT, files: hashes(dir)? })
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), TrainError> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| TrainError::checkpoint(path, error))?;
    Ok(fs::write(path, text + "\n").map_err(RunError::io("write", path))?)
}

/// A file that is gone is damage. One that cannot be read at the moment, or not by this user, is
/// not: training again over it would lose it.
fn unreadable(path: &Path, error: io::Error) -> TrainError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            TrainError::checkpoint(path, "is missing")
        }
        _ => RunError::io("read", path)(error).into(),
    }
}

fn matches_hash(path: &Path, found: &str, expected: &FileHash) -> Result<(), TrainError> {
    if found == expected.blake3 {
        return Ok(());
    }
    Err(TrainError::checkpoint(path, "does not match its hash"))
}

/// The length of a file, before anything of it is read.
fn length(path: &Path) -> Result<u64, TrainError> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    check_kind(path).map_err(|error| TrainError::checkpoint(path, error))?;
    Ok(found.len())
}

fn parse_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, TrainError> {
    serde_json::from_slice(bytes).map_err(|error| TrainError::checkpoint(path, error))
}

/// Every file of a directory, with its length and hash.
fn hashes(dir: &Path) -> Result<BTreeMap<String, FileHash>, TrainError> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(RunError::io("read", dir))? {
        let entry = entry.map_err(RunError::io("read", dir))?;
        let name = entry.file_name().to_string_lossy().to_string();
        let bytes = entry.metadata().map_err(RunError::io("read", dir))?.len();
        out.insert(name, FileHash { bytes, blake3: hash_file(&entry.path())? });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_gone_is_damaged() {
        let unreadable = |error: io::Error| unreadable(Path::new("model.safetensors"), error);
        let error = unreadable(ErrorKind::PermissionDenied.into());
        assert!(error.to_string().contains("you have no permission"), "{error}");
        // EIO, ENOMEM, EMFILE, ESTALE
        for code in [5, 12, 24, 116] {
            let error = unreadable(io::Error::from_raw_os_error(code));
            assert!(matches!(error, TrainError::Run(RunError::Io { .. })), "{code}: {error}");
        }
        for kind in [ErrorKind::NotFound, ErrorKind::NotADirectory] {
            let error = unreadable(kind.into());
            assert!(matches!(error, TrainError::Checkpoint { .. }), "{kind}: {error}");
        }
    }
}
