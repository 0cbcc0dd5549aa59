//! A file of tensors, written in pieces that fit in memory.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata as Header, TensorInfo};
use serde::Serialize;

use super::{Field, METADATA, Metadata, Predictions};
use crate::atomic::AtomicFile;
use crate::error::RunError;

/// Writes [`Predictions`] of a split piece by piece; the file appears when it is complete, with the
/// bytes that [`Predictions::save`] writes.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("test.safetensors");
/// use aleator_run::{Predictions, PredictionsWriter};
///
/// let piece = |log_p: f32| Predictions {
///     classes: 2,
///     rank: 0,
///     temperature: 1.0,
///     log_probs: vec![log_p, -2.3],
///     log_probs_off: None,
///     mean: vec![1.5, -0.7],
///     diag_scale: None,
///     loadings: None,
///     loading_scale: None,
///     shared_loadings: None,
///     joint_log_probs: None,
/// };
/// let mut writer = PredictionsWriter::create(&path, 2)?;
/// writer.push(&piece(-0.1))?;
/// writer.push(&piece(-0.2))?;
/// writer.commit()?;
/// assert_eq!(Predictions::load(&path)?.log_probs, [-0.1, -2.3, -0.2, -2.3]);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Debug)]
pub struct PredictionsWriter {
    file: TensorWriter,
    examples: usize,
    written: usize,
    /// What the first piece says of all of them: its metadata and its tensors.
    layout: Option<(Metadata, Vec<Field>)>,
}

impl PredictionsWriter {
    /// For the predictions of `examples` examples.
    pub fn create(path: &Path, examples: usize) -> Result<Self, RunError> {
        let file = TensorWriter::create(path)?;
        Ok(Self { file, examples, written: 0, layout: None })
    }

    /// Adds the predictions of the next examples, which have the tensors of the first ones.
    ///
    /// # Panics
    /// When they have others, or there are more examples than were announced.
    pub fn push(&mut self, piece: &Predictions) -> Result<(), RunError> {
        let damaged = |message| RunError::damaged(self.file.path(), message);
        piece.check(self.written).map_err(damaged)?;
        let (metadata, fields) = (piece.metadata(), piece.tensors().map(|(field, _)| field));
        let fields: Vec<Field> = fields.collect();
        let begins = self.layout.is_none();
        let (first, expected) = self.layout.get_or_insert_with(|| (metadata, fields.clone()));
        let same = (first.classes, first.rank) == (metadata.classes, metadata.rank);
        assert!(same && *expected == fields, "all pieces have the same tensors");
        if begins {
            let shape = |field: &Field| (field.name(), field.shape(self.examples, metadata));
            let tensors = fields.iter().map(shape).map(|(name, shape)| (name, Dtype::F32, shape));
            self.file.begin(&metadata, tensors.collect())?;
        }
        let examples = piece.examples();
        assert!(self.written + examples <= self.examples, "more than {} examples", self.examples);
        for (tensor, (field, values)) in piece.tensors().enumerate() {
            match field {
                Field::SharedLoadings if begins => self.file.write(tensor, 0, values)?,
                Field::SharedLoadings => {}
                _ => self.file.write(tensor, self.written, values)?,
            }
        }
        self.written += examples;
        Ok(())
    }

    /// Brings the file to its place.
    ///
    /// # Panics
    /// When examples are missing.
    pub fn commit(self) -> Result<(), RunError> {
        assert_eq!(self.written, self.examples, "predictions of all examples");
        self.file.commit()
    }
}

/// A safetensors file whose tensors grow row by row.
#[derive(Debug)]
pub(super) struct TensorWriter {
    file: AtomicFile,
    /// Where each tensor begins, and the bytes of its rows.
    places: Vec<(u64, usize)>,
}

impl TensorWriter {
    pub fn create(path: &Path) -> Result<Self, RunError> {
        Ok(Self { file: AtomicFile::create(path)?, places: vec![] })
    }

    pub fn path(&self) -> &Path {
        self.file.place()
    }

    /// Writes the header: the metadata, and names, types and shapes of all tensors, in the order in
    /// which they stand.
    pub fn begin(
        &mut self,
        metadata: &impl Serialize,
        tensors: Vec<(&str, Dtype, Vec<usize>)>,
    ) -> Result<(), RunError> {
        let damaged = |error: String| RunError::damaged(self.file.place(), error);
        let text = serde_json::to_string(metadata).map_err(|error| damaged(error.to_string()))?;
        let metadata = HashMap::from([(METADATA.to_string(), text)]);
        let (mut infos, mut offset) = (vec![], 0);
        for (name, dtype, shape) in tensors {
            let width = shape[1..].iter().product::<usize>() * (dtype.bitsize() / 8);
            let end = offset + shape[0] * width;
            self.places.push((offset as u64, width));
            infos
                .push((name.to_string(), TensorInfo { dtype, shape, data_offsets: (offset, end) }));
            offset = end;
        }
        let header = Header::new(Some(metadata), infos).map_err(|error| damaged(error.to_string()));
        let mut header =
            serde_json::to_vec(&header?).map_err(|error| damaged(error.to_string()))?;
        header.resize(header.len().next_multiple_of(8), b' ');
        let start = (8 + header.len()) as u64;
        self.places.iter_mut().for_each(|(place, _)| *place += start);
        let length = (header.len() as u64).to_le_bytes();
        self.write_at(0, &[&length[..], &header].concat())
    }

    /// Writes rows of a tensor, from row `first` on.
    pub fn write<T: Number>(
        &mut self,
        tensor: usize,
        first: usize,
        values: &[T],
    ) -> Result<(), RunError> {
        let (start, width) = self.places[tensor];
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.append_to(&mut bytes));
        self.write_at(start + first as u64 * width as u64, &bytes)
    }

    fn write_at(&mut self, place: u64, bytes: &[u8]) -> Result<(), RunError> {
        let file = &mut self.file.file;
        let written = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(bytes));
        written.map_err(RunError::io("write", self.file.place()))
    }

    pub fn commit(self) -> Result<(), RunError> {
        self.file.commit()
    }
}

/// A number of a tensor.
pub(super) trait Number {
    fn append_to(&self, bytes: &mut Vec<u8>);
}

impl Number for f32 {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Number for f64 {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Number for i32 {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}
