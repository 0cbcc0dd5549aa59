//! Label files that name their examples: matched by id, in any order.

use std::collections::{BTreeMap, BTreeSet};

use aleator_run::recipe::{LabelKind, Link};

use super::classes::Classes;
use super::read::{RawLabels, Role};
use super::sets::WrittenSets;
use super::table::{Table, is_one};
use super::votes::{LongTable, unknown_example};
use super::{Labels, pick};
use crate::array::{Array, Values, table};
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::weight_of;

const ID: [&str; 3] = ["id", "example", "example_id"];
const LABEL: [&str; 4] = ["label", "labels", "class", "target"];
const WEIGHT: [&str; 1] = ["weight"];

/// A cell that a spreadsheet would take for a formula has a `'` before it in the files that we
/// write.
const GUARDED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

/// The rows of a table with a column of ids: the label of each, or its value for each class.
#[derive(Debug)]
pub(crate) struct LabelsById {
    path: String,
    /// The id of each row.
    ids: Vec<String>,
    /// The labels in the order of the rows.
    pub labels: Box<RawLabels>,
    /// The column of labels as written: the name of a class may be a number that is not its
    /// position.
    pub words: Option<Vec<String>>,
    /// The column `weight` beside a column of labels.
    weights: Option<Vec<f32>>,
    /// Whether examples without a row are left out, or refused.
    may_leave_out: bool,
}

impl LabelsById {
    /// Reads a table with a header that has a column of ids; `None` for any
    /// other file.
    pub fn load(
        spec: &str,
        kind: LabelKind,
        link: Link,
        role: Role,
    ) -> Result<Option<Self>, DataError> {
        let Some((header, cells)) = table::written(spec, |name| is_one(name, &ID))? else {
            return Ok(None);
        };
        let header: Vec<String> = header.iter().map(|cell| unguarded(cell)).collect();
        let at = header.iter().position(|name| is_one(name, &ID));
        let Some(at) = at.filter(|_| cells.rows() > 0 && !LongTable::is_header(&header)) else {
            return Ok(None);
        };
        if cells.column(at).any(|cell| is_one(cell, &ID)) {
            return Ok(None);
        }
        let ids: Vec<String> = cells.column(at).map(unguarded).collect();
        let others: Vec<usize> = (0..header.len()).filter(|column| *column != at).collect();
        let named = others.iter().copied().find(|column| is_one(&header[*column], &LABEL));
        if let Some(column) = named.filter(|_| link == Link::Sigmoid)
            && let Some((ids, sets)) = sets(spec, kind, &header, &ids, cells.column(column))?
        {
            let labels = Box::new(RawLabels::Sets(sets));
            let (path, may_leave_out) = (spec.to_string(), role == Role::Training);
            let (words, weights) = (None, None);
            return Ok(Some(Self { path, ids, labels, words, weights, may_leave_out }));
        }
        let is_binary = |cell: &str| matches!(cell.trim(), "0" | "1");
        let binary = others.iter().all(|column| cells.column(*column).all(is_binary));
        let each_class = match kind {
            LabelKind::Single => false,
            LabelKind::MultiHot => true,
            _ => named.is_none() && others.len() > 1 || link == Link::Sigmoid && binary,
        };
        let columns = if each_class { others } else { vec![named.unwrap_or(others[0])] };
        let rows = cells.rows();
        let picked: Vec<String> = (0..rows)
            .flat_map(|row| columns.iter().map(move |column| (row, *column)))
            .map(|(row, column)| unguarded(cells.at(row, column)))
            .collect();
        let words = (!each_class).then(|| picked.clone());
        // Without a column of labels it may be the name of a class.
        let weighted = header.iter().position(|name| is_one(name, &WEIGHT));
        let weighted = weighted.filter(|_| !each_class && named.is_some());
        let weights = weighted.map(|column| weights(spec, cells.column(column))).transpose()?;
        let names = columns.iter().map(|column| header[*column].trim().to_string()).collect();
        let shape = if each_class { vec![rows, columns.len()] } else { vec![rows] };
        let array = Array { shape, values: typed(picked), columns: Some(names) };
        let table = Table::new(spec, array)?;
        let labels = match (kind, each_class) {
            (LabelKind::Auto, true) if binary && link == Link::Sigmoid => {
                RawLabels::MultiHot(table)
            }
            (LabelKind::Auto | LabelKind::Single, false) => RawLabels::Single(table),
            _ => RawLabels::of_table(table, kind, link)?,
        };
        let (path, may_leave_out) = (spec.to_string(), role == Role::Training);
        Ok(Some(Self { path, ids, labels: Box::new(labels), words, weights, may_leave_out }))
    }

    /// Whether a column besides that of the ids is certainly the one of the labels: by its name, or
    /// because there is no other.
    pub fn has_one_column_of_labels(spec: &str) -> Result<bool, DataError> {
        let header = table::written(spec, |name| is_one(name, &ID))?;
        let is_label = |name: &String| is_one(&unguarded(name), &LABEL);
        Ok(header.is_some_and(|(header, _)| header.len() == 2 || header.iter().any(is_label)))
    }

    /// The examples that have a row, where others have none and may be left out.
    pub fn labelled(&self, ids: &Ids) -> Option<Vec<usize>> {
        let named: BTreeSet<&str> = self.ids.iter().map(|id| id.trim()).collect();
        let has_row = |at: &usize| named.contains(ids.name(*at).trim());
        let labelled: Vec<usize> = (0..ids.len()).filter(has_row).collect();
        (self.may_leave_out && labelled.len() < ids.len()).then_some(labelled)
    }

    /// The weights in the order of the examples, where the file has them.
    pub fn weights(&self, ids: &Ids) -> Result<Option<Vec<f32>>, DataError> {
        let Some(weights) = &self.weights else { return Ok(None) };
        Ok(Some(pick(weights, &self.rows(ids)?)))
    }

    /// The labels in the order of the examples.
    pub fn read(&self, classes: &Classes, ids: &Ids, link: Link) -> Result<Labels, DataError> {
        let rows = self.rows(ids)?;
        Ok(self.as_written(classes, link)?.select(&rows))
    }

    /// The ids and the labels in the order of the rows.
    pub fn in_rows(&self, classes: &Classes, link: Link) -> Result<(&[String], Labels), DataError> {
        Ok((&self.ids, self.as_written(classes, link)?))
    }

    fn as_written(&self, classes: &Classes, link: Link) -> Result<Labels, DataError> {
        let named = |words: &Vec<String>| -> Option<Vec<u32>> {
            words.iter().map(|word| classes.numbers.get(word.trim()).copied()).collect()
        };
        match self.words.as_ref().and_then(named) {
            Some(labels) => Ok(Labels::Single(labels)),
            None if matches!(*self.labels, RawLabels::Sets(_)) => {
                self.labels.read(classes, &Ids::Names(self.ids.clone()), link)
            }
            None => self.labels.read(classes, &Ids::Rows(self.ids.len()), link),
        }
    }

    /// The row of each example.
    fn rows(&self, ids: &Ids) -> Result<Vec<usize>, DataError> {
        let refuse = |message: String| DataError::invalid(&self.path, message);
        let example_of: BTreeMap<String, usize> =
            (0..ids.len()).map(|at| (ids.name(at).trim().to_string(), at)).collect();
        let mut rows = vec![None; ids.len()];
        for (row, id) in self.ids.iter().enumerate() {
            let Some(example) = example_of.get(id.trim()).copied() else {
                let message = unknown_example(id, ids);
                return Err(refuse(format!("row {row} (counted from 0): {message}")));
            };
            if let Some(first) = rows[example].replace(row) {
                return Err(refuse(format!(
                    "rows {first} and {row} (counted from 0) both label the example {id:?}; keep \
                     one of them"
                )));
            }
        }
        let Some(first) = rows.iter().position(Option::is_none) else {
            return Ok(rows.into_iter().flatten().collect());
        };
        Err(refuse(format!(
            "has no row for {} of the {} examples, the first of which is {:?}; give each its label, \
             or take it out of the inputs",
            rows.iter().filter(|row| row.is_none()).count(),
            ids.len(),
            ids.name(first)
        )))
    }
}

/// The ids and sets of a table with one column of labels, whose rows name several classes of one
/// example: in one cell, or in a row each. `None` where every row is one class.
fn sets<'a>(
    spec: &str,
    kind: LabelKind,
    header: &[String],
    ids: &[String],
    labels: impl Iterator<Item = &'a str>,
) -> Result<Option<(Vec<String>, WrittenSets)>, DataError> {
    let labels: Vec<String> = labels.map(unguarded).collect();
    let distinct: BTreeSet<&str> = ids.iter().map(|id| id.trim()).collect();
    let long = distinct.len() < ids.len();
    let is_binary = |cell: &String| matches!(cell.trim(), "0" | "1");
    let kind = match kind {
        // A column of zeros and ones is a class that is on or off.
        LabelKind::MultiHot if !long && labels.iter().all(is_binary) => return Ok(None),
        LabelKind::Auto if long => LabelKind::MultiHot,
        kind => kind,
    };
    if !RawLabels::are_sets(&labels, kind, Link::Sigmoid) {
        return Ok(None);
    }
    if header.iter().any(|name| is_one(name, &WEIGHT)) {
        let message = "has a column \"weight\", and weights need head.link = \"softmax\"; remove \
                       the column";
        return Err(DataError::invalid(spec, message));
    }
    let rows = ids.iter().map(|id| id.trim()).zip(labels.iter().map(String::as_str));
    let (ids, texts) = WrittenSets::grouped(rows);
    let sets = WrittenSets::new(spec.as_ref(), texts.iter().map(String::as_str));
    Ok(Some((ids, sets)))
}

fn weights<'a>(spec: &str, cells: impl Iterator<Item = &'a str>) -> Result<Vec<f32>, DataError> {
    let weight = |(row, cell): (usize, &str)| {
        weight_of(cell.trim()).map_err(|message| {
            DataError::invalid(spec, format!("row {row} (counted from 0): {message}"))
        })
    };
    cells.enumerate().map(weight).collect()
}

/// Numbers where all cells are, so that they are recognised as in other tables.
fn typed(cells: Vec<String>) -> Values {
    let ints: Option<Vec<i64>> = cells.iter().map(|cell| cell.trim().parse().ok()).collect();
    if let Some(ints) = ints {
        return Values::Int(ints);
    }
    let floats: Option<Vec<f64>> = cells.iter().map(|cell| cell.trim().parse().ok()).collect();
    floats.map_or(Values::Text(cells), Values::Float)
}

/// The text of a cell without the mark that keeps a spreadsheet from computing it.
fn unguarded(cell: &str) -> String {
    match cell.strip_prefix('\'') {
        Some(text) if text.starts_with(GUARDED) => text.to_string(),
        _ => cell.to_string(),
    }
}
