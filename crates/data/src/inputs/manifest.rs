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
use crate::labels::{Words, WrittenAnnotations};
use rows::{Field, Row};

pub(crate) use rows::weight_of;
pub(crate) use rows::{Manifest, Overview, is_manifest_name};
pub(super) use rows::{label_word, word};

/// Opens the images of a manifest, or of one split of it.
pub(crate) fn open(
    path: &Path,
    split: Option<&str>,
    framing: &Framing,
) -> Result<Opened, DataError> {
    let manifest = Manifest::open(path)?;
    manifest.check_split(split)?;
    let mut examples = Examples::default();
    manifest.each_row(|row| match (split, &row.split) {
        (Some(wanted), Some(found)) if *found != wanted => Ok(()),
        _ => examples.add(&manifest, &row),
    })?;
    examples.finish(&manifest, framing)
}

/// The examples of the rows read so far.
#[derive(Default)]
struct Examples {
    /// Path of each example.
    files: Names,
    /// Where the manifest has none, the paths.
    ids: Vec<String>,
    /// Example of each path, and of each id.
    by_file: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
    /// Of each row: its example, line, label and annotator.
    example_of: Vec<usize>,
    lines: Vec<u32>,
    labels: Words,
    annotators: Words,
    /// Of each example: its first line and what all of its rows must agree on.
    first_lines: Vec<u32>,
    clean: Words,
    weights: Vec<f32>,
    /// (example, annotator) → line.
    answered: BTreeMap<(usize, u32), u32>,
}

impl Examples {
    fn add(&mut self, manifest: &Manifest, row: &Row) -> Result<(), DataError> {
        let refuse = |first: u32, what: String| {
            let message = format!("lines {first} and {}: {what}", row.line);
            Err(DataError::invalid(&manifest.path, message))
        };
        let by_annotators = manifest.fields.contains(&Field::Annotator);
        let example = match self.known(row, by_annotators) {
            Ok(Some(example)) => example,
            Ok(None) => self.add_example(row),
            Err((first, what)) => return refuse(self.first_lines[first], what),
        };
        if let Some(annotator) = &row.annotator {
            let who = self.annotators.push(annotator);
            if let Some(first) = self.answered.insert((example, who), row.line) {
                let what = format!("annotator {annotator} labels {} twice; keep one", row.path);
                return refuse(first, what);
            }
        }
        self.example_of.push(example);
        self.lines.push(row.line);
        self.labels.push(&row.label);
        Ok(())
    }

    /// The example of a row, if an earlier row had the same one; or the example that it
    /// contradicts, and how.
    fn known(&self, row: &Row, by_annotators: bool) -> Result<Option<usize>, (usize, String)> {
        let (path, id) = (&row.path, row.id.as_deref().unwrap_or_default());
        let by_file = self.by_file.get(path).copied();
        let by_id = self.by_id.get(id).copied();
        let (example, what) = match (by_annotators, by_file, by_id) {
            (true, _, Some(other)) if by_file != by_id => {
                (other, format!("the id {id:?} names two images"))
            }
            (true, Some(other), None) if row.id.is_some() => {
                (other, format!("the image {path:?} has two ids"))
            }
            (true, Some(example), _) => match self.difference(row, example) {
                Some(what) => (example, format!("give {path:?} two different values of {what}")),
                None => return Ok(by_file),
            },
            (_, None, None) => return Ok(None),
            (_, _, Some(other)) => {
                (other, format!("have the same id {id:?}; ids must be distinct"))
            }
            (false, Some(other), None) => {
                let what = format!(
                    "list the same image {path:?}; keep one of them, or say in a column \
                     \"annotator\" who gave which label"
                );
                (other, what)
            }
        };
        Err((example, what))
    }

    /// What all rows of one example must agree on, if this one does not.
    fn difference(&self, row: &Row, example: usize) -> Option<&'static str> {
        if row.clean_label.as_ref().is_some_and(|clean| self.clean.get(example) != clean) {
            return Some("clean_label");
        }
        row.weight.is_some_and(|weight| self.weights[example] != weight).then_some("weight")
    }

    fn add_example(&mut self, row: &Row) -> usize {
        let example = self.ids.len();
        self.files.push(&row.path);
        self.by_file.insert(row.path.clone(), example);
        if let Some(id) = &row.id {
            self.by_id.insert(id.clone(), example);
        }
        self.ids.push(row.id.as_ref().unwrap_or(&row.path).clone());
        self.first_lines.push(row.line);
        if let Some(clean) = &row.clean_label {
            self.clean.push(clean);
        }
        self.weights.extend(row.weight);
        example
    }

    fn finish(mut self, manifest: &Manifest, framing: &Framing) -> Result<Opened, DataError> {
        let has = |field: Field| manifest.fields.contains(&field);
        let path = manifest.path.as_path();
        let places = Places::Files { root: manifest.folder().to_path_buf(), names: self.files };
        check_files(path, &places, &self.first_lines)?;
        let clean_labels =
            has(Field::CleanLabel).then(|| self.clean.written(path, Some(self.first_lines)));
        let labels = if has(Field::Annotator) {
            let (order, offsets) = grouped(&self.example_of, self.ids.len());
            let sort = |of: &mut Vec<u32>| *of = order.iter().map(|row| of[*row]).collect();
            sort(&mut self.lines);
            sort(&mut self.labels.positions);
            sort(&mut self.annotators.positions);
            let labels = self.labels.written(path, Some(self.lines));
            let annotators = self.annotators.written(path, None);
            CarriedLabels::Annotated(WrittenAnnotations::new(offsets, labels, annotators))
        } else {
            CarriedLabels::Written(self.labels.written(path, Some(self.lines)))
        };
        Ok(Opened {
            labels: Some(labels),
            clean_labels,
            weights: has(Field::Weight).then_some(self.weights),
            ids: Some(self.ids),
            ..Opened::new(encoded::open(path, places, framing)?)
        })
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
    let begin = |example| order.partition_point(|row| example_of[*row] < example);
    let offsets = (0..=examples).map(begin).collect();
    (order, offsets)
}
