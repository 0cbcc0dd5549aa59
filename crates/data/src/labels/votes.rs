//! Answers of several annotators: a column for each of them, or a row for each annotation.

use std::collections::BTreeMap;

use super::Votes;
use super::classes::Classes;
use super::read::check_count;
use super::table::{Cell, Table, is_one};
use crate::error::DataError;
use crate::ids::Ids;

const EXAMPLE: [&str; 4] = ["example", "id", "example_id", "task"];
const ANNOTATOR: [&str; 4] = ["annotator", "worker", "annotator_id", "worker_id"];
const LABEL: [&str; 2] = ["label", "answer"];

/// A row for each annotation: (example, annotator, label).
#[derive(Debug)]
pub(crate) struct LongTable {
    examples: Table,
    annotators: Table,
    pub labels: Table,
}

impl LongTable {
    /// Whether the columns' names are those of a long table.
    pub fn has_columns(table: &Table) -> bool {
        table.columns.as_ref().is_some_and(|columns| Self::is_header(columns))
    }

    /// Whether this is the header of a long table.
    pub fn is_header(header: &[String]) -> bool {
        let has = |names: &[&str]| header.iter().any(|column| is_one(column, names));
        has(&EXAMPLE) && has(&ANNOTATOR) && has(&LABEL)
    }

    /// # Panics
    /// Unless [`Self::has_columns`].
    pub fn new(table: &Table) -> Self {
        let column = |names: &[&str]| table.column(table.find_column(names).expect("checked"));
        Self { examples: column(&EXAMPLE), annotators: column(&ANNOTATOR), labels: column(&LABEL) }
    }
}

/// `[N, annotators]`; blank or −1 where an annotator gave no answer.
pub(super) fn wide(table: &Table, classes: &Classes, examples: usize) -> Result<Votes, DataError> {
    check_count(table, examples)?;
    let numbers = || (0..table.width).map(|column| column.to_string()).collect();
    let mut votes = Votes::new(table.columns.clone().unwrap_or_else(numbers));
    for row in 0..table.rows {
        let mut answers = vec![];
        for column in 0..table.width {
            let cell = table.cell(row, column);
            if matches!(cell, Cell::Missing | Cell::Whole(-1)) {
                continue;
            }
            let place = |message| table.refuse_row(row, format!("column {column}: {message}"));
            answers.push((column as u32, classes.class(cell, &place)?));
        }
        if answers.is_empty() {
            return Err(table.refuse_row(row, NO_ANNOTATION));
        }
        votes.push(answers);
    }
    Ok(votes)
}

const NO_ANNOTATION: &str = "no annotator labelled this example; leave it out of the inputs, or \
                             out of the training source";

/// A row for each annotation, in any order.
pub(super) fn long(table: &LongTable, classes: &Classes, ids: &Ids) -> Result<Votes, DataError> {
    let example_of: BTreeMap<_, usize> = (0..ids.len()).map(|at| (ids.name(at), at)).collect();
    let (annotator_of, annotator_names) = annotators(&table.annotators)?;
    // Of each example, annotator → (row of the file, class): sorted as the votes must be.
    let mut answers: Vec<BTreeMap<u32, (usize, u32)>> = vec![BTreeMap::new(); ids.len()];
    for (row, annotator) in annotator_of.into_iter().enumerate() {
        let name = text(table.examples.cell(row, 0));
        let Some(example) = example_of.get(name.as_str()).copied() else {
            return Err(table.examples.refuse_row(row, unknown_example(&name, ids)));
        };
        let place = |message| table.labels.refuse_row(row, message);
        let class = classes.class(table.labels.cell(row, 0), &place)?;
        if let Some((first, _)) = answers[example].insert(annotator, (row, class)) {
            let who = &annotator_names[annotator as usize];
            return Err(table.labels.refuse(format!(
                "rows {first} and {row} (counted from 0): annotator {who} labels example {name} \
                 twice; keep one of them"
            )));
        }
    }
    let mut votes = Votes::new(annotator_names);
    for (example, answers) in answers.into_iter().enumerate() {
        if answers.is_empty() {
            let name = ids.name(example);
            return Err(table.labels.refuse(format!("example {name}: {NO_ANNOTATION}")));
        }
        votes.push(answers.into_iter().map(|(annotator, (_, class))| (annotator, class)));
    }
    Ok(votes)
}

/// The message about an id that no example has.
pub(super) fn unknown_example(name: &str, ids: &Ids) -> String {
    let known = match ids {
        Ids::Names(_) => format!("an id such as {:?}", ids.name(0)),
        _ => format!("a row of the inputs, 0 to {}, since the source names no ids", ids.len() - 1),
    };
    format!("there is no example {name:?}; expected {known}")
}

/// The annotator of each row, as a position in the sorted names; numbers sort as numbers.
fn annotators(table: &Table) -> Result<(Vec<u32>, Vec<String>), DataError> {
    let mut positions: BTreeMap<(i64, String), u32> = BTreeMap::new();
    let key = |row| match table.cell(row, 0) {
        Cell::Whole(value) => (value, String::new()),
        cell => (0, text(cell)),
    };
    for row in 0..table.rows {
        if table.cell(row, 0) == Cell::Missing {
            return Err(table.refuse_row(row, "has no annotator"));
        }
        positions.insert(key(row), 0);
    }
    positions.values_mut().zip(0..).for_each(|(position, at)| *position = at);
    let of_row = (0..table.rows).map(|row| positions[&key(row)]).collect();
    let name = |(value, word): &(i64, String)| {
        if word.is_empty() { value.to_string() } else { word.clone() }
    };
    Ok((of_row, positions.keys().map(name).collect()))
}

/// A cell as an id is written.
fn text(cell: Cell) -> String {
    match cell {
        Cell::Missing => String::new(),
        Cell::Word(word) => word.to_string(),
        number => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Values};

    #[test]
    fn blanks_around_the_names_of_columns_do_not_matter() {
        let columns = [" Example", "worker ", " label "].map(String::from).to_vec();
        let values = Values::Int(vec![0, 5, 1]);
        let array = Array { shape: vec![1, 3], values, columns: Some(columns) };
        let table = Table::new("answers", array).unwrap();
        assert!(LongTable::has_columns(&table));
        assert_eq!(LongTable::new(&table).labels.cell(0, 0), Cell::Whole(1));
    }
}
