//! Images turned, sheared and moved; what comes from outside is grey.

use super::GREY;
use crate::picture::Picture;

/// The image whose pixel at (x, y) is the one of `picture` at `source(x, y)`, the nearest to it.
/// Pixels are squares of side 1; coordinates are those of their middles.
pub(super) fn map(picture: &Picture, source: impl Fn(f64, f64) -> (f64, f64)) -> Picture {
    let Picture { width, height, channels, ref bytes } = *picture;
    let mut out = vec![GREY; bytes.len()];
    for (at, pixel) in out.chunks_exact_mut(channels).enumerate() {
        let (x, y) = source((at % width) as f64 + 0.5, (at / width) as f64 + 0.5);
        if x >= 0.0 && y >= 0.0 && x < width as f64 && y < height as f64 {
            let from = (y as usize * width + x as usize) * channels;
            pixel.copy_from_slice(&bytes[from..from + channels]);
        }
    }
    Picture { bytes: out, ..*picture }
}

/// Turned about its middle by this angle, counter-clockwise.
pub(super) fn rotate(picture: &Picture, angle: f64) -> Picture {
    let (sin, cos) = angle.sin_cos();
    let (middle_x, middle_y) = (picture.width as f64 / 2.0, picture.height as f64 / 2.0);
    map(picture, |x, y| {
        let (x, y) = (x - middle_x, y - middle_y);
        (cos * x - sin * y + middle_x, sin * x + cos * y + middle_y)
    })
}
