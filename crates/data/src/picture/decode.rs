//! Bytes of a file → an image.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader};

use super::Picture;

/// What one image may take at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes when it is decoded.
    pub decoded_bytes: u64,
}

impl Limits {
    /// 256 MiB decoded: 89 million pixels in colour.
    pub const DEFAULT: Self = Self { decoded_bytes: 256 << 20 };
}

/// Decodes an image to colour, turned as cameras note that they were held.
///
/// # Errors
/// A phrase that says what is wrong, to follow the file's name.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Picture, String> {
    let (decoder, orientation) = decoder(bytes, limits)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| damaged(&error))?;
    image.apply_orientation(orientation);
    let image = image.into_rgb8();
    let (width, height) = (image.width() as usize, image.height() as usize);
    Ok(Picture { width, height, channels: 3, bytes: image.into_raw() })
}

/// Width and height of an image as it is seen, by its header.
///
/// # Errors
/// As [`decode`].
pub fn size_of(bytes: &[u8], limits: Limits) -> Result<(usize, usize), String> {
    let (decoder, orientation) = decoder(bytes, limits)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    Ok(match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
        _ => (width, height),
    })
}

/// A decoder that has read the header, and would stay within the limits.
fn decoder(bytes: &[u8], limits: Limits) -> Result<(impl ImageDecoder, Orientation), String> {
    let reader = ImageReader::new(Cursor::new(bytes));
    let mut reader = reader.with_guessed_format().map_err(|error| error.to_string())?;
    let mut most = image::Limits::default();
    most.max_alloc = Some(limits.decoded_bytes);
    reader.limits(most);
    let mut decoder = reader.into_decoder().map_err(|error| damaged(&error))?;
    let (width, height) = decoder.dimensions();
    if decoder.total_bytes() > limits.decoded_bytes || width == 0 || height == 0 {
        return Err(format!(
            "is {width} × {height} pixels; an image has at least one and decodes to at most \
             {} MiB: shrink or remove it",
            limits.decoded_bytes >> 20
        ));
    }
    let orientation = decoder.orientation().map_err(|error| damaged(&error))?;
    Ok((decoder, orientation))
}

fn damaged(error: &ImageError) -> String {
    format!("cannot be decoded as an image ({error}); replace or remove it")
}
