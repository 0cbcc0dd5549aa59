//! Ids and class names in a file of embeddings that `aleator embed` made.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::Opened;
use super::mapped::Mapped;
use crate::array::columns::ParquetTable;
use crate::array::split_spec;
use crate::ending::Ending;
use crate::error::DataError;

/// The value of `format` in such a file.
pub const FORMAT: &str = "aleator-embeddings 1";

/// The tensor of class numbers in such a file.
const LABELS: &str = "labels";

/// Adds those of `file` or `file#name` to its inputs; other files have none.
pub(crate) fn complete(mut opened: Opened, spec: &str) -> Result<Opened, DataError> {
    let (path, _) = split_spec(spec);
    if Ending::of(&path) != Some(Ending::Safetensors) {
        return Ok(opened);
    }
    let file = Mapped::open(&path)?;
    let Ok((_, header)) = SafeTensors::read_metadata(file.bytes()) else { return Ok(opened) };
    let metadata = |name: &str| header.metadata().as_ref().and_then(|all| all.get(name));
    if metadata("format").is_none_or(|format| format != FORMAT) {
        return Ok(opened);
    }
    opened.class_names =
        metadata("class_names").map(|names| class_names(&path, names)).transpose()?;
    let tensors = SafeTensors::deserialize(file.bytes())
        .map_err(|error| DataError::invalid(&path, error.to_string()))?;
    if let (Ok(offsets), Ok(ids)) = (tensors.tensor("id_offsets"), tensors.tensor("ids")) {
        opened.ids = Some(read_ids(&path, &offsets, &ids, opened.inputs.len())?);
    }
    Ok(opened)
}

/// The names of the classes that the numbers in `file#name` are positions in, where the file has
/// them: embeddings of `aleator embed`, and Parquet files of the Hugging Face hub.
pub(crate) fn names_beside_labels(spec: &str) -> Result<Option<Vec<String>>, DataError> {
    let (path, name) = split_spec(spec);
    match (Ending::of(&path), name) {
        (Some(Ending::Parquet), _) => {
            let table = ParquetTable::open(&path)?;
            let columns = table.columns();
            let column = match name {
                Some(name) => columns.iter().find(|column| column.is_called(name)),
                None => columns.first().filter(|_| columns.len() == 1),
            };
            Ok(column.and_then(|column| table.class_names(column)))
        }
        (Some(Ending::Safetensors), Some(LABELS)) => {
            let file = Mapped::open(&path)?;
            let Ok((_, header)) = SafeTensors::read_metadata(file.bytes()) else { return Ok(None) };
            let Some(metadata) = header.metadata().as_ref() else { return Ok(None) };
            let is_ours = metadata.get("format").is_some_and(|format| format == FORMAT);
            let names = metadata.get("class_names").filter(|_| is_ours);
            names.map(|names| class_names(&path, names)).transpose()
        }
        _ => Ok(None),
    }
}

fn class_names(path: &Path, names: &str) -> Result<Vec<String>, DataError> {
    serde_json::from_str(names).map_err(|error| {
        let message = format!("its metadata class_names is not a JSON list of names ({error})");
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
