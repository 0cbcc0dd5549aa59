//! Everything that a recipe's `[data]` reads: opened, hashed and checked once, divided many times.

mod fingerprint;
mod memory;
pub(crate) mod source;

use std::sync::Arc;

use aleator_run::Split as SplitName;
use aleator_run::recipe::{self, Annotations, Data, HeldOut, InputSource, LabelNoise, Link};

use crate::augment::Augmenter;
use crate::dataset::{DataSet, Split};
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::InputShape;
use crate::labels::{Classes, Labels, Role, pick};
use crate::noise;
use crate::split::divide;
use fingerprint::fingerprint;
pub use memory::{ArrayInputs, ArraySplit, Arrays};
use source::{OpenSource, Source, mean_one, own_source};

/// The inputs and labels of a data set before they are divided into splits.
///
/// Opening reads, hashes and checks everything. Dividing is cheap, so that the folds of an audit
/// or the points of a sweep share one `Sources`; an image that was checked for one of them is not
/// decoded for the check of another.
///
/// ```
/// use aleator_data::Sources;
/// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
///
/// let validation = HeldOut::Fraction { fraction: 0.1, seed: 0 };
/// let mut data = Data::of(Source::of(InputSource::Digits), validation);
/// let digits = Sources::open(&data, Link::Softmax)?;
/// for fold in 0..5 {
///     data.test = Some(HeldOut::Fold { fold, folds: 5, seed: 0 });
///     let set = digits.divide(&data)?;
///     assert!(set.test.unwrap().len() >= 1797 / 5);
/// }
/// # Ok::<(), aleator_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sources {
    origin: Origin,
    link: Link,
    classes: Classes,
    train: Source,
    /// Where the validation split has a source of its own.
    validation: Option<Source>,
    /// Where the test split has a source of its own.
    test: Option<Source>,
    fingerprint: String,
    /// A warning for each source that repeats the inputs of another.
    repeated: Vec<String>,
}

/// Where the examples come from.
#[derive(Clone, Debug)]
enum Origin {
    /// The files that this `[data]` names; see [`reading_keys`].
    Files(Box<Data>),
    /// Arrays that the caller gave, whose pixels are framed so.
    Memory(recipe::Framing),
}

/// All labels of the training source before and after the corruption that the recipe asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoisyLabels {
    /// In the order of the classes' numbers, `[K]`.
    pub class_names: Vec<String>,
    /// The ids of the examples.
    pub ids: Ids,
    /// After, `[N]`.
    pub labels: Vec<u32>,
    /// Before, `[N]`; the true labels if the source has them.
    pub clean_labels: Vec<u32>,
}

impl Sources {
    /// Opens, hashes and checks all that `data` names. Keys that only say how the examples are
    /// divided and used (`validation` and `test` without a source of their own, `limit`,
    /// `annotations`, `augment`, `noise`) are left to [`Sources::divide`].
    ///
    /// # Errors
    /// When a file cannot be read, or anything in it is not what it should be; the message says
    /// where and what to do.
    pub fn open(data: &Data, link: Link) -> Result<Self, DataError> {
        Self::read(data, link)?.checked()
    }

    /// [`Sources::open`] without looking at the contents of the inputs: no fingerprint is taken,
    /// and numbers need not be finite.
    pub(crate) fn read(data: &Data, link: Link) -> Result<Self, DataError> {
        let train = OpenSource::open(&data.train, data, link, Role::Training, None)?;
        let features = train.inputs.feature_names().map(<[String]>::to_vec);
        let own = |held_out: Option<&HeldOut>| {
            let source = own_source(held_out);
            let open =
                |source| OpenSource::open(source, data, link, Role::HeldOut, features.as_deref());
            source.map(open).transpose()
        };
        let held_out = [own(Some(&data.validation))?, own(data.test.as_ref())?];
        let classes = train.classes(data, None, link)?;
        let origin = Origin::Files(Box::new(reading_keys(data)));
        Self::new(origin, link, classes, train, held_out)
    }

    fn new(
        origin: Origin,
        link: Link,
        classes: Classes,
        train: OpenSource,
        held_out: [Option<OpenSource>; 2],
    ) -> Result<Self, DataError> {
        let train = train.read(&classes, link)?;
        let read = |source: Option<OpenSource>| match source {
            Some(source) => source.like(train.inputs.shape())?.read(&classes, link).map(Some),
            None => Ok(None),
        };
        let [validation, test] = held_out;
        let (validation, test) = (read(validation)?, read(test)?);
        let (fingerprint, repeated) = (String::new(), vec![]);
        Ok(Self { origin, link, validation, test, train, classes, fingerprint, repeated })
    }

    /// The same with the fingerprint of all contents.
    fn checked(mut self) -> Result<Self, DataError> {
        if self.train.weights.is_some() && self.link == Link::Sigmoid {
            return Err(DataError::invalid(
                &self.train.path,
                "gives its examples weights, which need head.link = \"softmax\"; remove the \
                 weights, or use a preset of one class an example",
            ));
        }
        (self.fingerprint, self.repeated) = fingerprint(&self.classes.names, self.all())?;
        Ok(self)
    }

    /// The sources that there are, by the split that each is for.
    pub(crate) fn all(&self) -> impl Iterator<Item = (SplitName, &Source)> {
        let sources = [Some(&self.train), self.validation.as_ref(), self.test.as_ref()];
        SplitName::ALL.into_iter().zip(sources).filter_map(|(name, source)| Some((name, source?)))
    }

    /// What users should know about how the data were read, a line each.
    pub fn notes(&self) -> Vec<String> {
        self.classes.note().into_iter().chain(self.train.note()).collect()
    }

    /// The link that the labels were read for.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The names of the classes, in the order of their numbers, `[K]`.
    pub fn class_names(&self) -> &[String] {
        &self.classes.names
    }

    /// The shape of one example, the same in all sources.
    pub fn shape(&self) -> InputShape {
        self.train.inputs.shape()
    }

    /// The number of examples of the training source.
    #[expect(clippy::len_without_is_empty, reason = "a source without examples is refused")]
    pub fn len(&self) -> usize {
        self.train.ids.len()
    }

    /// BLAKE3 of the inputs, labels, true labels, weights and ids of all sources, in hexadecimal;
    /// labels as they are before any corruption that a recipe asks for.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether `data` reads what was opened here, so that it can be divided as `data` says.
    pub fn are_of(&self, data: &Data, link: Link) -> bool {
        let same = match &self.origin {
            Origin::Files(opened) => **opened == reading_keys(data),
            Origin::Memory(framing) => {
                let named = |source: &recipe::Source| {
                    source.inputs == InputSource::Memory(self.fingerprint.clone())
                };
                let own = |source: &Option<Source>, held_out: Option<&HeldOut>| {
                    let other = own_source(held_out);
                    source.is_some() == other.is_some() && other.is_none_or(named)
                };
                data.framing == *framing
                    && named(&data.train)
                    && own(&self.validation, Some(&data.validation))
                    && own(&self.test, data.test.as_ref())
            }
        };
        same && link == self.link
    }

    /// Divides the examples as `data` says. Its keys about files must be those that were opened.
    ///
    /// The training source's labels are corrupted before it is divided, so a validation split that
    /// is a part of it is as noisy as the training split. A test split never is, unless it is a
    /// fold, which is there to be judged.
    ///
    /// # Errors
    /// When `data` reads other sources, a split would be empty, or the labels do not allow what
    /// `data` asks for.
    pub fn divide(&self, data: &Data) -> Result<DataSet, DataError> {
        self.check_same(data)?;
        self.check_annotations(data)?;
        let noisy = self.corrupted(data.noise.as_ref())?;
        let trained = noisy.as_ref().unwrap_or(&self.train);
        let strata = trained.labels.strata(&trained.ids);
        let parts =
            divide(&trained.ids, &strata, &data.validation, data.test.as_ref(), data.limit)?;
        let split = |name, own: &Option<Source>, from: &Source, rows| match own {
            Some(own) => Arc::new(self.split(name, own, (0..own.ids.len()).collect(), data)),
            None => Arc::new(self.split(name, from, rows, data)),
        };
        let mut train = self.split(SplitName::Train, trained, parts.train, data);
        train.augment = self.augmenter(data)?;
        // A fold is judged by the labels that it would be trained on.
        let tested = match data.test {
            Some(HeldOut::Fold { .. }) => trained,
            _ => &self.train,
        };
        let test = data.test.as_ref();
        Ok(DataSet {
            warnings: self.empty_classes(&train).into_iter().chain(self.repeated.clone()).collect(),
            fingerprint: self.fingerprint.clone(),
            class_names: self.classes.names.clone(),
            shape: self.shape(),
            train: Arc::new(train),
            validation: split(SplitName::Validation, &self.validation, trained, parts.validation),
            test: test.map(|_| split(SplitName::Test, &self.test, tested, parts.test)),
        })
    }

    /// All examples of the training source in their order, labelled as training sees them.
    ///
    /// # Errors
    /// As [`Sources::divide`].
    pub fn training_source(&self, data: &Data) -> Result<Split, DataError> {
        self.check_same(data)?;
        let noisy = self.corrupted(data.noise.as_ref())?;
        let rows = (0..self.len()).collect();
        Ok(self.split(SplitName::Train, noisy.as_ref().unwrap_or(&self.train), rows, data))
    }

    /// All examples of a source that a trained run did not see, with the run's classes, which its
    /// labels name. `data` says how the run read its own, and `features` which columns of a table.
    ///
    /// # Errors
    /// When the source cannot be read, its examples have another shape than the run's, or a label
    /// is none of the run's classes.
    pub fn labelled(
        source: &recipe::Source,
        shape: InputShape,
        class_names: &[String],
        data: &Data,
        link: Link,
        features: Option<&[String]>,
    ) -> Result<Split, DataError> {
        let data = Data { train: source.clone(), test: None, noise: None, ..data.clone() };
        let origin = Origin::Files(Box::new(reading_keys(&data)));
        let classes = Classes::of_run(class_names)?;
        let open = OpenSource::open(source, &data, link, Role::HeldOut, features)?.like(shape)?;
        Self::new(origin, link, classes, open, [None, None])?.checked()?.training_source(&data)
    }

    /// The labels of the training source, corrupted.
    ///
    /// # Errors
    /// When the labels are not one class an example, or the corruption is impossible.
    pub fn noisy_labels(&self, noise: &LabelNoise) -> Result<NoisyLabels, DataError> {
        let Labels::Single(given) = &self.train.labels else {
            let path = self.train.path.display();
            let message = format!(
                "makes single labels wrong, but those of {path} are not one class an example"
            );
            return Err(DataError::invalid("data.noise", message));
        };
        let Source { ids, inputs, clean_labels, labelled, .. } = &self.train;
        if labelled.is_some() {
            return Err(DataError::invalid(
                "data.noise",
                "makes labels of all examples wrong, but the label file leaves some out; remove \
                 the section: --set data.noise=",
            ));
        }
        Ok(NoisyLabels {
            class_names: self.classes.names.clone(),
            labels: noise::corrupt(given, self.classes.len(), ids, inputs, noise)?,
            clean_labels: clean_labels.clone().unwrap_or_else(|| given.to_vec()),
            ids: ids.clone(),
        })
    }

    /// The training source with its labels corrupted, and the labels from before as the true ones.
    fn corrupted(&self, noise: Option<&LabelNoise>) -> Result<Option<Source>, DataError> {
        let Some(noise) = noise else { return Ok(None) };
        let NoisyLabels { labels, clean_labels, .. } = self.noisy_labels(noise)?;
        Ok(Some(Source {
            labels: Labels::Single(labels),
            clean_labels: Some(clean_labels),
            ..self.train.clone()
        }))
    }

    fn split(&self, name: SplitName, from: &Source, rows: Vec<usize>, data: &Data) -> Split {
        let all = rows.len() == from.ids.len();
        Split {
            name,
            inputs: Arc::clone(&from.inputs),
            ids: if all { from.ids.clone() } else { from.ids.select(&rows) },
            labels: if all { from.labels.clone() } else { from.labels.select(&rows) },
            clean_labels: from.clean_labels.as_ref().map(|labels| pick(labels, &rows)),
            weights: from.weights.as_ref().map(|weights| mean_one(pick(weights, &rows))),
            rows: rows.into_iter().map(|example| from.row(example)).collect(),
            annotations: data.annotations,
            link: self.link,
            classes: self.classes.len(),
            augment: None,
        }
    }

    fn augmenter(&self, data: &Data) -> Result<Option<Arc<Augmenter>>, DataError> {
        let Some(augment) = &data.augment else { return Ok(None) };
        if augment.mixup.is_some() && self.link == Link::Sigmoid {
            return Err(DataError::invalid(
                "data.augment.mixup",
                "mixes the classes of two examples, which needs head.link = \"softmax\"; with \
                 \"sigmoid\" remove the key",
            ));
        }
        let Some(frame) = self.train.inputs.frame(&data.framing) else {
            let message = "varies images, but the training inputs are none; remove the section";
            return Err(DataError::invalid("data.augment", message));
        };
        Ok(Some(Arc::new(Augmenter::new(augment, frame))))
    }

    fn check_same(&self, data: &Data) -> Result<(), DataError> {
        if self.are_of(data, self.link) {
            return Ok(());
        }
        let message = match self.origin {
            Origin::Files(_) => "names other files than those that were opened",
            Origin::Memory(_) => {
                "does not name the arrays that were given: data.train.memory, and that of each \
                 split with arrays of its own, must be their fingerprint"
            }
        };
        Err(DataError::invalid("data", message))
    }

    fn check_annotations(&self, data: &Data) -> Result<(), DataError> {
        let annotated =
            self.all().any(|(_, source)| matches!(source.labels, Labels::Annotations(_)));
        if annotated && data.annotations == Annotations::Each && self.link == Link::Sigmoid {
            return Err(DataError::invalid(
                "data.annotations",
                "\"each\" needs head.link = \"softmax\"; with \"sigmoid\" use \"majority\" or \
                 \"sampled\"",
            ));
        }
        Ok(())
    }

    fn empty_classes(&self, train: &Split) -> Option<String> {
        let classes = &self.classes;
        let present = train.labels.classes_present(classes.len());
        let empty: Vec<usize> = (0..classes.len()).filter(|class| !present[*class]).collect();
        (!empty.is_empty()).then(|| {
            format!(
                "{} of the {} classes without any training example ({}) cannot be learned: add \
                 examples, hold out fewer, or remove the classes",
                empty.len(),
                classes.len(),
                classes.names_of(&empty),
            )
        })
    }
}

/// Reads the labels of the training source and corrupts them as `data.noise` says.
///
/// # Errors
/// As [`Sources::open`] and [`Sources::noisy_labels`]; also when the recipe asks for no corruption.
pub fn noisy_labels(data: &Data, link: Link) -> Result<NoisyLabels, DataError> {
    let Some(noise) = &data.noise else {
        return Err(DataError::invalid("data.noise", "is missing: say which labels change"));
    };
    let alone = Data { validation: UNDIVIDED, test: None, ..data.clone() };
    Sources::open(&alone, link)?.noisy_labels(noise)
}

/// The ids of the training source's examples, in the order of its rows.
///
/// # Errors
/// When the inputs or their ids cannot be read.
pub fn training_ids(data: &Data) -> Result<Ids, DataError> {
    source::inputs_and_ids(&data.train, &data.framing, None).map(|(_, ids)| ids)
}

/// Stands for a validation split that is a part of the training source.
const UNDIVIDED: HeldOut = HeldOut::Fraction { fraction: 0.5, seed: 0 };

/// The keys of `[data]` that decide what is read; all others have the same value for all recipes.
fn reading_keys(data: &Data) -> Data {
    let own = |held_out: &HeldOut| own_source(Some(held_out)).is_some();
    Data {
        annotations: Annotations::Majority,
        limit: None,
        augment: None,
        validation: if own(&data.validation) { data.validation.clone() } else { UNDIVIDED },
        test: data.test.clone().filter(own),
        noise: None,
        ..data.clone()
    }
}
