//! Labels: one class, several classes, probabilities, or the answers of several annotators.
//!
//! What `data.label_kind = "auto"` decides, in this order:
//!
//! | the file holds | labels are taken as |
//! |---|---|
//! | under `head.link = "sigmoid"`: one column with `;` in it, or `id,label` with several rows of one id | sets of classes |
//! | one column of whole numbers or words | single |
//! | a table with columns `example`, `annotator`, `label` | annotators, long |
//! | a table of words, or of whole numbers with blanks, −1 or above 1 | annotators, a column each |
//! | a table of zeros and ones | multi-hot under `head.link = "sigmoid"` |
//! | a table of other floats, each row summing to 1 | soft |
//! | a table of whole zeros and ones, under softmax | refused: it is ambiguous |
//!
//! A CSV table that also has a column `id` is matched to the examples by id.
//!
//! A held-out source may always have one column of single labels, whatever the training labels
//! are: crowds and soft labels are often tested on expert labels.

mod by_id;
mod classes;
mod files;
mod read;
mod sets;
mod table;
mod verified;
mod votes;
mod written;

use crate::draws::{self, Purpose};
use crate::ids::Ids;

pub(crate) use classes::Classes;
pub use files::{LabelFiles, LabelledExamples};
pub(crate) use read::{CleanLabels, RawLabels, Role};
pub(crate) use sets::{NONE, SEPARATOR};
pub(crate) use table::Table;
pub(crate) use written::Words;
pub use written::{WrittenAnnotations, WrittenLabels};

/// The labels of a split.
///
/// ```
/// use aleator_data::{Ids, Labels};
///
/// let labels = Labels::Single(vec![2, 0, 1]);
/// assert_eq!(labels.select(&[2, 0]), Labels::Single(vec![1, 2]));
/// assert_eq!(labels.hard(0, &Ids::Rows(3)), Some(vec![2, 0, 1]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// One class per example, `[N]`.
    Single(Vec<u32>),
    /// The classes that are on, for each example.
    MultiHot(SparseRows),
    /// Probabilities, `[N, K]`.
    Soft(DenseRows),
    /// Several annotations per example.
    Annotations(Votes),
}

/// Sets of classes: those of example i are `classes[offsets[i]..offsets[i + 1]]`, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseRows {
    /// `[N + 1]`, ascending from 0.
    pub offsets: Vec<usize>,
    /// Classes, example by example.
    pub classes: Vec<u32>,
}

/// A matrix `[N, K]` of probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseRows {
    /// K.
    pub classes: usize,
    /// In C order.
    pub values: Vec<f32>,
}

/// The answers of annotators: those about example i are at `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Votes {
    /// `[N + 1]`, ascending from 0; every example has at least one annotation.
    pub offsets: Vec<usize>,
    /// The annotator of each answer: a position in `annotator_names`.
    pub annotators: Vec<u32>,
    /// The class of each answer.
    pub labels: Vec<u32>,
    /// The annotators of the whole source, also in a part of it.
    pub annotator_names: Vec<String>,
}

impl Labels {
    /// The number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Single(labels) => labels.len(),
            Self::MultiHot(rows) => rows.offsets.len() - 1,
            Self::Soft(rows) => rows.values.len() / rows.classes,
            Self::Annotations(votes) => votes.len(),
        }
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One class for each example: the label, the most probable class, or the majority of the
    /// annotations. Ties go to one of the tied, by `seed` and the example's id.
    /// Multi-hot labels are not one class: `None`.
    pub fn hard(&self, seed: u64, ids: &Ids) -> Option<Vec<u32>> {
        assert_eq!(self.len(), ids.len(), "one id for each label");
        let each = |class: &dyn Fn(usize) -> u32| Some((0..self.len()).map(class).collect());
        match self {
            Self::Single(labels) => Some(labels.clone()),
            Self::MultiHot(_) => None,
            Self::Soft(rows) => each(&|index| {
                let row = rows.row(index).iter().map(|prob| f64::from(*prob));
                largest(row, seed, ids.key(index))
            }),
            Self::Annotations(votes) => each(&|index| votes.majority(index, seed, ids.key(index))),
        }
    }

    /// The strata of an even division: the class of each example, or the first that is on.
    pub(crate) fn strata(&self, ids: &Ids) -> Vec<u32> {
        match self {
            Self::MultiHot(rows) => {
                let first = |row| rows.row(row).first().copied().unwrap_or(u32::MAX);
                (0..self.len()).map(first).collect()
            }
            _ => self.hard(0, ids).expect("labels of one class"),
        }
    }

    /// The labels of these examples, in this order.
    pub fn select(&self, examples: &[usize]) -> Self {
        match self {
            Self::Single(labels) => Self::Single(pick(labels, examples)),
            Self::MultiHot(rows) => {
                let (offsets, classes) = gather(&rows.offsets, &rows.classes, examples);
                Self::MultiHot(SparseRows { offsets, classes })
            }
            Self::Soft(rows) => Self::Soft(DenseRows {
                classes: rows.classes,
                values: examples.iter().flat_map(|index| rows.row(*index)).copied().collect(),
            }),
            Self::Annotations(votes) => Self::Annotations(votes.select(examples)),
        }
    }

    /// These labels, then others of the same kind.
    ///
    /// # Panics
    /// If the kinds differ.
    pub(crate) fn followed_by(&self, next: &Self) -> Self {
        match (self, next) {
            (Self::Single(own), Self::Single(next)) => Self::Single([&own[..], next].concat()),
            (Self::MultiHot(own), Self::MultiHot(next)) => Self::MultiHot(SparseRows {
                offsets: joined(&own.offsets, &next.offsets),
                classes: [&own.classes[..], &next.classes].concat(),
            }),
            (Self::Soft(own), Self::Soft(next)) => Self::Soft(DenseRows {
                classes: own.classes,
                values: [&own.values[..], &next.values].concat(),
            }),
            (Self::Annotations(own), Self::Annotations(next)) => Self::Annotations(Votes {
                offsets: joined(&own.offsets, &next.offsets),
                annotators: [&own.annotators[..], &next.annotators].concat(),
                labels: [&own.labels[..], &next.labels].concat(),
                annotator_names: own.annotator_names.clone(),
            }),
            _ => panic!("labels of one source are of one kind"),
        }
    }

    /// For each class, whether some example has it: as a label, with some probability, or given by
    /// an annotator.
    pub(crate) fn classes_present(&self, classes: usize) -> Vec<bool> {
        let mut present = vec![false; classes];
        match self {
            Self::Single(labels)
            | Self::MultiHot(SparseRows { classes: labels, .. })
            | Self::Annotations(Votes { labels, .. }) => {
                labels.iter().for_each(|class| present[*class as usize] = true);
            }
            Self::Soft(rows) => {
                for row in rows.values.chunks_exact(classes) {
                    let seen = present.iter_mut().zip(row);
                    seen.for_each(|(present, prob)| *present |= *prob > 0.0);
                }
            }
        }
        present
    }
}

impl SparseRows {
    /// The classes of one example.
    pub fn row(&self, index: usize) -> &[u32] {
        &self.classes[self.offsets[index]..self.offsets[index + 1]]
    }
}

impl DenseRows {
    /// The probabilities of one example, `[K]`.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.classes..][..self.classes]
    }
}

impl Votes {
    fn new(annotator_names: Vec<String>) -> Self {
        Self { offsets: vec![0], annotators: vec![], labels: vec![], annotator_names }
    }

    /// Adds an example with its annotators and their answers, sorted by annotator.
    fn push(&mut self, answers: impl IntoIterator<Item = (u32, u32)>) {
        for (annotator, label) in answers {
            self.annotators.push(annotator);
            self.labels.push(label);
        }
        self.offsets.push(self.labels.len());
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The classes that annotators gave one example.
    pub fn row(&self, index: usize) -> &[u32] {
        &self.labels[self.offsets[index]..self.offsets[index + 1]]
    }

    /// The most frequent class of one example; ties go to one of the tied, by `seed` and `key`.
    pub fn majority(&self, index: usize, seed: u64, key: u64) -> u32 {
        let mut answers = self.row(index).to_vec();
        answers.sort_unstable();
        let groups: Vec<&[u32]> = answers.chunk_by(|a, b| a == b).collect();
        let best = largest(groups.iter().map(|group| group.len() as f64), seed, key);
        groups[best as usize][0]
    }

    fn select(&self, examples: &[usize]) -> Self {
        let (offsets, labels) = gather(&self.offsets, &self.labels, examples);
        let (_, annotators) = gather(&self.offsets, &self.annotators, examples);
        Self { offsets, annotators, labels, annotator_names: self.annotator_names.clone() }
    }
}

/// The position of the largest value; one of them, by `seed` and `key`, where several are.
fn largest(values: impl Iterator<Item = f64> + Clone, seed: u64, key: u64) -> u32 {
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let tied = values.clone().filter(|value| *value == most).count();
    let chosen = match tied {
        1 => 0,
        _ => draws::below(tied, seed, Purpose::Tie, &[key]),
    };
    let mut positions = values.enumerate().filter(|(_, value)| *value == most);
    positions.nth(chosen).map_or(0, |(position, _)| position as u32)
}

pub(crate) fn pick<T: Clone>(values: &[T], examples: &[usize]) -> Vec<T> {
    examples.iter().map(|index| values[*index].clone()).collect()
}

/// Offsets of two lists that stand one after the other.
fn joined(own: &[usize], next: &[usize]) -> Vec<usize> {
    let end = own[own.len() - 1];
    own.iter().copied().chain(next[1..].iter().map(|offset| end + offset)).collect()
}

fn gather<T: Copy>(offsets: &[usize], values: &[T], examples: &[usize]) -> (Vec<usize>, Vec<T>) {
    let mut out = (vec![0], vec![]);
    for index in examples {
        out.1.extend_from_slice(&values[offsets[*index]..offsets[index + 1]]);
        out.0.push(out.1.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_follow_each_other_are_the_whole() {
        let offsets = vec![0, 2, 2, 5];
        let votes = Votes {
            offsets: vec![0, 2, 3, 5],
            annotators: vec![0, 1, 1, 0, 1],
            labels: vec![2, 1, 0, 2, 2],
            annotator_names: vec!["ann".into(), "bob".into()],
        };
        for labels in [
            Labels::Single(vec![2, 0, 1]),
            Labels::MultiHot(SparseRows { offsets, classes: vec![0, 2, 0, 1, 2] }),
            Labels::Soft(DenseRows { classes: 2, values: vec![0.1, 0.9, 0.5, 0.5, 1.0, 0.0] }),
            Labels::Annotations(votes),
        ] {
            let parts = labels.select(&[0, 1]).followed_by(&labels.select(&[2]));
            assert_eq!(parts, labels);
        }
    }
}
