//! The entries of a tar file, checked before they are used.
//!
//! The `tar` crate reads the headers. What the headers of GNU and PAX say about the next entry is
//! read from it raw, so that a name cannot become as long as a file, and a size cannot be given
//! twice.

use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

use tar::{Archive, EntryType, PaxExtensions};

use super::super::mapped::open_file;
use super::super::unpack::Unpacked;
use crate::error::{DataError, guarded};

const BLOCK: u64 = 512;

/// The most bytes of an entry's name; systems allow no more for a path.
const LONGEST_NAME: usize = 4_096;

/// The most bytes of the PAX header of one entry.
const LONGEST_EXTENSION: u64 = 64 << 10;

/// A regular file in the archive.
pub(super) struct Entry<'a> {
    pub name: String,
    /// Where its content begins in the (unpacked) archive.
    pub start: u64,
    pub len: u64,
    pub content: &'a mut dyn Read,
}

/// Called with each entry.
pub(super) type Visit<'a> = dyn FnMut(Entry) -> Result<ControlFlow<()>, DataError> + 'a;

/// Visits the files of a plain archive; returns the number of entries.
pub(super) fn in_plain(path: &Path, most: usize, visit: &mut Visit) -> Result<usize, DataError> {
    let file = open_file(path)?;
    let total = file.metadata().map_err(|error| DataError::io(path, error))?.len();
    guarded(path, || {
        let mut archive = Archive::new(file);
        let entries = archive.entries_with_seek().map_err(|error| damaged(path, &error))?;
        let mut walk = Walk::new(path, most, Some(total));
        if walk.all(entries.raw(true), visit)?.is_break() {
            return Ok(walk.entries);
        }
        let mut file = archive.into_inner();
        let position = file.stream_position().map_err(|error| DataError::io(path, error))?;
        walk.check_end(position.min(total), &mut file)?;
        Ok(walk.entries)
    })
}

/// Visits the files of a gzipped archive; returns the number of entries.
pub(super) fn in_packed(path: &Path, most: usize, visit: &mut Visit) -> Result<usize, DataError> {
    let content = Unpacked::open(path)?;
    guarded(path, || {
        let mut archive = Archive::new(Counted { content, position: 0 });
        let entries = archive.entries().map_err(|error| damaged(path, &error))?;
        let mut walk = Walk::new(path, most, None);
        if walk.all(entries.raw(true), visit)?.is_break() {
            return Ok(walk.entries);
        }
        let mut content = archive.into_inner();
        walk.check_end(content.position, &mut content)?;
        Ok(walk.entries)
    })
}

struct Counted {
    content: Unpacked,
    position: u64,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.content.read(bytes)?;
        self.position += read as u64;
        Ok(read)
    }
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

impl<'a> Walk<'a> {
    fn new(path: &'a Path, most: usize, total: Option<u64>) -> Self {
        Self { path, most, total, entries: 0, end: 0 }
    }

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
                    let is_folder = kind == EntryType::Directory || name.ends_with('/');
                    if is_folder {
                        continue;
                    }
                    let visited = visit(Entry { name, start, len, content: &mut entry })?;
                    if visited.is_break() {
                        return Ok(visited);
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn check_size(&mut self, start: u64, len: u64, name: &[u8]) -> Result<(), DataError> {
        let end = start.checked_add(len);
        match (end, self.total) {
            (Some(end), None) => self.end = end.next_multiple_of(BLOCK),
            (Some(end), Some(total)) if end <= total => self.end = end.next_multiple_of(BLOCK),
            _ => {
                let name = String::from_utf8_lossy(&name[..name.len().min(80)]);
                let message = format!(
                    "entry {name:?} says that it has {len} bytes, which ends beyond the file: the \
                     file is cut short or lies about its sizes; fetch it again"
                );
                return Err(DataError::invalid(self.path, message));
            }
        }
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

pub(super) fn damaged(path: &Path, error: &std::io::Error) -> DataError {
    let message = format!("is not a whole tar file ({error}); fetch or pack it again");
    DataError::invalid(path, message)
}
