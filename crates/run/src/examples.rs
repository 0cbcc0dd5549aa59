//! `examples.csv`: the examples of a run, with their splits and labels.

use std::path::Path;

use crate::csv_file::CsvFile;
use crate::error::RunError;
use crate::record::{RunDir, Split};
use crate::regular::open_file;

/// One row of `examples.csv`.
///
/// Labels are class indices. A single label is a set of one class; soft labels are written as their
/// most probable class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleRow {
    /// Its stable id.
    pub id: String,
    /// Its split.
    pub split: Split,
    /// The classes of the given label, ascending; `None` without a label.
    pub label: Option<Vec<u32>>,
    /// The classes of the true label, if it is known.
    pub clean_label: Option<Vec<u32>>,
}

const HEADER: [&str; 4] = ["id", "split", "label", "clean_label"];

/// A label without any class, as multi-hot labels may be.
const NO_CLASS: &str = "-";

impl RunDir {
    /// Writes `examples.csv`. The predictions of a split have the order of its rows here.
    pub fn write_examples(
        &self,
        rows: impl IntoIterator<Item = ExampleRow>,
    ) -> Result<(), RunError> {
        write_examples(&self.examples_path(), rows)
    }

    /// Reads `examples.csv` back.
    pub fn read_examples(&self) -> Result<Vec<ExampleRow>, RunError> {
        read_examples(&self.examples_path())
    }
}

/// Writes `examples.csv` to any path.
pub fn write_examples(
    path: &Path,
    rows: impl IntoIterator<Item = ExampleRow>,
) -> Result<(), RunError> {
    CsvFile::write(path, &HEADER, |file| {
        for row in rows {
            let (label, clean) = (cell(row.label.as_deref()), cell(row.clean_label.as_deref()));
            file.row(&[row.id.as_str(), row.split.name(), &label, &clean])?;
        }
        Ok(())
    })
}

/// Reads a file that [`write_examples`] wrote.
pub fn read_examples(path: &Path) -> Result<Vec<ExampleRow>, RunError> {
    let file = open_file(path).map_err(RunError::io("read", path))?;
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().map_err(|error| in_csv(path, error))?;
    if header.iter().ne(HEADER) {
        let found: Vec<&str> = header.iter().collect();
        let message = format!("the columns must be {HEADER:?}, found {found:?}");
        return Err(RunError::damaged(path, message));
    }
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.map_err(|error| in_csv(path, error))?;
        let line = record.position().map_or(0, csv::Position::line);
        parse_row(&record)
            .map_err(|message| RunError::damaged(path, format!("line {line}: {message}")))
    };
    reader.records().map(row).collect()
}

fn parse_row(record: &csv::StringRecord) -> Result<ExampleRow, String> {
    let split = Split::ALL.into_iter().find(|split| split.name() == &record[1]);
    let split = split.ok_or_else(|| {
        format!("split must be train, validation or test, found {:?}", &record[1])
    })?;
    Ok(ExampleRow {
        id: record[0].to_string(),
        split,
        label: parse_cell("label", &record[2])?,
        clean_label: parse_cell("clean_label", &record[3])?,
    })
}

fn cell(label: Option<&[u32]>) -> String {
    match label {
        None => String::new(),
        Some([]) => NO_CLASS.to_string(),
        Some(classes) => {
            let classes: Vec<String> = classes.iter().map(u32::to_string).collect();
            classes.join(";")
        }
    }
}

fn parse_cell(column: &str, cell: &str) -> Result<Option<Vec<u32>>, String> {
    match cell {
        "" => Ok(None),
        NO_CLASS => Ok(Some(vec![])),
        classes => {
            let classes: Result<Vec<u32>, _> = classes.split(';').map(str::parse).collect();
            let expected =
                |_| format!("{column} must be class indices separated by ';', found {cell:?}");
            classes.map(Some).map_err(expected)
        }
    }
}

fn in_csv(path: &Path, error: csv::Error) -> RunError {
    let message = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => RunError::io("read", path)(source),
        _ => RunError::damaged(path, message),
    }
}
