//! A label file as a table of cells: whole numbers, fractions or words, some of them missing.

use std::path::Path;

use crate::array::{Array, Values};
use crate::error::DataError;

/// The cells of a label file, `[rows, width]`; one column is width 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// `file` or `file#column`, as the recipe has it.
    pub path: String,
    pub rows: usize,
    pub width: usize,
    /// Whole numbers if all are, with [`MISSING`] for none; floats, with NaN for none; or words,
    /// with the empty one for none.
    pub cells: Values,
    /// Whether the file holds floats, whole or not.
    pub floats: bool,
    /// The columns' names, where the file has them.
    pub columns: Option<Vec<String>>,
}

/// No label in any file has this value: labels are small.
const MISSING: i64 = i64::MIN;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Missing,
    Whole(i64),
    Fraction(f64),
    Word(&'a str),
}

impl Table {
    pub fn load(spec: &str) -> Result<Self, DataError> {
        Self::new(spec, Array::load(spec)?)
    }

    pub fn new(path: &str, array: Array) -> Result<Self, DataError> {
        let (rows, width) = match array.shape[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => {
                let shape = &array.shape;
                let message = format!(
                    "labels must be one column [N] or a table [N, M], found the shape {shape:?}"
                );
                return Err(DataError::invalid(path, message));
            }
        };
        let floats = matches!(array.values, Values::Float(_));
        let cells = match array.values {
            Values::Int(_) => array.values,
            Values::Float(values) => whole_if_possible(values),
            Values::Text(words) if width == 1 => numbers_if_possible(words),
            Values::Text(words) => numbers_if_possible(words.into_iter().map(answer).collect()),
        };
        let columns = array.columns;
        let table = Self { path: path.to_string(), rows, width, cells, floats, columns };
        if rows == 0 || width == 0 {
            return Err(table.refuse(format!("is empty: {rows} rows of {width} columns")));
        }
        Ok(table)
    }

    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let at = row * self.width + column;
        match &self.cells {
            Values::Int(values) if values[at] == MISSING => Cell::Missing,
            Values::Int(values) => Cell::Whole(values[at]),
            Values::Float(values) => match values[at] {
                value if value.is_nan() => Cell::Missing,
                value if is_whole(&value) => Cell::Whole(value as i64),
                value => Cell::Fraction(value),
            },
            Values::Text(words) if words[at].is_empty() => Cell::Missing,
            Values::Text(words) => Cell::Word(&words[at]),
        }
    }

    /// Every cell with its row, row by row.
    pub fn all(&self) -> impl Iterator<Item = (usize, Cell<'_>)> {
        let rows = 0..self.rows;
        rows.flat_map(move |row| (0..self.width).map(move |column| (row, self.cell(row, column))))
    }

    /// One column by itself; its cells are numbers where all of them are.
    pub fn column(&self, column: usize) -> Self {
        let at = (0..self.rows).map(|row| row * self.width + column);
        let cells = match &self.cells {
            Values::Int(values) => Values::Int(at.map(|at| values[at]).collect()),
            Values::Float(values) => whole_if_possible(at.map(|at| values[at]).collect()),
            Values::Text(words) => numbers_if_possible(at.map(|at| words[at].clone()).collect()),
        };
        let name = self.columns.as_ref().map(|names| names[column].clone());
        let path = name.as_ref().map_or(self.path.clone(), |name| format!("{}#{name}", self.path));
        let (rows, floats) = (self.rows, self.floats);
        Self { path, rows, width: 1, cells, floats, columns: name.map(|name| vec![name]) }
    }

    /// Where the columns have one of these names.
    pub fn find_column(&self, names: &[&str]) -> Option<usize> {
        self.columns.as_ref()?.iter().position(|column| is_one(column, names))
    }

    /// A whole table is wrong.
    pub fn refuse(&self, message: impl Into<String>) -> DataError {
        DataError::invalid(Path::new(&self.path), message)
    }

    /// A row is wrong.
    pub fn refuse_row(&self, row: usize, message: impl std::fmt::Display) -> DataError {
        self.refuse(format!("row {row} (counted from 0): {message}"))
    }
}

/// Whether a column has one of these names, in capitals or not.
pub(super) fn is_one(column: &str, names: &[&str]) -> bool {
    names.iter().any(|name| column.trim().eq_ignore_ascii_case(name))
}

/// Beyond 2⁵³ floats skip whole numbers; no label is that large.
fn is_whole(value: &f64) -> bool {
    value.fract() == 0.0 && value.abs() < 9e15
}

fn whole_if_possible(values: Vec<f64>) -> Values {
    if !values.iter().all(|value| value.is_nan() || is_whole(value)) {
        return Values::Float(values);
    }
    let whole = |value: f64| if value.is_nan() { MISSING } else { value as i64 };
    Values::Int(values.into_iter().map(whole).collect())
}

/// In a table, what statistics programs write for "missing" is missing; in a column it may be
/// the name of a class.
fn answer(word: String) -> String {
    let none = matches!(word.trim(), "NA" | "N/A" | "nan" | "NaN");
    if none { String::new() } else { word }
}

fn numbers_if_possible(words: Vec<String>) -> Values {
    let words: Vec<String> = words.into_iter().map(|word| word.trim().to_string()).collect();
    let whole = |word: &String| if word.is_empty() { Some(MISSING) } else { word.parse().ok() };
    match words.iter().map(whole).collect() {
        Some(values) => Values::Int(values),
        None => Values::Text(words),
    }
}

impl std::fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => write!(f, "nothing"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Fraction(value) => write!(f, "{value}"),
            Self::Word(word) => write!(f, "{word:?}"),
        }
    }
}
