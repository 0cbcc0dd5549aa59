//! A tile: some samples of one example, all classes, small enough for the cache.
//!
//! Two layouts do the same work. With many classes the lanes of a vector are classes of one
//! sample ([`ClassLanes`]); with few, they are samples of one class ([`SampleLanes`]), so that no
//! lane is idle and no sum runs across lanes. Utilities are in units of τ·ln 2, where softmax is a
//! power of two, and relative to an origin: the largest mean for softmax, which is invariant to it,
//! and zero for the sigmoid.

mod class_lanes;
pub(crate) mod operations;
mod sample_lanes;
mod wins;

pub(crate) use class_lanes::ClassLanes;
use core::ops::{Deref, DerefMut};

use pulp::Simd;
pub(crate) use sample_lanes::SampleLanes;

use crate::draws::{Plan, PlaneShape, TileAddress};
use crate::latent::Example;
use crate::simd::{Level, Wide};

/// Up to this many classes the lanes are samples.
const FEW_CLASSES: usize = 32;

/// The utility of padding lanes: far below any other, and far from overflow.
const PADDING: f32 = -1e30;

pub(crate) fn has_few_classes(classes: usize) -> bool {
    classes <= FEW_CLASSES
}

/// Floats aligned to a cache line: a vector that straddles two lines costs two accesses.
pub(crate) struct Aligned {
    buffer: Vec<f32>,
    first: usize,
    len: usize,
}

impl Aligned {
    const LINE: usize = 64;

    pub fn zeros(len: usize) -> Self {
        let buffer = vec![0.0f32; len + Self::LINE / size_of::<f32>()];
        // `align_offset` is allowed to fail; then accesses are only slower.
        let first = buffer.as_ptr().align_offset(Self::LINE).min(buffer.len() - len);
        Self { buffer, first, len }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.buffer[self.first..self.first + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.buffer[self.first..self.first + self.len]
    }
}

/// Σ_s a_s g_sk · (1, ε_R, ε_k), from which every gradient is computed.
///
/// For each class: [mean, factors…, diagonal], in 16 lanes if the lanes are samples.
pub(crate) type Moments = Aligned;

/// Running logsumexp₂ over samples, one for each class, padded to whole vectors.
#[derive(Clone)]
pub(crate) struct LogMean {
    pub maximum: Vec<f32>,
    pub sum: Vec<f32>,
}

impl LogMean {
    pub fn new(classes: usize) -> Self {
        Self { maximum: vec![PADDING; classes], sum: vec![0.0; classes] }
    }
}

/// Running Σ(p − p₀) and Σ(p − p₀)² over samples, one for each class.
pub(crate) struct Deviations {
    pub origin: Vec<f32>,
    pub first: Vec<f32>,
    pub second: Vec<f32>,
}

/// The operations of both layouts. Slices with one entry for each sample of the tile are padded to
/// whole vectors and to [`Tile::tile_samples`]; the padding must have weight zero.
pub(crate) trait Tile {
    fn new(classes: usize, rank: usize) -> Self;

    /// Samples in a full tile: a function of the shape alone, never of the machine.
    fn tile_samples(classes: usize) -> usize;

    /// The layout of the draws of a tile: ε_K for `count` classes, or ε_R for `count` factors.
    fn shape(count: usize, at: TileAddress) -> PlaneShape;

    /// Classes, padded to whole vectors.
    fn padded_classes(&self) -> usize;

    /// Columns of the moments before the diagonal: one for the mean, R for the factors, and padding.
    fn columns(&self) -> usize;

    fn moments(&self) -> Moments;

    /// Loads an example, with utilities less `origin` multiplied by `scale` = 1/(τ ln 2).
    fn load(&mut self, example: &Example, scale: f32, origin: f32);

    /// Draws the noise of a tile and computes its utilities.
    fn draw(&mut self, level: Level, plan: &Plan, at: TileAddress);

    /// Computes the utilities from the noise in the tile.
    fn utilities<S: Simd, const N: usize>(&mut self, simd: S);

    fn utility(&self, class: usize, sample: usize) -> f32;

    /// Replaces u by 2^(u − max) and writes the maximum and the sum of each sample.
    fn exponentiate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        maximum: &mut [f32],
        sum: &mut [f32],
    );

    /// log₂ Σ_k 2^u_k of each sample; utilities are not changed.
    fn log_sum_exp<S: Simd, const N: usize>(&self, simd: S, rows: &mut [f32]);

    /// Adds `sign · rows` to one class.
    fn shift_class(&mut self, class: usize, sign: f32, rows: &[f32]);

    /// Adds Σ_s weight_s · tile_sk · (1, ε_R, ε_k) to the moments.
    fn accumulate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        weights: &[f32],
        moments: &mut Moments,
    );

    /// Adds the samples' log₂ p_sk = u_sk − lse_s to the running logsumexp of each class.
    fn log_mean<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], mean: &mut LogMean);

    /// Adds the deviations of the samples' probabilities from an origin, and their squares.
    fn deviations<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], out: &mut Deviations);

    /// Adds to each class the samples in which its utility is the largest; classes that tie share a
    /// sample. `rows` has room for two numbers of each sample.
    fn wins<S: Simd, const N: usize>(
        &self,
        simd: S,
        rows: (&mut [f32], &mut [f32]),
        wins: &mut [f32],
    );

    /// Replaces u by h_sk − p_sk Σ_j h_sj with h_sk = upstream_k · p_sk / p_k.
    fn backpropagate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        lse: &[f32],
        log2_probs: &[f32],
        upstream: &[f32],
    );

    /// Replaces u by y_k − sigmoid(u_sk/τ) and writes Σ_k log₂ P(y_k ∣ u_sk) of each sample, for
    /// labels y from 0 (off) to 1 (on) of the padded classes.
    fn label_slopes<S: Simd, const N: usize>(&mut self, simd: S, labels: &[f32], rows: &mut [f32]);

    /// One of the moments of a class: τ ∂μ in column 0, then τ ∂V, and τ ∂d in the last column.
    fn moment(&self, moments: &Moments, class: usize, column: usize) -> f32;
}

/// Subtracting the origin before rounding keeps f32 accurate for utilities of any offset.
pub(crate) fn centred(mean: &[f32], scale: f32, origin: f32) -> impl Iterator<Item = f32> {
    mean.iter().map(move |m| ((*m as f64 - origin as f64) * scale as f64) as f32)
}

/// log₂ P(y ∣ u) = y t − log₂(1 + 2^t) and its slope y − sigmoid, of utilities t in units of τ·ln 2.
///
/// Both are computed from 2^−|t|, which cannot overflow. For labels 0 and 1 the terms in t are exact,
/// so that the error of the logarithm is 2·10⁻⁷ for any utility.
#[inline(always)]
fn label_term<S: Simd, const N: usize>(
    simd: S,
    utility: Wide<S, N>,
    label: Wide<S, N>,
) -> (Wide<S, N>, Wide<S, N>) {
    let (zero, one) = (Wide::splat(simd, 0.0), Wide::splat(simd, 1.0));
    let power = utility.min(zero.sub(utility)).exp2_of_negative();
    let sum = power.add(one);
    let linear = utility.mul_add(label, zero.sub(utility.max(zero)));
    let log_prob = linear.sub(sum.log2());
    let sigmoid = utility.negative_or(power, one).div(sum);
    (log_prob, label.sub(sigmoid))
}
