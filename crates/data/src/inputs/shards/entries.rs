//! The entries of a tar file, checked before they are used.
//!
//! The `tar` crate reads the headers. What the headers of GNU and PAX say about the next entry is
//! read from it raw, so that a name cannot become as long as a file, and a size cannot be given
//! twice.

use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tar::{Archive, EntryType, PaxExtensions};

use super::super::file_bytes::open_file;
use super::super::unpack::GzipContent;
use super::is_gzipped;
use crate::error::{DataError, guarded};

const BLOCK: u64 = 512;

/// The most bytes of an entry's name; systems allow no more for a path.
const LONGEST_NAME: usize = 4_096;

/// The most bytes of the PAX header of one entry.
const LONGEST_EXTENSION: u64 = 64 << 10;

/// A regular file in the archive.
pub(super) struct Entry<'a> {
    archive: &'a Path,
    pub name: String,
    /// Where its content begins in the (unpacked) archive.
    pub start: u64,
    pub len: u64,
    content: &'a mut dyn Read,
}

impl Entry<'_> {
    /// The path for messages.
    pub(super) fn path(&self) -> PathBuf {
        self.archive.join(&self.name)
    }

    pub(super) fn invalid(&self, message: impl Into<String>) -> DataError {
        DataError::invalid(self.path(), message)
    }

    /// The whole content, of at most `most` bytes.
    pub(super) fn bytes(&mut self, most: u64) -> Result<Vec<u8>, DataError> {
        if self.len > most {
            let message = format!("has {} bytes; at most {most} were expected", self.len);
            return Err(self.invalid(message));
        }
        let mut bytes = vec![];
        self.content.read_to_end(&mut bytes).map_err(|error| damaged(self.archive, &error))?;
        if bytes.len() as u64 != self.len {
            let message = format!("ends within its entry {:?}; fetch it again", self.name);
            return Err(DataError::invalid(self.archive, message));
        }
        Ok(bytes)
    }
}

/// Called with each entry.
pub(super) type Visit<'a> = dyn FnMut(Entry) -> Result<ControlFlow<()>, DataError> + 'a;

/// Visits the files of an archive, plain or gzipped; returns the number of entries.
pub(super) fn visit(path: &Path, most: usize, visit: &mut Visit) -> Result<usize, DataError> {
    let mut walk = Walk { path, most, total: None, entries: 0, end: 0 };
    guarded(path, || {
        if is_gzipped(path) {
            let mut archive = Archive::new(GzipContent::open(path)?);
            let entries = archive.entries().map_err(|error| damaged(path, &error))?;
            if walk.all(entries.raw(true), visit)?.is_continue() {
                let mut content = archive.into_inner();
                walk.check_end(content.position, &mut content)?;
            }
        } else {
            let failed = |error| DataError::io(path, error);
            let file = open_file(path)?;
            let total = file.metadata().map_err(failed)?.len();
            walk.total = Some(total);
            let mut archive = Archive::new(file);
            let entries = archive.entries_with_seek().map_err(|error| damaged(path, &error))?;
            if walk.all(entries.raw(true), visit)?.is_continue() {
                let mut file = archive.into_inner();
                let position = file.stream_position().map_err(failed)?;
                walk.check_end(position.min(total), &mut file)?;
            }
        }
        Ok(walk.entries)
    })
}

/// The way through one archive.
struct Walk<'a> {
    path: &'a Path,
    most: usize,
    /// The file's length, where it is known.
    total: Option<u64>,
    entries: usize,
    /// Where the last entry ends.
    end: u64,
}

impl Walk<'_> {
    fn all<R: Read>(
        &mut self,
        entries: tar::Entries<'_, R>,
        visit: &mut Visit,
    ) -> Result<ControlFlow<()>, DataError> {
        let mut next_name = None;
        for entry in entries {
            let mut entry = entry.map_err(|error| damaged(self.path, &error))?;
            self.entries += 1;
            if self.entries > self.most {
                let message = format!("has more than {} entries; take fewer shards", self.most);
                return Err(DataError::invalid(self.path, message));
            }
            let (start, len) = (entry.raw_file_position(), entry.size());
            self.check_size(start, len, &entry.path_bytes())?;
            match entry.header().entry_type() {
                EntryType::GNULongName => next_name = Some(self.long_name(&mut entry)?),
                EntryType::XHeader => next_name = self.extension(&mut entry)?.or(next_name),
                EntryType::GNULongLink | EntryType::XGlobalHeader => {}
                kind => {
                    let name = next_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                    let name = self.checked_name(&name)?;
                    self.check_kind(kind, &name)?;
                    if kind == EntryType::Directory || name.ends_with('/') {
                        continue;
                    }
                    let content = &mut entry;
                    let visited = visit(Entry { archive: self.path, name, start, len, content })?;
                    if visited.is_break() {
                        return Ok(visited);
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn check_size(&mut self, start: u64, len: u64, name: &[u8]) -> Result<(), DataError> {
        let end = start.checked_add(len).filter(|end| self.total.is_none_or(|most| *end <= most));
        let Some(end) = end else {
            let name = String::from_utf8_lossy(&name[..name.len().min(80)]);
            let message = format!(
                "entry {name:?} says that it has {len} bytes, which ends beyond the file: the file \
                 is cut short or lies about its sizes; fetch it again"
            );
            return Err(DataError::invalid(self.path, message));
        };
        self.end = end.next_multiple_of(BLOCK);
        Ok(())
    }

    /// The name that a GNU header gives the next entry.
    fn long_name(&self, entry: &mut impl Read) -> Result<Vec<u8>, DataError> {
        let mut name = self.content(entry, LONGEST_NAME as u64 + 1)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    /// The name that a PAX header gives the next entry, if it does.
    fn extension(&self, entry: &mut impl Read) -> Result<Option<Vec<u8>>, DataError> {
        let content = self.content(entry, LONGEST_EXTENSION)?;
        let mut name = None;
        for extension in PaxExtensions::new(&content) {
            let extension = extension.map_err(|error| damaged(self.path, &error))?;
            let key = extension.key_bytes();
            if key == b"path" {
                name = Some(extension.value_bytes().to_vec());
            }
            if key == b"size" || key.starts_with(b"GNU.sparse") {
                let message = format!(
                    "has an entry with the PAX header {:?}, which is for sparse and huge files; \
                     write the archive again without them",
                    String::from_utf8_lossy(key)
                );
                return Err(DataError::invalid(self.path, message));
            }
        }
        Ok(name)
    }

    fn content(&self, entry: &mut impl Read, most: u64) -> Result<Vec<u8>, DataError> {
        let mut content = vec![];
        let read = entry.take(most + 1).read_to_end(&mut content);
        read.map_err(|error| damaged(self.path, &error))?;
        if content.len() as u64 > most {
            let message = format!("has a header of more than {most} bytes: it is damaged");
            return Err(DataError::invalid(self.path, message));
        }
        Ok(content)
    }

    /// A name that lies below where the archive would be unpacked, without `./` at its start.
    fn checked_name(&self, name: &[u8]) -> Result<String, DataError> {
        let shown = String::from_utf8_lossy(&name[..name.len().min(80)]).into_owned();
        let refuse = |what: &str| {
            let message = format!("entry {shown:?} {what}");
            Err(DataError::invalid(self.path, message))
        };
        if name.len() > LONGEST_NAME {
            return refuse("has a name of more than 4096 bytes");
        }
        let Ok(name) = std::str::from_utf8(name) else {
            return refuse("has a name that is not UTF-8; rename it and pack again");
        };
        let parts = || name.split(['/', '\\']);
        if name.is_empty() || name.contains('\0') {
            return refuse("has no proper name: the file is damaged");
        }
        if parts().next() == Some("") || parts().any(|part| part == "..") {
            return refuse(
                "lies outside the archive; names are relative, without \"..\": pack it again",
            );
        }
        Ok(name.trim_start_matches("./").to_string())
    }

    fn check_kind(&self, kind: EntryType, name: &str) -> Result<(), DataError> {
        let what = match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::Directory => return Ok(()),
            EntryType::Symlink | EntryType::Link => "a link",
            EntryType::Char | EntryType::Block => "a device",
            EntryType::Fifo => "a pipe",
            EntryType::GNUSparse => "a sparse file",
            _ => "of an unknown kind",
        };
        let message = format!("entry {name:?} is {what}; shards hold plain files: pack it again");
        Err(DataError::invalid(self.path, message))
    }

    /// An archive ends with blocks of zeros; without them it is cut short, and what follows them
    /// would be overlooked.
    fn check_end(&self, position: u64, rest: &mut impl Read) -> Result<(), DataError> {
        let invalid = |message: &str| Err(DataError::invalid(self.path, message));
        if position < self.end + BLOCK {
            return invalid(
                "ends without the mark that ends a tar file: it is cut short; fetch it again",
            );
        }
        let mut block = vec![0; 1 << 16];
        loop {
            match rest.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) if block[..read].iter().all(|byte| *byte == 0) => {}
                Ok(_) => {
                    return invalid(
                        "goes on after the mark that ends a tar file: several archives were \
                         written after one another; keep them as shards of their own",
                    );
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(damaged(self.path, &error)),
            }
        }
    }
}

fn damaged(path: &Path, error: &std::io::Error) -> DataError {
    let message = format!("is not a whole tar file ({error}); fetch or pack it again");
    DataError::invalid(path, message)
}
