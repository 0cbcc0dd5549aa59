//! Many classes: the lanes of a vector are 16 classes of one sample.

use pulp::Simd;

use super::operations::Utilities;
use super::{Aligned, Deviations, LogMean, Moments, PADDING, Tile, centred, label_term, wins};
use crate::draws::{Plan, PlaneShape, TileAddress};
use crate::latent::Example;
use crate::simd::{LANES, Level, Wide};

/// Samples that share one load of the loadings, and columns that share one load of a tile's row.
///
/// With two AVX2 vectors each these are 12 sums: enough to hide the latency of multiply-adds, and
/// few enough for 16 registers.
const BLOCK: usize = 6;

/// Entries of a tile that fit into a 512 KiB cache together with noise, loadings and moments.
const TILE_ENTRIES: usize = 36 * 1024;

/// See the [module](self).
pub(crate) struct ClassLanes {
    rank: usize,
    groups: usize,
    /// Samples of the current tile, and its rows: the samples padded to whole blocks.
    samples: usize,
    rows: usize,
    /// μ and d, [groups, 16].
    mean: Aligned,
    diag_scale: Aligned,
    /// V, [groups, R, 16].
    loadings: Aligned,
    /// ε_K and the utilities, [groups, rows, 16]: a group's rows are contiguous.
    diag_draws: Aligned,
    tile: Aligned,
    /// Each sample's largest utility and Σ 2^(u − max), in the lanes of one hardware vector, [rows,
    /// 16].
    largest: Aligned,
    totals: Aligned,
    /// ε_R as drawn, [⌈R/16⌉, rows, 16].
    factor_draws: Aligned,
    /// ε_R by blocks, [rows / 6, R, 6].
    factor_blocks: Aligned,
    /// weight · (1, ε_R, 1) by blocks of six columns and one of the others, [rows, block] each.
    weighted: Aligned,
}

impl ClassLanes {
    /// Columns in whole blocks.
    fn whole_columns(&self) -> usize {
        self.columns() / BLOCK * BLOCK
    }

    /// Floats of a group in the moments: the columns and the diagonal, 16 classes each.
    fn moment_stride(&self) -> usize {
        (self.columns() + 1) * LANES
    }

    fn group(&self, group: usize) -> &[f32] {
        &self.tile[group * self.rows * LANES..(group + 1) * self.rows * LANES]
    }

    fn pack_factors(&mut self) {
        for factor in 0..self.rank {
            let draws = factor_samples(&self.factor_draws, factor, self.rows);
            let blocks = self.factor_blocks[factor * BLOCK..].chunks_mut(BLOCK).step_by(self.rank);
            for (to, draw) in blocks.flat_map(|six| &mut six[..BLOCK]).zip(draws) {
                *to = *draw;
            }
        }
    }

    fn pack_weighted(&mut self, weights: &[f32]) {
        let (rows, columns) = (self.rows, self.columns() + 1);
        let whole = self.whole_columns();
        for column in 0..columns {
            let first = if column < whole { column / BLOCK * BLOCK } else { whole };
            let width = if column < whole { BLOCK } else { columns - whole };
            let to = self.weighted[first * rows + column - first..].iter_mut().step_by(width);
            if column == 0 || column > self.rank {
                to.zip(weights).take(rows).for_each(|(to, weight)| *to = *weight);
            } else {
                let draws = factor_samples(&self.factor_draws, column - 1, rows).zip(weights);
                to.zip(draws).for_each(|(to, (draw, weight))| *to = draw * weight);
            }
        }
    }
}

/// ε_R of one factor, sample by sample.
fn factor_samples(draws: &[f32], factor: usize, rows: usize) -> impl Iterator<Item = &f32> {
    let first = factor / LANES * rows * LANES + factor % LANES;
    draws[first..].iter().step_by(LANES).take(rows)
}

/// mean + Σ_r V_r ε_r for 16 classes and six samples.
#[inline(always)]
fn multiply_block<S: Simd, const N: usize>(
    simd: S,
    mean: Wide<S, N>,
    loadings: &[f32],
    factors: &[f32],
) -> [Wide<S, N>; BLOCK] {
    let mut sums = [mean; BLOCK];
    for (loading, six) in loadings.chunks_exact(LANES).zip(factors.chunks_exact(BLOCK)) {
        let loading = Wide::load(simd, loading);
        for sample in 0..BLOCK {
            sums[sample] = loading.mul_add(Wide::splat(simd, six[sample]), sums[sample]);
        }
    }
    sums
}

/// Adds Σ_s tile_s · weighted_s to some columns of 16 classes.
#[inline(always)]
fn accumulate_block<S: Simd, const N: usize>(
    simd: S,
    tile: &[f32],
    weighted: &[f32],
    out: &mut [f32],
) {
    let mut sums = [Wide::<S, N>::splat(simd, 0.0); BLOCK];
    for (row, six) in tile.chunks_exact(LANES).zip(weighted.chunks_exact(BLOCK)) {
        let row = Wide::load(simd, row);
        for column in 0..BLOCK {
            sums[column] = row.mul_add(Wide::splat(simd, six[column]), sums[column]);
        }
    }
    for column in 0..BLOCK {
        let out = &mut out[column * LANES..];
        sums[column].add(Wide::load(simd, out)).store(out);
    }
}

/// The same for the remaining `D` − 1 columns and for the diagonal, whose column is the weights and
/// whose rows are multiplied by ε.
#[inline(always)]
fn accumulate_rest<S: Simd, const N: usize, const D: usize>(
    simd: S,
    tile: &[f32],
    draws: &[f32],
    weighted: &[f32],
    out: &mut [f32],
) {
    let tile = tile.as_chunks::<LANES>().0;
    let draws = &draws.as_chunks::<LANES>().0[..tile.len()];
    let weighted = &weighted.as_chunks::<D>().0[..tile.len()];
    let mut sums = [Wide::<S, N>::splat(simd, 0.0); D];
    for at in 0..tile.len() {
        let row = Wide::load(simd, &tile[at]);
        for column in 0..D - 1 {
            sums[column] = row.mul_add(Wide::splat(simd, weighted[at][column]), sums[column]);
        }
        let product = row.mul(Wide::load(simd, &draws[at]));
        sums[D - 1] = product.mul_add(Wide::splat(simd, weighted[at][D - 1]), sums[D - 1]);
    }
    for column in 0..D {
        let out = &mut out[column * LANES..];
        sums[column].add(Wide::load(simd, out)).store(out);
    }
}

impl Tile for ClassLanes {
    fn new(classes: usize, rank: usize) -> Self {
        let groups = classes.div_ceil(LANES);
        let capacity = Self::tile_samples(classes);
        let entries = groups * capacity * LANES;
        Self {
            rank,
            groups,
            samples: capacity,
            rows: capacity,
            mean: Aligned::zeros(groups * LANES),
            diag_scale: Aligned::zeros(groups * LANES),
            loadings: Aligned::zeros(groups * rank * LANES),
            diag_draws: Aligned::zeros(entries),
            tile: Aligned::zeros(entries),
            largest: Aligned::zeros(capacity * LANES),
            totals: Aligned::zeros(capacity * LANES),
            factor_draws: Aligned::zeros(rank.div_ceil(LANES) * capacity * LANES),
            factor_blocks: Aligned::zeros(capacity * rank),
            weighted: Aligned::zeros(capacity * (rank + 2)),
        }
    }

    fn tile_samples(classes: usize) -> usize {
        let rows = TILE_ENTRIES / classes.next_multiple_of(LANES);
        (rows / BLOCK * BLOCK).clamp(BLOCK, 60)
    }

    fn shape(count: usize, at: TileAddress) -> PlaneShape {
        PlaneShape::ClassLanes { count, rows: at.samples.next_multiple_of(BLOCK) }
    }

    fn padded_classes(&self) -> usize {
        self.groups * LANES
    }

    fn columns(&self) -> usize {
        self.rank + 1
    }

    fn moments(&self) -> Moments {
        Aligned::zeros(self.groups * self.moment_stride())
    }

    fn load(&mut self, example: &Example, scale: f32, origin: f32) {
        self.mean.fill(PADDING);
        for (to, mean) in self.mean.iter_mut().zip(centred(example.mean, scale, origin)) {
            *to = mean;
        }
        for class in 0..example.mean.len() {
            self.diag_scale[class] = example.diag_scale.map_or(0.0, |d| d[class] * scale);
            let base = (class / LANES * self.rank) * LANES + class % LANES;
            for (factor, loading) in example.loadings.row(class, scale).enumerate() {
                self.loadings[base + factor * LANES] = loading;
            }
        }
    }

    fn draw(&mut self, level: Level, plan: &Plan, at: TileAddress) {
        self.samples = at.samples;
        self.rows = at.samples.next_multiple_of(BLOCK);
        let diag_shape = Self::shape(self.padded_classes(), at);
        let factor_shape = Self::shape(self.rank, at);
        let diag = &mut self.diag_draws[..diag_shape.len()];
        let factors = &mut self.factor_draws[..factor_shape.len()];
        // Without noise the planes keep the zeros that they were made with.
        plan.fill(level, at, (diag_shape, diag), (factor_shape, factors));
        if self.rank > 0 {
            self.pack_factors();
        }
        level.run(Utilities { tile: self });
    }

    #[inline(always)]
    fn utilities<S: Simd, const N: usize>(&mut self, simd: S) {
        let (rows, rank) = (self.rows, self.rank);
        self.largest[..rows * LANES].fill(PADDING);
        let tile = self.tile.chunks_exact_mut(rows * LANES);
        let draws = self.diag_draws.chunks_exact(rows * LANES);
        for (group, (tile, draws)) in tile.zip(draws).take(self.groups).enumerate() {
            let mean = Wide::<S, N>::load(simd, &self.mean[group * LANES..]);
            let diag = Wide::<S, N>::load(simd, &self.diag_scale[group * LANES..]);
            let loadings = &self.loadings[group * rank * LANES..][..rank * LANES];
            let tile = tile.chunks_exact_mut(BLOCK * LANES);
            let draws = draws.chunks_exact(BLOCK * LANES);
            let largest = self.largest.chunks_exact_mut(BLOCK * LANES);
            for (block, ((tile, draws), largest)) in tile.zip(draws).zip(largest).enumerate() {
                let factors = &self.factor_blocks[block * rank * BLOCK..][..rank * BLOCK];
                let sums = multiply_block(simd, mean, loadings, factors);
                for row in 0..BLOCK {
                    let draw = Wide::load(simd, &draws[row * LANES..]);
                    let utility = diag.mul_add(draw, sums[row]);
                    utility.store(&mut tile[row * LANES..]);
                    let largest = &mut largest[row * LANES..];
                    utility.fold_max().max(Wide::load(simd, largest)).store(largest);
                }
            }
        }
    }

    fn utility(&self, class: usize, sample: usize) -> f32 {
        self.group(class / LANES)[sample * LANES + class % LANES]
    }

    #[inline(always)]
    fn exponentiate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        maximum: &mut [f32],
        sum: &mut [f32],
    ) {
        let rows = self.rows;
        for (maximum, lanes) in maximum.iter_mut().zip(self.largest.chunks_exact(LANES)).take(rows)
        {
            *maximum = Wide::<S, 1>::load(simd, lanes).maximum();
        }
        self.totals[..rows * LANES].fill(0.0);
        let (totals, _) = self.totals.as_chunks_mut::<LANES>();
        let (totals, maximum) = (&mut totals[..rows], &maximum[..rows]);
        for group in self.tile.chunks_exact_mut(rows * LANES).take(self.groups) {
            let entries = &mut group.as_chunks_mut::<LANES>().0[..rows];
            for row in 0..rows {
                let maximum = Wide::splat(simd, maximum[row]);
                let power = Wide::<S, N>::load(simd, &entries[row]).sub(maximum);
                let power = power.exp2_of_negative();
                power.store(&mut entries[row]);
                let total = Wide::<S, 1>::load(simd, &totals[row]);
                total.add(power.fold_sum()).store(&mut totals[row]);
            }
        }
        for (sum, lanes) in sum.iter_mut().zip(self.totals.chunks_exact(LANES)).take(rows) {
            *sum = Wide::<S, 1>::load(simd, lanes).sum();
        }
    }

    #[inline(always)]
    fn log_sum_exp<S: Simd, const N: usize>(&self, simd: S, out: &mut [f32]) {
        let rows = self.rows;
        for (row, out) in out.iter_mut().enumerate().take(rows) {
            let at = |group: usize| (group * rows + row) * LANES;
            let maximum = Wide::<S, 1>::load(simd, &self.largest[row * LANES..]).maximum();
            let largest = Wide::<S, N>::splat(simd, maximum);
            let mut total = Wide::<S, N>::splat(simd, 0.0);
            for group in 0..self.groups {
                let entry = Wide::<S, N>::load(simd, &self.tile[at(group)..]);
                total = total.add(entry.sub(largest).exp2());
            }
            *out = maximum + total.sum().log2();
        }
    }

    fn shift_class(&mut self, class: usize, sign: f32, by: &[f32]) {
        let first = class / LANES * self.rows * LANES + class % LANES;
        let entries = self.tile[first..].iter_mut().step_by(LANES);
        for (entry, by) in entries.zip(&by[..self.rows]) {
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
        self.pack_weighted(weights);
        let (rows, columns) = (self.rows, self.columns());
        let whole = self.whole_columns();
        let sums = moments.chunks_exact_mut(self.moment_stride());
        for (group, sums) in sums.enumerate() {
            let tile = &self.tile[group * rows * LANES..][..rows * LANES];
            let draws = &self.diag_draws[group * rows * LANES..][..rows * LANES];
            for first in (0..whole).step_by(BLOCK) {
                let weighted = &self.weighted[first * rows..][..BLOCK * rows];
                accumulate_block::<S, N>(simd, tile, weighted, &mut sums[first * LANES..]);
            }
            let weighted = &self.weighted[whole * rows..(columns + 1) * rows];
            let sums = &mut sums[whole * LANES..];
            match columns + 1 - whole {
                1 => accumulate_rest::<S, N, 1>(simd, tile, draws, weighted, sums),
                2 => accumulate_rest::<S, N, 2>(simd, tile, draws, weighted, sums),
                3 => accumulate_rest::<S, N, 3>(simd, tile, draws, weighted, sums),
                4 => accumulate_rest::<S, N, 4>(simd, tile, draws, weighted, sums),
                5 => accumulate_rest::<S, N, 5>(simd, tile, draws, weighted, sums),
                _ => accumulate_rest::<S, N, 6>(simd, tile, draws, weighted, sums),
            }
        }
    }

    #[inline(always)]
    fn log_mean<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], mean: &mut LogMean) {
        let lse = &lse[..self.samples];
        for group in 0..self.groups {
            let tile = self.group(group);
            let at = group * LANES;
            let before = Wide::<S, N>::load(simd, &mean.maximum[at..]);
            let mut largest = before;
            for (entry, lse) in tile.chunks_exact(LANES).zip(lse) {
                largest = largest.max(Wide::load(simd, entry).sub(Wide::splat(simd, *lse)));
            }
            // First the sum of the tile: small terms would be lost in a sum over all samples.
            let kept = Wide::load(simd, &mean.sum[at..]).mul(before.sub(largest).exp2());
            let mut sum = Wide::splat(simd, 0.0);
            for (entry, lse) in tile.chunks_exact(LANES).zip(lse) {
                let log_prob = Wide::load(simd, entry).sub(Wide::splat(simd, *lse));
                sum = sum.add(log_prob.sub(largest).exp2());
            }
            largest.store(&mut mean.maximum[at..]);
            sum.add(kept).store(&mut mean.sum[at..]);
        }
    }

    #[inline(always)]
    fn deviations<S: Simd, const N: usize>(&self, simd: S, lse: &[f32], out: &mut Deviations) {
        let lse = &lse[..self.samples];
        for group in 0..self.groups {
            let at = group * LANES;
            let origin = Wide::<S, N>::load(simd, &out.origin[at..]);
            let mut first = Wide::splat(simd, 0.0);
            let mut second = Wide::splat(simd, 0.0);
            for (entry, lse) in self.group(group).chunks_exact(LANES).zip(lse) {
                let prob = Wide::load(simd, entry).sub(Wide::splat(simd, *lse)).exp2();
                let deviation = prob.sub(origin);
                first = first.add(deviation);
                second = deviation.mul_add(deviation, second);
            }
            first.add(Wide::load(simd, &out.first[at..])).store(&mut out.first[at..]);
            second.add(Wide::load(simd, &out.second[at..])).store(&mut out.second[at..]);
        }
    }

    #[inline(always)]
    fn wins<S: Simd, const N: usize>(
        &self,
        simd: S,
        (largest, share): (&mut [f32], &mut [f32]),
        wins: &mut [f32],
    ) {
        let rows = (&mut largest[..self.samples], &mut share[..self.samples]);
        let (tile, lanes) = ((&self.tile[..], self.rows), &self.largest);
        wins::of_class_lanes::<S, N>(simd, tile, lanes, rows, wins);
    }

    #[inline(always)]
    fn backpropagate<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        lse: &[f32],
        log2_probs: &[f32],
        upstream: &[f32],
    ) {
        let rows = self.rows;
        for row in 0..rows {
            let lse = Wide::<S, N>::splat(simd, lse[row]);
            let at = |group: usize| (group * rows + row) * LANES;
            let mut total = Wide::splat(simd, 0.0);
            for group in 0..self.groups {
                let log_prob = Wide::load(simd, &self.tile[at(group)..]).sub(lse);
                let marginal = Wide::load(simd, &log2_probs[group * LANES..]);
                let upstream = Wide::load(simd, &upstream[group * LANES..]);
                total = log_prob.sub(marginal).exp2().mul_add(upstream, total);
            }
            let total = Wide::splat(simd, -total.sum());
            for group in 0..self.groups {
                let entry = &mut self.tile[at(group)..];
                let log_prob = Wide::load(simd, entry).sub(lse);
                let marginal = Wide::load(simd, &log2_probs[group * LANES..]);
                let upstream = Wide::load(simd, &upstream[group * LANES..]);
                let pull = log_prob.sub(marginal).exp2().mul(upstream);
                log_prob.exp2().mul_add(total, pull).store(entry);
            }
        }
    }

    #[inline(always)]
    fn label_slopes<S: Simd, const N: usize>(&mut self, simd: S, labels: &[f32], rows: &mut [f32]) {
        self.totals[..self.rows * LANES].fill(0.0);
        let groups = self.tile.chunks_exact_mut(self.rows * LANES).take(self.groups);
        for (group, labels) in groups.zip(labels.chunks_exact(LANES)) {
            let labels = Wide::<S, N>::load(simd, labels);
            let entries = group.chunks_exact_mut(LANES);
            for (entry, total) in entries.zip(self.totals.chunks_exact_mut(LANES)) {
                let (log_prob, slope) = label_term(simd, Wide::load(simd, entry), labels);
                slope.store(entry);
                log_prob.fold_sum().add(Wide::load(simd, total)).store(total);
            }
        }
        for (out, lanes) in rows.iter_mut().zip(self.totals.chunks_exact(LANES)).take(self.rows) {
            *out = Wide::<S, 1>::load(simd, lanes).sum();
        }
    }

    fn moment(&self, moments: &Moments, class: usize, column: usize) -> f32 {
        moments[class / LANES * self.moment_stride() + column * LANES + class % LANES]
    }
}
