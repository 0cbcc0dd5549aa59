//! Files seen as slices of bytes.
#![allow(unsafe_code, reason = "mapping a file is unsafe: another program could change it")]

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use memmap2::Mmap;

use crate::error::DataError;

/// A file mapped into memory: its pages are read when they are used, and may exceed the memory.
///
/// A data set must not change while it is in use. If another program shortens the file, the
/// operating system stops this one.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps a regular file.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let file = open_file(path)?;
        Self::of(&file).map_err(|error| DataError::io(path, error))
    }

    /// Maps a file that is open, as long as it is now.
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        // SAFETY: the map is read-only and private to this value. Every read goes through a slice
        // whose bounds are the file's length at this moment. No reference into it assumes more
        // than that bytes can be read, so a change by another program changes numbers, not types.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(map))
    }

    /// The whole content.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Opens a regular file; a directory, a pipe or a device is refused by name.
pub(crate) fn open_file(path: &Path) -> Result<File, DataError> {
    aleator_run::open_file(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => DataError::invalid(path, error.to_string()),
        _ => DataError::io(path, error),
    })
}
