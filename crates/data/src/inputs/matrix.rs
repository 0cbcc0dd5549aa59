//! Embeddings: a matrix of numbers, one row per example, in a file.

use std::path::Path;

use parquet::data_type::{
    BoolType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};

use super::file_bytes::FileBytes;
use super::spool::Spool;
use crate::array::columns::{self, Column, ParquetTable};
use crate::array::element::{Element, Located, numbers_into, saved_as};
use crate::array::records::half;
use crate::array::{Format, npy, npz, refuse_name, split_spec, tensors};
use crate::error::DataError;

/// Floats of a block of rows while a Fortran-ordered matrix is turned.
const BLOCK_FLOATS: usize = 1 << 22;

/// `[rows, width]` numbers, row by row.
#[derive(Debug)]
pub(crate) struct Matrix {
    file: FileBytes,
    start: usize,
    element: Element,
    big_endian: bool,
    pub rows: usize,
    pub width: usize,
    /// The type as it stands in the user's file.
    pub stored: &'static str,
    /// The names of the features, where they are the columns of a table.
    pub names: Option<std::sync::Arc<[String]>>,
}

impl Matrix {
    /// Opens `file` or `file#name`.
    pub(crate) fn open(spec: &str) -> Result<Self, DataError> {
        let (path, name) = split_spec(spec);
        let path = path.as_path();
        match Format::of(path)? {
            Format::Npy => {
                refuse_name(path, name)?;
                let file = FileBytes::open(path)?;
                let at = npy::locate(path, &file)?;
                Self::at(path, file, at)
            }
            Format::Safetensors => {
                let file = FileBytes::open(path)?;
                let tensors = tensors::list(path, &file)?;
                let (_, at) = tensors::choose_matrix(path, tensors, name)?;
                Self::at(Path::new(spec), file, at)
            }
            Format::Npz => {
                let choose = |arrays| tensors::choose_matrix(path, arrays, name);
                let (file, at) = npz::open(path, choose)?;
                Self::at(Path::new(spec), file, at)
            }
            Format::Parquet => Self::of_lists(path, name),
            Format::Table { .. } | Format::Lines | Format::Idx => Err(DataError::invalid(
                path,
                "embeddings are read from .npy, .npz, .safetensors or .parquet; convert with \
                 numpy.save(\"x.npy\", x.astype(numpy.float32))",
            )),
        }
    }

    /// A matrix that lies in a file as numbers.
    pub(super) fn at(path: &Path, file: FileBytes, at: Located) -> Result<Self, DataError> {
        if !at.element.is_number() {
            let (found, how) = (at.element.name(), saved_as(path, "numpy.float32"));
            return Err(DataError::invalid(path, format!("holds {found}, not numbers; {how}")));
        }
        let &[rows, width] = &at.shape[..] else {
            let (dims, shape) = (at.shape.len(), &at.shape);
            let how = if dims > 2 { "x.reshape(len(x), -1)" } else { "x.reshape(-1, 1)" };
            let message = format!(
                "is {dims}-dimensional (shape {shape:?}); features are 2-dimensional, \
                 [examples, numbers]: save it again with {how} in place of x"
            );
            return Err(DataError::invalid(path, message));
        };
        check_size(path, rows, width)?;
        let stored = at.element.name();
        if at.fortran && rows > 1 && width > 1 {
            return Self::turned(path, &file, &at, rows, width);
        }
        let file = file.for_rows(at.bytes.clone())?;
        let (start, Located { element, big_endian, .. }) = (at.bytes.start, at);
        Ok(Self { file, start, element, big_endian, rows, width, stored, names: None })
    }

    /// Column by column in the file, row by row here. This is how NumPy saves pandas data frames.
    fn turned(
        path: &Path,
        file: &FileBytes,
        at: &Located,
        rows: usize,
        width: usize,
    ) -> Result<Self, DataError> {
        let size = at.element.size();
        let block = (BLOCK_FLOATS / width).clamp(1, rows);
        let mut spool = Spool::new(path)?;
        let mut column = vec![0.0; block];
        let mut turned = vec![0.0; block * width];
        for first in (0..rows).step_by(block) {
            let count = block.min(rows - first);
            for at_column in 0..width {
                let from = at.bytes.start + (at_column * rows + first) * size;
                file.with(from..from + count * size, |bytes| {
                    numbers_into(at.element, at.big_endian, bytes, &mut column[..count]);
                })?;
                for (row, &value) in column[..count].iter().enumerate() {
                    turned[row * width + at_column] = value;
                }
            }
            spool.write_floats(&turned[..count * width])?;
        }
        Self::of_spool(spool, rows, width, at.element)
    }

    /// A column of lists of numbers in a Parquet file.
    pub(super) fn of_lists(path: &Path, name: Option<&str>) -> Result<Self, DataError> {
        let table = ParquetTable::open(path)?;
        let is_numbers =
            |column: &Column| column.is_list() && column.element().is_some_and(Element::is_number);
        let wanted = "column of lists of numbers";
        let column = columns::choose(path, &table.columns(), name, wanted, is_numbers)?;
        match column.element() {
            Some(Element::Bool) => Self::of_column::<BoolType>(path, &table, &column, |&it| {
                Ok(f32::from(u8::from(it)))
            }),
            Some(Element::I32) => {
                Self::of_column::<Int32Type>(path, &table, &column, |&value| Ok(value as f32))
            }
            Some(Element::U32) => Self::of_column::<Int32Type>(path, &table, &column, |value| {
                Ok(value.cast_unsigned() as f32)
            }),
            Some(Element::I64) => {
                Self::of_column::<Int64Type>(path, &table, &column, |&value| Ok(value as f32))
            }
            Some(Element::U64) => Self::of_column::<Int64Type>(path, &table, &column, |value| {
                Ok(value.cast_unsigned() as f32)
            }),
            Some(Element::F64) => {
                Self::of_column::<DoubleType>(path, &table, &column, |&value| Ok(value as f32))
            }
            Some(Element::F16) => {
                Self::of_column::<FixedLenByteArrayType>(path, &table, &column, half)
            }
            _ => Self::of_column::<FloatType>(path, &table, &column, |&value| Ok(value)),
        }
    }

    fn of_column<T: DataType>(
        path: &Path,
        table: &ParquetTable,
        column: &Column,
        convert: impl Fn(&T::T) -> Result<f32, String>,
    ) -> Result<Self, DataError> {
        let mut spool = Spool::new(path)?;
        let (rows, width) = table.read_lists::<T>(column, |values| {
            let floats: Result<Vec<f32>, String> = values.iter().map(&convert).collect();
            let invalid = |what| format!("column {:?} holds {what}", column.name);
            spool.write_floats(&floats.map_err(|what| DataError::invalid(path, invalid(what)))?)
        })?;
        check_size(path, rows, width)?;
        Self::of_spool(spool, rows, width, column.element().unwrap_or(Element::F32))
    }

    fn of_spool(
        spool: Spool,
        rows: usize,
        width: usize,
        stored: Element,
    ) -> Result<Self, DataError> {
        Ok(Self { stored: stored.name(), ..Self::of_floats(spool, rows, width)? })
    }

    /// Rows of float32 that were written one after the other.
    pub(super) fn of_floats(spool: Spool, rows: usize, width: usize) -> Result<Self, DataError> {
        let (file, element) = (spool.finish()?, Element::F32);
        let len = file.len();
        let file = file.for_rows(0..len)?;
        let stored = element.name();
        Ok(Self { file, start: 0, element, big_endian: false, rows, width, stored, names: None })
    }

    /// The same with these names of the features.
    pub(super) fn named(self, names: &[String]) -> Self {
        Self { names: Some(names.into()), ..self }
    }

    /// These rows alone.
    pub(super) fn select(self, path: &Path, rows: &[usize]) -> Result<Self, DataError> {
        let mut spool = Spool::new(path)?;
        let mut values = vec![0.0; self.width];
        for row in rows {
            self.read(*row, &mut values)?;
            spool.write_floats(&values)?;
        }
        let (stored, names, width) = (self.stored, self.names, self.width);
        Ok(Self { stored, names, ..Self::of_floats(spool, rows.len(), width)? })
    }

    /// Whole rows as float32, as many as fill `out`.
    pub(crate) fn read(&self, first_row: usize, out: &mut [f32]) -> Result<(), DataError> {
        let size = self.element.size();
        let from = self.start + first_row * self.width * size;
        self.file.with(from..from + out.len() * size, |bytes| {
            numbers_into(self.element, self.big_endian, bytes, out);
        })
    }
}

fn check_size(path: &Path, rows: usize, width: usize) -> Result<(), DataError> {
    let empty = match (rows, width) {
        (0, _) => "no rows: there is no example",
        (_, 0) => "no columns: an example has no numbers",
        _ => return Ok(()),
    };
    Err(DataError::invalid(path, format!("shape [{rows}, {width}] has {empty}")))
}
