//! Ids and class names in a file of embeddings that `aleator embed` made.

use std::path::Path;

use safetensors::tensor::{Dtype, Metadata};

use super::Opened;
use super::file_bytes::FileBytes;
use crate::array::columns::ParquetTable;
use crate::array::{split_spec, tensors};
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
    let file = FileBytes::open(&path)?;
    let (start, header) = tensors::metadata(&path, &file)?;
    let metadata = |name: &str| header.metadata().as_ref().and_then(|all| all.get(name));
    if metadata("format").is_none_or(|format| format != FORMAT) {
        return Ok(opened);
    }
    opened.class_names =
        metadata("class_names").map(|names| class_names(&path, names)).transpose()?;
    opened.ids = read_ids(&path, &file, (start, &header), opened.inputs.len())?;
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
            let (_, header) = tensors::metadata(&path, &FileBytes::open(&path)?)?;
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

/// Where the file has them: `ids` is the text of all ids, `id_offsets` where each begins and the
/// last ends.
fn read_ids(
    path: &Path,
    file: &FileBytes,
    (start, header): (usize, &Metadata),
    rows: usize,
) -> Result<Option<Vec<String>>, DataError> {
    let (Some(offsets), Some(ids)) = (header.info("id_offsets"), header.info("ids")) else {
        return Ok(None);
    };
    let damaged = || {
        let message =
            "its tensors id_offsets and ids do not give an id for each row; make it again";
        DataError::invalid(path, message)
    };
    if (offsets.dtype, ids.dtype) != (Dtype::I64, Dtype::U8) || offsets.shape != [rows + 1] {
        return Err(damaged());
    }
    let content = |(from, to): (usize, usize)| file.bytes(start + from..start + to);
    let (offsets, ids) = (content(offsets.data_offsets)?, content(ids.data_offsets)?);
    let offset = |bytes: &[u8; 8]| usize::try_from(i64::from_le_bytes(*bytes)).ok();
    let id = |pair: &[[u8; 8]]| {
        let bytes = ids.get(offset(&pair[0])?..offset(&pair[1])?)?;
        String::from_utf8(bytes.to_vec()).ok()
    };
    let ids = offsets.as_chunks().0.windows(2).map(|pair| id(pair).ok_or_else(damaged));
    ids.collect::<Result<_, _>>().map(Some)
}
