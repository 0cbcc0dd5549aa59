//! Named arrays in one file: those of `.safetensors`, and the choice among them.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Metadata, SafeTensorError, TensorInfo};
use serde::Deserialize;

use super::element::{Element, Located};
use super::listed;
use crate::error::DataError;
use crate::inputs::file_bytes::FileBytes;

/// Readers of the format refuse longer headers.
const LONGEST_HEADER: usize = 100_000_000;

/// The bytes that hold the header's length.
const LENGTH: usize = 8;

/// A named array of a file.
pub(crate) struct Tensor {
    pub name: String,
    /// Where it lies, or why it cannot be read.
    pub at: Result<Located, String>,
    /// As `name: F32 [3, 4]`, for messages.
    pub label: String,
}

/// Every tensor of a file, by name.
pub(crate) fn list(path: &Path, file: &FileBytes) -> Result<Vec<Tensor>, DataError> {
    let (start, metadata) = metadata(path, file)?;
    let tensor = |(name, info): (String, &TensorInfo)| {
        let (from, to) = info.data_offsets;
        let label = format!("{name}: {:?} {:?}", info.dtype, info.shape);
        let element = Element::of_tensor(info.dtype)
            .ok_or_else(|| format!("{label} is of a type that cannot be read"));
        let at = element.map(|element| Located {
            shape: info.shape.clone(),
            element,
            big_endian: false,
            fortran: false,
            bytes: start + from..start + to,
        });
        Tensor { name, at, label }
    };
    let mut tensors: Vec<Tensor> = metadata.tensors().into_iter().map(tensor).collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

/// Where the tensors of a file start, and its header, checked against the file's length.
pub(crate) fn metadata(path: &Path, file: &FileBytes) -> Result<(usize, Metadata), DataError> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(rename = "__metadata__")]
        metadata: Option<HashMap<String, String>>,
        #[serde(flatten)]
        tensors: HashMap<String, TensorInfo>,
    }
    let refuse = |error: SafeTensorError| {
        let what = explain(&error);
        DataError::invalid(path, format!("is not a whole .safetensors file: {what}"))
    };
    let length = file.head(LENGTH)?;
    let length = length.try_into().map_err(|_| refuse(SafeTensorError::HeaderTooSmall))?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST_HEADER.min(file.len() - LENGTH) {
        return Err(refuse(SafeTensorError::HeaderTooLarge));
    }
    let start = LENGTH + length;
    let header: Header = serde_json::from_slice(&file.bytes(LENGTH..start)?)
        .map_err(|error| refuse(SafeTensorError::InvalidHeaderDeserialization(error)))?;
    let mut tensors: Vec<(String, TensorInfo)> = header.tensors.into_iter().collect();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let metadata = Metadata::new(header.metadata, tensors).map_err(refuse)?;
    if metadata.data_len() != file.len() - start {
        return Err(refuse(SafeTensorError::MetadataIncompleteBuffer));
    }
    Ok((start, metadata))
}

/// The array that is named, or else the only one that suits.
pub(crate) fn choose(
    path: &Path,
    tensors: Vec<Tensor>,
    name: Option<&str>,
    wanted: &str,
    suits: impl Fn(&Located) -> bool,
) -> Result<(String, Located), DataError> {
    let labels: Vec<String> = tensors.iter().map(|tensor| tensor.label.clone()).collect();
    let seen = if labels.is_empty() { "nothing".into() } else { listed(&labels, "; ") };
    let invalid = |message: String| Err(DataError::invalid(path, message));
    if let Some(name) = name {
        let Some(tensor) = tensors.into_iter().find(|tensor| tensor.name == name) else {
            return invalid(format!("has nothing called {name:?}; it has {seen}"));
        };
        let at = tensor.at.map_err(|why| DataError::invalid(path, why))?;
        return Ok((tensor.name, at));
    }
    let suitable = |tensor: Tensor| tensor.at.ok().filter(&suits).map(|at| (tensor.name, at));
    let mut suitable: Vec<(String, Located)> = tensors.into_iter().filter_map(suitable).collect();
    match (suitable.pop(), suitable.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => invalid(format!("has no {wanted}; it has {seen}")),
        (Some(_), false) => {
            let file = path.display();
            invalid(format!("has more than one {wanted}: {seen}; choose with {file}#name"))
        }
    }
}

/// The matrix that is named, or else the only one of floats, or else the only one of numbers.
pub(crate) fn choose_matrix(
    path: &Path,
    tensors: Vec<Tensor>,
    name: Option<&str>,
) -> Result<(String, Located), DataError> {
    let is_matrix = |at: &Located| at.shape.len() == 2 && at.element.is_number();
    let is_floats = |at: &Located| is_matrix(at) && at.element.is_float();
    if tensors.iter().any(|tensor| tensor.at.as_ref().is_ok_and(is_floats)) {
        return choose(path, tensors, name, "matrix of floats", is_floats);
    }
    choose(path, tensors, name, "matrix of numbers [examples, numbers]", is_matrix)
}

fn explain(error: &SafeTensorError) -> String {
    match error {
        SafeTensorError::HeaderTooSmall => "it ends before its header does".into(),
        SafeTensorError::HeaderTooLarge | SafeTensorError::InvalidHeaderLength => {
            "its first eight bytes, the header's length, exceed the file".into()
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            "the tensors of its header do not fill the file; it is cut short or too long".into()
        }
        SafeTensorError::InvalidOffset(name) => {
            format!("the offsets of tensor {name:?} lie outside the file or overlap another")
        }
        SafeTensorError::TensorInvalidInfo => {
            "a tensor's offsets do not fit its shape and type".into()
        }
        other => other.to_string(),
    }
}
