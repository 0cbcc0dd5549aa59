//! Small arrays from the columns of a Parquet file.

use std::path::Path;

use half::f16;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};

use super::columns::{BATCH_VALUES, Column, ParquetTable, choose};
use super::element::Element;
use super::{Array, Values};
use crate::error::DataError;

/// Reads the column that is named, or else all of them.
pub(crate) fn load(path: &Path, column: Option<&str>) -> Result<Array, DataError> {
    let table = ParquetTable::open(path)?;
    let mut columns = table.columns();
    if column.is_some() {
        let suits = |column: &Column| column.element().is_some() && !column.is_nested();
        columns = vec![choose(path, &columns, column, "column of numbers or words", suits)?];
    } else {
        let index = table.index();
        columns.retain(|column| !index.contains(&column.name));
    }
    let array = match &columns[..] {
        [only] if only.element().is_some() && !only.is_nested() => table.array(only)?,
        _ => table.side_by_side(&columns)?,
    };
    if array.rows() == 0 {
        return Err(DataError::invalid(path, "has no rows"));
    }
    Ok(array)
}

/// The cells of a column, `None` where one is null, and the array's shape.
type Cells<T> = (Vec<usize>, Vec<Option<T>>);

impl ParquetTable {
    /// A column of values as `[N]`, of lists as `[N, M]`.
    pub(crate) fn array(&self, column: &Column) -> Result<Array, DataError> {
        let (shape, values) = match column.element() {
            Some(Element::Bool) => ints(self.cells::<BoolType, _>(column, |&v| Ok(v.into()))?),
            Some(Element::I32) => ints(self.cells::<Int32Type, _>(column, |&v| Ok(v.into()))?),
            Some(Element::U32) => {
                ints(self.cells::<Int32Type, _>(column, |v| Ok(v.cast_unsigned().into()))?)
            }
            Some(Element::I64) => ints(self.cells::<Int64Type, _>(column, |&v| Ok(v))?),
            Some(Element::U64) => ints(self.cells::<Int64Type, _>(column, |&v| below_2_63(v))?),
            Some(Element::F16) => {
                floats(self.cells::<FixedLenByteArrayType, _>(column, |v| Ok(half(v)?.into()))?)
            }
            Some(Element::F32) => floats(self.cells::<FloatType, _>(column, |&v| Ok(v.into()))?),
            Some(Element::F64) => floats(self.cells::<DoubleType, _>(column, |&v| Ok(v))?),
            _ => words(self.cells::<ByteArrayType, _>(column, word)?),
        };
        Ok(Array { shape, values, columns: None })
    }

    fn cells<T: DataType, U>(
        &self,
        column: &Column,
        convert: impl Fn(&T::T) -> Result<U, String>,
    ) -> Result<Cells<U>, DataError> {
        let invalid = |message: String| {
            DataError::invalid(&self.path, format!("column {:?} holds {message}", column.name))
        };
        let mut cells = vec![];
        if column.is_list() {
            let (rows, width) = self.read_lists::<T>(column, |values| {
                for value in values {
                    cells.push(Some(convert(value).map_err(invalid)?));
                }
                Ok(())
            })?;
            return Ok((vec![rows, width], cells));
        }
        let rows = self.read::<T>(column, BATCH_VALUES, |batch| {
            let mut values = batch.values.iter();
            for row in 0..batch.rows {
                // Where nothing can be null, there are no levels.
                let there = batch.definition.get(row).is_none_or(|&at| at == column.defined());
                let value = if there { values.next() } else { None };
                cells.push(value.map(&convert).transpose().map_err(invalid)?);
            }
            Ok(())
        })?;
        Ok((vec![rows], cells))
    }

    /// Columns side by side, `[N, M]`.
    fn side_by_side(&self, columns: &[Column]) -> Result<Array, DataError> {
        let unfit = columns.iter().find(|column| !column.is_flat() || column.element().is_none());
        if let Some(unfit) = unfit {
            let (label, file) = (unfit.label(), self.path.display());
            let message = format!("column {label} fits no table; choose one: {file}#column");
            return Err(DataError::invalid(&self.path, message));
        }
        let parts: Result<Vec<Array>, DataError> =
            columns.iter().map(|column| self.array(column)).collect();
        let parts: Vec<Values> = parts?.into_iter().map(|array| array.values).collect();
        let rows = parts.first().map_or(0, Values::len);
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let shape = vec![rows, parts.len()];
        Ok(Array { shape, values: interleaved(&parts, rows), columns: Some(names) })
    }
}

/// Row by row, in the one type that holds all columns.
fn interleaved(columns: &[Values], rows: usize) -> Values {
    let cells = || (0..rows).flat_map(|row| columns.iter().map(move |column| (column, row)));
    if columns.iter().any(|column| matches!(column, Values::Text(_))) {
        return Values::Text(cells().map(|(column, row)| column.text(row)).collect());
    }
    let int = |(column, row): (&Values, usize)| match column {
        Values::Int(values) => Some(values[row]),
        _ => None,
    };
    match cells().map(int).collect() {
        Some(ints) => Values::Int(ints),
        None => Values::Float(cells().map(|(column, row)| column.float(row)).collect()),
    }
}

fn ints((shape, cells): Cells<i64>) -> (Vec<usize>, Values) {
    match cells.iter().copied().collect() {
        Some(ints) => (shape, Values::Int(ints)),
        None => floats((shape, cells.into_iter().map(|cell| cell.map(|v| v as f64)).collect())),
    }
}

fn floats((shape, cells): Cells<f64>) -> (Vec<usize>, Values) {
    (shape, Values::Float(cells.into_iter().map(|cell| cell.unwrap_or(f64::NAN)).collect()))
}

fn words((shape, cells): Cells<String>) -> (Vec<usize>, Values) {
    (shape, Values::Text(cells.into_iter().map(Option::unwrap_or_default).collect()))
}

/// Parquet keeps unsigned numbers in the bits of signed ones.
fn below_2_63(value: i64) -> Result<i64, String> {
    let unsigned = value.cast_unsigned();
    i64::try_from(unsigned).map_err(|_| format!("{unsigned}; the largest number is 2⁶³ − 1"))
}

/// A float16, which Parquet keeps as two bytes.
pub(crate) fn half(value: &FixedLenByteArray) -> Result<f32, String> {
    let bytes = value.data().try_into().map_err(|_| "a float16 that has not two bytes")?;
    Ok(f16::from_le_bytes(bytes).to_f32())
}

fn word(value: &ByteArray) -> Result<String, String> {
    let text = std::str::from_utf8(value.data());
    text.map(str::to_string).map_err(|_| "bytes that are not valid UTF-8".into())
}
