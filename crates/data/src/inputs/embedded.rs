//! What a file of embeddings made by `aleator embed` says beside its features.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::mapped::Mapped;
use crate::array::split_spec;
use crate::error::DataError;

/// What such a file says in `format`.
const FORMAT: &str = "aleator-embeddings 1";

/// Ids and class names.
#[derive(Debug, Default)]
pub(crate) struct Embedded {
    pub ids: Option<Vec<String>>,
    pub class_names: Option<Vec<String>>,
}

/// Reads them from `file` or `file#name`; a file that is none of ours has none.
pub(crate) fn beside(spec: &str, rows: usize) -> Result<Embedded, DataError> {
    let (path, _) = split_spec(spec);
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("safetensors")) {
        return Ok(Embedded::default());
    }
    let file = Mapped::open(&path)?;
    let Ok((_, header)) = SafeTensors::read_metadata(file.bytes()) else {
        return Ok(Embedded::default());
    };
    let said = |name: &str| header.metadata().as_ref().and_then(|all| all.get(name));
    if said("format").is_none_or(|format| format != FORMAT) {
        return Ok(Embedded::default());
    }
    let class_names = said("class_names").map(|names| class_names(&path, names)).transpose()?;
    let tensors = SafeTensors::deserialize(file.bytes())
        .map_err(|error| DataError::invalid(&path, error.to_string()))?;
    let ids = match (tensors.tensor("id_offsets"), tensors.tensor("ids")) {
        (Ok(offsets), Ok(ids)) => Some(read_ids(&path, &offsets, &ids, rows)?),
        _ => None,
    };
    Ok(Embedded { ids, class_names })
}

fn class_names(path: &Path, names: &str) -> Result<Vec<String>, DataError> {
    serde_json::from_str(names).map_err(|error| {
        let message = format!("its metadata class_names is no JSON list of names ({error})");
        DataError::invalid(path, message)
    })
}

/// `ids` is the text of all ids, `offsets` where each begins and the last ends.
fn read_ids(
    path: &Path,
    offsets: &TensorView,
    ids: &TensorView,
    rows: usize,
) -> Result<Vec<String>, DataError> {
    let damaged = || {
        let message =
            "its tensors id_offsets and ids do not give an id for each row; make it again";
        DataError::invalid(path, message)
    };
    if (offsets.dtype(), ids.dtype()) != (Dtype::I64, Dtype::U8) || offsets.shape() != [rows + 1] {
        return Err(damaged());
    }
    let (offsets, _) = offsets.data().as_chunks::<8>();
    let offset = |bytes: &[u8; 8]| usize::try_from(i64::from_le_bytes(*bytes)).ok();
    let id = |pair: &[[u8; 8]]| {
        let bytes = ids.data().get(offset(&pair[0])?..offset(&pair[1])?)?;
        String::from_utf8(bytes.to_vec()).ok()
    };
    offsets.windows(2).map(|pair| id(pair).ok_or_else(damaged)).collect()
}
