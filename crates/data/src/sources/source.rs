//! One source of a data set: inputs, ids, labels and true labels of the same examples.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_run::recipe::{self, Data, Framing, HeldOut, InputSource, LabelKind, Link};

use crate::array::{Array, Values};
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::{CarriedLabels, InputShape, Inputs, Opened};
use crate::labels::{Classes, CleanLabels, Labels, RawLabels, Role, Table, pick};

/// A source whose files are open, before the classes are known.
pub(crate) struct OpenSource {
    pub path: PathBuf,
    pub inputs: Arc<Inputs>,
    pub ids: Ids,
    pub labels: RawLabels,
    pub clean: Option<CleanLabels>,
    pub weights: Option<Vec<f32>>,
    /// Class names that the inputs carry although a label file is read.
    pub beside: Option<Vec<String>>,
}

/// A source whose labels are classes.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The inputs' file or folder, for messages.
    pub path: PathBuf,
    pub inputs: Arc<Inputs>,
    /// The rows of the inputs that the examples have, where the labels leave some out.
    pub labelled: Option<Vec<usize>>,
    pub ids: Ids,
    pub labels: Labels,
    pub clean_labels: Option<Vec<u32>>,
    /// As the files have them, one an example.
    pub weights: Option<Vec<f32>>,
}

impl OpenSource {
    pub fn open(
        source: &recipe::Source,
        data: &Data,
        link: Link,
        role: Role,
        features: Option<&[String]>,
    ) -> Result<Self, DataError> {
        let path = path_of(&source.inputs);
        let (opened, ids) = inputs_and_ids(source, &data.framing, features)?;
        let (labels, beside) = match (&source.labels, opened.labels) {
            (Some(spec), _) => {
                (RawLabels::load(spec, data.label_kind, link, role)?, opened.class_names)
            }
            (None, Some(labels)) => {
                check_carried(data.label_kind, link, &labels, role, &path)?;
                let (names, path) = (opened.class_names, path.clone());
                match labels {
                    CarriedLabels::Classes(labels) => {
                        (RawLabels::Carried { labels, names, path }, None)
                    }
                    CarriedLabels::Written(labels) => {
                        (RawLabels::written(labels, role.kind(data.label_kind), link)?, names)
                    }
                    CarriedLabels::Annotated(votes) => (RawLabels::Annotated(votes), names),
                }
            }
            (None, None) => {
                return Err(DataError::invalid(
                    &path,
                    "holds no labels; name a label file: labels = \"labels.npy\" beside it",
                ));
            }
        };
        let clean = match source.clean_labels.as_deref() {
            Some(spec) => Some(CleanLabels::Table(Table::load(spec)?)),
            None => opened.clean_labels.map(CleanLabels::Written),
        };
        let weights = opened.weights;
        Ok(Self { path, inputs: opened.inputs, ids, labels, clean, weights, beside })
    }

    /// The classes that this source, as the training source, has.
    ///
    /// `names` are those that the caller gave.
    pub fn classes(
        &self,
        data: &Data,
        names: Option<&[String]>,
        link: Link,
    ) -> Result<Classes, DataError> {
        let classes = match names {
            Some(names) => Classes::given(names, &self.labels)?,
            None => {
                let (clean, beside) = (self.clean.as_ref(), self.beside.as_deref());
                let names = data.class_names.as_deref();
                Classes::find(data.classes, names, &self.labels, clean, beside)?
            }
        };
        let binary = self.labels.is_multi_hot() && link == Link::Sigmoid;
        if classes.len() >= if binary { 1 } else { 2 } {
            return Ok(classes);
        }
        // A label that is wrong by itself is the better message.
        self.labels.read(&classes, &self.ids, link)?;
        let message = format!(
            "its labels are of {} class; a classifier needs at least two: add examples of other \
             classes, or set data.classes",
            classes.len()
        );
        Err(DataError::invalid(&self.path, message))
    }

    /// The same, unless its examples do not have the shape of the training source's.
    pub fn like(self, shape: InputShape) -> Result<Self, DataError> {
        let found = self.inputs.shape();
        if found == shape {
            return Ok(self);
        }
        let message =
            format!("its examples are {found}, but those of the training source are {shape}");
        Err(DataError::invalid(&self.path, message))
    }

    pub fn read(self, classes: &Classes, link: Link) -> Result<Source, DataError> {
        let labelled = self.labels.labelled(&self.ids);
        let clean = self.clean.map(|labels| labels.read(classes, &self.ids)).transpose()?;
        let ids = match &labelled {
            Some(rows) => self.ids.select(rows),
            None => self.ids,
        };
        Ok(Source {
            path: self.path,
            inputs: self.inputs,
            labels: self.labels.read(classes, &ids, link)?,
            clean_labels: clean.map(|clean| kept(clean, labelled.as_deref())),
            weights: match self.labels.weights(&ids)? {
                Some(weights) => Some(weights),
                None => self.weights.map(|weights| kept(weights, labelled.as_deref())),
            },
            ids,
            labelled,
        })
    }
}

impl Source {
    /// The row of an example in the inputs.
    pub fn row(&self, example: usize) -> usize {
        self.labelled.as_ref().map_or(example, |rows| rows[example])
    }

    /// What users should know about the examples that have no label.
    pub fn note(&self) -> Option<String> {
        let (labelled, all) = (self.labelled.as_ref()?.len(), self.inputs.len());
        let left_out = all - labelled;
        let path = self.path.display();
        Some(format!(
            "the labels name {labelled} of the {all} examples of {path}; the other {left_out} are \
             left out"
        ))
    }
}

/// The values of the examples that are labelled.
fn kept<T: Clone>(values: Vec<T>, labelled: Option<&[usize]>) -> Vec<T> {
    match labelled {
        Some(rows) => pick(&values, rows),
        None => values,
    }
}

/// Weights whose mean is 1, so that they change what is learned from, not how fast.
pub(crate) fn mean_one(weights: Vec<f32>) -> Vec<f32> {
    let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let mean = sum / weights.len() as f64;
    weights.into_iter().map(|weight| (f64::from(weight) / mean) as f32).collect()
}

fn check_carried(
    kind: LabelKind,
    link: Link,
    labels: &CarriedLabels,
    role: Role,
    path: &Path,
) -> Result<(), DataError> {
    let (carries, carried) = match labels {
        CarriedLabels::Annotated(_) => ("labels of several annotators", LabelKind::Annotators),
        CarriedLabels::Written(_) if kind == LabelKind::MultiHot && link == Link::Sigmoid => {
            ("sets of classes", LabelKind::MultiHot)
        }
        CarriedLabels::Classes(_) | CarriedLabels::Written(_) => {
            ("single labels", LabelKind::Single)
        }
    };
    if role == Role::HeldOut || kind == LabelKind::Auto || kind == carried {
        return Ok(());
    }
    let wanted = serde_json::to_string(&kind).expect("a kind of labels is a word");
    let message = format!(
        "carries {carries}, but data.label_kind is {wanted}; name a label file of that kind, or \
         set data.label_kind = \"auto\""
    );
    Err(DataError::invalid(path, message))
}

/// The inputs of a source with what their files say beside them, and the ids of its examples: as
/// the recipe says, else as the files do, else the rows. `features` names the columns of a table.
pub(crate) fn inputs_and_ids(
    source: &recipe::Source,
    framing: &Framing,
    features: Option<&[String]>,
) -> Result<(Opened, Ids), DataError> {
    let mut opened = Inputs::open_like(&source.inputs, framing, features)?;
    let ids = match (&source.ids, opened.ids.take()) {
        (Some(spec), _) => read_ids(spec, opened.inputs.len())?,
        (None, Some(names)) => Ids::named(names, path_of(&source.inputs))?,
        (None, None) => Ids::Rows(opened.inputs.len()),
    };
    Ok((opened, ids))
}

pub(crate) fn read_ids(spec: &str, examples: usize) -> Result<Ids, DataError> {
    let array = Array::load(spec)?;
    let count = array.values.len();
    let refuse = |message: String| Err(DataError::invalid(spec, message));
    if !matches!(array.shape[..], [_] | [_, 1]) {
        return refuse(format!(
            "ids must be one column, found the shape {:?}; name the column: \"file#column\"",
            array.shape
        ));
    }
    if count != examples {
        return refuse(format!("has {count} ids, but there are {examples} examples"));
    }
    match array.values {
        Values::Int(values) => Ids::named(values.iter().map(i64::to_string).collect(), spec),
        Values::Text(names) => Ids::named(names, spec),
        Values::Float(_) => refuse("ids must be whole numbers or words, none missing".into()),
    }
}

/// The source of a split that has its own.
pub(crate) fn own_source(held_out: Option<&HeldOut>) -> Option<&recipe::Source> {
    match held_out {
        Some(HeldOut::Source(source)) => Some(source),
        Some(HeldOut::Fraction { .. } | HeldOut::Count { .. } | HeldOut::Fold { .. }) | None => {
            None
        }
    }
}

/// The file or folder of some inputs, for messages.
pub(crate) fn path_of(inputs: &InputSource) -> PathBuf {
    match inputs {
        InputSource::Features(spec) => spec.into(),
        InputSource::Table(table) => table.file.clone().into(),
        InputSource::Images(paths) => paths[0].clone(),
        InputSource::Digits => "digits".into(),
        InputSource::Memory(_) => "memory".into(),
    }
}
