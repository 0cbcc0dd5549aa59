//! A table of scores and the formats in which it is written, one file each.

pub mod columns;
mod csv;
mod latex;
mod markdown;
mod terminal;

pub use terminal::Terminal;

use crate::compare::{Published, Score};

/// Numbers by row and column, with notes.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The title above the table.
    pub title: Option<String>,
    /// The heading of the rows' names.
    pub heading: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, in groups that are each compared by themselves.
    pub sections: Vec<Section>,
    /// The notes below the table.
    pub notes: Vec<String>,
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in files, such as `test_top1`.
    pub key: String,
    /// Its heading.
    pub heading: String,
    /// Whether its numbers are shown in percent.
    pub share: bool,
    /// Where the numbers come from.
    pub source: ColumnSource,
}

/// Where the numbers of a column come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSource {
    /// Measured: cells are scores.
    Runs,
    /// From a paper: cells are as printed there.
    Paper,
}

/// Rows that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The name of the group, if there are several.
    pub name: Option<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// The number of runs; `None` without runs.
    pub runs: Option<usize>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Missing,
    /// From runs.
    Score(Score),
    /// From a paper.
    Published(Published),
}

/// A format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned text.
    Terminal(Terminal),
    /// A table of GitHub's Markdown.
    Markdown,
    /// A `table` with the rules of `booktabs`.
    Latex,
    /// All digits, for programs and spreadsheets; shares are fractions of 1.
    Csv,
}

impl Table {
    /// The table as text that ends with a newline.
    pub fn to_text(&self, format: Format) -> String {
        match format {
            Format::Terminal(terminal) => terminal.text(self),
            Format::Markdown => markdown::text(self),
            Format::Latex => latex::text(self),
            Format::Csv => csv::text(self),
        }
    }

    fn rows(&self) -> impl Iterator<Item = &TableRow> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Whether rows have different numbers of runs.
    fn runs_differ(&self) -> bool {
        let mut counts = self.rows().filter_map(|row| row.runs);
        let first = counts.next();
        counts.any(|count| Some(count) != first)
    }

    /// All notes; the second explains the mark of the best and begins with `mark`.
    fn notes_with_best(&self, mark: &str) -> Vec<String> {
        let mut notes = self.notes.clone();
        let is_best = |cell: &Cell| matches!(cell, Cell::Score(score) if score.best);
        if self.rows().flat_map(|row| &row.cells).any(is_best) {
            let group = if self.sections.len() > 1 { " and group" } else { "" };
            notes.insert(notes.len().min(1), format!("{mark} best of its column{group}."));
        }
        notes
    }

    /// The cells of a row after its name: the number of runs if rows differ in it, then those of
    /// the columns, each written by `text`.
    fn cells(
        &self,
        row: &TableRow,
        escaped: fn(&str) -> String,
        text: fn(Figures) -> String,
    ) -> Vec<String> {
        let runs = row.runs.map_or(escaped(NOTHING), |runs| runs.to_string());
        let cells = self.columns.iter().enumerate().map(|(at, Column { share, .. })| {
            let figures = row.cell(at).figures(*share);
            figures.map_or(escaped(NOTHING), text)
        });
        self.runs_differ().then_some(runs).into_iter().chain(cells).collect()
    }
}

impl TableRow {
    fn cell(&self, at: usize) -> &Cell {
        self.cells.get(at).unwrap_or(&Cell::Missing)
    }
}

impl Cell {
    /// The cell of a score, if there is one.
    pub fn of_score(score: Option<Score>) -> Self {
        score.map_or(Self::Missing, Self::Score)
    }

    /// The parts of the cell as text.
    fn figures(&self, share: bool) -> Option<Figures> {
        let unit = if share { " %" } else { "" };
        match self {
            Self::Missing => None,
            Self::Score(score) => Some(Figures {
                mean: number(score.mean, share),
                std: score.std.map(|std| number(std, share)),
                unit,
                dagger: score.is_significant(),
                best: score.best,
            }),
            Self::Published(published) => Some(Figures {
                mean: published.mean.text.clone(),
                std: published.std.as_ref().map(|std| std.text.clone()),
                unit,
                dagger: published.dagger,
                best: false,
            }),
        }
    }
}

/// The parts of a cell as text.
struct Figures {
    mean: String,
    std: Option<String>,
    unit: &'static str,
    dagger: bool,
    best: bool,
}

/// The text of a cell without a value.
const NOTHING: &str = "–";

/// The heading of the column with the numbers of runs.
const RUNS: &str = "runs";

fn number(value: f64, share: bool) -> String {
    match (value.is_infinite(), share) {
        (true, _) => "∞".to_string(),
        (false, true) => format!("{:.2}", 100.0 * value),
        (false, false) => format!("{value:.4}"),
    }
}
