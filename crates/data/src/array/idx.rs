//! IDX, the format of MNIST: a magic number, big-endian sizes, then the numbers; often gzipped.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::element::{Element, Located, byte_len};
use crate::error::DataError;
use crate::inputs::mapped::{Mapped, open_file};
use crate::inputs::spool::Spool;
use crate::inputs::unpack::LARGEST_CONTENT;

/// The magic number of unsigned bytes in three dimensions.
pub(crate) const IMAGES: [u8; 4] = [0, 0, 0x08, 3];
/// The magic number of unsigned bytes in one dimension.
pub(crate) const LABELS: [u8; 4] = [0, 0, 0x08, 1];

/// Deflate turns at most this many bytes into one.
const LARGEST_RATIO: u64 = 1032;

/// A file as it is, or what it holds if it is gzipped, and where its array lies.
pub(crate) fn open(path: &Path) -> Result<(Mapped, Located), DataError> {
    let mut file = open_file(path)?;
    let mut magic = [0; 2];
    let gzipped = file.read_exact(&mut magic).is_ok() && magic == [0x1f, 0x8b];
    let mapped = if gzipped { unpack(path)? } else { Mapped::open(path)? };
    let located = locate(path, mapped.bytes())?;
    Ok((mapped, located))
}

/// The first four bytes of the content, gzipped or not; `None` where there are fewer.
pub(crate) fn magic(path: &Path) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut file = open_file(path).ok()?;
    file.read_exact(&mut bytes).ok()?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let file = open_file(path).ok()?;
        MultiGzDecoder::new(BufReader::new(file)).read_exact(&mut bytes).ok()?;
    }
    Some(bytes)
}

fn locate(path: &Path, file: &[u8]) -> Result<Located, DataError> {
    let invalid = |message: String| DataError::invalid(path, message);
    let header = Header::parse(file).map_err(invalid)?;
    let len = header.content_len().map_err(invalid)?;
    let found = file.len() - header.len();
    if found != len {
        let kind = if found < len { "the file is cut short" } else { "the file is too long" };
        let shape = &header.shape;
        return Err(invalid(format!(
            "{kind}: shape {shape:?} needs {len} bytes after the header, found {found}"
        )));
    }
    let bytes = header.len()..file.len();
    let Header { element, shape } = header;
    Ok(Located { shape, element, big_endian: true, fortran: false, bytes })
}

struct Header {
    element: Element,
    shape: Vec<usize>,
}

impl Header {
    fn parse(file: &[u8]) -> Result<Self, String> {
        let short = || "is not an IDX file: it ends within its header".to_string();
        let (&[zero, zero_too, kind, dims], rest) = file.split_first_chunk().ok_or_else(short)?;
        let element = match kind {
            0x08 => Element::U8,
            0x09 => Element::I8,
            0x0b => Element::I16,
            0x0c => Element::I32,
            0x0d => Element::F32,
            0x0e => Element::F64,
            _ => return Err(wrong_magic(file)),
        };
        if zero != 0 || zero_too != 0 || dims == 0 {
            return Err(wrong_magic(file));
        }
        let sizes = rest.get(..4 * usize::from(dims)).ok_or_else(short)?;
        let (sizes, _) = sizes.as_chunks();
        let shape = sizes.iter().map(|&size| u32::from_be_bytes(size) as usize).collect();
        Ok(Self { element, shape })
    }

    fn len(&self) -> usize {
        4 + 4 * self.shape.len()
    }

    fn content_len(&self) -> Result<usize, String> {
        byte_len(&self.shape, self.element).ok_or_else(|| {
            format!("its header says shape {:?}, more than any memory holds", self.shape)
        })
    }
}

fn wrong_magic(file: &[u8]) -> String {
    let magic: String = file.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!(
        "is not an IDX file: its magic number is 0x{magic}; images have 0x00000803, labels 0x00000801"
    )
}

/// The content of a gzipped file, exactly as long as its own header says.
fn unpack(path: &Path) -> Result<Mapped, DataError> {
    let file = open_file(path)?;
    let packed = file.metadata().map_err(|error| DataError::io(path, error))?.len();
    let mut content = MultiGzDecoder::new(BufReader::new(file));
    let head = read_up_to(path, &mut content, 4)?;
    let dims = head.get(3).copied().unwrap_or(0);
    let mut header = head;
    header.extend(read_up_to(path, &mut content, 4 * u64::from(dims))?);

    let invalid = |message: String| DataError::invalid(path, message);
    let parsed = Header::parse(&header).map_err(invalid)?;
    let len = parsed.content_len().map_err(invalid)? as u64;
    if len > packed.saturating_mul(LARGEST_RATIO).min(LARGEST_CONTENT) {
        let shape = &parsed.shape;
        return Err(invalid(format!(
            "its header says shape {shape:?}, but {packed} gzipped bytes cannot hold {len}"
        )));
    }
    let mut spool = Spool::new(path)?;
    spool.write(&header)?;
    let found = copy_up_to(path, &mut content, &mut spool, len + 1)?;
    if found != len {
        let kind = if found < len { "fewer" } else { "more" };
        let shape = &parsed.shape;
        return Err(invalid(format!(
            "shape {shape:?} needs {len} bytes after the header, but its gzip stream holds {kind}"
        )));
    }
    spool.finish()
}

type Unpacked = MultiGzDecoder<BufReader<File>>;

fn read_up_to(path: &Path, content: &mut Unpacked, limit: u64) -> Result<Vec<u8>, DataError> {
    let mut bytes = vec![];
    content.take(limit).read_to_end(&mut bytes).map_err(|error| damaged(path, &error))?;
    Ok(bytes)
}

fn copy_up_to(
    path: &Path,
    content: &mut Unpacked,
    spool: &mut Spool,
    limit: u64,
) -> Result<u64, DataError> {
    let mut buffer = vec![0; 1 << 16];
    let mut copied = 0;
    while copied < limit {
        let room = (limit - copied).min(buffer.len() as u64) as usize;
        let read = match content.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(damaged(path, &error)),
        };
        spool.write(&buffer[..read])?;
        copied += read as u64;
    }
    Ok(copied)
}

fn damaged(path: &Path, error: &std::io::Error) -> DataError {
    DataError::invalid(path, format!("its gzip stream is damaged ({error}); fetch the file again"))
}
