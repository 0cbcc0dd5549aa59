//! RandAugment (Cubuk et al. 2020): some of fourteen operations, all of one strength.

use std::f64::consts::PI;

use aleator_run::recipe::RandAugment;

use super::{Draws, Step, colour, geometry};
use crate::picture::Picture;

/// The strongest of `magnitude`.
const STRONGEST: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Identity,
    AutoContrast,
    Equalize,
    Rotate,
    Solarize,
    Color,
    Posterize,
    Contrast,
    Brightness,
    Sharpness,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
}

pub(super) const ALL: [Operation; 14] = [
    Operation::Identity,
    Operation::AutoContrast,
    Operation::Equalize,
    Operation::Rotate,
    Operation::Solarize,
    Operation::Color,
    Operation::Posterize,
    Operation::Contrast,
    Operation::Brightness,
    Operation::Sharpness,
    Operation::ShearX,
    Operation::ShearY,
    Operation::TranslateX,
    Operation::TranslateY,
];

/// Random operations one after another, each of them equally likely every time; those with a
/// direction go either way equally often.
pub(super) fn apply(mut picture: Picture, settings: RandAugment, draws: Draws) -> Picture {
    for index in 0..settings.operations {
        let operation = ALL[draws.below(ALL.len(), Step::Operation, index)];
        let sign = if draws.below(2, Step::Sign, index) == 1 { -1.0 } else { 1.0 };
        picture = operation.apply(picture, sign * settings.magnitude / STRONGEST);
    }
    picture
}

impl Operation {
    /// Does the operation with this share of its full strength, negative for the other direction.
    /// The strengths are those of torchvision: 30 degrees, 0.3 of shear, 150 of 331 pixels,
    /// factors from 0.1 to 1.9, 4 of 8 bits, all that is above black solarised.
    pub(super) fn apply(self, mut picture: Picture, strength: f64) -> Picture {
        const TRANSLATION: f64 = 150.0 / 331.0;
        let (width, height) = (picture.width as f64, picture.height as f64);
        let factor = (1.0 + 0.9 * strength) as f32;
        match self {
            Self::Identity => {}
            Self::AutoContrast => colour::auto_contrast(&mut picture),
            Self::Equalize => colour::equalize(&mut picture),
            Self::Solarize => colour::solarize(&mut picture, 256.0 * (1.0 - strength.abs())),
            Self::Color => colour::saturate(&mut picture, factor),
            Self::Posterize => {
                colour::posterize(&mut picture, 8 - (4.0 * strength.abs()).round() as u32);
            }
            Self::Contrast => colour::contrast(&mut picture, factor),
            Self::Brightness => colour::brightness(&mut picture, factor),
            Self::Sharpness => picture = colour::sharpness(&picture, factor),
            Self::Rotate => picture = geometry::rotate(&picture, strength * PI / 6.0),
            Self::ShearX => picture = geometry::map(&picture, |x, y| (x + 0.3 * strength * y, y)),
            Self::ShearY => picture = geometry::map(&picture, |x, y| (x, y + 0.3 * strength * x)),
            Self::TranslateX => {
                let by = (TRANSLATION * width * strength).trunc();
                picture = geometry::map(&picture, |x, y| (x - by, y));
            }
            Self::TranslateY => {
                let by = (TRANSLATION * height * strength).trunc();
                picture = geometry::map(&picture, |x, y| (x, y - by));
            }
        }
        picture
    }
}
