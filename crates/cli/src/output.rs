//! What a user gets on standard output: lines and tables.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use aleator::report::table::columns::{lines, visible};
use aleator::report::table::{Format, Table, Terminal};
use anyhow::Result;

/// Prints a line. As everything that is printed here and by [`tell`](crate::progress::tell), it may
/// hold names from anywhere: no character of them reaches a terminal as a command.
pub fn line(text: impl Display) -> Result<()> {
    Ok(writeln!(io::stdout(), "{}", visible(&text.to_string()))?)
}

/// Prints text that ends its last line itself.
pub fn text(text: impl Display) -> Result<()> {
    Ok(write!(io::stdout(), "{}", visible(&text.to_string()))?)
}

/// Prints a table of scores.
pub fn scores(table: &Table, format: Format) -> Result<()> {
    match format {
        // The best cells may be bold; names are without control characters already.
        Format::Terminal(_) => Ok(write!(io::stdout(), "{}", table.to_text(format))?),
        _ => text(table.to_text(format)),
    }
}

/// Prints rows in columns; those listed in `words` are aligned to the left.
pub fn table(header: &[&str], rows: &[Vec<String>], words: &[usize]) -> Result<()> {
    lines(header, rows, words).iter().try_for_each(line)
}

/// What standard output can display.
pub fn terminal() -> Terminal {
    if !io::stdout().is_terminal() {
        return Terminal { width: None, bold: false };
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns.into());
    Terminal { width, bold: !is_set("NO_COLOR") && !is_dumb }
}
