//! The lists as CSV files.

use aleator_run::Link;

use super::super::tables::{Record, Row, exact};
use super::{NearDuplicate, Outlier};
use crate::spreadsheet::guarded;

/// `near_duplicates.csv`.
impl Record for NearDuplicate {
    fn columns(_: Link) -> Vec<String> {
        ["group", "id", "path", "label", "labels_differ", "distance"].map(String::from).to_vec()
    }

    fn cells(&self, _: &[String]) -> Vec<String> {
        let path = self.path.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
        vec![
            self.group.to_string(),
            guarded(&self.id).into_owned(),
            guarded(&path).into_owned(),
            guarded(&self.label).into_owned(),
            if self.labels_differ { "yes" } else { "no" }.to_string(),
            exact(self.distance),
        ]
    }

    fn parse(row: &Row) -> Result<Self, String> {
        Ok(Self {
            group: row.count("group")?,
            id: row.text("id").to_string(),
            path: row.path("path"),
            label: row.text("label").to_string(),
            labels_differ: row.is("yes", "no", "labels_differ")?,
            distance: row.number("distance")?,
        })
    }
}

/// `outliers.csv`.
impl Record for Outlier {
    fn columns(_: Link) -> Vec<String> {
        ["id", "path", "label", "distance_ratio"].map(String::from).to_vec()
    }

    fn cells(&self, _: &[String]) -> Vec<String> {
        let path = self.path.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
        vec![
            guarded(&self.id).into_owned(),
            guarded(&path).into_owned(),
            guarded(&self.label).into_owned(),
            exact(self.distance_ratio),
        ]
    }

    fn parse(row: &Row) -> Result<Self, String> {
        Ok(Self {
            id: row.text("id").to_string(),
            path: row.path("path"),
            label: row.text("label").to_string(),
            distance_ratio: row.number("distance_ratio")?,
        })
    }
}
