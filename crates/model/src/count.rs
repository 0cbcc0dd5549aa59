//! How many numbers a model learns, before there is a model.

use crate::classifier::ClassifierConfig;
use crate::head::{HeadTemperature, Noise};

/// How many numbers each part of a [`Classifier`](crate::Classifier) learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterCounts {
    /// The layers before the head.
    pub network: usize,
    /// The layer of μ(x).
    pub mean: usize,
    /// The layer of d(x).
    pub diag_scale: usize,
    /// V: the layer of V(x), or the matrix that all examples share.
    pub loadings: usize,
    /// The layer of v(x), by which shared loadings are scaled.
    pub loading_scale: usize,
    /// 1 where τ is learned.
    pub temperature: usize,
}

impl ParameterCounts {
    /// All of them; `None` where they are more than a machine can count.
    pub fn total(&self) -> Option<usize> {
        let Self { network, mean, diag_scale, loadings, loading_scale, temperature } = *self;
        [network, mean, diag_scale, loadings, loading_scale, temperature]
            .into_iter()
            .try_fold(0_usize, usize::checked_add)
    }
}

impl ClassifierConfig {
    /// How many numbers each part learns, without making any; `None` where a part has more than a
    /// machine can count.
    ///
    /// ```
    /// # use aleator_model::*;
    /// # let output = HetLinearConfig {
    /// #     feature_dim: 8, classes: 3, noise: Noise::Diagonal, link: Link::Softmax,
    /// #     likelihood: Likelihood::Marginal,
    /// #     temperature: HeadTemperature::Fixed(Temperature::try_from(1.0).unwrap()),
    /// #     diag_scale: DiagScale::Softplus, samples: 100, draws: Draws::Antithetic, seed: 0,
    /// # };
    /// let backbone = BackboneConfig::Mlp { inputs: 4, hidden: vec![8] };
    /// let config = ClassifierConfig { backbone, output, frozen: false };
    /// // A hidden layer, and two layers of the head.
    /// assert_eq!(config.parameters().unwrap().total(), Some((4 + 1) * 8 + 2 * (8 + 1) * 3));
    /// ```
    pub fn parameters(&self) -> Option<ParameterCounts> {
        let (features, classes) = (self.output.feature_dim, self.output.classes);
        let layer = dense(features, classes)?;
        let mut counts = ParameterCounts {
            network: self.backbone.parameters()?,
            mean: layer,
            temperature: matches!(self.output.temperature, HeadTemperature::Learned { .. }).into(),
            ..ParameterCounts::default()
        };
        match self.output.noise {
            Noise::None => {}
            Noise::OnFeatures { .. } => counts.diag_scale = dense(features, features)?,
            _ => counts.diag_scale = layer,
        }
        match self.output.noise {
            Noise::None | Noise::Diagonal => {}
            Noise::LowRank { rank } => {
                counts.loadings = dense(features, classes.checked_mul(rank)?)?;
            }
            Noise::SharedLowRank { rank } => {
                counts.loadings = classes.checked_mul(rank)?;
                counts.loading_scale = layer;
            }
            Noise::OnFeatures { rank } => {
                counts.loadings = features.checked_mul(rank)?;
                counts.loading_scale = dense(features, features)?;
            }
        }
        Some(counts)
    }
}

/// The numbers of a dense layer.
fn dense(from: usize, to: usize) -> Option<usize> {
    from.checked_add(1)?.checked_mul(to)
}

/// The numbers of dense layers one after the other.
pub(crate) fn dense_chain(inputs: usize, widths: &[usize]) -> Option<usize> {
    let layers = std::iter::once(&inputs).chain(widths).zip(widths);
    layers.map(|(from, to)| dense(*from, *to)).try_fold(0_usize, |sum, own| sum.checked_add(own?))
}
