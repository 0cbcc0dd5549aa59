//! A recipe: everything that decides a run, as plain values.
//!
//! A key of a recipe is a field; `decode.rs` says what `..` in a name means. A
//! recipe that was loaded is valid; [`Recipe::check`] tells whether one that was changed still is.
//! No field has a default in code: what a recipe does not say is an error, except where absence
//! is itself the meaning ("no clipping").

mod data;
mod method;
mod network;
mod overlay;
mod paths;
mod pretraining;
pub(crate) mod range;

pub use aleator_vocabulary::{
    DiagScale, Draws, HeadTemperature, ImageNetwork, Likelihood, Link, Noise, NoiseLaw, Temperature,
};
pub use data::*;
pub use method::*;
pub use network::*;
pub use overlay::{DataOverlay, NetworkOverlay, Overlay};
pub use pretraining::{MOST_ENLARGED, Pretraining};
use range::{
    MANY, SAMPLES, below_one, count, epochs, fraction, is_default, not_negative, positive, share,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// One line for people.
    pub summary: String,
    /// One run for each; several make the members of an ensemble. Never empty.
    #[serde(rename = "..", deserialize_with = "read_seeds", serialize_with = "write_seeds")]
    pub seeds: Vec<u64>,
    /// How labels become a training step.
    #[serde(rename = "..method", default, skip_serializing_if = "is_default")]
    pub method: Method,
    /// Whether settings are chosen for the data before training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tune: Tune,
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

/// `tune`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tune {
    /// `"off"`, or no key: every setting is as it stands.
    #[default]
    Off,
    /// `"auto"`: the scale of the features, the decays and the rank are chosen by the loss on
    /// held-out examples; what the recipe says of them is where the search begins.
    Auto,
}

/// `seed = 0` is another way to write `seeds = [0]`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SeedKeys {
    Seeds(#[serde(deserialize_with = "range::seeds")] Vec<u64>),
    Seed(#[serde(deserialize_with = "range::seed")] u64),
}

fn read_seeds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    Ok(match SeedKeys::deserialize(from)? {
        SeedKeys::Seed(seed) => vec![seed],
        SeedKeys::Seeds(seeds) => seeds,
    })
}

fn write_seeds<S: Serializer>(seeds: &[u64], to: S) -> Result<S::Ok, S::Error> {
    SeedKeys::Seeds(seeds.to_vec()).serialize(to)
}

/// `[head]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The noise model.
    #[serde(rename = "..noise", with = "NoiseKeys")]
    pub noise: Noise,
    /// What turns utilities into probabilities.
    pub link: Link,
    /// Which probability of the labels training maximises; absent, that of each label by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub likelihood: Likelihood,
    /// τ.
    pub temperature: HeadTemperature,
    /// How d(x) comes from its dense layer.
    pub diag_scale: DiagScale,
    /// The initial weights of the covariance layers are multiplied by this.
    #[serde(deserialize_with = "not_negative")]
    pub covariance_init: f64,
    /// Those of the layer of μ(x) are multiplied by this: 0 begins with equal utilities; absent,
    /// they stay as drawn.
    #[serde(default, deserialize_with = "not_negative")]
    pub mean_init: Option<f64>,
    /// S in training.
    #[serde(deserialize_with = "count::<1, SAMPLES, _, _>")]
    pub samples: usize,
    /// How the samples are drawn.
    pub draws: Draws,
}

/// [`Noise`] as a recipe has it: `head.noise` and `head.rank`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Noise", rename_all = "lowercase")]
enum NoiseKeys {
    None,
    Diagonal,
    #[serde(rename = "full")]
    LowRank {
        #[serde(deserialize_with = "count::<1, 65536, _, _>")]
        rank: usize,
    },
    #[serde(rename = "shared")]
    SharedLowRank {
        #[serde(deserialize_with = "count::<1, 65536, _, _>")]
        rank: usize,
    },
    #[serde(rename = "xl")]
    OnFeatures {
        #[serde(deserialize_with = "count::<1, 65536, _, _>")]
        rank: usize,
    },
}

/// `[optimizer]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimizer {
    /// The rule.
    #[serde(rename = "..kind")]
    pub rule: Rule,
    /// The learning rate at the height of the schedule.
    #[serde(deserialize_with = "positive")]
    pub learning_rate: f64,
    /// The network's learning rate is this times that of the head; absent, it is the same.
    #[serde(default, deserialize_with = "positive")]
    pub network_rate: Option<f64>,
    /// Gradients of a larger norm are scaled down to this one.
    #[serde(default, deserialize_with = "positive")]
    pub clip_norm: Option<f64>,
    /// `[optimizer.l2]`.
    pub l2: WeightDecay,
}

/// `optimizer.kind`, with its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// `"sgd"`.
    Sgd {
        /// 0 for none.
        #[serde(deserialize_with = "below_one")]
        momentum: f64,
        /// Look ahead.
        nesterov: bool,
    },
    /// `"adam"`: the decay is part of the gradient.
    Adam(Moments),
    /// `"adamw"`: the decay acts on the weights directly.
    AdamW(Moments),
    /// `"lbfgs"`: quasi-Newton steps on all examples at once, with noise that stays the same. It
    /// finds its own step sizes, so the learning rate and its schedule have no effect.
    Lbfgs {
        /// Pairs of differences that are remembered.
        #[serde(deserialize_with = "count::<1, 100, _, _>")]
        memory: usize,
        /// A relative decrease of the objective below this, over ten points, ends training.
        #[serde(deserialize_with = "positive")]
        tolerance: f64,
        /// Whether it then goes on with the validation examples too, where they are a part of the
        /// training source; they are still scored by weights that have not seen them.
        refit: bool,
    },
}

impl Rule {
    /// Whether validation examples are trained on in the end.
    pub fn refits(&self) -> bool {
        matches!(self, Self::Lbfgs { refit: true, .. })
    }
}

/// The running averages of Adam.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// β₁.
    #[serde(deserialize_with = "below_one")]
    pub beta1: f64,
    /// β₂.
    #[serde(deserialize_with = "below_one")]
    pub beta2: f64,
    /// ε.
    #[serde(deserialize_with = "positive")]
    pub epsilon: f64,
}

/// λ of λ/2 ‖w‖² for the weights of each group of layers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightDecay {
    /// The layers before the head.
    #[serde(deserialize_with = "not_negative")]
    pub network: f64,
    /// The layer of μ(x).
    #[serde(deserialize_with = "not_negative")]
    pub mean: f64,
    /// The layers of Σ(x).
    #[serde(deserialize_with = "not_negative")]
    pub covariance: f64,
    /// The layer of d(x) alone; absent, it is as the others of Σ(x).
    #[serde(default, deserialize_with = "not_negative")]
    pub diagonal: Option<f64>,
    /// V, where all examples share it; absent, it is as the others of Σ(x).
    #[serde(default, deserialize_with = "not_negative")]
    pub shared_loadings: Option<f64>,
    /// Whether the biases of a layer are decayed as its weights are. Parameters of norms never are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub biases: bool,
}

impl WeightDecay {
    /// The same λ for the weights of all layers.
    ///
    /// ```
    /// use aleator_run::recipe::WeightDecay;
    ///
    /// assert_eq!(WeightDecay::of_all(1e-3).network, 1e-3);
    /// ```
    pub fn of_all(decay: f64) -> Self {
        Self {
            network: decay,
            mean: decay,
            covariance: decay,
            diagonal: None,
            shared_loadings: None,
            biases: false,
        }
    }
}

/// `[schedule]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Passes over the training data.
    #[serde(deserialize_with = "count::<1, 1_000_000, _, _>")]
    pub epochs: usize,
    /// Linear growth from 0 at the start.
    #[serde(rename = "..")]
    pub warm_up: WarmUp,
    /// What comes after.
    #[serde(rename = "..kind")]
    pub decay: Decay,
}

/// `schedule.warm_up` or `schedule.warm_up_steps`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum WarmUp {
    /// In epochs; may be a fraction of one.
    #[serde(rename = "warm_up")]
    Epochs(f64),
    /// In steps.
    #[serde(rename = "warm_up_steps")]
    Steps(#[serde(deserialize_with = "count::<0, MANY, _, _>")] usize),
}

/// `schedule.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// `"constant"`.
    Constant,
    /// `"cosine"`: to zero at the end.
    Cosine,
    /// `"steps"`: multiplied by `factor` at each of these epochs.
    Steps {
        /// Epochs, ascending.
        #[serde(deserialize_with = "epochs")]
        at: Vec<f64>,
        /// 0.1 in the paper.
        #[serde(deserialize_with = "share")]
        factor: f64,
    },
}

/// `[training]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Examples of a step.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub batch: usize,
    /// At least this many steps an epoch: few examples are taken in smaller batches.
    #[serde(default, deserialize_with = "count::<1, MANY, _, _>")]
    pub min_steps: Option<usize>,
    /// Parts that a batch is computed in, one after the other. More parts need less memory; batch
    /// normalisation takes its statistics of one part.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub parts: usize,
    /// Decay of the running average of the weights that is evaluated in place of them.
    #[serde(default, deserialize_with = "fraction")]
    pub ema: Option<f64>,
    /// Epochs without a better validation NLL after which training ends.
    #[serde(default, deserialize_with = "count::<1, MANY, _, _>")]
    pub patience: Option<usize>,
    /// Epochs between two validations, each with a checkpoint; absent, there is one every epoch.
    #[serde(default, deserialize_with = "count::<1, MANY, _, _>")]
    pub validate_every: Option<usize>,
    /// Threads that prepare batches.
    #[serde(deserialize_with = "count::<1, 1024, _, _>")]
    pub workers: usize,
}

/// `[checkpoint]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Steps between checkpoints within an epoch; there is always one at the end of each epoch.
    #[serde(default, deserialize_with = "count::<1, SAMPLES, _, _>")]
    pub every_steps: Option<usize>,
    /// How many of the last ones are kept, in addition to the best.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub keep: usize,
}

/// `[evaluation]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Which weights are evaluated at the end.
    pub weights: EvaluatedWeights,
    /// Whose probabilities they are, where a method trains several networks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub networks: EvaluatedNetworks,
    /// S.
    #[serde(deserialize_with = "count::<1, SAMPLES, _, _>")]
    pub samples: usize,
    /// Examples in a batch.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub batch: usize,
    /// Whether a temperature is fitted to the validation split after training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calibrate: bool,
    /// Loadings are written with the predictions of a split where they need no more than this.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub loadings_mib: usize,
    /// Which predictions are written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub predictions: KeptPredictions,
}

/// `evaluation.predictions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptPredictions {
    /// `"all"`, or no key: all numbers of all classes.
    #[default]
    All,
    /// `"none"`: only the scores.
    None,
    /// A number: this many most probable classes of each example.
    Top(usize),
}

impl Serialize for KeptPredictions {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => to.serialize_str("all"),
            Self::None => to.serialize_str("none"),
            Self::Top(count) => to.serialize_u64(*count as u64),
        }
    }
}

impl<'de> Deserialize<'de> for KeptPredictions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(range::AllNoneOrCount)
    }
}

/// `evaluation.weights`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluatedWeights {
    /// `"best"`: of the epoch with the lowest validation NLL.
    Best,
    /// `"last"`.
    Last,
}

impl EvaluatedWeights {
    /// The word in recipes and in `evaluation.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Last => "last",
        }
    }

    /// The other choice.
    pub fn other(self) -> Self {
        match self {
            Self::Best => Self::Last,
            Self::Last => Self::Best,
        }
    }
}

/// `evaluation.networks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvaluatedNetworks {
    /// `"first"`, or no key: those of the first network.
    #[default]
    First,
    /// `"all"`: the mean of the probabilities of all networks.
    All,
}
