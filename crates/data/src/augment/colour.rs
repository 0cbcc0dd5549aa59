//! Images whose values change where they are: as `ImageOps` and `ImageEnhance` of PIL do it.

use crate::picture::{Picture, grey};

/// Stretches each channel to all of 0 to 255.
pub(super) fn auto_contrast(picture: Picture) -> Picture {
    by_histogram(picture, |counts| {
        let low = counts.iter().position(|count| *count > 0)?;
        let high = counts.iter().rposition(|count| *count > 0)?;
        let scale = (high > low).then(|| 255.0 / (high - low) as f64)?;
        let offset = -(low as f64) * scale;
        Some(std::array::from_fn(|value| (value as f64 * scale + offset) as u8))
    })
}

/// Makes all values of each channel about equally frequent.
pub(super) fn equalize(picture: Picture) -> Picture {
    by_histogram(picture, |counts| {
        let last = *counts.iter().rfind(|count| **count > 0)?;
        let step = (counts.iter().sum::<usize>() - last) / 255;
        let mut below = step / 2;
        (step > 0).then(|| {
            std::array::from_fn(|value| {
                let new = (below / step).min(255) as u8;
                below += counts[value];
                new
            })
        })
    })
}

/// Values of at least `threshold` are inverted.
pub(super) fn solarize(picture: Picture, threshold: f64) -> Picture {
    let table = std::array::from_fn(|value| {
        let byte = value as u8;
        if (value as f64) < threshold { byte } else { 255 - byte }
    });
    replace(picture, 0, 1, &table)
}

/// Keeps this many of the upper bits, 0 to 8.
pub(super) fn posterize(picture: Picture, bits: u32) -> Picture {
    let mask = 0xff00_u16.unbounded_shr(bits) as u8;
    replace(picture, 0, 1, &std::array::from_fn(|value| value as u8 & mask))
}

/// Darker to black at 0, brighter above 1.
pub(super) fn brightness(picture: Picture, factor: f32) -> Picture {
    replace(picture, 0, 1, &std::array::from_fn(|value| blend(0, value as u8, factor)))
}

/// Paler to the mean grey at 0, stronger above 1.
pub(super) fn contrast(picture: Picture, factor: f32) -> Picture {
    let pixels = picture.bytes.chunks_exact(picture.channels);
    let sum: u64 = pixels.map(|pixel| u64::from(luma(pixel))).sum();
    let mean = (sum as f64 / (picture.width * picture.height) as f64 + 0.5) as u8;
    replace(picture, 0, 1, &std::array::from_fn(|value| blend(mean, value as u8, factor)))
}

/// Greyer to no colour at 0, more colourful above 1; grey stays as it is.
pub(super) fn saturate(mut picture: Picture, factor: f32) -> Picture {
    if picture.channels == 1 {
        return picture;
    }
    for pixel in picture.bytes.chunks_exact_mut(picture.channels) {
        let grey = luma(pixel);
        pixel.iter_mut().for_each(|value| *value = blend(grey, *value, factor));
    }
    picture
}

/// Smoother at 0, sharper above 1; the outermost pixels stay as they are.
pub(super) fn sharpness(picture: &Picture, factor: f32) -> Picture {
    let Picture { width, height, channels, ref bytes } = *picture;
    let mut out = bytes.clone();
    let stride = width * channels;
    for row in 1..height.saturating_sub(1) {
        for at in row * stride + channels..(row + 1) * stride - channels.min(stride) {
            let line = |from: usize| {
                u32::from(bytes[from - channels])
                    + u32::from(bytes[from])
                    + u32::from(bytes[from + channels])
            };
            let sum = line(at - stride) + line(at) + line(at + stride) + 4 * u32::from(bytes[at]);
            let smooth = ((sum as f32) / 13.0 + 0.5) as u8;
            out[at] = blend(smooth, bytes[at], factor);
        }
    }
    Picture { bytes: out, ..*picture }
}

/// `from` at 0, `to` at 1, and further beyond.
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    (f32::from(from) + factor * (f32::from(to) - f32::from(from))) as u8
}

/// The brightness of a pixel.
fn luma(pixel: &[u8]) -> u8 {
    match *pixel {
        [red, green, blue] => grey([red, green, blue]),
        _ => pixel[0],
    }
}

/// Replaces the values of each channel as its histogram says; `None` leaves them.
fn by_histogram(
    mut picture: Picture,
    table: impl Fn(&[usize; 256]) -> Option<[u8; 256]>,
) -> Picture {
    let channels = picture.channels;
    for channel in 0..channels {
        let mut counts = [0; 256];
        for value in picture.bytes.iter().skip(channel).step_by(channels) {
            counts[usize::from(*value)] += 1;
        }
        if let Some(table) = table(&counts) {
            picture = replace(picture, channel, channels, &table);
        }
    }
    picture
}

/// Replaces every `step`-th value from the `first` on.
fn replace(mut picture: Picture, first: usize, step: usize, table: &[u8; 256]) -> Picture {
    for value in picture.bytes.iter_mut().skip(first).step_by(step) {
        *value = table[usize::from(*value)];
    }
    picture
}
