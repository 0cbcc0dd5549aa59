//! A file of predictions, read in pieces that fit in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::tensor::{Dtype, Metadata as Header};
use serde::de::DeserializeOwned;

use super::{Field, METADATA, Metadata, Predictions, check_numbers, check_pair};
use crate::error::RunError;
use crate::regular::open_file;

/// Open [`Predictions`], in a file or in memory, that are read by ranges of rows.
///
/// Sizes are checked when the file is opened, numbers as they are read.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("test.safetensors");
/// # aleator_run::Predictions {
/// #     classes: 2, rank: 0, temperature: 1.0, log_probs: vec![-0.1, -2.3, -0.7, -0.7],
/// #     log_probs_off: None, mean: vec![1.5, -0.7, 0.0, 0.0], diag_scale: None, loadings: None,
/// #     loading_scale: None, shared_loadings: None, joint_log_probs: None,
/// # }.save(&path)?;
/// use aleator_run::{Field, PredictionsFile};
///
/// let mut file = PredictionsFile::open(&path)?;
/// assert_eq!((file.examples(), file.classes()), (2, 2));
/// assert_eq!(file.rows(0..1)?.log_probs, [-0.1, -2.3]);
/// assert_eq!(file.read(Field::Mean, 1..2)?, Some(vec![0.0, 0.0]));
/// assert_eq!(file.read(Field::DiagScale, 0..2)?, None);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct PredictionsFile {
    path: PathBuf,
    storage: Storage,
    metadata: Metadata,
    examples: usize,
    shared_loadings: Option<Vec<f32>>,
}

#[derive(Debug)]
enum Storage {
    File {
        file: File,
        /// Where each of [`Field::ALL`] begins; `None` if it is missing.
        starts: [Option<u64>; Field::ALL.len()],
    },
    Memory(Arc<Predictions>),
}

/// Readers of the format refuse larger headers.
const LARGEST_HEADER: u64 = 100_000_000;

/// How many numbers are read at a time.
const PIECE: usize = 1 << 16;

impl PredictionsFile {
    /// Opens a file that [`Predictions::save`] wrote, and checks all but its numbers.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let damaged = |message| RunError::damaged(path, message);
        let (file, start, header) = open_header(path)?;
        let metadata = read_metadata(&header).map_err(damaged)?;
        let examples = check_tensors(&header, metadata).map_err(damaged)?;
        let place = |field: Field| Some(start + header.info(field.name())?.data_offsets.0 as u64);
        let mut opened = Self {
            path: path.to_path_buf(),
            storage: Storage::File { file, starts: Field::ALL.map(place) },
            metadata,
            examples,
            shared_loadings: None,
        };
        opened.shared_loadings = opened.read(Field::SharedLoadings, 0..metadata.classes)?;
        Ok(opened)
    }

    /// Predictions in memory, read like a file; `name` stands for its path in messages.
    pub fn in_memory(predictions: Arc<Predictions>, name: &str) -> Result<Self, RunError> {
        let path = PathBuf::from(name);
        predictions.check(0).map_err(|message| RunError::damaged(&path, message))?;
        Ok(Self {
            metadata: predictions.metadata(),
            examples: predictions.examples(),
            shared_loadings: predictions.shared_loadings.clone(),
            storage: Storage::Memory(predictions),
            path,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// N.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.metadata.classes
    }

    /// R; 0 without loadings.
    pub fn rank(&self) -> usize {
        self.metadata.rank
    }

    /// τ.
    pub fn temperature(&self) -> f32 {
        self.metadata.temperature
    }

    /// Whether the file has this tensor.
    pub fn has(&self, field: Field) -> bool {
        match &self.storage {
            Storage::File { starts, .. } => starts[field as usize].is_some(),
            Storage::Memory(predictions) => predictions.values(field).is_some(),
        }
    }

    /// V of noise `"shared"`, `[K, R]`.
    pub fn shared_loadings(&self) -> Option<&[f32]> {
        self.shared_loadings.as_deref()
    }

    /// Some rows of all tensors.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn rows(&mut self, rows: Range<usize>) -> Result<Predictions, RunError> {
        let Metadata { classes, rank, temperature } = self.metadata;
        let shared_loadings = self.shared_loadings.clone();
        let mut read = |field| self.read(field, rows.clone());
        Ok(Predictions {
            classes,
            rank,
            temperature,
            log_probs: read(Field::LogProbs)?.unwrap_or_default(),
            log_probs_off: read(Field::LogProbsOff)?,
            mean: read(Field::Mean)?.unwrap_or_default(),
            diag_scale: read(Field::DiagScale)?,
            loadings: read(Field::Loadings)?,
            loading_scale: read(Field::LoadingScale)?,
            shared_loadings,
            joint_log_probs: read(Field::JointLogProbs)?,
        })
    }

    /// Some rows of one tensor, where the file has it: of examples, or with
    /// [`Field::SharedLoadings`] of classes.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn read(&mut self, field: Field, rows: Range<usize>) -> Result<Option<Vec<f32>>, RunError> {
        let shape = field.shape(self.examples, self.metadata);
        assert!(rows.start <= rows.end && rows.end <= shape[0], "rows {rows:?} of {}", shape[0]);
        let width = shape[1..].iter().product::<usize>();
        let values = match &mut self.storage {
            Storage::Memory(predictions) => {
                let values = predictions.values(field);
                // They were checked when they were given.
                return Ok(values.map(|all| all[rows.start * width..rows.end * width].to_vec()));
            }
            Storage::File { file, starts } => {
                let Some(start) = starts[field as usize] else { return Ok(None) };
                let from = start + (rows.start * width * size_of::<f32>()) as u64;
                read_numbers(file, from, rows.len() * width, f32::from_le_bytes)
                    .map_err(RunError::io("read", &self.path))?
            }
        };
        check_numbers(field, &values, rows.start, width)
            .map_err(|message| RunError::damaged(&self.path, message))?;
        Ok(Some(values))
    }
}

/// The shapes of the tensors of a safetensors file, by its header alone, which must agree with the
/// length of the file.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("test.safetensors");
/// # aleator_run::Predictions {
/// #     classes: 2, rank: 0, temperature: 1.0, log_probs: vec![-0.1, -2.3, -0.7, -0.7],
/// #     log_probs_off: None, mean: vec![1.5, -0.7, 0.0, 0.0], diag_scale: None, loadings: None,
/// #     loading_scale: None, shared_loadings: None, joint_log_probs: None,
/// # }.save(&path)?;
/// assert_eq!(aleator_run::tensor_shapes(&path)?["mean"], [2, 2]);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
pub fn tensor_shapes(path: &Path) -> Result<BTreeMap<String, Vec<usize>>, RunError> {
    let (_, _, header) = open_header(path)?;
    let tensors = header.tensors().into_iter();
    Ok(tensors.map(|(name, info)| (name, info.shape.clone())).collect())
}

/// A file, where its tensors start, and its header.
pub(super) fn open_header(path: &Path) -> Result<(File, u64, Header), RunError> {
    let mut file = open_file(path).map_err(RunError::io("read", path))?;
    let (start, header) =
        read_header(&mut file).map_err(RunError::io("read", path))?.map_err(|message| {
            RunError::damaged(path, format!("not a complete safetensors file: {message}"))
        })?;
    Ok((file, start, header))
}

/// The start of the tensors and the header; checks that their sizes add up to the file's.
fn read_header(file: &mut File) -> io::Result<Result<(u64, Header), String>> {
    let bytes = file.metadata()?.len();
    let mut length = [0; 8];
    if bytes < 8 {
        return Ok(Err(format!("it has {bytes} bytes")));
    }
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LARGEST_HEADER || length > bytes - 8 {
        return Ok(Err(format!("a header of {length} bytes in a file of {bytes} bytes")));
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    let header: Header = match serde_json::from_slice(&text) {
        Ok(header) => header,
        Err(error) => return Ok(Err(format!("its header: {error}"))),
    };
    let (start, expected) = (8 + length, header.data_len() as u64);
    Ok(if bytes - start == expected {
        Ok((start, header))
    } else {
        Err(format!("tensors of {expected} bytes, found {}", bytes - start))
    })
}

fn read_metadata(header: &Header) -> Result<Metadata, String> {
    let metadata: Metadata = read_entry(header, "predictions")?;
    metadata.check()?;
    Ok(metadata)
}

/// Our entry of the metadata of a file of `what`.
pub(super) fn read_entry<T: DeserializeOwned>(header: &Header, what: &str) -> Result<T, String> {
    let entry = header.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
    let entry = entry
        .ok_or_else(|| format!("no entry {METADATA:?} in the metadata: not a file of {what}"))?;
    serde_json::from_str(entry)
        .map_err(|error| format!("the metadata's entry {METADATA:?}: {error}"))
}

/// N, after checking that all required tensors exist and every tensor has the right shape.
fn check_tensors(header: &Header, metadata: Metadata) -> Result<usize, String> {
    let has = |field: Field| header.info(field.name()).is_some();
    for field in [Field::LogProbs, Field::Mean] {
        if !has(field) {
            return Err(format!("tensor {:?} is missing", field.name()));
        }
    }
    check_pair(has(Field::LoadingScale), has(Field::SharedLoadings))?;
    let rows = |field: Field| header.info(field.name()).and_then(|info| info.shape.first());
    let examples = rows(Field::LogProbs).copied().unwrap_or(0);
    for field in Field::ALL {
        let Some(info) = header.info(field.name()) else { continue };
        let (name, shape) = (field.name(), field.shape(examples, metadata));
        if info.dtype != Dtype::F32 {
            return Err(format!("tensor {name:?} must hold F32, found {:?}", info.dtype));
        }
        if info.shape != shape {
            return Err(format!("tensor {name:?} must be {shape:?}, found {:?}", info.shape));
        }
    }
    Ok(examples)
}

/// `count` numbers of WIDTH bytes, from a place of the file on.
pub(super) fn read_numbers<const WIDTH: usize, T>(
    file: &mut File,
    from: u64,
    count: usize,
    number: fn([u8; WIDTH]) -> T,
) -> io::Result<Vec<T>> {
    file.seek(SeekFrom::Start(from))?;
    let mut values = Vec::with_capacity(count);
    let mut bytes = vec![0; PIECE.min(count) * WIDTH];
    while values.len() < count {
        let piece = &mut bytes[..PIECE.min(count - values.len()) * WIDTH];
        file.read_exact(piece)?;
        let (numbers, _) = piece.as_chunks::<WIDTH>();
        values.extend(numbers.iter().map(|bytes| number(*bytes)));
    }
    Ok(values)
}
