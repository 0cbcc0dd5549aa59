//! Cells under each other, for people.

/// The lines of a table whose columns are as wide as their cells; those of `words` begin at the
/// left, numbers end at the right.
pub fn lines(header: &[&str], rows: &[Vec<String>], words: &[usize]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let header: Vec<String> = header.iter().map(|name| name.to_string()).collect();
    let line = |row: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| {
            let space = " ".repeat(widths[column] - cell.chars().count());
            if words.contains(&column) {
                format!("{cell}{space}")
            } else {
                format!("{space}{cell}")
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ").trim_end().to_string()
    };
    std::iter::once(&header).chain(rows).map(line).collect()
}

/// A text that someone else chose, on one line and cut to so many characters, if any.
pub fn on_one_line(text: &str, most: Option<usize>) -> String {
    let plain = text.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it });
    match most.filter(|most| text.chars().count() > *most) {
        Some(most) => plain.take(most - 1).chain(['…']).collect(),
        None => plain.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_and_numbers_end_together() {
        let rows = [["cat", "7"], ["ox", "1479"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(
            lines(&["class", "labels"], &rows, &[0]),
            ["class  labels", "cat         7", "ox       1479"]
        );
    }

    #[test]
    fn what_would_move_the_cursor_is_not_printed() {
        assert_eq!(on_one_line("a\nb\u{1b}[2J", None), "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(on_one_line("partridge", Some(5)), "part…");
        assert_eq!(on_one_line("quail", Some(5)), "quail");
    }
}
