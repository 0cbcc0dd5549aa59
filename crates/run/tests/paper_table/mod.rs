//! The settings of the paper's experiments, transcribed by hand from its text. Nothing here is
//! derived from the recipes.

use aleator_run::recipe::{ImageNetwork, PixelValues, WarmUp};
use aleator_run::{Likelihood, Link, Noise};

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub recipe: &'static str,
    /// Where its result stands.
    pub result: &'static str,
    pub network: ImageNetwork,
    /// Dense layers before the head.
    pub hidden: &'static [usize],
    pub image_size: usize,
    pub pixel_values: PixelValues,
    pub flip: bool,
    pub epochs: usize,
    pub warm_up: WarmUp,
    /// Epochs at which the learning rate is divided by ten.
    pub drops: &'static [f64],
    pub learning_rate: f64,
    pub nesterov: bool,
    pub decay: Decay,
    pub clip_norm: Option<f64>,
    /// Images in a step.
    pub batch: usize,
    pub noise: Noise,
    pub link: Link,
    pub likelihood: Likelihood,
    /// τ; 1 where the paper has none.
    pub temperature: f32,
    pub samples: usize,
    pub seeds: usize,
    pub held_out: HeldOut,
}

/// Weights of the L2 regularisation, λ, and what they are weights of.
#[derive(Clone, Copy, Debug)]
pub struct Decay {
    pub norm: Norm,
    /// All parameters but those of the low-rank part; biases too.
    pub all: f64,
    /// What maps the features to the low-rank part of the covariance.
    pub low_rank: f64,
}

/// What λ is the weight of.
#[derive(Clone, Copy, Debug)]
pub enum Norm {
    /// λ ‖w‖²: Keras, and the authors' public code with L2 in the loss.
    Whole,
    /// λ/2 ‖w‖²: TF-Slim, whose number WebVision has.
    Half,
}

impl Decay {
    const fn of_all(weight: f64) -> Self {
        Self { norm: Norm::Whole, all: weight, low_rank: weight }
    }
}

/// What is kept from training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeldOut {
    /// `validation` of `of` training images are the validation split.
    Count { validation: usize, of: usize },
    /// These shares of the images.
    Shares { validation: f64, test: f64 },
    /// Nothing: the sets to measure on are others.
    Nothing,
}

/// "Imagenet ILSVRC12" of appendix B: 270 epochs, homoscedastic.
const ILSVRC12: Row = Row {
    recipe: "ilsvrc12/none",
    result: "Table 1",
    network: ImageNetwork::ResNet152,
    hidden: &[],
    image_size: 224,
    pixel_values: PixelValues::Symmetric,
    flip: true,
    epochs: 270,
    warm_up: WarmUp::Epochs(5.0),
    drops: &[90.0, 180.0, 240.0],
    learning_rate: 0.1,
    nesterov: false,
    decay: Decay::of_all(1e-3),
    clip_norm: None,
    batch: 1024,
    noise: Noise::None,
    link: Link::Softmax,
    likelihood: Likelihood::Marginal,
    temperature: 1.0,
    samples: 10_000,
    seeds: 5,
    held_out: HeldOut::Count { validation: 50_000, of: 1_281_167 },
};

const ILSVRC12_DIAGONAL: Row =
    Row { recipe: "ilsvrc12/diagonal", noise: Noise::Diagonal, temperature: 0.9, ..ILSVRC12 };

const ILSVRC12_FULL: Row = Row {
    recipe: "ilsvrc12/full",
    noise: Noise::LowRank { rank: 15 },
    temperature: 0.9,
    ..ILSVRC12
};

const DROPS_OF_90: &[f64] = &[30.0, 60.0, 80.0];

/// Appendix D: one number for each S.
const fn with_samples(recipe: &'static str, samples: usize) -> Row {
    Row { recipe, result: "Table 9", samples, seeds: 1, ..ILSVRC12_FULL }
}

/// "WebVision 1.0" of appendix B.
const WEBVISION: Row = Row {
    recipe: "webvision/none",
    result: "Table 2",
    network: ImageNetwork::InceptionResNetV2,
    image_size: 299,
    // EfficientNet preprocessing.
    pixel_values: PixelValues::ImageNet,
    epochs: 95,
    warm_up: WarmUp::Epochs(2.0),
    drops: &[40.0, 80.0],
    // The number of the network's own code, with its meaning.
    decay: Decay { norm: Norm::Half, ..Decay::of_all(4e-5) },
    // 32 GPUs with 64 images each, asynchronously: each updates the weights by itself.
    batch: 64,
    samples: 1000,
    held_out: HeldOut::Nothing,
    ..ILSVRC12
};

/// "Imagenet-21k" of appendix B; the splits are of section 4.
const IMAGENET21K: Row = Row {
    recipe: "imagenet21k/none",
    result: "Table 3",
    epochs: 90,
    warm_up: WarmUp::Steps(5000),
    drops: DROPS_OF_90,
    decay: Decay::of_all(3e-3),
    clip_norm: Some(1.0),
    link: Link::Sigmoid,
    samples: 1000,
    held_out: HeldOut::Shares { validation: 0.04, test: 0.04 },
    ..ILSVRC12
};

/// "JFT" of appendix B.
const JFT: Row = Row {
    recipe: "jft/none",
    network: ImageNetwork::ResNet50,
    epochs: 30,
    learning_rate: 0.03,
    drops: &[10.0, 20.0, 25.0],
    decay: Decay::of_all(1e-3),
    batch: 4096,
    held_out: HeldOut::Nothing,
    ..IMAGENET21K
};

/// Section 4.3; what it does not say is from the code that it refers to: batches of 4,096 (32
/// cores with 128), 0.1 for 256 images, Nesterov momentum, 1e-4 ‖w‖², S = 5,000, pixels from 0 to 1,
/// all training images.
const ENSEMBLE: Row = Row {
    recipe: "ensembles/none",
    result: "Table 7",
    network: ImageNetwork::ResNet50,
    epochs: 90,
    drops: DROPS_OF_90,
    learning_rate: 0.1 * 4096.0 / 256.0,
    nesterov: true,
    decay: Decay::of_all(1e-4),
    pixel_values: PixelValues::Unit,
    batch: 4096,
    samples: 5000,
    seeds: 4,
    held_out: HeldOut::Nothing,
    ..ILSVRC12
};

/// Section 4.2, by the rule of Kolesnikov et al. for fewer than 20,000 examples: 500 steps of 512,
/// two of which make an epoch of 1,000 examples.
const TRANSFER: Row = Row {
    recipe: "transfer/vtab",
    result: "Table 6",
    network: ImageNetwork::ResNet50,
    image_size: 384,
    epochs: 250,
    warm_up: WarmUp::Steps(100),
    drops: &[100.0, 150.0, 200.0],
    learning_rate: 0.003,
    decay: Decay::of_all(0.0),
    batch: 512,
    samples: 1000,
    seeds: 1,
    held_out: HeldOut::Count { validation: 20, of: 1_020 },
    ..ILSVRC12
};

const SHARED: Noise = Noise::SharedLowRank { rank: 50 };

/// Every experiment that has a recipe.
pub const ROWS: &[Row] = &[
    ILSVRC12,
    ILSVRC12_DIAGONAL,
    Row {
        recipe: "ilsvrc12/diagonal-taylor",
        result: "Table 8",
        likelihood: Likelihood::Expansion,
        ..ILSVRC12_DIAGONAL
    },
    ILSVRC12_FULL,
    Row { recipe: "ilsvrc12/none-90", epochs: 90, drops: DROPS_OF_90, ..ILSVRC12 },
    Row { recipe: "ilsvrc12/diagonal-90", epochs: 90, drops: DROPS_OF_90, ..ILSVRC12_DIAGONAL },
    Row { recipe: "ilsvrc12/full-90", epochs: 90, drops: DROPS_OF_90, ..ILSVRC12_FULL },
    Row { recipe: "ilsvrc12/none-sigmoid", result: "Table 11", link: Link::Sigmoid, ..ILSVRC12 },
    Row {
        recipe: "ilsvrc12/full-sigmoid",
        result: "Table 11",
        link: Link::Sigmoid,
        ..ILSVRC12_FULL
    },
    Row {
        recipe: "ilsvrc12/none-equal-parameters",
        result: "Table 10",
        hidden: &[11_500],
        seeds: 1,
        ..ILSVRC12
    },
    with_samples("ilsvrc12/full-samples-1", 1),
    with_samples("ilsvrc12/full-samples-10", 10),
    with_samples("ilsvrc12/full-samples-100", 100),
    with_samples("ilsvrc12/full-samples-1000", 1000),
    WEBVISION,
    Row { recipe: "webvision/diagonal", noise: Noise::Diagonal, temperature: 0.9, ..WEBVISION },
    Row {
        recipe: "webvision/full",
        noise: Noise::LowRank { rank: 15 },
        temperature: 0.9,
        ..WEBVISION
    },
    IMAGENET21K,
    Row { recipe: "imagenet21k/diagonal-tau-1", noise: Noise::Diagonal, ..IMAGENET21K },
    Row {
        recipe: "imagenet21k/diagonal",
        noise: Noise::Diagonal,
        temperature: 0.15,
        ..IMAGENET21K
    },
    Row {
        recipe: "imagenet21k/shared",
        noise: SHARED,
        temperature: 0.15,
        // Deviation D14: "the parameters mapping from the shared representation space to the
        // low-rank covariance matrix" are those of v(x).
        decay: Decay { low_rank: 1e-2, ..Decay::of_all(3e-3) },
        ..IMAGENET21K
    },
    JFT,
    Row { recipe: "jft/diagonal-tau-1", noise: Noise::Diagonal, ..JFT },
    Row { recipe: "jft/diagonal", noise: Noise::Diagonal, temperature: 0.15, ..JFT },
    Row { recipe: "jft/shared", noise: SHARED, temperature: 0.15, ..JFT },
    ENSEMBLE,
    Row {
        recipe: "ensembles/full",
        noise: Noise::LowRank { rank: 15 },
        temperature: 1.5,
        epochs: 180,
        drops: &[60.0, 120.0, 160.0],
        ..ENSEMBLE
    },
    TRANSFER,
    Row { recipe: "transfer/vtab-small", image_size: 128, ..TRANSFER },
];

/// Lists of tasks.
pub const TASKS: &[&str] = &["transfer/vtab-tasks"];

/// Sweeps with the recipe of each run.
pub const SWEEPS: &[(&str, &[&str])] = &[(
    "ilsvrc12/samples",
    &[
        "ilsvrc12/full-samples-1",
        "ilsvrc12/full-samples-10",
        "ilsvrc12/full-samples-100",
        "ilsvrc12/full-samples-1000",
        "ilsvrc12/full",
    ],
)];

/// The small recipes, and what each is the twin of.
pub const TWINS: &[(&str, &str)] = &[
    ("small/ilsvrc12-none", "ilsvrc12/none"),
    ("small/ilsvrc12-diagonal", "ilsvrc12/diagonal"),
    ("small/ilsvrc12-full", "ilsvrc12/full"),
    ("small/webvision-none", "webvision/none"),
    ("small/webvision-diagonal", "webvision/diagonal"),
    ("small/webvision-full", "webvision/full"),
    ("small/imagenet21k-none", "imagenet21k/none"),
    ("small/imagenet21k-diagonal", "imagenet21k/diagonal"),
    ("small/imagenet21k-shared", "imagenet21k/shared"),
    ("small/jft-none", "jft/none"),
    ("small/jft-diagonal", "jft/diagonal"),
    ("small/jft-shared", "jft/shared"),
    ("small/ensembles-none", "ensembles/none"),
    ("small/ensembles-full", "ensembles/full"),
    ("small/transfer", "transfer/vtab"),
];
