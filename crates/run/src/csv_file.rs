//! CSV files, written atomically and row by row.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::atomic;
use crate::error::RunError;
use crate::regular::open_own;

/// A CSV file that is being written.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("labels.csv");
/// use aleator_run::{CsvFile, RunError};
///
/// CsvFile::write(&path, &["id", "label"], |file| file.row(&["1,2.png", "cat"]))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "id,label\n\"1,2.png\",cat\n");
/// # Ok::<(), RunError>(())
/// ```
#[derive(Debug)]
pub struct CsvFile<'a> {
    writer: csv::Writer<BufWriter<File>>,
    path: &'a Path,
}

impl<'a> CsvFile<'a> {
    /// Writes the file with its header and the rows that `fill` adds.
    ///
    /// # Errors
    /// When the file cannot be written, or `fill` fails; then an older file is unchanged.
    pub fn write<E: From<RunError>>(
        path: &'a Path,
        header: &[impl AsRef<[u8]>],
        fill: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        atomic::write_file_by(path, |temporary| {
            let file = open_own(temporary, File::options().write(true));
            let file = file.map_err(RunError::io("write", path))?;
            let mut this = Self { writer: csv::Writer::from_writer(BufWriter::new(file)), path };
            this.row(header)?;
            fill(&mut this)?;
            Ok(this.writer.flush().map_err(RunError::io("write", path))?)
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn row(&mut self, cells: &[impl AsRef<[u8]>]) -> Result<(), RunError> {
        let written = self.writer.write_record(cells).map_err(io::Error::from);
        written.map_err(RunError::io("write", self.path))
    }
}
