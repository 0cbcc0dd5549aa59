//! The softmax likelihood of samples whose noise is given: noise that comes through a layer, and is
//! not drawn class by class.
//!
//! Noise comes in blocks of draws, each for some examples; no function needs all draws of an example
//! at once. Antithetic draws are given once, and count with both signs.

mod average;
mod features;
mod normals;

pub use average::{LogMean, Moments};
pub use features::FeatureDraws;
pub use normals::Normals;

use pulp::Simd;
use rayon::prelude::*;

use crate::draws::{Draws, Sampling};
use crate::fused::Targets;
use crate::latent::Temperature;
use crate::simd::{LANES, Vectorised, Vectors, Wide};

/// Draws of an example that are made together, from one seed.
pub const BLOCK: usize = 64;

/// The draws that make the samples of an example: the first `mirrored` of them with both signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs {
    /// n.
    pub draws: usize,
    /// At most n.
    pub mirrored: usize,
}

impl Signs {
    /// All draws of a sampling.
    pub fn of(sampling: &Sampling) -> Self {
        let samples = sampling.samples;
        match sampling.draws {
            Draws::Antithetic => Self { draws: samples.div_ceil(2), mirrored: samples / 2 },
            Draws::Independent | Draws::Sobol => Self { draws: samples, mirrored: 0 },
        }
    }

    /// Those from `first` to `end`.
    pub fn part(self, first: usize, end: usize) -> Self {
        Self { draws: end - first, mirrored: self.mirrored.clamp(first, end) - first }
    }

    /// S.
    pub fn samples(self) -> usize {
        self.draws + self.mirrored
    }

    /// The signs of one draw.
    fn of_draw(self, draw: usize) -> &'static [f32] {
        if draw < self.mirrored { &[1.0, -1.0] } else { &[1.0] }
    }
}

/// The means of some examples and what their noise looks like.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// K.
    pub classes: usize,
    /// μ(x), [B, K].
    pub mean: &'a [f32],
    /// The draws of each example in this block.
    pub signs: Signs,
    /// τ.
    pub temperature: Temperature,
}

/// What the samples of some examples are held against.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// log p over all samples of these examples, [B, K].
    pub log_probs: &'a [f32],
    /// S, of all blocks.
    pub samples: usize,
    /// Of the whole batch, checked.
    pub targets: Targets<'a>,
    /// Of the whole batch.
    pub weights: &'a [f32],
    /// The place of the first of these examples in the batch.
    pub first: usize,
}

/// What [`Given::pull`] adds up.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    /// ∂/∂μ, [B, K].
    pub mean: Vec<f32>,
    /// ∂/∂τ, summed over the batch.
    pub temperature: f64,
}

impl Given<'_> {
    fn check(&self, noise: &[f32]) {
        let (classes, draws) = (self.classes, self.signs.draws);
        assert!(classes > 0, "classes must be at least 1, found 0");
        assert_eq!(self.mean.len() * draws, noise.len(), "noise must be [B, n, K]");
    }

    /// Gradients of Σ weight · −log p of the labels. In place of `noise` [B, n, K] stands its
    /// gradient afterwards.
    ///
    /// # Panics
    /// When shapes do not match.
    pub fn pull(&self, noise: &mut [f32], labels: &Labelled<'_>) -> Pulled {
        self.check(noise);
        let classes = self.classes;
        let Labelled { log_probs, samples, targets, weights, first } = *labels;
        assert_eq!(log_probs.len(), self.mean.len(), "log p must be [B, K]");
        let mut mean = vec![0.0; self.mean.len()];
        let rows = mean.par_chunks_exact_mut(classes);
        let rows = rows.zip(noise.par_chunks_exact_mut((classes * self.signs.draws).max(1)));
        let level = Vectors::Detected.level();
        let of_rows = rows.enumerate().map(|(row, (mean, noise))| {
            let weight = weights[first + row] / samples as f32;
            let upstream = targets.of(first + row, classes).into_iter();
            let upstream = upstream.map(|(class, prob)| Upstream {
                class,
                log_prob: log_probs[row * classes + class],
                weight: prob * weight,
            });
            let upstream: Vec<Upstream> = upstream.collect();
            level.run(Pull { given: self.row(row), upstream: &upstream, noise, mean })
        });
        let temperature: Vec<f64> = of_rows.collect();
        Pulled { mean, temperature: temperature.into_iter().sum() }
    }

    /// One example.
    fn row(&self, row: usize) -> Given<'_> {
        Given { mean: &self.mean[row * self.classes..][..self.classes], ..*self }
    }
}

/// A class of an example that pulls at the samples.
struct Upstream {
    class: usize,
    log_prob: f32,
    weight: f32,
}

/// u/τ of one sample, padded to whole vectors.
struct Sample {
    scaled: Vec<f32>,
    /// exp(u/τ − log Σ exp).
    probs: Vec<f32>,
}

impl Sample {
    fn new(classes: usize) -> Self {
        let padded = classes.next_multiple_of(LANES);
        Self { scaled: vec![f32::NEG_INFINITY; padded], probs: vec![0.0; padded] }
    }

    /// Sets u/τ, and returns the logarithm of the sum of exp(u/τ).
    #[inline(always)]
    fn set<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        given: &Given<'_>,
        noise: &[f32],
        sign: f32,
    ) -> f32 {
        let scale = given.temperature.get().recip();
        for ((scaled, mean), noise) in self.scaled.iter_mut().zip(given.mean).zip(noise) {
            *scaled = (mean + sign * noise) * scale;
        }
        let mut largest = Wide::<S, N>::splat(simd, f32::NEG_INFINITY);
        for chunk in self.scaled.chunks_exact(LANES) {
            largest = largest.max(Wide::load(simd, chunk));
        }
        let largest = largest.maximum();
        let mut sum = Wide::<S, N>::splat(simd, 0.0);
        let shift = Wide::splat(simd, largest);
        for (chunk, prob) in self.scaled.chunks_exact(LANES).zip(self.probs.chunks_exact_mut(LANES))
        {
            let exp = Wide::<S, N>::load(simd, chunk).sub(shift).exp();
            exp.store(prob);
            sum = sum.add(exp);
        }
        // Lanes beyond the classes were given e^−87 each, which no sum of at least 1 sees.
        let sum = sum.sum();
        let inverse = sum.recip();
        for prob in &mut self.probs {
            *prob *= inverse;
        }
        self.probs[given.classes..].fill(0.0);
        largest + sum.ln()
    }
}

/// The gradients of one example.
struct Pull<'a> {
    given: Given<'a>,
    upstream: &'a [Upstream],
    noise: &'a mut [f32],
    mean: &'a mut [f32],
}

impl Vectorised for Pull<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) -> f64 {
        let Self { given, upstream, noise, mean } = self;
        let classes = given.classes;
        let scale = given.temperature.get().recip();
        let mut sample = Sample::new(classes);
        let mut grad = vec![0.0f32; classes];
        let mut temperature = 0.0;
        for (draw, noise) in noise.chunks_exact_mut(classes).enumerate() {
            grad.fill(0.0);
            for sign in given.signs.of_draw(draw) {
                let sum = sample.set::<S, N>(simd, &given, noise, *sign);
                let mut total = 0.0;
                for Upstream { class, log_prob, weight } in upstream {
                    let pull = weight * (sample.scaled[*class] - sum - log_prob).exp();
                    total += pull;
                    mean[*class] -= pull * scale;
                    grad[*class] -= pull * scale * sign;
                    temperature += f64::from(pull * scale * sample.scaled[*class]);
                }
                let factor = total * scale;
                let mut along = Wide::<S, N>::splat(simd, 0.0);
                let vectors = sample.scaled.chunks_exact(LANES);
                for (scaled, prob) in vectors.zip(sample.probs.chunks_exact(LANES)) {
                    // Beyond the classes there is −∞, which must be finite to vanish times 0.
                    let scaled = Wide::load(simd, scaled).max(Wide::splat(simd, f32::MIN));
                    along = scaled.mul_add(Wide::load(simd, prob), along);
                }
                temperature -= f64::from(factor * along.sum());
                for ((mean, grad), prob) in mean.iter_mut().zip(&mut grad).zip(&sample.probs) {
                    *mean += factor * prob;
                    *grad += sign * factor * prob;
                }
            }
            noise.copy_from_slice(&grad);
        }
        temperature
    }
}
