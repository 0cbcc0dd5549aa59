//! What is done to the inputs before the network, learned from the training split.

use aleator_data::{DataError, Split};
use aleator_run::recipe::Normalize;
use burn::tensor::{Device, Tensor, TensorData};

/// (x − center) · scale, feature by feature, and of that asinh where tails are heavy.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// Subtracted, one number a feature.
    pub center: Vec<f32>,
    /// Multiplied, one number a feature.
    pub scale: Vec<f32>,
    /// Whether asinh is taken, which grows as the logarithm does.
    pub squash: bool,
}

/// Quantiles are those of at most this many examples, evenly spaced.
const QUANTILE_EXAMPLES: usize = 10_000;

/// The width of the middle half of a Normal with variance 1.
const MIDDLE_HALF: f64 = 1.349;

impl Normalization {
    /// Leaves inputs of this many features as they are.
    pub fn identity(width: usize) -> Self {
        Self { center: vec![0.0; width], scale: vec![1.0; width], squash: false }
    }

    /// The numbers for a split, from one pass over it.
    pub fn fit(kind: Normalize, split: &Split) -> Result<Self, DataError> {
        let width = split.inputs.shape().len();
        if kind == Normalize::None {
            return Ok(Self::identity(width));
        }
        let (mean, variance) = moments(split, width)?;
        if kind == Normalize::Robust {
            let features = quartiles(split, width)?.into_iter().zip(variance);
            let (center, scale) = features
                .map(|(own, variance)| {
                    let spread = own.spread();
                    let square = if spread > 0.0 { spread * spread } else { variance };
                    (own.median, inverse_root(square))
                })
                .unzip();
            return Ok(Self { center, scale, squash: true });
        }
        let scale = match kind {
            Normalize::PerFeature => variance.iter().map(|v| inverse_root(*v)).collect(),
            _ => vec![inverse_root(variance.iter().sum::<f64>() / width as f64); width],
        };
        let center = mean.iter().map(|m| *m as f32).collect();
        Ok(Self { center, scale, squash: false })
    }

    /// Examples that stand one after the other, as a network takes them: normalised, [B, N].
    pub(crate) fn tensor(&self, mut inputs: Vec<f32>, device: &Device) -> Tensor<2> {
        self.apply(&mut inputs);
        let width = self.center.len();
        let shape = [inputs.len() / width, width];
        Tensor::from_data(TensorData::new(inputs, shape), device)
    }

    /// Normalises examples that stand one after the other.
    pub fn apply(&self, inputs: &mut [f32]) {
        for example in inputs.chunks_exact_mut(self.center.len()) {
            for ((value, center), scale) in example.iter_mut().zip(&self.center).zip(&self.scale) {
                *value = (*value - center) * scale;
            }
        }
        if self.squash {
            inputs.iter_mut().for_each(|value| *value = value.asinh());
        }
    }
}

/// The middle half of a feature.
struct Quartiles {
    low: f32,
    median: f32,
    high: f32,
}

impl Quartiles {
    /// The standard deviation of a Normal with this middle half.
    fn spread(&self) -> f64 {
        (self.high as f64 - self.low as f64) / MIDDLE_HALF
    }
}

/// How the features of a split vary, as far as it decides how to scale them.
pub(crate) struct Variation {
    /// The largest standard deviation over the smallest, of features that vary.
    pub range: f64,
    /// The largest standard deviation over that of a Normal with the same middle half.
    pub tails: f64,
}

impl Variation {
    /// From two passes over the split.
    pub fn of(split: &Split) -> Result<Self, DataError> {
        let width = split.inputs.shape().len();
        let (_, variance) = moments(split, width)?;
        let deviations: Vec<f64> = variance.into_iter().map(f64::sqrt).collect();
        let varying = deviations.iter().copied().filter(|own| inverse_root(own * own) > 0.0);
        let (low, high) =
            varying.fold((f64::INFINITY, 0.0f64), |(low, high), own| (low.min(own), high.max(own)));
        let pairs = quartiles(split, width)?.into_iter().zip(deviations);
        let tails = pairs.map(|(own, deviation)| deviation / own.spread());
        let tails = tails.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max);
        Ok(Self { range: if high > 0.0 { high / low } else { 1.0 }, tails })
    }
}

fn quartiles(split: &Split, width: usize) -> Result<Vec<Quartiles>, DataError> {
    let rows = split.rows.iter().step_by(split.len().div_ceil(QUANTILE_EXAMPLES).max(1));
    let mut columns = vec![vec![]; width];
    let mut example = vec![0.0f32; width];
    for row in rows {
        split.inputs.read(*row, &mut example)?;
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

/// A feature that does not vary, as far as f32 can tell, says nothing: it becomes zero, not
/// infinite.
fn inverse_root(variance: f64) -> f32 {
    let root = (1.0 / variance.sqrt()) as f32;
    if root.is_finite() { root } else { 0.0 }
}

/// Mean and variance of each feature, by Welford's updates.
fn moments(split: &Split, width: usize) -> Result<(Vec<f64>, Vec<f64>), DataError> {
    let (mut mean, mut squares) = (vec![0.0f64; width], vec![0.0f64; width]);
    let mut example = vec![0.0f32; width];
    for (seen, row) in split.rows.iter().enumerate() {
        split.inputs.read(*row, &mut example)?;
        let weight = 1.0 / (seen + 1) as f64;
        for ((value, mean), squares) in example.iter().zip(&mut mean).zip(&mut squares) {
            let before = *value as f64 - *mean;
            *mean += weight * before;
            *squares += before * (*value as f64 - *mean);
        }
    }
    let count = split.rows.len().max(1) as f64;
    Ok((mean, squares.into_iter().map(|sum| sum / count).collect()))
}
