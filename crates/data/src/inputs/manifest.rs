//! A table that lists images: one row per image, or one per annotation.

mod rows;

use std::collections::BTreeMap;
use std::path::Path;

use aleator_run::recipe::Framing;
use rayon::prelude::*;

use super::encoded::{self, Places};
use super::names::Names;
use super::{CarriedLabels, Opened};
use crate::error::DataError;
use crate::labels::{Vocabulary, WrittenAnnotations, WrittenLabels};
use rows::{Columns, Row};

pub(crate) use rows::{Manifest, is_manifest_name};
pub(super) use rows::{weight_of, word};

/// Opens the images of a manifest, or of one split of it.
pub(crate) fn open(
    path: &Path,
    split: Option<&str>,
    framing: &Framing,
) -> Result<Opened, DataError> {
    let manifest = Manifest::open(path)?;
    let columns = manifest.columns();
    manifest.check_split(split)?;
    let mut examples = Examples::new(path, columns);
    manifest.each_row(|row| match (split, &row.split) {
        (Some(wanted), Some(found)) if *found != wanted => Ok(()),
        _ => examples.add(&row),
    })?;
    examples.finish(manifest.folder(), framing)
}

/// The examples of the rows read so far.
struct Examples<'a> {
    path: &'a Path,
    columns: Columns,
    /// Path of each example.
    files: Names,
    /// Only where the manifest has them.
    ids: Vec<String>,
    /// Example and first line of each path, and of each id.
    by_file: BTreeMap<String, (usize, u32)>,
    by_id: BTreeMap<String, (usize, u32)>,
    /// Of each row: its example, line, label and annotator.
    example_of: Vec<usize>,
    lines: Vec<u32>,
    labels: Vec<u32>,
    annotators: Vec<u32>,
    label_words: Vocabulary,
    annotator_words: Vocabulary,
    /// Of each example: its first line and what all of its rows must agree on.
    first_lines: Vec<u32>,
    clean: Vec<u32>,
    clean_words: Vocabulary,
    weights: Vec<f32>,
    /// (example, annotator) → line.
    answered: BTreeMap<(usize, u32), u32>,
}

impl<'a> Examples<'a> {
    fn new(path: &'a Path, columns: Columns) -> Self {
        Self {
            path,
            columns,
            files: Names::default(),
            ids: vec![],
            by_file: BTreeMap::new(),
            by_id: BTreeMap::new(),
            example_of: vec![],
            lines: vec![],
            labels: vec![],
            annotators: vec![],
            label_words: Vocabulary::default(),
            annotator_words: Vocabulary::default(),
            first_lines: vec![],
            clean: vec![],
            clean_words: Vocabulary::default(),
            weights: vec![],
            answered: BTreeMap::new(),
        }
    }

    fn add(&mut self, row: &Row) -> Result<(), DataError> {
        let clean = row.clean_label.as_deref().map(|word| self.clean_words.position(word));
        let example = match self.known(row)? {
            Some((example, first)) => {
                self.agree(row, example, first, clean)?;
                example
            }
            None => self.add_example(row, clean),
        };
        if let Some(annotator) = &row.annotator {
            let who = self.annotator_words.position(annotator);
            if let Some(first) = self.answered.insert((example, who), row.line) {
                let what = format!("annotator {annotator} labels {} twice; keep one", row.path);
                return Err(self.both(first, row.line, &what));
            }
            self.annotators.push(who);
        }
        self.example_of.push(example);
        self.lines.push(row.line);
        self.labels.push(self.label_words.position(&row.label));
        Ok(())
    }

    /// The example of a row, if an earlier row had the same one.
    fn known(&self, row: &Row) -> Result<Option<(usize, u32)>, DataError> {
        let by_file = self.by_file.get(&row.path).copied();
        let by_id = row.id.as_ref().and_then(|id| self.by_id.get(id)).copied();
        if self.columns.annotator {
            return match (by_file, by_id, &row.id) {
                (Some((a, _)), Some((b, first)), Some(id)) if a != b => {
                    Err(self.both(first, row.line, &format!("the id {id:?} names two images")))
                }
                (None, Some((_, first)), Some(id)) => {
                    Err(self.both(first, row.line, &format!("the id {id:?} names two images")))
                }
                (Some((_, first)), None, Some(_)) => {
                    let what = format!("the image {:?} has two ids", row.path);
                    Err(self.both(first, row.line, &what))
                }
                _ => Ok(by_file),
            };
        }
        if let (Some((_, first)), Some(id)) = (by_id, &row.id) {
            let what = format!("have the same id {id:?}; ids must be distinct");
            return Err(self.both(first, row.line, &what));
        }
        if let Some((_, first)) = by_file {
            let what = format!(
                "list the same image {:?}; keep one of them, or say in a column \"annotator\" who \
                 gave which label",
                row.path
            );
            return Err(self.both(first, row.line, &what));
        }
        Ok(None)
    }

    fn add_example(&mut self, row: &Row, clean: Option<u32>) -> usize {
        let example = self.files.len();
        self.files.push(&row.path);
        self.by_file.insert(row.path.clone(), (example, row.line));
        if let Some(id) = &row.id {
            self.by_id.insert(id.clone(), (example, row.line));
            self.ids.push(id.clone());
        }
        self.first_lines.push(row.line);
        self.clean.extend(clean);
        self.weights.extend(row.weight);
        example
    }

    /// Rows of one example must agree.
    fn agree(
        &self,
        row: &Row,
        example: usize,
        first: u32,
        clean: Option<u32>,
    ) -> Result<(), DataError> {
        let other = |what: &str| {
            let what = format!("give {:?} two different values of {what}", row.path);
            Err(self.both(first, row.line, &what))
        };
        if clean.is_some_and(|clean| self.clean[example] != clean) {
            return other("clean_label");
        }
        if row.weight.is_some_and(|weight| self.weights[example] != weight) {
            return other("weight");
        }
        Ok(())
    }

    fn both(&self, first: u32, second: u32, what: &str) -> DataError {
        DataError::invalid(self.path, format!("lines {first} and {second}: {what}"))
    }

    fn finish(self, folder: &Path, framing: &Framing) -> Result<Opened, DataError> {
        let ids: Vec<String> = if self.columns.id {
            self.ids
        } else {
            (0..self.files.len()).map(|at| self.files.get(at).to_string()).collect()
        };
        let places = Places::Files { root: folder.to_path_buf(), names: self.files };
        check_files(self.path, &places, &self.first_lines)?;
        let clean_labels = self.columns.clean_label.then(|| {
            WrittenLabels::new(self.path, self.clean_words, self.clean, Some(self.first_lines))
        });
        let weights = self.columns.weight.then_some(self.weights);
        let written = |words, labels, lines| WrittenLabels::new(self.path, words, labels, lines);
        let labels = if self.columns.annotator {
            let (order, offsets) = grouped(&self.example_of, ids.len());
            let pick = |of: &[u32]| -> Vec<u32> { order.iter().map(|row| of[*row]).collect() };
            let lines = Some(pick(&self.lines));
            let labels = written(self.label_words, pick(&self.labels), lines);
            let annotators = written(self.annotator_words, pick(&self.annotators), None);
            CarriedLabels::Annotated(WrittenAnnotations::new(offsets, labels, annotators))
        } else {
            CarriedLabels::Written(written(self.label_words, self.labels, Some(self.lines)))
        };
        let inputs = encoded::open(self.path, places, framing)?;
        Ok(Opened { clean_labels, weights, labels: Some(labels), ..Opened::new(inputs) }
            .with_ids(ids))
    }
}

/// Every image is there; `lines` are where the manifest names them.
fn check_files(path: &Path, places: &Places, lines: &[u32]) -> Result<(), DataError> {
    let missing = (0..places.len()).into_par_iter().find_map_first(|row| {
        let is_there = std::fs::metadata(places.path(row)).is_ok_and(|found| found.is_file());
        (!is_there).then_some(row)
    });
    let Some(row) = missing else { return Ok(()) };
    let message = format!(
        "line {}: there is no file {}; paths are relative to the manifest's folder",
        lines[row],
        places.path(row).display()
    );
    Err(DataError::invalid(path, message))
}

/// The rows sorted by their example, and where those of each example begin: annotations of one
/// image need not be adjacent.
fn grouped(example_of: &[usize], examples: usize) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..example_of.len()).collect();
    order.sort_by_key(|row| example_of[*row]);
    let mut offsets = vec![0; examples + 1];
    example_of.iter().for_each(|example| offsets[example + 1] += 1);
    (0..examples).for_each(|at| offsets[at + 1] += offsets[at]);
    (order, offsets)
}
