//! How features vary, which decides how they may be scaled.

use aleator_run::recipe::Normalize;

use crate::error::DataError;
use crate::inputs::Inputs;

/// Quantiles are those of at most this many examples, evenly spaced.
const QUANTILE_EXAMPLES: usize = 10_000;
/// The width of the middle half of a Normal with variance 1.
const MIDDLE_HALF: f64 = 1.349;
/// Where all features vary alike, within this factor, one scale suits them all.
const ALIKE: f64 = 2.0;
/// Where a standard deviation is larger by this factor than the middle half of a feature suggests,
/// its tails are heavy.
const HEAVY: f64 = 2.0;

/// How each feature of some examples varies, `[N]` each.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// Standard deviations.
    pub deviations: Vec<f64>,
    /// Standard deviations over those of a Normal with the same middle half; not finite where the
    /// middle half is one number.
    pub tails: Vec<f64>,
}

impl Variation {
    /// From two passes over these rows.
    pub fn of(inputs: &Inputs, rows: &[usize]) -> Result<Self, DataError> {
        let (_, variance) = moments(inputs, rows)?;
        let deviations: Vec<f64> = variance.into_iter().map(f64::sqrt).collect();
        let middle = quartiles(inputs, rows)?;
        let tails = deviations.iter().zip(middle).map(|(own, middle)| own / middle.spread());
        Ok(Self { tails: tails.collect(), deviations })
    }

    /// The features with the smallest and the largest standard deviation, of those that vary.
    pub fn extremes(&self) -> Option<(usize, usize)> {
        let varying = || (0..self.deviations.len()).filter(|at| self.varies(*at));
        let order = |a: &usize, b: &usize| self.deviations[*a].total_cmp(&self.deviations[*b]);
        Some((varying().min_by(order)?, varying().max_by(order)?))
    }

    /// The largest standard deviation over the smallest, of features that vary.
    pub fn range(&self) -> f64 {
        let ratio = |(low, high): (usize, usize)| self.deviations[high] / self.deviations[low];
        self.extremes().map_or(1.0, ratio)
    }

    /// Whether a feature has more than one value, as far as f32 can tell.
    pub fn varies(&self, feature: usize) -> bool {
        inverse_deviation(self.deviations[feature].powi(2)) > 0.0
    }

    /// Whether a feature has far more extreme values than a Normal with the same middle half.
    pub fn has_heavy_tails(&self, feature: usize) -> bool {
        self.tails[feature].is_finite() && self.tails[feature] > HEAVY
    }

    /// Whether the middle half of a feature that varies is one number.
    pub fn is_mostly_one_value(&self, feature: usize) -> bool {
        self.varies(feature) && !self.tails[feature].is_finite()
    }

    /// The ways to scale the features that may matter, the preferred one first.
    pub fn scales(&self, preferred: Normalize) -> Vec<Normalize> {
        let mut scales = vec![preferred];
        let differ = self.range() > ALIKE;
        let heavy = (0..self.tails.len()).any(|feature| self.has_heavy_tails(feature));
        let may_matter = [
            (differ, Normalize::Global),
            (differ, Normalize::PerFeature),
            (heavy, Normalize::Robust),
        ];
        for (_, kind) in may_matter.into_iter().filter(|(matters, _)| *matters) {
            if !scales.contains(&kind) {
                scales.push(kind);
            }
        }
        scales
    }
}

/// The middle half of a feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values is at most this.
    pub low: f32,
    /// Half of the values are at most this.
    pub median: f32,
    /// Three quarters of the values are at most this.
    pub high: f32,
}

impl Quartiles {
    /// The standard deviation of a Normal with this middle half.
    pub fn spread(&self) -> f64 {
        (self.high as f64 - self.low as f64) / MIDDLE_HALF
    }
}

/// The middle half of each feature.
pub fn quartiles(inputs: &Inputs, rows: &[usize]) -> Result<Vec<Quartiles>, DataError> {
    let width = inputs.shape().len();
    let mut columns = vec![vec![]; width];
    let mut example = vec![0.0f32; width];
    for row in rows.iter().step_by(rows.len().div_ceil(QUANTILE_EXAMPLES).max(1)) {
        inputs.read(*row, &mut example)?;
        columns.iter_mut().zip(&example).for_each(|(column, value)| column.push(*value));
    }
    let quartile = |column: &[f32], quarters: usize| column[(column.len() - 1) * quarters / 4];
    let of_column = |mut column: Vec<f32>| {
        column.sort_unstable_by(f32::total_cmp);
        let [low, median, high] = [1, 2, 3].map(|quarters| quartile(&column, quarters));
        Quartiles { low, median, high }
    };
    Ok(columns.into_iter().map(of_column).collect())
}

/// Mean and variance of each feature, by Welford's updates.
pub fn moments(inputs: &Inputs, rows: &[usize]) -> Result<(Vec<f64>, Vec<f64>), DataError> {
    let width = inputs.shape().len();
    let (mut mean, mut squares) = (vec![0.0f64; width], vec![0.0f64; width]);
    let mut example = vec![0.0f32; width];
    for (seen, row) in rows.iter().enumerate() {
        inputs.read(*row, &mut example)?;
        let weight = 1.0 / (seen + 1) as f64;
        for ((value, mean), squares) in example.iter().zip(&mut mean).zip(&mut squares) {
            let before = *value as f64 - *mean;
            *mean += weight * before;
            *squares += before * (*value as f64 - *mean);
        }
    }
    let count = rows.len().max(1) as f64;
    Ok((mean, squares.into_iter().map(|sum| sum / count).collect()))
}

/// What a feature is multiplied by to have variance 1. One that does not vary, as far as f32 can
/// tell, says nothing: it becomes zero, not infinite.
pub fn inverse_deviation(variance: f64) -> f32 {
    let root = (1.0 / variance.sqrt()) as f32;
    if root.is_finite() { root } else { 0.0 }
}
