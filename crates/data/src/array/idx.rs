//! IDX, the format of MNIST: a magic number, big-endian sizes, then the numbers; often gzipped.

use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::element::{Element, Located};
use crate::error::DataError;
use crate::inputs::file_bytes::FileBytes;
use crate::inputs::file_bytes::open_file;
use crate::inputs::spool::Spool;
use crate::inputs::unpack::limit;

/// The magic number of unsigned bytes in three dimensions.
pub(crate) const IMAGES: [u8; 4] = [0, 0, 0x08, 3];
/// The magic number of unsigned bytes in one dimension.
pub(crate) const LABELS: [u8; 4] = [0, 0, 0x08, 1];

/// A magic number and 255 sizes.
const LONGEST_HEADER: usize = 4 + 4 * 255;

/// Bytes that are unpacked at once.
const PIECE: u64 = 1 << 20;

/// The first bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file as it is, or what it holds if it is gzipped, and where its array lies.
pub(crate) fn open(path: &Path) -> Result<(FileBytes, Located), DataError> {
    let mut file = FileBytes::open(path)?;
    if file.head(GZIP.len())? == GZIP {
        file = unpack(path)?;
    }
    let invalid = |message| DataError::invalid(path, message);
    let (element, shape) = parse(&file.head(LONGEST_HEADER)?).map_err(invalid)?;
    let span = (header_len(&shape), file.len());
    let at = Located::to_end(span, shape, (element, true), false).map_err(invalid)?;
    Ok((file, at))
}

/// The first four bytes of the content, gzipped or not; `None` where there are fewer.
pub(crate) fn magic(path: &Path) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut file = open_file(path).ok()?;
    file.read_exact(&mut bytes).ok()?;
    if bytes.starts_with(&GZIP) {
        let file = open_file(path).ok()?;
        MultiGzDecoder::new(BufReader::new(file)).read_exact(&mut bytes).ok()?;
    }
    Some(bytes)
}

/// The type and shape that a header says.
fn parse(file: &[u8]) -> Result<(Element, Vec<usize>), String> {
    let short = "is not an IDX file: it ends within its header";
    let (&magic, rest) = file.split_first_chunk().ok_or(short)?;
    let element = match magic {
        [0, 0, 0x08, 1..=255] => Element::U8,
        [0, 0, 0x09, 1..=255] => Element::I8,
        [0, 0, 0x0b, 1..=255] => Element::I16,
        [0, 0, 0x0c, 1..=255] => Element::I32,
        [0, 0, 0x0d, 1..=255] => Element::F32,
        [0, 0, 0x0e, 1..=255] => Element::F64,
        _ => {
            return Err(format!(
                "is not an IDX file: its magic number is 0x{:08x}; images have 0x00000803, labels \
                 0x00000801",
                u32::from_be_bytes(magic)
            ));
        }
    };
    let sizes = rest.get(..4 * usize::from(magic[3])).ok_or(short)?;
    let sizes = sizes.as_chunks().0.iter();
    Ok((element, sizes.map(|&size| u32::from_be_bytes(size) as usize).collect()))
}

fn header_len(shape: &[usize]) -> usize {
    4 + 4 * shape.len()
}

/// The content of a gzipped file, exactly as long as its own header says.
fn unpack(path: &Path) -> Result<FileBytes, DataError> {
    let file = open_file(path)?;
    let packed = file.metadata().map_err(|error| DataError::io(path, error))?.len();
    let mut content = MultiGzDecoder::new(BufReader::new(file));
    let mut header = read_up_to(path, &mut content, 4)?;
    let dims = header.get(3).copied().unwrap_or(0);
    header.extend(read_up_to(path, &mut content, 4 * u64::from(dims))?);

    let invalid = |message: String| DataError::invalid(path, message);
    let (element, shape) = parse(&header).map_err(invalid)?;
    let len = element.byte_len(&shape).map_err(invalid)? as u64;
    let most = limit(packed);
    if len > most {
        return Err(invalid(format!(
            "its header says shape {shape:?}, {len} bytes, but {packed} gzipped bytes hold at most \
             {most}; if it is right, unpack it with gunzip"
        )));
    }
    let mut spool = Spool::new(path)?;
    spool.write(&header)?;
    let mut found = 0;
    // One byte more than there should be shows that there are too many.
    while found <= len {
        let piece = read_up_to(path, &mut content, (len + 1 - found).min(PIECE))?;
        if piece.is_empty() {
            break;
        }
        spool.write(&piece)?;
        found += piece.len() as u64;
    }
    if found != len {
        let kind = if found < len { "fewer" } else { "more" };
        return Err(invalid(format!(
            "shape {shape:?} needs {len} bytes after the header, but its gzip stream holds {kind}"
        )));
    }
    spool.finish()
}

fn read_up_to(path: &Path, content: &mut impl Read, limit: u64) -> Result<Vec<u8>, DataError> {
    let mut bytes = vec![];
    content.take(limit).read_to_end(&mut bytes).map_err(|error| {
        let message = format!("its gzip stream is damaged ({error}); fetch the file again");
        DataError::invalid(path, message)
    })?;
    Ok(bytes)
}
