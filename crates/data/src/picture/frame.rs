//! An image of any size → the input of a network.

use aleator_run::recipe::{Filter, Framing, PixelValues};
use image::imageops::{self, FilterType};
use image::{ImageBuffer, RgbImage};

use super::Picture;

/// How an image becomes an input: a recipe's framing, with the size known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Columns of pixels that the network sees.
    pub width: usize,
    /// Rows of pixels that the network sees.
    pub height: usize,
    /// The side of the central square as a share of the shorter side; the whole image without it.
    pub centre_crop: Option<f64>,
    /// How pixels are made from those of another size.
    pub filter: Filter,
    /// What the bytes become.
    pub values: PixelValues,
}

impl Frame {
    /// The frame of a recipe, for images that are brought to `width` × `height`.
    pub fn new(framing: &Framing, width: usize, height: usize) -> Self {
        let Framing { centre_crop, filter, values, .. } = *framing;
        Self { width, height, centre_crop, filter, values }
    }

    /// What evaluation sees of an image, `[height, width, channels]`.
    pub fn cut(&self, picture: &Picture) -> Picture {
        let (width, height) = (self.width as u32, self.height as u32);
        if (picture.width, picture.height) == (self.width, self.height)
            && self.centre_crop.is_none()
        {
            return picture.clone();
        }
        let image: RgbImage = ImageBuffer::from_raw(
            picture.width as u32,
            picture.height as u32,
            picture.bytes.clone(),
        )
        .expect("a picture has the bytes that its size says");
        let filter = match self.filter {
            Filter::Bilinear => FilterType::Triangle,
            Filter::Bicubic => FilterType::CatmullRom,
        };
        let image = match self.centre_crop {
            None => imageops::resize(&image, width, height, filter),
            Some(share) => {
                let side =
                    (share * image.width().min(image.height()) as f64).round().max(1.0) as u32;
                let (x, y) = ((image.width() - side) / 2, (image.height() - side) / 2);
                let square = imageops::crop_imm(&image, x, y, side, side).to_image();
                imageops::resize(&square, width, height, filter)
            }
        };
        Picture { width: self.width, height: self.height, channels: 3, bytes: image.into_raw() }
    }

    /// The numbers of an image of the frame's size, channel first.
    ///
    /// # Panics
    /// When the image has another size, or `out` another length.
    pub fn numbers(&self, picture: &Picture, out: &mut [f32]) {
        assert_eq!((picture.width, picture.height), (self.width, self.height), "the frame's size");
        assert_eq!(out.len(), picture.bytes.len(), "one number for each byte");
        let plane = picture.width * picture.height;
        for channel in 0..picture.channels {
            let (scale, shift) = affine(self.values, channel);
            let bytes = picture.bytes[channel..].iter().step_by(picture.channels);
            for (out, byte) in out[channel * plane..][..plane].iter_mut().zip(bytes) {
                *out = f32::from(*byte) * scale + shift;
            }
        }
    }
}

/// A byte of this channel becomes byte · scale + shift.
pub(crate) fn affine(values: PixelValues, channel: usize) -> (f32, f32) {
    const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
    const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
    match values {
        PixelValues::Symmetric => (1.0 / 127.5, -1.0),
        PixelValues::Unit => (1.0 / 255.0, 0.0),
        PixelValues::ImageNet => {
            (1.0 / (255.0 * DEVIATION[channel]), -MEAN[channel] / DEVIATION[channel])
        }
        PixelValues::Lite => (1.0 / 128.0, -127.0 / 128.0),
    }
}
