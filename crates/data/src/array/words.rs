//! The cells of a `.csv` or `.tsv` file as they are written.

use std::path::Path;

use super::table::damaged;
use super::{Format, split_spec};
use crate::error::DataError;
use crate::inputs::mapped::Mapped;

/// The first row of a table; `None` where the file is not a table, or one column of it is named.
pub(crate) fn first_row(spec: &str) -> Result<Option<Vec<String>>, DataError> {
    let (path, column) = split_spec(spec);
    let Format::Table { delimiter } = Format::of(&path)? else { return Ok(None) };
    if column.is_some() {
        return Ok(None);
    }
    let file = Mapped::open(&path)?;
    let first = reader(&file, delimiter).records().next().transpose();
    let first = first.map_err(|error| damaged(&path, &error))?;
    Ok(first.map(|record| record.iter().map(str::to_string).collect()))
}

/// The number of columns, and all cells row by row.
pub(crate) fn all_rows(spec: &str) -> Result<(usize, Vec<String>), DataError> {
    let path = Path::new(spec);
    let Format::Table { delimiter } = Format::of(path)? else {
        return Err(DataError::invalid(path, "is not a table; known are .csv and .tsv"));
    };
    let file = Mapped::open(path)?;
    let (mut width, mut cells) = (0, vec![]);
    for record in reader(&file, delimiter).records() {
        let record = record.map_err(|error| damaged(path, &error))?;
        width = record.len();
        cells.extend(record.iter().map(str::to_string));
    }
    Ok((width, cells))
}

fn reader(file: &Mapped, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).from_reader(file.bytes())
}
