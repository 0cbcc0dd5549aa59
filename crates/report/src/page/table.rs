//! Tables of a page.

use std::fmt::Write;

use crate::escape;
use crate::number;

/// How a table is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Read at a glance.
    Short,
    /// Can be sorted and searched; holds the name of its rows.
    Long(&'static str),
}

pub(super) enum Cell {
    /// Markup.
    Html(String),
    /// A number as it sorts and as it is shown.
    Number(Option<f64>, String),
}

/// The cell of a number that is not known.
pub(super) const DASH: &str = "–";

impl Cell {
    pub fn name(raw: &str) -> Self {
        Self::Html(escape::name(raw))
    }

    pub fn count(count: usize) -> Self {
        Self::Number(Some(count as f64), number::count(count))
    }

    /// With `digits` digits after the point; a dash for `None`.
    pub fn fixed(value: Option<f64>, digits: usize) -> Self {
        let shown = value.map(|value| number::fixed(value, digits));
        Self::Number(value, shown.unwrap_or(DASH.to_string()))
    }

    /// A share in percent; a dash for `None`.
    pub fn percent(share: Option<f64>) -> Self {
        let shown = share.map(|share| number::percent(share, 1));
        Self::Number(share, shown.unwrap_or(DASH.to_string()))
    }
}

/// A table; the first cell of a row is its heading.
// Writing to a string does not fail.
pub(super) fn html(extent: Extent, columns: &[&str], rows: &[Vec<Cell>], caption: &str) -> String {
    let mut out = String::new();
    let (class, sortable) = match extent {
        Extent::Short => ("scroll", ""),
        Extent::Long(rows) => {
            let _ = writeln!(
                out,
                "<p class=\"filter\" hidden><label>Filter {rows} <input type=\"search\" \
                 autocomplete=\"off\"></label> <output aria-live=\"polite\"></output></p>"
            );
            ("scroll tall", " class=\"sortable\"")
        }
    };
    let _ = write!(
        out,
        "<div class=\"{class}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n\
         <table{sortable}>\n<thead><tr>",
        columns.first().copied().unwrap_or("table")
    );
    for (at, column) in columns.iter().enumerate() {
        let mut cells = rows.iter().filter_map(|row| row.get(at));
        let is_number = cells.any(|cell| matches!(cell, Cell::Number(..)));
        let number = if is_number { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{number}>{column}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match (cell, at) {
                (Cell::Html(html), 0) => write!(out, "<th scope=\"row\">{html}</th>"),
                (Cell::Html(html), _) => write!(out, "<td>{html}</td>"),
                (Cell::Number(None, shown), _) => write!(out, "<td class=\"n\">{shown}</td>"),
                (Cell::Number(Some(value), shown), _) => {
                    let value = sortable_number(*value);
                    write!(out, "<td class=\"n\" data-v=\"{value}\">{shown}</td>")
                }
            };
        }
        out.push_str("</tr>\n");
    }
    let _ = write!(out, "</tbody>\n</table></div>\n<p class=\"caption\">{caption}</p>\n");
    out
}

/// As JavaScript's `Number` reads it.
fn sortable_number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
