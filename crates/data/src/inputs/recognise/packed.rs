//! Tar shards and Parquet files with images, whose names may say the split.

use std::path::{Path, PathBuf};

use super::super::{encoded, image_columns, images, patterns, shards};
use super::images::{MEASURED, Splits, longest_side};
use super::units::{self, Split, split_of};
use super::{features, folder, short, unsure};
use crate::error::DataError;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PackedFormat {
    Tar,
    Parquet,
}

/// The shards or Parquet files of a folder, or of the folder `data` in it, as the hub has it.
pub(super) fn in_folder(path: &Path) -> Result<Option<Splits>, DataError> {
    for folder in [path.to_path_buf(), path.join("data")] {
        if !folder.is_dir() {
            continue;
        }
        let all = folder::files_in(&folder)?;
        for format in [PackedFormat::Tar, PackedFormat::Parquet] {
            let is_of_format = |file: &&PathBuf| PackedFormat::of(file) == Some(format);
            let files: Vec<PathBuf> = all.iter().filter(is_of_format).cloned().collect();
            if files.first().is_some_and(|first| format.holds_images(first))
                && features::matrix_in(&folder)?.is_none()
            {
                return splits(&folder, &files, format).map(Some);
            }
        }
    }
    Ok(None)
}

/// One shard or one Parquet file with images.
pub(super) fn in_file(path: &Path) -> Result<Option<Splits>, DataError> {
    let Some(format) = PackedFormat::of(path).filter(|format| format.holds_images(path)) else {
        return Ok(None);
    };
    let longest_side = format.side(path)?;
    Ok(Some(Splits { longest_side, ..Splits::training(path, format.phrase()) }))
}

/// Shards or Parquet files that a pattern names.
pub(super) fn in_pattern(path: &Path) -> Result<Option<Splits>, DataError> {
    let files = patterns::expand(path)?.paths;
    let found = files.first().map(|first| in_file(first)).transpose()?.flatten();
    Ok(found.map(|splits| Splits { train: path.to_path_buf(), ..splits }))
}

fn splits(folder: &Path, files: &[PathBuf], format: PackedFormat) -> Result<Splits, DataError> {
    let part = |split: Option<Split>| -> Vec<PathBuf> {
        files.iter().filter(|file| split_of(&short(file)) == split).cloned().collect()
    };
    let train = [part(Some(Split::Train)), part(None)].into_iter().find(|files| !files.is_empty());
    let Some(train) = train else {
        return Err(unsure(folder, "has shards to measure on and none to train on"));
    };
    let held_out = |split: Split| match &part(Some(split))[..] {
        [] => Ok(None),
        files => pattern(folder, files).map(Some),
    };
    Ok(Splits {
        longest_side: format.side(&train[0])?,
        validation: held_out(Split::Validation)?,
        test: held_out(Split::Test)?,
        ..Splits::training(&pattern(folder, &train)?, format.phrase())
    })
}

/// One path that means these files of a folder, and no others.
fn pattern(folder: &Path, files: &[PathBuf]) -> Result<PathBuf, DataError> {
    if let [only] = files {
        return Ok(only.clone());
    }
    let names: Vec<String> = files.iter().map(|file| short(file)).collect();
    let first = &names[0];
    let ends = || (0..=first.len()).filter(|at| first.is_char_boundary(*at));
    let all = |is: &dyn Fn(&str) -> bool| names.iter().all(|name| is(name));
    let prefixes = ends().map(|at| &first[..at]);
    let prefix = prefixes.take_while(|prefix| all(&|name| name.starts_with(prefix))).last();
    let mut suffixes = ends().map(|at| &first[at..]);
    let suffix = suffixes.find(|suffix| all(&|name| name.ends_with(suffix)));
    let is_digit = |c: char| c.is_ascii_digit();
    let prefix = prefix.unwrap_or_default().trim_end_matches(is_digit);
    let suffix = suffix.unwrap_or_default().trim_start_matches(is_digit);
    let pattern = folder.join(format!("{prefix}*{suffix}"));
    match patterns::expand(&pattern) {
        Ok(found) if found.paths == files => Ok(pattern),
        _ => Err(unsure(folder, "has files whose names no pattern tells from the others")),
    }
}

impl PackedFormat {
    fn of(path: &Path) -> Option<Self> {
        if shards::is_shard(path) {
            return Some(Self::Tar);
        }
        images::is_parquet(path).then_some(Self::Parquet)
    }

    /// Where there are embeddings beside the images, they are what is trained on.
    fn holds_images(self, path: &Path) -> bool {
        match self {
            Self::Tar => true,
            Self::Parquet => image_columns::has_images(path) && !units::holds_floats(path),
        }
    }

    fn side(self, path: &Path) -> Result<Option<usize>, DataError> {
        let first = match self {
            Self::Tar => shards::first_images(path, MEASURED)?,
            Self::Parquet => image_columns::first_images(path, MEASURED)?,
        };
        Ok(longest_side(first.iter().map(|(name, bytes)| encoded::size_of(name, bytes))))
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Tar => "shards of images with their labels",
            Self::Parquet => "images in a column of Parquet files",
        }
    }
}
