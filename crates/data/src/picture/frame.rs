//! An image of any size → the input of a network.

use aleator_run::recipe::{Filter, Framing, PixelValues};

use super::Picture;
use super::decode::{Limits, decode_region};
use super::resize::{Region, resize};

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

    /// The part of an image of this size that evaluation sees.
    pub fn region(&self, width: usize, height: usize) -> Region {
        match self.centre_crop {
            None => Region::whole(width, height),
            Some(share) => Region::centre(width, height, share),
        }
    }

    /// What evaluation sees of an image, `[height, width, channels]`.
    ///
    /// ```
    /// use aleator_data::picture::{Frame, Picture};
    /// use aleator_run::recipe::Framing;
    ///
    /// let frame = Frame::new(&Framing::PLAIN, 2, 2);
    /// let white = Picture { width: 9, height: 5, channels: 1, bytes: vec![255; 45] };
    /// assert_eq!(frame.cut(&white).bytes, [255; 4]);
    /// ```
    pub fn cut(&self, picture: &Picture) -> Picture {
        self.cut_region(picture, self.region(picture.width, picture.height))
    }

    /// A region of an image, brought to the frame's size. At its edges the filter also sees what
    /// lies just outside the region, as `resize(box=…)` of PIL does.
    ///
    /// # Panics
    /// When the region is not within the image.
    pub fn cut_region(&self, picture: &Picture, region: Region) -> Picture {
        resize(picture.view(), region, (self.width, self.height), self.filter)
    }

    /// What evaluation sees of an encoded image: [`decode`](super::decode) and [`Frame::cut`] at
    /// once, which is faster, and gives the same bytes.
    ///
    /// # Errors
    /// As [`decode`](super::decode).
    pub fn cut_encoded(&self, bytes: &[u8], limits: Limits) -> Result<Picture, String> {
        decode_region(bytes, limits, self, |width, height| self.region(width, height))
    }

    /// The numbers of an image of the frame's size, channel first. Where `out` has room for one
    /// channel or for three, grey is made colour, and colour grey.
    ///
    /// # Panics
    /// When the image has another size, or `out` is not of one or three channels.
    pub fn numbers(&self, picture: &Picture, out: &mut [f32]) {
        assert_eq!((picture.width, picture.height), (self.width, self.height), "the frame's size");
        let tables: [[f32; 256]; 3] = std::array::from_fn(|channel| table(self.values, channel));
        let plane = picture.width * picture.height;
        assert!(out.len() == plane || out.len() == 3 * plane, "one or three channels");
        match (picture.channels, out.len() / plane) {
            (1, _) => {
                for (out, table) in out.chunks_exact_mut(plane).zip(&tables) {
                    for (out, byte) in out.iter_mut().zip(&picture.bytes) {
                        *out = table[usize::from(*byte)];
                    }
                }
            }
            (_, 1) => {
                for (out, pixel) in out.iter_mut().zip(picture.bytes.as_chunks().0) {
                    *out = tables[0][usize::from(grey(*pixel))];
                }
            }
            _ => {
                let (red, rest) = out.split_at_mut(plane);
                let (green, blue) = rest.split_at_mut(plane);
                let planes = red.iter_mut().zip(green).zip(blue);
                for (((red, green), blue), pixel) in planes.zip(picture.bytes.as_chunks::<3>().0) {
                    *red = tables[0][usize::from(pixel[0])];
                    *green = tables[1][usize::from(pixel[1])];
                    *blue = tables[2][usize::from(pixel[2])];
                }
            }
        }
    }
}

/// How bright a colour is (ITU-R 601), as PIL's `convert("L")` has it.
pub(crate) fn grey([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue);
    ((sum + 0x8000) >> 16) as u8
}

/// What each byte of a channel becomes.
fn table(values: PixelValues, channel: usize) -> [f32; 256] {
    let (scale, shift) = affine(values, channel);
    std::array::from_fn(|byte| byte as f32 * scale + shift)
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
