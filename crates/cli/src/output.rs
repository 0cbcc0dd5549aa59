//! What a user gets on standard output: lines and tables.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use aleator::report::table::Terminal;
use aleator::report::table::columns::lines;
use anyhow::Result;

/// Prints a line.
pub fn line(text: impl Display) -> Result<()> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Prints text that ends its last line itself.
pub fn text(text: impl Display) -> Result<()> {
    Ok(write!(io::stdout(), "{text}")?)
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
