//! RandAugment (Cubuk et al. 2020): some of fourteen operations, all of one strength.

use std::f64::consts::PI;

use aleator_run::recipe::RandAugment;

use super::{Draws, Step, colour, geometry};
use crate::picture::Picture;

/// The strongest of `magnitude`.
const STRONGEST: f64 = 10.0;

/// Moves are at most this share of a side: torchvision's 150 of 331 pixels.
const TRANSLATION: f64 = 150.0 / 331.0;

/// Changes an image with a share of the operation's full strength, negative for the other
/// direction.
pub(super) type Operation = fn(Picture, f64) -> Picture;

/// All operations, by their names in the paper. The strengths are those of torchvision: 30 degrees,
/// 0.3 of shear, factors from 0.1 to 1.9, 4 of 8 bits, all that is above black solarised.
pub(super) const ALL: [(&str, Operation); 14] = [
    ("Identity", |picture, _| picture),
    ("AutoContrast", |picture, _| colour::auto_contrast(picture)),
    ("Equalize", |picture, _| colour::equalize(picture)),
    ("Rotate", |picture, strength| geometry::rotate(&picture, strength * PI / 6.0)),
    ("Solarize", |picture, strength| colour::solarize(picture, 256.0 * (1.0 - strength.abs()))),
    ("Color", |picture, strength| colour::saturate(picture, factor(strength))),
    ("Posterize", |picture, strength| {
        colour::posterize(picture, 8 - (4.0 * strength.abs()).round() as u32)
    }),
    ("Contrast", |picture, strength| colour::contrast(picture, factor(strength))),
    ("Brightness", |picture, strength| colour::brightness(picture, factor(strength))),
    ("Sharpness", |picture, strength| colour::sharpness(&picture, factor(strength))),
    ("ShearX", |picture, strength| geometry::map(&picture, |x, y| (x + 0.3 * strength * y, y))),
    ("ShearY", |picture, strength| geometry::map(&picture, |x, y| (x, y + 0.3 * strength * x))),
    ("TranslateX", |picture, strength| {
        let by = (TRANSLATION * picture.width as f64 * strength).trunc();
        geometry::map(&picture, |x, y| (x - by, y))
    }),
    ("TranslateY", |picture, strength| {
        let by = (TRANSLATION * picture.height as f64 * strength).trunc();
        geometry::map(&picture, |x, y| (x, y - by))
    }),
];

fn factor(strength: f64) -> f32 {
    (1.0 + 0.9 * strength) as f32
}

/// Random operations one after another, each of them equally likely every time; those with a
/// direction go either way equally often.
pub(super) fn apply(mut picture: Picture, settings: RandAugment, draws: Draws) -> Picture {
    for index in 0..settings.operations {
        let (_, operation) = ALL[draws.below(ALL.len(), Step::Operation, index)];
        let sign = if draws.below(2, Step::Sign, index) == 1 { -1.0 } else { 1.0 };
        picture = operation(picture, sign * settings.magnitude / STRONGEST);
    }
    picture
}
