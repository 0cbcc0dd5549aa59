//! What a model says of every example of a split, as a file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensorError, View};
use safetensors::{SafeTensors, serialize_to_file};
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::RunError;

/// The probabilities of N examples and the Normal on the utilities that they come from.
///
/// Row n is the n-th example of the split in `examples.csv`. What a noise model does not have,
/// or what is too large to keep, is `None`: the covariance of example n is
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
/// };
/// predictions.save(&path)?;
/// assert_eq!(Predictions::load(&path)?, predictions);
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// K.
    pub classes: usize,
    /// R; 0 where the noise has no factors, or where no loadings are kept.
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
}

/// What the file says of itself beside the tensors.
#[derive(Serialize, Deserialize)]
struct Metadata {
    classes: usize,
    rank: usize,
    temperature: f32,
}

/// The one entry of the file's metadata: with several their order, and so the file's bytes,
/// would change from run to run.
const METADATA: &str = "aleator";

impl Predictions {
    /// N.
    pub fn examples(&self) -> usize {
        self.log_probs.len().checked_div(self.classes).unwrap_or(0)
    }

    /// Writes a safetensors file, complete or not at all.
    pub fn save(&self, path: &Path) -> Result<(), RunError> {
        self.check().map_err(|message| RunError::damaged(path, message))?;
        let Self { classes, rank, temperature, .. } = *self;
        let metadata = serde_json::to_string(&Metadata { classes, rank, temperature })
            .map_err(|error| RunError::damaged(path, error.to_string()))?;
        let metadata = HashMap::from([(METADATA.to_string(), metadata)]);
        atomic::write_file_by(path, |temporary| {
            serialize_to_file(self.tensors(), Some(metadata), temporary).map_err(
                |error| match error {
                    SafeTensorError::IoError(source) => RunError::io("write", path)(source),
                    other => RunError::damaged(path, other.to_string()),
                },
            )
        })
    }

    /// Reads a file that [`save`](Self::save) wrote.
    pub fn load(path: &Path) -> Result<Self, RunError> {
        let bytes = std::fs::read(path).map_err(RunError::io("read", path))?;
        Self::from_bytes(&bytes).map_err(|message| RunError::damaged(path, message))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let broken = |error| format!("not a complete safetensors file: {error}");
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let metadata = header.metadata().as_ref().and_then(|metadata| metadata.get(METADATA));
        let metadata = metadata.ok_or_else(|| {
            format!("no entry {METADATA:?} in the metadata: not a file of predictions")
        })?;
        let metadata: Metadata = serde_json::from_str(metadata)
            .map_err(|error| format!("the metadata's entry {METADATA:?}: {error}"))?;
        let required = |name: &str| {
            read_tensor(&file, name)?.ok_or_else(|| format!("tensor {name:?} is missing"))
        };
        let optional = |name: &str| read_tensor(&file, name);
        let predictions = Self {
            classes: metadata.classes,
            rank: metadata.rank,
            temperature: metadata.temperature,
            log_probs: required("log_probs")?,
            log_probs_off: optional("log_probs_off")?,
            mean: required("mean")?,
            diag_scale: optional("diag_scale")?,
            loadings: optional("loadings")?,
            loading_scale: optional("loading_scale")?,
            shared_loadings: optional("shared_loadings")?,
        };
        predictions.check()?;
        for (name, tensor) in predictions.tensors() {
            let found = file.tensor(name).map_err(|error| error.to_string())?;
            if found.shape() != tensor.shape {
                return Err(format!(
                    "tensor {name:?} must be {:?}, found {:?}",
                    tensor.shape,
                    found.shape()
                ));
            }
        }
        Ok(predictions)
    }

    /// The tensors of the file, in the order of their names.
    fn tensors(&self) -> Vec<(&'static str, Tensor<'_>)> {
        let (n, k, r) = (self.examples(), self.classes, self.rank);
        let per_class = vec![n, k];
        let all = [
            ("diag_scale", self.diag_scale.as_deref(), per_class.clone()),
            ("loading_scale", self.loading_scale.as_deref(), per_class.clone()),
            ("loadings", self.loadings.as_deref(), vec![n, k, r]),
            ("log_probs", Some(&self.log_probs[..]), per_class.clone()),
            ("log_probs_off", self.log_probs_off.as_deref(), per_class.clone()),
            ("mean", Some(&self.mean[..]), per_class),
            ("shared_loadings", self.shared_loadings.as_deref(), vec![k, r]),
        ];
        let there = |(name, values, shape): (_, Option<_>, _)| {
            values.map(|values| (name, Tensor { values, shape }))
        };
        all.into_iter().filter_map(there).collect()
    }

    /// Whether the fields agree with each other and hold numbers.
    fn check(&self) -> Result<(), String> {
        if self.classes == 0 {
            return Err("classes must be at least 1".to_string());
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return Err(format!(
                "temperature must be a finite number above 0, found {}",
                self.temperature
            ));
        }
        let found = self.log_probs.len();
        if !found.is_multiple_of(self.classes) {
            let classes = self.classes;
            return Err(format!(
                "tensor \"log_probs\" must be [N, {classes}], found {found} numbers"
            ));
        }
        if self.loading_scale.is_some() != self.shared_loadings.is_some() {
            return Err("loading_scale and shared_loadings come together".to_string());
        }
        for (name, tensor) in self.tensors() {
            let size = tensor.shape.iter().try_fold(1_usize, |size, &side| size.checked_mul(side));
            if size != Some(tensor.values.len()) {
                return Err(format!(
                    "tensor {name:?} must be {:?}, found {} numbers",
                    tensor.shape,
                    tensor.values.len()
                ));
            }
            if let Some(at) = tensor.values.iter().position(|value| value.is_nan()) {
                return Err(format!("tensor {name:?}: number {at} is not a number (NaN)"));
            }
        }
        Ok(())
    }
}

fn read_tensor(file: &SafeTensors, name: &str) -> Result<Option<Vec<f32>>, String> {
    let tensor = match file.tensor(name) {
        Ok(tensor) => tensor,
        Err(SafeTensorError::TensorNotFound(_)) => return Ok(None),
        Err(error) => return Err(format!("tensor {name:?}: {error}")),
    };
    if tensor.dtype() != Dtype::F32 {
        return Err(format!("tensor {name:?} must hold F32, found {:?}", tensor.dtype()));
    }
    let (numbers, _) = tensor.data().as_chunks::<4>();
    Ok(Some(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
}

struct Tensor<'a> {
    values: &'a [f32],
    shape: Vec<usize>,
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}
