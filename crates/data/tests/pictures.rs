//! Decoding and resizing, compared with what PIL gave for the same files (`pictures/make.py`).

use std::fs;
use std::io::Read;
use std::path::Path;

use aleator_data::Picture;
use aleator_data::picture::{Frame, Limits, Region, decode, size_of};
use aleator_run::recipe::{Filter, Framing, PixelValues};
use flate2::read::GzDecoder;

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    fs::read(folder.join(name)).unwrap()
}

/// The words of each line of a packed file with the pixels that follow it; `size` says where in
/// the line width and height are.
fn unpacked(name: &str, size: usize) -> Vec<(Vec<String>, Picture)> {
    let mut bytes = vec![];
    GzDecoder::new(&file(name)[..]).read_to_end(&mut bytes).unwrap();
    let (mut rest, mut entries) = (&bytes[..], vec![]);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let (width, height) = (words[size].parse().unwrap(), words[size + 1].parse().unwrap());
        let (bytes, after) = rest[end + 1..].split_at(3 * width * height);
        entries.push((words, Picture { width, height, channels: 3, bytes: bytes.to_vec() }));
        rest = after;
    }
    entries
}

fn largest_difference(a: &Picture, b: &Picture) -> u8 {
    assert_eq!((a.width, a.height, a.channels), (b.width, b.height, b.channels));
    a.bytes.iter().zip(&b.bytes).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

/// Without the last row and column, where there are others.
fn inner(picture: &Picture) -> Picture {
    let (width, height) = ((picture.width - 1).max(1), (picture.height - 1).max(1));
    let rows = picture.bytes.chunks(3 * picture.width).take(height);
    let bytes = rows.flat_map(|row| row[..3 * width].to_vec()).collect();
    Picture { width, height, bytes, ..*picture }
}

#[test]
fn every_kind_of_image_has_the_pixels_that_pil_gives() {
    let entries = unpacked("expected.gz", 1);
    assert_eq!(entries.len(), 51);
    let mut wrong = vec![];
    for (words, expected) in entries {
        let (name, tolerance): (_, u8) = (&words[0], words[3].parse().unwrap());
        let bytes = file(name);
        match decode(&bytes, Limits::DEFAULT) {
            Err(error) => wrong.push(format!("{name} {error}")),
            Ok(picture) => {
                assert_eq!(size_of(&bytes, Limits::DEFAULT), Ok((picture.width, picture.height)));
                // At the last row and column the decoder interpolates colours with what the file
                // holds beyond them, where PIL repeats the edge.
                let edge = largest_difference(&picture, &expected);
                let inner = largest_difference(&inner(&picture), &inner(&expected));
                if inner > tolerance || edge > 3 * tolerance {
                    wrong.push(format!("{name} differs by {inner}, at its edge by {edge}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn frame(width: usize, height: usize, filter: Filter) -> Frame {
    Frame { filter, ..Frame::new(&Framing::PLAIN, width, height) }
}

#[test]
fn resizing_agrees_with_pil() {
    let source = decode(&file("source.png"), Limits::DEFAULT).unwrap();
    let entries = unpacked("resized.gz", 5);
    assert_eq!(entries.len(), 12);
    for (words, expected) in entries {
        let filter = if words[0] == "bilinear" { Filter::Bilinear } else { Filter::Bicubic };
        let edges: Vec<f64> = words[1..5].iter().map(|word| word.parse().unwrap()).collect();
        let region = Region {
            left: edges[0],
            top: edges[1],
            width: edges[2] - edges[0],
            height: edges[3] - edges[1],
        };
        let frame = frame(expected.width, expected.height, filter);
        let found = frame.cut_region(&source, region);
        let difference = largest_difference(&found, &expected);
        assert!(difference <= 2, "{words:?} differs by {difference}");
    }
}

#[test]
fn a_centre_crop_is_a_square_in_the_middle() {
    let source = decode(&file("source.png"), Limits::DEFAULT).unwrap();
    let plain = frame(16, 16, Filter::Bicubic);
    let cropped = Frame { centre_crop: Some(0.875), ..plain };
    let side = 0.875 * 30.0;
    let region =
        Region { left: (40.0 - side) / 2.0, top: (30.0 - side) / 2.0, width: side, height: side };
    assert_eq!(cropped.cut(&source), plain.cut_region(&source, region));
    assert_ne!(cropped.cut(&source), plain.cut(&source));
}

#[test]
fn grey_is_resized_as_colour_is() {
    let colour = decode(&file("grey.png"), Limits::DEFAULT).unwrap();
    let bytes: Vec<u8> = colour.bytes.iter().step_by(3).copied().collect();
    let grey = Picture { channels: 1, bytes, ..colour };
    for filter in [Filter::Bilinear, Filter::Bicubic] {
        let frame = frame(11, 7, filter);
        let expected: Vec<u8> = frame.cut(&colour).bytes.iter().step_by(3).copied().collect();
        let found = frame.cut(&grey).bytes;
        assert!(found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1));
    }
}

/// What is not decoded is not needed.
#[test]
fn decoding_less_gives_the_same_pixels() {
    for name in ["tall.jpg", "baseline-420.jpg", "restarts.jpg", "progressive.jpg", "grey.jpg"] {
        let bytes = file(name);
        let picture = decode(&bytes, Limits::DEFAULT).unwrap();
        for share in [1.0, 0.6, 0.3, 0.05] {
            for filter in [Filter::Bilinear, Filter::Bicubic] {
                let frame = Frame { centre_crop: Some(share), ..frame(9, 9, filter) };
                let less = frame.cut_encoded(&bytes, Limits::DEFAULT).unwrap();
                assert_eq!(less, frame.cut(&picture), "{name}, {share} of the shorter side");
            }
        }
    }
}

#[test]
fn numbers_are_planes_of_scaled_bytes() {
    let picture =
        Picture { width: 2, height: 1, channels: 3, bytes: vec![0, 51, 255, 255, 0, 102] };
    let values = |values| {
        let frame = Frame { values, ..frame(2, 1, Filter::Bicubic) };
        let mut out = [0.0; 6];
        frame.numbers(&picture, &mut out);
        out
    };
    let expected = [
        (PixelValues::Unit, [0.0, 1.0, 0.2, 0.0, 1.0, 0.4]),
        (PixelValues::Symmetric, [-1.0, 1.0, -0.6, -1.0, 1.0, -0.2]),
        (PixelValues::Lite, [-0.992_187_5, 1.0, -0.593_75, -0.992_187_5, 1.0, -0.195_312_5]),
        (
            PixelValues::ImageNet,
            [-2.117_904, 2.248_908_3, -1.142_857_2, -2.035_714_4, 2.64, -0.026_666_6],
        ),
    ];
    for (kind, expected) in expected {
        for (found, expected) in values(kind).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{kind:?}: {found} is not {expected}");
        }
    }
}

#[test]
fn a_jpeg_that_is_cut_off_is_refused() {
    for name in ["baseline-420.jpg", "progressive.jpg", "grey.jpg", "restarts.jpg", "cmyk.jpg"] {
        let bytes = file(name);
        for length in (3..bytes.len() - 1).step_by(7) {
            let error = decode(&bytes[..length], Limits::DEFAULT).unwrap_err();
            assert!(error.contains("cut off"), "{name} of {length} bytes: {error}");
        }
    }
}

/// Headers that promise 60,000 × 60,000 pixels, as each format writes them.
#[test]
fn an_image_that_would_fill_memory_is_refused_by_its_header() {
    const SIDE: u32 = 60_000;
    let patch = |name: &str, at: usize, side: &[u8]| {
        let mut bytes = file(name);
        bytes[at..at + side.len()].copy_from_slice(side);
        bytes
    };
    let big = [SIDE.to_be_bytes(), SIDE.to_be_bytes()].concat();
    let small = (SIDE as u16).to_le_bytes();
    let jpeg = file("baseline-420.jpg");
    let frame_at = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    let sides = [(SIDE as u16).to_be_bytes(), (SIDE as u16).to_be_bytes()].concat();
    let mut png = patch("colour.png", 16, &big);
    let mut sum = flate2::Crc::new();
    sum.update(&png[12..29]);
    png[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    let tiff = file("colour.tiff");
    let tag = |tag: u16| {
        let entry = tag.to_le_bytes();
        tiff.windows(4).position(|bytes| bytes[..2] == entry && bytes[3] == 0).unwrap() + 8
    };
    let mut huge_tiff = tiff.clone();
    for at in [tag(256), tag(257)] {
        huge_tiff[at..at + 2].copy_from_slice(&small);
    }
    let canvas = [&(SIDE - 1).to_le_bytes()[..3], &(SIDE - 1).to_le_bytes()[..3]].concat();
    let webp = file("animated.webp");
    assert_eq!(&webp[12..16], b"VP8X");
    let bombs = [
        ("JPEG", patch("baseline-420.jpg", frame_at, &sides)),
        ("PNG", png),
        ("GIF", patch("palette.gif", 6, &[small, small].concat())),
        ("BMP", patch("colour.bmp", 18, &[SIDE.to_le_bytes(), SIDE.to_le_bytes()].concat())),
        ("TIFF", huge_tiff),
        ("WebP", patch("animated.webp", 24, &canvas)),
    ];
    for (kind, bytes) in bombs {
        for error in [
            decode(&bytes, Limits::DEFAULT).unwrap_err(),
            size_of(&bytes, Limits::DEFAULT).unwrap_err(),
        ] {
            // The strips of a TIFF contradict its size before that is looked at.
            let words = if kind == "TIFF" { "inconsistent sizes" } else { "60000 × 60000" };
            assert!(error.contains(words), "{kind}: {error}");
        }
    }
}

/// The bytes of a header may say many pixels where the file cannot hold them.
#[test]
fn a_small_jpeg_that_promises_many_pixels_takes_no_memory() {
    let mut bytes = file("baseline-420.jpg");
    let at = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    bytes[at..at + 4].copy_from_slice(&[0x20, 0, 0x20, 0]);
    let error = decode(&bytes, Limits::DEFAULT).unwrap_err();
    assert!(error.contains("cut off"), "{error}");
}

/// Stored as one byte a pixel, in memory as three.
#[test]
fn grey_images_count_as_the_colour_that_they_become() {
    let error = decode(b"P5 12000 12000 255\n", Limits::DEFAULT).unwrap_err();
    assert!(error.contains("12000 × 12000") && error.contains("at most 256 MiB"), "{error}");
    // Small enough, and cut short.
    let error = decode(b"P5 9000 9000 255\n", Limits::DEFAULT).unwrap_err();
    assert!(error.contains("cannot be decoded"), "{error}");
}

/// Resizing makes them wide before it makes them low.
#[test]
fn images_that_grow_on_their_way_to_another_size_are_refused() {
    let frame = Frame::new(&Framing::PLAIN, 224, 224);
    let error = frame.cut_encoded(b"P5 1 80000000 255\n", Limits::DEFAULT).unwrap_err();
    assert!(error.contains("on the way to 224 × 224"), "{error}");
}
