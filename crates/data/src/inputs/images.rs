//! Which reader a recipe's `images` needs.

use std::path::{Path, PathBuf};

use aleator_run::recipe::Framing;

use super::folder::{self, Entry};
use super::patterns::{Selection, expand};
use super::{Opened, cifar, file_bytes, idx_images, image_columns, manifest, shards};
use crate::array::idx;
use crate::ending::Ending;
use crate::error::DataError;

/// Opens images at all of these paths and patterns.
pub(super) fn open(specs: &[PathBuf], framing: &Framing) -> Result<Opened, DataError> {
    let Some(source) = specs.first() else {
        return Err(DataError::invalid("data.train.images", "names no path"));
    };
    let Selection { paths, fragment } = expand_all(specs)?;
    let fragment = fragment.as_deref();
    let files = files(&paths)?;
    let all = |is: &dyn Fn(&Path) -> bool| !files.is_empty() && files.iter().all(|file| is(file));
    if all(&shards::is_shard) {
        refuse_fragment(source, fragment)?;
        return shards::open(source, &files, framing);
    }
    if all(&is_parquet) {
        return image_columns::open(source, &files, fragment, framing);
    }
    if let [path] = &paths[..] {
        return open_one(path, fragment, framing);
    }
    refuse_fragment(source, fragment)?;
    if all(&is_bin) {
        return cifar::open(source, &files, framing);
    }
    let message = "is one of several paths that are not of one kind; a list may hold tar shards, \
                   Parquet files or the .bin files of CIFAR, one kind at a time";
    Err(DataError::invalid(source, message))
}

/// All paths of a list, which share what follows their `#`.
fn expand_all(specs: &[PathBuf]) -> Result<Selection, DataError> {
    let mut all = Selection { paths: vec![], fragment: None };
    for spec in specs {
        let Selection { paths, fragment } = expand(spec)?;
        if !all.paths.is_empty() && all.fragment != fragment {
            let message = "names something after # that the path before it does not; write the \
                           same after all paths of a list";
            return Err(DataError::invalid(spec, message));
        }
        all.paths.extend(paths);
        all.fragment = fragment;
    }
    Ok(all)
}

/// All files of the paths, including those of folders that hold only shards or tables.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DataError> {
    let mut files = vec![];
    for path in paths {
        // The archives next to the files of CIFAR are where those came from.
        if path.is_dir() && cifar::training_files(path).is_empty() {
            files.extend(packed_files(path)?.unwrap_or_else(|| vec![path.clone()]));
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// The tar or Parquet files of a folder without folders.
fn packed_files(folder: &Path) -> Result<Option<Vec<PathBuf>>, DataError> {
    let entries = folder::entries(folder)?;
    if entries.iter().any(|entry| entry.is_folder) {
        return Ok(None);
    }
    let select = |is: fn(&Path) -> bool| -> Vec<PathBuf> {
        let paths = entries.iter().map(|Entry { name, .. }| folder.join(name));
        paths.filter(|path| is(path)).collect()
    };
    let mut found = select(shards::is_shard);
    if found.is_empty() {
        found = select(is_parquet);
    }
    let named = |words: &[&str]| {
        let starts = |path: &&PathBuf| {
            words.iter().any(|word| folder::short(path).to_lowercase().starts_with(word))
        };
        found.iter().find(starts)
    };
    if let (Some(train), Some(_)) = (named(&["train"]), named(&["test", "val", "dev"])) {
        let ending = train.extension().unwrap_or_default().to_string_lossy();
        let pattern = folder.join(format!("train*.{ending}"));
        let message = format!("holds splits; name one of them: {}", pattern.display());
        return Err(DataError::invalid(folder, message));
    }
    Ok((!found.is_empty()).then_some(found))
}

pub(super) fn is_parquet(path: &Path) -> bool {
    Ending::of(path) == Some(Ending::Parquet)
}

fn is_bin(path: &Path) -> bool {
    Ending::of(path) == Some(Ending::Cifar)
}

fn refuse_fragment(path: &Path, fragment: Option<&str>) -> Result<(), DataError> {
    let Some(fragment) = fragment else { return Ok(()) };
    let message = format!(
        "#{fragment} names nothing here: after # stand the split of a manifest or the columns of \
         Parquet files"
    );
    Err(DataError::invalid(path, message))
}

fn open_one(path: &Path, fragment: Option<&str>, framing: &Framing) -> Result<Opened, DataError> {
    if path.is_file() && manifest::is_manifest_name(path) {
        return manifest::open(path, fragment, framing);
    }
    if path.exists() {
        refuse_fragment(path, fragment)?;
    }
    if path.is_dir() {
        let cifar_files = cifar::training_files(path);
        if !cifar_files.is_empty() {
            return cifar::open(path, &cifar_files, framing);
        }
        return folder::open(path, framing);
    }
    match idx::magic(path) {
        _ if is_bin(path) => cifar::open(path, &[path.to_path_buf()], framing),
        Some(idx::IMAGES) => idx_images::open(path, framing),
        Some(idx::LABELS) => {
            Err(DataError::invalid(path, "holds IDX labels; name the file with the images"))
        }
        _ => {
            file_bytes::open_file(path)?;
            Err(DataError::invalid(
                path,
                "holds no images; known are a folder for each class, a manifest (.csv, .jsonl), \
                 tar shards, Parquet files with an image column, the .bin files of CIFAR and IDX \
                 files (magic number 0x00000803), plain or gzipped",
            ))
        }
    }
}
