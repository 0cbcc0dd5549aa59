//! Pictures of examples, which someone else finds.

use std::path::Path;

use aleator_run::Split;

/// Which example's picture is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureKey<'a> {
    /// The run or audit that speaks of it.
    pub dir: &'a Path,
    /// The split that it is in; `None` for an example of the training source, in whichever split.
    pub split: Option<Split>,
    /// Its id.
    pub id: &'a str,
    /// The file of its image, where an audit knows it.
    pub path: Option<&'a Path>,
}

/// A small image as a browser reads it.
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

/// What there is to see of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Its image.
    Encoded(EncodedPicture),
    /// It has an image, which is no longer there or cannot be read.
    Vanished,
    /// It has no image.
    None,
}

/// Whoever finds pictures.
pub type PictureSource<'a> = dyn FnMut(&PictureKey<'_>) -> Picture + 'a;
