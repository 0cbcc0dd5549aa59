//! A table of scores, and its forms: one file for each.

pub mod columns;
mod csv;
mod latex;
mod markdown;
mod terminal;

pub use terminal::Terminal;

use crate::compare::{Published, Score};

/// Numbers by row and column, with what must be known to read them.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What stands above it.
    pub title: Option<String>,
    /// The heading of the rows' names.
    pub heading: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, in groups that are each compared by themselves.
    pub sections: Vec<Section>,
    /// What stands below it.
    pub notes: Vec<String>,
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in files, as `test_top1`.
    pub key: String,
    /// Its name for people.
    pub heading: String,
    /// Whether its numbers are shown in percent.
    pub share: bool,
    /// Whose numbers these are.
    pub source: ColumnSource,
}

/// Whose numbers stand in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSource {
    /// Measured: cells are scores.
    Runs,
    /// Of a paper: cells are as they were printed.
    Paper,
}

/// Rows that are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What they have in common, where there are several groups.
    pub name: Option<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// What it is called.
    pub name: String,
    /// Over how many runs; none without any.
    pub runs: Option<usize>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// What stands at a row and column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    Missing,
    /// Of our runs.
    Score(Score),
    /// Of a paper.
    Published(Published),
}

/// A form that a table takes.
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
    /// The table as a text that ends in a new line.
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

    /// Whether the number of runs must be said for each row.
    fn runs_differ(&self) -> bool {
        let mut counts = self.rows().filter_map(|row| row.runs);
        let first = counts.next();
        counts.any(|count| Some(count) != first)
    }

    fn has_best(&self) -> bool {
        let is_best = |cell: &Cell| matches!(cell, Cell::Score(score) if score.best);
        self.rows().flat_map(|row| &row.cells).any(is_best)
    }

    /// What the mark of the best means, after its first words.
    fn best_note(&self, mark: &str) -> Option<String> {
        let group = if self.sections.len() > 1 { " and group" } else { "" };
        self.has_best().then(|| format!("{mark} best of its column{group}."))
    }
}

impl TableRow {
    fn cell(&self, at: usize) -> &Cell {
        self.cells.get(at).unwrap_or(&Cell::Missing)
    }
}

impl Cell {
    /// Of a score, if there is one.
    pub fn of_score(score: Option<Score>) -> Self {
        score.map_or(Self::Missing, Self::Score)
    }

    /// The texts that every form puts together in its own way.
    fn figures(&self, share: bool) -> Option<Figures> {
        match self {
            Self::Missing => None,
            Self::Score(score) => Some(Figures {
                mean: number(score.mean, share),
                std: score.std.map(|std| number(std, share)),
                dagger: score.is_significant(),
                best: score.best,
            }),
            Self::Published(published) => Some(Figures {
                mean: published.mean.text.clone(),
                std: published.std.as_ref().map(|std| std.text.clone()),
                dagger: published.dagger,
                best: false,
            }),
        }
    }
}

/// A cell as texts.
struct Figures {
    mean: String,
    std: Option<String>,
    dagger: bool,
    best: bool,
}

/// What stands where nothing is known.
const NOTHING: &str = "–";

/// The heading of the numbers of runs.
const RUNS: &str = "runs";

fn number(value: f64, share: bool) -> String {
    match (value.is_infinite(), share) {
        (true, _) => "∞".to_string(),
        (false, true) => format!("{:.2}", 100.0 * value),
        (false, false) => format!("{value:.4}"),
    }
}
