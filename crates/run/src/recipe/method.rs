//! `method`: how the labels of a batch become a training step.

use serde::{Deserialize, Serialize};

use super::range::{MANY, count, not_negative, up_to_one};

/// `method`, with the section of its own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// `"plain"`, or no key: the likelihood of the given labels.
    #[default]
    Plain,
    /// `"bootstrapping"`: labels are mixed with what the model predicts.
    Bootstrapping {
        /// `[bootstrapping]`.
        bootstrapping: Bootstrapping,
    },
    /// `"dynamics"`: plain training that keeps, for every training example, the mean over the
    /// epochs of what was predicted for it just before each step. An audit reads it.
    Dynamics {
        /// `[dynamics]`.
        dynamics: Dynamics,
    },
}

/// `[dynamics]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dynamics {
    /// The decay of all weights counts for this many examples: it is this number over that of the
    /// training examples, whatever `[optimizer.l2]` says.
    #[serde(deserialize_with = "not_negative")]
    pub prior_examples: f64,
}

/// `[bootstrapping]` (Reed et al. 2014).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bootstrapping {
    /// The share of the given label; 1 is plain training.
    #[serde(deserialize_with = "up_to_one")]
    pub beta: f64,
    /// What the rest is.
    pub targets: BootstrapTargets,
    /// Epochs of plain training first: predictions of fresh weights are arbitrary.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub burn_in: usize,
}

/// `bootstrapping.targets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootstrapTargets {
    /// `"hard"`: the most probable class.
    Hard,
    /// `"soft"`: the predicted probabilities; the gradient passes through them, as in the paper.
    Soft,
    /// `"soft-fixed"`: the predicted probabilities as constants, as in most code.
    SoftFixed,
}
