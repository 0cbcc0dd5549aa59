//! A picture small enough to send, in the format that suits it.

use aleator_run::recipe::Framing;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder, ImageError};

use crate::picture::{Frame, Picture};

/// Up to this side an image is kept exactly: its pixels will be seen one by one.
const EXACT_SIDE: usize = 64;

/// Hardly distinguishable from the original, at a tenth of its size.
const JPEG_QUALITY: u8 = 85;

/// An encoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// Columns of pixels.
    pub width: usize,
    /// Rows of pixels.
    pub height: usize,
    /// `"image/png"` or `"image/jpeg"`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Thumbnail {
    /// The whole picture, shrunk to at most `side` pixels a side. Small pictures and those with
    /// few colours become PNG, photographs JPEG.
    ///
    /// ```
    /// use aleator_data::{Picture, Thumbnail};
    ///
    /// let wide = Picture { width: 300, height: 100, channels: 1, bytes: vec![9; 30_000] };
    /// let small = Thumbnail::of(&wide, 30);
    /// assert_eq!((small.width, small.height, small.media_type), (30, 10, "image/png"));
    /// ```
    ///
    /// # Panics
    /// When the picture has no pixels.
    pub fn of(picture: &Picture, side: usize) -> Self {
        let longest = picture.width.max(picture.height);
        if longest <= side.max(1) {
            return Self::encode(picture);
        }
        let shrunk = |length: usize| (length * side + longest / 2) / longest;
        let frame = Frame::new(
            &Framing::PLAIN,
            shrunk(picture.width).max(1),
            shrunk(picture.height).max(1),
        );
        Self::encode(&frame.cut(picture))
    }

    fn encode(picture: &Picture) -> Self {
        let exact = picture.width.max(picture.height) <= EXACT_SIDE;
        let compression = if exact { CompressionType::Best } else { CompressionType::Fast };
        let (mut png, mut jpeg) = (vec![], vec![]);
        let encoder = PngEncoder::new_with_quality(&mut png, compression, FilterType::Adaptive);
        write(picture, encoder);
        if !exact {
            write(picture, JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY));
        }
        let (media_type, bytes) = if exact || png.len() <= jpeg.len() {
            ("image/png", png)
        } else {
            ("image/jpeg", jpeg)
        };
        Self { width: picture.width, height: picture.height, media_type, bytes }
    }
}

fn write(picture: &Picture, encoder: impl ImageEncoder) {
    let colour =
        if picture.channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let (width, height) = (picture.width as u32, picture.height as u32);
    let written: Result<(), ImageError> =
        encoder.write_image(&picture.bytes, width, height, colour);
    written.expect("memory takes any picture whose bytes are as many as its size says");
}
