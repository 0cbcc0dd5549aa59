//! What is done to the inputs before the network, learned from the training split.

use aleator_data::{DataError, Split};
use aleator_run::recipe::Normalize;
use burn::tensor::{Device, Tensor, TensorData};

/// (x − center) · scale, feature by feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// Subtracted, one number a feature.
    pub center: Vec<f32>,
    /// Multiplied, one number a feature.
    pub scale: Vec<f32>,
}

impl Normalization {
    /// Leaves inputs of this many features as they are.
    pub fn identity(width: usize) -> Self {
        Self { center: vec![0.0; width], scale: vec![1.0; width] }
    }

    /// The numbers for a split, from one pass over it.
    pub fn fit(kind: Normalize, split: &Split) -> Result<Self, DataError> {
        let width = split.inputs.shape().len();
        if kind == Normalize::None {
            return Ok(Self::identity(width));
        }
        let (mean, variance) = moments(split, width)?;
        let scale = match kind {
            Normalize::PerFeature => variance.iter().map(|v| inverse_root(*v)).collect(),
            _ => vec![inverse_root(variance.iter().sum::<f64>() / width as f64); width],
        };
        Ok(Self { center: mean.iter().map(|m| *m as f32).collect(), scale })
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
    }
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
