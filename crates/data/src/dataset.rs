//! Everything that a recipe's `[data]` names, opened, checked and divided into splits.

mod fingerprint;
mod set_aside;
pub(crate) mod source;

use std::sync::Arc;

use aleator_run::recipe::{Annotations, Data, HeldOut, LabelNoise, Link};

use crate::augment::Augmenter;
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::{InputShape, Inputs};
use crate::labels::{Classes, Labels, Role};
use crate::noise;
use crate::split::divide;
use fingerprint::Fingerprints;
pub use set_aside::SetAside;
use source::{OpenSource, Source};

/// A data set, ready to train and measure on.
///
/// ```
/// use aleator_data::DataSet;
/// use aleator_run::recipe::{Annotations, Data, Framing, HeldOut, InputSource, LabelKind, Link, Source};
///
/// let data = Data {
///     label_kind: LabelKind::Auto,
///     annotations: Annotations::Majority,
///     classes: None,
///     class_names: None,
///     limit: None,
///     framing: Framing::PLAIN,
///     augment: None,
///     train: Source { inputs: InputSource::Digits, labels: None, clean_labels: None, ids: None },
///     validation: HeldOut::Fraction { fraction: 0.1, seed: 0 },
///     test: Some(HeldOut::Fraction { fraction: 0.2, seed: 0 }),
///     noise: None,
/// };
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
    /// BLAKE3 of the inputs, labels, true labels and ids of all sources, in hexadecimal; labels as
    /// they are before any corruption that the recipe asks for.
    pub fingerprint: String,
    /// What is odd but not wrong, for people.
    pub warnings: Vec<String>,
}

/// Some examples with their labels.
#[derive(Clone, Debug)]
pub struct Split {
    /// `"train"`, `"validation"` or `"test"`.
    pub name: &'static str,
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
    /// What is made of several annotations of one example.
    pub annotations: Annotations,
    /// Whether one class is right or each is on or off: decides the form of targets.
    pub link: Link,
    /// K.
    pub classes: usize,
    /// What training does to the images; evaluation never does. `None` but for the training
    /// split of a recipe with `[data.augment]`.
    pub augment: Option<Arc<Augmenter>>,
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

impl DataSet {
    /// Opens and checks all that `data` names.
    ///
    /// The training source's labels are corrupted before it is divided, so a validation split that
    /// is a part of it is as noisy as the training split. A test split never is, unless it is a
    /// fold, which is there to be judged.
    ///
    /// # Errors
    /// When a file cannot be read, or anything in it is not what it should be; the message says
    /// where and what to do.
    pub fn open(data: &Data, link: Link) -> Result<Self, DataError> {
        let opened = OpenSource::open(&data.train, data, link, Role::Training)?;
        let classes = opened.classes(data, link)?;
        let source = opened.read(&classes, link)?;
        let own = |held_out: &HeldOut| match held_out {
            HeldOut::Fraction { .. } | HeldOut::Fold { .. } => Ok(None),
            HeldOut::Source(other) => {
                source::held_out(other, data, link, &classes, source.inputs.shape()).map(Some)
            }
        };
        let validation_source = own(&data.validation)?;
        let test_source = data.test.as_ref().map(own).transpose()?.flatten();
        let sources = [
            ("train", Some(&source)),
            ("validation", validation_source.as_ref()),
            ("test", test_source.as_ref()),
        ];
        for (_, source) in &sources {
            source.map_or(Ok(()), |source| check_annotations(source, data, link))?;
        }
        check_weights(&source, link)?;
        let marks = Fingerprints::of(&classes.names, &sources)?;

        let corrupted = corrupted(&source, classes.len(), data.noise.as_ref())?;
        let trained = corrupted.as_ref().unwrap_or(&source);
        let strata = trained.labels.strata(&source.ids);
        let parts = divide(&source.ids, &strata, &data.validation, data.test.as_ref(), data.limit)?;
        let split = |name, own: Option<&Source>, from: &Source, rows| {
            Arc::new(match own {
                Some(own) => {
                    own.split(name, (0..own.ids.len()).collect(), data, link, classes.len())
                }
                None => from.split(name, rows, data, link, classes.len()),
            })
        };
        let mut train = split("train", None, trained, parts.train);
        Arc::make_mut(&mut train).augment = augmenter(&source, data, link)?;
        let validation = split("validation", validation_source.as_ref(), trained, parts.validation);
        // A fold is judged by the labels that it would be trained on.
        let tested = match data.test {
            Some(HeldOut::Fold { .. }) => trained,
            _ => &source,
        };
        let test =
            data.test.is_some().then(|| split("test", test_source.as_ref(), tested, parts.test));
        Ok(Self {
            warnings: empty_classes(&train, &classes).into_iter().chain(marks.repeated).collect(),
            fingerprint: marks.fingerprint,
            class_names: classes.names,
            shape: source.inputs.shape(),
            train,
            validation,
            test,
        })
    }
}

/// Reads the labels of the training source and corrupts them as `data.noise` says.
///
/// # Errors
/// As [`DataSet::open`]; also when the recipe asks for no corruption.
pub fn noisy_labels(data: &Data, link: Link) -> Result<NoisyLabels, DataError> {
    let Some(noise) = &data.noise else {
        return Err(DataError::invalid("data.noise", "is missing: say which labels change"));
    };
    let opened = OpenSource::open(&data.train, data, link, Role::Training)?;
    let classes = opened.classes(data, link)?;
    let source = opened.read(&classes, link)?;
    source.inputs.fingerprint_into(&mut blake3::Hasher::new())?;
    let clean = single_labels(&source)?;
    let labels = noise::corrupt(clean, classes.len(), &source.ids, &source.inputs, noise)?;
    Ok(NoisyLabels {
        class_names: classes.names,
        labels,
        clean_labels: source.clean_labels.clone().unwrap_or_else(|| clean.to_vec()),
        ids: source.ids,
    })
}

/// What the examples of the training source are called, in the order of its rows.
///
/// # Errors
/// When the inputs or their ids cannot be read.
pub fn training_ids(data: &Data) -> Result<Ids, DataError> {
    let path = source::path_of(&data.train.inputs);
    let opened = Inputs::open(&data.train.inputs, &data.framing)?;
    source::ids_of(&data.train, &path, opened.ids, opened.inputs.len())
}

/// The source with its labels corrupted, and the labels from before as the true ones.
fn corrupted(
    source: &Source,
    classes: usize,
    noise: Option<&LabelNoise>,
) -> Result<Option<Source>, DataError> {
    let Some(noise) = noise else { return Ok(None) };
    let labels = single_labels(source)?;
    let wrong = noise::corrupt(labels, classes, &source.ids, &source.inputs, noise)?;
    Ok(Some(Source {
        labels: Labels::Single(wrong),
        clean_labels: Some(source.clean_labels.clone().unwrap_or_else(|| labels.to_vec())),
        ..source.clone()
    }))
}

fn single_labels(source: &Source) -> Result<&[u32], DataError> {
    match &source.labels {
        Labels::Single(labels) => Ok(labels),
        _ => Err(DataError::invalid(
            "data.noise",
            format!(
                "makes single labels wrong, but those of {} are not one class an example",
                source.path.display()
            ),
        )),
    }
}

fn augmenter(
    source: &Source,
    data: &Data,
    link: Link,
) -> Result<Option<Arc<Augmenter>>, DataError> {
    let Some(augment) = &data.augment else { return Ok(None) };
    if augment.mixup.is_some() && link == Link::Sigmoid {
        return Err(DataError::invalid(
            "data.augment.mixup",
            "mixes the classes of two examples, which needs head.link = \"softmax\"; with \
             \"sigmoid\" take the key away",
        ));
    }
    let Some(frame) = source.inputs.frame(&data.framing) else {
        let message = "varies images, but the training inputs are none; take the section away";
        return Err(DataError::invalid("data.augment", message));
    };
    Ok(Some(Arc::new(Augmenter::new(augment, frame))))
}

fn check_annotations(source: &Source, data: &Data, link: Link) -> Result<(), DataError> {
    let each = data.annotations == Annotations::Each && link == Link::Sigmoid;
    match (&source.labels, each) {
        (Labels::Annotations(_), true) => Err(DataError::invalid(
            "data.annotations",
            "\"each\" needs head.link = \"softmax\"; with \"sigmoid\" use \"majority\" or \
             \"sampled\"",
        )),
        _ => Ok(()),
    }
}

fn check_weights(train: &Source, link: Link) -> Result<(), DataError> {
    match (&train.weights, link) {
        (Some(_), Link::Sigmoid) => Err(DataError::invalid(
            &train.path,
            "gives its examples weights, which need head.link = \"softmax\"; remove the weights, \
             or use a preset of one class an example",
        )),
        _ => Ok(()),
    }
}

fn empty_classes(train: &Split, classes: &Classes) -> Option<String> {
    let present = train.labels.classes_present(classes.len());
    let empty: Vec<usize> = (0..classes.len()).filter(|class| !present[*class]).collect();
    (!empty.is_empty()).then(|| {
        format!(
            "{} of the {} classes without any training example ({}) cannot be learned: add \
             examples, hold out fewer, or take the classes away",
            empty.len(),
            classes.len(),
            classes.names_of(&empty),
        )
    })
}
