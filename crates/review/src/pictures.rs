//! Pictures of the examples that an audit is about.

use std::path::Path;

use aleator_data::{Ids, Thumbnail, Thumbnails, thumbnail_of_file, training_ids};
use aleator_report::audit::{Audit, Issue};
use aleator_run::recipe::Data;

/// Where the pictures of an audit come from.
#[derive(Debug)]
pub struct Pictures {
    thumbnails: Option<Thumbnails>,
    /// Why there are none, where there are none at all.
    absence: Option<String>,
}

impl Pictures {
    /// Those of the data that the `recipe.toml` in the folder names, or of `images`, which the
    /// features were made from; else the files that the issues name.
    ///
    /// That the audit's own data is no longer there is no error: the review goes on without
    /// pictures, and says why.
    ///
    /// # Errors
    /// A sentence, when `images` are given and do not fit.
    pub fn of_audit(dir: &Path, audit: &Audit, images: Option<&Path>) -> Result<Self, String> {
        let data = recipe(dir);
        if let Some(images) = images {
            let ids = match &data {
                Ok(Some(data)) => training_ids(data).map_err(|error| error.to_string())?,
                Ok(None) | Err(_) => ids_of(audit),
            };
            let thumbnails = Thumbnails::from_images(images, &ids);
            let thumbnails = Some(thumbnails.map_err(|error| error.to_string())?);
            return Ok(Self { thumbnails, absence: None });
        }
        let opened = match data {
            Ok(Some(data)) => Thumbnails::open(&data).map_err(|error| error.to_string()),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        let named = audit.issues.iter().any(|issue| issue.path.is_some());
        Ok(match opened {
            Ok(Some(thumbnails)) => Self { thumbnails: Some(thumbnails), absence: None },
            _ if named => Self { thumbnails: None, absence: None },
            Ok(None) => {
                let features =
                    "the audit does not read images; --images shows those of the examples";
                Self { thumbnails: None, absence: Some(features.to_string()) }
            }
            Err(error) => Self { thumbnails: None, absence: Some(error) },
        })
    }

    /// Why there are no pictures at all.
    pub fn absence(&self) -> Option<&str> {
        self.absence.as_deref()
    }

    /// The picture of an issue, or why there is none.
    pub(crate) fn picture(&self, issue: &Issue, side: usize) -> Result<Thumbnail, String> {
        let found = match &self.thumbnails {
            Some(thumbnails) => thumbnails.training(&issue.id, side),
            None => match &issue.path {
                Some(path) => thumbnail_of_file(path, side),
                None => return Err(self.absence.clone().unwrap_or("there is no picture".into())),
            },
        };
        found.map_err(|error| error.to_string())
    }
}

/// The data of the audit, where it says which.
fn recipe(dir: &Path) -> Result<Option<Data>, String> {
    let path = dir.join("recipe.toml");
    if !path.is_file() {
        return Ok(None);
    }
    let path = std::path::absolute(&path).map_err(|error| error.to_string())?;
    let resolved = aleator_run::load(&path.to_string_lossy(), &[], None);
    Ok(Some(resolved.map_err(|error| error.to_string())?.recipe.data))
}

/// The ids of an audit that does not say where they are from.
fn ids_of(audit: &Audit) -> Ids {
    let ids = audit.examples.iter().map(|example| example.id.clone());
    let are_rows = ids.clone().zip(0..).all(|(id, row): (String, usize)| id == row.to_string());
    if are_rows { Ids::Rows(audit.examples.len()) } else { Ids::Names(ids.collect()) }
}
