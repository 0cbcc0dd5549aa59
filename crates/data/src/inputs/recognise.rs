//! What a path holds, for those who have no recipe.

mod features;
mod images;
mod manifests;
mod packed;
mod units;

use std::path::Path;

use super::folder;
use crate::error::DataError;

/// Which presets suit the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Embeddings, one class an example.
    Features,
    /// Embeddings, each class on or off.
    Multilabel,
    /// Images, one class an example.
    Images,
}

/// What was seen at a path, and the recipe's keys that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// Which presets suit.
    pub preset_family: Family,
    /// (dotted recipe key, value), to be set in this order. An empty value removes what the
    /// preset says there.
    pub settings: Vec<(String, String)>,
    /// One or two sentences: what was seen and chosen.
    pub explanation: String,
}

/// Looks at a file or folder and says how to train on it.
///
/// It may be a file of embeddings with its labels beside it, a folder with such files, a folder
/// for each class, a folder with `train/` and `test/` of class folders, a manifest or the folder
/// that holds it, tar shards, Parquet files with an image column, or the files of CIFAR or MNIST. Where more than one reading is possible, the error lists what was seen and the keys to
/// set.
///
/// ```
/// use aleator_data::inputs::recognise::{Family, recognise};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// # let pixel = b"P6 1 1 255\n\0\0\0";
/// for class in ["cat", "dog"] {
///     std::fs::create_dir(folder.join(class))?;
///     std::fs::write(folder.join(class).join("1.ppm"), pixel)?;
/// }
/// let found = recognise(folder)?;
/// assert_eq!(found.preset_family, Family::Images);
/// assert_eq!(found.settings[0].0, "data.train.images");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn recognise(path: &Path) -> Result<Recognised, DataError> {
    let is_pattern = path.to_str().is_some_and(|text| text.contains(['{', '*']));
    if is_pattern && !path.exists() {
        return images::in_pattern(path);
    }
    let is_folder = std::fs::metadata(path).map_err(|error| DataError::io(path, error))?.is_dir();
    let images = if is_folder { images::in_folder(path)? } else { images::in_file(path)? };
    if let Some(found) = images {
        return Ok(found);
    }
    let features = if is_folder { features::in_folder(path)? } else { features::in_file(path)? };
    if let Some(found) = features {
        return Ok(found);
    }
    Err(unsure(path, "holds nothing to train on that could be recognised"))
}

/// The error that says what was seen and what to do.
fn unsure(path: &Path, why: &str) -> DataError {
    const MOST: usize = 12;
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let names = folder.and_then(|folder| folder::entries(folder).ok()).unwrap_or_default();
    let mut seen: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|entry| if entry.is_folder { format!("{}/", entry.name) } else { entry.name.clone() })
        .collect();
    if names.len() > MOST {
        seen.push(format!("and {} more", names.len() - MOST));
    }
    let seen = if seen.is_empty() { "nothing".to_string() } else { seen.join(", ") };
    let message = format!(
        "{why}; seen: {seen}. Say what is what: --set data.train.features=FILE --set \
         data.train.labels=FILE, or --set data.train.images=FOLDER with a folder for each class"
    );
    DataError::invalid(path, message)
}

/// A path as the value of a recipe's key.
fn value(path: &Path) -> Result<String, DataError> {
    let Some(text) = path.to_str() else {
        return Err(DataError::invalid(path, "is not UTF-8, which a recipe must be; rename it"));
    };
    // Values are read as TOML first: a folder called 2024 is no number.
    let is_path = text.starts_with(|c: char| c == '/' || c == '.' || c.is_ascii_alphabetic());
    let is_word = matches!(text, "true" | "false" | "inf" | "nan" | "null");
    Ok(if is_path && !is_word { text.to_string() } else { format!("./{text}") })
}

/// The last part of a path, for sentences.
fn short(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_reads_as_another_value_is_marked_as_a_path() {
        for (path, expected) in [
            ("x.npy", "x.npy"),
            ("/data/x.npy", "/data/x.npy"),
            ("../x.npy", "../x.npy"),
            ("2024", "./2024"),
            ("true", "./true"),
            ("[1]", "./[1]"),
        ] {
            assert_eq!(value(Path::new(path)).unwrap(), expected);
        }
    }
}
