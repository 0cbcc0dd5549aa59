//! A data set that is divided into splits.

mod set_aside;

use std::sync::Arc;

use aleator_run::Split as SplitName;
use aleator_run::recipe::{Annotations, Data, Link};

use crate::augment::Augmenter;
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::{InputShape, Inputs};
use crate::labels::{Labels, pick};
use crate::sources::Sources;
use crate::sources::source::mean_one;
use crate::split;

/// A data set, ready to train and measure on.
///
/// ```
/// use aleator_data::DataSet;
/// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
///
/// let held_out = |fraction| HeldOut::Fraction { fraction, seed: 0 };
/// let digits = Source::of(InputSource::Digits);
/// let data = Data { test: Some(held_out(0.2)), ..Data::of(digits, held_out(0.1)) };
/// let digits = DataSet::open(&data, Link::Softmax)?;
/// assert_eq!(digits.class_names.len(), 10);
/// assert_eq!(digits.validation.len(), 180);
/// assert_eq!(digits.test.unwrap().len(), 359);
/// # Ok::<(), aleator_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataSet {
    /// In the order of the classes' numbers, `[K]`.
    pub class_names: Vec<String>,
    /// The shape of one example, the same in all splits.
    pub shape: InputShape,
    /// To learn from.
    pub train: Arc<Split>,
    /// To choose by: early stopping, the best epoch, tuning.
    pub validation: Arc<Split>,
    /// To report on.
    pub test: Option<Arc<Split>>,
    /// That of the sources; see [`Sources::fingerprint`].
    pub fingerprint: String,
    /// What is odd but not wrong, for the user.
    pub warnings: Vec<String>,
}

/// Some examples with their labels.
#[derive(Clone, Debug)]
pub struct Split {
    /// Which split it is.
    pub name: SplitName,
    /// The inputs of the source that the split is a part of.
    pub inputs: Arc<Inputs>,
    /// The row in `inputs` of each example, `[N]`.
    pub rows: Vec<usize>,
    /// The ids of the examples.
    pub ids: Ids,
    /// The labels of the examples, possibly wrong.
    pub labels: Labels,
    /// The true labels, where they are known; never trained on.
    pub clean_labels: Option<Vec<u32>>,
    /// How much each example counts in training, where the files say so: positive, with mean 1
    /// over the split.
    pub weights: Option<Vec<f32>>,
    /// How several annotations of one example are used.
    pub annotations: Annotations,
    /// Whether one class is right or each is on or off: decides the form of targets.
    pub link: Link,
    /// K.
    pub classes: usize,
    /// How training varies the images; only in the training split of a recipe with
    /// `[data.augment]`.
    pub augment: Option<Arc<Augmenter>>,
}

impl Split {
    /// The number of examples.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no example; [`DataSet::open`] makes no such split.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Split {
    /// These examples of the split, in this order.
    pub(crate) fn part(&self, examples: &[usize]) -> Self {
        Self {
            rows: pick(&self.rows, examples),
            ids: self.ids.select(examples),
            labels: self.labels.select(examples),
            clean_labels: self.clean_labels.as_ref().map(|labels| pick(labels, examples)),
            weights: self.weights.as_ref().map(|weights| mean_one(pick(weights, examples))),
            ..self.clone()
        }
    }

    /// These examples, then those of another part of the same source.
    fn followed_by(&self, next: &Self) -> Self {
        let weights = self.weights.as_ref().zip(next.weights.as_ref());
        Self {
            rows: [&self.rows[..], &next.rows].concat(),
            ids: self.ids.followed_by(&next.ids),
            labels: self.labels.followed_by(&next.labels),
            clean_labels: None,
            weights: weights.map(|(own, next)| mean_one([&own[..], next].concat())),
            ..self.clone()
        }
    }

    /// At most this many examples, chosen by their ids.
    pub fn sample(&self, most: usize) -> Self {
        if self.len() <= most { self.clone() } else { self.part(&split::sample(&self.ids, most)) }
    }

    /// What is left without each of some equal parts, and the part; each has about as many
    /// examples of every class. Another seed divides otherwise.
    ///
    /// # Panics
    /// When there are fewer than two folds, or fewer examples than folds.
    pub fn folds(&self, folds: usize, seed: u64) -> Vec<(Self, Self)> {
        assert!((2..=self.len()).contains(&folds), "{folds} folds of {} examples", self.len());
        let strata = self.labels.strata(&self.ids);
        let fold = |fold| {
            let parts = split::fold(&self.ids, &strata, (fold, folds), seed);
            (self.part(&parts.rest), self.part(&parts.held_out))
        };
        (0..folds).map(fold).collect()
    }
}

impl DataSet {
    /// The examples of the training and of the validation split, in this order, where both are
    /// parts of one source; a validation split of its own is never trained on.
    pub fn train_and_validation(&self) -> Option<Split> {
        self.is_validation_a_part().then(|| self.train.followed_by(&self.validation))
    }

    /// Whether the validation split is a part of the source that is trained on.
    pub fn is_validation_a_part(&self) -> bool {
        Arc::ptr_eq(&self.train.inputs, &self.validation.inputs)
    }

    /// [`Sources::open`], then [`Sources::divide`]: for data that are divided once.
    ///
    /// # Errors
    /// As those two.
    pub fn open(data: &Data, link: Link) -> Result<Self, DataError> {
        Sources::open(data, link)?.divide(data)
    }
}
