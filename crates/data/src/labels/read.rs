//! Label files: which kind a file holds, and its cells turned into classes.

use std::path::PathBuf;

use aleator_run::recipe::{LabelKind, Link};

use super::by_id::LabelsById;
use super::classes::Classes;
use super::sets::{SEPARATOR, WrittenSets};
use super::table::{Cell, Table};
use super::votes::{self, LongTable};
use super::written::{WrittenAnnotations, WrittenLabels};
use super::{DenseRows, Labels, SparseRows};
use crate::array::Values;
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::names_beside_labels;

/// How far from 1 a row of probabilities may sum: three decimals, as in files with rounded numbers.
const SUM_TOLERANCE: f64 = 1e-3;

/// Labels as their file has them, before the classes are known.
#[derive(Debug)]
pub(crate) enum RawLabels {
    /// From the inputs' own files: one class per example, a position in `names` if there are any.
    Carried {
        labels: Vec<u32>,
        names: Option<Vec<String>>,
        path: PathBuf,
    },
    Single(Table),
    MultiHot(Table),
    Soft(Table),
    /// A column for each annotator.
    Wide(Table),
    /// A row for each annotation.
    Long(Box<LongTable>),
    /// From the inputs' own files: a name or number per example.
    Written(WrittenLabels),
    /// From the inputs' own files: several per example, with their annotators.
    Annotated(WrittenAnnotations),
    /// A set of classes for each example.
    Sets(WrittenSets),
    /// A row for each example, with its id.
    ById(LabelsById),
}

/// The true labels as their file has them.
#[derive(Debug)]
pub(crate) enum CleanLabels {
    Table(Table),
    Written(WrittenLabels),
}

impl CleanLabels {
    /// The class of each example.
    pub fn read(&self, classes: &Classes, ids: &Ids) -> Result<Vec<u32>, DataError> {
        match self {
            Self::Table(table) => single(table, classes, ids.len()),
            Self::Written(labels) => labels.read(classes, ids),
        }
    }
}

/// The purpose of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Training,
    HeldOut,
}

impl Role {
    /// The kind of labels to read: what is held out may be labelled in another way.
    pub fn kind(self, kind: LabelKind) -> LabelKind {
        let free = self == Self::HeldOut && kind != LabelKind::MultiHot;
        if free { LabelKind::Auto } else { kind }
    }
}

impl RawLabels {
    /// Reads a label file.
    pub fn load(spec: &str, kind: LabelKind, link: Link, role: Role) -> Result<Self, DataError> {
        match LabelsById::load(spec, role.kind(kind), link, role)? {
            Some(labels) => Ok(Self::ById(labels)),
            None => {
                let table = Table::load(spec)?;
                match Self::with_names(spec, &table, role.kind(kind))? {
                    Some(labels) => Ok(labels),
                    None => Self::for_role(table, kind, link, role),
                }
            }
        }
    }

    /// Class numbers whose names stand in the same file.
    fn with_names(spec: &str, table: &Table, kind: LabelKind) -> Result<Option<Self>, DataError> {
        let (Values::Int(numbers), 1) = (&table.cells, table.width) else { return Ok(None) };
        if !matches!(kind, LabelKind::Auto | LabelKind::Single) {
            return Ok(None);
        }
        let labels: Option<Vec<u32>> = numbers.iter().map(|it| u32::try_from(*it).ok()).collect();
        let names = names_beside_labels(spec)?;
        let carried = |(labels, names)| Self::Carried {
            labels,
            names: Some(names),
            path: PathBuf::from(spec),
        };
        Ok(labels.zip(names).map(carried))
    }

    /// A table whose rows are in the order of the examples; that of a held-out source may be one
    /// column whatever `kind` says.
    pub fn for_role(
        table: Table,
        kind: LabelKind,
        link: Link,
        role: Role,
    ) -> Result<Self, DataError> {
        let kind = if table.width == 1 { role.kind(kind) } else { kind };
        Self::of_table(table, kind, link)
    }

    /// A table whose rows are in the order of the examples.
    pub(super) fn of_table(table: Table, kind: LabelKind, link: Link) -> Result<Self, DataError> {
        if let (Values::Text(texts), 1) = (&table.cells, table.width)
            && Self::are_sets(texts, kind, link)
        {
            let texts = texts.iter().map(String::as_str);
            return Ok(Self::Sets(WrittenSets::new(table.path.as_ref(), texts)));
        }
        match kind {
            LabelKind::Auto => Self::recognise(table, link),
            LabelKind::Single if table.width == 1 => Ok(Self::Single(table)),
            LabelKind::Single => Err(not_one_column(&table)),
            LabelKind::MultiHot if link == Link::Sigmoid => Ok(Self::MultiHot(table)),
            LabelKind::MultiHot => Err(table.refuse(
                "holds multi-hot labels, which need head.link = \"sigmoid\": use a multilabel \
                 preset, or change data.label_kind",
            )),
            LabelKind::Soft => match table.cells {
                Values::Text(_) => Err(table.refuse("soft labels are numbers, found words")),
                _ => Ok(Self::Soft(table)),
            },
            LabelKind::Annotators => Ok(Self::annotators(table)),
        }
    }

    /// Whether texts, one for each example, are sets of classes.
    pub(super) fn are_sets(texts: &[String], kind: LabelKind, link: Link) -> bool {
        let written = || texts.iter().any(|text| WrittenSets::is_set(text));
        link == Link::Sigmoid
            && (kind == LabelKind::MultiHot || kind == LabelKind::Auto && written())
    }

    /// Names or numbers in the files of the inputs: one class or a set for each example.
    pub fn written(labels: WrittenLabels, kind: LabelKind, link: Link) -> Result<Self, DataError> {
        if Self::are_sets(labels.distinct(), kind, link) {
            let texts = (0..labels.len()).map(|example| labels.get(example));
            return Ok(Self::Sets(WrittenSets::new(labels.path(), texts)));
        }
        let is_list = |text: &&String| text.ends_with(SEPARATOR);
        match labels.distinct().iter().find(is_list).filter(|_| link == Link::Softmax) {
            None => Ok(Self::Written(labels)),
            Some(list) => {
                let list = list.trim_end_matches(SEPARATOR);
                let message = format!(
                    "has lists of classes as labels, such as {list:?}, which need head.link = \
                     \"sigmoid\": use a multilabel preset, or give each example one class"
                );
                Err(DataError::invalid(labels.path(), message))
            }
        }
    }

    fn recognise(table: Table, link: Link) -> Result<Self, DataError> {
        if table.width == 1 {
            return Ok(Self::Single(table));
        }
        if LongTable::has_columns(&table) {
            return Ok(Self::annotators(table));
        }
        if table.find_column(&["label", "labels", "clean_label", "class", "target"]).is_some() {
            return Err(not_one_column(&table));
        }
        let beyond_binary =
            |(_, cell): (usize, Cell)| !matches!(cell, Cell::Whole(0) | Cell::Whole(1));
        match (&table.cells, link) {
            (Values::Float(_), _) => Self::probabilities(table, link),
            (Values::Text(_), _) => Ok(Self::Wide(table)),
            (Values::Int(_), _) if table.all().any(beyond_binary) => Ok(Self::Wide(table)),
            (Values::Int(_), Link::Sigmoid) => Ok(Self::MultiHot(table)),
            (Values::Int(_), Link::Softmax) if table.floats => Self::probabilities(table, link),
            (Values::Int(_), Link::Softmax) => Err(table.refuse(
                "is a table of zeros and ones, which head.link = \"softmax\" cannot learn as such; \
                 if several classes may be on, use a multilabel preset (head.link = \"sigmoid\"); \
                 if each row is one class or probabilities, set data.label_kind = \"soft\"; if \
                 each column is an annotator, set data.label_kind = \"annotators\"",
            )),
        }
    }

    fn probabilities(table: Table, link: Link) -> Result<Self, DataError> {
        for row in 0..table.rows {
            if let Err(message) = check_probabilities(&table, row, link) {
                let why = "The file was taken for soft labels, since it holds fractions";
                return Err(table.refuse_row(row, format!("{message}. {why}")));
            }
        }
        Ok(Self::Soft(table))
    }

    fn annotators(table: Table) -> Self {
        if LongTable::has_columns(&table) {
            Self::Long(Box::new(LongTable::new(&table)))
        } else {
            Self::Wide(table)
        }
    }

    /// What the training source itself calls the classes: its folders or columns.
    pub fn class_names(&self) -> Option<&[String]> {
        match self {
            Self::Carried { names, .. } => names.as_deref(),
            Self::MultiHot(table) | Self::Soft(table) => table.columns.as_deref(),
            Self::ById(labels) => labels.labels.class_names(),
            _ => None,
        }
    }

    /// Whether each class is on or off.
    pub fn is_multi_hot(&self) -> bool {
        match self {
            Self::MultiHot(_) | Self::Sets(_) => true,
            Self::ById(labels) => labels.labels.is_multi_hot(),
            _ => false,
        }
    }

    /// The examples that have a label, where the file leaves some out.
    pub fn labelled(&self, ids: &Ids) -> Option<Vec<usize>> {
        if let Self::ById(labels) = self { labels.labelled(ids) } else { None }
    }

    /// The weights that the label file gives the examples.
    pub fn weights(&self, ids: &Ids) -> Result<Option<Vec<f32>>, DataError> {
        if let Self::ById(labels) = self { labels.weights(ids) } else { Ok(None) }
    }

    /// The labels as classes, one for each id.
    pub fn read(&self, classes: &Classes, ids: &Ids, link: Link) -> Result<Labels, DataError> {
        match self {
            Self::Carried { labels, names, path } => {
                carried(labels, names.as_deref(), path, classes, ids.len()).map(Labels::Single)
            }
            Self::Single(table) => single(table, classes, ids.len()).map(Labels::Single),
            Self::MultiHot(table) => multi_hot(table, classes, ids.len()).map(Labels::MultiHot),
            Self::Soft(table) => soft(table, classes, ids.len(), link).map(Labels::Soft),
            Self::Wide(table) => votes::wide(table, classes, ids.len()).map(Labels::Annotations),
            Self::Long(table) => votes::long(table, classes, ids).map(Labels::Annotations),
            Self::Written(labels) => labels.read(classes, ids).map(Labels::Single),
            Self::Annotated(votes) => votes.read(classes, ids).map(Labels::Annotations),
            Self::Sets(sets) => sets.read(classes, ids).map(Labels::MultiHot),
            Self::ById(labels) => labels.read(classes, ids, link),
        }
    }
}

/// One class per row.
fn single(table: &Table, classes: &Classes, examples: usize) -> Result<Vec<u32>, DataError> {
    if table.width != 1 {
        return Err(not_one_column(table));
    }
    check_count(table, examples)?;
    let class = |(row, cell)| classes.class(cell, &|message| table.refuse_row(row, message));
    table.all().map(class).collect()
}

fn carried(
    labels: &[u32],
    names: Option<&[String]>,
    path: &std::path::Path,
    classes: &Classes,
    examples: usize,
) -> Result<Vec<u32>, DataError> {
    let class_of = names.map(|names| classes.align(names, path)).transpose()?;
    if labels.len() != examples {
        let message = format!(
            "has {} labels, but there are {examples} examples; each example needs its label, in \
             the same order",
            labels.len()
        );
        return Err(DataError::invalid(path, message));
    }
    let class = |(row, label): (usize, &u32)| match &class_of {
        Some(class_of) => class_of.get(*label as usize).copied().ok_or_else(|| {
            let named = class_of.len();
            let place = "(counted from 0)";
            let message = format!("example {row} {place} has class {label} of {named}");
            DataError::invalid(path, message)
        }),
        None => classes.class(Cell::Whole(i64::from(*label)), &|message| {
            DataError::invalid(path, format!("example {row} (counted from 0): {message}"))
        }),
    };
    labels.iter().enumerate().map(class).collect()
}

fn multi_hot(table: &Table, classes: &Classes, examples: usize) -> Result<SparseRows, DataError> {
    check_count(table, examples)?;
    let class_of = class_of_columns(table, classes)?;
    let mut rows = SparseRows { offsets: vec![0], classes: vec![] };
    for row in 0..table.rows {
        let from = rows.classes.len();
        for (column, class) in class_of.iter().enumerate() {
            match table.cell(row, column) {
                Cell::Whole(0) => {}
                Cell::Whole(1) => rows.classes.push(*class),
                cell => {
                    let message = format!("column {column} is {cell}; multi-hot labels are 0 or 1");
                    return Err(table.refuse_row(row, message));
                }
            }
        }
        rows.classes[from..].sort_unstable();
        rows.offsets.push(rows.classes.len());
    }
    Ok(rows)
}

fn soft(
    table: &Table,
    classes: &Classes,
    examples: usize,
    link: Link,
) -> Result<DenseRows, DataError> {
    check_count(table, examples)?;
    let class_of = class_of_columns(table, classes)?;
    let mut values = vec![0.0; table.rows * table.width];
    for (row, out) in values.chunks_exact_mut(table.width).enumerate() {
        let sum = check_probabilities(table, row, link)
            .map_err(|message| table.refuse_row(row, message))?;
        for (column, class) in class_of.iter().enumerate() {
            // Rounding may have lifted a certain class above 1.
            out[*class as usize] = (number(table.cell(row, column)) / sum).min(1.0) as f32;
        }
    }
    Ok(DenseRows { classes: table.width, values })
}

/// The number that a row of probabilities is divided by so that it sums to 1.
///
/// Under softmax that is its sum, which rounding may have moved a little. Under sigmoid every class
/// has its own probability, and the sum means nothing.
fn check_probabilities(table: &Table, row: usize, link: Link) -> Result<f64, String> {
    let mut sum = 0.0;
    for column in 0..table.width {
        let value = number(table.cell(row, column));
        if !(0.0..=1.0 + SUM_TOLERANCE).contains(&value) {
            return Err(if value.is_nan() {
                format!("column {column} is missing; soft labels are probabilities")
            } else {
                format!("column {column} is {value}; probabilities are from 0 to 1")
            });
        }
        sum += value;
    }
    match link {
        Link::Sigmoid => Ok(1.0),
        Link::Softmax if (sum - 1.0).abs() <= SUM_TOLERANCE => Ok(sum),
        Link::Softmax => Err(format!(
            "probabilities sum to {sum:.6}, not to 1 (within {SUM_TOLERANCE}); divide each row by \
             its sum"
        )),
    }
}

fn number(cell: Cell) -> f64 {
    match cell {
        Cell::Whole(value) => value as f64,
        Cell::Fraction(value) => value,
        Cell::Missing | Cell::Word(_) => f64::NAN,
    }
}

/// The class of each column of a table `[N, K]`.
fn class_of_columns(table: &Table, classes: &Classes) -> Result<Vec<u32>, DataError> {
    let count = classes.len();
    if table.width != count {
        return Err(table.refuse(format!(
            "has {} columns, but there are {count} classes; each class needs its column",
            table.width
        )));
    }
    match &table.columns {
        Some(columns) => classes.align(columns, table.path.as_ref()),
        None => Ok((0..count as u32).collect()),
    }
}

pub(super) fn check_count(table: &Table, examples: usize) -> Result<(), DataError> {
    if table.rows == examples {
        return Ok(());
    }
    Err(table.refuse(format!(
        "has {} rows of labels, but there are {examples} examples; each example needs its row, in \
         the same order",
        table.rows
    )))
}

fn not_one_column(table: &Table) -> DataError {
    let which = match &table.columns {
        Some(columns) => format!("columns {}", columns.join(", ")),
        None => format!("{} columns", table.width),
    };
    let example = table.columns.as_ref().map_or("label", |columns| {
        columns[table.find_column(&["label", "labels", "class", "target"]).unwrap_or(0)].as_str()
    });
    table.refuse(format!(
        "has {which}, where one column of labels was expected; name it: \"{}#{example}\"",
        table.path
    ))
}
