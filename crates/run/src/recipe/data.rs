//! `[data]`: where examples and labels come from, and what is done to them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::NoiseLaw;
use super::range::{
    MANY, below_one, count, covariances, fraction, is_default, not_negative, pairs, path, paths,
    positive, seed, share, some_path, strength, write_path, write_paths,
};

/// The largest side of an image.
const PIXELS: u64 = 4096;

/// `[data]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// What the label files hold.
    pub label_kind: LabelKind,
    /// How several annotations of one example are used.
    pub annotations: Annotations,
    /// K, where the labels alone do not determine it.
    #[serde(default, deserialize_with = "count::<2, MANY, _, _>")]
    pub classes: Option<usize>,
    /// A text file with one class name a line.
    #[serde(default, deserialize_with = "some_path", serialize_with = "write_path")]
    pub class_names: Option<PathBuf>,
    /// The number of examples of the training source to use, chosen by their ids; default: all.
    #[serde(default, deserialize_with = "count::<2, MANY, _, _>")]
    pub limit: Option<usize>,
    /// How images become inputs of one size.
    #[serde(rename = "..")]
    pub framing: Framing,
    /// `[data.train]`.
    pub train: Source,
    /// `[data.validation]`: a source of its own, or a part of the training data.
    pub validation: HeldOut,
    /// `[data.test]`.
    pub test: Option<HeldOut>,
    /// `[data.noise]`: labels made wrong on purpose.
    pub noise: Option<LabelNoise>,
    /// `[data.augment]`: what is done to the images of the training split.
    pub augment: Option<Augment>,
}

impl Data {
    /// Plain data: labels of whatever kind is found, the majority of several annotations, images
    /// as they are, no test split and no added noise.
    ///
    /// ```
    /// use aleator_run::recipe::{Data, HeldOut, InputSource, Source};
    ///
    /// let validation = HeldOut::Fraction { fraction: 0.1, seed: 0 };
    /// let data = Data::of(Source::of(InputSource::Digits), validation);
    /// assert_eq!(data.test, None);
    /// ```
    pub fn of(train: Source, validation: HeldOut) -> Self {
        Self {
            label_kind: LabelKind::Auto,
            annotations: Annotations::Majority,
            classes: None,
            class_names: None,
            limit: None,
            framing: Framing::PLAIN,
            augment: None,
            train,
            validation,
            test: None,
            noise: None,
        }
    }
}

/// Where the examples of one split come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The inputs.
    #[serde(rename = "..")]
    pub inputs: InputSource,
    /// A label file; absent where the inputs carry their labels (folders, CIFAR, digits).
    /// `file#column` names a column of a Parquet or CSV file, or a tensor.
    #[serde(default, deserialize_with = "some_path")]
    pub labels: Option<String>,
    /// The true labels where they are known; never trained on.
    #[serde(default, deserialize_with = "some_path")]
    pub clean_labels: Option<String>,
    /// A file with one stable id a row; without it the row number or the image's path is the id.
    #[serde(default, deserialize_with = "some_path")]
    pub ids: Option<String>,
}

impl Source {
    /// Inputs that carry their labels.
    pub fn of(inputs: InputSource) -> Self {
        Self { inputs, labels: None, clean_labels: None, ids: None }
    }
}

/// The inputs of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputSource {
    /// `features = "x.npy"`: a matrix of embeddings (`.npy`, `.npz`, `.safetensors`, `.parquet`);
    /// `file#name` names an array, a tensor or a column.
    Features(#[serde(deserialize_with = "path")] String),
    /// `table = { file = "wine.csv", label = "class" }`: a table with a column for each feature.
    Table(TableSource),
    /// `images = "folder"`, or a list of paths: a folder per class, a manifest, WebDataset shards,
    /// Parquet files with encoded images, CIFAR binary files, or an IDX file. Never empty. A path
    /// may be a pattern with `{000..099}`, `{a,b}` or `*`.
    Images(#[serde(deserialize_with = "paths", serialize_with = "write_paths")] Vec<PathBuf>),
    /// `builtin = "digits"`: what ships inside the program.
    #[serde(rename = "builtin", with = "builtin")]
    Digits,
    /// `memory = "FINGERPRINT"`: arrays that the calling program gave, with their labels. Only a
    /// program that gives the same arrays again can resume or evaluate the run.
    Memory(String),
}

/// A table (`.csv`, `.tsv`, `.parquet`) whose columns are the features, or one of which holds a list
/// of numbers, with the labels in another column. Every column that has no other use is a feature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "inline")]
pub struct TableSource {
    /// The file.
    #[serde(deserialize_with = "path")]
    pub file: String,
    /// The column of labels.
    pub label: Option<String>,
    /// The column of true labels, where they are known; never trained on.
    pub clean_label: Option<String>,
    /// The column of ids; without it the row number is the id.
    pub id: Option<String>,
    /// The column that divides the rows into splits.
    pub split: Option<String>,
    /// The rows of this source: those that have this in the column `split`.
    pub rows: Option<String>,
    /// Columns that are not used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignore: Vec<String>,
}

/// `builtin = "digits"`.
mod builtin {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Builtin {
        Digits,
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
        Builtin::deserialize(from).map(|Builtin::Digits| ())
    }

    pub fn serialize<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
        Builtin::Digits.serialize(to)
    }
}

impl InputSource {
    /// Whether they are vectors of numbers by what the recipe says; arrays in memory may be either.
    pub fn are_features(&self) -> bool {
        matches!(self, Self::Features(_) | Self::Table(_))
    }

    /// Images at one path.
    ///
    /// ```
    /// use aleator_run::recipe::InputSource;
    ///
    /// assert_eq!(InputSource::images("photos"), InputSource::Images(vec!["photos".into()]));
    /// ```
    pub fn images(path: impl Into<PathBuf>) -> Self {
        Self::Images(vec![path.into()])
    }
}

/// How an image becomes the input of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Framing {
    /// `data.image_size`: images are brought to this side, in pixels. Without it all must have
    /// one size already.
    #[serde(rename = "image_size", default, deserialize_with = "count::<1, PIXELS, _, _>")]
    pub size: Option<usize>,
    /// `data.channels`: 3 makes grey images colour, 1 makes colour ones grey. Without it raw
    /// pixels (CIFAR, IDX) keep what they have, and decoded images have 3.
    #[serde(default, deserialize_with = "count::<1, 3, _, _>")]
    pub channels: Option<usize>,
    /// `data.centre_crop`: only the central square is seen, its side this share of the image's
    /// shorter side. Without it the whole image is, stretched to a square.
    #[serde(default, deserialize_with = "share")]
    pub centre_crop: Option<f64>,
    /// `data.filter`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub filter: Filter,
    /// `data.pixel_values`.
    #[serde(rename = "pixel_values", default, skip_serializing_if = "is_default")]
    pub values: PixelValues,
}

impl Framing {
    /// What a recipe without any of the keys says: images have one size, and are seen whole.
    pub const PLAIN: Self = Self {
        size: None,
        channels: None,
        centre_crop: None,
        filter: Filter::Bicubic,
        values: PixelValues::Symmetric,
    };

    /// Whole images, brought to this side.
    pub const fn sized(size: usize) -> Self {
        Self { size: Some(size), ..Self::PLAIN }
    }
}

/// `data.filter`: how pixels are made from those of another size. Shrinking widens the filter, so
/// that nothing aliases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// `"bilinear"`.
    Bilinear,
    /// `"bicubic"`; what an absent key means.
    #[default]
    Bicubic,
}

/// `data.pixel_values`: what the bytes 0 to 255 become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PixelValues {
    /// `"symmetric"`: −1 to 1; what an absent key means.
    #[default]
    Symmetric,
    /// `"unit"`: 0 to 1.
    Unit,
    /// `"imagenet"`: 0 to 1, then each channel centred and divided as is usual for networks that
    /// were trained in PyTorch: mean 0.485, 0.456, 0.406, deviation 0.229, 0.224, 0.225.
    ImageNet,
    /// `"lite"`: (byte − 127) / 128, as EfficientNet-Lite has it.
    Lite,
}

/// `[data.augment]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Augment {
    /// Which part of the image is seen.
    #[serde(rename = "..crop")]
    pub crop: Crop,
    /// Whether half of the images are mirrored.
    pub flip: bool,
    /// `operations` and `magnitude`.
    #[serde(rename = "..")]
    pub rand_augment: Option<RandAugment>,
    /// α of the Beta distribution by which pairs of examples and their labels are mixed.
    #[serde(default, deserialize_with = "positive")]
    pub mixup: Option<f64>,
}

/// `data.augment.crop`, with its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crop {
    /// `"none"`: what evaluation sees.
    None,
    /// `"inception"`: a rectangle of random area and shape, stretched to the square.
    Inception {
        /// Smallest and largest share of the image's area.
        area: (f64, f64),
        /// Narrowest and widest width : height.
        ratio: (f64, f64),
    },
    /// `"padded"`: the evaluation's image with a grey border, cut to its size at a random place.
    Padded {
        /// Pixels of the border.
        #[serde(deserialize_with = "count::<1, PIXELS, _, _>")]
        padding: usize,
    },
}

/// RandAugment: random operations of one strength.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandAugment {
    /// `operations`: how many are done to each image.
    #[serde(deserialize_with = "count::<1, 16, _, _>")]
    pub operations: usize,
    /// `magnitude`: 0 to 10, of which 10 is the strongest.
    #[serde(deserialize_with = "strength")]
    pub magnitude: f64,
}

/// A split to measure on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a recipe has at most two of them")]
pub enum HeldOut {
    /// `fraction = 0.1, seed = 0`: this share of the training data, chosen by example id and
    /// this seed, so that runs of different training seeds hold out the same examples.
    #[serde(rename = "fraction")]
    Fraction {
        /// Above 0, below 1.
        #[serde(deserialize_with = "fraction")]
        fraction: f64,
        /// Another seed, another choice.
        #[serde(deserialize_with = "seed")]
        seed: u64,
    },
    /// `count = 20, seed = 0`: this many examples of the training data, chosen as a fraction is.
    #[serde(rename = "count")]
    Count {
        /// At least 1.
        #[serde(deserialize_with = "count::<1, MANY, _, _>")]
        count: usize,
        /// Another seed, another choice.
        #[serde(deserialize_with = "seed")]
        seed: u64,
    },
    /// `fold = 0, folds = 5, seed = 0`, of a test split only: one of `folds` equal parts of the
    /// training data, with its labels as given. Each part holds about the same number of examples
    /// of each class, and each example is in exactly one part.
    #[serde(rename = "folds")]
    Fold {
        /// From 0; below `folds`.
        #[serde(deserialize_with = "count::<0, MANY, _, _>")]
        fold: usize,
        /// At least 2.
        #[serde(deserialize_with = "count::<2, MANY, _, _>")]
        folds: usize,
        /// Another seed, other parts.
        #[serde(deserialize_with = "seed")]
        seed: u64,
    },
    /// Data of its own.
    #[serde(rename = "")]
    Source(Source),
}

/// `data.label_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Annotations {
    /// `"majority"`: the most frequent label; ties go to one of the tied, by seed and id.
    Majority,
    /// `"sampled"`: one annotation of each example, drawn again every epoch.
    Sampled,
    /// `"each"`: every annotation is a term of the loss.
    Each,
}

/// `[data.noise]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelNoise {
    /// The seed of the corruption, apart from that of training.
    #[serde(deserialize_with = "seed")]
    pub seed: u64,
    /// What is done to the labels.
    #[serde(rename = "..kind")]
    pub kind: NoiseKind,
}

/// `data.noise.kind`, with its own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// `"symmetric"`: with probability `rate` another class, all equally likely.
    Symmetric {
        /// The share of labels that change.
        #[serde(deserialize_with = "below_one")]
        rate: f64,
    },
    /// `"symmetric-inclusive"`: a share `rate` of the labels becomes any class, the true one
    /// included, all equally likely.
    #[serde(rename = "symmetric-inclusive")]
    SymmetricInclusive {
        /// The share of labels that are drawn anew; one in K of them stays as it was.
        #[serde(deserialize_with = "below_one")]
        rate: f64,
    },
    /// `"pairwise"`: with probability `rate` the next class (cyclic), or those of `pairs`.
    Pairwise {
        /// The share of labels that change, in the classes concerned.
        #[serde(deserialize_with = "below_one")]
        rate: f64,
        /// (from, to); empty means k → k + 1.
        #[serde(default, deserialize_with = "pairs", skip_serializing_if = "is_default")]
        pairs: Vec<(usize, usize)>,
    },
    /// `"matrix"`: row k is the law of the given label when the true one is k.
    Matrix {
        /// A `.npy` or CSV file of `[K, K]`.
        #[serde(rename = "matrix", deserialize_with = "path")]
        file: String,
    },
    /// `"latent"`: the class of the largest utility, whose noise has a known covariance.
    Latent {
        /// The mean utility of the true class; that of the others is 0.
        #[serde(deserialize_with = "not_negative")]
        margin: f64,
        /// What the own noise of each class is multiplied by.
        #[serde(deserialize_with = "not_negative")]
        scale: f64,
        /// The law of the own noise.
        law: NoiseLaw,
        /// (class, class, covariance): Normal noise that two classes share.
        #[serde(default, deserialize_with = "covariances", skip_serializing_if = "is_default")]
        covariances: Vec<(usize, usize, f64)>,
    },
    /// `"instance"`: harder examples flip more, toward the classes they resemble.
    Instance {
        /// The share of labels that change.
        #[serde(deserialize_with = "below_one")]
        rate: f64,
    },
}
