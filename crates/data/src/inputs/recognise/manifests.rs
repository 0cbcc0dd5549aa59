//! Manifests: tables that list images with their labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::manifest::{Manifest, Overview, is_manifest_name};
use super::images::{MEASURED, Splits, longest_side};
use super::units::{Split, split_of};
use super::{features, folder, short, unsure};
use crate::error::DataError;

const MANIFEST: &str = "a manifest of images";

/// The manifest of a folder, or one for each split.
pub(super) fn in_folder(path: &Path) -> Result<Option<Splits>, DataError> {
    let files = folder::files_in(path)?;
    let found: Vec<Overview> = files.iter().filter_map(|file| overview(file)).collect();
    // Embeddings next to it were computed from the images that it lists.
    if found.is_empty() || features::matrix_in(path)?.is_some() {
        return Ok(None);
    }
    match &found[..] {
        [only] => by_rows(only).map(Some),
        several => by_name(path, several).map(Some),
    }
}

/// A file that is a manifest.
pub(super) fn in_file(path: &Path) -> Result<Option<Splits>, DataError> {
    overview(path).map(|manifest| by_rows(&manifest)).transpose()
}

/// What a file lists; none if it is no manifest, or one of images that are elsewhere.
fn overview(path: &Path) -> Option<Overview> {
    if !is_manifest_name(path) {
        return None;
    }
    let overview = Manifest::open(path).ok()?.overview(MEASURED).ok()?;
    let first = overview.images.first()?;
    (folder::is_image(first) && first.is_file()).then_some(overview)
}

fn side_of(manifest: &Overview) -> Option<usize> {
    longest_side(manifest.images.iter().map(|image| folder::size_of(image)))
}

/// The rows say the splits, or all are to train on.
fn by_rows(manifest: &Overview) -> Result<Splits, DataError> {
    let Overview { path, splits, .. } = manifest;
    let longest_side = side_of(manifest);
    if splits.is_empty() {
        return Ok(Splits { longest_side, ..Splits::training(path, MANIFEST) });
    }
    let part = |split: Split| {
        let name = splits.iter().find(|name| split_of(name) == Some(split))?;
        Some(PathBuf::from(format!("{}#{name}", path.display())))
    };
    let Some(train) = part(Split::Train) else {
        let why = format!("names the splits {} and none to train on", splits.join(", "));
        return Err(unsure(path, &why));
    };
    let (validation, test) = (part(Split::Validation), part(Split::Test));
    Ok(Splits { what: MANIFEST.into(), train, validation, test, longest_side, raw: false })
}

/// `train.csv`, `test.csv`: the names say the splits.
fn by_name(path: &Path, manifests: &[Overview]) -> Result<Splits, DataError> {
    let by_split: BTreeMap<Option<Split>, &Overview> =
        manifests.iter().map(|manifest| (split_of(&short(&manifest.path)), manifest)).collect();
    let part = |split: Split| by_split.get(&Some(split)).copied();
    let is_clear = by_split.len() == manifests.len()
        && !by_split.contains_key(&None)
        && manifests.iter().all(|manifest| manifest.splits.is_empty());
    let Some(train) = part(Split::Train).filter(|_| is_clear) else {
        let names: Vec<String> = manifests.iter().map(|manifest| short(&manifest.path)).collect();
        let why = format!("has several manifests: {}; name one of them", names.join(", "));
        return Err(unsure(path, &why));
    };
    Ok(Splits {
        validation: part(Split::Validation).map(|manifest| manifest.path.clone()),
        test: part(Split::Test).map(|manifest| manifest.path.clone()),
        longest_side: side_of(train),
        ..Splits::training(&train.path, MANIFEST)
    })
}
