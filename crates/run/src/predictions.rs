//! The predictions of a model for the examples of a split, as a file.

mod covariance;
mod file;
mod top;
mod writer;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use covariance::{CovarianceFile, CovarianceInfo, CovarianceSums, CovarianceWriter, TieRows};
pub use file::{PredictionsFile, tensor_shapes};
pub use top::TopPredictionsWriter;
pub use writer::PredictionsWriter;

use crate::error::RunError;

/// The probabilities of N examples and the Normal on the utilities that they come from.
///
/// Row n is the n-th example of the split in `examples.csv`. Tensors that the noise model does not
/// have, or that are too large to store, are `None`. The covariance of example n is
/// diag(`diag_scale`²) + V Vᵀ with V its `loadings`, or diag(`loading_scale`) `shared_loadings`.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("test.safetensors");
/// use aleator_run::Predictions;
///
/// let predictions = Predictions {
///     classes: 2,
///     rank: 0,
///     temperature: 1.0,
///     log_probs: vec![-0.1, -2.3],
///     log_probs_off: None,
///     mean: vec![1.5, -0.7],
///     diag_scale: None,
///     loadings: None,
///     loading_scale: None,
///     shared_loadings: None,
///     joint_log_probs: None,
/// };
/// predictions.save(&path)?;
/// assert_eq!(Predictions::load(&path)?, predictions);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// K.
    pub classes: usize,
    /// R; 0 if the noise has no factors, or no loadings are stored.
    pub rank: usize,
    /// τ.
    pub temperature: f32,
    /// log p of each class (sigmoid: of being on), `[N, K]`.
    pub log_probs: Vec<f32>,
    /// Sigmoid only: log p of each class being off, `[N, K]`.
    pub log_probs_off: Option<Vec<f32>>,
    /// μ(x), `[N, K]`.
    pub mean: Vec<f32>,
    /// d(x), `[N, K]`: standard deviations.
    pub diag_scale: Option<Vec<f32>>,
    /// V(x), `[N, K, R]`.
    pub loadings: Option<Vec<f32>>,
    /// v(x), `[N, K]`.
    pub loading_scale: Option<Vec<f32>>,
    /// V, `[K, R]`.
    pub shared_loadings: Option<Vec<f32>>,
    /// Of a joint likelihood only: log P of all labels of the example together, `[N]`.
    pub joint_log_probs: Option<Vec<f32>>,
}

/// A tensor of a file of predictions, as described at the fields of [`Predictions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `diag_scale`.
    DiagScale,
    /// `joint_log_probs`.
    JointLogProbs,
    /// `loading_scale`.
    LoadingScale,
    /// `loadings`.
    Loadings,
    /// `log_probs`.
    LogProbs,
    /// `log_probs_off`.
    LogProbsOff,
    /// `mean`.
    Mean,
    /// `shared_loadings`.
    SharedLoadings,
}

impl Field {
    /// All tensors, in the order of their names.
    pub const ALL: [Self; 8] = [
        Self::DiagScale,
        Self::JointLogProbs,
        Self::LoadingScale,
        Self::Loadings,
        Self::LogProbs,
        Self::LogProbsOff,
        Self::Mean,
        Self::SharedLoadings,
    ];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::DiagScale => "diag_scale",
            Self::JointLogProbs => "joint_log_probs",
            Self::LoadingScale => "loading_scale",
            Self::Loadings => "loadings",
            Self::LogProbs => "log_probs",
            Self::LogProbsOff => "log_probs_off",
            Self::Mean => "mean",
            Self::SharedLoadings => "shared_loadings",
        }
    }

    /// Its shape for N examples.
    fn shape(self, examples: usize, metadata: Metadata) -> Vec<usize> {
        let Metadata { classes, rank, .. } = metadata;
        match self {
            Self::JointLogProbs => vec![examples],
            Self::Loadings => vec![examples, classes, rank],
            Self::SharedLoadings => vec![classes, rank],
            _ => vec![examples, classes],
        }
    }
}

/// The metadata of the file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Metadata {
    classes: usize,
    rank: usize,
    temperature: f32,
}

impl Metadata {
    fn check(self) -> Result<(), String> {
        if self.classes == 0 {
            return Err("classes must be at least 1".to_string());
        }
        if self.classes.checked_mul(self.rank).is_none() {
            let Self { classes, rank, .. } = self;
            return Err(format!("classes × rank must be a size, found {classes} × {rank}"));
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(format!(
                "temperature must be a finite number above 0, found {}",
                self.temperature
            ));
        }
        Ok(())
    }
}

/// The only entry of the file's metadata: with several, their order and so the bytes of the file
/// would vary.
const METADATA: &str = "aleator";

impl Predictions {
    /// N.
    pub fn examples(&self) -> usize {
        self.log_probs.len().checked_div(self.classes).unwrap_or(0)
    }

    /// Leaves out the loadings of the examples, which can be the largest part by far; those that
    /// all examples share stay.
    pub fn forget_loadings(&mut self) {
        if self.loadings.take().is_some() {
            self.rank = 0;
        }
    }

    /// Writes a safetensors file atomically; [`PredictionsWriter`] writes one in pieces.
    pub fn save(&self, path: &Path) -> Result<(), RunError> {
        let mut writer = PredictionsWriter::create(path, self.examples())?;
        writer.push(self)?;
        writer.commit()
    }

    /// Reads a file that [`save`](Self::save) wrote; [`PredictionsFile`] reads a part of one.
    pub fn load(path: &Path) -> Result<Self, RunError> {
        let mut file = PredictionsFile::open(path)?;
        file.rows(0..file.examples())
    }

    fn metadata(&self) -> Metadata {
        let Self { classes, rank, temperature, .. } = *self;
        Metadata { classes, rank, temperature }
    }

    fn values(&self, field: Field) -> Option<&[f32]> {
        match field {
            Field::DiagScale => self.diag_scale.as_deref(),
            Field::JointLogProbs => self.joint_log_probs.as_deref(),
            Field::LoadingScale => self.loading_scale.as_deref(),
            Field::Loadings => self.loadings.as_deref(),
            Field::LogProbs => Some(&self.log_probs),
            Field::LogProbsOff => self.log_probs_off.as_deref(),
            Field::Mean => Some(&self.mean),
            Field::SharedLoadings => self.shared_loadings.as_deref(),
        }
    }

    /// The tensors of the file, in the order of their names.
    fn tensors(&self) -> impl Iterator<Item = (Field, &[f32])> {
        Field::ALL.into_iter().filter_map(|field| Some((field, self.values(field)?)))
    }

    /// Checks that the fields agree with each other and hold no NaN; `first` is the row of the file
    /// that they begin with.
    fn check(&self, first: usize) -> Result<(), String> {
        self.metadata().check()?;
        let (found, classes) = (self.log_probs.len(), self.classes);
        if !found.is_multiple_of(classes) {
            return Err(format!(
                "tensor \"log_probs\" must be [N, {classes}], found {found} numbers"
            ));
        }
        check_pair(self.loading_scale.is_some(), self.shared_loadings.is_some())?;
        for (field, values) in self.tensors() {
            let shape = field.shape(self.examples(), self.metadata());
            let size = shape.iter().try_fold(1_usize, |size, &side| size.checked_mul(side));
            if size != Some(values.len()) {
                let (name, found) = (field.name(), values.len());
                return Err(format!("tensor {name:?} must be {shape:?}, found {found} numbers"));
            }
            let first = if field == Field::SharedLoadings { 0 } else { first };
            check_numbers(field, values, first, shape[1..].iter().product())?;
        }
        Ok(())
    }
}

fn check_pair(loading_scale: bool, shared_loadings: bool) -> Result<(), String> {
    if loading_scale == shared_loadings {
        Ok(())
    } else {
        Err("loading_scale and shared_loadings must both be present".to_string())
    }
}

/// Refuses NaN and names its row. `values` begin with row `first`; each row has `width` numbers.
fn check_numbers(field: Field, values: &[f32], first: usize, width: usize) -> Result<(), String> {
    match values.iter().position(|value| value.is_nan()) {
        None => Ok(()),
        Some(at) => {
            let (name, row) = (field.name(), first + at / width);
            Err(format!("tensor {name:?}: row {row}, number {} is not a number (NaN)", at % width))
        }
    }
}
