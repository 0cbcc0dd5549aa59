//! Tar shards and Parquet files with images, whose names may say the split.

use std::path::{Path, PathBuf};

use super::super::{encoded, image_columns, images, patterns, shards};
use super::images::{MEASURED, Splits, side};
use super::units::{self, Split, split_of};
use super::{features, folder, short, unsure};
use crate::error::DataError;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tar,
    Parquet,
}

/// The shards or Parquet files of a folder, or of the folder `data` in it, as the hub has it.
pub(super) fn in_folder(path: &Path) -> Result<Option<(Splits, &'static str)>, DataError> {
    for folder in [path.to_path_buf(), path.join("data")] {
        if !folder.is_dir() {
            continue;
        }
        let files: Vec<PathBuf> =
            folder::files_in(&folder)?.into_iter().map(|(_, file)| file).collect();
        for kind in [Kind::Tar, Kind::Parquet] {
            let of_kind = |file: &&PathBuf| Kind::of(file) == Some(kind);
            let these: Vec<PathBuf> = files.iter().filter(of_kind).cloned().collect();
            if these.first().is_some_and(|first| kind.holds_images(first))
                && features::matrix_in(&folder)?.is_none()
            {
                return splits(&folder, &these, kind).map(|splits| Some((splits, kind.phrase())));
            }
        }
    }
    Ok(None)
}

/// One shard or one Parquet file with images.
pub(super) fn in_file(path: &Path) -> Result<Option<(Splits, &'static str)>, DataError> {
    let Some(kind) = Kind::of(path).filter(|kind| kind.holds_images(path)) else {
        return Ok(None);
    };
    let image_size = kind.side(path)?;
    let splits = Splits { train: path.to_path_buf(), image_size, ..Splits::default() };
    Ok(Some((splits, kind.phrase())))
}

/// Shards or Parquet files that a pattern names.
pub(super) fn in_pattern(path: &Path) -> Result<Option<(Splits, &'static str)>, DataError> {
    let files = patterns::expand(path)?.paths;
    let found = files.first().map(|first| in_file(first)).transpose()?.flatten();
    Ok(found.map(|(splits, what)| (Splits { train: path.to_path_buf(), ..splits }, what)))
}

fn splits(folder: &Path, files: &[PathBuf], kind: Kind) -> Result<Splits, DataError> {
    let part = |split: Option<Split>| -> Vec<PathBuf> {
        files.iter().filter(|file| split_of(&short(file)) == split).cloned().collect()
    };
    let [train, validation, test, unsaid] =
        [Some(Split::Train), Some(Split::Validation), Some(Split::Test), None].map(part);
    let train = match (train.is_empty(), unsaid.is_empty()) {
        (false, _) => train,
        (true, false) => unsaid,
        (true, true) => {
            return Err(unsure(folder, "has shards to measure on and none to train on"));
        }
    };
    let image_size = kind.side(&train[0])?;
    let held_out = |files: Vec<PathBuf>| {
        Some(files)
            .filter(|files| !files.is_empty())
            .map(|files| pattern(folder, &files))
            .transpose()
    };
    Ok(Splits {
        validation: held_out(validation)?,
        test: held_out(test)?,
        train: pattern(folder, &train)?,
        image_size,
    })
}

/// One path that means these files of a folder, and no others.
fn pattern(folder: &Path, files: &[PathBuf]) -> Result<PathBuf, DataError> {
    if let [only] = files {
        return Ok(only.clone());
    }
    let names: Vec<String> = files.iter().map(|file| short(file)).collect();
    let first = &names[0];
    let shared = |from_end: bool| -> usize {
        let agree = |name: &String| {
            let count = |pairs: &mut dyn Iterator<Item = (char, char)>| {
                pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
            };
            match from_end {
                false => count(&mut first.chars().zip(name.chars())),
                true => count(&mut first.chars().rev().zip(name.chars().rev())),
            }
        };
        names.iter().map(agree).min().unwrap_or(0)
    };
    let prefix = first[..shared(false)].trim_end_matches(|c: char| c.is_ascii_digit());
    let suffix =
        first[first.len() - shared(true)..].trim_start_matches(|c: char| c.is_ascii_digit());
    let pattern = folder.join(format!("{prefix}*{suffix}"));
    match patterns::expand(&pattern) {
        Ok(found) if found.paths == files => Ok(pattern),
        _ => Err(unsure(folder, "has files whose names no pattern tells from the others")),
    }
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        if shards::packing(path).is_some() {
            return Some(Self::Tar);
        }
        images::is_parquet(path).then_some(Self::Parquet)
    }

    /// Where there are embeddings beside the images, they are what is trained on.
    fn holds_images(self, path: &Path) -> bool {
        match self {
            Self::Tar => true,
            Self::Parquet => image_columns::has_images(path) && !units::holds_matrix(path),
        }
    }

    fn side(self, path: &Path) -> Result<Option<usize>, DataError> {
        let first = match self {
            Self::Tar => shards::first_images(path, MEASURED)?,
            Self::Parquet => image_columns::first_images(path, MEASURED)?,
        };
        Ok(side(first.iter().map(|(name, bytes)| encoded::size_of(name, bytes))))
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Tar => "shards of images with their labels",
            Self::Parquet => "images in a column of Parquet files",
        }
    }
}
