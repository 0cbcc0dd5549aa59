//! The softmax likelihood on devices other than the CPU: tensor operations over chunks of samples.
//!
//! Never more than one chunk [B, n, K] is alive. The noise is keyed as on the CPU, by (seed,
//! step, example id, stream, index), and has the same law; Sobol' points are the same points.

use std::ops::Range;

use aleator_kernels::sobol::{self, Sobol};
use aleator_kernels::{Draws, Stream};
use burn::backend::DispatchTensor;
use burn::tensor::activation::{log_softmax, sigmoid, softmax};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use crate::feature_noise::FeatureNoise;
use crate::latent::{Covariance, Latent};
use crate::likelihood::{BatchNoise, Link};

/// Entries of a chunk: 16 MiB of f32.
const CHUNK_ENTRIES: usize = 1 << 22;

/// log p, [B, K].
pub(crate) fn log_probs(latent: &Latent, noise: &BatchNoise) -> Tensor<2> {
    let of_chunk = |chunk| log_softmax(Chunk::draw(latent, noise, chunk).scaled, 2);
    log_mean_exp(chunks(latent, noise).map(of_chunk))
}

/// The logarithm of the mean over samples of exp of chunks [B, n, K], by a running sum: [B, K].
pub(crate) fn log_mean_exp(chunks: impl Iterator<Item = Tensor<3>>) -> Tensor<2> {
    let mut running: Option<(Tensor<2>, Tensor<2>)> = None;
    let mut samples = 0;
    for logs in chunks {
        samples += logs.dims()[1];
        let largest = logs.clone().max_dim(1).squeeze_dim::<2>(1);
        let largest = match &running {
            Some((before, _)) => before.clone().max_pair(largest),
            None => largest,
        };
        let sum = (logs - largest.clone().unsqueeze_dim(1)).exp().sum_dim(1).squeeze_dim(1);
        let sum = match running {
            Some((before, kept)) => kept * (before - largest.clone()).exp() + sum,
            None => sum,
        };
        running = Some((largest, sum));
    }
    let (largest, sum) = running.expect("at least one sample");
    largest + sum.log() - (samples as f32).ln()
}

/// Gradients of Σ upstream · log p, in the order of [`Latent::tensors`].
pub(crate) fn backward(
    latent: &Latent,
    noise: &BatchNoise,
    log_probs: Tensor<2>,
    upstream: Tensor<2>,
) -> Vec<Option<DispatchTensor>> {
    let samples: usize = chunks(latent, noise).map(|chunk| chunk.len()).sum();
    let upstream = upstream.unsqueeze_dim::<3>(1) / samples as f32;
    let marginal = log_probs.unsqueeze_dim::<3>(1);
    let sums = chunks(latent, noise).map(|chunk| {
        let drawn = Chunk::draw(latent, noise, chunk);
        let sample = log_softmax(drawn.scaled.clone(), 2);
        let pull = (sample - marginal.clone()).exp() * upstream.clone();
        let probs = softmax(drawn.scaled.clone(), 2);
        let grad = pull.clone() - probs * pull.sum_dim(2);
        Sums::of(grad / latent.temperature.clone().reshape([1, 1, 1]), &drawn, latent)
    });
    sums.reduce(Sums::add).expect("at least one sample").into_grads(latent)
}

/// The variance over the noise of the samples' probabilities, [B, K].
pub(crate) fn variance(latent: &Latent, link: Link, noise: &BatchNoise) -> Tensor<2> {
    let probs = |scaled: Tensor<3>| match link {
        Link::Softmax => softmax(scaled, 2),
        Link::Sigmoid => sigmoid(scaled),
    };
    // Deviations from the noiseless probability: their squares do not cancel.
    let scaled_mean = latent.mean.clone() / latent.temperature.clone().reshape([1, 1]);
    let origin = probs(scaled_mean.unsqueeze_dim::<3>(1));
    let (mut first, mut second) = (latent.mean.zeros_like(), latent.mean.zeros_like());
    let mut samples = 0.0;
    for chunk in chunks(latent, noise) {
        samples += chunk.len() as f32;
        let deviation = probs(Chunk::draw(latent, noise, chunk).scaled) - origin.clone();
        first = first + deviation.clone().sum_dim(1).squeeze_dim(1);
        second = second + deviation.square().sum_dim(1).squeeze_dim(1);
    }
    (second / samples - (first / samples).square()).clamp_min(0.0)
}

/// The samples of each chunk.
pub(crate) fn chunks(
    latent: &Latent,
    noise: &BatchNoise,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let [batch, classes] = latent.dims();
    let samples = if matches!(latent.covariance, Covariance::None) { 1 } else { noise.samples };
    // Even, so that antithetic pairs stay together.
    let width = classes.max(latent.noisy_sizes().0);
    let size = (CHUNK_ENTRIES / (batch * width).max(1)).clamp(2, samples.max(2)) / 2 * 2;
    (0..samples).step_by(size).map(move |first| first..samples.min(first + size))
}

/// One chunk of samples: u/τ and the draws that made it.
pub(crate) struct Chunk {
    /// [B, n, K].
    pub scaled: Tensor<3>,
    /// ε_K, [B, n, K].
    diag_draws: Option<Tensor<3>>,
    /// ε_R, [B, n, R].
    factor_draws: Option<Tensor<3>>,
    /// The noise on the features, [B, n, D], and ε_R Vᵀ.
    on_features: Option<[Tensor<3>; 2]>,
}

impl Chunk {
    /// ∂d, ∂v, ∂V and ∂W of noise on the features from the gradient of the utilities, [B, n, K].
    fn pull_features(&self, grad: Tensor<3>, noise: &FeatureNoise) -> Option<[Tensor<2>; 4]> {
        let [drawn, shared] = self.on_features.clone()?;
        let (own, factors) = (self.diag_draws.clone()?, self.factor_draws.clone()?);
        let flat = |rows: Tensor<3>| {
            let [batch, samples, width] = rows.dims();
            rows.reshape([batch * samples, width])
        };
        let over_samples = |values: Tensor<3>| values.sum_dim(1).squeeze_dim::<2>(1);
        let weight = flat(drawn).transpose().matmul(flat(grad.clone()));
        let pull = across(grad, noise.weight.clone().transpose());
        let scaled = pull.clone() * noise.loading_scale.clone().unsqueeze_dim::<3>(1);
        let loadings = flat(scaled).transpose().matmul(flat(factors));
        Some([over_samples(pull.clone() * own), over_samples(pull * shared), loadings, weight])
    }

    pub fn draw(latent: &Latent, noise: &BatchNoise, range: Range<usize>) -> Self {
        let device = latent.device();
        let (width, rank) = latent.noisy_sizes();
        let normals = |stream: Stream, count: usize| {
            let offset = if stream == Stream::Diagonal { rank } else { 0 };
            draws(noise, range.clone(), stream, count, offset, rank + width, &device)
        };
        let mut utility = latent.mean.clone().unsqueeze_dim::<3>(1);
        let (mut diag_draws, mut factor_draws) = (None, None);
        if let Covariance::Diagonal { diag_scale }
        | Covariance::LowRank { diag_scale, .. }
        | Covariance::SharedLowRank { diag_scale, .. } = &latent.covariance
        {
            let draws = normals(Stream::Diagonal, width);
            utility = utility + diag_scale.clone().unsqueeze_dim::<3>(1) * draws.clone();
            diag_draws = Some(draws);
        }
        let mut on_features = None;
        if let Covariance::OnFeatures(of) = &latent.covariance {
            let (own, factors) = (normals(Stream::Diagonal, width), normals(Stream::Factor, rank));
            let shared = across(factors.clone(), of.shared_loadings.clone().transpose());
            let row = |scale: &Tensor<2>| scale.clone().unsqueeze_dim::<3>(1);
            let drawn = row(&of.diag_scale) * own.clone() + row(&of.loading_scale) * shared.clone();
            utility = utility + across(drawn.clone(), of.weight.clone());
            (diag_draws, factor_draws) = (Some(own), Some(factors));
            on_features = Some([drawn, shared]);
        } else if let Some(loadings) = latent.loadings() {
            let draws = normals(Stream::Factor, rank);
            utility = utility + draws.clone().matmul(loadings.swap_dims(1, 2));
            factor_draws = Some(draws);
        }
        let scaled = utility / latent.temperature.clone().reshape([1, 1, 1]);
        Self { scaled, diag_draws, factor_draws, on_features }
    }
}

/// Rows [B, n, D] times a matrix [D, K] that all examples share.
fn across(rows: Tensor<3>, matrix: Tensor<2>) -> Tensor<3> {
    let ([batch, samples, width], [_, columns]) = (rows.dims(), matrix.dims());
    rows.reshape([batch * samples, width]).matmul(matrix).reshape([batch, samples, columns])
}

/// Sums over samples that the gradients consist of.
pub(crate) struct Sums {
    mean: Tensor<2>,
    diag_scale: Option<Tensor<2>>,
    loadings: Option<Tensor<3>>,
    temperature: Tensor<1>,
    /// ∂d, ∂v, ∂V and ∂W of noise on the features.
    on_features: Option<[Tensor<2>; 4]>,
}

impl Sums {
    pub fn of(grad: Tensor<3>, chunk: &Chunk, latent: &Latent) -> Self {
        let over_samples = |values: Tensor<3>| values.sum_dim(1).squeeze_dim::<2>(1);
        if let Covariance::OnFeatures(noise) = &latent.covariance {
            return Self {
                mean: over_samples(grad.clone()),
                diag_scale: None,
                loadings: None,
                temperature: -(grad.clone() * chunk.scaled.clone()).sum(),
                on_features: chunk.pull_features(grad, noise),
            };
        }
        Self {
            on_features: None,
            mean: over_samples(grad.clone()),
            diag_scale: chunk.diag_draws.clone().map(|draws| over_samples(grad.clone() * draws)),
            loadings: chunk
                .factor_draws
                .clone()
                .map(|draws| grad.clone().swap_dims(1, 2).matmul(draws)),
            temperature: -(grad * chunk.scaled.clone()).sum(),
        }
    }

    pub fn add(self, other: Self) -> Self {
        Self {
            mean: self.mean + other.mean,
            diag_scale: self.diag_scale.zip(other.diag_scale).map(|(a, b)| a + b),
            loadings: self.loadings.zip(other.loadings).map(|(a, b)| a + b),
            temperature: self.temperature + other.temperature,
            on_features: self.on_features.zip(other.on_features).map(|(a, b)| {
                let mut b = b.into_iter();
                a.map(|a| a + b.next().expect("as many"))
            }),
        }
    }

    pub fn into_grads(self, latent: &Latent) -> Vec<Option<DispatchTensor>> {
        let mut out = vec![self.mean.into_dispatch(), self.temperature.into_dispatch()];
        out.extend(self.diag_scale.map(Tensor::into_dispatch));
        out.extend(self.on_features.into_iter().flatten().map(Tensor::into_dispatch));
        match (&latent.covariance, self.loadings) {
            (Covariance::SharedLowRank { loading_scale, shared_loadings, .. }, Some(loadings)) => {
                let own = loadings.clone() * shared_loadings.clone().unsqueeze_dim::<3>(0);
                out.push(own.sum_dim(2).squeeze_dim::<2>(2).into_dispatch());
                let shared = loadings * loading_scale.clone().unsqueeze_dim::<3>(2);
                out.push(shared.sum_dim(0).squeeze_dim::<2>(0).into_dispatch());
            }
            (_, loadings) => out.extend(loadings.map(Tensor::into_dispatch)),
        }
        out.into_iter().map(Some).collect()
    }
}

impl Latent {
    /// How many numbers have noise of their own, and the factors besides: K and R, or D and R.
    fn noisy_sizes(&self) -> (usize, usize) {
        match &self.covariance {
            Covariance::OnFeatures(noise) => {
                let [features, rank, _] = noise.sizes();
                (features, rank)
            }
            _ => (self.dims()[1], self.rank()),
        }
    }

    /// The covariance that classes share as loadings [B, K, R]; of noise on the features the whole
    /// covariance.
    pub(crate) fn loadings(&self) -> Option<Tensor<3>> {
        match &self.covariance {
            Covariance::None | Covariance::Diagonal { .. } => None,
            Covariance::LowRank { loadings, .. } => Some(loadings.clone()),
            Covariance::SharedLowRank { loading_scale, shared_loadings, .. } => Some(
                loading_scale.clone().unsqueeze_dim::<3>(2)
                    * shared_loadings.clone().unsqueeze_dim::<3>(0),
            ),
            Covariance::OnFeatures(noise) => Some(noise.class_loadings()),
        }
    }
}

/// Standard normals [B, n, width] of one stream; `first_dimension` and `dimensions` are for
/// Sobol' points, which cover all streams together.
fn draws(
    noise: &BatchNoise,
    range: Range<usize>,
    stream: Stream,
    width: usize,
    first_dimension: usize,
    dimensions: usize,
    device: &Device,
) -> Tensor<3> {
    // As on the CPU: factors and classes together where they fit, else the factors alone.
    let covered = dimensions <= sobol::MAX_DIMENSIONS
        || (stream == Stream::Factor && width <= sobol::MAX_DIMENSIONS);
    match noise.draws {
        Draws::Sobol if covered => {
            let dimensions = first_dimension..first_dimension + width;
            sobol_normals(noise, range, dimensions, device)
        }
        Draws::Antithetic => {
            let half = range.len().div_ceil(2);
            let first_half = range.start..range.start + half;
            let drawn = hashed_normals(noise, first_half, stream, width, device);
            if range.len() == 1 {
                return drawn;
            }
            let mirrored = -drawn.clone().narrow(1, 0, range.len() - half);
            Tensor::cat(vec![drawn, mirrored], 1)
        }
        Draws::Independent | Draws::Sobol => hashed_normals(noise, range, stream, width, device),
    }
}

fn sobol_normals(
    noise: &BatchNoise,
    range: Range<usize>,
    dimensions: Range<usize>,
    device: &Device,
) -> Tensor<3> {
    let width = dimensions.len();
    let sobol = Sobol::new(dimensions.end);
    let shape = [noise.ids.len(), range.len(), width];
    let mut values = vec![0.0; shape.iter().product()];
    for (id, out) in noise.ids.iter().zip(values.chunks_exact_mut(range.len() * width)) {
        let scramble = noise.key.block_seed(*id, Stream::Scramble, 0);
        sobol.standard_normals(scramble, range.start as u32, dimensions.clone(), width, out);
    }
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Box–Muller over an integer hash of (example's key, index): made on the device, nothing moves.
fn hashed_normals(
    noise: &BatchNoise,
    range: Range<usize>,
    stream: Stream,
    width: usize,
    device: &Device,
) -> Tensor<3> {
    let batch = noise.ids.len();
    let (samples, most) = (noise.samples, u32::MAX as usize / width.max(1));
    assert!(samples <= most, "samples must be at most {most} on this device, found {samples}");
    let seeds: Vec<u64> = noise.ids.iter().map(|id| noise.key.block_seed(*id, stream, 0)).collect();
    let words = |shift: u32| {
        let words: Vec<u32> = seeds.iter().map(|seed| (seed >> shift) as u32).collect();
        let data = TensorData::new(words, [batch, 1, 1]);
        Tensor::<3, Int>::from_data(data, (device, DType::U32))
    };
    let count = range.len() * width;
    let index = Tensor::<1, Int>::arange(0..count as i64, (device, DType::U32))
        .add_scalar((range.start * width) as u32)
        .reshape([1, range.len(), width])
        .repeat_dim(0, batch);
    let low = words(0).repeat_dim(1, range.len()).repeat_dim(2, width);
    let high = words(32).repeat_dim(1, range.len()).repeat_dim(2, width);
    let hashed = hash(hash(index.bitwise_xor(low)) + high);
    let radius = uniform(hash(hashed.clone().bitwise_xor_scalar(0x9e37_79b9u32)));
    let angle = uniform(hash(hashed.bitwise_xor_scalar(0x85eb_ca6bu32)));
    let radius = radius.log().mul_scalar(-2.0).sqrt();
    radius * angle.mul_scalar(core::f32::consts::TAU).cos()
}

/// A bijection of 32-bit words with low bias (two rounds of multiply and shift).
fn hash(x: Tensor<3, Int>) -> Tensor<3, Int> {
    let x = x.clone().bitwise_xor(x.bitwise_right_shift_scalar(16u32)).mul_scalar(0x7feb_352du32);
    let x = x.clone().bitwise_xor(x.bitwise_right_shift_scalar(15u32)).mul_scalar(0x846c_a68bu32);
    x.clone().bitwise_xor(x.bitwise_right_shift_scalar(16u32))
}

/// The middle of one of 2²⁴ cells of (0, 1).
fn uniform(x: Tensor<3, Int>) -> Tensor<3> {
    x.bitwise_right_shift_scalar(8u32).float().add_scalar(0.5).mul_scalar(1.0 / 16_777_216.0)
}
