//! What a path holds, for those who have no recipe.

mod features;
mod images;
mod manifests;
mod packed;
mod tables;
mod units;

use std::path::Path;

use aleator_run::recipe::{DataOverlay, InputSource, Overlay, Source};

use super::folder::{self, short};
use crate::array::split_spec;
use crate::ending::conversion;
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

/// The columns of a table that are not features, by the user's word. What is not said is recognised
/// by usual names.
///
/// ```
/// use aleator_data::inputs::recognise::{ColumnNames, recognise_columns};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("wine.csv");
/// std::fs::write(&path, "alcohol,ash,grape\n12.4,2.1,barolo\n13.1,2.4,barbera\n")?;
/// let columns = ColumnNames { label: Some("grape".into()), ..ColumnNames::default() };
/// let found = recognise_columns(&path, &columns)?;
/// assert!(found.explanation.contains("2 features"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// The column of labels.
    pub label: Option<String>,
    /// The column of ids.
    pub id: Option<String>,
    /// The column that says which split a row belongs to: train, validation or test.
    pub split: Option<String>,
    /// Columns that are not used.
    pub ignore: Vec<String>,
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognised {
    /// Which presets suit.
    pub preset_family: Family,
    /// The training source.
    pub train: Source,
    /// Everything else that is known of the data.
    pub data: DataOverlay,
    /// One or two sentences: what was found and chosen.
    pub explanation: String,
    /// The longest side of the images that were measured; `None` where there are none.
    pub longest_side: Option<usize>,
}

impl Recognised {
    /// What to lay over a preset; `path` is where it was found.
    pub fn overlay(&self, path: &Path) -> Overlay {
        let data = DataOverlay { train: Some(self.train.clone()), ..self.data.clone() };
        Overlay { origin: format!("--data {}", path.display()), data, network: None }
    }

    /// The size that images are brought to, as a sentence, unless they are taken as they are.
    pub fn resizing(&self) -> Option<String> {
        let size = self.data.image_size??;
        Some(format!("Images are brought to {size} × {size} pixels."))
    }

    /// What to do instead of training from pixels, for photographs that are larger than what the
    /// networks of the presets see; `path` is where they were found.
    ///
    /// ```
    /// use aleator_data::inputs::recognise::recognise;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let photos = folder.path();
    /// # for class in ["cat", "dog"] {
    /// #     std::fs::create_dir(photos.join(class))?;
    /// #     let picture = [b"P5 100 80 255\n".to_vec(), vec![0; 8000]].concat();
    /// #     std::fs::write(photos.join(class).join("1.pgm"), picture)?;
    /// # }
    /// let advice = recognise(photos)?.advice(photos).unwrap();
    /// assert!(advice.contains("aleator train finetune-full --data"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advice(&self, path: &Path) -> Option<String> {
        let side = self.longest_side.filter(|side| *side > images::LARGEST_SIDE)?;
        let (path, size) = (path.display(), images::LARGEST_SIDE);
        Some(format!(
            "These images have sides of up to {side} pixels, and a small network trained from \
             scratch sees them at {size} × {size}. A pretrained network does better:\n  \
             aleator train finetune-full --data {path} --weights efficientnet_lite0.safetensors\n\
             with weights from docs/weights.md, or any ONNX network:\n  \
             aleator embed {path} --model NETWORK.onnx --out embeddings.safetensors\n  \
             aleator train --data embeddings.safetensors"
        ))
    }

    /// Adds to the sentence.
    fn note(&mut self, what: &str) {
        self.explanation += &format!("; {what}");
    }
}

/// Looks at a file or folder and says how to train on it.
///
/// It may be a table with a column for each feature and one of labels, a file of embeddings with its
/// labels in it or beside it, an array of such a file (`file#name`), a folder with such files, a folder for each class, a folder with `train/` and `test/` of class folders, a manifest or the folder
/// that holds it, tar shards, Parquet files with an image column, or the files of CIFAR or MNIST.
/// Where more than one reading is possible, the error lists what was seen and the keys to set.
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
/// assert_eq!(found.data.image_size, Some(Some(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn recognise(path: &Path) -> Result<Recognised, DataError> {
    recognise_columns(path, &ColumnNames::default())
}

/// [`recognise`], where the user says what some columns of a table are.
///
/// # Errors
/// As [`recognise`], and when columns are named but there is no table, or it lacks one of them.
pub fn recognise_columns(path: &Path, columns: &ColumnNames) -> Result<Recognised, DataError> {
    if *columns == ColumnNames::default() {
        return recognise_any(path);
    }
    let is_folder = std::fs::metadata(path).map_err(|error| DataError::io(path, error))?.is_dir();
    let found =
        if is_folder { tables::in_folder(path, columns)? } else { tables::in_file(path, columns)? };
    found.ok_or_else(|| {
        let message = "is no table, so --label, --id, --split and --ignore name nothing in it; they \
                       are for .csv, .tsv and .parquet files with a column for each feature. For \
                       labels in a file of their own use --set \"data.train.labels=FILE#COLUMN\"";
        DataError::invalid(path, message)
    })
}

fn recognise_any(path: &Path) -> Result<Recognised, DataError> {
    let none = &ColumnNames::default();
    let is_pattern = path.to_str().is_some_and(|text| text.contains(['{', '*']));
    if is_pattern && !path.exists() {
        let why = "is a pattern, but not of shards or Parquet files with images";
        return packed::in_pattern(path)?.ok_or_else(|| unsure(path, why))?.recognised();
    }
    let names_an_array = path.to_str().is_some_and(|text| split_spec(text).1.is_some());
    if names_an_array {
        let why = "is an array whose name says that it holds no features";
        return features::in_file(path)?.ok_or_else(|| unsure(path, why));
    }
    let is_folder = std::fs::metadata(path).map_err(|error| DataError::io(path, error))?.is_dir();
    let images = if is_folder { images::in_folder(path)? } else { images::in_file(path)? };
    if let Some(found) = images {
        return found.recognised();
    }
    let table =
        if is_folder { tables::in_folder(path, none)? } else { tables::in_file(path, none)? };
    if let Some(table) = table {
        return Ok(table);
    }
    let features = if is_folder { features::in_folder(path)? } else { features::in_file(path)? };
    features.ok_or_else(|| {
        let files = folder::files_in(path).unwrap_or_default();
        let foreign = files.iter().find_map(|file| Some((file, conversion(file)?)));
        match foreign {
            Some((file, how)) => DataError::invalid(file, how),
            None => unsure(path, "holds nothing to train on that could be recognised"),
        }
    })
}

/// The error that says what was seen and what to do.
fn unsure(path: &Path, why: &str) -> DataError {
    const MOST: usize = 12;
    let folder = match path.parent() {
        _ if path.is_dir() => Some(path),
        Some(folder) if folder.as_os_str().is_empty() => Some(Path::new(".")),
        folder => folder,
    };
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
         data.train.labels=FILE (FILE#NAME for one array or column of several), or --set \
         data.train.images=FOLDER with a folder for each class"
    );
    DataError::invalid(path, message)
}

/// A path as a recipe can have it.
fn text(path: &Path) -> Result<String, DataError> {
    let text = path.to_str().map(String::from);
    text.ok_or_else(|| DataError::invalid(path, "is not UTF-8, which a recipe must be; rename it"))
}

/// A source that has nothing but its inputs.
fn source(inputs: InputSource) -> Source {
    Source { inputs, labels: None, clean_labels: None, ids: None }
}
