//! Named arrays of f32 in safetensors files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aleator_model::params::Values;
use aleator_run::RunError;
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use crate::error::TrainError;

/// A tensor with the name that it has in files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

impl Named {
    pub fn vector(name: &str, values: &[f32]) -> Self {
        let (name, shape) = (name.to_string(), vec![values.len()]);
        Self { name, shape, values: values.to_vec().into() }
    }
}

/// Arrays by name: shape and numbers.
pub(crate) type Arrays = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

pub(crate) fn write(path: &Path, tensors: &[Named]) -> Result<(), TrainError> {
    let fail = |reason: String| TrainError::Checkpoint { path: path.to_path_buf(), reason };
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let stored: Vec<Vec<u8>> = tensors.iter().map(|tensor| bytes(&tensor.values.read())).collect();
    let mut views = Vec::with_capacity(tensors.len());
    for (tensor, stored) in tensors.iter().zip(&stored) {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), stored)
            .map_err(|error| fail(error.to_string()))?;
        views.push((tensor.name.as_str(), view));
    }
    safetensors::serialize_to_file(views, None, path).map_err(|error| match error {
        SafeTensorError::IoError(source) => {
            RunError::Io { action: "write", path: path.to_path_buf(), source }.into()
        }
        other => fail(other.to_string()),
    })
}

pub(crate) fn read(path: &Path) -> Result<Arrays, TrainError> {
    let fail = |reason: String| TrainError::Checkpoint { path: path.to_path_buf(), reason };
    parse(path, &fs::read(path).map_err(|error| fail(error.to_string()))?)
}

/// The arrays of a file of this content.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Arrays, TrainError> {
    let fail = |reason: String| TrainError::Checkpoint { path: path.to_path_buf(), reason };
    let file = SafeTensors::deserialize(bytes).map_err(|error| fail(error.to_string()))?;
    let mut out = Arrays::new();
    for (name, view) in file.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(fail(format!("{name} is {:?}, not F32", view.dtype())));
        }
        let words = view.data().chunks_exact(4);
        let values = words.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        out.insert(name.to_string(), (view.shape().to_vec(), values));
    }
    Ok(out)
}

/// The numbers of an array, which must have this shape.
pub(crate) fn take(
    arrays: &mut Arrays,
    path: &Path,
    name: &str,
    shape: &[usize],
) -> Result<Vec<f32>, TrainError> {
    let fail = |reason: String| TrainError::Checkpoint { path: path.to_path_buf(), reason };
    match arrays.remove(name) {
        Some((found, values)) if found == shape => Ok(values),
        Some((found, _)) => Err(fail(format!("{name} has shape {found:?}, not {shape:?}"))),
        None => Err(fail(format!("{name} is missing"))),
    }
}
