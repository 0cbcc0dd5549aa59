//! Examples that are much farther from their nearest neighbours than these are from theirs.
//!
//! The score of an example is the logarithm l of that ratio, so that dense and sparse classes are
//! treated alike. How large it is by chance depends on the data. So a tail is fitted,
//! P(l > x) = ½ exp(−((x − median)/s)^b), through the upper quartile and the upper tenth, with b
//! from 1 (as of a Normal in two dimensions, or heavy tails) to 2 (as of a Normal in many). Listed
//! are as many examples as keep the expected share of chance among them below a tenth (Benjamini
//! and Hochberg).

use aleator_layers::neighbours::Neighbours;

/// Fewer examples do not say how distances are distributed.
const LEAST: usize = 100;
/// The expected share of the listed examples that are there by chance.
const BY_CHANCE: f64 = 0.1;
/// The powers b of the tail.
const POWERS: [f64; 2] = [1.0, 2.0];

/// What is found.
pub(super) struct Outliers {
    /// Examples and their ratios, the largest first.
    pub members: Vec<(usize, f64)>,
}

impl Outliers {
    pub fn find(found: &Neighbours) -> Self {
        let ratios = ratios(found);
        let mut sorted: Vec<f64> = ratios.iter().map(|(_, ratio)| ratio.ln()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(tail) = Tail::fit(&sorted) else { return Self { members: vec![] } };
        let total = sorted.len() as f64;
        let mut from_top = sorted.iter().rev().enumerate();
        let is_rare = |at: usize, log: f64| total * tail.above(log) <= BY_CHANCE * (at + 1) as f64;
        let listed = from_top.rfind(|(at, log)| is_rare(*at, **log));
        let listed = listed.map_or(f64::INFINITY, |(_, log)| *log);
        // At the rim of a dense cluster the ratio is large though others are near. What is nearer
        // to its neighbours than most examples belongs to them.
        let mut means: Vec<f64> = ratios.iter().map(|(mean, _)| *mean).collect();
        means.sort_unstable_by(f64::total_cmp);
        let usual = quantile(&means, 0.5);
        let is_listed =
            |(_, (mean, ratio)): &(usize, &(f64, f64))| ratio.ln() >= listed && *mean > usual;
        let all = ratios.iter().enumerate().filter(is_listed);
        let mut members: Vec<(usize, f64)> = all.map(|(at, (_, ratio))| (at, *ratio)).collect();
        members.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Self { members }
    }
}

/// Of each example, the mean distance to its neighbours, and that over the median of theirs.
fn ratios(found: &Neighbours) -> Vec<(f64, f64)> {
    if found.count == 0 {
        return vec![];
    }
    let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
    let means: Vec<f64> = found.distances.chunks_exact(found.count).map(mean).collect();
    // Copies of one example are no distance apart; what is near them is not infinitely far.
    let least = means.iter().copied().filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min);
    let ratio = |(own, near): (&f64, &[u32])| {
        let mut theirs: Vec<f64> = near.iter().map(|at| means[*at as usize].max(least)).collect();
        theirs.sort_unstable_by(f64::total_cmp);
        (*own, own.max(least) / quantile(&theirs, 0.5))
    };
    if least == f64::INFINITY {
        return vec![];
    }
    means.iter().zip(found.indices.chunks_exact(found.count)).map(ratio).collect()
}

/// The upper half of a distribution.
struct Tail {
    median: f64,
    scale: f64,
    power: f64,
}

impl Tail {
    /// `None` where the upper half is almost one number, or too few are given.
    fn fit(sorted: &[f64]) -> Option<Self> {
        let median = quantile(sorted, 0.5);
        let [quartile, tenth] = [0.75, 0.9].map(|share| quantile(sorted, share) - median);
        if sorted.len() < LEAST || quartile <= 0.0 {
            return None;
        }
        // P(l > x) is a quarter at the one, a tenth at the other.
        let (two, five) = (2f64.ln(), 5f64.ln());
        let power = (five / two).ln() / (tenth / quartile).ln();
        let power = if power.is_nan() { POWERS[1] } else { power.clamp(POWERS[0], POWERS[1]) };
        Some(Self { median, scale: tenth / five.powf(1.0 / power), power })
    }

    /// P(l > x).
    fn above(&self, x: f64) -> f64 {
        0.5 * (-((x - self.median).max(0.0) / self.scale).powf(self.power)).exp()
    }
}

/// The value below which a share of sorted values is; NaN if there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}
