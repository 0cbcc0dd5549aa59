//! Training images varied at random: another part of the image, mirrored, distorted, mixed.
//!
//! What happens to an image is a function of (seed, epoch, the example's id): it is the same in
//! any order of examples and for any number of threads.

mod beta;
mod colour;
mod crop;
mod geometry;
mod rand_augment;

#[cfg(test)]
mod tests;

use aleator_run::recipe::{self, Crop};
pub use beta::symmetric as symmetric_beta;

use crate::draws::{self, Purpose};
use crate::picture::{Frame, Limits, Picture, Region, decode_region};

/// The grey outside of an image.
const GREY: u8 = 128;

/// `[data.augment]` of a recipe, for images of one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmenter {
    augment: recipe::Augment,
    frame: Frame,
}

impl Augmenter {
    /// Varies images as `augment` says; `frame` is what evaluation sees, and the size of the
    /// results.
    ///
    /// ```
    /// use aleator_data::Picture;
    /// use aleator_data::augment::Augmenter;
    /// use aleator_data::picture::Frame;
    /// use aleator_run::recipe::{Augment, Crop, Framing};
    ///
    /// let augment = Augment {
    ///     crop: Crop::Padded { padding: 4 },
    ///     flip: true,
    ///     rand_augment: None,
    ///     mixup: None,
    /// };
    /// let augmenter = Augmenter::new(&augment, Frame::new(&Framing::PLAIN, 32, 32));
    /// let picture = Picture { width: 32, height: 32, channels: 3, bytes: vec![200; 3072] };
    /// let (seed, epoch, key) = (0, 3, 17);
    /// let seen = augmenter.apply(&picture, seed, epoch, key);
    /// assert_eq!((seen.width, seen.height), (32, 32));
    /// assert_eq!(seen, augmenter.apply(&picture, seed, epoch, key));
    /// ```
    pub fn new(augment: &recipe::Augment, frame: Frame) -> Self {
        Self { augment: *augment, frame }
    }

    /// What evaluation sees; its size is that of the results.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// What training sees of an image in this epoch; `key` names the example.
    pub fn apply(&self, picture: &Picture, seed: u64, epoch: usize, key: u64) -> Picture {
        let draws = Draws { seed, epoch, key };
        let region = self.region(picture.width, picture.height, draws);
        self.vary(self.frame.cut_region(picture, region), draws)
    }

    /// What training sees of an encoded image: [`decode`](crate::picture::decode) and
    /// [`Augmenter::apply`] at once, which is faster, and gives the same bytes.
    ///
    /// # Errors
    /// As [`decode`](crate::picture::decode).
    pub fn apply_encoded(
        &self,
        bytes: &[u8],
        limits: Limits,
        seed: u64,
        epoch: usize,
        key: u64,
    ) -> Result<Picture, String> {
        let draws = Draws { seed, epoch, key };
        let region = |width, height| self.region(width, height, draws);
        Ok(self.vary(decode_region(bytes, limits, &self.frame, region)?, draws))
    }

    /// The weight of an example when it is mixed with another: λ of Beta(α, α), or 1 − λ
    /// where that is more. `None` where the recipe mixes nothing.
    pub fn own_share(&self, seed: u64, epoch: usize, key: u64) -> Option<f64> {
        let alpha = self.augment.mixup?;
        let share = beta::symmetric(alpha, |index| {
            draws::word(seed, Purpose::Mix, &[epoch as u64, key, index])
        });
        Some(share.max(1.0 - share))
    }

    /// The part of the image that is seen.
    fn region(&self, width: usize, height: usize, draws: Draws) -> Region {
        match self.augment.crop {
            Crop::Inception { area, ratio } => crop::inception(width, height, area, ratio, draws),
            Crop::None | Crop::Padded { .. } => self.frame.region(width, height),
        }
    }

    /// What is done to an image that has the frame's size.
    fn vary(&self, mut picture: Picture, draws: Draws) -> Picture {
        if let Crop::Padded { padding } = self.augment.crop {
            picture = crop::padded(&picture, padding, draws);
        }
        if self.augment.flip && draws.below(2, Step::Flip, 0) == 1 {
            crop::mirror(&mut picture);
        }
        match self.augment.rand_augment {
            Some(settings) => rand_augment::apply(picture, settings, draws),
            None => picture,
        }
    }
}

/// The random numbers of one image in one epoch, each by its name.
#[derive(Clone, Copy)]
struct Draws {
    seed: u64,
    epoch: usize,
    key: u64,
}

/// The purpose of a random number.
#[derive(Clone, Copy)]
enum Step {
    Area = 0,
    Ratio = 1,
    Left = 2,
    Top = 3,
    Flip = 4,
    Operation = 5,
    Sign = 6,
}

impl Draws {
    fn name(self, step: Step, index: usize) -> [u64; 4] {
        [self.epoch as u64, self.key, step as u64, index as u64]
    }

    /// In [0, 1).
    fn unit(self, step: Step, index: usize) -> f64 {
        draws::unit(self.seed, Purpose::Augment, &self.name(step, index))
    }

    /// One of `0..count`.
    fn below(self, count: usize, step: Step, index: usize) -> usize {
        draws::below(count, self.seed, Purpose::Augment, &self.name(step, index))
    }
}
