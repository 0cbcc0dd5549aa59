#[path = "../../tests/golden/check.rs"]
mod golden;

use std::collections::BTreeSet;
use std::io::Read;

use aleator_run::recipe::{Augment, Framing, RandAugment};

use super::rand_augment::{ALL, Operation};
use super::*;
use crate::picture::decode;

fn draws(key: u64) -> Draws {
    Draws { seed: 0, epoch: 0, key }
}

fn grey_of(picture: &Picture) -> Picture {
    let bytes = picture.bytes.iter().skip(1).step_by(3).copied().collect();
    Picture { channels: 1, bytes, ..*picture }
}

/// `tests/pictures/make.py` says what PIL made of the same image.
#[test]
fn operations_agree_with_pil() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures");
    let read = |name| std::fs::read(format!("{folder}/{name}")).unwrap();
    let source = decode(&read("colour.png"), Limits::DEFAULT).unwrap();
    let mut bytes = vec![];
    flate2::read::GzDecoder::new(&read("operations.gz")[..]).read_to_end(&mut bytes).unwrap();
    let (mut rest, mut seen) = (&bytes[..], BTreeSet::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let (expected, after) = rest[end + 1..].split_at(source.bytes.len());
        rest = after;
        let (name, operation) = ALL.into_iter().find(|(name, _)| *name == words[0]).unwrap();
        seen.insert(name);
        let found = operation(source.clone(), words[1].parse().unwrap());
        let other = found.bytes.iter().zip(expected).filter(|(a, b)| a.abs_diff(**b) > 1).count();
        // PIL turns in steps of 1/65536 pixel: another pixel may be the nearest.
        let allowed = if name == "Rotate" { 3 * 2 } else { 0 };
        assert!(other <= allowed, "{line}: {other} bytes differ");
    }
    assert_eq!(seen.len(), ALL.len() - 1, "all but the identity");
}

#[test]
fn operations_look_as_they_did() {
    let source = Frame::new(&Framing::PLAIN, 48, 48).cut(&golden::scene(96, 72));
    let both =
        |(_, operation): (&str, Operation)| [1.0, -1.0].map(|way| operation(source.clone(), way));
    let (forth, back): (Vec<Picture>, Vec<Picture>) =
        ALL.into_iter().map(both).map(|[forth, back]| (forth, back)).unzip();
    golden::assert_golden("operations", &golden::sheet(&[forth, back].concat(), ALL.len()));
}

#[test]
fn no_operation_changes_anything_at_strength_zero() {
    let source = scene();
    for (name, operation) in ALL {
        if !matches!(name, "AutoContrast" | "Equalize") {
            assert_eq!(operation(source.clone(), 0.0), source, "{name}");
        }
    }
}

#[test]
fn operations_take_grey_and_tiny_images() {
    let grey = grey_of(&scene());
    let sizes = [(1, 1), (1, 5), (5, 1), (2, 2)];
    let tiny = sizes.map(|(width, height)| {
        let bytes = (0..width * height).map(|at| at as u8 * 40).collect();
        Picture { width, height, channels: 1, bytes }
    });
    for (name, operation) in ALL {
        for strength in [-1.0, -0.3, 0.4, 1.0] {
            let found = operation(grey.clone(), strength);
            assert_eq!(found.bytes.len(), grey.bytes.len());
            if matches!(name, "Color" | "Identity") {
                assert_eq!(found, grey, "{name}");
            }
            for picture in &tiny {
                let found = operation(picture.clone(), strength);
                assert_eq!(found.bytes.len(), picture.bytes.len(), "{name}");
            }
        }
    }
}

#[test]
fn every_operation_is_drawn_equally_often() {
    const DRAWN: u64 = 28_000;
    let mut counts = [0.0; ALL.len()];
    for key in 0..DRAWN {
        counts[draws(key).below(ALL.len(), Step::Operation, 0)] += 1.0;
    }
    let expected = DRAWN as f64 / ALL.len() as f64;
    let chi: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
    // χ² with 13 degrees of freedom exceeds 45 once in 25,000.
    assert!(chi < 45.0, "{counts:?}");
}

#[test]
fn half_of_the_images_are_mirrored() {
    const IMAGES: u64 = 10_000;
    let augment = Augment { crop: Crop::None, flip: true, rand_augment: None, mixup: None };
    let augmenter = Augmenter::new(&augment, Frame::new(&Framing::PLAIN, 2, 1));
    let picture = Picture { width: 2, height: 1, channels: 1, bytes: vec![0, 255] };
    let flipped = (0..IMAGES).filter(|key| augmenter.apply(&picture, 0, 0, *key) != picture);
    // Five standard deviations.
    assert!((flipped.count() as f64 - 5_000.0).abs() < 250.0);
}

#[test]
fn every_part_of_the_name_changes_the_image() {
    let augment = Augment {
        crop: Crop::Inception { area: (0.08, 1.0), ratio: (0.75, 4.0 / 3.0) },
        flip: true,
        rand_augment: Some(RandAugment { operations: 2, magnitude: 5.0 }),
        mixup: Some(0.2),
    };
    let augmenter = Augmenter::new(&augment, Frame::new(&Framing::PLAIN, 20, 20));
    let picture = scene();
    let names = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)];
    let images = names.map(|(seed, epoch, key)| augmenter.apply(&picture, seed, epoch, key));
    let shares = names.map(|(seed, epoch, key)| augmenter.own_share(seed, epoch, key).unwrap());
    for other in 1..names.len() {
        assert_ne!(images[0], images[other], "{:?}", names[other]);
        assert_ne!(shares[0].to_bits(), shares[other].to_bits(), "{:?}", names[other]);
    }
    assert!(shares.iter().all(|share| (0.5..=1.0).contains(share)));
}

/// A gradient with a dark corner.
fn scene() -> Picture {
    let (width, height) = (31, 23);
    let pixel = |at: usize| {
        let (x, y) = (at % width, at / width);
        let corner = u8::from(x > 8 || y > 5);
        [corner * (8 * x) as u8, corner * (10 * y) as u8, corner * (255 - 5 * (x + y)) as u8]
    };
    Picture { width, height, channels: 3, bytes: (0..width * height).flat_map(pixel).collect() }
}
