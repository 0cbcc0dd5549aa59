//! The classes of a data set: how many, their names, and where these come from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::by_id::LabelsById;
use super::read::{CleanLabels, RawLabels};
use super::table::{Cell, Table};
use super::written::WrittenLabels;
use crate::error::DataError;

/// More classes than any data set has: a number in a file must not reserve that much memory.
const MOST_CLASSES: usize = 1 << 24;

/// The K classes, in the order of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    pub names: Vec<String>,
    pub(super) numbers: BTreeMap<String, u32>,
    origin: Origin,
}

/// Where the classes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// `data.class_names`.
    NamesFile,
    /// Names that the caller gave along with arrays.
    Given,
    /// A trained run, whose classes other data must name.
    Run,
    /// `data.classes`.
    Count,
    /// The names of folders, columns or labels in the training source.
    Names,
    /// The numbers in the training labels.
    Numbers,
}

impl Classes {
    /// The classes that a recipe names by `data.classes` and `data.class_names`, else those of
    /// the training source.
    ///
    /// `beside` are the names in the inputs' files although a label file is read; they are used
    /// where they fit.
    pub fn find(
        count: Option<usize>,
        names: Option<&Path>,
        labels: &RawLabels,
        clean: Option<&CleanLabels>,
        beside: Option<&[String]>,
    ) -> Result<Self, DataError> {
        if let Some(count) = count.filter(|count| *count > MOST_CLASSES) {
            return Err(too_many("data.classes", count as i64));
        }
        if let Some(path) = names {
            return Self::from_file(path, count);
        }
        let classes = Self::of_labels(labels, count, clean, beside)?;
        let Some(count) = count.filter(|count| *count != classes.len()) else {
            return Ok(classes);
        };
        let message = format!(
            "is {count}, but the training source has {} classes ({}); to have classes without \
             examples, name all of them in data.class_names",
            classes.len(),
            classes.listed()
        );
        Err(DataError::invalid("data.classes", message))
    }

    fn of_labels(
        labels: &RawLabels,
        count: Option<usize>,
        clean: Option<&CleanLabels>,
        beside: Option<&[String]>,
    ) -> Result<Self, DataError> {
        let mut found = DistinctLabels::default();
        let path = match labels {
            RawLabels::Carried { names: Some(names), path, .. } => return Self::named(names, path),
            RawLabels::Carried { names: None, labels, path } => {
                let numbers = labels.iter().map(|class| i64::from(*class)).collect();
                return Self::numbered(&numbers, path, count, beside);
            }
            RawLabels::MultiHot(table) | RawLabels::Soft(table) => {
                return match &table.columns {
                    Some(columns) => Self::named(columns, Path::new(&table.path)),
                    None => Ok(Self::new(numbers_as_names(table.width), Origin::Numbers)),
                };
            }
            RawLabels::Single(table) | RawLabels::Wide(table) => found.add_table(table)?,
            RawLabels::Long(table) => found.add_table(&table.labels)?,
            RawLabels::Written(labels) => found.add_written(labels),
            RawLabels::Annotated(votes) => found.add_written(&votes.labels),
            RawLabels::ById(LabelsById { labels, words, .. }) => {
                let carried = |names: &&[String]| {
                    words.as_ref().is_some_and(|words| {
                        let known: BTreeSet<&str> = names.iter().map(|name| name.trim()).collect();
                        words.iter().all(|word| known.contains(word.trim()))
                    })
                };
                return match beside.filter(carried) {
                    Some(names) => Self::named(names, Path::new("labels")),
                    None => Self::of_labels(labels, count, clean, beside),
                };
            }
        };
        match clean {
            Some(CleanLabels::Table(table)) => drop(found.add_table(table)?),
            Some(CleanLabels::Written(labels)) => drop(found.add_written(labels)),
            None => {}
        }
        found.classes(path, count, beside)
    }

    /// K.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// The class of a cell; `place` adds its position to a message.
    pub fn class(&self, cell: Cell, place: &dyn Fn(String) -> DataError) -> Result<u32, DataError> {
        let unknown = |classes: &str| {
            let (count, remedy) = (self.len(), self.remedy());
            format!("the label {cell} is not one of the {count} classes ({classes}); {remedy}")
        };
        let found = match cell {
            Cell::Missing => Err("has no label; add it, or leave the example out".into()),
            // Classes may be called by numbers that are not their positions.
            Cell::Whole(value)
                if self.origin == Origin::Run && self.numbers.contains_key(&value.to_string()) =>
            {
                Ok(self.numbers[&value.to_string()])
            }
            Cell::Whole(value) if value < 0 => Err(format!(
                "the label is {value}; classes are numbered from 0. A -1 means \"no answer\" only \
                 where each annotator has a column (data.label_kind = \"annotators\")"
            )),
            Cell::Fraction(value) => Err(format!(
                "the label is {value}, not a whole number; probabilities are a table [N, K]"
            )),
            Cell::Whole(value) if value < self.len() as i64 => Ok(value as u32),
            Cell::Whole(_) => Err(unknown("numbered from 0")),
            Cell::Word(word) => {
                self.numbers.get(word).copied().ok_or_else(|| unknown(&self.listed()))
            }
        };
        found.map_err(place)
    }

    /// The class of each of `names`: the names of folders or columns of some source.
    ///
    /// Where none of them is known but there are K, and the classes got their names from outside
    /// the data, they are the classes in order.
    pub fn align(&self, names: &[String], path: &Path) -> Result<Vec<u32>, DataError> {
        let known: Vec<Option<u32>> =
            names.iter().map(|name| self.numbers.get(name.trim()).copied()).collect();
        let by_name = matches!(self.origin, Origin::Names | Origin::Run);
        let in_order = !by_name && names.len() == self.len();
        if in_order && known.iter().all(Option::is_none) {
            return Ok((0..self.len() as u32).collect());
        }
        let unknown = |name: &String| {
            let (count, listed, remedy) = (self.len(), self.listed(), self.remedy());
            let message =
                format!("{name:?} is not one of the {count} classes ({listed}); {remedy}");
            DataError::invalid(path, message)
        };
        names.iter().zip(known).map(|(name, class)| class.ok_or_else(|| unknown(name))).collect()
    }

    /// The names of some classes for a message: the first few.
    pub fn names_of(&self, classes: &[usize]) -> String {
        let shown = classes.iter().take(5).map(|class| match self.origin {
            Origin::Numbers | Origin::Count => class.to_string(),
            _ => format!("{:?}", self.names[*class]),
        });
        let more = classes.len().saturating_sub(5);
        let list = shown.collect::<Vec<_>>().join(", ");
        if more == 0 { list } else { format!("{list} and {more} more") }
    }

    fn listed(&self) -> String {
        self.names_of(&(0..self.len()).collect::<Vec<_>>())
    }

    fn remedy(&self) -> &'static str {
        match self.origin {
            Origin::NamesFile => "correct it, or add it to the file of data.class_names",
            Origin::Given => "correct it, or add it to the class names",
            Origin::Run => "the run knows no other: correct it, or leave the example out",
            Origin::Count => "correct it, or raise data.classes",
            Origin::Names => {
                "the training source decides the classes: correct it, or name all classes in \
                 data.class_names"
            }
            Origin::Numbers => {
                "the training labels decide the classes: correct it, or set data.classes"
            }
        }
    }

    fn new(names: Vec<String>, origin: Origin) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names, numbers, origin }
    }

    fn from_file(path: &Path, count: Option<usize>) -> Result<Self, DataError> {
        let text = fs::read_to_string(path).map_err(|error| DataError::io(path, error))?;
        let lines = text.trim_start_matches('\u{feff}').lines();
        let names: Vec<String> = lines.map(|line| line.trim().to_string()).collect();
        if let Some(count) = count.filter(|count| *count != names.len()) {
            let message = format!("has {} names, but data.classes is {count}", names.len());
            return Err(DataError::invalid(path, message));
        }
        check_names(&names, "line", 1, path)?;
        Ok(Self::new(names, Origin::NamesFile))
    }

    /// Classes of these names, whatever the labels say.
    pub fn given(names: &[String]) -> Result<Self, DataError> {
        check_names(names, "class", 0, Path::new("class_names"))?;
        Ok(Self::new(names.to_vec(), Origin::Given))
    }

    /// The classes of a trained run.
    pub fn of_run(names: &[String]) -> Result<Self, DataError> {
        Ok(Self { origin: Origin::Run, ..Self::given(names)? })
    }

    fn named(names: &[String], path: &Path) -> Result<Self, DataError> {
        let names: Vec<String> = names.iter().map(|name| name.trim().to_string()).collect();
        check_names(&names, "class", 0, path)?;
        Ok(Self::new(names, Origin::Names))
    }

    fn numbered(
        found: &BTreeSet<i64>,
        path: &Path,
        count: Option<usize>,
        beside: Option<&[String]>,
    ) -> Result<Self, DataError> {
        let last = found.last().copied().unwrap_or(-1);
        if last >= MOST_CLASSES as i64 {
            return Err(too_many(path, last));
        }
        let needed = (last + 1) as usize;
        if let Some(names) = beside.filter(|names| names.len() == count.unwrap_or(needed)) {
            return Self::named(names, path);
        }
        if let Some(count) = count {
            return Ok(Self::new(numbers_as_names(count), Origin::Count));
        }
        let gap = found.iter().zip(0..).find(|(class, position)| *class != position);
        let Some((_, empty)) = gap else {
            return Ok(Self::new(numbers_as_names(needed), Origin::Numbers));
        };
        let message = format!(
            "class {empty} is empty: labels run from 0 to {last}, but none is {empty}; number the \
             classes from 0 without gaps, or set data.classes = {needed} to allow classes without \
             examples"
        );
        Err(DataError::invalid(path, message))
    }
}

/// The distinct labels of the training source, true ones included.
#[derive(Default)]
struct DistinctLabels {
    words: BTreeSet<String>,
    numbers: BTreeSet<i64>,
}

impl DistinctLabels {
    /// Adds the labels of a file, and returns its path.
    fn add_table<'a>(&mut self, table: &'a Table) -> Result<&'a Path, DataError> {
        for (row, cell) in table.all() {
            if let Cell::Fraction(value) = cell {
                let message = format!("the label is {value}, not a whole number or a name");
                return Err(table.refuse_row(row, message));
            }
            self.add(cell);
        }
        Ok(Path::new(&table.path))
    }

    fn add_written<'a>(&mut self, labels: &'a WrittenLabels) -> &'a Path {
        labels.cells().into_iter().for_each(|cell| self.add(cell));
        labels.path()
    }

    fn add(&mut self, cell: Cell) {
        match cell {
            Cell::Word(word) => drop(self.words.insert(word.to_string())),
            // A negative one is no answer, or refused with its row when labels are read.
            Cell::Whole(value) if value >= 0 => drop(self.numbers.insert(value)),
            Cell::Missing | Cell::Whole(_) | Cell::Fraction(_) => {}
        }
    }

    fn classes(
        self,
        path: &Path,
        count: Option<usize>,
        beside: Option<&[String]>,
    ) -> Result<Classes, DataError> {
        if self.words.is_empty() {
            return Classes::numbered(&self.numbers, path, count, beside);
        }
        let carried = |names: &&[String]| self.words.iter().all(|word| names.contains(word));
        match beside.filter(carried) {
            Some(names) => Classes::named(names, path),
            None => Ok(Classes::new(self.words.into_iter().collect(), Origin::Names)),
        }
    }
}

fn numbers_as_names(count: usize) -> Vec<String> {
    (0..count).map(|class| class.to_string()).collect()
}

fn check_names(names: &[String], unit: &str, from: usize, path: &Path) -> Result<(), DataError> {
    let refuse = |message| Err(DataError::invalid(path, message));
    let mut seen = BTreeMap::new();
    for (name, at) in names.iter().zip(from..) {
        if name.is_empty() {
            return refuse(format!("{unit} {at} has no class name"));
        }
        if let Some(first) = seen.insert(name, at) {
            return refuse(format!(
                "{unit}s {first} and {at} are both called {name:?}; names must differ"
            ));
        }
    }
    Ok(())
}

fn too_many(path: impl AsRef<Path>, found: i64) -> DataError {
    let message = format!("{found} is beyond the {MOST_CLASSES} classes that a data set can have");
    DataError::invalid(path, message)
}
