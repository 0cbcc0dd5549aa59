//! Groups of examples with features that are identical, or far nearer than chance brings them.
//!
//! Where examples are spread evenly over m dimensions around a point, the share r of its nearest
//! among its k nearest distances has P(r ≤ t) = 1 − (1 − t^m)^(k−1). The dimension m is that for
//! which the median and the lower quartile of r come out as they are; near duplicates of fewer
//! than a quarter of all examples do not change it much. A pair is a near duplicate if not even
//! one in twenty data sets of this size would have such a pair by chance.

use aleator_layers::neighbours::Neighbours;

use super::outliers::quantile;

/// k: distances are compared with that to this neighbour.
pub(super) const REFERENCE: usize = 10;
/// Fewer examples do not say how distances are distributed.
const LEAST: usize = 100;
/// The expected number of pairs that are listed by chance.
const BY_CHANCE: f64 = 0.05;
/// However unlikely the distance is, it is not that of near duplicates above this share.
const MOST: f64 = 0.5;

/// Examples with their distances to the nearest of the group, as shares of those to their tenth
/// neighbour.
pub(super) type Group = Vec<(usize, f64)>;

/// What is found.
pub(super) struct Duplicates {
    /// The tightest first.
    pub groups: Vec<Group>,
    /// Up to this share pairs are near duplicates.
    pub ratio: f64,
    /// m.
    pub dimension: Option<f64>,
}

impl Duplicates {
    pub fn find(features: &[f32], width: usize, found: &Neighbours) -> Self {
        let examples = features.len() / width;
        let (mut sets, mut distances) = (Sets::new(examples), vec![f64::INFINITY; examples]);
        for (a, b) in identical(features, width) {
            sets.join(a, b);
            (distances[a], distances[b]) = (0.0, 0.0);
        }
        let scale = Scale::of(found, examples);
        for at in 0..examples {
            let own = at * found.count..(at + 1) * found.count;
            for (other, distance) in found.indices[own.clone()].iter().zip(&found.distances[own]) {
                let other = *other as usize;
                let reference = scale.reference[at].min(scale.reference[other]);
                if *distance > scale.ratio * reference || reference == 0.0 {
                    continue;
                }
                sets.join(at, other);
                for one in [at, other] {
                    distances[one] = distances[one].min(distance / scale.reference[one]);
                }
            }
        }
        let Scale { ratio, dimension, .. } = scale;
        Self { groups: sets.groups(&distances), ratio, dimension }
    }
}

/// Pairs that join all examples with identical features.
fn identical(features: &[f32], width: usize) -> Vec<(usize, usize)> {
    let row = |at: usize| &features[at * width..(at + 1) * width];
    // The sum with 0 makes the negative zero the positive one.
    let bits = |at: usize| row(at).iter().map(|value| (value + 0.0).to_bits());
    let mut order: Vec<usize> = (0..features.len() / width).collect();
    order.sort_by(|a, b| bits(*a).cmp(bits(*b)).then(a.cmp(b)));
    let pairs = order.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|(a, b)| bits(*a).eq(bits(*b))).collect()
}

/// What distances are usual.
struct Scale {
    /// The distance of each example to its tenth neighbour; 0 where there is none.
    reference: Vec<f64>,
    ratio: f64,
    dimension: Option<f64>,
}

impl Scale {
    fn of(found: &Neighbours, examples: usize) -> Self {
        if found.count < REFERENCE {
            return Self { reference: vec![0.0; examples], ratio: 0.0, dimension: None };
        }
        let rows = found.distances.chunks_exact(found.count);
        let reference: Vec<f64> = rows.clone().map(|row| row[REFERENCE - 1]).collect();
        let nearest = rows.zip(&reference).filter(|(row, _)| row[0] > 0.0);
        let mut shares: Vec<f64> = nearest.map(|(row, reference)| row[0] / reference).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let others = (REFERENCE - 1) as f64;
        // Where distances are few whole numbers, many neighbours are equally far: no dimension.
        let of_quantile = |share: f64| {
            let log = quantile(&shares, share).ln();
            (log < 0.0).then(|| (1.0 - (1.0 - share).powf(1.0 / others)).ln() / log)
        };
        let dimension = match shares.len() >= LEAST {
            true => of_quantile(0.5).zip(of_quantile(0.25)).map(|(a, b)| a.min(b)),
            false => None,
        };
        let by_chance = BY_CHANCE / (examples as f64 * others);
        let ratio = dimension.map_or(0.0, |dimension| by_chance.powf(1.0 / dimension).min(MOST));
        Self { reference, ratio, dimension }
    }
}

/// Sets of examples that are joined.
struct Sets {
    /// Another member of the same set, nearer to its first; the first has itself.
    parents: Vec<usize>,
}

impl Sets {
    fn new(examples: usize) -> Self {
        Self { parents: (0..examples).collect() }
    }

    fn first(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// The sets of at least two, each in the order of the data; the tightest first.
    fn groups(mut self, distances: &[f64]) -> Vec<Group> {
        let mut members = vec![vec![]; self.parents.len()];
        for (at, distance) in distances.iter().enumerate() {
            members[self.first(at)].push((at, *distance));
        }
        members.retain(|group| group.len() > 1);
        let nearest = |group: &[(usize, f64)]| {
            group.iter().map(|(_, distance)| *distance).fold(f64::INFINITY, f64::min)
        };
        members.sort_by(|a, b| nearest(a).total_cmp(&nearest(b)).then(a[0].0.cmp(&b[0].0)));
        members
    }
}
