//! The classes of a data set: how many, their names, and where these come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::by_id::LabelsById;
use super::read::{CleanLabels, RawLabels};
use super::table::{Cell, Table};
use super::written::WrittenLabels;
use crate::array::{Array, split_spec};
use crate::ending::Ending;
use crate::error::DataError;

/// More classes than any data set has: a number in a file must not reserve that much memory.
const MOST_CLASSES: usize = 1 << 24;

/// The K classes, in the order of their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    pub names: Vec<String>,
    pub(super) numbers: BTreeMap<String, u32>,
    /// What the training source calls classes that got their names from elsewhere.
    aliases: BTreeMap<String, u32>,
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
    /// Names in the files of the inputs; the labels are positions in them.
    Beside,
    /// The numbers in the training labels, which are 0 to K − 1.
    Numbers,
    /// The numbers in the training labels, which are others: each is the name of its class, in
    /// their order.
    Values,
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
            return Ok(Self::from_file(path, count)?.also_called(labels));
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
            RawLabels::Single(table) => {
                found.negative = true;
                found.add_table(table)?
            }
            RawLabels::Wide(table) => found.add_table(table)?,
            RawLabels::Long(table) => found.add_table(&table.labels)?,
            RawLabels::Written(labels) => {
                found.negative = true;
                found.add_written(labels)
            }
            RawLabels::Annotated(votes) => found.add_written(&votes.labels),
            RawLabels::Sets(sets) => found.add_written(&sets.labels),
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
            Cell::Whole(value) if self.are_values() => {
                let class = self.numbers.get(&value.to_string()).copied();
                class.ok_or_else(|| unknown(&self.listed()))
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
            Cell::Word(word) => self.named_class(word).ok_or_else(|| unknown(&self.listed())),
        };
        found.map_err(place)
    }

    /// The class of each of `names`: the names of folders or columns of some source.
    ///
    /// They are matched by name. Where the training labels are plain numbers, nothing has a name
    /// to match, and K names are the classes in order.
    pub fn align(&self, names: &[String], path: &Path) -> Result<Vec<u32>, DataError> {
        let known = self.known(names);
        let nameless = matches!(self.origin, Origin::Numbers | Origin::Count);
        if nameless && names.len() == self.len() && known.iter().all(Option::is_none) {
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

    /// One line for the user, where labels became other numbers than the file has.
    pub fn note(&self) -> Option<String> {
        let count = self.len();
        (self.origin == Origin::Values).then(|| {
            format!(
                "The labels are the numbers {}, not 0 to {}: each is the name of a class, in this \
                 order.",
                self.listed(),
                count - 1
            )
        })
    }

    /// Whether a number is the name of a class, not its position.
    fn are_values(&self) -> bool {
        let is_number = |name: &String| name.parse::<i64>().is_ok();
        match self.origin {
            Origin::Values => true,
            Origin::Names => self.names.iter().all(is_number),
            _ => false,
        }
    }

    fn known(&self, names: &[String]) -> Vec<Option<u32>> {
        names.iter().map(|name| self.named_class(name.trim())).collect()
    }

    fn named_class(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).or_else(|| self.aliases.get(name)).copied()
    }

    /// The same where the training source has K classes of other names, as folders `n01440764`
    /// for a class "tench": they are these classes in order.
    fn also_called(mut self, labels: &RawLabels) -> Self {
        if let Some(names) = labels.class_names()
            && names.len() == self.len()
            && self.known(names).iter().all(Option::is_none)
        {
            self.aliases = names.iter().map(|name| name.trim().to_string()).zip(0..).collect();
        }
        self
    }

    /// The names of some classes for a message: the first few.
    pub fn names_of(&self, classes: &[usize]) -> String {
        let shown = classes.iter().take(5).map(|class| match self.origin {
            Origin::Numbers | Origin::Count | Origin::Values => self.names[*class].clone(),
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
            Origin::Names | Origin::Beside => {
                "the training source decides the classes: correct it, or name all classes in \
                 data.class_names"
            }
            Origin::Numbers => {
                "the training labels decide the classes: correct it, or set data.classes"
            }
            Origin::Values => {
                "the training labels decide the classes: correct it, leave the example out, or \
                 train on examples of that class too"
            }
        }
    }

    fn new(names: Vec<String>, origin: Origin) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names, numbers, aliases: BTreeMap::new(), origin }
    }

    fn from_file(path: &Path, count: Option<usize>) -> Result<Self, DataError> {
        let names = names_in(path)?;
        if let Some(count) = count.filter(|count| *count != names.len()) {
            let message = format!("has {} names, but data.classes is {count}", names.len());
            return Err(DataError::invalid(path, message));
        }
        check_names(&names, "line", 1, path)?;
        Ok(Self::new(names, Origin::NamesFile))
    }

    /// Classes of these names, whatever the labels say.
    pub fn given(names: &[String], labels: &RawLabels) -> Result<Self, DataError> {
        check_names(names, "class", 0, Path::new("class_names"))?;
        Ok(Self::new(names.to_vec(), Origin::Given).also_called(labels))
    }

    /// The classes of a trained run.
    pub fn of_run(names: &[String]) -> Result<Self, DataError> {
        check_names(names, "class", 0, Path::new("class_names"))?;
        Ok(Self::new(names.to_vec(), Origin::Run))
    }

    fn named(names: &[String], path: &Path) -> Result<Self, DataError> {
        let names: Vec<String> = names.iter().map(|name| name.trim().to_string()).collect();
        check_names(&names, "class", 0, path)?;
        Ok(Self::new(names, Origin::Names))
    }

    /// Numbers 0 to K − 1 are classes as they are. Others are encoded: the distinct values in their
    /// order become the classes.
    fn numbered(
        found: &BTreeSet<i64>,
        path: &Path,
        count: Option<usize>,
        beside: Option<&[String]>,
    ) -> Result<Self, DataError> {
        let last = found.last().copied().unwrap_or(-1);
        let needed = usize::try_from(last.saturating_add(1)).unwrap_or(0);
        let is_counted = found.first().is_none_or(|first| *first >= 0);
        let fits = |names: &&[String]| is_counted && names.len() == count.unwrap_or(needed);
        if let Some(names) = beside.filter(fits) {
            return Ok(Self { origin: Origin::Beside, ..Self::named(names, path)? });
        }
        if let Some(count) = count {
            return Ok(Self::new(numbers_as_names(count), Origin::Count));
        }
        if found.iter().zip(0..).all(|(class, position)| *class == position) {
            return Ok(Self::new(numbers_as_names(needed), Origin::Numbers));
        }
        if let Some(names) = beside {
            let message = format!(
                "its labels go up to {last}, but the file of the inputs names {} classes: number \
                 the labels by these names from 0, or name all classes in data.class_names",
                names.len()
            );
            return Err(DataError::invalid(path, message));
        }
        Ok(Self::new(found.iter().map(i64::to_string).collect(), Origin::Values))
    }
}

/// The distinct labels of the training source, true ones included.
#[derive(Default)]
struct DistinctLabels {
    words: BTreeSet<String>,
    numbers: BTreeSet<i64>,
    /// Whether a negative number is a label; of annotators it is no answer.
    negative: bool,
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
            Cell::Whole(value) if value >= 0 || self.negative => drop(self.numbers.insert(value)),
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

/// The names in an array of words, or else the lines of a text file.
fn names_in(path: &Path) -> Result<Vec<String>, DataError> {
    let spec = path.to_string_lossy();
    if let Some(Ending::Npy | Ending::Npz | Ending::Parquet) = Ending::of(&split_spec(&spec).0) {
        let values = Array::load(&spec)?.values;
        return Ok((0..values.len()).map(|class| values.text(class).trim().to_string()).collect());
    }
    let text = aleator_run::read_text(path).map_err(|error| DataError::io(path, error))?;
    let lines = text.trim_start_matches('\u{feff}').lines();
    Ok(lines.map(|line| line.trim().to_string()).collect())
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
