//! A planned table, filled with the existing runs.

use std::path::Path;

use aleator_run::RunError;

use super::error::CompareError;
use super::folders::{Row, Source};
use super::layout::{Layout, LayoutRow};
use super::notes::Notes;
use super::score::Score;
use super::view::{View, Wanted};
use super::{Spec, score_columns};
use crate::table::{Cell, Column, ColumnSource, Section, Table, TableRow};

/// The table of a layout: the runs in `root` next to the paper's numbers. A row whose runs are
/// missing or not finished has the paper's numbers only.
///
/// # Errors
/// When existing runs cannot be compared, or one of their files is damaged.
pub fn fill(layout: &Layout, root: &Path) -> Result<Table, CompareError> {
    let mut filled =
        Filled { layout, root, notes: Notes::default(), views: vec![], without: vec![] };
    let groups = layout.groups();
    let sections: Vec<Section> =
        groups.iter().map(|group| filled.section(*group)).collect::<Result<_, _>>()?;
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
    for (at, column) in layout.columns.iter().enumerate() {
        let ours = Column {
            key: format!("{}_{}", column.split.name(), column.measure.key()),
            heading: column.heading().to_string(),
            share: column.measure.is_share(),
            source: ColumnSource::Runs,
        };
        let paper = layout.is_published(at).then(|| Column {
            heading: format!("paper: {}", ours.heading),
            source: ColumnSource::Paper,
            ..ours.clone()
        });
        columns.push(ours);
        columns.extend(paper);
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
        let of_group = |row: &&'a LayoutRow| row.group.as_deref() == group;
        let planned: Vec<&'a LayoutRow> = self.layout.rows.iter().filter(of_group).collect();
        let mut read: Vec<Option<Row>> = vec![];
        for row in &planned {
            read.push(self.row(row)?);
        }
        let present: Vec<&Row> = read.iter().flatten().collect();
        let scores = self.scores(&present)?;
        let mut next = 0;
        let mut rows = vec![];
        for (planned, row) in planned.iter().zip(&read) {
            let own: Option<Vec<Option<Score>>> =
                row.as_ref().map(|_| scores.iter().map(|column| column[next]).collect());
            next += usize::from(row.is_some());
            let runs = row.as_ref().map(|row| row.runs.len());
            let cells = self.cells(planned, own.as_deref());
            rows.push(TableRow { name: planned.name.clone(), runs, cells });
        }
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
                self.notes.line(format!("{}: {error}", row.name));
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(rows) => match <[Row; 1]>::try_from(rows) {
                Ok([found]) => Ok(Some(found)),
                Err(_) => Err(CompareError::SeveralRows { dir, row: row.name.clone() }),
            },
        }
    }

    fn scores(&mut self, present: &[&Row]) -> Result<Vec<Vec<Option<Score>>>, CompareError> {
        if present.is_empty() {
            return Ok(vec![vec![]; self.layout.columns.len()]);
        }
        let mut specs = vec![];
        for column in &self.layout.columns {
            let wanted =
                Wanted { split: Some(column.split), labels: column.labels, calibrated: false };
            let view = wanted.choose(present)?;
            if !self.views.contains(&view) {
                self.views.push(view);
            }
            specs.push(Spec { heading: String::new(), measure: column.measure, view });
        }
        score_columns(present, &specs, self.layout.test, &mut self.notes)
    }

    fn cells(&self, row: &LayoutRow, own: Option<&[Option<Score>]>) -> Vec<Cell> {
        let mut cells = vec![];
        for at in 0..self.layout.columns.len() {
            cells.push(Cell::of_score(own.and_then(|scores| scores[at])));
            if self.layout.is_published(at) {
                let published = row.published.get(at).cloned().flatten();
                cells.push(published.map_or(Cell::Missing, Cell::Published));
            }
        }
        cells
    }

    fn into_notes(self) -> Vec<String> {
        let root = self.root.display();
        let views = self.views.iter();
        let seen: Vec<String> = views
            .map(|view| format!("{} split, {}", view.split.name(), view.labels.name()))
            .collect();
        let seen = seen.join("; ");
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
