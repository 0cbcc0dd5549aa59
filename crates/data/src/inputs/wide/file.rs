//! The columns of a CSV, TSV or Parquet file, read by name.

use std::path::{Path, PathBuf};

use super::super::file_bytes::FileBytes;
use super::super::matrix::Matrix;
use super::super::spool::Spool;
use crate::array::columns::{Column, ParquetTable};
use crate::array::element::{Element, Located};
use crate::array::table::{boolean, damaged, is_blank, number, reader};
use crate::array::{Format, Values, listed};
use crate::error::DataError;

/// The first row of a CSV file is a header if one of its cells is such a word.
const TITLES: [&str; 8] = ["label", "labels", "class", "target", "y", "category", "id", "split"];

/// What the first column is called here where the header has no name for it.
const UNNAMED: &str = "column 0";

/// How pandas calls such a column when it reads the file and writes it again.
const PANDAS_UNNAMED: &str = "Unnamed: ";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inputs) enum Content {
    /// One number a row; some may be missing.
    Numbers,
    /// Words, some of which may be numbers.
    Words,
    /// A list of numbers a row.
    Lists,
    /// Dates, lists of lists, bytes.
    Other,
}

/// A table whose columns have names.
pub(in crate::inputs) struct TableFile {
    path: PathBuf,
    rows: Rows,
}

enum Rows {
    Text { file: FileBytes, delimiter: u8, names: Vec<String>, has_header: bool },
    Parquet { table: ParquetTable, columns: Vec<Column> },
}

impl TableFile {
    /// Reads the header.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let rows = match Format::of(path)? {
            Format::Table { delimiter } => {
                let file = FileBytes::open(path)?;
                let (names, has_header) = header(path, &file, delimiter)?;
                Rows::Text { file, delimiter, names, has_header }
            }
            Format::Parquet => {
                let table = ParquetTable::open(path)?;
                let columns = table.columns();
                Rows::Parquet { table, columns }
            }
            _ => return Err(DataError::invalid(path, "is no table: .csv, .tsv or .parquet")),
        };
        let table = Self { path: path.to_path_buf(), rows };
        let mut seen = std::collections::BTreeSet::new();
        match table.names().into_iter().find(|name| !seen.insert(name.clone())) {
            Some(twice) => Err(table
                .refuse(format!("has two columns called {twice:?}; rename or remove one of them"))),
            None => Ok(table),
        }
    }

    /// The names of the columns, in their order.
    pub fn names(&self) -> Vec<String> {
        match &self.rows {
            Rows::Text { names, .. } => names.clone(),
            Rows::Parquet { columns, .. } => columns.iter().map(|it| it.name.clone()).collect(),
        }
    }

    /// The columns that name or number the rows, as pandas writes them: they are no features.
    pub fn index(&self) -> Vec<String> {
        match &self.rows {
            Rows::Parquet { table, .. } => table.index(),
            Rows::Text { names, has_header, .. } => {
                let is_index = |name: &&String| {
                    *has_header && (**name == UNNAMED || name.starts_with(PANDAS_UNNAMED))
                };
                names.iter().filter(is_index).cloned().collect()
            }
        }
    }

    /// Refuses the name of a column that there is not.
    pub fn check_column(&self, name: &str) -> Result<(), DataError> {
        self.position(name).map(drop)
    }

    fn position(&self, name: &str) -> Result<usize, DataError> {
        let names = self.names();
        names.iter().position(|known| known == name).ok_or_else(|| {
            self.refuse(format!("has no column {name:?}; it has {}", listed(&names, ", ")))
        })
    }

    /// What each column holds, by all of its rows, and the number of rows.
    pub fn survey(&self) -> Result<(Vec<Content>, usize), DataError> {
        match &self.rows {
            Rows::Text { names, .. } => {
                let mut contents = vec![Content::Numbers; names.len()];
                let rows = self.each_record(|_, record| {
                    for (content, cell) in contents.iter_mut().zip(record) {
                        if !is_blank(cell) && value(cell).is_none() {
                            *content = Content::Words;
                        }
                    }
                    Ok(())
                })?;
                Ok((contents, rows))
            }
            Rows::Parquet { table, columns } => {
                Ok((columns.iter().map(content).collect(), table.len()))
            }
        }
    }

    /// Whether a column holds lists of numbers.
    pub fn has_lists(&self) -> bool {
        match &self.rows {
            Rows::Text { .. } => false,
            Rows::Parquet { columns, .. } => {
                columns.iter().any(|column| content(column) == Content::Lists)
            }
        }
    }

    /// What the lists of a column hold, and that it is converted if it is not floats.
    pub fn list_content(&self, name: &str) -> String {
        let Rows::Parquet { columns, .. } = &self.rows else { return String::new() };
        let column = columns.iter().find(|column| column.name == name);
        match column.and_then(Column::element).filter(|element| !element.is_float()) {
            Some(element) => format!("{} (read as float32)", element.name()),
            None => "numbers".into(),
        }
    }

    /// A column as text: whole numbers without a fraction, the empty text where it is missing.
    pub fn words(&self, name: &str) -> Result<Vec<String>, DataError> {
        let at = self.position(name)?;
        match &self.rows {
            Rows::Text { .. } => {
                let mut words = vec![];
                self.each_record(|_, record| {
                    let cell = record.get(at).unwrap_or_default();
                    words.push(if cell.is_empty() { String::new() } else { cell.to_string() });
                    Ok(())
                })?;
                Ok(whole_words(words))
            }
            Rows::Parquet { table, columns } => {
                if !matches!(content(&columns[at]), Content::Numbers | Content::Words) {
                    return Err(self.refuse(format!(
                        "column {} holds neither numbers nor words",
                        columns[at].label()
                    )));
                }
                let values = table.array(&columns[at])?.values;
                let words = (0..values.len()).map(|row| values.text(row)).collect();
                Ok(if let Values::Text(_) = values { words } else { whole_words(words) })
            }
        }
    }

    /// The names of the classes, where the file has them.
    pub fn class_names(&self, label: &str) -> Option<Vec<String>> {
        let Rows::Parquet { table, columns } = &self.rows else { return None };
        table.class_names(columns.iter().find(|column| column.name == label)?)
    }

    /// The columns of these names side by side, or the one column of lists.
    pub fn matrix(&self, names: &[String]) -> Result<Matrix, DataError> {
        let known = self.names();
        let missing: Vec<String> =
            names.iter().filter(|name| !known.contains(name)).cloned().collect();
        if !missing.is_empty() {
            return Err(self.refuse(format!(
                "lacks {} of the {} columns of features: {}",
                missing.len(),
                names.len(),
                listed(&missing, ", ")
            )));
        }
        if names.is_empty() {
            return Err(self.refuse("has no column of features beside labels and ids".to_string()));
        }
        let positions: Vec<usize> =
            names.iter().filter_map(|name| known.iter().position(|it| it == name)).collect();
        let matrix = match &self.rows {
            Rows::Text { .. } => self.text_matrix(&positions)?,
            Rows::Parquet { table, columns } => {
                let picked: Vec<&Column> = positions.iter().map(|at| &columns[*at]).collect();
                match &picked[..] {
                    [only] if content(only) == Content::Lists => {
                        return Matrix::of_lists(&self.path, Some(&only.name));
                    }
                    _ => self.parquet_matrix(table, &picked)?,
                }
            }
        };
        Ok(matrix.named(names))
    }

    fn text_matrix(&self, positions: &[usize]) -> Result<Matrix, DataError> {
        let mut spool = Spool::new(&self.path)?;
        let mut values = vec![0.0; positions.len()];
        let rows = self.each_record(|row, record| {
            for (out, at) in values.iter_mut().zip(positions) {
                let cell = record.get(*at).unwrap_or_default();
                let value = value(cell).filter(|value| value.is_finite());
                *out = value.ok_or_else(|| self.no_number(row, *at, cell))? as f32;
            }
            spool.write_floats(&values)
        })?;
        if rows == 0 {
            return Err(self.refuse("has no rows".to_string()));
        }
        Matrix::of_floats(spool, rows, positions.len())
    }

    /// Column by column, then turned.
    fn parquet_matrix(
        &self,
        table: &ParquetTable,
        columns: &[&Column],
    ) -> Result<Matrix, DataError> {
        let mut spool = Spool::new(&self.path)?;
        let mut rows = 0;
        for column in columns {
            if content(column) != Content::Numbers {
                return Err(self.refuse(format!(
                    "column {} is no feature: a feature is one number a row; leave it out \
                     (--ignore, or ignore in data.train.table), or encode it as numbers",
                    column.label()
                )));
            }
            let cells = table.array(column)?.values;
            rows = cells.len();
            let floats: Vec<f32> = (0..rows).map(|row| cells.float(row) as f32).collect();
            if let Some(row) = floats.iter().position(|value| !value.is_finite()) {
                let at = self.position(&column.name)?;
                return Err(self.no_number(row, at, &cells.text(row)));
            }
            spool.write_floats(&floats)?;
        }
        let width = columns.len();
        if rows == 0 {
            return Err(self.refuse("has no rows".to_string()));
        }
        let file = spool.finish()?;
        let bytes = 0..file.len();
        let (element, shape) = (Element::F32, vec![rows, width]);
        let at = Located { shape, element, big_endian: false, fortran: true, bytes };
        Matrix::at(&self.path, file, at)
    }

    fn no_number(&self, row: usize, column: usize, cell: &str) -> DataError {
        let name = &self.names()[column];
        let what = match (is_blank(cell), value(cell)) {
            (true, _) => "is missing; fill it, leave the row out, or leave the column out",
            (_, Some(_)) => "is not finite; replace the number, or leave the row out",
            _ => "is no number; leave the column out, or encode it as numbers",
        };
        let shown = if is_blank(cell) { String::new() } else { format!(" ({cell:?})") };
        let how = "--ignore COLUMN leaves one out";
        self.refuse(format!("row {row} (counted from 0), column {name:?}{shown} {what} ({how})"))
    }

    fn refuse(&self, message: String) -> DataError {
        DataError::invalid(&self.path, message)
    }

    /// Calls `each` with the number of each row below the header and its cells; returns how many
    /// there are.
    fn each_record(
        &self,
        mut each: impl FnMut(usize, &csv::StringRecord) -> Result<(), DataError>,
    ) -> Result<usize, DataError> {
        let Rows::Text { file, delimiter, has_header, .. } = &self.rows else { return Ok(0) };
        let mut reader = reader(file, *delimiter, csv::Trim::All);
        let mut record = csv::StringRecord::new();
        let (mut row, mut skip) = (0, *has_header);
        while reader.read_record(&mut record).map_err(|error| damaged(&self.path, &error))? {
            if std::mem::take(&mut skip) {
                continue;
            }
            each(row, &record)?;
            row += 1;
        }
        Ok(row)
    }
}

/// The names of the columns, and whether the first row has them; else they are called by their
/// position.
fn header(path: &Path, file: &FileBytes, delimiter: u8) -> Result<(Vec<String>, bool), DataError> {
    let mut first = csv::StringRecord::new();
    let mut reader = reader(file, delimiter, csv::Trim::All);
    if !reader.read_record(&mut first).map_err(|error| damaged(path, &error))? {
        return Err(DataError::invalid(path, "has no rows"));
    }
    let cells: Vec<&str> = first.iter().map(|cell| cell.trim_start_matches('\u{feff}')).collect();
    let numbers: Vec<f64> = cells.iter().filter_map(|cell| number(cell)).collect();
    let is_title = |cell: &&str| TITLES.contains(&cell.to_lowercase().as_str());
    let counted = numbers.len() < cells.len()
        && numbers.windows(2).all(|it| it[1] == it[0] + 1.0)
        && numbers.first().is_some_and(|first| *first == 0.0 || *first == 1.0)
        && numbers.len() > 1;
    let has_header = numbers.is_empty() || counted || cells.iter().any(is_title);
    let name = |(at, cell): (usize, &&str)| match (has_header, cell.is_empty()) {
        (true, false) => cell.to_string(),
        (true, true) => format!("column {at}"),
        (false, _) => at.to_string(),
    };
    Ok((cells.iter().enumerate().map(name).collect(), has_header))
}

fn content(column: &Column) -> Content {
    let is_number = !matches!(column.element(), Some(Element::Bytes(_)) | None);
    if column.is_list() && is_number {
        Content::Lists
    } else if column.is_flat() && is_number {
        Content::Numbers
    } else if column.is_flat() && column.element().is_some() && !column.is_binary() {
        Content::Words
    } else {
        Content::Other
    }
}

/// A number, or a boolean as pandas writes it.
fn value(cell: &str) -> Option<f64> {
    boolean(cell).or_else(|| number(cell))
}

/// Floats that are all whole are the labels 1, 2, not 1.0, 2.0.
fn whole_words(words: Vec<String>) -> Vec<String> {
    let whole = |word: &String| match word.parse::<f64>() {
        Ok(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
            Some(format!("{}", value as i64))
        }
        _ if is_blank(word) => Some(String::new()),
        _ => None,
    };
    let are_floats = words.iter().any(|word| word.contains(['.', 'e', 'E']));
    match are_floats.then(|| words.iter().map(whole).collect()).flatten() {
        Some(whole) => whole,
        None => words,
    }
}
