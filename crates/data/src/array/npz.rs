//! NumPy's `.npz`: `.npy` files in a zip archive, stored (`numpy.savez`) or deflated
//! (`numpy.savez_compressed`).

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::element::Located;
use super::npy;
use super::tensors::Tensor;
use crate::error::DataError;
use crate::inputs::file_bytes::FileBytes;
use crate::inputs::spool::Spool;
use crate::inputs::unpack::LARGEST_CONTENT;

/// The header of an array of numbers or words takes 128 bytes; this leaves room.
const HEADER: usize = 1 << 12;

/// Bytes that are inflated at once.
const PIECE: usize = 1 << 20;

/// Deflate turns at most this many bytes into one.
const LARGEST_RATIO: u64 = 1032;

/// Archives with more members are refused.
const MOST_MEMBERS: usize = 100_000;

/// In their place stands the real number in a zip64 field.
const IN_ZIP64: [usize; 2] = [0xffff, 0xffff_ffff];

/// The members of a sparse matrix that SciPy saved.
const SPARSE: [&str; 5] = ["data", "format", "indices", "indptr", "shape"];

/// A member of an archive, as the directory at its end has it.
struct Member {
    /// Without `.npy`, as in `numpy.load(file)["name"]`.
    name: String,
    is_deflated: bool,
    crc: u32,
    /// Where its bytes are in the file.
    bytes: Range<usize>,
    /// The length of its content.
    len: usize,
}

/// Every array of a file, in its order.
pub(crate) fn list(path: &Path, file: &FileBytes) -> Result<Vec<Tensor>, DataError> {
    Ok(members(path, file)?.iter().map(|member| member.described(file)).collect())
}

/// The array that `choose` picks, and the bytes that it lies in: those of the file, or an inflated
/// copy.
pub(crate) fn open(
    path: &Path,
    choose: impl FnOnce(Vec<Tensor>) -> Result<(String, Located), DataError>,
) -> Result<(FileBytes, Located), DataError> {
    let file = FileBytes::open(path)?;
    let members = members(path, &file)?;
    let arrays = members.iter().map(|member| member.described(&file)).collect();
    let (name, at) = choose(arrays)?;
    let damaged = |what: String| {
        let message = format!("its array {name:?} {what}: the file is damaged; save it again");
        DataError::invalid(path, message)
    };
    let Some(member) = members.iter().find(|member| member.name == name) else {
        return Err(damaged("is not there".into()));
    };
    if member.is_deflated {
        return Ok((member.inflate(path, &file, damaged)?, at));
    }
    let mut crc = Crc::new();
    for from in member.bytes.clone().step_by(PIECE) {
        file.with(from..member.bytes.end.min(from + PIECE), |bytes| crc.update(bytes))?;
    }
    member.check(&crc).map_err(damaged)?;
    let start = member.bytes.start;
    Ok((file, Located { bytes: start + at.bytes.start..start + at.bytes.end, ..at }))
}

impl Member {
    fn described(&self, file: &FileBytes) -> Tensor {
        let at = self.header(file).and_then(|header| npy::parse(&header, self.len));
        let label = match &at {
            Ok(at) => format!("{}: {} {:?}", self.name, at.element.name(), at.shape),
            Err(_) => format!("{}: damaged or of an unknown type", self.name),
        };
        Tensor { name: self.name.clone(), at, label }
    }

    /// The first bytes of the content.
    fn header(&self, file: &FileBytes) -> Result<Vec<u8>, String> {
        let most = self.len.min(HEADER);
        let mut header = vec![];
        let packed = file.stream(self.bytes.clone());
        let read = if self.is_deflated {
            DeflateDecoder::new(packed).take(most as u64).read_to_end(&mut header)
        } else {
            packed.take(most as u64).read_to_end(&mut header)
        };
        read.map(|_| header).map_err(|error| format!("cannot be read ({error})"))
    }

    fn inflate(
        &self,
        path: &Path,
        file: &FileBytes,
        damaged: impl Fn(String) -> DataError,
    ) -> Result<FileBytes, DataError> {
        let (packed, len) = (self.bytes.len(), self.len);
        let most = (packed as u64).saturating_mul(LARGEST_RATIO).min(LARGEST_CONTENT);
        if len as u64 > most {
            return Err(damaged(format!("says that {packed} deflated bytes hold {len}")));
        }
        let mut content = DeflateDecoder::new(file.stream(self.bytes.clone()));
        let (mut spool, mut crc) = (Spool::new(path)?, Crc::new());
        let mut piece = vec![0; PIECE];
        loop {
            match content.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    crc.update(&piece[..read]);
                    spool.write(&piece[..read])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(damaged(format!("cannot be inflated ({error})"))),
            }
            if spool.len() > self.len as u64 {
                return Err(damaged(format!("holds more than the {} bytes it says", self.len)));
            }
        }
        if spool.len() != self.len as u64 {
            let (found, len) = (spool.len(), self.len);
            return Err(damaged(format!("holds {found} bytes and says {len}")));
        }
        self.check(&crc).map_err(damaged)?;
        spool.finish()
    }

    fn check(&self, crc: &Crc) -> Result<(), String> {
        if crc.sum() == self.crc { Ok(()) } else { Err("does not have its checksum".into()) }
    }
}

/// The members that are arrays.
fn members(path: &Path, file: &FileBytes) -> Result<Vec<Member>, DataError> {
    let members = directory(file).map_err(|what| {
        let message = format!("is not a whole .npz file: {what}; save it again with numpy.savez");
        DataError::invalid(path, message)
    })?;
    if SPARSE.iter().all(|name| members.iter().any(|member| member.name == *name)) {
        let file = path.display();
        let message = format!(
            "is a sparse matrix of SciPy, which is not read; convert it with \
             numpy.save(\"x.npy\", scipy.sparse.load_npz(\"{file}\").toarray())"
        );
        return Err(DataError::invalid(path, message));
    }
    Ok(members)
}

fn directory(file: &FileBytes) -> Result<Vec<Member>, String> {
    let (count, mut at) = end_of_directory(file)?;
    if count > MOST_MEMBERS {
        return Err(format!(
            "it says that it has {count} arrays, and at most {MOST_MEMBERS} are read"
        ));
    }
    let mut members = vec![];
    for entry in 0..count {
        let (member, next) = central_entry(file, at)
            .ok_or_else(|| format!("entry {entry} of its directory is cut short or wrong"))?;
        at = next;
        members.extend(member?);
    }
    let mut names = BTreeSet::new();
    match members.iter().find(|member: &&Member| !names.insert(&member.name)) {
        Some(twice) => Err(format!("it has two arrays called {:?}", twice.name)),
        None => Ok(members),
    }
}

/// How many entries the directory has, and where it starts.
fn end_of_directory(file: &FileBytes) -> Result<(usize, usize), String> {
    const END: usize = 22;
    const LONGEST_COMMENT: usize = 0xffff;
    let none = "it has no directory at its end, as a zip file that is cut short";
    let first = file.len().saturating_sub(END + LONGEST_COMMENT);
    let tail = part(file, first, file.len() - first).ok_or(none)?;
    let last = tail.len().checked_sub(END).ok_or(none)?;
    let is_end = |at: &usize| {
        tail[*at..].starts_with(b"PK\x05\x06")
            && number(&tail, at + 20, 2).is_some_and(|comment| at + END + comment == tail.len())
    };
    let end = (0..=last).rev().find(is_end).ok_or(none)?;
    let fields = number(&tail, end + 10, 2).zip(number(&tail, end + 16, 4));
    let (count, start) = fields.ok_or(none)?;
    if !IN_ZIP64.contains(&count) && !IN_ZIP64.contains(&start) {
        return Ok((count, start));
    }
    let zip64 = || {
        let locator = part(file, (first + end).checked_sub(20)?, 20)?;
        let record = part(file, number(&locator, 8, 8)?, 56)?;
        let is_zip64 = locator.starts_with(b"PK\x06\x07") && record.starts_with(b"PK\x06\x06");
        let fields = || number(&record, 32, 8).zip(number(&record, 48, 8));
        is_zip64.then(fields)?
    };
    zip64().ok_or_else(|| "its zip64 directory is missing".to_string())
}

/// The member of an entry of the directory, if it is an array, and where the next entry starts.
/// `None` where the entry reaches beyond the file.
fn central_entry(file: &FileBytes, at: usize) -> Option<(Result<Option<Member>, String>, usize)> {
    const ENTRY: usize = 46;
    const LOCAL: usize = 30;
    let entry = part(file, at, ENTRY)?;
    if !entry.starts_with(b"PK\x01\x02") {
        return None;
    }
    let field = |offset: usize, size: usize| number(&entry, offset, size);
    let (flags, method, crc) = (field(8, 2)?, field(10, 2)?, field(16, 4)?);
    let (name_len, extra_len) = (field(28, 2)?, field(30, 2)?);
    let next = at + ENTRY + name_len + extra_len + field(32, 2)?;
    let name_and_extra = part(file, at + ENTRY, name_len + extra_len)?;
    let (name, extra) = name_and_extra.split_at(name_len);
    let name = String::from_utf8_lossy(name).into_owned();
    let mut wide = zip64_numbers(extra);
    // The zip64 field has, in this order, those that do not fit their own.
    let mut size = |offset: usize| {
        let size = field(offset, 4)?;
        if size == 0xffff_ffff { wide.next() } else { Some(size) }
    };
    let (len, packed, local) = (size(24)?, size(20)?, size(42)?);
    let Some(name) = name.strip_suffix(".npy").map(str::to_string) else {
        return Some((Ok(None), next));
    };
    let header = part(file, local, LOCAL)?;
    if !header.starts_with(b"PK\x03\x04") {
        return None;
    }
    let names = number(&header, 26, 2)? + number(&header, 28, 2)?;
    let start = local.checked_add(LOCAL)?.checked_add(names)?;
    let bytes = start..start.checked_add(packed).filter(|end| *end <= file.len())?;
    let is_deflated = method == 8;
    let member = match (flags & 1, method) {
        (0, 8) => Ok(()),
        (0, 0) if len == packed => Ok(()),
        (0, 0) => Err(format!("its array {name:?} of {packed} bytes says that it has {len}")),
        (0, _) => {
            Err(format!("its array {name:?} is packed by method {method}; 0 and 8 are known"))
        }
        _ => Err(format!("its array {name:?} is encrypted")),
    };
    let member = member.map(|()| Some(Member { name, is_deflated, crc: crc as u32, bytes, len }));
    Some((member, next))
}

/// The numbers of the zip64 field among the extra fields of an entry.
fn zip64_numbers(mut extra: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut found: &[u8] = &[];
    while let (Some(id), Some(size)) = (number(extra, 0, 2), number(extra, 2, 2)) {
        let Some(field) = extra.get(4..4 + size) else { break };
        if id == 1 {
            found = field;
        }
        extra = &extra[4 + size..];
    }
    found.as_chunks::<8>().0.iter().map_while(|bytes| number(bytes, 0, 8))
}

/// Some bytes of the file; `None` where they cannot be read.
fn part(file: &FileBytes, at: usize, len: usize) -> Option<Vec<u8>> {
    let end = at.checked_add(len).filter(|end| *end <= file.len())?;
    file.bytes(at..end).ok()
}

/// The little-endian number of `size` bytes at a position; `None` beyond the end.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let number = bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}
