//! Sets of classes as files have them: `cat;dog` in a cell, or a row for each class.

use std::collections::BTreeMap;
use std::path::Path;

use super::SparseRows;
use super::classes::Classes;
use super::written::{Words, WrittenLabels};
use crate::error::DataError;
use crate::ids::Ids;

/// Separates the classes of a set. A set may end with one: `cat;` is a set of one class.
pub(crate) const SEPARATOR: char = ';';

/// The empty set, as in `examples.csv`.
pub(crate) const NONE: &str = "-";

/// The classes of each example before it is known what classes there are: those of example i are
/// at `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenSets {
    offsets: Vec<usize>,
    pub labels: WrittenLabels,
}

impl WrittenSets {
    /// Whether a cell can be nothing but a set.
    pub fn is_set(text: &str) -> bool {
        text.contains(SEPARATOR) || text.trim() == NONE
    }

    /// The sets in the file `path`, one text for each example.
    pub fn new<'a>(path: &Path, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut offsets, mut words) = (vec![0], Words::default());
        for text in texts {
            let text = text.trim();
            let text = text.strip_suffix(SEPARATOR).unwrap_or(text);
            if text != NONE {
                for class in text.split(SEPARATOR) {
                    words.push(class.trim());
                }
            }
            offsets.push(words.positions.len());
        }
        Self { offsets, labels: words.written(path, None) }
    }

    /// Groups the rows of a table by their ids: the ids in the order of first use, and the classes
    /// of each as one text.
    pub fn grouped<'a>(
        rows: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> (Vec<String>, Vec<String>) {
        let mut places = BTreeMap::new();
        let (mut ids, mut texts) = (vec![], Vec::<String>::new());
        for (id, class) in rows {
            let place = *places.entry(id).or_insert(ids.len());
            if place == ids.len() {
                ids.push(id.to_string());
                texts.push(class.to_string());
            } else {
                texts[place].push(SEPARATOR);
                texts[place].push_str(class);
            }
        }
        (ids, texts)
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The classes of each example, one for each id.
    pub fn read(&self, classes: &Classes, ids: &Ids) -> Result<SparseRows, DataError> {
        let refuse = |message: String| DataError::invalid(self.labels.path(), message);
        if self.len() != ids.len() {
            return Err(refuse(format!(
                "has {} rows of labels, but there are {} examples; each example needs its row, in \
                 the same order",
                self.len(),
                ids.len()
            )));
        }
        let example_of = |label: usize| self.offsets.partition_point(|start| *start <= label) - 1;
        let place = |label: usize| format!("example {}", ids.name(example_of(label)));
        let mut of_labels = self.labels.classes(classes, &place)?;
        for (example, ends) in self.offsets.windows(2).enumerate() {
            let set = &mut of_labels[ends[0]..ends[1]];
            set.sort_unstable();
            if let Some(twice) = set.windows(2).find(|pair| pair[0] == pair[1]) {
                let (id, class) = (ids.name(example), &classes.names[twice[0] as usize]);
                return Err(refuse(format!("example {id} has the class {class:?} twice")));
            }
        }
        Ok(SparseRows { offsets: self.offsets.clone(), classes: of_labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_example_need_not_be_adjacent() {
        let rows = [("b", "cat"), ("a", "dog"), ("b", "owl;fox"), ("c", "-")];
        let (ids, texts) = WrittenSets::grouped(rows);
        assert_eq!(ids, ["b", "a", "c"]);
        assert_eq!(texts, ["cat;owl;fox", "dog", "-"]);
        let sets = WrittenSets::new(Path::new("labels.csv"), texts.iter().map(String::as_str));
        assert_eq!(sets.offsets, [0, 3, 4, 4]);
        assert_eq!((sets.labels.get(2), sets.labels.get(3)), ("fox", "dog"));
    }
}
