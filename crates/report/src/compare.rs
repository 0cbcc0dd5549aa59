//! Comparison of runs: mean ± standard deviation over seeds, the best of each column, and which
//! others it beats significantly.
//!
//! † marks a row that is significantly worse than the best of its column, as in the paper's tables:
//! p < 0.05 in a two-tailed t-test.

mod epochs;
mod error;
mod filled;
mod layout;
mod measure;
mod notes;
mod published;
mod rows;
mod same;
mod score;
mod view;

pub use epochs::ShownWeights;
pub use error::CompareError;
pub use filled::fill;
pub use layout::{Layout, LayoutColumn, LayoutRow, layouts};
pub use measure::{Direction, Measure};
pub use published::{Printed, Published};
pub(crate) use rows::baseline_first;
pub use rows::{Part, Row, SeedRun, Source};
pub use score::{Against, SIGNIFICANT, Score, Test, Values, scores};
pub use view::{Labels, View, Wanted};

use aleator_run::Split;

use crate::table::{Cell, Column, ColumnSource, Section, Table, TableRow};
use epochs::{Group, Groups};
use notes::Notes;
use same::Remarks;

/// How to compare rows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which numbers.
    pub wanted: Wanted,
    /// The columns; `None` for every measure that any row has.
    pub measures: Option<Vec<Measure>>,
    /// The test behind †.
    pub test: Test,
    /// Which weights; `None` for both where that makes a difference, each compared by itself.
    pub weights: Option<ShownWeights>,
}

/// One column of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The heading.
    pub heading: String,
    /// What is compared.
    pub measure: Measure,
    /// On which examples, against which labels.
    pub view: View,
}

/// A table of the rows, with notes that explain it.
///
/// # Errors
/// When rows were measured on different classes or examples, or lack the requested numbers.
pub fn compare(rows: &[Row], settings: &Settings) -> Result<Table, CompareError> {
    let groups = Groups::new(rows, settings.weights);
    let all = groups.rows();
    let view = settings.wanted.choose(&all)?;
    let has = |measure: &Measure| all.iter().any(|row| !view.values(row, *measure).is_empty());
    let measures = match &settings.measures {
        Some(measures) => measures.clone(),
        None => Measure::ALL.into_iter().filter(has).collect(),
    };
    let spec = |measure: Measure| Spec { heading: measure.heading().to_string(), measure, view };
    let specs: Vec<Spec> = measures.into_iter().map(spec).collect();
    table(&groups, &specs, settings.test, Notes::of_view(&view, rows))
}

/// A table with the given columns.
///
/// # Errors
/// As [`compare`].
pub fn compare_columns(rows: &[Row], specs: &[Spec], test: Test) -> Result<Table, CompareError> {
    table(&Groups::one(rows), specs, test, Notes::of_spread(rows))
}

fn table(
    groups: &Groups,
    specs: &[Spec],
    test: Test,
    mut notes: Notes,
) -> Result<Table, CompareError> {
    notes.lines.extend(groups.notes.iter().cloned());
    let sections = groups.groups.iter().map(|group| section(group, specs, test, &mut notes));
    let sections = sections.collect::<Result<_, _>>()?;
    Ok(Table {
        title: None,
        heading: String::new(),
        columns: specs.iter().map(|it| column(&it.heading, it.measure, it.view.split)).collect(),
        sections,
        notes: notes.finish(),
    })
}

fn section(
    group: &Group,
    specs: &[Spec],
    test: Test,
    notes: &mut Notes,
) -> Result<Section, CompareError> {
    let columns = score_columns(&group.rows, specs, test, notes)?;
    let row = |(at, row): (usize, &Row)| TableRow {
        name: row.name.clone(),
        runs: Some(row.runs.len()),
        cells: columns.iter().map(|scores| Cell::of_score(scores[at])).collect(),
    };
    let rows = group.rows.iter().enumerate().map(row).collect();
    Ok(Section { name: group.name.map(str::to_string), rows })
}

/// A column of scores.
fn column(heading: &str, measure: Measure, split: Split) -> Column {
    Column {
        key: format!("{}_{}", split.name(), measure.key()),
        heading: heading.to_string(),
        share: measure.is_share(),
        source: ColumnSource::Runs,
    }
}

/// The scores of rows that may be compared, column by column.
fn score_columns(
    rows: &[Row],
    specs: &[Spec],
    test: Test,
    notes: &mut Notes,
) -> Result<Vec<Vec<Option<Score>>>, CompareError> {
    let mut checked: Vec<(View, Remarks)> = vec![];
    let mut columns = vec![];
    for Spec { measure, view, .. } in specs {
        let remarks = match checked.iter().find(|(known, _)| known == view) {
            Some((_, remarks)) => *remarks,
            None => {
                let remarks = same::check(rows, view)?;
                checked.push((*view, remarks));
                remarks
            }
        };
        notes.other_files |= remarks.other_files;
        let values: Vec<Values> = rows.iter().map(|row| view.values(row, *measure)).collect();
        if remarks.both_links && measure.depends_on_link() {
            notes.not_compared(*measure);
            columns.push(values.iter().map(|row| Score::alone(&row.values)).collect());
            continue;
        }
        let found = scores(&values, measure.direction(), test);
        notes.scores(rows, &found);
        columns.push(found);
    }
    Ok(columns)
}
