//! Tables with a column for each feature, or one of lists, beside columns of labels and ids.

mod file;

use std::collections::BTreeSet;
use std::path::Path;

use aleator_run::recipe::TableSource;

use super::{CarriedLabels, Inputs, Opened, Storage};
use crate::error::DataError;
use crate::labels::{Words, WrittenLabels};
pub(super) use file::{Content, TableFile};

/// Opens the rows of a source. `features` are the names of the training source's features, whose
/// columns may be in another order here.
pub(super) fn open(source: &TableSource, features: Option<&[String]>) -> Result<Opened, DataError> {
    let path = Path::new(&source.file);
    let table = TableFile::open(path)?;
    let used = [&source.label, &source.clean_label, &source.id, &source.split];
    let used: Vec<&String> = used.into_iter().flatten().chain(&source.ignore).collect();
    used.iter().try_for_each(|name| table.check_column(name))?;
    let features = match features {
        Some(names) => names.to_vec(),
        None => {
            let index = table.index();
            let is_feature = |name: &String| !used.contains(&name) && !index.contains(name);
            table.names().into_iter().filter(is_feature).collect()
        }
    };
    let rows = selected(source, &table)?;
    let matrix = table.matrix(&features)?;
    let matrix = match &rows {
        Some(rows) => matrix.select(path, rows)?,
        None => matrix,
    };
    let inputs = Inputs { name: source.file.clone(), storage: Storage::Matrix(matrix) };
    let words = |column: &Option<String>| -> Result<Option<Vec<String>>, DataError> {
        let Some(column) = column else { return Ok(None) };
        let words = table.words(column)?;
        Ok(Some(match &rows {
            Some(rows) => rows.iter().map(|row| words[*row].clone()).collect(),
            None => words,
        }))
    };
    let labels = |column: &Option<String>| -> Result<Option<WrittenLabels>, DataError> {
        let Some(labels) = words(column)? else { return Ok(None) };
        let missing = labels.iter().position(String::is_empty);
        if let (Some(at), Some(column)) = (missing, column) {
            let row = rows.as_ref().map_or(at, |rows| rows[at]);
            let message = format!(
                "row {row} (counted from 0) has nothing in the column of labels, {column:?}; add \
                 the label, or leave the row out"
            );
            return Err(DataError::invalid(path, message));
        }
        let mut distinct = Words::default();
        for label in &labels {
            distinct.push(label);
        }
        Ok(Some(distinct.written(path, None)))
    };
    let written = labels(&source.label)?;
    let class_names = source.label.as_ref().and_then(|label| table.class_names(label));
    let numbered = written.as_ref().zip(class_names.as_ref()).and_then(|(written, names)| {
        let class =
            |at| written.get(at).parse().ok().filter(|it: &u32| (*it as usize) < names.len());
        (0..written.len()).map(class).collect()
    });
    let labels_found = match numbered {
        Some(classes) => Some(CarriedLabels::Classes(classes)),
        None => written.map(CarriedLabels::Written),
    };
    // Rows of a part keep their numbers in the whole table.
    let row_numbers = || Some(rows.as_ref()?.iter().map(usize::to_string).collect());
    Ok(Opened {
        class_names: class_names
            .filter(|_| matches!(labels_found, Some(CarriedLabels::Classes(_)))),
        labels: labels_found,
        clean_labels: labels(&source.clean_label)?,
        ids: words(&source.id)?.or_else(row_numbers),
        ..Opened::new(inputs)
    })
}

/// Opens the columns of these names in a new table, whatever else it has; its ids are in the column
/// `id`, if there is one.
///
/// # Errors
/// When a column is missing, or the table cannot be read.
pub(super) fn open_new(
    path: &Path,
    features: &[String],
    id: Option<&str>,
) -> Result<Opened, DataError> {
    let table = TableFile::open(path)?;
    let inputs = Inputs::new(path, Storage::Matrix(table.matrix(features)?));
    let id = id.filter(|id| table.names().iter().any(|name| name == id));
    let ids = id.map(|id| table.words(id)).transpose()?;
    Ok(Opened { ids, ..Opened::new(inputs) })
}

/// The rows of the part that a source names; `None` for all.
fn selected(source: &TableSource, table: &TableFile) -> Result<Option<Vec<usize>>, DataError> {
    let (split, part) = match (&source.split, &source.rows) {
        (_, None) => return Ok(None),
        (Some(split), Some(part)) => (split, part),
        (None, Some(part)) => {
            let message = format!(
                "rows = {part:?} needs the column that divides the rows: add split = \"COLUMN\""
            );
            return Err(DataError::invalid(&source.file, message));
        }
    };
    let cells = table.words(split)?;
    let rows: Vec<usize> = (0..cells.len()).filter(|row| cells[*row] == *part).collect();
    if rows.is_empty() {
        let found: BTreeSet<&String> = cells.iter().take(1000).collect();
        let found: Vec<&str> = found.into_iter().take(8).map(String::as_str).collect();
        let message =
            format!("no row has {part:?} in column {split:?}, which has {}", found.join(", "));
        return Err(DataError::invalid(&source.file, message));
    }
    Ok(Some(rows))
}
