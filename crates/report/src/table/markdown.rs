//! A table of GitHub's Markdown.

use super::columns::on_one_line;
use super::{Figures, RUNS, Table};

pub(super) fn text(table: &Table) -> String {
    let mut out = String::new();
    if let Some(title) = &table.title {
        out.push_str(&format!("**{}**\n\n", escaped(title)));
    }
    let mut headings = vec![escaped(&table.heading)];
    headings.extend(table.runs_differ().then(|| RUNS.to_string()));
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
            let mut cells = vec![escaped(&row.name)];
            cells.extend(table.cells(row, escaped, cell));
            out.push_str(&line(cells));
        }
    }
    for note in table.notes_with_best("Bold: the") {
        out.push_str(&format!("\n{}\n", escaped(&note)));
    }
    out
}

fn line(cells: Vec<String>) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn cell(figures: Figures) -> String {
    let mean = if figures.best { format!("**{}**", figures.mean) } else { figures.mean };
    let spread = figures.std.map_or(String::new(), |std| format!(" ± {std}"));
    let dagger = if figures.dagger { " †" } else { "" };
    format!("{mean}{spread}{}{dagger}", figures.unit)
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
