//! One image in memory: decoded, oriented, brought to the size that a network takes.

mod decode;
mod frame;

pub use decode::{Limits, decode, size_of};
pub use frame::Frame;
pub(crate) use frame::affine;

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
