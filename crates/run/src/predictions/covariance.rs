//! The covariances of a split, added up while it was evaluated, as a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata as Header};
use serde::{Deserialize, Serialize};

use super::file::{open_header, read_entry, read_numbers};
use super::writer::{Number, TensorWriter};
use crate::error::RunError;

/// What the metadata of a [`CovarianceFile`] say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CovarianceInfo {
    /// N.
    pub examples: usize,
    /// K.
    pub classes: usize,
    /// R; 0 if no two classes share noise.
    pub rank: usize,
    /// τ.
    pub temperature: f32,
    /// Whether the numbers of pairs are of C V (C V)ᵀ, with C = I − 11ᵀ/K.
    pub centred: bool,
    /// Whether there are flips: there are none of labels that are on or off by themselves.
    pub flips: bool,
    /// Whether there are the covariances of single examples.
    pub ties: bool,
}

/// Sums over the examples of a split.
#[derive(Clone, Copy, Debug)]
pub struct CovarianceSums<'a> {
    /// Of each class the sums of d², of ‖V_k‖² and of its row of V Vᵀ, `[K]`.
    pub moments: &'a [[f64; 3]],
    /// The sum of all numbers of V Vᵀ.
    pub total: f64,
    /// How many examples have their largest mean in each class, and the sums of P(u_k > u_top) of
    /// these, `[K, K]`.
    pub flips: Option<(&'a [usize], &'a [f64])>,
}

/// One class of each of some examples with all classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieRows {
    /// The class of the largest probability, `[n]`.
    pub classes: Vec<u32>,
    /// Its Σ(x) with each class, `[n, K]`.
    pub covariance: Vec<f32>,
    /// Its C Σ(x) C / τ², `[n, K]`.
    pub centred: Vec<f32>,
    /// Its correlations, `[n, K]`; NaN where a variance is only rounding.
    pub correlation: Vec<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tensor {
    Moments,
    Total,
    Pairs,
    Leading,
    Flips,
    TiedClass,
    Covariance,
    Centred,
    Correlation,
}

impl Tensor {
    /// In the order of the file: the widest numbers first.
    const ALL: [Self; 9] = [
        Self::Moments,
        Self::Total,
        Self::Pairs,
        Self::Leading,
        Self::Flips,
        Self::TiedClass,
        Self::Covariance,
        Self::Centred,
        Self::Correlation,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Moments => "moments",
            Self::Total => "total",
            Self::Pairs => "pairs",
            Self::Leading => "leading",
            Self::Flips => "flips",
            Self::TiedClass => "tied_class",
            Self::Covariance => "covariance",
            Self::Centred => "centred_covariance",
            Self::Correlation => "correlation",
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            Self::Moments | Self::Total | Self::Pairs | Self::Leading | Self::Flips => Dtype::F64,
            Self::TiedClass => Dtype::I32,
            Self::Covariance | Self::Centred | Self::Correlation => Dtype::F32,
        }
    }

    /// `None` if the file does not have it.
    fn shape(self, info: CovarianceInfo) -> Option<Vec<usize>> {
        let CovarianceInfo { examples, classes, flips, ties, .. } = info;
        match self {
            Self::Moments => Some(vec![classes, 3]),
            Self::Total => Some(vec![1]),
            Self::Pairs => Some(vec![pairs_before(classes, classes)]),
            Self::Leading => flips.then(|| vec![classes]),
            Self::Flips => flips.then(|| vec![classes, classes]),
            Self::TiedClass => ties.then(|| vec![examples]),
            _ => ties.then(|| vec![examples, classes]),
        }
    }
}

/// How many numbers of the triangle stand before those of a row.
fn pairs_before(row: usize, classes: usize) -> usize {
    row * classes - row * row.saturating_sub(1) / 2
}

impl CovarianceInfo {
    fn check(self) -> Result<(), String> {
        if self.classes == 0 || self.classes > LARGEST {
            return Err(format!("classes must be 1 to {LARGEST}, found {}", self.classes));
        }
        if self.examples == 0 || self.examples.checked_mul(self.classes).is_none() {
            return Err(format!("examples must be at least 1, found {}", self.examples));
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            let found = self.temperature;
            return Err(format!("temperature must be a finite number above 0, found {found}"));
        }
        Ok(())
    }
}

/// More classes have more pairs than any memory.
const LARGEST: usize = 1 << 24;

/// Writes a [`CovarianceFile`] piece by piece; it appears when it is complete.
#[derive(Debug)]
pub struct CovarianceWriter {
    file: TensorWriter,
    info: CovarianceInfo,
    tensors: Vec<Tensor>,
}

impl CovarianceWriter {
    /// An empty file of these sizes.
    ///
    /// # Panics
    /// When there are no such sizes.
    pub fn create(path: &Path, info: CovarianceInfo) -> Result<Self, RunError> {
        info.check().expect("the sizes of a split");
        let mut file = TensorWriter::create(path)?;
        let has = |tensor: &Tensor| tensor.shape(info).is_some();
        let tensors: Vec<Tensor> = Tensor::ALL.into_iter().filter(has).collect();
        let described = tensors
            .iter()
            .filter_map(|tensor| Some((tensor.name(), tensor.dtype(), tensor.shape(info)?)));
        file.begin(&info, described.collect())?;
        Ok(Self { file, info, tensors })
    }

    /// What it holds.
    pub fn info(&self) -> CovarianceInfo {
        self.info
    }

    fn write<T: Number>(
        &mut self,
        tensor: Tensor,
        first: usize,
        values: &[T],
    ) -> Result<(), RunError> {
        let at = self.tensors.iter().position(|it| *it == tensor);
        self.file.write(at.expect("a tensor of this file"), first, values)
    }

    /// The ties of examples, from row `first` on.
    ///
    /// # Panics
    /// When the file holds none.
    pub fn write_ties(&mut self, first: usize, ties: &TieRows) -> Result<(), RunError> {
        let classes: Vec<i32> = ties.classes.iter().map(|class| *class as i32).collect();
        self.write(Tensor::TiedClass, first, &classes)?;
        self.write(Tensor::Covariance, first, &ties.covariance)?;
        self.write(Tensor::Centred, first, &ties.centred)?;
        self.write(Tensor::Correlation, first, &ties.correlation)
    }

    /// The numbers of mean V Vᵀ of one row, from its own class on.
    pub fn write_pairs(&mut self, row: usize, values: &[f64]) -> Result<(), RunError> {
        self.write(Tensor::Pairs, pairs_before(row, self.info.classes), values)
    }

    /// Adds the sums and brings the file to its place.
    ///
    /// # Panics
    /// When the file holds flips and there are none.
    pub fn commit(mut self, sums: CovarianceSums<'_>) -> Result<(), RunError> {
        self.write(Tensor::Moments, 0, sums.moments.as_flattened())?;
        self.write(Tensor::Total, 0, &[sums.total])?;
        if let Some((leading, flips)) = sums.flips {
            let leading: Vec<f64> = leading.iter().map(|count| *count as f64).collect();
            self.write(Tensor::Leading, 0, &leading)?;
            for (from, row) in flips.chunks(self.info.classes).enumerate() {
                self.write(Tensor::Flips, from, row)?;
            }
        }
        self.file.commit()
    }
}

/// The covariances of a split whose loadings were not kept: sums over its examples, and with
/// complete predictions the covariances of each example's predicted class.
///
/// Sizes are checked when the file is opened, numbers as they are read.
#[derive(Debug)]
pub struct CovarianceFile {
    path: PathBuf,
    file: File,
    info: CovarianceInfo,
    /// Where each of the tensors begins; `None` if it is missing.
    starts: [Option<u64>; Tensor::ALL.len()],
}

impl CovarianceFile {
    /// Opens a file, and checks all but its numbers.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let damaged = |message| RunError::damaged(path, message);
        let (file, start, header) = open_header(path)?;
        let info: CovarianceInfo = read_entry(&header, "covariances").map_err(damaged)?;
        info.check().map_err(damaged)?;
        for tensor in Tensor::ALL {
            check_tensor(tensor, info, &header).map_err(damaged)?;
        }
        let place = |it: Tensor| Some(start + header.info(it.name())?.data_offsets.0 as u64);
        Ok(Self { path: path.to_path_buf(), file, info, starts: Tensor::ALL.map(place) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    pub fn info(&self) -> CovarianceInfo {
        self.info
    }

    /// Of each class the sums of d², of ‖V_k‖² and of its row of V Vᵀ, `[K]`; and the sum of all
    /// numbers of V Vᵀ.
    pub fn moments(&mut self) -> Result<(Vec<[f64; 3]>, f64), RunError> {
        let moments = self.wide(Tensor::Moments, 0, 3 * self.info.classes)?;
        let total = self.wide(Tensor::Total, 0, 1)?[0];
        Ok((moments.as_chunks().0.to_vec(), total))
    }

    /// The numbers of mean V Vᵀ of some rows, each from its own class on, one row after the other.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn pairs(&mut self, rows: Range<usize>) -> Result<Vec<f64>, RunError> {
        let classes = self.info.classes;
        assert!(rows.start <= rows.end && rows.end <= classes, "rows {rows:?} of {classes}");
        let [first, end] = [rows.start, rows.end].map(|row| pairs_before(row, classes));
        self.wide(Tensor::Pairs, first, end - first)
    }

    /// How many examples have their largest mean in class `from`, and the sums of P(u_k > u_from)
    /// of these, `[K]`; `None` if the file has no flips.
    pub fn flips(&mut self, from: usize) -> Result<Option<(f64, Vec<f64>)>, RunError> {
        if !self.info.flips {
            return Ok(None);
        }
        let classes = self.info.classes;
        let examples = self.wide(Tensor::Leading, from, 1)?[0];
        Ok(Some((examples, self.wide(Tensor::Flips, from * classes, classes)?)))
    }

    /// The ties of some examples, where the file has them.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn ties(&mut self, rows: Range<usize>) -> Result<Option<TieRows>, RunError> {
        let CovarianceInfo { examples, classes, ties, .. } = self.info;
        assert!(rows.start <= rows.end && rows.end <= examples, "rows {rows:?} of {examples}");
        if !ties {
            return Ok(None);
        }
        let (first, count) = (rows.start * classes, rows.len() * classes);
        let found = self.read(Tensor::TiedClass, rows.start, rows.len(), i32::from_le_bytes)?;
        let class = |class: &i32| u32::try_from(*class).ok().filter(|it| (*it as usize) < classes);
        let known: Option<Vec<u32>> = found.iter().map(class).collect();
        let known = known.ok_or_else(|| {
            let message = format!("tensor \"tied_class\" must hold classes below {classes}");
            RunError::damaged(&self.path, message)
        })?;
        let mut narrow = |tensor| self.read(tensor, first, count, f32::from_le_bytes);
        let ties = TieRows {
            classes: known,
            covariance: narrow(Tensor::Covariance)?,
            centred: narrow(Tensor::Centred)?,
            correlation: narrow(Tensor::Correlation)?,
        };
        for (tensor, values) in
            [(Tensor::Covariance, &ties.covariance), (Tensor::Centred, &ties.centred)]
        {
            self.check_finite(tensor, first, values.iter().map(|value| f64::from(*value)))?;
        }
        Ok(Some(ties))
    }

    fn wide(&mut self, tensor: Tensor, first: usize, count: usize) -> Result<Vec<f64>, RunError> {
        let values = self.read(tensor, first, count, f64::from_le_bytes)?;
        self.check_finite(tensor, first, values.iter().copied())?;
        Ok(values)
    }

    fn read<const WIDTH: usize, T>(
        &mut self,
        tensor: Tensor,
        first: usize,
        count: usize,
        number: fn([u8; WIDTH]) -> T,
    ) -> Result<Vec<T>, RunError> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, tensor.name());
        let read = match self.starts[tensor as usize] {
            Some(start) => {
                read_numbers(&mut self.file, start + (first * WIDTH) as u64, count, number)
            }
            None => Err(missing()),
        };
        read.map_err(RunError::io("read", &self.path))
    }

    fn check_finite(
        &self,
        tensor: Tensor,
        first: usize,
        mut values: impl Iterator<Item = f64>,
    ) -> Result<(), RunError> {
        match values.position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(at) => {
                let name = tensor.name();
                let message = format!("tensor {name:?}: number {} is not finite", first + at);
                Err(RunError::damaged(&self.path, message))
            }
        }
    }
}

/// A tensor must be there with its type and shape, or not at all, as the metadata say.
fn check_tensor(tensor: Tensor, info: CovarianceInfo, header: &Header) -> Result<(), String> {
    let name = tensor.name();
    let (shape, found) = match (tensor.shape(info), header.info(name)) {
        (None, None) => return Ok(()),
        (None, Some(_)) => return Err(format!("tensor {name:?} is not expected")),
        (Some(_), None) => return Err(format!("tensor {name:?} is missing")),
        (Some(shape), Some(found)) => (shape, found),
    };
    if found.dtype != tensor.dtype() {
        let expected = tensor.dtype();
        return Err(format!("tensor {name:?} must hold {expected:?}, found {:?}", found.dtype));
    }
    if found.shape != shape {
        return Err(format!("tensor {name:?} must be {shape:?}, found {:?}", found.shape));
    }
    Ok(())
}
