//! Opening files of data.

use std::fs::File;
use std::path::Path;

use crate::error::DataError;

/// Opens a regular file; a directory or a device is refused by name.
pub(crate) fn open_file(path: &Path) -> Result<File, DataError> {
    let file = File::open(path).map_err(|error| DataError::io(path, error))?;
    let kind = file.metadata().map_err(|error| DataError::io(path, error))?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let found = if kind.is_dir() { "a directory" } else { "not a regular file" };
    Err(DataError::invalid(path, format!("is {found}; a file was expected")))
}
