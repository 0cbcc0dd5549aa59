//! Images: CIFAR, MNIST, manifests, shards, Parquet, a folder for each class.

use std::path::{Path, PathBuf};

use aleator_run::recipe::{DataOverlay, HeldOut, InputSource};

use super::super::{cifar, folder, idx_images};
use super::{Family, Recognised, features, manifests, packed, short, source, text, unsure};
use crate::array::idx;
use crate::ending::Ending;
use crate::error::DataError;

/// Images are brought to at most this side: small networks on a CPU are what presets have.
const LARGEST_SIDE: usize = 64;

/// Images that are measured: one of each of the first class folders, or the first of a file.
pub(super) const MEASURED: usize = 32;

/// The splits that were found.
#[derive(Default)]
pub(super) struct Splits {
    pub train: PathBuf,
    pub validation: Option<PathBuf>,
    pub test: Option<PathBuf>,
    pub image_size: Option<usize>,
}

pub(super) fn in_folder(path: &Path) -> Result<Option<Recognised>, DataError> {
    if !cifar::training_files(path).is_empty() {
        let splits =
            Splits { train: path.to_path_buf(), test: cifar_test(path), ..Splits::default() };
        return splits.recognised("the binary files of CIFAR").map(Some);
    }
    if let Some(splits) = idx_files(path)? {
        return splits.recognised("IDX images with their labels").map(Some);
    }
    if let Some(splits) = manifests::in_folder(path)? {
        return splits.recognised("a manifest of images").map(Some);
    }
    if let Some(splits) = split_folders(path)? {
        return splits.recognised("a folder for each split and in it one for each class").map(Some);
    }
    let Some((classes, image_size)) = class_folders(path)? else {
        let found = packed::in_folder(path)?;
        return found.map(|(splits, what)| splits.recognised(what)).transpose();
    };
    // One folder of pictures beside embeddings is likely to show something about them.
    match (classes, features::matrix_in(path)?) {
        (1, Some(_)) => return Ok(None),
        (_, Some(matrix)) => {
            let why = format!("has both folders of images and embeddings ({matrix})");
            return Err(unsure(path, &why));
        }
        (_, None) => {}
    }
    if classes == 1 {
        return Err(unsure(path, "has images in one folder only, so there is one class"));
    }
    let splits = Splits { train: path.to_path_buf(), image_size, ..Splits::default() };
    splits.recognised(&format!("images in {classes} folders, a class each")).map(Some)
}

pub(super) fn in_file(path: &Path) -> Result<Option<Recognised>, DataError> {
    if Ending::of(path) == Some(Ending::Cifar) {
        let test = path.parent().and_then(cifar_test).filter(|test| test != path);
        let splits = Splits { train: path.to_path_buf(), test, ..Splits::default() };
        return splits.recognised("a binary file of CIFAR").map(Some);
    }
    if idx::magic(path) == Some(idx::IMAGES) {
        let splits = Splits { train: path.to_path_buf(), ..Splits::default() };
        check_labels(path)?;
        return splits.recognised("IDX images with their labels").map(Some);
    }
    if let Some(splits) = manifests::in_file(path)? {
        return splits.recognised("a manifest of images").map(Some);
    }
    if let Some((splits, what)) = packed::in_file(path)? {
        return splits.recognised(what).map(Some);
    }
    if folder::is_image(path) {
        return Err(unsure(path, "is one image; name the folder with the folders of classes"));
    }
    Ok(None)
}

/// `shards-{000..099}.tar`.
pub(super) fn in_pattern(path: &Path) -> Result<Recognised, DataError> {
    match packed::in_pattern(path)? {
        Some((splits, what)) => splits.recognised(what),
        None => Err(unsure(path, "is a pattern, but not of shards or Parquet files with images")),
    }
}

impl Splits {
    fn recognised(self, what: &str) -> Result<Recognised, DataError> {
        let images = |path: &Path| Ok(source(InputSource::images(text(path)?)));
        let train = images(&self.train)?;
        let mut explanation = format!("{} holds {what}", short(&self.train));
        let mut held_out = |name: &str, path: Option<&PathBuf>| {
            let Some(path) = path else { return Ok(None) };
            explanation += &format!("; {name} data is {}", short(path));
            images(path).map(|source| Some(HeldOut::Source(source)))
        };
        let data = DataOverlay {
            validation: held_out("validation", self.validation.as_ref())?,
            test: held_out("test", self.test.as_ref())?,
            // Raw pixels have no size here, and are taken as they are.
            image_size: Some(self.image_size),
            ..DataOverlay::default()
        };
        if let Some(size) = self.image_size {
            explanation += &format!("; images are brought to {size} × {size} pixels");
        }
        explanation.push('.');
        Ok(Recognised { preset_family: Family::Images, train, data, explanation })
    }
}

fn cifar_test(folder: &Path) -> Option<PathBuf> {
    let files = [cifar::TEST_10, cifar::TEST_100].map(|name| folder.join(name));
    files.into_iter().find(|path| path.is_file())
}

/// `train-images-idx3-ubyte` and `t10k-images-idx3-ubyte`, or one file alone.
fn idx_files(path: &Path) -> Result<Option<Splits>, DataError> {
    let mut files: Vec<PathBuf> = folder::files_in(path)?
        .into_iter()
        .filter(|(name, path)| name.contains("images") && path.is_file())
        .map(|(_, path)| path)
        .filter(|path| idx::magic(path) == Some(idx::IMAGES))
        .collect();
    // The same file with and without `.gz` counts once.
    files.dedup_by(|second, first| second.with_extension("") == *first);
    let named = |words: &[&str]| {
        let holds = |path: &&PathBuf| words.iter().any(|word| short(path).contains(word));
        let found: Vec<&PathBuf> = files.iter().filter(holds).collect();
        if let [only] = found[..] { Some(only.clone()) } else { None }
    };
    let (train, test) = (named(&["train"]), named(&["t10k", "test"]));
    let train = match (train, &files[..]) {
        (Some(train), _) => train,
        (None, []) => return Ok(None),
        (None, [only]) => only.clone(),
        (None, _) => return Err(unsure(path, "has several files of IDX images")),
    };
    check_labels(&train)?;
    let test = test.filter(|test| *test != train && idx_images::labels_beside(test).is_some());
    Ok(Some(Splits { train, test, ..Splits::default() }))
}

fn check_labels(images: &Path) -> Result<(), DataError> {
    match idx_images::labels_beside(images) {
        Some(_) => Ok(()),
        None => Err(unsure(images, "has no file of IDX labels beside it")),
    }
}

/// `train/` with `test/` or `validation/`, each with class folders.
fn split_folders(path: &Path) -> Result<Option<Splits>, DataError> {
    let folders = folder::folders_in(path)?;
    let named = |names: &[&str]| {
        let is = |(name, _): &&(String, PathBuf)| names.contains(&name.to_lowercase().as_str());
        folders.iter().find(is).map(|(_, path)| path.clone())
    };
    let train = named(&["train", "training"]);
    let test = named(&["test", "testing"]);
    let validation = named(&["val", "valid", "validation", "dev"]);
    let Some(train) = train.filter(|_| test.is_some() || validation.is_some()) else {
        return Ok(None);
    };
    let Some((_, image_size)) = class_folders(&train)? else { return Ok(None) };
    for split in [&validation, &test].into_iter().flatten() {
        if class_folders(split)?.is_none() {
            return Err(unsure(split, "has no folders of classes, and train beside it has"));
        }
    }
    Ok(Some(Splits { train, validation, test, image_size }))
}

/// How many folders hold images, and the side to bring them to.
fn class_folders(path: &Path) -> Result<Option<(usize, Option<usize>)>, DataError> {
    let mut first = vec![];
    let mut classes = 0;
    for (_, class) in folder::folders_in(path)? {
        let Some(image) = folder::any_image(&class)? else { continue };
        if classes < MEASURED {
            first.push(image);
        }
        classes += 1;
    }
    let side = side(first.iter().map(|image| folder::size_of(image)));
    Ok((classes > 0).then_some((classes, side)))
}

/// The side to bring images to, by some of them. Those that cannot be decoded are found later,
/// when all are looked at.
pub(super) fn side(
    sizes: impl Iterator<Item = Result<(usize, usize), DataError>>,
) -> Option<usize> {
    let longest = sizes.flatten().map(|(width, height)| width.max(height)).max();
    Some(longest.unwrap_or(LARGEST_SIDE).min(LARGEST_SIDE))
}
