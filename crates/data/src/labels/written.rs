//! Labels in the files of the images: a name or a number each, of which few are distinct.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Votes;
use super::classes::Classes;
use super::table::Cell;
use crate::error::DataError;
use crate::ids::Ids;

/// Names or numbers of classes as files have them, before the classes are known.
///
/// Every distinct one is held once: a label takes 4 bytes, and 4 more for its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenLabels {
    path: PathBuf,
    words: Vec<String>,
    /// The position in `words` of each.
    positions: Vec<u32>,
    /// The line of each in the file; without lines, messages name the example's id.
    lines: Option<Vec<u32>>,
}

/// The answers of annotators about each image: those about example i are at
/// `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAnnotations {
    offsets: Vec<usize>,
    pub(super) labels: WrittenLabels,
    annotators: WrittenLabels,
}

/// Words of which few are distinct: each is held once, and numbered in the order of first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    distinct: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// The number of each word.
    pub positions: Vec<u32>,
}

impl Words {
    /// Appends a word; returns its number.
    pub(crate) fn push(&mut self, word: &str) -> u32 {
        let number = self.numbers.get(word).copied().unwrap_or_else(|| {
            let number = self.distinct.len() as u32;
            self.distinct.push(word.to_string());
            self.numbers.insert(word.to_string(), number);
            number
        });
        self.positions.push(number);
        number
    }

    /// The word at this place.
    pub(crate) fn get(&self, index: usize) -> &str {
        &self.distinct[self.positions[index] as usize]
    }

    /// The words as labels in the file `path`, where they stand on these lines.
    pub(crate) fn written(self, path: &Path, lines: Option<Vec<u32>>) -> WrittenLabels {
        let Self { distinct: words, positions, .. } = self;
        WrittenLabels { path: path.to_path_buf(), words, positions, lines }
    }
}

impl WrittenLabels {
    /// The file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// A label as it stands in the file.
    pub fn get(&self, index: usize) -> &str {
        &self.words[self.positions[index] as usize]
    }

    /// The class of each, and the names of the classes: numbers are used as they are, words are
    /// numbered in their order.
    pub fn numbered(&self) -> (Vec<u32>, Option<Vec<String>>) {
        let numbers: Option<Vec<u32>> = self.words.iter().map(|word| word.parse().ok()).collect();
        if let Some(numbers) = numbers {
            return (self.positions.iter().map(|word| numbers[*word as usize]).collect(), None);
        }
        let mut names = self.words.clone();
        names.sort();
        let class = |word: &String| names.binary_search(word).unwrap_or_default() as u32;
        let classes: Vec<u32> = self.words.iter().map(class).collect();
        (self.positions.iter().map(|word| classes[*word as usize]).collect(), Some(names))
    }

    /// Every distinct label: numbers where all of them are, as in label files.
    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        let numbers: Option<Vec<Cell>> =
            self.words.iter().map(|word| word.parse().ok().map(Cell::Whole)).collect();
        let mut cells: Vec<Cell> = self.words.iter().map(|word| Cell::Word(word)).collect();
        cells.iter_mut().filter(|cell| **cell == Cell::Word("")).for_each(|it| *it = Cell::Missing);
        numbers.unwrap_or(cells)
    }

    /// The class of each.
    pub(super) fn read(&self, classes: &Classes, ids: &Ids) -> Result<Vec<u32>, DataError> {
        self.classes(classes, &|index| self.place(index, ids))
    }

    /// The class of each; `place` names a label in messages.
    pub(super) fn classes(
        &self,
        classes: &Classes,
        place: &dyn Fn(usize) -> String,
    ) -> Result<Vec<u32>, DataError> {
        let class = |(word, cell): (usize, Cell)| {
            let first = self.positions.iter().position(|position| *position as usize == word);
            classes.class(cell, &|message| {
                let place = first.map_or(String::new(), |first| place(first) + ": ");
                DataError::invalid(&self.path, format!("{place}{message}"))
            })
        };
        let cells = self.cells().into_iter().enumerate();
        let class_of: Vec<u32> = cells.map(class).collect::<Result<_, _>>()?;
        Ok(self.positions.iter().map(|word| class_of[*word as usize]).collect())
    }

    /// Every distinct label as it stands in the file.
    pub(crate) fn distinct(&self) -> &[String] {
        &self.words
    }

    fn place(&self, index: usize, ids: &Ids) -> String {
        match &self.lines {
            Some(lines) => format!("line {}", lines[index]),
            None => format!("example {}", ids.name(index)),
        }
    }
}

impl WrittenAnnotations {
    /// `labels` and `annotators` are of the same annotations; every example has at least one.
    pub(crate) fn new(
        offsets: Vec<usize>,
        labels: WrittenLabels,
        annotators: WrittenLabels,
    ) -> Self {
        Self { offsets, labels, annotators }
    }

    /// The annotators in the order of their names; numbers sort as numbers.
    pub(super) fn read(&self, classes: &Classes, ids: &Ids) -> Result<Votes, DataError> {
        let labels = self.labels.read(classes, ids)?;
        let words = &self.annotators.words;
        let mut sorted: Vec<usize> = (0..words.len()).collect();
        sorted.sort_by_key(|at| {
            let number = words[*at].parse::<i64>();
            (number.is_err(), number.unwrap_or(0), &words[*at])
        });
        let mut number_of = vec![0; words.len()];
        sorted.iter().zip(0..).for_each(|(at, number)| number_of[*at] = number);
        let mut votes = Votes::new(sorted.iter().map(|at| words[*at].clone()).collect());
        for pair in self.offsets.windows(2) {
            let mut answers: Vec<(u32, u32)> = (pair[0]..pair[1])
                .map(|at| (number_of[self.annotators.positions[at] as usize], labels[at]))
                .collect();
            answers.sort_unstable();
            votes.push(answers);
        }
        Ok(votes)
    }
}
