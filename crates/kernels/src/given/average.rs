//! The average of the samples' probabilities, block after block.

use pulp::Simd;
use rayon::prelude::*;

use super::{Given, Sample};
use crate::simd::{LANES, Vectorised, Vectors, Wide};

/// The logarithm of the mean of the samples' probabilities so far, exact where they underflow.
#[derive(Clone, Debug)]
pub struct LogMean {
    samples: usize,
    /// Of each example and class: the largest log-probability, and the sum of all relative to it.
    running: Vec<Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    largest: f32,
    sum: f32,
}

/// Sums of the samples' probabilities as deviations from those without noise, whose squares do not
/// cancel: [B, K].
#[derive(Clone, Debug)]
pub struct Moments {
    origin: Vec<f32>,
    sums: Vec<[f32; 2]>,
}

impl LogMean {
    /// No samples of `entries` = B × K yet.
    pub fn new(entries: usize) -> Self {
        let running = vec![Running { largest: f32::NEG_INFINITY, sum: 0.0 }; entries];
        Self { samples: 0, running }
    }

    /// Adds a block of noise [B, n, K], and its samples to `moments`.
    ///
    /// # Panics
    /// When shapes do not match.
    pub fn add(&mut self, given: &Given<'_>, noise: &[f32], moments: Option<&mut Moments>) {
        given.check(noise);
        assert_eq!(self.running.len(), given.mean.len(), "the same B × K");
        let (level, classes) = (Vectors::Detected.level(), given.classes);
        let rows = self.running.par_chunks_exact_mut(classes);
        let rows = rows.zip(noise.par_chunks_exact((classes * given.signs.draws).max(1)));
        match moments {
            None => rows.enumerate().for_each(|(row, (running, noise))| {
                level.run(Add { given: given.row(row), noise, running, moments: None });
            }),
            Some(Moments { origin, sums }) => {
                let moments = origin.par_chunks_exact(classes);
                let moments = moments.zip(sums.par_chunks_exact_mut(classes));
                rows.zip(moments).enumerate().for_each(|(row, ((running, noise), moments))| {
                    let moments = Some(moments);
                    level.run(Add { given: given.row(row), noise, running, moments });
                });
            }
        }
        self.samples += given.signs.samples();
    }

    /// log p, [B, K].
    pub fn log_probs(&self, out: &mut [f32]) {
        let count = (self.samples as f32).ln();
        for (out, Running { largest, sum }) in out.iter_mut().zip(&self.running) {
            *out = largest + sum.ln() - count;
        }
    }
}

impl Moments {
    /// No samples of these examples yet.
    pub fn new(given: &Given<'_>) -> Self {
        let classes = given.classes;
        let mut origin = vec![0.0; given.mean.len()];
        let level = Vectors::Detected.level();
        let rows = origin.par_chunks_exact_mut(classes).enumerate();
        rows.for_each(|(row, out)| level.run(Noiseless { given: given.row(row), out }));
        Self { sums: vec![[0.0; 2]; origin.len()], origin }
    }

    /// The variance over `samples` samples, [B, K].
    pub fn variance(&self, samples: usize) -> Vec<f32> {
        let count = samples as f32;
        let of_entry =
            |[first, second]: &[f32; 2]| (second / count - (first / count).powi(2)).max(0.0);
        self.sums.iter().map(of_entry).collect()
    }
}

struct Noiseless<'a> {
    given: Given<'a>,
    out: &'a mut [f32],
}

impl Vectorised for Noiseless<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let mut sample = Sample::new(self.given.classes);
        sample.set::<S, N>(simd, &self.given, self.given.mean, 0.0);
        self.out.copy_from_slice(&sample.probs[..self.given.classes]);
    }
}

/// Adds the samples of one example.
struct Add<'a> {
    given: Given<'a>,
    noise: &'a [f32],
    running: &'a mut [Running],
    moments: Option<(&'a [f32], &'a mut [[f32; 2]])>,
}

impl Vectorised for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd, const N: usize>(self, simd: S) {
        let Self { given, noise, running, mut moments } = self;
        let classes = given.classes;
        let mut sample = Sample::new(classes);
        let mut largest: Vec<f32> = running.iter().map(|running| running.largest).collect();
        largest.resize(sample.scaled.len(), 0.0);
        let mut log_sums = Vec::with_capacity(given.signs.samples());
        for (draw, noise) in noise.chunks_exact(classes).enumerate() {
            for sign in given.signs.of_draw(draw) {
                let log_sum = sample.set::<S, N>(simd, &given, noise, *sign);
                log_sums.push(log_sum);
                for (largest, scaled) in largest.iter_mut().zip(&sample.scaled) {
                    *largest = largest.max(scaled - log_sum);
                }
                let Some((origin, sums)) = &mut moments else { continue };
                for ((prob, origin), sums) in sample.probs.iter().zip(*origin).zip(sums.iter_mut())
                {
                    let deviation = prob - origin;
                    sums[0] += deviation;
                    sums[1] += deviation * deviation;
                }
            }
        }
        let mut sums = vec![0.0f32; sample.scaled.len()];
        for (sum, (running, largest)) in sums.iter_mut().zip(running.iter().zip(&largest)) {
            *sum = running.sum * (running.largest - largest).exp();
        }
        let mut log_sums = log_sums.into_iter();
        let scale = given.temperature.get().recip();
        for (draw, noise) in noise.chunks_exact(classes).enumerate() {
            for (sign, log_sum) in given.signs.of_draw(draw).iter().zip(log_sums.by_ref()) {
                for ((scaled, mean), noise) in sample.scaled.iter_mut().zip(given.mean).zip(noise) {
                    *scaled = (mean + sign * noise) * scale - log_sum;
                }
                for at in (0..sums.len()).step_by(LANES) {
                    let shift = Wide::<S, N>::load(simd, &largest[at..]);
                    let exp = Wide::load(simd, &sample.scaled[at..]).sub(shift).exp();
                    Wide::load(simd, &sums[at..]).add(exp).store(&mut sums[at..]);
                }
            }
        }
        for (running, (largest, sum)) in running.iter_mut().zip(largest.into_iter().zip(sums)) {
            *running = Running { largest, sum };
        }
    }
}
