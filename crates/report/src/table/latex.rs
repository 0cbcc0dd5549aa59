//! A LaTeX `table` with the rules of `booktabs`.

use super::columns::on_one_line;
use super::{Figures, RUNS, Table};

pub(super) fn text(table: &Table) -> String {
    let mut headings = vec![escaped(&table.heading)];
    headings.extend(table.runs_differ().then(|| RUNS.to_string()));
    headings.extend(table.columns.iter().map(|column| {
        let unit = if column.share { " (\\%)" } else { "" };
        format!("{}{unit}", escaped(&column.heading))
    }));
    let columns = headings.len();
    let mut out = String::from("% \\usepackage{booktabs}\n\\begin{table}\n\\centering\n");
    out.push_str(&format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(columns - 1)));
    out.push_str(&line(headings));
    for section in &table.sections {
        out.push_str("\\midrule\n");
        if let Some(name) = &section.name {
            out.push_str(&format!("\\multicolumn{{{columns}}}{{l}}{{{}}} \\\\\n", escaped(name)));
        }
        for row in &section.rows {
            let mut cells = vec![name_cell(&row.name)];
            cells.extend(table.cells(row, escaped, cell));
            out.push_str(&line(cells));
        }
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n");
    let title = table.title.iter().map(|title| format!("{title}."));
    let caption: Vec<String> = title.chain(table.notes_with_best("Bold: the")).collect();
    if !caption.is_empty() {
        out.push_str(&format!("\\caption{{{}}}\n", escaped(&caption.join(" "))));
    }
    out.push_str("\\end{table}\n");
    out
}

fn line(cells: Vec<String>) -> String {
    format!("{} \\\\\n", cells.join(" & "))
}

fn cell(figures: Figures) -> String {
    let mean = escaped(&figures.mean);
    let mean = if figures.best { format!("\\textbf{{{mean}}}") } else { mean };
    let dagger = if figures.dagger { "$^\\dagger$" } else { "" };
    let spread = figures.std.map_or(String::new(), |std| format!(" ($\\pm$ {std})"));
    format!("{mean}{dagger}{spread}")
}

/// After `\\` a bracket or a star would be read as its argument.
fn name_cell(name: &str) -> String {
    let guard = if name.starts_with(['[', '*']) { "{}" } else { "" };
    format!("{guard}{}", escaped(name))
}

/// What LaTeX would take for a command, and the signs of our own notes, in its own words.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in on_one_line(text, None).chars() {
        match letter {
            '&' | '%' | '#' | '$' | '_' | '{' | '}' => out.extend(['\\', letter]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '†' => out.push_str("$^\\dagger$"),
            '±' => out.push_str("$\\pm$"),
            '∞' => out.push_str("$\\infty$"),
            '×' => out.push_str("$\\times$"),
            'τ' => out.push_str("$\\tau$"),
            '–' => out.push_str("--"),
            other => out.push(other),
        }
    }
    out
}
