//! The pictures of an audit's examples.

use std::path::Path;

use aleator_data::{Ids, Thumbnail, Thumbnails, training_ids};
use aleator_report::audit::{Audit, Issue};
use aleator_run::pictured_data;

/// Where the pictures of an audit come from.
#[derive(Debug)]
pub struct Pictures {
    thumbnails: Option<Thumbnails>,
    /// Why there are no pictures at all.
    absence: Option<String>,
}

impl Pictures {
    /// The pictures of the data in the directory's `recipe.toml`, or of `images`, from which the
    /// features were computed.
    ///
    /// If the audit's data no longer exists, the review continues without pictures and says why.
    ///
    /// # Errors
    /// A sentence, when `images` are given and do not fit.
    pub fn of_audit(dir: &Path, audit: &Audit, images: Option<&Path>) -> Result<Self, String> {
        let data = pictured_data(dir).map_err(|error| error.to_string());
        if let Some(images) = images {
            let ids = match &data {
                Ok(Some(data)) => training_ids(data).map_err(|error| error.to_string())?,
                Ok(None) | Err(_) => ids_of(audit),
            };
            let thumbnails = Thumbnails::from_images(images, &ids);
            let thumbnails = Some(thumbnails.map_err(|error| error.to_string())?);
            return Ok(Self { thumbnails, absence: None });
        }
        let opened = data.and_then(|data| match data {
            Some(data) => Thumbnails::open(&data).map_err(|error| error.to_string()),
            None => Ok(None),
        });
        let features = "the audit is of features; --images PATH shows the images behind them";
        // The paths in issues.csv are for people: an audit from elsewhere could name any picture of
        // the reader.
        let named = "the directory has no recipe that says where the images are; --images PATH \
                     shows those in PATH";
        let is_named = audit.issues.iter().any(|issue| issue.path.is_some());
        let (thumbnails, absence) = match opened {
            Ok(Some(thumbnails)) => (Some(thumbnails), None),
            Ok(None) => (None, Some(if is_named { named } else { features }.to_string())),
            Err(error) => (None, Some(error)),
        };
        Ok(Self { thumbnails, absence })
    }

    /// Why there are no pictures at all.
    pub fn absence(&self) -> Option<&str> {
        self.absence.as_deref()
    }

    /// The picture of an issue, or why there is none.
    pub(crate) fn picture(&self, issue: &Issue, side: usize) -> Result<Thumbnail, String> {
        match &self.thumbnails {
            Some(thumbnails) => {
                thumbnails.training(&issue.id, side).map_err(|error| error.to_string())
            }
            None => Err(self.absence.clone().unwrap_or("there is no picture".into())),
        }
    }
}

/// The ids of an audit without a recipe.
fn ids_of(audit: &Audit) -> Ids {
    let ids = audit.examples.iter().map(|example| example.id.clone());
    let are_rows = ids.clone().zip(0..).all(|(id, row): (String, usize)| id == row.to_string());
    if are_rows { Ids::Rows(audit.examples.len()) } else { Ids::Names(ids.collect()) }
}
