//! Small arrays of numbers or words from files: labels, ids, transition matrices.

pub(crate) mod columns;
pub(crate) mod element;
pub(crate) mod idx;
pub(crate) mod npy;
pub(crate) mod npz;
mod objects;
mod pages;
pub(crate) mod records;
pub(crate) mod table;
pub(crate) mod tensors;

use std::path::{Path, PathBuf};

use crate::ending::{self, Ending};
use crate::error::DataError;
use crate::inputs::file_bytes::FileBytes;
use crate::inputs::file_bytes::open_file;
use element::Located;

/// A small array in C order, from a file or from memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// `[N]` or `[N, M]` for tables; anything for `.npy` and tensors.
    pub shape: Vec<usize>,
    /// The elements; their number is the product of `shape`.
    pub values: Values,
    /// The columns' names, where a table has a header.
    pub columns: Option<Vec<String>>,
}

/// The elements of an [`Array`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers and booleans.
    Int(Vec<i64>),
    /// Numbers of which at least one is not whole or missing; a missing one is NaN.
    Float(Vec<f64>),
    /// Words; a missing one is empty.
    Text(Vec<String>),
}

impl Array {
    /// Reads `file`, or `file#name` for a column of a table or one tensor of several.
    ///
    /// - `.npy`: numbers and words of any shape, either byte order, C or Fortran order.
    /// - `.csv`, `.tsv`: one column gives `[N]`, several `[N, M]`; a header is recognised.
    /// - `.txt`: one value per line, no header.
    /// - `.npz`, `.safetensors`: the array that is named, or the only one.
    /// - `.parquet`: one column gives `[N]` (a column of lists `[N, M]`), several `[N, M]`.
    /// - IDX, plain or gzipped, as MNIST's labels.
    ///
    /// ```
    /// use aleator_data::array::{Array, Values};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("labels.csv");
    /// # let file = file.to_str().unwrap();
    /// std::fs::write(file, "image,label\na.png,3\nb.png,1\n")?;
    /// let labels = Array::load(&format!("{file}#label"))?;
    /// assert_eq!(labels.shape, [2]);
    /// assert_eq!(labels.values, Values::Int(vec![3, 1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(spec: &str) -> Result<Self, DataError> {
        let (path, name) = split_spec(spec);
        let path = path.as_path();
        let format = Format::of(path)?;
        if matches!(format, Format::Npy | Format::Lines | Format::Idx) {
            refuse_name(path, name)?;
        }
        match format {
            Format::Npy => {
                let file = FileBytes::open(path)?;
                Self::decode(path, npy::locate(path, &file)?, &file)
            }
            Format::Safetensors => {
                let file = FileBytes::open(path)?;
                let tensors = tensors::list(path, &file)?;
                let (_, at) = tensors::choose(path, tensors, name, "tensor", |_| true)?;
                Self::decode(Path::new(spec), at, &file)
            }
            Format::Npz => {
                let choose = |arrays| tensors::choose(path, arrays, name, "array", |_| true);
                let (file, at) = npz::open(path, choose)?;
                Self::decode(Path::new(spec), at, &file)
            }
            Format::Idx => {
                let (file, at) = idx::open(path)?;
                Self::decode(path, at, &file)
            }
            Format::Parquet => records::load(path, name),
            Format::Table { delimiter } => table::load(path, delimiter, name),
            Format::Lines => table::lines(path),
        }
    }

    /// A column of class numbers, `[N]`.
    pub fn numbers(numbers: impl IntoIterator<Item = i64>) -> Self {
        Self::column(Values::Int(numbers.into_iter().collect()))
    }

    /// A column of names, `[N]`.
    pub fn names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self::column(Values::Text(names.into_iter().map(Into::into).collect()))
    }

    fn column(values: Values) -> Self {
        Self { shape: vec![values.len()], values, columns: None }
    }

    /// A table of numbers with this many columns, row by row: `[N, width]`.
    pub fn table(values: Vec<f64>, width: usize) -> Self {
        let rows = values.len().checked_div(width).unwrap_or(0);
        Self { shape: vec![rows, width], values: Values::Float(values), columns: None }
    }

    /// Refuses values that do not fill the shape, or names for more or fewer columns.
    pub(crate) fn check(&self, name: &str) -> Result<(), DataError> {
        let found = self.values.len();
        if self.shape.iter().try_fold(1, |size: usize, side| size.checked_mul(*side)) != Some(found)
        {
            let message = format!("has {found} values, which do not fill {:?}", self.shape);
            return Err(DataError::invalid(name, message));
        }
        let width = self.shape.get(1).copied().unwrap_or(1);
        match &self.columns {
            Some(columns) if columns.len() != width => {
                let message = format!("has {} names for {width} columns", columns.len());
                Err(DataError::invalid(name, message))
            }
            _ => Ok(()),
        }
    }

    /// The length of the first dimension; 1 for a scalar.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    fn decode(path: &Path, at: Located, file: &FileBytes) -> Result<Self, DataError> {
        let values = element::values(path, &at, &file.bytes(at.bytes.clone())?)?;
        let values = if at.fortran { values.in_c_order(&at.shape) } else { values };
        Ok(Self { shape: at.shape, values, columns: None })
    }
}

impl Values {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element as a number; a word is NaN.
    pub fn float(&self, at: usize) -> f64 {
        match self {
            Self::Int(values) => values[at] as f64,
            Self::Float(values) => values[at],
            Self::Text(_) => f64::NAN,
        }
    }

    /// An element as a word; a missing one is empty.
    pub(crate) fn text(&self, at: usize) -> String {
        match self {
            Self::Int(values) => values[at].to_string(),
            Self::Float(values) if values[at].is_nan() => String::new(),
            Self::Float(values) => values[at].to_string(),
            Self::Text(values) => values[at].clone(),
        }
    }

    fn in_c_order(self, shape: &[usize]) -> Self {
        match self {
            Self::Int(values) => Self::Int(c_order(&values, shape)),
            Self::Float(values) => Self::Float(c_order(&values, shape)),
            Self::Text(values) => Self::Text(c_order(&values, shape)),
        }
    }
}

/// From the first index moving fastest to the last one moving fastest.
fn c_order<T: Clone>(fortran: &[T], shape: &[usize]) -> Vec<T> {
    let element = |position: usize| {
        let (mut rest, mut stride, mut at) = (position, fortran.len(), 0);
        for dim in shape.iter().rev() {
            stride /= dim;
            at += rest % dim * stride;
            rest /= dim;
        }
        fortran[at].clone()
    };
    (0..fortran.len()).map(element).collect()
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    Npz,
    Safetensors,
    Parquet,
    Idx,
    Table { delimiter: u8 },
    Lines,
}

impl Format {
    /// By the name's ending, or by the first bytes where the ending is unknown.
    pub(crate) fn of(path: &Path) -> Result<Self, DataError> {
        match Ending::of(path) {
            Some(Ending::Npy) => return Ok(Self::Npy),
            Some(Ending::Npz) => return Ok(Self::Npz),
            Some(Ending::Safetensors) => return Ok(Self::Safetensors),
            Some(Ending::Parquet) => return Ok(Self::Parquet),
            Some(Ending::Csv) => return Ok(Self::Table { delimiter: b',' }),
            Some(Ending::Tsv) => return Ok(Self::Table { delimiter: b'\t' }),
            Some(Ending::Lines) => return Ok(Self::Lines),
            Some(Ending::Idx) => return Ok(Self::Idx),
            _ => {}
        }
        let start = FileBytes::open(path)?.head(4)?;
        if let Some(how) = ending::conversion(path) {
            return Err(DataError::invalid(path, how));
        }
        match start[..] {
            [0x93, b'N', b'U', b'M', ..] => Ok(Self::Npy),
            [b'P', b'A', b'R', b'1', ..] => Ok(Self::Parquet),
            [0x1f, 0x8b, ..] | [0, 0, 8..=14, 1..=8, ..] => Ok(Self::Idx),
            _ => Err(DataError::invalid(
                path,
                "has an unknown format; known are .npy, .npz, .csv, .tsv, .txt, .safetensors, \
                 .parquet and IDX",
            )),
        }
    }
}

/// `file#name` as file and name; a `#` in the name of a file that exists belongs to it.
pub(crate) fn split_spec(spec: &str) -> (PathBuf, Option<&str>) {
    match spec.rsplit_once('#') {
        Some((file, name)) if !file.is_empty() && !Path::new(spec).exists() => {
            (PathBuf::from(file), Some(name))
        }
        _ => (PathBuf::from(spec), None),
    }
}

/// The first few of some names, for messages.
pub(crate) fn listed(names: &[String], separator: &str) -> String {
    const MOST: usize = 10;
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(separator);
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// For files that hold one array.
pub(crate) fn refuse_name(path: &Path, name: Option<&str>) -> Result<(), DataError> {
    let Some(name) = name else { return Ok(()) };
    // If the file does not exist, that is the better message.
    open_file(path)?;
    let message = format!("holds one array, so #{name} names nothing; leave it out");
    Err(DataError::invalid(path, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_order_is_turned_into_c_order() {
        // numpy.arange(12).reshape(2, 3, 2).ravel(order="F")
        let fortran = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
        assert_eq!(c_order(&fortran, &[2, 3, 2]), (0..12).collect::<Vec<_>>());
        assert_eq!(c_order(&[7], &[]), [7]);
    }

    #[test]
    fn a_name_follows_the_last_hash_unless_the_file_has_it() {
        assert_eq!(split_spec("x.npy"), (PathBuf::from("x.npy"), None));
        assert_eq!(split_spec("a#b.csv#y"), (PathBuf::from("a#b.csv"), Some("y")));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("set#1.csv");
        std::fs::write(&file, "1\n").unwrap();
        assert_eq!(split_spec(file.to_str().unwrap()), (file.clone(), None));
    }
}
