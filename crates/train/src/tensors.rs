//! Named arrays of f32 in safetensors files.

use std::path::Path;

use aleator_model::params::Values;
use aleator_run::{RunError, with_default_permissions};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use crate::error::TrainError;

/// A tensor with the name that it has in files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedTensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

impl NamedTensor {
    pub fn vector(name: &str, values: &[f32]) -> Self {
        let (name, shape) = (name.to_string(), vec![values.len()]);
        Self { name, shape, values: values.to_vec().into() }
    }

    /// All numbers 0.
    pub fn zeros(name: &str, shape: &[usize]) -> Self {
        let values = vec![0.0; shape.iter().product()].into();
        Self { name: name.to_string(), shape: shape.to_vec(), values }
    }
}

pub(crate) fn write(path: &Path, tensors: &[NamedTensor]) -> Result<(), TrainError> {
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let stored: Vec<Vec<u8>> = tensors.iter().map(|tensor| bytes(&tensor.values.read())).collect();
    let views = tensors.iter().zip(&stored).map(|(tensor, stored)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), stored)?;
        Ok((tensor.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>();
    let failed = |error: SafeTensorError| match error {
        SafeTensorError::IoError(source) => RunError::io("write", path)(source).into(),
        other => TrainError::checkpoint(path, other),
    };
    with_default_permissions(path, |path| {
        views.and_then(|views| safetensors::serialize_to_file(views, None, path)).map_err(failed)
    })
}

/// The tensors of these names and shapes, from a file of this content.
pub(crate) fn parse(
    path: &Path,
    bytes: &[u8],
    expected: impl IntoIterator<Item = NamedTensor>,
) -> Result<Vec<NamedTensor>, TrainError> {
    let fail = |reason: String| TrainError::checkpoint(path, reason);
    let file = SafeTensors::deserialize(bytes).map_err(|error| fail(error.to_string()))?;
    let read = |NamedTensor { name, shape, .. }: NamedTensor| {
        let view = file.tensor(&name).map_err(|_| fail(format!("{name} is missing")))?;
        let found = floats(&name, &view).map_err(fail)?;
        if found.shape != shape {
            return Err(fail(format!("{name} has shape {:?}, not {shape:?}", found.shape)));
        }
        Ok(found)
    };
    expected.into_iter().map(read).collect()
}

/// All tensors of a file of this content.
pub(crate) fn parse_all(path: &Path, bytes: &[u8]) -> Result<Vec<NamedTensor>, TrainError> {
    let fail = |reason: String| TrainError::checkpoint(path, reason);
    let file = SafeTensors::deserialize(bytes).map_err(|error| fail(error.to_string()))?;
    file.iter().map(|(name, view)| floats(name, &view).map_err(fail)).collect()
}

fn floats(name: &str, view: &TensorView<'_>) -> Result<NamedTensor, String> {
    if view.dtype() != Dtype::F32 {
        return Err(format!("{name} is {:?}, not F32", view.dtype()));
    }
    let (words, _) = view.data().as_chunks();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    Ok(NamedTensor { name: name.to_string(), shape: view.shape().to_vec(), values: values.into() })
}
