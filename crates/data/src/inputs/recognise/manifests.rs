//! Manifests: tables that list images with their labels.

use std::path::{Path, PathBuf};

use super::super::manifest::{Manifest, is_manifest_name};
use super::images::{MEASURED, Splits, side};
use super::units::{Split, split_of};
use super::{features, folder, short, unsure};
use crate::error::DataError;

/// A manifest whose first image is there.
struct Found {
    path: PathBuf,
    /// The splits that its rows name.
    splits: Vec<String>,
    images: Vec<PathBuf>,
}

/// The manifest of a folder, or one for each split.
pub(super) fn in_folder(path: &Path) -> Result<Option<Splits>, DataError> {
    let files = folder::files_in(path)?.into_iter().map(|(_, file)| file);
    let found: Vec<Found> = files.filter_map(|file| look(&file)).collect();
    // Embeddings next to it were computed from the images that it lists.
    if found.is_empty() || features::matrix_in(path)?.is_some() {
        return Ok(None);
    }
    match &found[..] {
        [only] => only.splits().map(Some),
        several => by_name(path, several).map(Some),
    }
}

/// A file that is a manifest.
pub(super) fn in_file(path: &Path) -> Result<Option<Splits>, DataError> {
    if !is_manifest_name(path) {
        return Ok(None);
    }
    look(path).map(|found| found.splits()).transpose()
}

/// What a file lists; none if it is no manifest, or one of images that are elsewhere.
fn look(path: &Path) -> Option<Found> {
    if !is_manifest_name(path) {
        return None;
    }
    let first = Manifest::open(path).ok()?.first(MEASURED).ok()?;
    let is_there = |image: &PathBuf| folder::is_image(image) && image.is_file();
    first.paths.first().filter(|image| is_there(image))?;
    Some(Found { path: path.to_path_buf(), splits: first.splits, images: first.paths })
}

impl Found {
    fn splits(&self) -> Result<Splits, DataError> {
        let image_size = side(self.images.iter().map(|image| folder::size_of(image)));
        if self.splits.is_empty() {
            return Ok(Splits { train: self.path.clone(), image_size, ..Splits::default() });
        }
        let part = |split: Split| {
            let name = self.splits.iter().find(|name| split_of(name) == Some(split))?;
            Some(PathBuf::from(format!("{}#{name}", self.path.display())))
        };
        let Some(train) = part(Split::Train) else {
            let why = format!("names the splits {} and none to train on", self.splits.join(", "));
            return Err(unsure(&self.path, &why));
        };
        let (validation, test) = (part(Split::Validation), part(Split::Test));
        Ok(Splits { train, validation, test, image_size })
    }
}

/// `train.csv`, `test.csv`: the names say the splits.
fn by_name(path: &Path, found: &[Found]) -> Result<Splits, DataError> {
    let part = |split: Split| -> Vec<&Found> {
        let named = |found: &&Found| split_of(&short(&found.path)) == Some(split);
        found.iter().filter(named).collect()
    };
    let parts = [Split::Train, Split::Validation, Split::Test].map(part);
    let clear = parts[0].len() == 1
        && parts.iter().all(|part| part.len() <= 1)
        && parts.iter().flatten().count() == found.len()
        && found.iter().all(|found| found.splits.is_empty());
    if !clear {
        let names: Vec<String> = found.iter().map(|found| short(&found.path)).collect();
        let why = format!("has several manifests: {}; name one of them", names.join(", "));
        return Err(unsure(path, &why));
    }
    let spec = |part: &[&Found]| part.first().map(|found| found.path.clone());
    Ok(Splits {
        train: spec(&parts[0]).unwrap_or_default(),
        validation: spec(&parts[1]),
        test: spec(&parts[2]),
        image_size: parts[0][0].splits()?.image_size,
    })
}
