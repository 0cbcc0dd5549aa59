//! Images: CIFAR, MNIST, manifests, shards, Parquet, a folder for each class.

use std::path::{Path, PathBuf};

use aleator_run::recipe::{DataOverlay, HeldOut, InputSource};

use super::super::{cifar, folder, idx_images};
use super::{Family, Recognised, features, manifests, packed, short, source, text, unsure};
use crate::array::idx;
use crate::ending::Ending;
use crate::error::DataError;

/// Images are brought to at most this side: small networks on a CPU are what presets have.
pub(super) const LARGEST_SIDE: usize = 64;

/// Images that are measured: one of each of the first class folders, or the first of a file.
pub(super) const MEASURED: usize = 32;

const IDX: &str = "IDX images with their labels";

/// Images that were found.
#[derive(Default)]
pub(super) struct Splits {
    /// A phrase that says what the training images are.
    pub what: String,
    pub train: PathBuf,
    pub validation: Option<PathBuf>,
    pub test: Option<PathBuf>,
    /// The longest side of the images that were measured.
    pub longest_side: Option<usize>,
    /// Pixels that are not encoded, all of one size.
    pub raw: bool,
}

pub(super) fn in_folder(path: &Path) -> Result<Option<Splits>, DataError> {
    if !cifar::training_files(path).is_empty() {
        let splits = Splits::raw(path, "the binary files of CIFAR", Some(cifar::SIDE));
        return Ok(Some(Splits { test: cifar_test(path), ..splits }));
    }
    for look in [idx_files, manifests::in_folder, split_folders] {
        if let Some(splits) = look(path)? {
            return Ok(Some(splits));
        }
    }
    let Some((classes, longest_side)) = class_folders(path)? else {
        return packed::in_folder(path);
    };
    // One folder of pictures beside embeddings is likely to show something about them.
    match (classes, features::matrix_in(path)?) {
        (1, Some(_)) => Ok(None),
        (_, Some(matrix)) => {
            let why = format!("has both folders of images and embeddings ({matrix})");
            Err(unsure(path, &why))
        }
        (1, None) => Err(unsure(path, "has images in one folder only, so there is one class")),
        (_, None) => {
            let what = format!("images in {classes} folders, a class each");
            Ok(Some(Splits { longest_side, ..Splits::training(path, &what) }))
        }
    }
}

pub(super) fn in_file(path: &Path) -> Result<Option<Splits>, DataError> {
    if Ending::of(path) == Some(Ending::Cifar) {
        let test = path.parent().and_then(cifar_test).filter(|test| test != path);
        let cifar_file = Splits::raw(path, "a binary file of CIFAR", Some(cifar::SIDE));
        return Ok(Some(Splits { test, ..cifar_file }));
    }
    if idx::magic(path) == Some(idx::IMAGES) {
        check_labels(path)?;
        return Ok(Some(Splits::raw(path, IDX, idx_side(path))));
    }
    for look in [manifests::in_file, packed::in_file] {
        if let Some(splits) = look(path)? {
            return Ok(Some(splits));
        }
    }
    if folder::is_image(path) {
        return Err(unsure(path, "is one image; name the folder with the folders of classes"));
    }
    Ok(None)
}

impl Splits {
    pub(super) fn training(path: &Path, what: &str) -> Self {
        Self { what: what.into(), train: path.to_path_buf(), ..Self::default() }
    }

    fn raw(path: &Path, what: &str, longest_side: Option<usize>) -> Self {
        Self { longest_side, raw: true, ..Self::training(path, what) }
    }

    pub(super) fn recognised(self) -> Result<Recognised, DataError> {
        let encoded_side = self.longest_side.filter(|_| !self.raw);
        let image_size = encoded_side.map(|side| side.min(LARGEST_SIDE));
        let images = |path: &Path| Ok(source(InputSource::images(text(path)?)));
        let train = images(&self.train)?;
        let held_out =
            |path: Option<&PathBuf>| path.map(|path| images(path).map(HeldOut::Source)).transpose();
        let data = DataOverlay {
            validation: held_out(self.validation.as_ref())?,
            test: held_out(self.test.as_ref())?,
            // Raw pixels have no size here, and are taken as they are.
            image_size: Some(image_size),
            ..DataOverlay::default()
        };
        let mut found = Recognised {
            preset_family: Family::Images,
            train,
            data,
            explanation: format!("{} holds {}", short(&self.train), self.what),
            longest_side: self.longest_side,
        };
        for (name, path) in [("validation", self.validation), ("test", self.test)] {
            if let Some(path) = path {
                found.note(&format!("{name} data is {}", short(&path)));
            }
        }
        found.explanation.push('.');
        Ok(found)
    }
}

fn cifar_test(folder: &Path) -> Option<PathBuf> {
    let files = [cifar::TEST_10, cifar::TEST_100].map(|name| folder.join(name));
    files.into_iter().find(|path| path.is_file())
}

/// `train-images-idx3-ubyte` and `t10k-images-idx3-ubyte`, or one file alone.
fn idx_files(path: &Path) -> Result<Option<Splits>, DataError> {
    let is_idx = |path: &PathBuf| {
        short(path).contains("images") && path.is_file() && idx::magic(path) == Some(idx::IMAGES)
    };
    let mut files = folder::files_in(path)?;
    files.retain(is_idx);
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
    Ok(Some(Splits { test, ..Splits::raw(&train, IDX, idx_side(&train)) }))
}

/// The longer side of the images in an IDX file; what is wrong with one is said when it is opened.
fn idx_side(path: &Path) -> Option<usize> {
    let (_, header) = idx::open(path).ok()?;
    header.shape.iter().skip(1).copied().max()
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
        let is = |path: &&PathBuf| names.contains(&short(path).to_lowercase().as_str());
        folders.iter().find(is).cloned()
    };
    let train = named(&["train", "training"]);
    let test = named(&["test", "testing"]);
    let validation = named(&["val", "valid", "validation", "dev"]);
    let Some(train) = train.filter(|_| test.is_some() || validation.is_some()) else {
        return Ok(None);
    };
    let Some((_, longest_side)) = class_folders(&train)? else { return Ok(None) };
    for split in [&validation, &test].into_iter().flatten() {
        if class_folders(split)?.is_none() {
            return Err(unsure(split, "has no folders of classes, and train beside it has"));
        }
    }
    let what = "a folder for each split and in it one for each class".into();
    Ok(Some(Splits { what, train, validation, test, longest_side, raw: false }))
}

/// How many folders hold images, and the longest side of some of them.
fn class_folders(path: &Path) -> Result<Option<(usize, Option<usize>)>, DataError> {
    let mut first = vec![];
    let mut classes = 0;
    for class in folder::folders_in(path)? {
        let Some(image) = folder::any_image(&class)? else { continue };
        if classes < MEASURED {
            first.push(image);
        }
        classes += 1;
    }
    let side = longest_side(first.iter().map(|image| folder::size_of(image)));
    Ok((classes > 0).then_some((classes, side)))
}

/// The longest side of these images. Those that cannot be decoded are found later, when all are
/// looked at.
pub(super) fn longest_side(
    sizes: impl Iterator<Item = Result<(usize, usize), DataError>>,
) -> Option<usize> {
    let longest = sizes.flatten().map(|(width, height)| width.max(height)).max();
    Some(longest.unwrap_or(LARGEST_SIDE))
}
