//! Sources that are arrays in memory, checked as files are.

use std::sync::Arc;

use aleator_run::recipe::{Data, Framing, HeldOut, InputSource, LabelKind, Link, Source};

use super::source::{OpenSource, own_source};
use super::{Origin, Sources, UNDIVIDED};
use crate::array::Array;
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::{InputShape, Inputs};
use crate::labels::{CleanLabels, RawLabels, Role, Table};

/// A data set in memory, for [`Sources::in_memory`].
#[derive(Clone, Debug)]
pub struct Arrays {
    /// The training source.
    pub train: ArraySplit,
    /// A validation split of its own; without it, it is a part of the training source.
    pub validation: Option<ArraySplit>,
    /// A test split of its own.
    pub test: Option<ArraySplit>,
    /// The names of the classes in the order of their numbers, `[K]`; without them the training
    /// labels decide.
    pub class_names: Option<Vec<String>>,
    /// What the labels are; [`LabelKind::Auto`] decides as for files, see
    /// [`labels`](crate::labels).
    pub label_kind: LabelKind,
    /// How [`ArrayInputs::Pixels`] become inputs.
    pub framing: Framing,
}

/// Some examples in memory.
#[derive(Clone, Debug)]
pub struct ArraySplit {
    /// N inputs.
    pub inputs: ArrayInputs,
    /// One column `[N]` of class numbers or names, or a table `[N, M]`: zeros and ones for each
    /// class, probabilities, or the answer of each annotator with −1 or NaN for none. The names of
    /// the columns are those of the classes or annotators.
    pub labels: Array,
    /// The true labels `[N]` where they are known; never trained on.
    pub clean_labels: Option<Array>,
    /// A distinct id for each example; default: its row.
    pub ids: Option<Vec<String>>,
    /// How much each example counts in training: finite and above 0.
    pub weights: Option<Vec<f32>>,
}

/// Inputs in memory, in C order.
#[derive(Clone, Debug)]
pub enum ArrayInputs {
    /// A matrix `[N, width]`.
    Features {
        /// The numbers, row by row.
        values: Vec<f32>,
        /// Numbers of one example.
        width: usize,
    },
    /// Images `[N, channels, height, width]` whose numbers are used as they are.
    Images {
        /// The numbers, image by image.
        values: Vec<f32>,
        /// Channels, height and width.
        shape: [usize; 3],
    },
    /// Images `[N, channels, height, width]` of one byte a channel, which are framed and can be
    /// augmented as images in files.
    Pixels {
        /// The bytes, image by image.
        bytes: Vec<u8>,
        /// Channels (1 or 3), height and width.
        shape: [usize; 3],
    },
}

impl Arrays {
    /// Training arrays alone, with labels of whatever kind is found.
    pub fn new(train: ArraySplit) -> Self {
        Self {
            train,
            validation: None,
            test: None,
            class_names: None,
            label_kind: LabelKind::Auto,
            framing: Framing::PLAIN,
        }
    }
}

impl ArraySplit {
    /// Inputs and labels, and nothing else.
    pub fn new(inputs: ArrayInputs, labels: Array) -> Self {
        Self { inputs, labels, clean_labels: None, ids: None, weights: None }
    }

    /// The same examples as a source; `name` is what messages call them.
    fn open(
        self,
        name: &str,
        kind: LabelKind,
        framing: &Framing,
        link: Link,
        role: Role,
    ) -> Result<OpenSource, DataError> {
        let inputs = self.inputs.open(name, framing)?;
        let rows = inputs.len();
        let ids = match self.ids {
            Some(ids) => {
                let place = format!("{name}.ids");
                check_count(&place, ids.len(), rows)?;
                Ids::named(ids, place)?
            }
            None => Ids::Rows(rows),
        };
        let place = format!("{name}.weights");
        if let Some(weights) = &self.weights {
            check_count(&place, weights.len(), rows)?;
            let wrong = |weight: &f32| !(weight.is_finite() && *weight > 0.0);
            if let Some(row) = weights.iter().position(wrong) {
                let message =
                    format!("row {row} is {}; a weight is finite and above 0", weights[row]);
                return Err(DataError::invalid(place, message));
            }
        }
        let table = |what: &str, array: Array| {
            let place = format!("{name}.{what}");
            array.check(&place)?;
            Table::new(&place, array)
        };
        let clean = self.clean_labels.map(|labels| table("clean_labels", labels)).transpose()?;
        Ok(OpenSource {
            path: name.into(),
            inputs: Arc::new(inputs),
            ids,
            labels: RawLabels::for_role(table("labels", self.labels)?, kind, link, role)?,
            clean: clean.map(CleanLabels::Table),
            weights: self.weights,
            beside: None,
        })
    }
}

impl ArrayInputs {
    fn open(self, name: &str, framing: &Framing) -> Result<Inputs, DataError> {
        let place = format!("{name}.inputs");
        let image =
            |[channels, height, width]: [usize; 3]| InputShape::Image { channels, height, width };
        let (shape, found) = match &self {
            Self::Features { values, width } => (InputShape::Features(*width), values.len()),
            Self::Images { values, shape } => (image(*shape), values.len()),
            Self::Pixels { bytes, shape } => (image(*shape), bytes.len()),
        };
        let size = shape.checked_len().filter(|size| *size > 0 && found.is_multiple_of(*size));
        if size.is_none() || found == 0 {
            let message = format!("{found} numbers are not one or more {shape}");
            return Err(DataError::invalid(place, message));
        }
        match self {
            Self::Features { values, .. } | Self::Images { values, .. } => {
                Ok(Inputs::in_memory(values, shape).called(place))
            }
            Self::Pixels { bytes, shape: [channels @ (1 | 3), height, width] } => {
                Ok(Inputs::of_bytes(bytes, [channels, height, width], framing).called(place))
            }
            Self::Pixels { shape: [channels, ..], .. } => {
                let message = format!("images have 1 or 3 channels, not {channels}");
                Err(DataError::invalid(place, message))
            }
        }
    }
}

impl Sources {
    /// Takes arrays in place of files, and checks them as files are checked.
    ///
    /// Write the arrays into the recipe with [`Sources::record_in`] before it is trained: a run
    /// then knows which arrays it needs.
    ///
    /// ```
    /// use aleator_data::array::Array;
    /// use aleator_data::{ArrayInputs, ArraySplit, Arrays, Sources};
    /// use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
    ///
    /// let inputs = ArrayInputs::Features { values: (0..40).map(|x| x as f32).collect(), width: 2 };
    /// let labels = Array::names((0..20).map(|row| if row < 10 { "cat" } else { "dog" }));
    /// let sources = Sources::in_memory(Arrays::new(ArraySplit::new(inputs, labels)), Link::Softmax)?;
    /// assert_eq!(sources.class_names(), ["cat", "dog"]);
    ///
    /// let validation = HeldOut::Fraction { fraction: 0.25, seed: 0 };
    /// let mut data = Data::of(Source::of(InputSource::Digits), validation);
    /// sources.record_in(&mut data);
    /// assert_eq!(sources.divide(&data)?.train.len(), 15);
    /// # Ok::<(), aleator_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// When the arrays do not fit together, or labels are not what they should be; the message
    /// names the array and the row.
    pub fn in_memory(arrays: Arrays, link: Link) -> Result<Self, DataError> {
        let Arrays { train, validation, test, class_names, label_kind: kind, framing } = arrays;
        let train = train.open("train", kind, &framing, link, Role::Training)?;
        let own = |split: Option<ArraySplit>, name: &str| {
            split.map(|split| split.open(name, kind, &framing, link, Role::HeldOut)).transpose()
        };
        let held_out = [own(validation, "validation")?, own(test, "test")?];
        let source = Source::of(InputSource::Memory(String::new()));
        let classes = train.classes(&Data::of(source, UNDIVIDED), class_names.as_deref(), link)?;
        Self::new(Origin::Memory(framing), link, classes, train, held_out)?.checked()
    }

    /// Writes into a recipe's `[data]` that it is trained on these arrays; files are left as they
    /// are. How the training source is divided stays, unless a split has arrays of its own.
    pub fn record_in(&self, data: &mut Data) {
        let Origin::Memory(framing) = self.origin else { return };
        let source = || Source::of(InputSource::Memory(self.fingerprint.clone()));
        data.train = source();
        data.framing = framing;
        (data.classes, data.class_names) = (None, None);
        if self.validation.is_some() {
            data.validation = HeldOut::Source(source());
        }
        if self.test.is_some() {
            data.test = Some(HeldOut::Source(source()));
        } else if own_source(data.test.as_ref()).is_some() {
            data.test = None;
        }
    }
}

fn check_count(place: &str, found: usize, rows: usize) -> Result<(), DataError> {
    if found == rows {
        return Ok(());
    }
    Err(DataError::invalid(place, format!("has {found} values for {rows} examples")))
}
