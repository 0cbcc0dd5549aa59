//! Lists of examples that need a look for another reason than a wrong label: near duplicates,
//! outliers, and examples that are ambiguous.
//!
//! The first two come from the nearest neighbours of the examples' features, the last from the
//! judgement of the labels.

mod ambiguous;
mod near_duplicates;
mod outliers;
mod rows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aleator_layers::neighbours::nearest;
use aleator_run::{ExampleRow, read_json, write_json};
use serde::{Deserialize, Serialize};

use super::arrays::require;
use super::record::{Audit, AuditSummary};
use super::tables;
use crate::error::ReportError;
use near_duplicates::{Duplicates, Group};
use outliers::Outliers;

const NEAR_DUPLICATES: &str = "near_duplicates.csv";
const OUTLIERS: &str = "outliers.csv";
const AMBIGUOUS: &str = "ambiguous_examples.csv";
const COMPARISON: &str = "neighbours.json";

/// How many nearest neighbours of each example are found.
const NEIGHBOURS: usize = 20;

/// Examples with features that are unusually near to others, or unusually far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExampleLists {
    /// `near_duplicates.csv`: group by group, those with different labels first.
    pub near_duplicates: Vec<NearDuplicate>,
    /// `outliers.csv`: those that are farthest from all others first.
    pub outliers: Vec<Outlier>,
    /// `neighbours.json`: `None` where features were not compared.
    pub comparison: Option<Comparison>,
}

/// An example of a group whose features are identical or nearly so.
#[derive(Clone, Debug, PartialEq)]
pub struct NearDuplicate {
    /// The number of the group, from 1.
    pub group: usize,
    /// The id of the example.
    pub id: String,
    /// The file of its image, where it has one of its own.
    pub path: Option<PathBuf>,
    /// The names of the classes that its label names.
    pub label: String,
    /// Whether the labels of the group differ.
    pub labels_differ: bool,
    /// How far the nearest other example of the group is, as a share of how far the tenth nearest
    /// of all examples is; 0 where features are identical.
    pub distance: f64,
}

/// An example that is far from all others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// The id of the example.
    pub id: String,
    /// The file of its image, where it has one of its own.
    pub path: Option<PathBuf>,
    /// The names of the classes that its label names.
    pub label: String,
    /// How many times farther it is from its nearest neighbours than these are from theirs.
    pub distance_ratio: f64,
}

/// `neighbours.json`: what the features were compared by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How the features were scaled, in words.
    pub scale: String,
    /// How many examples each was compared with.
    pub compared: usize,
    /// How many nearest neighbours of each were found.
    pub neighbours: usize,
    /// In how many directions the examples vary locally, by the distances of their neighbours;
    /// `None` where these do not say.
    pub dimension: Option<f64>,
    /// Up to this share of the distance to the tenth nearest neighbour, examples are near
    /// duplicates; 0 where only identical ones are.
    pub near_duplicate_ratio: f64,
    /// The least `distance_ratio` of an outlier; `None` where there is none.
    pub outlier_ratio: Option<f64>,
}

impl Audit {
    /// Finds near duplicates and outliers by features of the examples, `[N, D]`, in the order of
    /// [`examples`](Audit::examples). Distances are Euclidean: scale the features first, and say
    /// in `scale` how.
    ///
    /// # Errors
    /// When there is no row for each example, or a number is not finite or too large to square.
    pub fn compare_features(
        &mut self,
        features: &[f32],
        width: usize,
        scale: &str,
    ) -> Result<(), ReportError> {
        let examples = self.examples.len();
        require(width > 0 && features.len() == examples * width, "features", || {
            format!(
                "must be [N, D] = [{examples}, {width}] with D > 0, as there are examples; found \
                 {} numbers",
                features.len()
            )
        })?;
        // The squares of all D differences must sum to an f32.
        let largest = (f32::MAX / width as f32).sqrt() / 4.0;
        if let Some(at) = features.iter().position(|value| value.is_nan() || value.abs() >= largest)
        {
            let (row, column, value) = (at / width, at % width, features[at]);
            require(false, "features", || {
                format!("row {row}, column {column}: expected a number to compare, found {value}")
            })?;
        }
        let found = nearest(features, width, NEIGHBOURS);
        let duplicates = Duplicates::find(features, width, &found);
        let outliers = Outliers::find(&found);
        let describe = Described::new(self);
        self.lists = ExampleLists {
            comparison: Some(Comparison {
                scale: scale.to_string(),
                compared: found.compared,
                neighbours: found.count,
                dimension: duplicates.dimension,
                near_duplicate_ratio: duplicates.ratio,
                outlier_ratio: outliers.members.last().map(|(_, ratio)| *ratio),
            }),
            near_duplicates: describe.duplicates(&duplicates),
            outliers: describe.outliers(&outliers),
        };
        Ok(())
    }
}

/// What lists say of an example, by its index.
struct Described<'a> {
    examples: &'a [ExampleRow],
    names: &'a [String],
    /// The files of images, by the ids of their examples.
    paths: BTreeMap<&'a str, &'a Path>,
}

impl<'a> Described<'a> {
    fn new(audit: &'a Audit) -> Self {
        let path = |issue: &'a super::Issue| Some((issue.id.as_str(), issue.path.as_deref()?));
        Self {
            examples: &audit.examples,
            names: &audit.summary.class_names,
            paths: audit.issues.iter().filter_map(path).collect(),
        }
    }

    fn path(&self, at: usize) -> Option<PathBuf> {
        self.paths.get(self.examples[at].id.as_str()).map(|path| path.to_path_buf())
    }

    fn label(&self, at: usize) -> String {
        let name = |class: &u32| self.names.get(*class as usize).cloned().unwrap_or_default();
        let names: Vec<String> = self.examples[at].label.iter().flatten().map(name).collect();
        names.join(", ")
    }

    fn duplicates(&self, found: &Duplicates) -> Vec<NearDuplicate> {
        let differ = |group: &&Group| {
            let label = |at: usize| &self.examples[at].label;
            group.iter().any(|(at, _)| label(*at) != label(group[0].0))
        };
        let (with, without): (Vec<&Group>, Vec<&Group>) = found.groups.iter().partition(differ);
        let mut listed = vec![];
        for (at, group) in with.iter().chain(&without).enumerate() {
            listed.extend(group.iter().map(|(member, distance)| NearDuplicate {
                group: at + 1,
                id: self.examples[*member].id.clone(),
                path: self.path(*member),
                label: self.label(*member),
                labels_differ: at < with.len(),
                distance: *distance,
            }));
        }
        listed
    }

    fn outliers(&self, found: &Outliers) -> Vec<Outlier> {
        let outlier = |(at, distance_ratio): &(usize, f64)| Outlier {
            id: self.examples[*at].id.clone(),
            path: self.path(*at),
            label: self.label(*at),
            distance_ratio: *distance_ratio,
        };
        found.members.iter().map(outlier).collect()
    }
}

impl ExampleLists {
    /// Writes the lists of an audit; those of features only where features were compared.
    pub(super) fn save(audit: &Audit, dir: &Path) -> Result<(), ReportError> {
        let (lists, summary) = (&audit.lists, &audit.summary);
        tables::write(&dir.join(AMBIGUOUS), audit.ambiguous(), summary)?;
        if let Some(comparison) = &lists.comparison {
            tables::write(&dir.join(NEAR_DUPLICATES), &lists.near_duplicates, summary)?;
            tables::write(&dir.join(OUTLIERS), &lists.outliers, summary)?;
            write_json(&dir.join(COMPARISON), comparison)?;
        }
        Ok(())
    }

    /// Reads the lists that [`save`](Self::save) wrote; audits of earlier versions have none.
    pub(super) fn load(dir: &Path, summary: &AuditSummary) -> Result<Self, ReportError> {
        let comparison = dir.join(COMPARISON);
        Ok(Self {
            near_duplicates: tables::read_if_there(&dir.join(NEAR_DUPLICATES), summary)?,
            outliers: tables::read_if_there(&dir.join(OUTLIERS), summary)?,
            comparison: comparison.is_file().then(|| read_json(&comparison)).transpose()?,
        })
    }

    /// How many groups of near duplicates there are, and how many of them have different labels.
    pub fn duplicate_groups(&self) -> (usize, usize) {
        let last = |with: bool| {
            let members = self.near_duplicates.iter().filter(|it| it.labels_differ || with);
            members.map(|it| it.group).max().unwrap_or(0)
        };
        // Groups with different labels have the first numbers.
        (last(true), last(false))
    }
}
