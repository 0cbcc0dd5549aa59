//! Pictures of examples, which the caller finds.

use std::path::Path;

use aleator_run::Split;

/// Which example's picture is wanted: by its id, never by a path that a table of the directory
/// names, which could be that of any picture of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureKey<'a> {
    /// The run or audit that the example belongs to.
    pub dir: &'a Path,
    /// Its split; `None` for an example of the training source in any split.
    pub split: Option<Split>,
    /// Its id.
    pub id: &'a str,
}

/// A small image in a format that browsers read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedPicture {
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
}

/// The picture of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Its image.
    Encoded(EncodedPicture),
    /// Its image no longer exists or cannot be read.
    Vanished,
    /// It has no image.
    None,
}

/// Finds the picture of an example.
pub type PictureSource<'a> = dyn FnMut(&PictureKey<'_>) -> Picture + 'a;
