//! Decoded content in a temporary file without a name, so that it need not fit in memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::file_bytes::FileBytes;
use crate::error::DataError;

/// Where the content of a packed file is written while it is decoded.
///
/// The file has no name: it disappears with its last user, even if the program is killed.
pub(crate) struct Spool {
    source: PathBuf,
    file: BufWriter<File>,
    scratch: Vec<u8>,
    len: u64,
}

impl Spool {
    /// A new temporary file for what `source` holds.
    pub(crate) fn new(source: &Path) -> Result<Self, DataError> {
        let file = tempfile::tempfile().map_err(|error| failed(source, &error))?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { source: source.to_path_buf(), file, scratch: vec![], len: 0 })
    }

    /// Appends bytes; returns where they begin.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<u64, DataError> {
        let start = self.len;
        self.len += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| failed(&self.source, &error))?;
        Ok(start)
    }

    /// Appends numbers as little-endian float32.
    pub(crate) fn write_floats(&mut self, values: &[f32]) -> Result<(), DataError> {
        self.scratch.clear();
        self.scratch.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.len += self.scratch.len() as u64;
        self.file.write_all(&self.scratch).map_err(|error| failed(&self.source, &error))
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Everything written.
    pub(crate) fn finish(self) -> Result<FileBytes, DataError> {
        let source = self.source.clone();
        FileBytes::of(&source, self.into_file()?)
    }

    /// Everything written, to be read at positions.
    pub(crate) fn into_file(self) -> Result<File, DataError> {
        self.file.into_inner().map_err(|error| failed(&self.source, error.error()))
    }
}

fn failed(source: &Path, error: &std::io::Error) -> DataError {
    let directory = std::env::temp_dir();
    let message = format!(
        "its content is decoded into a temporary file, which failed in {}: {error}; \
         free space there or set TMPDIR to a directory with room",
        directory.display()
    );
    DataError::invalid(source, message)
}
