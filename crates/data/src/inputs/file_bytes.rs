//! Files of data: opening them, and reading their bytes at positions.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::DataError;

/// Up to this many bytes are held in memory where rows are read again and again: a call of the
/// system takes about a microsecond, as long as a small network for a short row.
const HELD: usize = 1 << 30;

/// A file that may be larger than the memory.
///
/// A data set must not change while it is in use; if another program shortens the file, that is an
/// error where it is read.
#[derive(Debug)]
pub(crate) struct FileBytes {
    /// For messages.
    path: PathBuf,
    file: File,
    len: usize,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    start: usize,
    bytes: Vec<u8>,
}

impl FileBytes {
    /// Opens a regular file.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        Self::of(path, open_file(path)?)
    }

    /// A file that is open, as long as it is now; `path` is its name in messages.
    pub(crate) fn of(path: &Path, file: File) -> Result<Self, DataError> {
        let len = file.metadata().map_err(|error| DataError::io(path, error))?.len();
        let len = usize::try_from(len)
            .map_err(|_| DataError::invalid(path, "is larger than any memory of this machine"))?;
        Ok(Self { path: path.to_path_buf(), file, len, held: None })
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The whole content.
    pub(crate) fn all(&self) -> Result<Vec<u8>, DataError> {
        self.bytes(0..self.len)
    }

    /// The first bytes, at most `most`.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>, DataError> {
        self.bytes(0..most.min(self.len))
    }

    /// These bytes.
    ///
    /// # Panics
    /// Unless they are within the file.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<Vec<u8>, DataError> {
        assert!(range.end <= self.len, "{range:?} of {} bytes", self.len);
        let mut bytes = vec![0; range.len()];
        self.read_at(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Calls `take` with these bytes, which are copied only if they are not held.
    pub(crate) fn with<T>(
        &self,
        range: Range<usize>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, DataError> {
        thread_local!(static ROW: RefCell<Vec<u8>> = const { RefCell::new(vec![]) });
        if let Some(Held { start, bytes }) = &self.held {
            return Ok(take(&bytes[range.start - start..range.end - start]));
        }
        ROW.with_borrow_mut(|row| {
            row.resize(range.len(), 0);
            self.read_at(range.start, row)?;
            Ok(take(row))
        })
    }

    /// The same file for reading rows of this range: held in memory if it is small.
    pub(crate) fn for_rows(mut self, range: Range<usize>) -> Result<Self, DataError> {
        if range.len() <= HELD {
            self.held = Some(Held { start: range.start, bytes: self.bytes(range)? });
        }
        Ok(self)
    }

    /// These bytes, one after the other.
    pub(crate) fn stream(&self, range: Range<usize>) -> Stream<'_> {
        Stream { file: self, rest: range }
    }

    fn read_at(&self, at: usize, bytes: &mut [u8]) -> Result<(), DataError> {
        read_exact_at(&self.path, &self.file, bytes, at as u64)
    }
}

/// Reads a part of a file from its beginning to its end.
pub(crate) struct Stream<'a> {
    file: &'a FileBytes,
    rest: Range<usize>,
}

impl Read for Stream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.rest.len());
        self.file.read_at(self.rest.start, &mut bytes[..count]).map_err(io::Error::other)?;
        self.rest.start += count;
        Ok(count)
    }
}

/// Fills `bytes` from this position of a file; `path` is its name in messages.
pub(crate) fn read_exact_at(
    path: &Path,
    file: &File,
    bytes: &mut [u8],
    at: u64,
) -> Result<(), DataError> {
    match fill_at(file, bytes, at) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let message = "is shorter than when it was opened; a data set must not change while \
                           it is in use";
            Err(DataError::invalid(path, message))
        }
        Err(error) => Err(DataError::io(path, error)),
    }
}

/// Without moving the file's own position: threads share it.
#[cfg(unix)]
fn fill_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn fill_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
        }
    }
    Ok(())
}

/// Opens a regular file; a directory, a pipe or a device is refused by name.
pub(crate) fn open_file(path: &Path) -> Result<File, DataError> {
    aleator_run::open_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => DataError::invalid(path, error.to_string()),
        _ => DataError::io(path, error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_is_an_error_unless_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bin");
        std::fs::write(&path, [7; 100]).unwrap();
        let file = FileBytes::open(&path).unwrap();
        let held = FileBytes::open(&path).unwrap().for_rows(10..100).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(50).unwrap();
        assert_eq!(file.with(0..50, <[u8]>::len).unwrap(), 50);
        let error = file.with(40..60, |_| ()).unwrap_err().to_string();
        assert!(error.contains("x.bin") && error.contains("shorter than when"), "{error}");
        let error = file.stream(0..100).read_to_end(&mut vec![]).unwrap_err().to_string();
        assert!(error.contains("shorter than when"), "{error}");
        assert_eq!(held.with(40..60, <[u8]>::to_vec).unwrap(), [7; 20]);
    }
}
