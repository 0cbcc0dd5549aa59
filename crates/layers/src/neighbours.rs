//! The nearest neighbours of every point by Euclidean distance, over plain row-major slices.
//!
//! Points are compared by products of matrices: the nearest y of x has the largest
//! `x·y − ‖y‖²/2`, where both are taken from their mean. That difference of large numbers only
//! chooses candidates; their distances are recomputed from the differences of the coordinates in
//! f64.
//!
//! Where all products would take too long, candidates are chosen in fewer dimensions
//! (`subspace`) and ranked in all of them.

mod shortlist;
mod subspace;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::dense::{DenseShape, forward, prefetch};
use shortlist::{Offers, Shortlist};
use subspace::Subspace;

/// The nearest neighbours of N points, k of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// k: less than asked for only where there are fewer other points.
    pub count: usize,
    /// Which points, `[N, k]`, the nearest first; of equally near ones the first.
    pub indices: Vec<u32>,
    /// How far away they are, `[N, k]`.
    pub distances: Vec<f64>,
    /// How many points each was compared with, itself included: N, or fewer where N is very large.
    pub compared: usize,
}

/// Up to this many multiplications all products are taken in all dimensions: about two seconds
/// on two cores.
const EXACT_WORK: usize = 3 << 36;
/// More pairs than these are not compared: each point is then compared with a sample of the others.
const PAIRS: usize = 1 << 34;
/// Candidates are chosen in at least this many coordinates; in more where the work allows it.
const COORDINATES: usize = 64;
/// Candidates that are ranked in all dimensions. In 64 of the 256 dimensions of features of
/// CIFAR-10, 128 candidates hold 99 % of the ten nearest neighbours.
const KEPT: usize = 128;
/// Candidates beyond k where products are exact but for rounding.
const SPARE: usize = 8;

/// Points that are compared by one task at a time: their products stay in the L2 cache.
const QUERIES: usize = 192;
/// Points that they are compared with at a time.
const CHUNK: usize = 256;

/// The `count` nearest neighbours of every point.
///
/// Exact for up to 2·10¹¹ multiplications, as for 28,000 points of 256 dimensions. With more work,
/// candidates are chosen in fewer dimensions; points that are equal or almost so are still found.
/// Beyond 2³⁴ pairs, as of 131,072 points, each point is compared with a sample of the others.
///
/// # Shapes
/// `points` `[N, D]`, all finite and their squares too.
///
/// ```
/// let points = [0.0, 10.0, 1.0, 12.0]; // four points on a line
/// let found = aleator_layers::neighbours::nearest(&points, 1, 2);
/// assert_eq!(found.indices, [2, 1, 3, 2, 0, 1, 1, 2]);
/// assert_eq!(found.distances[..4], [1.0, 10.0, 2.0, 9.0]);
/// ```
pub fn nearest(points: &[f32], width: usize, count: usize) -> Neighbours {
    let points = &Points::new(points, width);
    let total = points.len();
    let others = sample(total, PAIRS / total.max(1));
    let affordable = EXACT_WORK / total.saturating_mul(others.len()).max(1);
    let depth = affordable.max(COORDINATES);
    if width <= depth {
        search(points, points, &others, (count, count + SPARE))
    } else {
        search_projected(points, depth, &others, count)
    }
}

/// [`nearest`] with all products in all dimensions, however long that takes.
pub fn exact(points: &[f32], width: usize, count: usize) -> Neighbours {
    let points = &Points::new(points, width);
    search(points, points, &sample(points.len(), usize::MAX), (count, count + SPARE))
}

/// [`nearest`] with candidates chosen in fewer dimensions, however few points there are.
pub fn projected(points: &[f32], width: usize, count: usize) -> Neighbours {
    let points = &Points::new(points, width);
    let others = sample(points.len(), usize::MAX);
    search_projected(points, COORDINATES.min(width), &others, count)
}

/// Points and their mean.
struct Points<'a> {
    /// `[N, D]`.
    values: &'a [f32],
    /// `[D]`.
    mean: Vec<f32>,
}

impl<'a> Points<'a> {
    fn new(values: &'a [f32], width: usize) -> Self {
        assert!(
            width > 0 && values.len().is_multiple_of(width),
            "points must be [N, D], D = {width}"
        );
        let rows = values.len() / width;
        assert!(u32::try_from(rows).is_ok(), "{rows} points are more than 32 bits can number");
        let mut sums = vec![0.0f64; width];
        for row in values.chunks_exact(width) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let mean = sums.iter().map(|sum| (sum / rows.max(1) as f64) as f32).collect();
        Self { values, mean }
    }

    fn len(&self) -> usize {
        self.values.len() / self.mean.len()
    }

    fn row(&self, at: usize) -> &'a [f32] {
        let width = self.mean.len();
        &self.values[at * width..(at + 1) * width]
    }

    /// A point less the mean.
    fn centred(&self, at: usize) -> impl Iterator<Item = f32> {
        self.row(at).iter().zip(&self.mean).map(|(value, mean)| value - mean)
    }
}

/// All points, or as many as `most` that are chosen by hashes of their indices; ascending.
fn sample(total: usize, most: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..total as u32).collect();
    if total > most {
        all.sort_by_cached_key(|index| hash(u64::from(*index)));
        all.truncate(most);
        all.sort_unstable();
    }
    all
}

/// A fixed pseudo-random number for each index (the finaliser of SplitMix64).
fn hash(index: u64) -> u64 {
    let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn search_projected(points: &Points, depth: usize, others: &[u32], count: usize) -> Neighbours {
    let coordinates = Subspace::of(points, depth).coordinates(points);
    let kept = KEPT.max(2 * count);
    search(points, &Points::new(&coordinates, depth), others, (count, kept))
}

/// Keeps the best candidates of every point by `coordinates`, and of these the nearest by `points`.
fn search(
    points: &Points,
    coordinates: &Points,
    others: &[u32],
    (count, kept): (usize, usize),
) -> Neighbours {
    let total = points.len();
    // Each point may be among the others, and is not its own neighbour.
    let count = count.min(others.len().saturating_sub(1));
    let mut found = Neighbours {
        count,
        indices: vec![0; total * count],
        distances: vec![0.0; total * count],
        compared: others.len(),
    };
    if count == 0 {
        return found;
    }
    let chunks: Vec<Chunk> =
        others.par_chunks(CHUNK).map(|members| Chunk::new(coordinates, members)).collect();
    let tasks = found.indices.par_chunks_mut(QUERIES * count);
    let tasks = tasks.zip(found.distances.par_chunks_mut(QUERIES * count)).enumerate();
    tasks.for_each(|(task, (indices, distances))| {
        let first = task * QUERIES;
        let lists = candidates(coordinates, first..total.min(first + QUERIES), &chunks, kept);
        let rows = indices.chunks_exact_mut(count).zip(distances.chunks_exact_mut(count));
        for ((at, list), (indices, distances)) in (first..).zip(lists).zip(rows) {
            let ranked = ranked(points, at, &list, count);
            for ((index, distance), (near, square)) in indices.iter_mut().zip(distances).zip(ranked)
            {
                (*index, *distance) = (near, square.sqrt());
            }
        }
    });
    found
}

/// Some points that others are compared with.
struct Chunk<'a> {
    members: &'a [u32],
    /// Their coordinates, `[D, members]`.
    columns: Vec<f32>,
    /// −‖y‖²/2 of each.
    bias: Vec<f32>,
}

impl<'a> Chunk<'a> {
    fn new(coordinates: &Points, members: &'a [u32]) -> Self {
        let mut columns = vec![0.0; coordinates.mean.len() * members.len()];
        let mut bias = vec![0.0; members.len()];
        for (column, member) in members.iter().enumerate() {
            let row: Vec<f32> = coordinates.centred(*member as usize).collect();
            for (step, value) in row.iter().enumerate() {
                columns[step * members.len() + column] = *value;
            }
            bias[column] = (-0.5 * square(&row)) as f32;
        }
        Self { members, columns, bias }
    }
}

/// ‖x‖².
fn square(row: &[f32]) -> f64 {
    row.iter().map(|value| f64::from(*value) * f64::from(*value)).sum()
}

/// The best candidates of some points, in no order.
fn candidates(
    coordinates: &Points,
    queries: Range<usize>,
    chunks: &[Chunk],
    kept: usize,
) -> Vec<Vec<u32>> {
    let depth = coordinates.mean.len();
    let features: Vec<f32> = queries.clone().flat_map(|at| coordinates.centred(at)).collect();
    let mut lists: Vec<Shortlist> = queries.clone().map(|_| Shortlist::new(kept)).collect();
    let mut products = vec![0.0; queries.len() * CHUNK];
    for chunk in chunks {
        let outputs = chunk.members.len();
        let shape = DenseShape { batch: queries.len(), inputs: depth, outputs };
        let products = &mut products[..queries.len() * outputs];
        forward(&features, &chunk.columns, Some(&chunk.bias), products, shape);
        let rows = queries.clone().zip(&mut lists).zip(products.chunks_exact(outputs));
        let rows = rows.map(|((query, list), row)| (query as u32, list, row));
        Arch::new().dispatch(Offers { members: chunk.members, rows });
    }
    lists.into_iter().map(|list| list.best.into_iter().map(|(_, index)| index).collect()).collect()
}

/// The nearest of some candidates with their squared distances, the nearest first. Squares in f32
/// dismiss most of them; the rest is ranked in f64.
fn ranked(points: &Points, at: usize, candidates: &[u32], count: usize) -> Vec<(u32, f64)> {
    let own = points.row(at);
    let mut near: Vec<(u32, f32)> = candidates.iter().map(|index| (*index, 0.0)).collect();
    if near.len() > count + SPARE {
        let found = &mut near[..];
        Arch::new().dispatch(RoughDistances { points, own, found });
        let order = |a: &(u32, f32), b: &(u32, f32)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        near.select_nth_unstable_by(count + SPARE - 1, order);
        near.truncate(count + SPARE);
    }
    let mut found: Vec<(u32, f64)> = near.iter().map(|(index, _)| (*index, 0.0)).collect();
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (index, square) in &mut found {
                *square = squared_distance(own, points.row(*index as usize));
            }
        },
    );
    found.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    found.truncate(count);
    found
}

/// ‖x − y‖² in f32 from one point to some others.
struct RoughDistances<'a> {
    points: &'a Points<'a>,
    own: &'a [f32],
    found: &'a mut [(u32, f32)],
}

impl WithSimd for RoughDistances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { points, own, found } = self;
        let (own, own_rest) = S::as_simd_f32s(own);
        let (own, own_odd) = own.as_chunks::<4>();
        for at in 0..found.len() {
            if let Some((ahead, _)) = found.get(at + AHEAD) {
                let ahead = points.row(*ahead as usize);
                (0..ahead.len()).step_by(LINE).for_each(|line| prefetch(ahead, line));
            }
            let (other, rest) = S::as_simd_f32s(points.row(found[at].0 as usize));
            let (other, odd) = other.as_chunks::<4>();
            let square = |a: S::f32s, b: S::f32s, sum: S::f32s| {
                let difference = simd.sub_f32s(a, b);
                simd.mul_add_e_f32s(difference, difference, sum)
            };
            // Four sums, as one would wait for itself.
            let zero = simd.splat_f32s(0.0);
            let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
            for (own, other) in own.iter().zip(other) {
                a = square(own[0], other[0], a);
                b = square(own[1], other[1], b);
                c = square(own[2], other[2], c);
                d = square(own[3], other[3], d);
            }
            for (own, other) in own_odd.iter().zip(odd) {
                a = square(*own, *other, a);
            }
            let sum = simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d));
            let rest = own_rest.iter().zip(rest).map(|(own, other)| (own - other) * (own - other));
            found[at].1 = simd.reduce_sum_f32s(sum) + rest.sum::<f32>();
        }
    }
}

/// How many candidates before its turn a point is fetched from memory.
const AHEAD: usize = 2;
/// Numbers in a cache line.
const LINE: usize = 16;

/// ‖x − y‖² in f64, in a fixed order that vector units can follow.
#[inline(always)]
fn squared_distance(x: &[f32], y: &[f32]) -> f64 {
    let mut sums = [0.0f64; 8];
    let (x_lanes, y_lanes) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest = x_lanes.remainder().iter().zip(y_lanes.remainder());
    let rest: f64 = rest.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
    for (x, y) in x_lanes.zip(y_lanes) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            let difference = f64::from(*x) - f64::from(*y);
            *sum += difference * difference;
        }
    }
    sums.iter().sum::<f64>() + rest
}
