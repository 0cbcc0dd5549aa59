//! A part of an image, brought to a size.

use std::cell::RefCell;

use aleator_run::recipe::Filter;
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use super::{Picture, View};

/// A rectangle of an image, in pixels; its edges may lie within pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Distance from the left edge of the image.
    pub left: f64,
    /// Distance from the upper edge of the image.
    pub top: f64,
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

impl Region {
    /// All of an image.
    pub fn whole(width: usize, height: usize) -> Self {
        Self { left: 0.0, top: 0.0, width: width as f64, height: height as f64 }
    }

    /// The square in the middle whose side is this share of the shorter side.
    ///
    /// ```
    /// use aleator_data::picture::Region;
    ///
    /// let square = Region::centre(100, 40, 0.5);
    /// assert_eq!(square, Region { left: 40.0, top: 10.0, width: 20.0, height: 20.0 });
    /// ```
    pub fn centre(width: usize, height: usize, share: f64) -> Self {
        let side = share * width.min(height) as f64;
        let (left, top) = ((width as f64 - side) / 2.0, (height as f64 - side) / 2.0);
        Self { left, top, width: side, height: side }
    }

    /// How many rows of an image are read when the region is resized to `height` rows.
    pub(super) fn last_row(&self, height: usize, filter: Filter, rows: usize) -> usize {
        let reach = match filter {
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
        };
        let last = self.top + self.height + reach * (self.height / height as f64).max(1.0);
        (last.ceil() as usize + 1).min(rows)
    }
}

/// Brings a region to this width and height by convolution. Where it shrinks, the filter is as
/// much wider, so that nothing aliases; at its edges it also sees what lies just outside the
/// region, as `resize(box=…)` of PIL does.
pub(super) fn resize(
    view: View<'_>,
    region: Region,
    (width, height): (usize, usize),
    filter: Filter,
) -> Picture {
    thread_local!(static RESIZER: RefCell<Resizer> = RefCell::new(Resizer::new()));
    let filter = match filter {
        Filter::Bilinear => FilterType::Bilinear,
        Filter::Bicubic => FilterType::CatmullRom,
    };
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(filter))
        .use_alpha(false)
        .crop(region.left, region.top, region.width, region.height);
    let mut bytes = vec![0; width * height * view.channels];
    let size = (width as u32, height as u32);
    RESIZER.with_borrow_mut(|resizer| {
        if view.channels == 1 {
            convolve::<U8>(resizer, view, size, &options, &mut bytes);
        } else {
            convolve::<U8x3>(resizer, view, size, &options, &mut bytes);
        }
    });
    Picture { width, height, channels: view.channels, bytes }
}

/// Bytes of the image that is as wide as the result and still as high as the source.
pub(crate) fn between(source_height: usize, width: usize, channels: usize) -> u64 {
    (source_height as u64).saturating_mul(width as u64).saturating_mul(channels as u64)
}

/// For one type of pixels: the untyped form of the crate compiles its code for all thirty.
fn convolve<P: PixelTrait>(
    resizer: &mut Resizer,
    view: View<'_>,
    (width, height): (u32, u32),
    options: &ResizeOptions,
    out: &mut [u8],
) {
    const SIZES: &str = "a picture has the bytes that its size says";
    let from = TypedImageRef::<P>::from_buffer(view.width as u32, view.height as u32, view.bytes);
    let mut to = TypedImage::<P>::from_buffer(width, height, out).expect(SIZES);
    let resized = resizer.resize_typed(&from.expect(SIZES), &mut to, options);
    resized.unwrap_or_else(|error| {
        panic!("{options:?} of {} × {}: {error}", view.width, view.height);
    });
}
