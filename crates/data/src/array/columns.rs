//! Columns of Parquet files, read in batches of whole rows.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;
use serde_json::Value;

use super::element::Element;
use super::pages::CheckedPages;
use crate::error::{DataError, guarded};
use crate::inputs::file_bytes::open_file;

/// What pandas calls an index that has no name.
const PANDAS_INDEX: &str = "__index_level_0__";

/// The number of values that are decoded at once, approximately.
pub(super) const BATCH_VALUES: usize = 1 << 18;

/// A Parquet file whose footer has been read.
pub(crate) struct ParquetTable {
    pub(super) path: PathBuf,
    file_len: u64,
    reader: SerializedFileReader<File>,
}

/// A column that holds values: a leaf of the schema.
#[derive(Clone)]
pub(crate) struct Column {
    pub name: String,
    index: usize,
    descr: ColumnDescPtr,
}

/// Some whole rows of a column.
pub(crate) struct Batch<'a, T> {
    pub first_row: usize,
    pub rows: usize,
    /// How far the value's path is defined; a value exists where this is the column's maximum.
    pub definition: &'a [i16],
    /// 0 where a row begins.
    pub repetition: &'a [i16],
    pub values: &'a [T],
}

impl ParquetTable {
    /// Reads the footer.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let file = open_file(path)?;
        let file_len = file.metadata().map_err(|error| DataError::io(path, error))?.len();
        let reader = guarded(path, || {
            SerializedFileReader::new(file).map_err(|error| damaged(path, &error))
        })?;
        Ok(Self { path: path.to_path_buf(), file_len, reader })
    }

    /// Every column, with the shortest name that tells it from the others.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let leaves = self.reader.metadata().file_metadata().schema_descr().columns();
        let root = |descr: &ColumnDescPtr| descr.path().parts().first().cloned();
        let column = |(index, descr): (usize, &ColumnDescPtr)| {
            let alone = leaves.iter().filter(|other| root(other) == root(descr)).count() == 1;
            let short = root(descr).filter(|_| alone);
            let name = short.unwrap_or_else(|| descr.path().string());
            Column { name, index, descr: descr.clone() }
        };
        leaves.iter().enumerate().map(column).collect()
    }

    /// Calls `each` with the rows of a column, batch by batch in order, at most `most` rows at
    /// once; returns their number.
    pub(crate) fn read<T: DataType>(
        &self,
        column: &Column,
        most: usize,
        mut each: impl FnMut(Batch<T::T>) -> Result<(), DataError>,
    ) -> Result<usize, DataError> {
        guarded(&self.path, || {
            let mut first_row = 0;
            for group in 0..self.reader.num_row_groups() {
                first_row += self.read_group::<T>(group, column, first_row, most, &mut each)?;
            }
            Ok(first_row)
        })
    }

    /// The number of rows, as the footer has it.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.reader.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The file's metadata under this key.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.reader.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// The names of the columns that were the index of a pandas data frame.
    pub(crate) fn index(&self) -> Vec<String> {
        let note = self.note("pandas").and_then(|note| serde_json::from_str(note).ok());
        let named = note.as_ref().and_then(|note: &Value| note.get("index_columns")?.as_array());
        // An index that only counts is described, and is no column.
        let names = named.into_iter().flatten().filter_map(Value::as_str).map(str::to_string);
        names.chain([PANDAS_INDEX.to_string()]).collect()
    }

    /// The names of the classes in a column of labels, which the tools of the Hugging Face hub keep
    /// in the file's metadata.
    pub(crate) fn class_names(&self, label: &Column) -> Option<Vec<String>> {
        let note: Value = serde_json::from_str(self.note("huggingface")?).ok()?;
        let names = note.get("info")?.get("features")?.get(&label.name)?.get("names")?;
        let word = |name: &Value| name.as_str().map(str::to_string);
        match names {
            Value::Array(names) => names.iter().map(word).collect(),
            // Older files number them: {"0": "cat", "1": "dog"}.
            Value::Object(names) => {
                (0..names.len()).map(|class| word(names.get(&class.to_string())?)).collect()
            }
            _ => None,
        }
    }

    /// Refuses a column that says it becomes more than its bytes warrant.
    pub(crate) fn check_expansion(&self, column: &Column, ratio: u64) -> Result<(), DataError> {
        /// Columns may always expand to this size, whatever their ratio.
        const SMALL: u64 = 1 << 20;
        for (group, metadata) in self.reader.metadata().row_groups().iter().enumerate() {
            let Some(chunk) = metadata.columns().get(column.index) else { continue };
            let size = |size: i64| u64::try_from(size).unwrap_or(u64::MAX);
            let (packed, content) =
                (size(chunk.compressed_size()), size(chunk.uncompressed_size()));
            if content > packed.saturating_mul(ratio).max(SMALL) {
                let message = format!(
                    "row group {group} says that {packed} bytes of column {:?} become {content}, \
                     more than {ratio} times as many: it is damaged or a trap",
                    column.name
                );
                return Err(DataError::invalid(&self.path, message));
            }
        }
        Ok(())
    }

    fn read_group<T: DataType>(
        &self,
        group: usize,
        column: &Column,
        before: usize,
        most: usize,
        each: &mut impl FnMut(Batch<T::T>) -> Result<(), DataError>,
    ) -> Result<usize, DataError> {
        let failed = |error: ParquetError| damaged(&self.path, &error);
        let metadata = self.reader.metadata().row_group(group);
        let chunk = metadata.columns().get(column.index).filter(|chunk| self.contains(chunk));
        let rows = usize::try_from(metadata.num_rows()).ok();
        let (Some(_), Some(rows)) = (chunk, rows) else {
            let message = format!("row group {group} lies outside the file: it is damaged");
            return Err(DataError::invalid(&self.path, message));
        };
        let pages = self.reader.get_row_group(group).map_err(failed)?;
        let pages = pages.get_column_page_reader(column.index).map_err(failed)?;
        let pages = Box::new(CheckedPages::new(pages));
        let mut reader = ColumnReaderImpl::<T>::new(column.descr.clone(), pages);
        let (mut definition, mut repetition, mut values) = (vec![], vec![], vec![]);
        // One row first: it shows how many fit in a batch.
        let (mut done, mut at_once) = (0, 1);
        loop {
            definition.clear();
            repetition.clear();
            values.clear();
            let (read, _, levels) = reader
                .read_records(at_once, Some(&mut definition), Some(&mut repetition), &mut values)
                .map_err(failed)?;
            if read == 0 {
                break;
            }
            each(Batch {
                first_row: before + done,
                rows: read,
                definition: &definition,
                repetition: &repetition,
                values: &values,
            })?;
            done += read;
            at_once = (BATCH_VALUES / levels.div_ceil(read).max(1)).clamp(1, most);
        }
        if done != rows {
            let message = format!("row group {group} has {done} rows, its footer says {rows}");
            return Err(DataError::invalid(&self.path, message));
        }
        Ok(done)
    }

    fn contains(&self, chunk: &ColumnChunkMetaData) -> bool {
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let end = start.checked_add(chunk.compressed_size());
        start >= 0
            && chunk.compressed_size() >= 0
            && end.is_some_and(|end| end as u64 <= self.file_len)
    }

    /// Reads a column of lists that all have the same length; returns rows and length.
    pub(crate) fn read_lists<T: DataType>(
        &self,
        column: &Column,
        mut each: impl FnMut(&[T::T]) -> Result<(), DataError>,
    ) -> Result<(usize, usize), DataError> {
        let mut width = None;
        let rows = self.read::<T>(column, BATCH_VALUES, |batch| {
            check_rows(column, &batch, &mut width)
                .map_err(|message| DataError::invalid(&self.path, message))?;
            each(batch.values)
        })?;
        Ok((rows, width.unwrap_or(0)))
    }
}

/// Every row of the batch has `width` values and no null.
fn check_rows<T>(
    column: &Column,
    batch: &Batch<T>,
    width: &mut Option<usize>,
) -> Result<(), String> {
    let name = &column.name;
    let mut definition = batch.definition;
    let mut rows = 0;
    for levels in batch.repetition.chunk_by(|_, &next| next != 0) {
        let row = batch.first_row + rows;
        let (of_row, rest) = definition.split_at(levels.len());
        definition = rest;
        if let Some(&level) = of_row.iter().find(|&&level| level != column.defined()) {
            let what = if level < column.descr.repeated_ancestor_def_level() {
                "is null or an empty list"
            } else {
                "holds a null"
            };
            return Err(format!("row {row} of column {name:?} {what}; remove or fill it"));
        }
        let (found, expected) = (levels.len(), *width.get_or_insert(levels.len()));
        if found != expected {
            return Err(format!(
                "row {row} of column {name:?} has {found} numbers, row 0 has {expected}; \
                 all rows must be equally long"
            ));
        }
        rows += 1;
    }
    if rows == batch.rows {
        Ok(())
    } else {
        Err(format!("column {name:?} is damaged near row {}", batch.first_row))
    }
}

impl Column {
    /// Whether each row holds a list, and not a list of lists.
    pub(crate) fn is_list(&self) -> bool {
        self.descr.max_rep_level() == 1
    }

    /// Whether each row holds a list of lists, or more.
    pub(crate) fn is_nested(&self) -> bool {
        self.descr.max_rep_level() > 1
    }

    /// Whether each row holds one value.
    pub(crate) fn is_flat(&self) -> bool {
        self.descr.max_rep_level() == 0
    }

    /// Whether each row holds bytes that are not declared as text.
    pub(crate) fn is_binary(&self) -> bool {
        self.is_flat()
            && self.descr.physical_type() == Type::BYTE_ARRAY
            && self.descr.logical_type_ref().is_none()
            && self.descr.converted_type() == ConvertedType::NONE
    }

    /// The names of the groups that the column is in, then its own.
    pub(crate) fn parts(&self) -> &[String] {
        self.descr.path().parts()
    }

    /// The definition level of a value that is there.
    pub(crate) fn defined(&self) -> i16 {
        self.descr.max_def_level()
    }

    /// Whether this is the column that is asked for, by its name or whole path.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.descr.path().string() == name
    }

    /// The type of the values; `None` for one that is neither number nor word.
    pub(crate) fn element(&self) -> Option<Element> {
        let logical = self.descr.logical_type_ref();
        let converted = self.descr.converted_type();
        let plain = matches!(logical, None | Some(LogicalType::Integer(_)))
            && converted != ConvertedType::DECIMAL;
        let unsigned = matches!(logical, Some(LogicalType::Integer(int)) if !int.is_signed)
            || matches!(converted, ConvertedType::UINT_32 | ConvertedType::UINT_64);
        match self.descr.physical_type() {
            Type::BOOLEAN => Some(Element::Bool),
            Type::INT32 if plain && unsigned => Some(Element::U32),
            Type::INT32 if plain => Some(Element::I32),
            Type::INT64 if plain && unsigned => Some(Element::U64),
            Type::INT64 if plain => Some(Element::I64),
            Type::FLOAT => Some(Element::F32),
            Type::DOUBLE => Some(Element::F64),
            Type::FIXED_LEN_BYTE_ARRAY
                if logical == Some(&LogicalType::Float16) && self.descr.type_length() == 2 =>
            {
                Some(Element::F16)
            }
            Type::BYTE_ARRAY => Some(Element::Bytes(1)),
            _ => None,
        }
    }

    /// As `name: list of float32`, for messages.
    pub(crate) fn label(&self) -> String {
        let element = match self.element() {
            Some(Element::Bytes(_)) => "text".to_string(),
            Some(element) => element.name().to_string(),
            None => format!("{:?}", self.descr.physical_type()).to_lowercase(),
        };
        let lists = "list of ".repeat(self.descr.max_rep_level().max(0) as usize);
        format!("{}: {lists}{element}", self.name)
    }
}

/// The column that is named, or else the only one that suits.
pub(crate) fn choose(
    path: &Path,
    columns: &[Column],
    name: Option<&str>,
    wanted: &str,
    suits: impl Fn(&Column) -> bool,
) -> Result<Column, DataError> {
    let labels: Vec<String> = columns.iter().map(Column::label).collect();
    let seen = labels.join("; ");
    let invalid = |message: String| Err(DataError::invalid(path, message));
    if let Some(name) = name {
        let Some(column) = columns.iter().find(|column| column.is_called(name)) else {
            return invalid(format!("has no column {name:?}; it has {seen}"));
        };
        if !suits(column) {
            return invalid(format!("column {} is not a {wanted}", column.label()));
        }
        return Ok(column.clone());
    }
    let suitable: Vec<&Column> = columns.iter().filter(|column| suits(column)).collect();
    match suitable[..] {
        [only] => Ok(only.clone()),
        [] => invalid(format!("has no {wanted}; it has {seen}")),
        _ => {
            let file = path.display();
            invalid(format!("has more than one {wanted}: {seen}; choose with {file}#column"))
        }
    }
}

fn damaged(path: &Path, error: &ParquetError) -> DataError {
    DataError::invalid(path, format!("is not a whole Parquet file ({error}); write it again"))
}
