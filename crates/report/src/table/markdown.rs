//! A table of GitHub's Markdown.

use super::columns::on_one_line;
use super::{Cell, NOTHING, RUNS, Table};

pub(super) fn text(table: &Table) -> String {
    let with_runs = table.runs_differ();
    let mut out = String::new();
    if let Some(title) = &table.title {
        out.push_str(&format!("**{}**\n\n", escaped(title)));
    }
    let mut headings = vec![escaped(&table.heading)];
    headings.extend(with_runs.then(|| RUNS.to_string()));
    headings.extend(table.columns.iter().map(|column| escaped(&column.heading)));
    let columns = headings.len();
    out.push_str(&line(headings));
    out.push_str(&format!("|---|{}\n", "---:|".repeat(columns - 1)));
    for section in &table.sections {
        if let Some(name) = &section.name {
            let mut cells = vec![String::new(); columns];
            cells[0] = format!("*{}*", escaped(name));
            out.push_str(&line(cells));
        }
        for row in &section.rows {
            let runs = row.runs.map_or(NOTHING.to_string(), |runs| runs.to_string());
            let mut cells = vec![escaped(&row.name)];
            cells.extend(with_runs.then_some(runs));
            let columns = table.columns.iter().enumerate();
            cells.extend(columns.map(|(at, column)| cell(row.cell(at), column.share)));
            out.push_str(&line(cells));
        }
    }
    let (first, others) = table.notes.split_at(table.notes.len().min(1));
    for note in first.iter().chain(&table.best_note("Bold: the")).chain(others) {
        out.push_str(&format!("\n{}\n", escaped(note)));
    }
    out
}

fn line(cells: Vec<String>) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn cell(cell: &Cell, share: bool) -> String {
    let Some(figures) = cell.figures(share) else { return NOTHING.to_string() };
    let mean = if figures.best { format!("**{}**", figures.mean) } else { figures.mean };
    let spread = figures.std.map_or(String::new(), |std| format!(" ± {std}"));
    let unit = if share { " %" } else { "" };
    let dagger = if figures.dagger { " †" } else { "" };
    format!("{mean}{spread}{unit}{dagger}")
}

/// With a backslash before all that Markdown, its tables or its HTML would take for its own.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in on_one_line(text, None).chars() {
        if "\\`*_{}[]<>#|~^$&".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}
