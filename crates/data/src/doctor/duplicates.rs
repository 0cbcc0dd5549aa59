//! Examples with equal content, which leak from one split to another or have different labels.

use serde::Serialize;

use super::images::Hash;
use crate::labels::Labels;
use crate::sources::source::Source;

/// The hash of an example, its source and its row.
pub(super) type Place = (Hash, usize, usize);

/// Groups that are held; all are counted.
const MOST_GROUPS: usize = 1_000;

/// Examples with equal content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// How many contents occur more than once.
    pub count: usize,
    /// In how many of them the copies lie in different splits.
    pub across_splits: usize,
    /// In how many of them the copies have different labels.
    pub different_labels: usize,
    /// The groups: first those that matter, at most 1,000.
    pub groups: Vec<Group>,
}

/// Examples with one content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Whether the copies lie in different splits: what is measured on was learned from.
    pub across_splits: bool,
    /// Whether the copies have different labels: one of them must be wrong.
    pub different_labels: bool,
    /// The examples, by split and row.
    pub copies: Vec<Copied>,
}

/// One of several equal examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// `"train"`, `"validation"` or `"test"`.
    pub split: &'static str,
    /// Its id.
    pub id: String,
}

impl Duplicates {
    /// `hashes` are of all examples.
    pub(super) fn find(mut hashes: Vec<Place>, sources: &[(&'static str, &Source)]) -> Self {
        hashes.sort_unstable();
        let groups = hashes.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
        let mut found: Vec<(bool, bool, &[Place])> = groups
            .map(|group| {
                let across = group.iter().any(|(_, source, _)| *source != group[0].1);
                let label = |at: usize| label(&sources[group[at].1].1.labels, group[at].2);
                let different = (1..group.len()).any(|at| label(at) != label(0));
                (across, different, group)
            })
            .collect();
        let count = found.len();
        let across_splits = found.iter().filter(|(across, _, _)| *across).count();
        let different_labels = found.iter().filter(|(_, different, _)| *different).count();
        // By position of the first copy: an order that hashes do not decide.
        found.sort_by_key(|(across, different, group)| {
            (!(*across || *different), group[0].1, group[0].2)
        });
        let copied = |(_, source, row): &Place| {
            let (split, source) = &sources[*source];
            Copied { split, id: source.ids.name(*row).into_owned() }
        };
        let group = |(across_splits, different_labels, group): (bool, bool, &[_])| Group {
            across_splits,
            different_labels,
            copies: group.iter().map(copied).collect(),
        };
        let groups = found.into_iter().take(MOST_GROUPS).map(group).collect();
        Self { count, across_splits, different_labels, groups }
    }
}

/// The label of an example, to be compared.
fn label(labels: &Labels, row: usize) -> Vec<u32> {
    match labels {
        Labels::Single(classes) => vec![classes[row]],
        Labels::MultiHot(rows) => rows.row(row).to_vec(),
        Labels::Soft(rows) => rows.row(row).iter().map(|prob| prob.to_bits()).collect(),
        // Annotators may disagree about the same content: that is why several are asked.
        Labels::Annotations(_) => vec![],
    }
}
