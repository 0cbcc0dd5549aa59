//! JSON files of workflows.

use std::path::Path;

use aleator_run::write_file;
use serde::Serialize;

use crate::workflow::error::Error;

/// Writes a record as a JSON file that appears complete or not at all.
pub(crate) fn write_json(path: &Path, record: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(record).map_err(|e| Error::io(path)(e.into()))? + "\n";
    Ok(write_file(path, text.as_bytes())?)
}
