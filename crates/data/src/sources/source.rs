//! One source of a data set: inputs, ids, labels and true labels of the same examples.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aleator_run::Split as SplitName;
use aleator_run::recipe::{self, Annotations, Data, Framing, InputSource, LabelKind, Link};

use crate::array::{Array, Values};
use crate::dataset::Split;
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
    ) -> Result<Self, DataError> {
        let path = path_of(&source.inputs);
        let (opened, ids) = inputs_and_ids(source, &data.framing)?;
        let (labels, beside) = match (&source.labels, opened.labels) {
            (Some(spec), _) => {
                (RawLabels::load(spec, data.label_kind, link, role)?, opened.class_names)
            }
            (None, Some(labels)) => {
                check_carried(data.label_kind, &labels, role, &path)?;
                let (names, path) = (opened.class_names, path.clone());
                match labels {
                    CarriedLabels::Classes(labels) => {
                        (RawLabels::Carried { labels, names, path }, None)
                    }
                    CarriedLabels::Written(labels) => (RawLabels::Written(labels), names),
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
            Some(names) => Classes::given(names)?,
            None => {
                let beside = self.beside.as_deref();
                Classes::find(data, &self.labels, self.clean.as_ref(), beside)?
            }
        };
        let binary = self.labels.is_multi_hot() && link == Link::Sigmoid;
        if classes.len() >= if binary { 1 } else { 2 } {
            return Ok(classes);
        }
        // A label that is wrong by itself is the better message.
        self.labels.read(&classes, &self.ids, link)?;
        Err(DataError::invalid(
            &self.path,
            format!(
                "its labels are of {} class; a classifier needs at least two: add examples of \
                 other classes, or set data.classes",
                classes.len()
            ),
        ))
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
        let labels = self.labels.read(classes, &self.ids, link)?;
        let clean = self.clean.map(|labels| labels.read(classes, &self.ids)).transpose()?;
        Ok(Source {
            path: self.path,
            inputs: self.inputs,
            ids: self.ids,
            labels,
            clean_labels: clean,
            weights: self.weights,
        })
    }
}

impl Source {
    /// These examples of the source.
    pub fn split(
        &self,
        name: SplitName,
        rows: Vec<usize>,
        annotations: Annotations,
        link: Link,
        classes: usize,
    ) -> Split {
        let all = rows.len() == self.ids.len();
        Split {
            name,
            inputs: Arc::clone(&self.inputs),
            ids: if all { self.ids.clone() } else { self.ids.select(&rows) },
            labels: if all { self.labels.clone() } else { self.labels.select(&rows) },
            clean_labels: self.clean_labels.as_ref().map(|labels| pick(labels, &rows)),
            weights: self.weights.as_ref().map(|weights| mean_one(pick(weights, &rows))),
            rows,
            annotations,
            link,
            classes,
            augment: None,
        }
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
    labels: &CarriedLabels,
    role: Role,
    path: &Path,
) -> Result<(), DataError> {
    let carries = match labels {
        CarriedLabels::Annotated(_) => "labels of several annotators",
        CarriedLabels::Classes(_) | CarriedLabels::Written(_) => "single labels",
    };
    let annotated = matches!(labels, CarriedLabels::Annotated(_));
    let wanted = match kind {
        LabelKind::Auto => return Ok(()),
        LabelKind::Single if !annotated => return Ok(()),
        LabelKind::Annotators if annotated => return Ok(()),
        _ if role == Role::HeldOut => return Ok(()),
        LabelKind::Single => "single",
        LabelKind::MultiHot => "multi-hot",
        LabelKind::Soft => "soft",
        LabelKind::Annotators => "annotators",
    };
    Err(DataError::invalid(
        path,
        format!(
            "carries {carries}, but data.label_kind is {wanted:?}; name a label file of that \
             kind, or set data.label_kind = \"auto\""
        ),
    ))
}

/// The inputs of a source with what their files say beside them, and the ids of its examples: as
/// the recipe says, else as the files do, else the rows.
pub(crate) fn inputs_and_ids(
    source: &recipe::Source,
    framing: &Framing,
) -> Result<(Opened, Ids), DataError> {
    let mut opened = Inputs::open(&source.inputs, framing)?;
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
    if !matches!(array.shape[..], [_] | [_, 1]) {
        return Err(DataError::invalid(
            spec,
            format!(
                "ids must be one column, found the shape {:?}; name the column: \"file#column\"",
                array.shape
            ),
        ));
    }
    if count != examples {
        return Err(DataError::invalid(
            spec,
            format!("has {count} ids, but there are {examples} examples"),
        ));
    }
    match array.values {
        Values::Int(values) => Ids::named(values.iter().map(i64::to_string).collect(), spec),
        Values::Text(names) => Ids::named(names, spec),
        Values::Float(_) => {
            Err(DataError::invalid(spec, "ids must be whole numbers or words, none missing"))
        }
    }
}

/// The file or folder of some inputs, for messages.
pub(crate) fn path_of(inputs: &InputSource) -> PathBuf {
    match inputs {
        InputSource::Features(spec) => spec.into(),
        InputSource::Images(paths) => paths[0].clone(),
        InputSource::Digits => "digits".into(),
        InputSource::Memory(_) => "memory".into(),
    }
}
