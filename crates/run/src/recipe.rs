//! A recipe: everything that decides a run, as plain values that are valid by construction.
//!
//! No field has a default in code: what a recipe does not say is an error, except where absence
//! is itself the meaning ("no clipping").

mod data;
mod method;
mod network;

pub use aleator_vocabulary::{
    DiagScale, Draws, HeadTemperature, ImageNetwork, Link, Noise, Temperature,
};
pub use data::*;
pub use method::*;
pub use network::*;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// One line for people.
    pub summary: String,
    /// One run for each; several make the members of an ensemble. Never empty.
    pub seeds: Vec<u64>,
    /// How labels become a training step.
    pub method: Method,
    /// Where examples and labels come from.
    pub data: Data,
    /// Inputs → features.
    pub network: Network,
    /// Features → probabilities.
    pub head: Head,
    /// How weights move.
    pub optimizer: Optimizer,
    /// How fast they move, and for how long.
    pub schedule: Schedule,
    /// Batches, averages, early stopping.
    pub training: Training,
    /// What is kept of the weights.
    pub checkpoint: Checkpoint,
    /// How the result is measured.
    pub evaluation: Evaluation,
}

/// `[head]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The noise model.
    pub noise: Noise,
    /// What turns utilities into probabilities.
    pub link: Link,
    /// τ.
    pub temperature: HeadTemperature,
    /// How d(x) comes from its dense layer.
    pub diag_scale: DiagScale,
    /// The initial weights of the covariance layers are multiplied by this.
    pub covariance_init: f64,
    /// S in training.
    pub samples: usize,
    /// How the samples are drawn.
    pub draws: Draws,
}

/// `[optimizer]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    /// The rule.
    pub rule: Rule,
    /// The learning rate at the height of the schedule.
    pub learning_rate: f64,
    /// The network's learning rate is this times that of the head; absent, it is the same.
    pub network_rate: Option<f64>,
    /// Gradients of a larger norm are scaled down to this one.
    pub clip_norm: Option<f64>,
    /// `[optimizer.l2]`.
    pub l2: WeightDecay,
}

/// `optimizer.kind`, with its own keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `"sgd"`.
    Sgd {
        /// 0 for none.
        momentum: f64,
        /// Look ahead.
        nesterov: bool,
    },
    /// `"adam"`: the decay is part of the gradient.
    Adam(Moments),
    /// `"adamw"`: the decay acts on the weights directly.
    AdamW(Moments),
}

/// The running averages of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// β₁.
    pub beta1: f64,
    /// β₂.
    pub beta2: f64,
    /// ε.
    pub epsilon: f64,
}

/// λ of λ/2 ‖w‖² for the weights (never the biases) of each group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightDecay {
    /// The layers before the head.
    pub network: f64,
    /// The layer of μ(x).
    pub mean: f64,
    /// The layers of Σ(x).
    pub covariance: f64,
}

/// `[schedule]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Passes over the training data.
    pub epochs: usize,
    /// Linear growth from 0 at the start.
    pub warm_up: WarmUp,
    /// What comes after.
    pub decay: Decay,
}

/// `schedule.warm_up` or `schedule.warm_up_steps`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// This many epochs; may be a fraction of one.
    Epochs(f64),
    /// This many steps.
    Steps(usize),
}

/// `schedule.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Decay {
    /// `"constant"`.
    Constant,
    /// `"cosine"`: to zero at the end.
    Cosine,
    /// `"steps"`: multiplied by `factor` at each of these epochs.
    Steps {
        /// Epochs, ascending.
        at: Vec<f64>,
        /// 0.1 in the paper.
        factor: f64,
    },
}

/// `[training]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Examples of a step.
    pub batch: usize,
    /// At least this many steps in an epoch: few data are taken in smaller batches.
    pub min_steps: Option<usize>,
    /// Parts that a batch is computed in, one after the other. More parts need
    /// less memory; batch normalisation takes its statistics of one part.
    pub parts: usize,
    /// Decay of the running average of the weights that is evaluated in place of them.
    pub ema: Option<f64>,
    /// Epochs without a better validation NLL after which training ends.
    pub patience: Option<usize>,
    /// Threads that prepare batches.
    pub workers: usize,
}

/// `[checkpoint]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Besides the checkpoint at the end of each epoch, one after every this many steps.
    pub every_steps: Option<usize>,
    /// How many of the last ones are kept, beside the best.
    pub keep: usize,
}

/// `[evaluation]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Which weights are evaluated at the end.
    pub weights: EvaluatedWeights,
    /// S.
    pub samples: usize,
    /// Examples in a batch.
    pub batch: usize,
    /// Whether a temperature is fitted to the validation split after training.
    pub calibrate: bool,
    /// Loadings are written with the predictions of a split where they need no more than this.
    pub loadings_mib: usize,
}

/// `evaluation.weights`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluatedWeights {
    /// `"best"`: of the epoch with the lowest validation NLL.
    Best,
    /// `"last"`.
    Last,
}
