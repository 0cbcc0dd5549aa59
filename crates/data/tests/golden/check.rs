//! Sheets of small images, compared with those that somebody has looked at.

use std::path::Path;

use image::{ExtendedColorType, ImageEncoder};

// Tests beside the code include this file, too.
use super::{Limits, Picture, decode};

/// A scene without any symmetry: a gradient, an F, a disc, stripes in two directions.
pub fn scene(width: usize, height: usize) -> Picture {
    let mut bytes = vec![];
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f64 / width as f64, y as f64 / height as f64);
            let inside = |left: f64, right: f64, top: f64, bottom: f64| {
                (left..right).contains(&u) && (top..bottom).contains(&v)
            };
            let letter = inside(0.15, 0.22, 0.2, 0.8)
                || inside(0.15, 0.42, 0.2, 0.3)
                || inside(0.15, 0.35, 0.45, 0.55);
            let disc = (u - 0.72).powi(2) + (v - 0.3).powi(2) < 0.025;
            let lines = inside(0.5, 0.95, 0.65, 0.9);
            bytes.extend(match () {
                () if letter => [20, 20, 60],
                () if disc => [230, 60, 40],
                () if lines && x % 6 < 3 => [40, 160, 60],
                () if lines => [240, 230, 120],
                () => [90.0 + 120.0 * u, 140.0 + 80.0 * v, 220.0 - 90.0 * u].map(|c| c as u8),
            });
        }
    }
    Picture { width, height, channels: 3, bytes }
}

/// Images of one size in rows of `columns`, white between them.
pub fn sheet(pictures: &[Picture], columns: usize) -> Picture {
    const GAP: usize = 2;
    let (width, height) = (pictures[0].width, pictures[0].height);
    let rows = pictures.len().div_ceil(columns);
    let (all_width, all_height) = (columns * (width + GAP) + GAP, rows * (height + GAP) + GAP);
    let mut bytes = vec![255; all_width * all_height * 3];
    for (index, picture) in pictures.iter().enumerate() {
        let left = GAP + index % columns * (width + GAP);
        let top = GAP + index / columns * (height + GAP);
        for y in 0..height {
            for x in 0..width {
                let from = (y * width + x) * picture.channels;
                let to = ((top + y) * all_width + left + x) * 3;
                for channel in 0..3 {
                    let channel_from = if picture.channels == 1 { 0 } else { channel };
                    bytes[to + channel] = picture.bytes[from + channel_from];
                }
            }
        }
    }
    Picture { width: all_width, height: all_height, channels: 3, bytes }
}

/// The sheet has the pixels of `tests/golden/NAME.png`. `ALEATOR_BLESS=1` writes that file: look
/// at it before it is committed.
#[track_caller]
pub fn assert_golden(name: &str, found: &Picture) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.png"));
    if std::env::var_os("ALEATOR_BLESS").is_some() {
        let file = std::fs::File::create(&path).unwrap();
        let (width, height) = (found.width as u32, found.height as u32);
        image::codecs::png::PngEncoder::new(file)
            .write_image(&found.bytes, width, height, ExtendedColorType::Rgb8)
            .unwrap();
    }
    let expected = decode(&std::fs::read(&path).unwrap(), Limits::DEFAULT).unwrap();
    assert_eq!((found.width, found.height), (expected.width, expected.height), "{name}");
    let other = found.bytes.iter().zip(&expected.bytes).filter(|(a, b)| a != b).count();
    assert_eq!(other, 0, "bytes of {name} that are not as in {}", path.display());
}
