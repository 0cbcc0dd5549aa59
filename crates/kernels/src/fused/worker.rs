//! The memory of one thread, and how the samples of an example are split into tiles.

use std::sync::{Mutex, PoisonError};

use super::check;
use crate::draws::{Plan, Sampling, TileAddress};
use crate::latent::{Example, Latent, NotFinite, Temperature};
use crate::simd::{LANES, Level, Vectors};
use crate::tile::{Moments, Tile};

/// The arguments that all functions of a call share.
pub(crate) struct Call<'a> {
    pub latent: Latent<'a>,
    pub temperature: f32,
    pub plan: Plan<'a>,
    pub level: Level,
}

impl<'a> Call<'a> {
    pub fn new(
        latent: &Latent<'a>,
        temperature: Temperature,
        sampling: &Sampling<'a>,
        vectors: Vectors,
    ) -> Result<Self, NotFinite> {
        check(latent, sampling)?;
        let mut sampling = *sampling;
        if !latent.is_noisy() {
            sampling.samples = 1; // all samples are equal
        }
        Ok(Self {
            latent: *latent,
            temperature: temperature.get(),
            plan: Plan::new(sampling, latent.classes, latent.rank(), latent.is_noisy()),
            level: vectors.level(),
        })
    }

    pub fn samples(&self) -> usize {
        self.plan.sampling.samples
    }

    pub fn tiles<T: Tile>(&self, row: usize) -> impl Iterator<Item = TileAddress> + use<T> {
        let samples = self.samples();
        let size = T::tile_samples(self.latent.classes);
        (0..samples.div_ceil(size)).map(move |tile| TileAddress {
            row,
            tile,
            first_sample: tile * size,
            samples: size.min(samples - tile * size),
        })
    }
}

/// The memory of one thread, reused for each of its examples.
pub(crate) struct Worker<T> {
    pub tile: T,
    pub rows: Rows,
    pub targets: Vec<Target>,
}

/// The workers of a call: as many as there are examples in progress at the same time.
///
/// The first access to new memory costs more than its use, so an example takes an idle worker if
/// there is one.
pub(crate) struct Workers<'a, T> {
    latent: &'a Latent<'a>,
    idle: Mutex<Vec<Worker<T>>>,
}

impl<'a, T: Tile> Workers<'a, T> {
    pub fn new(latent: &'a Latent<'a>) -> Self {
        Self { latent, idle: Mutex::new(Vec::new()) }
    }

    pub fn with_one<R>(&self, work: impl FnOnce(&mut Worker<T>) -> R) -> R {
        // The lock is held only for a push or a pop, neither of which can leave the list damaged.
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let left = idle().pop();
        let mut worker = left.unwrap_or_else(|| Worker::new(self.latent));
        let result = work(&mut worker);
        idle().push(worker);
        result
    }
}

/// One entry for each sample of a tile, padded to whole vectors.
pub(crate) struct Rows {
    pub maximum: Vec<f32>,
    pub sum: Vec<f32>,
    pub lse: Vec<f32>,
    pub weights: Vec<f32>,
}

/// The running state of one target class.
pub(crate) struct Target {
    pub moments: Moments,
    pub utility: Vec<f32>,
    /// Largest log₂ p_sy so far, and Σ_s of the responsibilities relative to it.
    pub maximum: f32,
    pub total: f64,
}

impl<T: Tile> Worker<T> {
    pub fn new(latent: &Latent) -> Self {
        let zeros = || vec![0.0; T::tile_samples(latent.classes).next_multiple_of(LANES)];
        let rows = Rows { maximum: zeros(), sum: zeros(), lse: zeros(), weights: zeros() };
        Self { tile: T::new(latent.classes, latent.rank()), rows, targets: Vec::new() }
    }

    /// Loads an example whose gradients need `targets` sets of moments, with utilities relative to
    /// `origin`.
    pub fn load(&mut self, example: &Example, temperature: f32, origin: f32, targets: usize) {
        self.tile.load(example, core::f32::consts::LOG2_E / temperature, origin);
        while self.targets.len() < targets {
            let utility = vec![0.0; self.rows.sum.len()];
            let moments = self.tile.moments();
            self.targets.push(Target { moments, utility, maximum: 0.0, total: 0.0 });
        }
        for target in &mut self.targets[..targets] {
            target.moments.fill(0.0);
            target.maximum = f32::NEG_INFINITY;
            target.total = 0.0;
        }
    }
}
