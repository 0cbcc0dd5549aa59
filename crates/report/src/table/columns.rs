//! Text in aligned columns: the one printer of tables for the terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use crate::escape::is_harmful;

/// Between two columns.
pub(super) const GAP: &str = "  ";

/// Escape sequences around a bold text.
pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const PLAIN: &str = "\x1b[0m";

/// The lines of a table whose columns are as wide as their cells. The columns listed in `words`
/// are aligned to the left, all others to the right. An empty header is left out.
///
/// ```
/// use aleator_report::table::columns::lines;
///
/// let rows = [["cat", "7"], ["ox", "1479"]].map(|row| row.map(String::from).to_vec());
/// let table = lines(&["class", "labels"], &rows, &[0]);
/// assert_eq!(table, ["class  labels", "cat         7", "ox       1479"]);
/// ```
///
/// # Panics
/// When rows do not have the same number of cells.
pub fn lines(header: &[&str], rows: &[Vec<String>], words: &[usize]) -> Vec<String> {
    let header: Vec<String> = header.iter().map(|name| name.to_string()).collect();
    let all = || std::iter::once(&header).filter(|header| !header.is_empty()).chain(rows);
    let columns = all().next().map_or(0, Vec::len);
    let widest = |column: usize| all().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| {
            let space = " ".repeat(widths[column] - width(cell));
            if words.contains(&column) {
                format!("{cell}{space}")
            } else {
                format!("{space}{cell}")
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join(GAP).trim_end().to_string()
    };
    all().map(line).collect()
}

/// How wide a text is on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.replace(BOLD, "").replace(PLAIN, "").width()
}

/// A text with names from elsewhere as a terminal may show it: control characters, and characters
/// that change the direction of text, are escaped as in JSON. Line breaks and tabs stay.
///
/// ```
/// use aleator_report::table::columns::visible;
///
/// assert_eq!(visible("cat\u{1b}]0;dog\u{7}\n"), "cat\\u001b]0;dog\\u0007\n");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return text.into();
    }
    let shown = text.chars().map(|it| match it {
        it if is_harmful(it) => format!("\\u{:04x}", u32::from(it)),
        it => it.to_string(),
    });
    shown.collect()
}

/// A text from elsewhere on one line, without control characters, cut to at most `most`
/// characters.
pub fn on_one_line(text: &str, most: Option<usize>) -> String {
    let hides = |it: char| it.is_control() || is_harmful(it);
    let plain = text.chars().map(|it| if hides(it) { '\u{fffd}' } else { it });
    match most.filter(|most| text.chars().count() > *most) {
        Some(most) => plain.take(most - 1).chain(['…']).collect(),
        None => plain.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_bold_characters_are_measured_as_they_are_shown() {
        let rows =
            [["犬", "1"], ["\x1b[1mcat\x1b[0m", "22"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(lines(&[], &rows, &[0]), ["犬    1", "\x1b[1mcat\x1b[0m  22"]);
        assert!(lines(&[], &[], &[]).is_empty());
    }

    #[test]
    fn control_characters_are_not_printed() {
        assert_eq!(on_one_line("a\nb\u{1b}[2J\u{202e}", None), "a\u{fffd}b\u{fffd}[2J\u{fffd}");
        assert_eq!(on_one_line("partridge", Some(5)), "part…");
        assert_eq!(on_one_line("quail", Some(5)), "quail");
    }
}
