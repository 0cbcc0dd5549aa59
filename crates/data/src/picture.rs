//! One image in memory: decoded, oriented, resized to what a network takes.

mod decode;
mod frame;
mod jpeg;
mod memory;
mod resize;

pub(crate) use decode::decode_region;
pub use decode::{Limits, decode, size_of};
pub use frame::Frame;
pub(crate) use frame::{affine, grey};
pub use resize::Region;
pub(crate) use resize::between;

/// An image as it is seen, one byte a pixel and channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Columns of pixels.
    pub width: usize,
    /// Rows of pixels.
    pub height: usize,
    /// 3 for colour, 1 for grey.
    pub channels: usize,
    /// Row by row, the channels of a pixel together: `[height, width, channels]`.
    pub bytes: Vec<u8>,
}

impl Picture {
    fn view(&self) -> View<'_> {
        let Self { width, height, channels, ref bytes } = *self;
        View { width, height, channels, bytes }
    }
}

/// A picture in borrowed memory.
#[derive(Clone, Copy)]
struct View<'a> {
    width: usize,
    height: usize,
    channels: usize,
    bytes: &'a [u8],
}
