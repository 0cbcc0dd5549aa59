//! Which part of an image is seen.

use super::{Draws, GREY, Step};
use crate::picture::{Picture, Region};

/// How often a rectangle is drawn until one fits into the image.
const ATTEMPTS: usize = 10;

/// A rectangle whose share of the area is uniform and whose logarithm of width : height is uniform,
/// anywhere in the image (Szegedy et al. 2015). If none of ten fits, the largest in the middle
/// whose ratio is allowed, as `RandomResizedCrop` of torchvision has it (deviation D25).
pub(super) fn inception(
    width: usize,
    height: usize,
    area: (f64, f64),
    ratio: (f64, f64),
    draws: Draws,
) -> Region {
    let between = |(low, high): (f64, f64), unit: f64| low + (high - low) * unit;
    let logs = (ratio.0.ln(), ratio.1.ln());
    for attempt in 0..ATTEMPTS {
        let pixels = (width * height) as f64 * between(area, draws.unit(Step::Area, attempt));
        let ratio = between(logs, draws.unit(Step::Ratio, attempt)).exp();
        let (w, h) = ((pixels * ratio).sqrt().round(), (pixels / ratio).sqrt().round());
        if (1.0..=width as f64).contains(&w) && (1.0..=height as f64).contains(&h) {
            let left = draws.below(width - w as usize + 1, Step::Left, attempt) as f64;
            let top = draws.below(height - h as usize + 1, Step::Top, attempt) as f64;
            return Region { left, top, width: w, height: h };
        }
    }
    middle(width as f64, height as f64, ratio)
}

/// The largest rectangle in the middle whose ratio is within the bounds.
fn middle(width: f64, height: f64, ratio: (f64, f64)) -> Region {
    let own = width / height;
    let w = if own > ratio.1 { (height * ratio.1).round().clamp(1.0, width) } else { width };
    let h = if own < ratio.0 { (width / ratio.0).round().clamp(1.0, height) } else { height };
    let (left, top) = (((width - w) / 2.0).floor(), ((height - h) / 2.0).floor());
    Region { left, top, width: w, height: h }
}

/// The image with a grey border, cut to its size at a random place.
pub(super) fn padded(picture: &Picture, padding: usize, draws: Draws) -> Picture {
    let Picture { width, height, channels, ref bytes } = *picture;
    let mut out = vec![GREY; bytes.len()];
    // Where the image's first pixel goes, counted from −padding.
    let left = draws.below(2 * padding + 1, Step::Left, 0);
    let top = draws.below(2 * padding + 1, Step::Top, 0);
    // What two copies of a line share when one is moved: its first pixel in each, and its length.
    let overlap = |at: usize, len: usize| {
        let (from, to) = (padding.saturating_sub(at).min(len), at.saturating_sub(padding).min(len));
        (from, to, len - from.max(to))
    };
    let (from_column, to_column, columns) = overlap(left, width);
    let (from_row, to_row, rows) = overlap(top, height);
    for row in 0..rows {
        let from = ((from_row + row) * width + from_column) * channels;
        let to = ((to_row + row) * width + to_column) * channels;
        let len = columns * channels;
        out[to..to + len].copy_from_slice(&bytes[from..from + len]);
    }
    Picture { bytes: out, ..*picture }
}

/// Exchanges left and right.
pub(super) fn mirror(picture: &mut Picture) {
    let Picture { width, channels, ref mut bytes, .. } = *picture;
    for row in bytes.chunks_exact_mut(width * channels) {
        match channels {
            3 => row.as_chunks_mut::<3>().0.reverse(),
            _ => row.reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: (f64, f64) = (0.08, 1.0);
    const RATIO: (f64, f64) = (0.75, 4.0 / 3.0);

    fn draws(key: u64) -> Draws {
        Draws { seed: 5, epoch: 2, key }
    }

    #[test]
    fn crops_stay_within_the_image_and_the_bounds() {
        for (width, height) in [(500, 375), (32, 32), (90, 400), (3, 2), (1, 1)] {
            for key in 0..2_000 {
                let region = inception(width, height, AREA, RATIO, draws(key));
                let (right, bottom) = (region.left + region.width, region.top + region.height);
                assert!(region.left >= 0.0 && region.top >= 0.0, "{region:?}");
                assert!(right <= width as f64 && bottom <= height as f64, "{region:?}");
                if width.min(height) > 30 {
                    let ratio = region.width / region.height;
                    let share = region.width * region.height / (width * height) as f64;
                    // Sides are whole pixels.
                    let slack = 2.0 / region.width.min(region.height);
                    assert!(ratio > RATIO.0 * (1.0 - slack) && ratio < RATIO.1 * (1.0 + slack));
                    assert!(share > AREA.0 * (1.0 - slack) && share <= AREA.1 * (1.0 + slack));
                }
            }
        }
    }

    #[test]
    fn areas_are_uniform_and_ratios_log_uniform() {
        const CROPS: usize = 20_000;
        let area = (0.1, 0.5);
        let (mut areas, mut logs, mut centres) = (0.0, 0.0, [0.0; 2]);
        for key in 0..CROPS as u64 {
            // So little of the area that the first attempt always fits.
            let region = inception(1_000, 1_000, area, RATIO, draws(key));
            areas += region.width * region.height / 1e6 / CROPS as f64;
            logs += (region.width / region.height).ln() / CROPS as f64;
            centres[0] += (region.left + region.width / 2.0) / CROPS as f64;
            centres[1] += (region.top + region.height / 2.0) / CROPS as f64;
        }
        // Five standard errors of uniform numbers, rounded to whole pixels.
        let error = 5.0 / (12.0 * CROPS as f64).sqrt();
        assert!((areas - 0.3).abs() < 0.4 * error, "{areas}");
        assert!(logs.abs() < 2.0 * RATIO.1.ln() * error, "{logs}");
        for centre in centres {
            assert!((centre - 500.0).abs() < 1_000.0 * error, "{centre}");
        }
    }

    #[test]
    fn where_nothing_fits_the_middle_is_seen() {
        let region = inception(1_000, 10, (0.9, 1.0), RATIO, draws(0));
        assert_eq!(region, Region { left: 493.0, top: 0.0, width: 13.0, height: 10.0 });
        let region = inception(10, 1_000, (0.9, 1.0), RATIO, draws(0));
        assert_eq!(region, Region { left: 0.0, top: 493.0, width: 10.0, height: 13.0 });
    }

    #[test]
    fn a_padded_crop_moves_the_image_and_leaves_grey() {
        let picture = Picture { width: 3, height: 2, channels: 1, bytes: vec![1, 2, 3, 4, 5, 6] };
        let mut seen = std::collections::BTreeSet::new();
        for key in 0..500 {
            seen.insert(padded(&picture, 1, draws(key)).bytes);
        }
        assert_eq!(seen.len(), 9, "three places in each direction");
        let g = GREY;
        for expected in [[1, 2, 3, 4, 5, 6], [5, 6, g, g, g, g], [g, g, g, g, 1, 2]] {
            assert!(seen.contains(&expected[..]), "{expected:?} in {seen:?}");
        }
        // A border wider than the image can leave nothing of it.
        for key in 0..100 {
            assert_eq!(padded(&picture, 20, draws(key)).bytes.len(), 6);
        }
    }

    #[test]
    fn a_mirrored_row_keeps_its_colours() {
        let mut picture = Picture { width: 2, height: 1, channels: 3, bytes: b"rgbRGB".to_vec() };
        mirror(&mut picture);
        assert_eq!(picture.bytes, b"RGBrgb");
    }
}
