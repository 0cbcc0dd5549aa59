//! Tables of a page.

use std::fmt::Write;

use crate::escape;

/// A table; the first cell of a row is its heading.
pub(super) struct Table {
    pub caption: String,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
    pub extent: Extent,
}

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
    /// A number as it sorts and as it is shown; `None` is shown as a dash.
    Number(Option<f64>, String),
}

impl Cell {
    pub fn name(raw: &str) -> Self {
        Self::Html(escape::name(raw))
    }

    pub fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self::Number(value, value.map_or("–".to_string(), show))
    }
}

// Writing to a string does not fail.
impl Table {
    pub fn html(&self) -> String {
        let mut out = String::new();
        let class = match self.extent {
            Extent::Short => "scroll",
            Extent::Long(rows) => {
                let _ = writeln!(
                    out,
                    "<p class=\"filter\" hidden><label>Filter {rows} <input type=\"search\" \
                     autocomplete=\"off\"></label> <output aria-live=\"polite\"></output></p>"
                );
                "scroll tall"
            }
        };
        let sortable = if self.extent == Extent::Short { "" } else { " class=\"sortable\"" };
        let _ = write!(
            out,
            "<div class=\"{class}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n\
             <table{sortable}>\n<thead><tr>",
            self.columns.first().copied().unwrap_or("table")
        );
        for (at, column) in self.columns.iter().enumerate() {
            let number = if self.is_number(at) { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{number}>{column}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let _ = match (cell, at) {
                    (Cell::Html(html), 0) => write!(out, "<th scope=\"row\">{html}</th>"),
                    (Cell::Html(html), _) => write!(out, "<td>{html}</td>"),
                    (Cell::Number(Some(value), shown), _) => {
                        write!(
                            out,
                            "<td class=\"n\" data-v=\"{}\">{shown}</td>",
                            sortable_number(*value)
                        )
                    }
                    (Cell::Number(None, shown), _) => write!(out, "<td class=\"n\">{shown}</td>"),
                };
            }
            out.push_str("</tr>\n");
        }
        let _ =
            write!(out, "</tbody>\n</table></div>\n<p class=\"caption\">{}</p>\n", self.caption);
        out
    }

    fn is_number(&self, column: usize) -> bool {
        self.rows
            .iter()
            .filter_map(|row| row.get(column))
            .any(|cell| matches!(cell, Cell::Number(..)))
    }
}

/// As JavaScript's `Number` reads it.
fn sortable_number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
