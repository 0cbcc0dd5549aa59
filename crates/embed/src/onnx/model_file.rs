//! The file of a network, read once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aleator_run::open_file;

use super::inspect::inspect;
use crate::error::EmbedError;

/// The largest message of Protocol Buffers; larger networks keep their weights in other files.
const LARGEST: u64 = 1 << 31;

/// A file that has been inspected.
pub(super) struct ModelFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    /// The names of the files with weights, and where they are.
    pub external: Vec<(String, PathBuf)>,
    /// BLAKE3 of the file and of the files with weights.
    pub hash: String,
}

impl ModelFile {
    /// Reads and inspects a file.
    pub(super) fn read(path: &Path) -> Result<Self, EmbedError> {
        let (bytes, named) = inspected(path)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes);
        let mut external = vec![];
        for Weights { name, place, file, .. } in named {
            hasher.update_reader(file).map_err(|error| {
                EmbedError::model(path, format!("its weights in {name}: {}", in_words(&error)))
            })?;
            external.push((name, place));
        }
        let hash = hasher.finalize().to_string();
        Ok(Self { path: path.to_path_buf(), bytes, external, hash })
    }
}

/// Bytes of an ONNX file and of the files with its weights, after the checks of
/// [`OnnxNetwork::open`](crate::OnnxNetwork::open): what a limit of memory must leave room for.
///
/// # Errors
/// When a file does not exist, or is damaged.
pub fn model_bytes(path: &Path) -> Result<u64, EmbedError> {
    let (bytes, named) = inspected(path)?;
    let weights = named.iter().map(|weights| weights.len);
    Ok(weights.fold(bytes.len() as u64, u64::saturating_add))
}

/// A file with weights.
struct Weights {
    name: String,
    place: PathBuf,
    file: File,
    len: u64,
}

/// The content of a file that passes inspection, and the files with its weights.
fn inspected(path: &Path) -> Result<(Vec<u8>, Vec<Weights>), EmbedError> {
    let refuse = |what: String| EmbedError::model(path, what);
    let mut bytes = vec![];
    let (file, _) = open(path, LARGEST).map_err(refuse)?;
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|error| refuse(in_words(&error)))?;
    let named = inspect(&bytes).map_err(|what| {
        refuse(format!("cannot be read as an ONNX network (it {what}); export it again"))
    })?;
    let mut all = vec![];
    for (name, needed) in named {
        let place = path.with_file_name(&name);
        let refuse = |what| refuse(format!("its weights in {}: {what}", place.display()));
        let (file, len) = open(&place, u64::MAX).map_err(refuse)?;
        if len < needed {
            return Err(refuse(format!(
                "there are {len} bytes, at least {needed} are needed; copy the file again"
            )));
        }
        all.push(Weights { name, place, file, len });
    }
    Ok((bytes, all))
}

/// Opens a regular file of at most this many bytes, and says how many there are; opening anything
/// else could wait for ever.
fn open(path: &Path, most: u64) -> Result<(File, u64), String> {
    let found = fs::metadata(path).map_err(|error| in_words(&error))?;
    if found.is_dir() {
        return Err("is a directory; give the .onnx file of a network".into());
    }
    if found.len() > most {
        let len = found.len();
        return Err(format!(
            "has {len} bytes; an ONNX file has at most {most}, and keeps more weights in a file \
             next to it"
        ));
    }
    let file = open_file(path).map_err(|error| in_words(&error))?;
    Ok((file, found.len()))
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no such file; give the .onnx file of a network".to_string()
        }
        _ => format!("cannot be read: {error}"),
    }
}
