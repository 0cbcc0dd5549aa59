//! `.csv`, `.tsv` and `.txt`: tables of numbers or words.

use std::path::Path;

use super::{Array, Format, Values, split_spec};
use crate::error::DataError;
use crate::inputs::file_bytes::{FileBytes, Stream};

/// Usual names of columns; they distinguish a header from a first row of words.
const COLUMN_NAMES: &str = "annotation annotator answer category class class_name example file \
    filename id ids image index item label labels name path target task user value worker y";

/// Reads a table whose cells are separated by `delimiter`, or the one column that is named.
///
/// The first row is a header if a column is named and it holds that name; if one of its cells is
/// a word over a column of numbers; or if it holds a usual name of a column that does not occur
/// below it. An unnamed first column that counts the rows (as pandas writes it) is left out.
pub(crate) fn load(path: &Path, delimiter: u8, column: Option<&str>) -> Result<Array, DataError> {
    let file = FileBytes::open(path)?;
    let mut cells = Cells::read(path, reader(&file, delimiter, csv::Trim::All).records())?;
    let header = cells.take_header(column);
    if cells.rows() == 0 {
        return Err(DataError::invalid(path, "has no rows"));
    }
    let mut columns: Vec<usize> = (0..cells.width).collect();
    if let Some(header) = &header
        && column.is_none()
        && cells.width > 1
        && header[0].is_empty()
        && cells.column(0).enumerate().all(|(row, cell)| cell == row.to_string())
    {
        columns.remove(0);
    }
    if let Some(column) = column {
        columns = vec![find_column(path, header.as_deref(), column)?];
    }
    let names = header.map(|names| columns.iter().map(|&at| names[at].clone()).collect());
    let picked = (0..cells.rows()).flat_map(|row| columns.iter().map(move |&at| (row, at)));
    let values = typed(picked.map(|(row, at)| cells.at(row, at)));
    let shape = match columns.len() {
        1 => vec![cells.rows()],
        width => vec![cells.rows(), width],
    };
    Ok(Array { shape, values, columns: names })
}

/// The header of a table of several columns of which one is `wanted`, and the cells below it as
/// they are written; `None` for any other file, or where one column is named.
pub(crate) fn written(
    spec: &str,
    wanted: impl Fn(&String) -> bool,
) -> Result<Option<(Vec<String>, Cells)>, DataError> {
    let (path, column) = split_spec(spec);
    let (Format::Table { delimiter }, None) = (Format::of(&path)?, column) else {
        return Ok(None);
    };
    let file = FileBytes::open(&path)?;
    let mut reader = reader(&file, delimiter, csv::Trim::None);
    let header = Cells::read(&path, reader.records().take(1))?.cells;
    if header.len() < 2 || !header.iter().any(wanted) {
        return Ok(None);
    }
    Ok(Some((header, Cells::read(&path, reader.records())?)))
}

pub(crate) fn reader(file: &FileBytes, delimiter: u8, trim: csv::Trim) -> csv::Reader<Stream<'_>> {
    let mut reader = csv::ReaderBuilder::new();
    reader.buffer_capacity(1 << 18).delimiter(delimiter).has_headers(false).trim(trim);
    reader.from_reader(file.stream(0..file.len()))
}

/// One value per line, without a header: ids, names of classes.
pub(crate) fn lines(path: &Path) -> Result<Array, DataError> {
    let bytes = FileBytes::open(path)?.all()?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        DataError::invalid(path, format!("line {line} is not valid UTF-8; save the file as UTF-8"))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    if used == 0 {
        return Err(DataError::invalid(path, "has no rows"));
    }
    Ok(Array { shape: vec![used], values: typed(lines[..used].iter().copied()), columns: None })
}

/// All cells, row by row.
pub(crate) struct Cells {
    width: usize,
    cells: Vec<String>,
}

impl Cells {
    fn read(
        path: &Path,
        records: impl Iterator<Item = csv::Result<csv::StringRecord>>,
    ) -> Result<Self, DataError> {
        let (mut width, mut cells) = (0, vec![]);
        for record in records {
            let record = record.map_err(|error| damaged(path, &error))?;
            width = record.len();
            cells.extend(record.iter().map(str::to_string));
        }
        Ok(Self { width, cells })
    }

    pub(crate) fn rows(&self) -> usize {
        self.cells.len().checked_div(self.width).unwrap_or(0)
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> &str {
        &self.cells[row * self.width + column]
    }

    pub(crate) fn column(&self, column: usize) -> impl Iterator<Item = &str> {
        self.cells.iter().skip(column).step_by(self.width).map(String::as_str)
    }

    /// Removes the first row if it is a header.
    fn take_header(&mut self, named: Option<&str>) -> Option<Vec<String>> {
        let first = self.cells.get(..self.width).filter(|first| !first.is_empty())?;
        let holds_name = named.is_some_and(|name| first.iter().any(|cell| cell == name));
        let is_header = holds_name || (0..self.width).any(|column| self.has_title(column));
        is_header.then(|| self.cells.drain(..self.width).collect())
    }

    /// Whether the first cell of a column names the others.
    fn has_title(&self, column: usize) -> bool {
        let mut cells = self.column(column);
        let title = cells.next().unwrap_or_default();
        if is_blank(title) || is_number(title) {
            return false;
        }
        let below: Vec<&str> = cells.filter(|cell| !is_blank(cell)).collect();
        let over_numbers = !below.is_empty() && below.iter().all(|cell| is_number(cell));
        let usual = COLUMN_NAMES.split(' ').any(|name| name == title.to_lowercase());
        over_numbers || (usual && !below.contains(&title))
    }
}

fn find_column(path: &Path, header: Option<&[String]>, column: &str) -> Result<usize, DataError> {
    let Some(header) = header else {
        let message = format!("has no header, so there is no column {column:?}");
        return Err(DataError::invalid(path, message));
    };
    let found: Vec<usize> = (0..header.len()).filter(|at| header[*at] == column).collect();
    let message = match found[..] {
        [at] => return Ok(at),
        [] => format!("has no column {column:?}; it has {}", header.join(", ")),
        _ => format!("has more than one column {column:?}"),
    };
    Err(DataError::invalid(path, message))
}

/// Whole numbers if all are; numbers, with NaN for blanks, if all others are; else words.
fn typed<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> Values {
    let ints: Option<Vec<i64>> = cells.clone().map(|cell| cell.parse().ok()).collect();
    if let Some(ints) = ints {
        return Values::Int(ints);
    }
    let number = |cell: &str| if is_blank(cell) { Some(f64::NAN) } else { number(cell) };
    let floats: Option<Vec<f64>> = cells.clone().map(number).collect();
    if let Some(floats) = floats
        && !floats.iter().all(|value| value.is_nan())
    {
        return Values::Float(floats);
    }
    Values::Text(cells.map(str::to_string).collect())
}

pub(crate) fn is_blank(cell: &str) -> bool {
    matches!(cell, "" | "NA" | "N/A" | "nan" | "NaN" | "null" | "None")
}

/// What Python writes for 1 and 0.
pub(crate) fn boolean(cell: &str) -> Option<f64> {
    match cell {
        "True" | "true" | "TRUE" => Some(1.0),
        "False" | "false" | "FALSE" => Some(0.0),
        _ => None,
    }
}

fn is_number(cell: &str) -> bool {
    number(cell).is_some()
}

/// Long rows of digits are ids: as floats, different ones could become equal.
pub(crate) fn number(cell: &str) -> Option<f64> {
    let digits = cell.bytes().all(|byte| byte.is_ascii_digit());
    if digits && cell.parse::<i64>().is_err() {
        return None;
    }
    cell.parse().ok()
}

pub(crate) fn damaged(path: &Path, error: &csv::Error) -> DataError {
    let line = error.position().map_or(0, csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {line} has {len} fields, the lines before it {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => {
            format!("line {line} is not valid UTF-8; save the file as UTF-8")
        }
        _ => format!("line {line}: {error}"),
    };
    DataError::invalid(path, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str, column: Option<&str>) -> Result<Array, DataError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, text).unwrap();
        load(&path, b',', column)
    }

    fn loaded(text: &str) -> (Vec<usize>, Values, Option<Vec<String>>) {
        let array = load_text(text, None).unwrap();
        (array.shape, array.values, array.columns)
    }

    fn texts(cells: &[&str]) -> Values {
        Values::Text(cells.iter().map(|cell| cell.to_string()).collect())
    }

    #[test]
    fn a_column_of_numbers_with_or_without_a_title() {
        let named = Some(vec!["label".to_string()]);
        assert_eq!(loaded("label\n3\n1\n"), (vec![2], Values::Int(vec![3, 1]), named));
        assert_eq!(loaded("3\n1\n"), (vec![2], Values::Int(vec![3, 1]), None));
        assert_eq!(loaded("3\n1.5\n"), (vec![2], Values::Float(vec![3.0, 1.5]), None));
    }

    #[test]
    fn a_column_of_words_has_a_title_only_if_it_is_a_usual_one() {
        let cats = texts(&["cat", "dog", "cat"]);
        assert_eq!(loaded("cat\ndog\ncat\n"), (vec![3], cats.clone(), None));
        let named = Some(vec!["Label".to_string()]);
        assert_eq!(loaded("Label\ncat\ndog\ncat\n"), (vec![3], cats, named));
        assert_eq!(loaded("name\nname\nage\n").0, [3], "a class may be called name");
    }

    #[test]
    fn several_columns_make_a_matrix_with_names() {
        let (shape, values, columns) = loaded("a,b\n1,2\n3,4\n");
        assert_eq!((shape, values), (vec![2, 2], Values::Int(vec![1, 2, 3, 4])));
        assert_eq!(columns.unwrap(), ["a", "b"]);
    }

    #[test]
    fn blanks_are_nan_among_numbers_and_empty_among_words() {
        let (_, values, _) = loaded("1,2\n,4\nNA,5\n");
        let Values::Float(values) = values else { panic!("{values:?}") };
        assert_eq!(values[1], 2.0);
        assert!(values[2].is_nan() && values[4].is_nan());
        let (_, values, _) = loaded("cat,2\n,4\n");
        assert_eq!(values, texts(&["cat", "2", "", "4"]));
    }

    #[test]
    fn a_named_column_is_picked_and_a_wrong_name_lists_the_right_ones() {
        let text = "image,label\na.png,cat\nb.png,dog\n";
        let array = load_text(text, Some("label")).unwrap();
        assert_eq!((array.shape, array.values), (vec![2], texts(&["cat", "dog"])));
        let error = load_text(text, Some("labels")).unwrap_err().to_string();
        assert!(error.contains("\"labels\"") && error.contains("image, label"), "{error}");
        let error = load_text("1,2\n3,4\n", Some("y")).unwrap_err().to_string();
        assert!(error.contains("no header"), "{error}");
    }

    #[test]
    fn the_row_numbers_of_pandas_are_left_out() {
        let (shape, values, columns) = loaded(",label\n0,7\n1,8\n");
        assert_eq!((shape, values), (vec![2], Values::Int(vec![7, 8])));
        assert_eq!(columns.unwrap(), ["label"]);
    }

    #[test]
    fn ids_longer_than_any_number_stay_words() {
        let ids = ["18446744073709551616", "18446744073709551617"];
        assert_eq!(loaded(&ids.join("\n")).1, texts(&ids));
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_cell() {
        assert_eq!(loaded("\u{feff}3\n1\n").1, Values::Int(vec![3, 1]));
    }

    #[test]
    fn a_line_of_another_length_is_named() {
        let error = load_text("1,2\n3\n", None).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("1 fields"), "{error}");
    }

    #[test]
    fn an_empty_table_is_refused() {
        for text in ["", "label\n"] {
            let result = load_text(text, Some("label"));
            assert!(result.unwrap_err().to_string().contains("no rows"), "{text:?}");
        }
    }
}
