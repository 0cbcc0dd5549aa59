//! A recipe: everything that decides a run, as plain values that are valid by construction.
//!
//! No field has a default in code: what a recipe does not say is an error, except where absence
//! is itself the meaning ("no clipping").

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// One line for people.
    pub summary: String,
    /// One run for each; several make the members of an ensemble. Never empty.
    pub seeds: Vec<u64>,
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

/// `[data]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// What the label files hold.
    pub label_kind: LabelKind,
    /// What is made of several annotations of one example.
    pub annotations: Annotations,
    /// K, where the labels alone do not tell it.
    pub classes: Option<usize>,
    /// A text file with one class name a line.
    pub class_names: Option<PathBuf>,
    /// Images are brought to this side, in pixels; only image folders need it.
    pub image_size: Option<usize>,
    /// `[data.train]`.
    pub train: Source,
    /// `[data.validation]`: a source of its own, or a part of the training data.
    pub validation: HeldOut,
    /// `[data.test]`.
    pub test: Option<HeldOut>,
    /// `[data.noise]`: labels made wrong on purpose.
    pub noise: Option<LabelNoise>,
}

/// Where the examples of one split come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The inputs.
    pub inputs: InputSource,
    /// A label file; absent where the inputs carry their labels (folders, CIFAR, digits).
    /// `file#column` names a column of a Parquet or CSV file, or a tensor.
    pub labels: Option<String>,
    /// The true labels where they are known; never trained on.
    pub clean_labels: Option<String>,
    /// A file with one stable id a row; without it the row number or the image's path is the id.
    pub ids: Option<String>,
}

/// The inputs of a split.
#[derive(Clone, Debug, PartialEq)]
pub enum InputSource {
    /// `features = "x.npy"`: a matrix of embeddings (`.npy`, `.safetensors`, `.parquet`);
    /// `file#name` names a tensor or a column.
    Features(String),
    /// `images = "folder"`: a folder per class, CIFAR binary files (a file or the folder of them)
    /// or an IDX file, plain or gzip.
    Images(PathBuf),
    /// `builtin = "digits"`: what ships inside the program.
    Digits,
}

/// A split to measure on.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldOut {
    /// `fraction = 0.1, seed = 0`: this share of the training data, chosen by example id and
    /// this seed, so that runs of different training seeds hold out the same examples.
    Fraction {
        /// Above 0, below 1.
        fraction: f64,
        /// Another seed, another choice.
        seed: u64,
    },
    /// Data of its own.
    Source(Source),
}

/// `data.label_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    /// `"auto"`: decided by looking at the labels.
    Auto,
    /// `"single"`: one class an example.
    Single,
    /// `"multi-hot"`: each class on or off, `[N, K]`.
    MultiHot,
    /// `"soft"`: probabilities, `[N, K]`.
    Soft,
    /// `"annotators"`: a column for each annotator with blanks (or −1), or a long table of
    /// (example, annotator, label).
    Annotators,
}

/// `data.annotations`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotations {
    /// `"majority"`: the most frequent label; ties go to one of the tied, by seed and id.
    Majority,
    /// `"sampled"`: one annotation of each example, drawn anew every epoch.
    Sampled,
    /// `"each"`: every annotation is a term of the loss.
    Each,
}

/// `[data.noise]`.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelNoise {
    /// The seed of the corruption, apart from that of training.
    pub seed: u64,
    /// What is done to the labels.
    pub kind: NoiseKind,
}

/// `data.noise.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq)]
pub enum NoiseKind {
    /// `"symmetric"`: with probability `rate` another class, all equally likely.
    Symmetric {
        /// The share of labels that change.
        rate: f64,
    },
    /// `"pairwise"`: with probability `rate` the next class (cyclic), or those of `pairs`.
    Pairwise {
        /// The share of labels that change, in the classes concerned.
        rate: f64,
        /// (from, to); empty means k → k + 1.
        pairs: Vec<(usize, usize)>,
    },
    /// `"matrix"`: row k is the law of the given label when the true one is k.
    Matrix {
        /// A `.npy` or CSV file of `[K, K]`.
        file: String,
    },
    /// `"instance"`: harder examples flip more, toward the classes they resemble.
    Instance {
        /// The share of labels that change.
        rate: f64,
    },
}

/// `[network]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What is done to the inputs first, from the training split.
    pub normalize: Normalize,
    /// The layers before the head.
    pub layers: Layers,
}

/// `network.normalize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// `"none"`.
    None,
    /// `"global"`: centred, and divided by one number: the root mean square of all features.
    Global,
    /// `"per-feature"`: centred, and each divided by its standard deviation.
    PerFeature,
}

/// `network.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Layers {
    /// `"none"`: the head sees the inputs.
    None,
    /// `"mlp"`.
    Mlp {
        /// Widths of the hidden layers.
        hidden: Vec<usize>,
    },
    /// `"conv"`: 3 × 3 convolutions, each after the first halving the image, then the average.
    Conv {
        /// Channels of each convolution.
        channels: Vec<usize>,
    },
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

/// `head.noise`, with `head.rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Noise {
    /// `"none"`.
    None,
    /// `"diagonal"`.
    Diagonal,
    /// `"full"`.
    #[serde(rename = "full")]
    LowRank {
        /// R.
        rank: usize,
    },
    /// `"shared"`.
    #[serde(rename = "shared")]
    SharedLowRank {
        /// R.
        rank: usize,
    },
}

/// `head.link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// `"softmax"`: one class is right.
    Softmax,
    /// `"sigmoid"`: each class is on or off.
    Sigmoid,
}

/// `head.temperature`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadTemperature {
    /// `0.9`.
    Fixed(f32),
    /// `{ low = 0.3, high = 3.0 }`: learned within these bounds.
    Learned {
        /// Lower bound.
        low: f32,
        /// Upper bound.
        high: f32,
    },
}

/// `head.diag_scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagScale {
    /// `"affine"`: the paper.
    Affine,
    /// `"softplus"`: the reference code.
    Softplus,
}

/// `head.draws`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// `"independent"`.
    Independent,
    /// `"antithetic"`.
    Antithetic,
    /// `"sobol"`.
    Sobol,
}

/// `[optimizer]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    /// The rule.
    pub rule: Rule,
    /// The learning rate at the height of the schedule.
    pub learning_rate: f64,
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
    /// Epochs of linear growth from 0; may be a fraction of one.
    pub warm_up: f64,
    /// What comes after.
    pub decay: Decay,
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
    /// Examples in a batch.
    pub batch: usize,
    /// Steps of an epoch at least: data too few for them are taken in smaller batches.
    pub min_steps: Option<usize>,
    /// Batches whose gradients are averaged into one step.
    pub accumulate: usize,
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
    /// Beside the one at the end of each epoch, one every so many steps.
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
