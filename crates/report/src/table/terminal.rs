//! A table of scores as aligned text, for a terminal or a pipe.

use super::columns::{BOLD, GAP, PLAIN, lines, on_one_line, width};
use super::{Cell, NOTHING, RUNS, Table, TableRow};

/// What the output can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Characters on a line; columns that do not fit are printed below. `None` for no limit.
    pub width: Option<usize>,
    /// Whether the best is bold; otherwise it has a star.
    pub bold: bool,
}

/// The cells of a column, from its heading down.
type TextColumn = Vec<String>;

impl Terminal {
    pub(super) fn text(&self, table: &Table) -> String {
        let mut out = String::new();
        if let Some(title) = &table.title {
            out.push_str(&format!("{}\n\n", on_one_line(title, None)));
        }
        let names = names(table);
        let columns = (0..table.columns.len()).map(|at| self.column(table, at)).collect();
        for (index, block) in self.blocks(&names, columns).iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            let row =
                |at: usize| names.iter().chain(block).map(|cells| cells[at].clone()).collect();
            let rows: Vec<Vec<String>> = (0..names[0].len()).map(row).collect();
            for line in lines(&[], &rows, &[0]) {
                out.push_str(&line);
                out.push('\n');
            }
        }
        let mark = if self.bold { "Bold: the" } else { "* The" };
        for note in table.notes_with_best(mark) {
            out.push_str(&format!("{}\n", on_one_line(&note, None)));
        }
        out
    }

    /// Columns that fit on a line after the names, then those that are printed below.
    fn blocks(&self, names: &[TextColumn], columns: Vec<TextColumn>) -> Vec<Vec<TextColumn>> {
        let wide = |column: &TextColumn| {
            GAP.len() + column.iter().map(|cell| width(cell)).max().unwrap_or(0)
        };
        let names = names.iter().map(wide).sum::<usize>() - GAP.len();
        let mut blocks: Vec<Vec<TextColumn>> = vec![vec![]];
        let mut used = names;
        for column in columns {
            let width = wide(&column);
            let last = blocks.len() - 1;
            if self.width.is_some_and(|limit| used + width > limit) && !blocks[last].is_empty() {
                blocks.push(vec![column]);
                used = names + width;
            } else {
                blocks[last].push(column);
                used += width;
            }
        }
        blocks
    }

    fn column(&self, table: &Table, at: usize) -> TextColumn {
        let column = &table.columns[at];
        let mut cells = vec![(on_one_line(&column.heading, None), "")];
        for section in &table.sections {
            cells.extend(section.name.as_ref().map(|_| (String::new(), "")));
            cells.extend(section.rows.iter().map(|row| self.cell(row.cell(at), column.share)));
        }
        let marked = cells.iter().any(|(_, mark)| !mark.is_empty());
        let text = |(text, mark)| if marked { format!("{text} {mark:1}") } else { text };
        cells.into_iter().map(text).collect()
    }

    /// A cell and its mark.
    fn cell(&self, cell: &Cell, share: bool) -> (String, &'static str) {
        let Some(figures) = cell.figures(share) else { return (NOTHING.to_string(), "") };
        let spread = figures.std.map_or(String::new(), |std| format!(" ± {std}"));
        let text = format!("{}{spread}{}", figures.mean, figures.unit);
        let mark = match (figures.dagger, figures.best && !self.bold) {
            (true, _) => "†",
            (false, true) => "*",
            (false, false) => "",
        };
        (if figures.best && self.bold { format!("{BOLD}{text}{PLAIN}") } else { text }, mark)
    }
}

/// The names of groups and rows, and the numbers of runs where these differ.
fn names(table: &Table) -> Vec<TextColumn> {
    let grouped = table.sections.iter().any(|section| section.name.is_some());
    let indent = if grouped { "  " } else { "" };
    let mut names = vec![on_one_line(&table.heading, None)];
    let mut runs = vec![RUNS.to_string()];
    for section in &table.sections {
        if let Some(name) = &section.name {
            names.push(on_one_line(name, None));
            runs.push(String::new());
        }
        for TableRow { name, runs: count, .. } in &section.rows {
            names.push(format!("{indent}{}", on_one_line(name, None)));
            runs.push(count.map_or(NOTHING.to_string(), |count| count.to_string()));
        }
    }
    if table.runs_differ() { vec![names, runs] } else { vec![names] }
}
