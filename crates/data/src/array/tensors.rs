//! `.safetensors`: named tensors in one file.

use std::path::Path;

use safetensors::tensor::{SafeTensorError, SafeTensors};

use super::element::{Element, Located};
use crate::error::DataError;

/// A tensor of a file.
pub(crate) struct Tensor {
    pub name: String,
    /// `None` where the type cannot be read.
    pub at: Option<Located>,
    /// As `name: F32 [3, 4]`, for messages.
    pub label: String,
}

/// Every tensor of a file, by name.
pub(crate) fn list(path: &Path, file: &[u8]) -> Result<Vec<Tensor>, DataError> {
    let (header, metadata) = SafeTensors::read_metadata(file).map_err(|error| {
        let what = explain(&error);
        DataError::invalid(path, format!("is not a whole .safetensors file: {what}"))
    })?;
    // The header's length itself takes eight bytes.
    let start = header + 8;
    let tensor = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
        let (from, to) = info.data_offsets;
        let at = Element::of_tensor(info.dtype).map(|element| Located {
            shape: info.shape.clone(),
            element,
            big_endian: false,
            fortran: false,
            bytes: start + from..start + to,
        });
        let label = format!("{name}: {:?} {:?}", info.dtype, info.shape);
        Tensor { name, at, label }
    };
    let mut tensors: Vec<Tensor> = metadata.tensors().into_iter().map(tensor).collect();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

/// The tensor that is named, or else the only one that suits.
pub(crate) fn choose(
    path: &Path,
    tensors: Vec<Tensor>,
    name: Option<&str>,
    wanted: &str,
    suits: impl Fn(&Located) -> bool,
) -> Result<Located, DataError> {
    let labels: Vec<&str> = tensors.iter().map(|tensor| tensor.label.as_str()).collect();
    let seen = if labels.is_empty() { "no tensor".into() } else { labels.join("; ") };
    let invalid = |message: String| Err(DataError::invalid(path, message));
    if let Some(name) = name {
        let Some(tensor) = tensors.into_iter().find(|tensor| tensor.name == name) else {
            return invalid(format!("has no tensor {name:?}; it has {seen}"));
        };
        return tensor.at.ok_or_else(|| {
            let message = format!("{} is of a type that cannot be read", tensor.label);
            DataError::invalid(path, message)
        });
    }
    let mut suitable: Vec<Located> =
        tensors.into_iter().filter_map(|tensor| tensor.at).filter(|at| suits(at)).collect();
    match (suitable.pop(), suitable.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => invalid(format!("has no {wanted}; it has {seen}")),
        (Some(_), false) => {
            let file = path.display();
            invalid(format!("has more than one {wanted}: {seen}; choose with {file}#name"))
        }
    }
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
