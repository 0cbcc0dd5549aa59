//! What a head computes and how its likelihood is estimated.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// What of the noise depends on the input, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "lowercase"))]
pub enum Noise {
    /// None: plain softmax or sigmoid ("Hom."). In recipes `"none"`.
    None,
    /// A scale for each class ("Het. Diag"). In recipes `"diagonal"`.
    Diagonal,
    /// Correlated noise, its loadings from the input ("Het. Full"). In recipes `"full"`.
    #[cfg_attr(feature = "serde", serde(rename = "full"))]
    LowRank {
        /// R.
        rank: usize,
    },
    /// Correlated noise with shared loadings, scaled by class from the input ("Het. PE"). In
    /// recipes `"shared"`.
    #[cfg_attr(feature = "serde", serde(rename = "shared"))]
    SharedLowRank {
        /// R.
        rank: usize,
    },
    /// Correlated noise on the features, with shared loadings that are scaled by feature from the
    /// input ("HET-XL"): its parameters do not depend on the number of classes. In recipes `"xl"`.
    #[cfg_attr(feature = "serde", serde(rename = "xl"))]
    OnFeatures {
        /// R.
        rank: usize,
    },
}

impl Noise {
    /// R, where the noise has factors.
    pub fn rank(self) -> Option<usize> {
        match self {
            Self::None | Self::Diagonal => None,
            Self::LowRank { rank } | Self::SharedLowRank { rank } | Self::OnFeatures { rank } => {
                Some(rank)
            }
        }
    }

    /// The same noise with another R; noise without factors stays as it is.
    pub fn with_rank(self, rank: usize) -> Self {
        match self {
            Self::None | Self::Diagonal => self,
            Self::LowRank { .. } => Self::LowRank { rank },
            Self::SharedLowRank { .. } => Self::SharedLowRank { rank },
            Self::OnFeatures { .. } => Self::OnFeatures { rank },
        }
    }
}

/// What turns a utility into a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "lowercase"))]
pub enum Link {
    /// One class is right.
    Softmax,
    /// Each class is on or off by itself; computed in closed form, without samples.
    Sigmoid,
}

/// Which probability of the labels of an example training maximises, and how it is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "kebab-case"))]
pub enum Likelihood {
    /// That of each label by itself: of the one label by sampling under [`Link::Softmax`], the
    /// product over the classes in closed form under [`Link::Sigmoid`].
    #[default]
    Marginal,
    /// That of all labels together, by sampling, under [`Link::Sigmoid`]: it depends on the
    /// covariances between classes, and learns them.
    Joint,
    /// That of one label under [`Link::Softmax`] by its second-order expansion, without samples, as
    /// in the paper's appendix.
    Expansion,
    /// The same by the expansion of the logarithm, normalised: a distribution for noise of any size.
    LogExpansion,
}

impl Likelihood {
    /// The link that it is for; `None` for either.
    pub fn link(self) -> Option<Link> {
        match self {
            Self::Marginal => None,
            Self::Joint => Some(Link::Sigmoid),
            Self::Expansion | Self::LogExpansion => Some(Link::Softmax),
        }
    }
}

/// How d(x) comes from its dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "lowercase"))]
pub enum DiagScale {
    /// As it is; only d² matters (the paper).
    Affine,
    /// softplus(·) + 10⁻³ (the reference code; deviation D5).
    Softplus,
}

/// How Monte Carlo noise is drawn. Every kind is unbiased; they differ in variance and cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "lowercase"))]
pub enum Draws {
    /// Every sample on its own, as in the paper.
    Independent,
    /// Samples in pairs (ε, −ε): half the normals to draw, and a smaller variance.
    Antithetic,
    /// Points of an Owen-scrambled Sobol' sequence: by far the smallest variance for few classes.
    ///
    /// Covers factors and classes together up to 4096 of them; beyond that the factors alone, and
    /// the classes' own noise is independent.
    Sobol,
}

/// The distribution of a class's own noise, in its standard form.
///
/// What classes share, V ε_R, is Normal under all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "lowercase"))]
pub enum NoiseLaw {
    /// Mean 0, variance 1: the model of the paper.
    Normal,
    /// P(ε < x) = exp(−e^−x): the class of the largest utility then has the softmax as its law.
    Gumbel,
    /// P(ε < x) = 1/(1 + e^−x): the sign of a utility then has the sigmoid as its law.
    Logistic,
}
