//! `method`: how the labels of a batch become a training step.

/// `method`, with the section of its own settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// `"plain"`, or no key: the likelihood of the given labels.
    Plain,
    /// `"bootstrapping"`: labels are mixed with what the model predicts.
    Bootstrapping(Bootstrapping),
}

/// `[bootstrapping]` (Reed et al. 2014).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrapping {
    /// The share of the given label; 1 is plain training.
    pub beta: f64,
    /// What the rest is.
    pub targets: BootstrapTargets,
    /// Epochs of plain training first: predictions of fresh weights are arbitrary.
    pub burn_in: usize,
}

/// `bootstrapping.targets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootstrapTargets {
    /// `"hard"`: the most probable class.
    Hard,
    /// `"soft"`: the predicted probabilities; the gradient passes through them, as in the paper.
    Soft,
    /// `"soft-fixed"`: the predicted probabilities as constants, as in most code.
    SoftFixed,
}
