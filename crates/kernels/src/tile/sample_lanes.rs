//! Few classes: the lanes of a vector are 16 samples of one class.

use pulp::Simd;

use super::operations::Utilities;
use super::{Aligned, Deviations, LogMean, Moments, PADDING, Tile, centred, label_term, wins};
use crate::draws::{Plan, PlaneShape, TileAddress};
use crate::latent::Example;
use crate::simd::{LANES, Level, Wide};

/// Classes that share one load of the factors.
const BLOCK: usize = 4;

/// Classes and columns that are summed over samples together.
const PAIR: usize = 2;

/// Entries of a tile that fit into a 32 KiB cache together with their noise.
const TILE_ENTRIES: usize = 3 * 1024;

/// See the [module](self).
pub(crate) struct SampleLanes {
    rank: usize,
    /// Classes with noise, and classes padded to whole blocks.
    drawn: usize,
    classes: usize,
    /// Lanes of the current tile: its samples, padded to whole vectors.
    stride: usize,
    /// μ and d, [classes].
    mean: Aligned,
    diag_scale: Aligned,
    /// V by blocks, [classes / 4, R, 4].
    loadings: Aligned,
    /// ε_K and the utilities, [classes, stride].
    diag_draws: Aligned,
    tile: Aligned,
    /// ε_R, [R, stride].
    factor_draws: Aligned,
    /// weight · (1, ε_R), [columns, stride].
    weighted: Aligned,
    /// One for a sample, zero for padding, [stride].
    valid: Aligned,
}

impl SampleLanes {
    fn class(&self, class: usize) -> &[f32] {
        &self.tile[class * self.stride..(class + 1) * self.stride]
    }

    #[inline(always)]
    fn largest<S: Simd, const N: usize>(&self, simd: S, lane: usize) -> Wide<S, N> {
        let mut largest = Wide::load(simd, &self.tile[lane..]);
        for class in 1..self.classes {
            largest = largest.max(Wide::load(simd, &self.tile[class * self.stride + lane..]));
        }
        largest
    }

    /// log₂ p_sk of 16 samples; padding lanes get a value below all others.
    #[inline(always)]
    fn log_prob<S: Simd, const N: usize>(
        &self,
        simd: S,
        row: &[f32],
        lse: &[f32],
        lane: usize,
    ) -> Wide<S, N> {
        let valid = Wide::<S, N>::load(simd, &self.valid[lane..]);
        let penalty = valid.sub(Wide::splat(simd, 1.0)).mul(Wide::splat(simd, -PADDING));
        Wide::load(simd, &row[lane..]).sub(Wide::load(simd, &lse[lane..])).add(penalty)
    }

    #[inline(always)]
    fn pack_weighted<S: Simd, const N: usize>(&mut self, simd: S, weights: &[f32]) {
        let stride = self.stride;
        self.weighted[..stride].copy_from_slice(&weights[..stride]);
        let factors = self.factor_draws.chunks_exact(stride).take(self.rank);
        for (to, factor) in self.weighted.chunks_exact_mut(stride).skip(1).zip(factors) {
            for lane in (0..stride).step_by(LANES) {
                let weight = Wide::<S, N>::load(simd, &weights[lane..]);
                Wide::load(simd, &factor[lane..]).mul(weight).store(&mut to[lane..]);
            }
        }
        let used = (self.rank + 1) * stride..self.columns() * stride;
        self.weighted[used].fill(0.0);
    }
}

/// Adds the samples' tile · weighted, lane by lane, for two classes and two columns; `out` has the
/// second class `row` floats after the first.
#[inline(always)]
fn dot_pairs<S: Simd, const N: usize>(
    simd: S,
    tile: &[f32],
    weighted: &[f32],
    stride: usize,
    row: usize,
    out: &mut [f32],
) {
    let mut sums = [[Wide::<S, N>::splat(simd, 0.0); PAIR]; PAIR];
    let (first, second) = tile.split_at(stride);
    let (left, right) = weighted.split_at(stride);
    for lane in (0..stride).step_by(LANES) {
        let classes = [Wide::load(simd, &first[lane..]), Wide::load(simd, &second[lane..])];
        let columns = [Wide::load(simd, &left[lane..]), Wide::load(simd, &right[lane..])];
        for i in 0..PAIR {
            for j in 0..PAIR {
                sums[i][j] = classes[i].mul_add(columns[j], sums[i][j]);
            }
        }
    }
    for i in 0..PAIR {
        for j in 0..PAIR {
            let out = &mut out[i * row + j * LANES..];
            sums[i][j].add(Wide::load(simd, out)).store(out);
        }
    }
}

impl Tile for SampleLanes {
    fn new(classes: usize, rank: usize) -> Self {
        let drawn = classes;
        let classes = classes.next_multiple_of(BLOCK);
        let capacity = Self::tile_samples(classes);
        Self {
            rank,
            drawn,
            classes,
            stride: capacity,
            mean: Aligned::zeros(classes),
            diag_scale: Aligned::zeros(classes),
            loadings: Aligned::zeros(classes * rank),
            diag_draws: Aligned::zeros(classes * capacity),
            tile: Aligned::zeros(classes * capacity),
            factor_draws: Aligned::zeros(rank.next_multiple_of(2) * capacity),
            weighted: Aligned::zeros((rank + 1).next_multiple_of(PAIR) * capacity),
            valid: Aligned::zeros(capacity),
        }
    }

    fn tile_samples(classes: usize) -> usize {
        let lanes = TILE_ENTRIES / classes.next_multiple_of(BLOCK);
        (lanes / LANES * LANES).clamp(LANES, 256)
    }

    fn shape(count: usize, at: TileAddress) -> PlaneShape {
        PlaneShape::SampleLanes { count, stride: at.samples.next_multiple_of(LANES) }
    }

    fn padded_classes(&self) -> usize {
        self.classes
    }

    fn columns(&self) -> usize {
        (self.rank + 1).next_multiple_of(PAIR)
    }

    fn moments(&self) -> Moments {
        Aligned::zeros(self.classes * (self.columns() + 1) * LANES)
    }

    fn load(&mut self, example: &Example, scale: f32, origin: f32) {
        self.mean.fill(PADDING);
        for (to, mean) in self.mean.iter_mut().zip(centred(example.mean, scale, origin)) {
            *to = mean;
        }
        for class in 0..example.mean.len() {
            self.diag_scale[class] = example.diag_scale.map_or(0.0, |d| d[class] * scale);
            let base = class / BLOCK * self.rank * BLOCK + class % BLOCK;
            for (factor, loading) in example.loadings.row(class, scale).enumerate() {
                self.loadings[base + factor * BLOCK] = loading;
            }
        }
    }

    fn draw(&mut self, level: Level, plan: &Plan, at: TileAddress) {
        self.stride = at.samples.next_multiple_of(LANES);
        self.valid.fill(0.0);
        self.valid[..at.samples].fill(1.0);
        let diag_shape = Self::shape(self.drawn, at);
        let factor_shape = Self::shape(self.rank, at);
        let diag = &mut self.diag_draws[..diag_shape.len()];
        let factors = &mut self.factor_draws[..factor_shape.len()];
        // Without noise the planes keep the zeros that they were made with.
        plan.fill(level, at, (diag_shape, diag), (factor_shape, factors));
        level.run(Utilities { tile: self });
    }

    #[inline(always)]
    fn utilities<S: Simd, const N: usize>(&mut self, simd: S) {
        let (stride, rank) = (self.stride, self.rank);
        for block in 0..self.classes / BLOCK {
            let loadings = &self.loadings[block * rank * BLOCK..][..rank * BLOCK];
            let mut mean = [Wide::<S, N>::splat(simd, 0.0); BLOCK];
            for i in 0..BLOCK {
                mean[i] = Wide::splat(simd, self.mean[block * BLOCK + i]);
            }
            for lane in (0..stride).step_by(LANES) {
                let mut sums = mean;
                let factors = self.factor_draws.chunks_exact(stride);
                for (four, factor) in loadings.chunks_exact(BLOCK).zip(factors) {
                    let factor = Wide::load(simd, &factor[lane..]);
                    for i in 0..BLOCK {
                        sums[i] = factor.mul_add(Wide::splat(simd, four[i]), sums[i]);
                    }
                }
                for i in 0..BLOCK {
                    let class = block * BLOCK + i;
                    let draw = Wide::load(simd, &self.diag_draws[class * stride + lane..]);
                    let diag = Wide::splat(simd, self.diag_scale[class]);
                    draw.mul_add(diag, sums[i]).store(&mut self.tile[class * stride + lane..]);
                }
            }
        }
    }

    fn utility(&self, class: usize, sample: usize) -> f32 {
        self.class(class)[sample]
    }

    #[inline(always)]
    fn exponentiate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        maximum: &mut [f32],
        sum: &mut [f32],
    ) {
        for lane in (0..self.stride).step_by(LANES) {
            let largest = self.largest::<S, N>(simd, lane);
            let mut total = Wide::splat(simd, 0.0);
            for class in self.tile.chunks_exact_mut(self.stride).take(self.classes) {
                let power = Wide::<S, N>::load(simd, &class[lane..]).sub(largest).exp2();
                power.store(&mut class[lane..]);
                total = total.add(power);
            }
            largest.store(&mut maximum[lane..]);
            total.store(&mut sum[lane..]);
        }
    }

    #[inline(always)]
    fn log_sum_exp<S: Simd, const N: usize>(&self, simd: S, out: &mut [f32]) {
        for lane in (0..self.stride).step_by(LANES) {
            let largest = self.largest::<S, N>(simd, lane);
            let mut total = Wide::splat(simd, 0.0);
            for class in self.tile.chunks_exact(self.stride).take(self.classes) {
                total = total.add(Wide::load(simd, &class[lane..]).sub(largest).exp2());
            }
            largest.add(total.log2()).store(&mut out[lane..]);
        }
    }

    fn shift_class(&mut self, class: usize, sign: f32, by: &[f32]) {
        let entries = self.tile[class * self.stride..(class + 1) * self.stride].iter_mut();
        for (entry, by) in entries.zip(by) {
            *entry += sign * by;
        }
    }

    #[inline(always)]
    fn accumulate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        weights: &[f32],
        moments: &mut Moments,
    ) {
        self.pack_weighted::<S, N>(simd, weights);
        let (stride, columns) = (self.stride, self.columns());
        let row = (columns + 1) * LANES;
        for (pair, sums) in moments.chunks_exact_mut(PAIR * row).enumerate() {
            let tile = &self.tile[pair * PAIR * stride..][..PAIR * stride];
            for column in (0..columns).step_by(PAIR) {
                let weighted = &self.weighted[column * stride..][..PAIR * stride];
                let out = &mut sums[column * LANES..];
                dot_pairs::<S, N>(simd, tile, weighted, stride, row, out);
            }
            let draws = &self.diag_draws[pair * PAIR * stride..][..PAIR * stride];
            let mut diag = [Wide::<S, N>::splat(simd, 0.0); PAIR];
            for lane in (0..stride).step_by(LANES) {
                let weight = Wide::load(simd, &weights[lane..]);
                for i in 0..PAIR {
                    let product = Wide::load(simd, &tile[i * stride + lane..]).mul(weight);
                    let draw = Wide::load(simd, &draws[i * stride + lane..]);
                    diag[i] = product.mul_add(draw, diag[i]);
                }
            }
            for i in 0..PAIR {
                let out = &mut sums[i * row + columns * LANES..];
                diag[i].add(Wide::load(simd, out)).store(out);
            }
        }
    }

    #[inline(always)]
    fn log_mean<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], mean: &mut LogMean) {
        for class in 0..self.classes {
            let row = self.class(class);
            let before = mean.maximum[class];
            let mut largest = Wide::<S, N>::splat(simd, before);
            for lane in (0..self.stride).step_by(LANES) {
                largest = largest.max(self.log_prob(simd, row, lse, lane));
            }
            let maximum = largest.maximum();
            let shift = Wide::<S, N>::splat(simd, maximum);
            let mut sum = Wide::splat(simd, 0.0);
            for lane in (0..self.stride).step_by(LANES) {
                sum = sum.add(self.log_prob(simd, row, lse, lane).sub(shift).exp2());
            }
            mean.sum[class] = mean.sum[class] * (before - maximum).exp2() + sum.sum();
            mean.maximum[class] = maximum;
        }
    }

    #[inline(always)]
    fn deviations<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], out: &mut Deviations) {
        for class in 0..self.classes {
            let origin = Wide::<S, N>::splat(simd, out.origin[class]);
            let mut first = Wide::splat(simd, 0.0);
            let mut second = Wide::splat(simd, 0.0);
            for lane in (0..self.stride).step_by(LANES) {
                let log_prob = Wide::load(simd, &self.class(class)[lane..])
                    .sub(Wide::load(simd, &lse[lane..]));
                let valid = Wide::load(simd, &self.valid[lane..]);
                let deviation = log_prob.exp2().sub(origin).mul(valid);
                first = first.add(deviation);
                second = deviation.mul_add(deviation, second);
            }
            out.first[class] += first.sum();
            out.second[class] += second.sum();
        }
    }

    #[inline(always)]
    fn wins<S: Simd, const N: usize>(
        &self,
        simd: S,
        (largest, share): (&mut [f32], &mut [f32]),
        wins: &mut [f32],
    ) {
        for lane in (0..self.stride).step_by(LANES) {
            self.largest::<S, N>(simd, lane).store(&mut largest[lane..]);
        }
        let tile = (&self.tile[..], self.stride);
        wins::of_sample_lanes::<S, N>(simd, tile, (largest, &self.valid), share, wins);
    }

    #[inline(always)]
    fn backpropagate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        lse: &[f32],
        log2_probs: &[f32],
        upstream: &[f32],
    ) {
        for lane in (0..self.stride).step_by(LANES) {
            let lse = Wide::<S, N>::load(simd, &lse[lane..]);
            let mut total = Wide::splat(simd, 0.0);
            for (class, row) in self.tile.chunks_exact(self.stride).take(self.classes).enumerate() {
                let log_prob = Wide::load(simd, &row[lane..]).sub(lse);
                let ratio = log_prob.sub(Wide::splat(simd, log2_probs[class])).exp2();
                total = ratio.mul_add(Wide::splat(simd, -upstream[class]), total);
            }
            let rows = self.tile.chunks_exact_mut(self.stride).take(self.classes);
            for (class, row) in rows.enumerate() {
                let log_prob = Wide::load(simd, &row[lane..]).sub(lse);
                let ratio = log_prob.sub(Wide::splat(simd, log2_probs[class])).exp2();
                let pull = ratio.mul(Wide::splat(simd, upstream[class]));
                log_prob.exp2().mul_add(total, pull).store(&mut row[lane..]);
            }
        }
    }

    #[inline(always)]
    fn label_slopes<S: Simd, const N: usize>(&mut self, simd: S, labels: &[f32], rows: &mut [f32]) {
        for lane in (0..self.stride).step_by(LANES) {
            let mut total = Wide::splat(simd, 0.0);
            let classes = self.tile.chunks_exact_mut(self.stride).take(self.classes);
            for (class, label) in classes.zip(labels) {
                let utility = Wide::<S, N>::load(simd, &class[lane..]);
                let (log_prob, slope) = label_term(simd, utility, Wide::splat(simd, *label));
                slope.store(&mut class[lane..]);
                total = total.add(log_prob);
            }
            total.store(&mut rows[lane..]);
        }
    }

    fn moment(&self, moments: &Moments, class: usize, column: usize) -> f32 {
        moments[(class * (self.columns() + 1) + column) * LANES..][..LANES].iter().sum()
    }
}
