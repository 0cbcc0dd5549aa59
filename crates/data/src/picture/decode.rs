//! Bytes of a file → an image.

use std::cell::RefCell;
use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, RgbImage};

use super::frame::Frame;
use super::memory::{self, Taken};
use super::resize::{Region, between, resize};
use super::{Picture, View, jpeg};

/// The most memory that one image may take.
///
/// What decoding takes beyond the decoded image (the coefficients of a progressive JPEG, the stored
/// form of grey or of 16 bits, a copy that is turned, rows on their way to another size) is at most
/// a few times as much. All threads together take at most 1 GiB for large images: where there is
/// no room, a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes when it is decoded to colour, or as it is stored if that is more.
    pub decoded_bytes: u64,
}

impl Limits {
    /// 256 MiB decoded: 89 million pixels in colour.
    pub const DEFAULT: Self = Self { decoded_bytes: 256 << 20 };

    /// Whether an image of this size may be decoded; checked before memory is allocated.
    fn check(self, width: u64, height: u64, bytes: u64) -> Result<(), String> {
        if (1..=self.decoded_bytes).contains(&bytes) {
            return Ok(());
        }
        Err(format!(
            "is {width} × {height} pixels; an image has at least one and decodes to at most {} \
             MiB: shrink or remove it",
            self.decoded_bytes >> 20
        ))
    }

    /// Bytes between the two steps of resizing an image to this frame, if it may be resized.
    fn check_resizing(self, width: usize, height: usize, frame: &Frame) -> Result<u64, String> {
        let bytes = between(height, frame.width, 3);
        if bytes <= self.decoded_bytes {
            return Ok(bytes);
        }
        Err(format!(
            "is {width} × {height} pixels, which take more than {} MiB on the way to {} × {}: crop \
             or remove it",
            self.decoded_bytes >> 20,
            frame.width,
            frame.height
        ))
    }
}

/// Decodes an image to colour, turned as its EXIF orientation says.
///
/// Reads JPEG, PNG, WebP, GIF (its first frame), BMP, TIFF and PNM; the content decides, not a
/// name. Transparency is dropped, as PIL's `convert("RGB")` does: what lies below transparent
/// pixels shows. Of 16 bits the upper 8 are kept. CMYK is taken as Adobe writes it, inverted.
///
/// ```
/// use aleator_data::picture::{Limits, decode};
///
/// let image = decode(b"P6 2 1 255\nrgbRGB", Limits::DEFAULT)?;
/// assert_eq!((image.width, image.height), (2, 1));
/// assert_eq!(image.bytes, b"rgbRGB");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// A phrase that follows the file's name in a message: not an image, damaged, cut off,
/// or larger than `limits`.
pub fn decode(bytes: &[u8], limits: Limits) -> Result<Picture, String> {
    let (_taken, picture) = decode_for(bytes, limits, |_, _| Ok(0))?;
    Ok(picture)
}

/// Decodes an image; `more` says what the caller takes beside it, for an image of this width and
/// height.
fn decode_for(
    bytes: &[u8],
    limits: Limits,
    more: impl FnOnce(usize, usize) -> Result<u64, String>,
) -> Result<(Taken, Picture), String> {
    if jpeg::is_jpeg(bytes) {
        let header = jpeg_header(bytes, limits)?;
        let (width, height) = seen(header.width, header.height, header.orientation);
        let taken = memory::take(header.memory(header.height) + more(width, height)?);
        let mut pixels = vec![];
        header.decode(bytes, header.height, &mut pixels)?;
        return Ok((taken, turned(header.width, header.height, pixels, header.orientation)));
    }
    let (decoder, orientation) = decoder(bytes, limits)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    // The stored form, which some decoders hold twice, and two in colour while it is turned.
    let colour = 3 * width as u64 * height as u64;
    let copies = if orientation == Orientation::NoTransforms { 1 } else { 2 };
    let (seen_width, seen_height) = seen(width, height, orientation);
    let more = more(seen_width, seen_height)?;
    let taken = memory::take((2 * decoder.total_bytes()).max(colour) + copies * colour + more);
    let image = DynamicImage::from_decoder(decoder).map_err(|error| damaged(&error))?;
    Ok((taken, turned(width, height, colour_bytes(image), orientation)))
}

/// Width and height of an image as it is seen, by its header.
///
/// # Errors
/// As [`decode`].
pub fn size_of(bytes: &[u8], limits: Limits) -> Result<(usize, usize), String> {
    if jpeg::is_jpeg(bytes) {
        let header = jpeg_header(bytes, limits)?;
        return Ok(seen(header.width, header.height, header.orientation));
    }
    let (decoder, orientation) = decoder(bytes, limits)?;
    let (width, height) = decoder.dimensions();
    Ok(seen(width as usize, height as usize, orientation))
}

/// Decodes an image and resizes the region that `choose` returns to the frame's size; `choose` gets
/// width and height. Rows below the region are not decoded where the format allows it.
pub(crate) fn decode_region(
    bytes: &[u8],
    limits: Limits,
    frame: &Frame,
    choose: impl FnOnce(usize, usize) -> Region,
) -> Result<Picture, String> {
    let size = (frame.width, frame.height);
    if jpeg::is_jpeg(bytes) {
        let header = jpeg_header(bytes, limits)?;
        if header.orientation == Orientation::NoTransforms {
            let region = choose(header.width, header.height);
            let rows = region.last_row(frame.height, frame.filter, header.height);
            let resizing = limits.check_resizing(header.width, rows, frame)?;
            let _taken = memory::take(header.memory(rows) + resizing);
            return with_memory(|pixels| {
                let height = header.decode(bytes, rows, pixels)?;
                let view = View { width: header.width, height, channels: 3, bytes: pixels };
                Ok(resize(view, region, size, frame.filter))
            });
        }
    }
    // Dropped after the picture, whose memory it counts.
    let (_taken, picture) =
        decode_for(bytes, limits, |width, height| limits.check_resizing(width, height, frame))?;
    let region = choose(picture.width, picture.height);
    Ok(resize(picture.view(), region, size, frame.filter))
}

/// Memory that a thread keeps between images, unless an unusual one made it large.
fn with_memory<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    const KEPT: usize = 32 << 20;
    thread_local!(static MEMORY: RefCell<Vec<u8>> = const { RefCell::new(vec![]) });
    MEMORY.with_borrow_mut(|memory| {
        let result = work(memory);
        if memory.capacity() > KEPT {
            *memory = vec![];
        }
        result
    })
}

fn jpeg_header(bytes: &[u8], limits: Limits) -> Result<jpeg::Header, String> {
    let header = jpeg::Header::read(bytes)?;
    let (width, height) = (header.width as u64, header.height as u64);
    limits.check(width, height, width * height * 3)?;
    Ok(header)
}

/// Red, green and blue of every pixel.
fn colour_bytes(image: DynamicImage) -> Vec<u8> {
    let upper = |value: u16| (value >> 8) as u8;
    match image {
        DynamicImage::ImageLuma16(_) | DynamicImage::ImageLumaA16(_) => {
            image.into_luma16().into_raw().into_iter().flat_map(|grey| [upper(grey); 3]).collect()
        }
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgba16(_) => {
            image.into_rgb16().into_raw().into_iter().map(upper).collect()
        }
        image => image.into_rgb8().into_raw(),
    }
}

/// Width and height after turning.
fn seen(width: usize, height: usize, orientation: Orientation) -> (usize, usize) {
    match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

fn turned(width: usize, height: usize, bytes: Vec<u8>, orientation: Orientation) -> Picture {
    if orientation == Orientation::NoTransforms {
        return Picture { width, height, channels: 3, bytes };
    }
    let image = RgbImage::from_raw(width as u32, height as u32, bytes)
        .expect("a colour image has three bytes a pixel");
    let mut image = DynamicImage::ImageRgb8(image);
    image.apply_orientation(orientation);
    let (width, height) = (image.width() as usize, image.height() as usize);
    Picture { width, height, channels: 3, bytes: image.into_rgb8().into_raw() }
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
    let (width, height) = (u64::from(width), u64::from(height));
    // Grey becomes colour.
    let bytes = width.saturating_mul(height).saturating_mul(3);
    limits.check(width, height, bytes.max(decoder.total_bytes()))?;
    let orientation = decoder.orientation().map_err(|error| damaged(&error))?;
    Ok((decoder, orientation))
}

fn damaged(error: &ImageError) -> String {
    format!("cannot be decoded as an image ({error}); replace or remove it")
}
