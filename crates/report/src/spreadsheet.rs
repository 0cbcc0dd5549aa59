//! Cells that no spreadsheet evaluates as a formula.

use std::borrow::Cow;

/// The characters with which spreadsheets begin a formula, and the mark that prevents it.
const MARKED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

/// The cell for text from elsewhere: with a leading `'` if a spreadsheet would otherwise evaluate
/// it.
///
/// ```
/// use aleator_report::spreadsheet::{guarded, unguarded};
///
/// assert_eq!(guarded("cat"), "cat");
/// assert_eq!(guarded("=1+1"), "'=1+1");
/// assert_eq!(unguarded("'=1+1"), "=1+1");
/// ```
pub fn guarded(text: &str) -> Cow<'_, str> {
    if text.starts_with(MARKED) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// The name of a class, as a cell.
pub(crate) fn class_cell(class: usize, names: &[String]) -> String {
    guarded(&names[class]).into_owned()
}

/// The text of a cell that [`guarded`] made.
pub fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if text.starts_with(MARKED) => text,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in ["", "cat", "=a", "'", "''", "'=a", "'cat", "-1", "+", "@x", "\tx", "\rx"] {
            assert_eq!(unguarded(&guarded(text)), text);
            let first = guarded(text).chars().next();
            assert!(first.is_none_or(|first| first == '\'' || !MARKED.contains(&first)));
        }
    }
}
