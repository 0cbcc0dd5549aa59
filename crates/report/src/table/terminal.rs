//! Aligned text for a person at a terminal, or plain for a pipe.

use unicode_width::UnicodeWidthStr;

use super::{Cell, NOTHING, RUNS, Table, TableRow, on_one_line};

/// What the place that the text goes to can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Letters on a line; columns that do not fit go below. None for no bound.
    pub width: Option<usize>,
    /// Whether the best is bold; else it has a star.
    pub bold: bool,
}

const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Between two columns.
const GAP: usize = 2;

impl Terminal {
    pub(super) fn text(&self, table: &Table) -> String {
        let mut out = String::new();
        if let Some(title) = &table.title {
            out.push_str(&format!("{}\n\n", on_one_line(title)));
        }
        let names = Names::of(table);
        let columns: Vec<TextColumn> =
            (0..table.columns.len()).map(|at| self.column(table, at)).collect();
        for (index, block) in self.blocks(names.width, columns).iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            for (at, name) in names.lines.iter().enumerate() {
                let cells: String = block.iter().map(|column| column.line(at)).collect();
                let line = format!("{}{cells}", padded_right(name, names.width));
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
        let mark = if self.bold { "Bold: the" } else { "* The" };
        let (first, others) = table.notes.split_at(table.notes.len().min(1));
        for note in first.iter().chain(&table.best_note(mark)).chain(others) {
            out.push_str(&format!("{}\n", on_one_line(note)));
        }
        out
    }

    /// Columns that fit beside the names, then those that go below them.
    fn blocks(&self, names: usize, columns: Vec<TextColumn>) -> Vec<Vec<TextColumn>> {
        let mut blocks = vec![vec![]];
        let mut used = names;
        for column in columns {
            let width = column.width();
            let full = self.width.is_some_and(|bound| used + width > bound);
            if full && blocks.last().is_some_and(|block| !block.is_empty()) {
                blocks.push(vec![]);
                used = names;
            }
            used += width;
            blocks.last_mut().into_iter().for_each(|block| block.push(column.clone()));
        }
        blocks
    }

    fn column(&self, table: &Table, at: usize) -> TextColumn {
        let column = &table.columns[at];
        let mut lines = vec![TextCell::plain(on_one_line(&column.heading))];
        for section in &table.sections {
            lines.extend(section.name.as_ref().map(|_| TextCell::plain(String::new())));
            lines.extend(section.rows.iter().map(|row| self.cell(row.cell(at), column.share)));
        }
        TextColumn { lines }
    }

    fn cell(&self, cell: &Cell, share: bool) -> TextCell {
        let Some(figures) = cell.figures(share) else {
            return TextCell::plain(NOTHING.to_string());
        };
        let spread = figures.std.map_or(String::new(), |std| format!(" ± {std}"));
        let unit = if share { " %" } else { "" };
        let text = format!("{}{spread}{unit}", figures.mean);
        let mark = match (figures.dagger, figures.best && !self.bold) {
            (true, _) => "†",
            (false, true) => "*",
            (false, false) => "",
        };
        TextCell { text, mark, bold: figures.best && self.bold }
    }
}

/// The left column: headings, groups and rows, with their numbers of runs where these differ.
struct Names {
    lines: Vec<String>,
    width: usize,
}

impl Names {
    fn of(table: &Table) -> Self {
        let grouped = table.sections.iter().any(|section| section.name.is_some());
        let indent = if grouped { "  " } else { "" };
        let mut names = vec![on_one_line(&table.heading)];
        let mut runs = vec![RUNS.to_string()];
        for section in &table.sections {
            if let Some(name) = &section.name {
                names.push(on_one_line(name));
                runs.push(String::new());
            }
            for TableRow { name, runs: count, .. } in &section.rows {
                names.push(format!("{indent}{}", on_one_line(name)));
                runs.push(count.map_or(NOTHING.to_string(), |count| count.to_string()));
            }
        }
        let widest = |texts: &[String]| texts.iter().map(|text| text.width()).max().unwrap_or(0);
        let mut width = widest(&names);
        if table.runs_differ() {
            let (own, added) = (width, GAP + widest(&runs));
            let with_runs = |(name, runs): (&String, &String)| {
                format!("{}{}", padded_right(name, own), padded_left(runs, added))
            };
            names = names.iter().zip(&runs).map(with_runs).collect();
            width += added;
        }
        Self { lines: names, width }
    }
}

#[derive(Clone)]
struct TextColumn {
    lines: Vec<TextCell>,
}

#[derive(Clone)]
struct TextCell {
    text: String,
    mark: &'static str,
    bold: bool,
}

impl TextCell {
    fn plain(text: String) -> Self {
        Self { text, mark: "", bold: false }
    }
}

impl TextColumn {
    fn text_width(&self) -> usize {
        self.lines.iter().map(|cell| cell.text.width()).max().unwrap_or(0)
    }

    /// Of the marks with the space before them.
    fn mark_width(&self) -> usize {
        if self.lines.iter().any(|cell| !cell.mark.is_empty()) { 2 } else { 0 }
    }

    fn width(&self) -> usize {
        GAP + self.text_width() + self.mark_width()
    }

    fn line(&self, at: usize) -> String {
        let TextCell { text, mark, bold } = &self.lines[at];
        let blanks = " ".repeat(GAP + self.text_width() - text.width());
        let shown = if *bold { format!("{BOLD}{text}{PLAIN}") } else { text.clone() };
        let mark = if mark.is_empty() { String::new() } else { format!(" {mark}") };
        format!("{blanks}{shown}{}", padded_right(&mark, self.mark_width()))
    }
}

fn padded_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

fn padded_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}
