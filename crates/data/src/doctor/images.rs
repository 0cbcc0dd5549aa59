//! Every image decoded once: its size, its colour, what is wrong with it.

use rayon::prelude::*;
use serde::Serialize;

use crate::picture::Picture;
use crate::sources::source::Source;

/// The sizes and colours of all images that can be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageReport {
    /// Width and height of the image with the fewest pixels.
    pub smallest: (usize, usize),
    /// Width and height of the image in the middle.
    pub median: (usize, usize),
    /// Width and height of the image with the most pixels.
    pub largest: (usize, usize),
    /// How many sizes there are.
    pub distinct_sizes: usize,
    /// Images that show colours.
    pub colour: usize,
    /// Images that are grey, however they are stored.
    pub grey: usize,
}

/// An image that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Corrupt {
    /// `"train"`, `"validation"` or `"test"`.
    pub split: &'static str,
    /// Its id.
    pub id: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Width, height, and whether it is grey.
pub(super) type Measured = (usize, usize, bool);

/// The first half of a BLAKE3 hash: enough to tell contents apart.
pub(super) type Hash = [u8; 16];

pub(super) struct ImageScan {
    /// The hash of each image that could be decoded, with its row.
    pub hashes: Vec<(Hash, usize)>,
    pub sizes: Vec<Measured>,
    pub corrupt: Vec<Corrupt>,
}

pub(super) fn scan(
    split: &'static str,
    source: &Source,
    count: &(impl Fn(usize) + Sync),
) -> ImageScan {
    let one = |row: usize| {
        let found = source.inputs.examined(source.row(row)).map(|(hash, picture)| {
            (half(&hash), (picture.width, picture.height, is_grey(&picture)))
        });
        count(1);
        found
    };
    let found: Vec<_> = (0..source.ids.len()).into_par_iter().map(one).collect();
    let mut scan = ImageScan { hashes: vec![], sizes: vec![], corrupt: vec![] };
    for (row, found) in found.into_iter().enumerate() {
        match found {
            Ok((hash, size)) => {
                scan.hashes.push((hash, row));
                scan.sizes.push(size);
            }
            Err(error) => scan.corrupt.push(Corrupt {
                split,
                id: source.ids.name(row).into_owned(),
                reason: error.reason(),
            }),
        }
    }
    scan
}

pub(super) fn half(hash: &blake3::Hash) -> Hash {
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

fn is_grey(picture: &Picture) -> bool {
    picture.channels == 1
        || picture.bytes.chunks_exact(3).all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2])
}

impl ImageReport {
    pub(super) fn of(mut measured: Vec<Measured>) -> Option<Self> {
        measured.sort_unstable_by_key(|(width, height, _)| (width * height, *width));
        let size = |at: usize| measured.get(at).map(|(width, height, _)| (*width, *height));
        let distinct = measured.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).count();
        let grey = measured.iter().filter(|(_, _, grey)| *grey).count();
        Some(Self {
            smallest: size(0)?,
            median: size(measured.len() / 2)?,
            largest: size(measured.len() - 1)?,
            distinct_sizes: distinct,
            colour: measured.len() - grey,
            grey,
        })
    }
}
