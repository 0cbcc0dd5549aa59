//! A planned table, filled with the existing runs.

use std::path::Path;

use aleator_run::RunError;

use super::error::CompareError;
use super::layout::{Layout, LayoutColumn, LayoutRow};
use super::notes::Notes;
use super::rows::{Row, Source};
use super::score::Score;
use super::view::{View, Wanted};
use super::{Spec, column, score_columns};
use crate::table::{Cell, Column, ColumnSource, Section, Table, TableRow};

/// The table of a layout: the runs in `root` next to the paper's numbers. A row whose runs are
/// missing or not finished has the paper's numbers only.
///
/// # Errors
/// When existing runs cannot be compared, or one of their files is damaged.
pub fn fill(layout: &Layout, root: &Path) -> Result<Table, CompareError> {
    let mut filled =
        Filled { layout, root, notes: Notes::default(), views: vec![], without: vec![] };
    let groups = layout.groups().into_iter();
    let sections = groups.map(|group| filled.section(group)).collect::<Result<_, _>>()?;
    let title = match &layout.paper {
        Some(paper) => format!("{} (paper: {paper})", layout.title),
        None => layout.title.clone(),
    };
    Ok(Table {
        title: Some(title),
        heading: String::new(),
        columns: columns(layout),
        sections,
        notes: filled.into_notes(),
    })
}

/// The columns of the runs, each followed by that of the paper.
fn columns(layout: &Layout) -> Vec<Column> {
    let mut columns = vec![];
    for (at, planned) in layout.columns.iter().enumerate() {
        let ours = column(planned.heading(), planned.measure, planned.split);
        let heading = format!("paper: {}", ours.heading);
        let paper = Column { heading, source: ColumnSource::Paper, ..ours.clone() };
        columns.push(ours);
        columns.extend(layout.is_published(at).then_some(paper));
    }
    columns
}

struct Filled<'a> {
    layout: &'a Layout,
    root: &'a Path,
    notes: Notes,
    /// The views that were used.
    views: Vec<View>,
    /// Recipes of rows without a run.
    without: Vec<&'a str>,
}

impl<'a> Filled<'a> {
    fn section(&mut self, group: Option<&str>) -> Result<Section, CompareError> {
        let mut present: Vec<Row> = vec![];
        // Each row, and which of those that are present it is.
        let mut planned = vec![];
        for row in self.layout.rows.iter().filter(|row| row.group.as_deref() == group) {
            let read = self.row(row)?;
            planned.push((row, read.is_some().then_some(present.len())));
            present.extend(read);
        }
        let scores = self.scores(&present)?;
        let row = |(row, at): (&LayoutRow, Option<usize>)| TableRow {
            name: row.name.clone(),
            runs: at.map(|at| present[at].runs.len()),
            cells: self.cells(row, |column| at.and_then(|at| scores[column][at])),
        };
        let rows = planned.into_iter().map(row).collect();
        Ok(Section { name: group.map(String::from), rows })
    }

    /// The runs of a row, if they exist and are finished.
    fn row(&mut self, row: &'a LayoutRow) -> Result<Option<Row>, CompareError> {
        let Some(run) = &row.run else { return Ok(None) };
        let dir = self.root.join(run);
        if !dir.exists() {
            self.without.extend(row.recipe.as_deref());
            return Ok(None);
        }
        match Row::read(&[Source { name: Some(row.name.clone()), dir: dir.clone() }]) {
            Err(error @ CompareError::Run(RunError::Unfinished { .. })) => {
                self.notes.lines.push(format!("{}: {error}", row.name));
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(rows) => match <[Row; 1]>::try_from(rows) {
                Ok([found]) => Ok(Some(found)),
                Err(_) => Err(CompareError::SeveralRows { dir, row: row.name.clone() }),
            },
        }
    }

    fn scores(&mut self, present: &[Row]) -> Result<Vec<Vec<Option<Score>>>, CompareError> {
        if present.is_empty() {
            return Ok(vec![]);
        }
        let mut specs = vec![];
        for LayoutColumn { measure, split, labels, .. } in &self.layout.columns {
            let wanted = Wanted { split: Some(*split), labels: *labels, calibrated: false };
            let view = wanted.choose(present)?;
            if !self.views.contains(&view) {
                self.views.push(view);
            }
            specs.push(Spec { heading: String::new(), measure: *measure, view });
        }
        score_columns(present, &specs, self.layout.test, &mut self.notes)
    }

    fn cells(&self, row: &LayoutRow, score: impl Fn(usize) -> Option<Score>) -> Vec<Cell> {
        let mut cells = vec![];
        for at in 0..self.layout.columns.len() {
            cells.push(Cell::of_score(score(at)));
            if self.layout.is_published(at) {
                let published = row.published.get(at).cloned().flatten();
                cells.push(published.map_or(Cell::Missing, Cell::Published));
            }
        }
        cells
    }

    fn into_notes(self) -> Vec<String> {
        let root = self.root.display();
        let shown = |view: &View| format!("{} split, {}", view.split.name(), view.labels.name());
        let seen = self.views.iter().map(shown).collect::<Vec<_>>().join("; ");
        let mut lines = vec![if seen.is_empty() {
            format!("No runs of this table in {root}.")
        } else {
            format!("Runs in {root}: mean ± standard deviation over seeds; {seen}.")
        }];
        if !self.without.is_empty() && !seen.is_empty() {
            lines.push(format!("No runs in {root} of {}.", self.without.join(", ")));
        }
        if self.layout.rows.iter().any(|row| !row.published.is_empty()) {
            lines.push("paper: as it was printed, † as its authors tested.".to_string());
        }
        lines.extend(self.notes.finish());
        lines
    }
}
