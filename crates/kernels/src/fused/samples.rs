//! Access to the samples themselves: noise and utilities.

use super::worker::Call;
use crate::draws::{PlaneShape, Sampling};
use crate::latent::{Latent, Temperature};
use crate::simd::Vectors;
use crate::tile::{ClassLanes, SampleLanes, Tile, has_few_classes};

/// The noise of one example as the kernels draw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// ε_K, [S, K].
    pub diag_draws: Vec<f32>,
    /// ε_R, [S, R].
    pub factor_draws: Vec<f32>,
}

/// The noise that every function of this crate uses for one example, for tests against a reference
/// and for devices that need the same draws.
///
/// ```
/// use aleator_kernels::{fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 2.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[0.0, 0.0], covariance };
/// let key = NoiseKey { seed: 1, step: 0 };
/// let (draws, law) = (Draws::Antithetic, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 100, draws, law };
/// let noise = fused::drawn_noise(&latent, &sampling, 0);
/// assert_eq!(noise.diag_draws.len(), 200);
/// assert!(noise.diag_draws.iter().sum::<f32>().abs() < 1e-3); // pairs cancel
/// ```
pub fn drawn_noise(latent: &Latent, sampling: &Sampling, row: usize) -> Noise {
    let mut noise = Noise { diag_draws: Vec::new(), factor_draws: Vec::new() };
    for_each_noise_block(latent, sampling, row, |_, block| {
        noise.diag_draws.extend(&block.diag_draws);
        noise.factor_draws.extend(&block.factor_draws);
    });
    noise
}

/// Calls `visit(first_sample, noise)` with blocks of one example's noise, in order; their size
/// does not depend on S.
pub fn for_each_noise_block(
    latent: &Latent,
    sampling: &Sampling,
    row: usize,
    visit: impl FnMut(usize, &Noise),
) {
    let call = unscaled(latent, sampling, row);
    if has_few_classes(latent.classes) {
        visit_noise::<SampleLanes>(&call, row, visit);
    } else {
        visit_noise::<ClassLanes>(&call, row, visit);
    }
}

fn visit_noise<T: Tile>(call: &Call, row: usize, mut visit: impl FnMut(usize, &Noise)) {
    let (classes, rank) = (call.latent.classes, call.latent.rank());
    for at in call.tiles::<T>(row) {
        let (diag, factor) = (T::shape(classes, at), T::shape(rank, at));
        let (mut diag_plane, mut factor_plane) = (vec![0.0; diag.len()], vec![0.0; factor.len()]);
        call.plan.fill(call.level, at, (diag, &mut diag_plane), (factor, &mut factor_plane));
        let gather = |shape: PlaneShape, count: usize, plane: &[f32]| -> Vec<f32> {
            let samples = 0..at.samples;
            samples.flat_map(|s| (0..count).map(move |i| plane[shape.index(i, s)])).collect()
        };
        let noise = Noise {
            diag_draws: gather(diag, classes, &diag_plane),
            factor_draws: gather(factor, rank, &factor_plane),
        };
        visit(at.first_sample, &noise);
    }
}

/// A call with temperature 1, so that utilities are not scaled.
fn unscaled<'a>(latent: &Latent<'a>, sampling: &Sampling<'a>, row: usize) -> Call<'a> {
    let batch = latent.batch;
    assert!(row < batch, "example must be below {batch}, found {row}");
    let one = Temperature::try_from(1.0).expect("1 is a temperature");
    Call::new(latent, one, sampling, Vectors::Detected).unwrap_or_else(|error| panic!("{error}"))
}

/// Calls `visit(first_sample, utilities)` with blocks [n, K] of one example's sampled utilities,
/// in order; their size does not depend on S.
///
/// ```
/// use aleator_kernels::{fused, Covariance, Draws, Latent, NoiseKey, NoiseLaw, Sampling};
///
/// let covariance = Covariance::Diagonal { diag_scale: &[1.0, 2.0] };
/// let latent = Latent { batch: 1, classes: 2, mean: &[5.0, -5.0], covariance };
/// let key = NoiseKey { seed: 1, step: 0 };
/// let (draws, law) = (Draws::Independent, NoiseLaw::Normal);
/// let sampling = Sampling { key, ids: &[0], samples: 1000, draws, law };
/// let mut wins = 0;
/// fused::for_each_utility_block(&latent, &sampling, 0, |_, utilities| {
///     wins += utilities.chunks_exact(2).filter(|u| u[0] > u[1]).count();
/// });
/// assert!(wins > 990); // 10 / √5 standard deviations apart
/// ```
pub fn for_each_utility_block(
    latent: &Latent,
    sampling: &Sampling,
    row: usize,
    visit: impl FnMut(usize, &[f32]),
) {
    let call = unscaled(latent, sampling, row);
    if has_few_classes(latent.classes) {
        visit_blocks::<SampleLanes>(&call, row, visit);
    } else {
        visit_blocks::<ClassLanes>(&call, row, visit);
    }
}

fn visit_blocks<T: Tile>(call: &Call, row: usize, mut visit: impl FnMut(usize, &[f32])) {
    let classes = call.latent.classes;
    let example = call.latent.example(row);
    // The tile subtracts the largest mean.
    let offset = example.largest_mean();
    let mut tile = T::new(classes, call.latent.rank());
    tile.load(&example, 1.0, offset);
    let mut block = Vec::new();
    for at in call.tiles::<T>(row) {
        tile.draw(call.level, &call.plan, at);
        block.clear();
        for sample in 0..at.samples {
            block.extend((0..classes).map(|class| offset + tile.utility(class, sample)));
        }
        visit(at.first_sample, &block);
    }
}
