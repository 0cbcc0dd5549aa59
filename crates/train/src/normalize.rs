//! What is done to the inputs before the network, learned from the training split.

use aleator_data::variation::{inverse_deviation, moments, quartiles};
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
        let (mean, variance) = moments(&split.inputs, &split.rows)?;
        if kind == Normalize::Robust {
            let features = quartiles(&split.inputs, &split.rows)?.into_iter().zip(variance);
            let (center, scale) = features
                .map(|(own, variance)| {
                    let spread = own.spread();
                    let square = if spread > 0.0 { spread * spread } else { variance };
                    (own.median, inverse_deviation(square))
                })
                .unzip();
            return Ok(Self { center, scale, squash: true });
        }
        let scale = match kind {
            Normalize::PerFeature => variance.iter().map(|v| inverse_deviation(*v)).collect(),
            _ => vec![inverse_deviation(variance.iter().sum::<f64>() / width as f64); width],
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
