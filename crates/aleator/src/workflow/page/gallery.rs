//! The pictures of a report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aleator_data::{Ids, Thumbnail, Thumbnails};
use aleator_report::page::{EncodedPicture, Picture, PictureKey};
use aleator_run::recipe::{Data, HeldOut};
use aleator_run::{ExampleRow, Split, pictured_data, read_examples};

use crate::workflow::error::Error;

/// The longest side of a picture, in pixels.
const SIDE: usize = 128;

/// The pictures of runs and audits, opened when the first one is needed.
pub struct Gallery {
    /// Images to use instead of those in the recipes.
    images: Option<PathBuf>,
    /// The pictures of each directory, or why they cannot be opened; none where the examples are
    /// not pictures.
    opened: BTreeMap<PathBuf, Result<Option<Thumbnails>, Error>>,
    missing: usize,
}

impl Gallery {
    /// Opens nothing yet.
    pub fn new(images: Option<&Path>) -> Self {
        let images = images.map(Path::to_path_buf);
        Self { images, opened: BTreeMap::new(), missing: 0 }
    }

    /// The picture of an example.
    pub fn picture(&mut self, key: &PictureKey<'_>) -> Picture {
        if !self.opened.contains_key(key.dir) {
            self.opened.insert(key.dir.to_path_buf(), self.open(key.dir));
        }
        let found = match &self.opened[key.dir] {
            Ok(Some(pictures)) => thumbnail(pictures, key),
            Ok(None) => return Picture::None,
            Err(_) => None,
        };
        match found {
            Some(Thumbnail { width, height, media_type, bytes }) => {
                Picture::Encoded(EncodedPicture { media_type, bytes, width, height })
            }
            None => {
                self.missing += 1;
                Picture::Vanished
            }
        }
    }

    fn open(&self, dir: &Path) -> Result<Option<Thumbnails>, Error> {
        match (&self.images, pictured_data(dir)?) {
            (Some(images), data) => {
                let rows = read_examples(&dir.join("examples.csv"))?;
                let ids = training_ids(rows, data.as_ref());
                let pictures = Thumbnails::from_images(images, &ids?);
                pictures.map(Some).map_err(|error| {
                    Error::invalid(format!("the images do not fit the examples: {error}"))
                })
            }
            (None, Some(data)) => Ok(Thumbnails::open(&data)?),
            (None, None) => Ok(None),
        }
    }

    /// What is missing, for the user.
    pub fn warnings(&self) -> Vec<String> {
        let unreadable = |(dir, opened): (&PathBuf, &Result<_, Error>)| {
            let error = opened.as_ref().err()?;
            Some(format!("the report has no pictures of {}: {error}", dir.display()))
        };
        let mut warnings: Vec<String> = self.opened.iter().filter_map(unreadable).collect();
        if self.missing > 0 {
            let (s, were) = if self.missing == 1 { ("", "was") } else { ("s", "were") };
            warnings.push(format!(
                "{} image{s} {were} not found; the cards say so. If they were moved, say \
                 where they are now (--images PATH)",
                self.missing
            ));
        }
        warnings
    }
}

fn thumbnail(pictures: &Thumbnails, key: &PictureKey<'_>) -> Option<Thumbnail> {
    match key.split {
        Some(split) => pictures.of_split(split, key.id, SIDE).ok(),
        None => pictures.training(key.id, SIDE).ok(),
    }
}

/// The examples of the training source: those of the splits that are cut out of it.
fn training_ids(rows: Vec<ExampleRow>, data: Option<&Data>) -> Result<Ids, Error> {
    let is_part =
        |held_out: &HeldOut| matches!(held_out, HeldOut::Fraction { .. } | HeldOut::Count { .. });
    let from_training = |split: Split| match (split, data) {
        (Split::Train, _) | (_, None) => true,
        (Split::Validation, Some(data)) => is_part(&data.validation),
        (Split::Test, Some(data)) => data.test.as_ref().is_some_and(is_part),
    };
    let names: Vec<String> =
        rows.into_iter().filter(|row| from_training(row.split)).map(|row| row.id).collect();
    let mut numbers: Vec<usize> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let by_row = numbers.len() == names.len() && numbers.iter().copied().eq(0..names.len());
    if by_row { Ok(Ids::Rows(names.len())) } else { Ok(Ids::named(names, "examples.csv")?) }
}
