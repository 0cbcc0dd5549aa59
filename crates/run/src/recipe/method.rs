//! `method`: how the labels of a batch become a training step.

use serde::{Deserialize, Serialize};

use super::range::{
    MANY, below_one, count, fraction, not_negative, path, positive, up_to_one, weights_of_three,
};

/// `method`, with the section of its own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// `"label-smoothing"`: labels are mixed with the uniform distribution.
    LabelSmoothing {
        /// `[label_smoothing]`.
        label_smoothing: LabelSmoothing,
    },
    /// `"gce"`: a loss between the likelihood and the absolute error.
    Gce {
        /// `[gce]`.
        gce: Gce,
    },
    /// `"forward-correction"`: the model predicts true classes, and a matrix makes given ones of
    /// them.
    ForwardCorrection {
        /// `[forward_correction]`.
        forward_correction: ForwardCorrection,
    },
    /// `"data-parameters"`: every class or example has a temperature of its own.
    DataParameters {
        /// `[data_parameters]`.
        data_parameters: DataParameters,
    },
    /// `"elr"`: predictions are held to what they were in earlier epochs.
    Elr {
        /// `[elr]`.
        elr: Elr,
    },
    /// `"sop"`: every label has a sparse error of its own, which is learned.
    Sop {
        /// `[sop]`.
        sop: Sop,
    },
    /// `"cores"`: confident predictions are rewarded, and improbable labels are left out.
    Cores {
        /// `[cores]`.
        cores: Cores,
    },
    /// `"mixup"`: examples and their labels are mixed in pairs.
    Mixup {
        /// `[mixup]`.
        mixup: Mixup,
    },
    /// `"mentornet"`: examples of large loss weigh less.
    #[serde(rename = "mentornet")]
    MentorNet {
        /// `[mentornet]`.
        mentornet: MentorNet,
    },
    /// `"mentormix"`: mixup in which examples of small loss are preferred.
    #[serde(rename = "mentormix")]
    MentorMix {
        /// `[mentormix]`.
        mentormix: MentorMix,
    },
    /// `"co-teaching"`: two networks, each of which learns from the examples that the other finds
    /// the most probable.
    CoTeaching {
        /// `[co_teaching]`.
        co_teaching: CoTeaching,
    },
    /// `"dividemix"`: two networks, each of which says for the other which labels are right.
    #[serde(rename = "dividemix")]
    DivideMix {
        /// `[dividemix]`.
        dividemix: DivideMix,
    },
    /// `"curriculumnet"`: examples in dense places of their class come first.
    #[serde(rename = "curriculumnet")]
    CurriculumNet {
        /// `[curriculumnet]`.
        curriculumnet: CurriculumNet,
    },
    /// `"cleannet"`: examples that are like their class weigh the most, by what verified examples
    /// teach.
    #[serde(rename = "cleannet")]
    CleanNet {
        /// `[cleannet]`.
        cleannet: CleanNet,
    },
    /// `"har"`: classes that are rare or hard are smoothed the most.
    Har {
        /// `[har]`.
        har: Har,
    },
}

impl Method {
    /// How many networks it trains.
    pub fn networks(&self) -> usize {
        match self {
            Self::CoTeaching { .. } | Self::DivideMix { .. } => 2,
            _ => 1,
        }
    }

    /// The word in a recipe.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Bootstrapping { .. } => "bootstrapping",
            Self::Dynamics { .. } => "dynamics",
            Self::LabelSmoothing { .. } => "label-smoothing",
            Self::Gce { .. } => "gce",
            Self::ForwardCorrection { .. } => "forward-correction",
            Self::DataParameters { .. } => "data-parameters",
            Self::Elr { .. } => "elr",
            Self::Sop { .. } => "sop",
            Self::Cores { .. } => "cores",
            Self::Har { .. } => "har",
            Self::Mixup { .. } => "mixup",
            Self::MentorNet { .. } => "mentornet",
            Self::MentorMix { .. } => "mentormix",
            Self::CoTeaching { .. } => "co-teaching",
            Self::DivideMix { .. } => "dividemix",
            Self::CurriculumNet { .. } => "curriculumnet",
            Self::CleanNet { .. } => "cleannet",
        }
    }
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

/// `[label_smoothing]` (Szegedy et al. 2016).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelSmoothing {
    /// The share of the uniform distribution; 0 is plain training.
    #[serde(deserialize_with = "up_to_one")]
    pub share: f64,
}

/// `[gce]` (Zhang and Sabuncu 2018).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gce {
    /// q: 0 is plain training, 1 the absolute error.
    #[serde(deserialize_with = "up_to_one")]
    pub exponent: f64,
    /// Examples whose label is at most this probable have no gradient; absent, all have one.
    #[serde(default, deserialize_with = "fraction")]
    pub truncate: Option<f64>,
    /// Epochs before the first example is left out.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub burn_in: usize,
}

/// `[forward_correction]` (Patrini et al. 2017).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardCorrection {
    /// Where the matrix comes from.
    #[serde(rename = "..transitions")]
    pub transitions: Transitions,
}

/// `forward_correction.transitions`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transitions {
    /// `"file"`.
    File {
        /// A `.npy` or CSV file of `[K, K]`; row k is the law of the given label when the true one
        /// is k.
        #[serde(deserialize_with = "path")]
        matrix: String,
    },
    /// `"estimated"`: from what the model predicts for the training examples.
    Estimated {
        /// Epochs of plain training first.
        #[serde(deserialize_with = "count::<1, MANY, _, _>")]
        after: usize,
        /// Row k is the prediction for the example at this quantile of the probabilities of
        /// class k; 1 is the most probable example.
        #[serde(deserialize_with = "up_to_one")]
        quantile: f64,
    },
}

/// `[data_parameters]` (Saxena et al. 2019).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataParameters {
    /// `[data_parameters.classes]`; absent, classes have none.
    pub classes: Option<DataParameter>,
    /// `[data_parameters.instances]`; absent, examples have none.
    pub instances: Option<DataParameter>,
    /// Of the steps of both.
    #[serde(deserialize_with = "below_one")]
    pub momentum: f64,
    /// Both stay from one over this to this.
    #[serde(deserialize_with = "positive")]
    pub bound: f64,
}

/// Temperatures of one sort.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataParameter {
    /// The temperature before training.
    #[serde(deserialize_with = "positive")]
    pub start: f64,
    /// The learning rate of its logarithm; 0 leaves it as it is.
    #[serde(deserialize_with = "not_negative")]
    pub rate: f64,
    /// λ of λ/2 times the square of its logarithm.
    #[serde(deserialize_with = "not_negative")]
    pub decay: f64,
}

/// `[elr]` (Liu et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elr {
    /// β of the running average of predictions.
    #[serde(deserialize_with = "below_one")]
    pub momentum: f64,
    /// λ; 0 is plain training.
    #[serde(deserialize_with = "not_negative")]
    pub strength: f64,
}

/// `[sop]` (Liu et al. 2022). With both rates 0 it is plain training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sop {
    /// The learning rate of u, for the loss of one example.
    #[serde(deserialize_with = "not_negative")]
    pub rate_u: f64,
    /// That of v.
    #[serde(deserialize_with = "not_negative")]
    pub rate_v: f64,
}

/// `[cores]` (Cheng et al. 2021).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cores {
    /// β of the reward in the end; 0 is plain training.
    #[serde(deserialize_with = "not_negative")]
    pub strength: f64,
    /// Epochs of plain training first.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub burn_in: usize,
    /// Epochs in which β then grows from 0.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub ramp: usize,
    /// Epochs before the first label is left out; absent, none is.
    #[serde(default, deserialize_with = "count::<0, MANY, _, _>")]
    pub sieve_after: Option<usize>,
}

/// `[har]` (Cao et al. 2021).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Har {
    /// ρ; 0 is plain training.
    #[serde(deserialize_with = "not_negative")]
    pub strength: f64,
    /// The power of a class's error in its weight.
    #[serde(deserialize_with = "not_negative")]
    pub error_power: f64,
    /// The power of its number of examples, by which it is divided.
    #[serde(deserialize_with = "not_negative")]
    pub count_power: f64,
    /// Where the errors of the classes come from.
    #[serde(rename = "..errors")]
    pub errors: ClassErrors,
}

/// `har.errors`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassErrors {
    /// `"file"`.
    File {
        /// A `.npy` or CSV file of `[K]`: the share of each class's examples that a model which
        /// has not seen them takes for another.
        #[serde(deserialize_with = "path")]
        class_errors: String,
    },
    /// `"validation"`: the model predicts the validation split.
    Validation {
        /// Epochs of plain training first.
        #[serde(deserialize_with = "count::<1, MANY, _, _>")]
        after: usize,
    },
    /// `"folds"`: two further networks learn from one half of the examples each, and predict the
    /// other half.
    Folds {
        /// Epochs in which they learn, and of plain training first.
        #[serde(deserialize_with = "count::<1, MANY, _, _>")]
        after: usize,
    },
}

/// `[mixup]` (Zhang et al. 2018).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mixup {
    /// α of the Beta distribution of shares.
    #[serde(deserialize_with = "positive")]
    pub alpha: f64,
}

/// `[mentornet]` (Jiang et al. 2018).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MentorNet {
    /// How the weight of an example follows from its loss.
    #[serde(rename = "..curriculum")]
    pub curriculum: Curriculum,
    /// Losses are large above this quantile of those of a step.
    #[serde(deserialize_with = "up_to_one")]
    pub quantile: f64,
    /// Of the running average of the quantile.
    #[serde(deserialize_with = "below_one")]
    pub decay: f64,
    /// Epochs of plain training first.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub burn_in: usize,
}

/// `mentornet.curriculum`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Curriculum {
    /// `"self-paced"`: large losses weigh nothing.
    SelfPaced,
    /// `"linear"`: the more a loss is above the quantile, the less it weighs.
    Linear {
        /// Nothing from this much above on.
        #[serde(deserialize_with = "positive")]
        width: f64,
    },
    /// `"focal"`: large losses weigh most.
    Focal,
    /// `"predefined"`: self-paced, then linear.
    Predefined {
        /// That of linear.
        #[serde(deserialize_with = "positive")]
        width: f64,
        /// The first epoch of linear.
        #[serde(deserialize_with = "count::<0, MANY, _, _>")]
        linear_after: usize,
    },
    /// `"learned"`: by a small network, which learns from verified examples which losses are those
    /// of right labels.
    Learned {
        /// A CSV table with the columns `id` and `label`: the true classes of some training
        /// examples.
        #[serde(deserialize_with = "path")]
        verified: String,
        /// Steps of the small network before each epoch.
        #[serde(deserialize_with = "count::<1, MANY, _, _>")]
        steps: usize,
        /// Its learning rate, which falls to 0 within these steps.
        #[serde(deserialize_with = "positive")]
        rate: f64,
    },
}

/// `[mentormix]` (Jiang et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MentorMix {
    /// α of the Beta distribution of shares.
    #[serde(deserialize_with = "positive")]
    pub alpha: f64,
    /// Losses are large above this quantile of those of a step.
    #[serde(deserialize_with = "up_to_one")]
    pub quantile: f64,
    /// Of the running average of the quantile.
    #[serde(deserialize_with = "below_one")]
    pub decay: f64,
    /// Epochs of mixup first.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub burn_in: usize,
    /// Whether mixed examples of large loss are left out.
    pub weigh_mixed: bool,
}

/// `[co_teaching]` (Han et al. 2018).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoTeaching {
    /// τ, the share of wrong labels; 0 is plain training. Absent, it is estimated.
    #[serde(default, deserialize_with = "below_one")]
    pub noise_rate: Option<f64>,
    /// Epochs until that share of examples is left out.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub ramp: usize,
    /// How the share grows until then: 1 is linear.
    #[serde(deserialize_with = "positive")]
    pub exponent: f64,
}

/// `[dividemix]` (Li et al. 2020).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DivideMix {
    /// Epochs of plain training first.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub warm_up: usize,
    /// A label is taken for right where its probability to be is above this.
    #[serde(deserialize_with = "below_one")]
    pub threshold: f64,
    /// T: below 1, targets are sharper than predictions.
    #[serde(deserialize_with = "positive")]
    pub sharpness: f64,
    /// α of the Beta distribution of the shares of mixed examples; absent, they are not mixed.
    #[serde(default, deserialize_with = "positive")]
    pub alpha: Option<f64>,
    /// λ_u of the examples whose labels are not taken for right.
    #[serde(deserialize_with = "not_negative")]
    pub unlabelled_weight: f64,
    /// Epochs in which λ_u grows from 0 after the warm-up.
    #[serde(deserialize_with = "count::<0, MANY, _, _>")]
    pub ramp: usize,
    /// The weight of the penalty that keeps all classes in use.
    #[serde(deserialize_with = "not_negative")]
    pub balance: f64,
    /// `[dividemix.views]`: after the warm-up examples are seen twice in a step; absent, once.
    pub views: Option<ExampleViews>,
}

/// Two views of an example, each varied by draws of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleViews {
    /// What varies.
    #[serde(rename = "..kind")]
    pub kind: ViewKind,
}

/// `dividemix.views.kind`, with its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewKind {
    /// `"augmentation"`: images, as `[data.augment]` says.
    Augmentation,
    /// `"noise"`: Normal noise is added to every feature.
    Noise {
        /// Its standard deviation, as a multiple of the feature's own.
        #[serde(deserialize_with = "positive")]
        strength: f64,
    },
    /// `"dropout"`: features are left out, and the others enlarged to make up for it.
    Dropout {
        /// The share that is left out.
        #[serde(deserialize_with = "fraction")]
        rate: f64,
    },
}

/// `[curriculumnet]` (Guo et al. 2018).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurriculumNet {
    /// Epochs of plain training first; then training goes on with the clean examples.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub after: usize,
    /// Epochs before the noisy examples join them.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub noisy_after: usize,
    /// Epochs before the very noisy ones do.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub all_after: usize,
    /// Examples are near each other below this quantile of the distances in a class.
    #[serde(deserialize_with = "fraction")]
    pub quantile: f64,
    /// The weights of clean, noisy and very noisy examples.
    #[serde(deserialize_with = "weights_of_three")]
    pub weights: [f64; 3],
}

/// `[cleannet]` (Lee et al. 2018).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanNet {
    /// A CSV table with the columns `id` and `label`: the true classes of some training examples.
    #[serde(deserialize_with = "path")]
    pub verified: String,
    /// Epochs of plain training first.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub after: usize,
    /// Epochs after which the weights of the examples are computed again.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub refresh: usize,
    /// References of each class: centres of the features of its examples.
    #[serde(deserialize_with = "count::<1, 65536, _, _>")]
    pub references: usize,
    /// Units of the hidden layers of the encoders.
    #[serde(deserialize_with = "count::<1, 65536, _, _>")]
    pub hidden: usize,
    /// Numbers that the encoders make of a class or an example.
    #[serde(deserialize_with = "count::<1, 65536, _, _>")]
    pub embedding: usize,
    /// The similarity of a wrong label to its class is pushed below this.
    #[serde(deserialize_with = "below_one")]
    pub margin: f64,
    /// The weight of wrong verified labels, beside 1 of right ones.
    #[serde(deserialize_with = "not_negative")]
    pub wrong_weight: f64,
    /// The weight of unverified examples.
    #[serde(deserialize_with = "not_negative")]
    pub unverified_weight: f64,
    /// The weight of the error in reconstructing features.
    #[serde(deserialize_with = "not_negative")]
    pub reconstruction_weight: f64,
    /// Verified examples of a step of the encoders; as many unverified ones join them.
    #[serde(deserialize_with = "count::<1, 65536, _, _>")]
    pub batch: usize,
    /// Steps of the encoders each time.
    #[serde(deserialize_with = "count::<1, MANY, _, _>")]
    pub steps: usize,
    /// Their learning rate, which falls to 0 within these steps.
    #[serde(deserialize_with = "positive")]
    pub rate: f64,
}
