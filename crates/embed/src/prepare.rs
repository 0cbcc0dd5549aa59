//! Stored images → the input of a network.

use aleator_data::picture::Frame;
use aleator_data::{DataError, InputShape, Inputs, Picture};
use aleator_run::recipe::{Filter, Framing, PixelValues};

use crate::signature::{InputSpec, Layout};

/// The default size of images, if the network does not fix one.
pub const DEFAULT_SIDE: usize = 224;

/// Most pixels on a side; anything larger is probably a mistake.
const LARGEST_SIDE: usize = 1 << 14;

/// How an image is prepared for a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preprocessing {
    frame: Frame,
    spec: InputSpec,
    /// The inputs are framed already, and are read as they are.
    framed: bool,
}

/// Where the size of the images comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeFrom {
    /// The caller.
    Caller,
    /// The network, which accepts no other.
    Network,
    /// The default, [`DEFAULT_SIDE`].
    Usual,
}

impl Preprocessing {
    /// The preparation for a network. `framing.size` is the side in pixels; by default the network's
    /// own, otherwise [`DEFAULT_SIDE`].
    ///
    /// ```
    /// use aleator_embed::{InputSpec, Preprocessing, SizeFrom};
    /// use aleator_run::recipe::Framing;
    ///
    /// let (preprocessing, from) = Preprocessing::new(&Framing::PLAIN, InputSpec::OPEN)?;
    /// assert_eq!(preprocessing.size(), (224, 224));
    /// assert_eq!(from, SizeFrom::Usual);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// When the size is not the one that the network accepts.
    pub fn new(framing: &Framing, spec: InputSpec) -> Result<(Self, SizeFrom), String> {
        let (side, from) = match (framing.size, spec.height.or(spec.width)) {
            (Some(side), _) => (side, SizeFrom::Caller),
            (None, Some(side)) => (side, SizeFrom::Network),
            (None, None) => (DEFAULT_SIDE, SizeFrom::Usual),
        };
        if !(1..=LARGEST_SIDE).contains(&side) {
            return Err(format!("images of {side} pixels; a side has 1 to {LARGEST_SIDE}"));
        }
        let (height, width) = (spec.height.unwrap_or(side), spec.width.unwrap_or(side));
        if from == SizeFrom::Caller && (height, width) != (side, side) {
            return Err(format!(
                "takes images of {width} × {height} pixels only, not {side} × {side}; leave out \
                 --size"
            ));
        }
        Ok((Self { frame: Frame::new(framing, width, height), spec, framed: false }, from))
    }

    /// Nothing: the network takes images as inputs of this shape already are, which were opened
    /// with `framing`. `None` for features.
    pub fn as_framed(framing: &Framing, shape: InputShape) -> Option<Self> {
        let InputShape::Image { channels, height, width } = shape else { return None };
        let spec = InputSpec {
            layout: Layout::ChannelsFirst,
            channels,
            height: Some(height),
            width: Some(width),
            batch: None,
        };
        Some(Self { frame: Frame::new(framing, width, height), spec, framed: true })
    }

    /// Width and height of the images that the network sees.
    pub fn size(&self) -> (usize, usize) {
        (self.frame.width, self.frame.height)
    }

    /// Numbers of one image.
    pub fn numbers(&self) -> usize {
        self.spec.channels * self.frame.width * self.frame.height
    }

    /// A description for messages and files.
    pub fn describe(&self) -> String {
        let Frame { width, height, centre_crop, filter, values } = self.frame;
        let values = match values {
            PixelValues::Symmetric => "symmetric",
            PixelValues::Unit => "unit",
            PixelValues::ImageNet => "imagenet",
            PixelValues::Lite => "lite",
        };
        let crop = match centre_crop {
            None => "whole image".to_string(),
            Some(share) => format!("central {share} of the shorter side"),
        };
        let filter = match filter {
            Filter::Bilinear => "bilinear",
            Filter::Bicubic => "bicubic",
        };
        let grey = if self.spec.channels == 1 { ", grey" } else { "" };
        format!("{values}, {crop}, {filter} to {width} × {height} pixels{grey}")
    }

    /// The numbers of example `row`.
    ///
    /// # Errors
    /// When it cannot be read or decoded.
    pub fn read(&self, inputs: &Inputs, row: usize, out: &mut [f32]) -> Result<(), DataError> {
        if self.framed {
            return inputs.read(row, out);
        }
        let seen = self.frame.cut(&in_colour(inputs.picture(row)?));
        if self.spec.layout == Layout::ChannelsFirst || self.spec.channels == 1 {
            self.frame.numbers(&seen, out);
            return Ok(());
        }
        let mut planes = vec![0.0; out.len()];
        self.frame.numbers(&seen, &mut planes);
        let plane = planes.len() / 3;
        for (at, pixel) in out.as_chunks_mut().0.iter_mut().enumerate() {
            *pixel = [planes[at], planes[plane + at], planes[2 * plane + at]];
        }
        Ok(())
    }
}

/// A grey image has the same value in all three channels.
fn in_colour(picture: Picture) -> Picture {
    if picture.channels == 3 {
        return picture;
    }
    let bytes = picture.bytes.iter().flat_map(|&byte| [byte; 3]).collect();
    Picture { channels: 3, bytes, ..picture }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_survives_the_way_to_colour_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let grey = Picture { width: 16, height: 16, channels: 1, bytes };
        let (mut expected, mut found) = ([0.0; 256], [0.0; 256]);
        let frame = Frame::new(&Framing::PLAIN, 16, 16);
        frame.numbers(&grey, &mut expected);
        frame.numbers(&in_colour(grey), &mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn the_network_decides_the_size_unless_someone_else_does() {
        let spec = InputSpec { height: Some(96), width: Some(64), ..InputSpec::OPEN };
        let (own, from) = Preprocessing::new(&Framing::PLAIN, spec).unwrap();
        assert_eq!((own.size(), from), ((64, 96), SizeFrom::Network));
        let error = Preprocessing::new(&Framing::sized(128), spec).unwrap_err();
        assert!(error.contains("64 × 96 pixels only"), "{error}");
        let (given, from) = Preprocessing::new(&Framing::sized(128), InputSpec::OPEN).unwrap();
        assert_eq!((given.size(), from), ((128, 128), SizeFrom::Caller));
        assert!(Preprocessing::new(&Framing::sized(0), InputSpec::OPEN).is_err());
    }
}
