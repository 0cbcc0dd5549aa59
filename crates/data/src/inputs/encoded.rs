//! Encoded images of any container: where the bytes of each are; decoded when they are read.

mod place;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use aleator_run::recipe::Framing;
use rayon::prelude::*;

use super::{InputShape, Inputs, Storage};
use crate::error::{DataError, guarded};
use crate::picture::{self, Frame, Limits, Picture};

pub(crate) use place::{Container, Piece, Pieces, Places, read_file, too_large};

/// The largest side that images can be resized to, in pixels.
const LARGEST_SIDE: usize = 1 << 14;

/// The most bytes of one encoded image. Each thread holds one in memory.
pub(crate) const LARGEST_IMAGE: u64 = 256 << 20;

/// The number of images whose contents go into a fingerprint; of all others name and size do.
pub(crate) const FINGERPRINTED: usize = 1_024;

/// Images whose sizes are gathered at once while a fingerprint is taken.
const SIZES_AT_ONCE: usize = 1 << 14;

/// The header of nearly every PNG and JPEG lies within its first bytes, this many.
const HEADER_BYTES: usize = 64 << 10;

/// Images of one size, or resized to it.
#[derive(Debug)]
pub(crate) struct Encoded {
    places: Places,
    frame: Frame,
    channels: usize,
    resize: bool,
    /// The images that [`Encoded::check`] has decoded.
    checked: Vec<AtomicBool>,
    /// The images that cannot be decoded, and why.
    damaged: Mutex<BTreeMap<usize, String>>,
}

/// These images, all of one size or resized to it; `source` is the path that the user gave.
pub(crate) fn open(source: &Path, places: Places, framing: &Framing) -> Result<Inputs, DataError> {
    let (width, height) = match framing.size {
        Some(side) if (1..=LARGEST_SIDE).contains(&side) => (side, side),
        Some(side) => {
            let message = format!("image_size is {side}; it must be 1 to {LARGEST_SIDE} pixels");
            return Err(DataError::invalid(source, message));
        }
        None => common_size(&places)?,
    };
    let frame = Frame::new(framing, width, height);
    let channels = framing.channels.unwrap_or(3);
    let resize = framing.size.is_some();
    let checked = (0..places.len()).map(|_| AtomicBool::new(false)).collect();
    let damaged = Mutex::default();
    let encoded = Encoded { places, frame, channels, resize, checked, damaged };
    Ok(Inputs::new(source, Storage::Encoded(encoded)))
}

impl Encoded {
    pub(crate) fn rows(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn shape(&self) -> InputShape {
        let Frame { height, width, .. } = self.frame;
        InputShape::Image { channels: self.channels, height, width }
    }

    fn path(&self, row: usize) -> PathBuf {
        self.places.path(row)
    }

    /// The file of an image, if it holds nothing else.
    pub(crate) fn file(&self, row: usize) -> Option<PathBuf> {
        matches!(self.places, Places::Files { .. }).then(|| self.path(row))
    }

    /// One image as it is stored.
    pub(crate) fn picture(&self, row: usize) -> Result<Picture, DataError> {
        decoded(&self.path(row), &self.places.bytes(row)?)
    }

    /// Why an image cannot be decoded, if it cannot. Each image is decoded once for this.
    pub(crate) fn check(&self, row: usize) -> Option<String> {
        let damaged = || self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_checked(row) {
            if let Err(error) = self.picture(row) {
                damaged().insert(row, error.reason());
            }
            self.checked[row].store(true, Ordering::Release);
        }
        damaged().get(&row).cloned()
    }

    pub(crate) fn is_checked(&self, row: usize) -> bool {
        self.checked[row].load(Ordering::Acquire)
    }

    /// The hash of an image's bytes, and the image.
    pub(crate) fn examined(&self, row: usize) -> Result<(blake3::Hash, Picture), DataError> {
        let bytes = self.places.bytes(row)?;
        Ok((blake3::hash(&bytes), decoded(&self.path(row), &bytes)?))
    }

    /// The result of `decode` on the content of one image.
    pub(crate) fn decoded_as(
        &self,
        row: usize,
        decode: impl FnOnce(&[u8]) -> Result<Picture, String>,
    ) -> Result<Picture, DataError> {
        let bytes = self.places.bytes(row)?;
        at_path(&self.path(row), || decode(&bytes))
    }

    /// One image as evaluation sees it.
    pub(crate) fn read(&self, row: usize, out: &mut [f32]) -> Result<(), DataError> {
        if self.resize {
            let cut = |bytes: &[u8]| self.frame.cut_encoded(bytes, Limits::DEFAULT);
            self.frame.numbers(&self.decoded_as(row, cut)?, out);
            return Ok(());
        }
        let picture = self.picture(row)?;
        let found = (picture.width, picture.height);
        let expected = (self.frame.width, self.frame.height);
        if found != expected {
            return Err(other_size(&self.path(row), found, expected, "the others"));
        }
        self.frame.numbers(&self.frame.cut(&picture), out);
        Ok(())
    }

    /// All names and sizes, and the contents of the [`FINGERPRINTED`] images whose names have the
    /// smallest hashes.
    pub(crate) fn fingerprint_into(&self, hasher: &mut blake3::Hasher) -> Result<(), DataError> {
        let places = &self.places;
        for first in (0..places.len()).step_by(SIZES_AT_ONCE) {
            let rows = first..places.len().min(first + SIZES_AT_ONCE);
            let sizes: Vec<Result<u64, DataError>> =
                rows.clone().into_par_iter().map(|row| places.size(row)).collect();
            for (row, size) in rows.zip(sizes) {
                let name = places.name(row);
                hasher.update(&(name.len() as u64).to_le_bytes());
                hasher.update(name.as_bytes());
                hasher.update(&size?.to_le_bytes());
            }
        }
        let contents: Vec<Result<blake3::Hash, DataError>> = chosen(places)
            .into_par_iter()
            .map(|row| places.bytes(row).map(|bytes| blake3::hash(&bytes)))
            .collect();
        for content in contents {
            hasher.update(content?.as_bytes());
        }
        Ok(())
    }
}

/// The images whose contents are hashed, ascending: a choice that does not depend on their
/// order.
fn chosen(places: &Places) -> Vec<usize> {
    let rows = 0..places.len();
    if places.len() <= FINGERPRINTED {
        return rows.collect();
    }
    let hash = |row: usize| *blake3::hash(places.name(row).as_bytes()).as_bytes();
    let key = |row| hash(row).first_chunk::<16>().copied().unwrap_or_default();
    let mut ranked: Vec<([u8; 16], usize)> =
        rows.into_par_iter().map(|row| (key(row), row)).collect();
    ranked.select_nth_unstable(FINGERPRINTED);
    let mut chosen: Vec<usize> = ranked[..FINGERPRINTED].iter().map(|(_, row)| *row).collect();
    chosen.sort_unstable();
    chosen
}

/// Width and height of all images, by their headers.
fn common_size(places: &Places) -> Result<(usize, usize), DataError> {
    let expected = header_size(places, 0)?;
    let wrong =
        (1..places.len()).into_par_iter().find_map_first(|row| match header_size(places, row) {
            Ok(size) if size == expected => None,
            Ok(size) => Some(other_size(&places.path(row), size, expected, &places.name(0))),
            Err(error) => Some(error),
        });
    wrong.map_or(Ok(expected), Err)
}

/// Reads the head of a PNG or JPEG only, if that is enough.
fn header_size(places: &Places, row: usize) -> Result<(usize, usize), DataError> {
    let head = places.head(row, HEADER_BYTES)?;
    let is_plain = head.starts_with(b"\x89PNG") || head.starts_with(&[0xff, 0xd8, 0xff]);
    if is_plain && let Ok(size) = size_of(&places.path(row), &head) {
        return Ok(size);
    }
    size_of(&places.path(row), &places.bytes(row)?)
}

/// Width and height of one image as it is seen.
pub(crate) fn size_of(path: &Path, bytes: &[u8]) -> Result<(usize, usize), DataError> {
    at_path(path, || picture::size_of(bytes, Limits::DEFAULT))
}

fn decoded(path: &Path, bytes: &[u8]) -> Result<Picture, DataError> {
    at_path(path, || picture::decode(bytes, Limits::DEFAULT))
}

/// The result of a decoder, whose phrases are about `path`.
fn at_path<T>(path: &Path, decode: impl FnOnce() -> Result<T, String>) -> Result<T, DataError> {
    guarded(path, || decode().map_err(|what| DataError::invalid(path, what)))
}

fn other_size(
    path: &Path,
    found: (usize, usize),
    expected: (usize, usize),
    like: &str,
) -> DataError {
    let message = format!(
        "is {} × {} pixels, not {} × {} as {like}; set data.image_size to bring all images to \
         one size",
        found.0, found.1, expected.0, expected.1
    );
    DataError::invalid(path, message)
}
