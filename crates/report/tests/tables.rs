//! The four forms of a table, letter by letter, from run directories.

use std::fs;
use std::path::Path;

use crate::runs_on_disk::{DEFAULT, Made, Place};
use aleator_report::compare::{Layout, Measure, Settings, compare, fill};
use aleator_report::table::{Format, Table, Terminal};

const PLAIN: Format = Format::Terminal(Terminal { width: None, bold: false });

fn digits() -> Table {
    let place = Place::new();
    place.seeds("none", &[(0.885, 0.502), (0.884, 0.504), (0.890, 0.505)]);
    place.seeds("diagonal", &[(0.887, 0.500), (0.885, 0.503), (0.891, 0.504)]);
    place.seeds("full", &[(0.886, 0.497), (0.892, 0.501), (0.895, 0.502)]);
    let measures = Some(vec![Measure::Top1, Measure::Nll, Measure::Top5]);
    compare(&place.rows(&["none", "diagonal", "full"]).unwrap(), &Settings { measures, ..DEFAULT })
        .unwrap()
}

/// Names that mean something in some form, rows of different lengths, and nothing to test by.
fn awkward() -> Table {
    let place = Place::new();
    place.seeds("a", &[(0.5, 1.0), (0.6, 2.0)]);
    Made::new(0, 0.7, f64::INFINITY).write(&place.path("b"));
    let names = ["=1+1 | a_b & 50% #1 ${x} ~^\\ <i>*`", "[x] 犬\nb"];
    let mut rows = place.rows(&["a", "b"]).unwrap();
    for (row, name) in rows.iter_mut().zip(names) {
        row.name = name.to_string();
    }
    let measures = Some(vec![Measure::Top1, Measure::Nll]);
    compare(&rows, &Settings { measures, ..DEFAULT }).unwrap()
}

fn planned() -> Table {
    let place = Place::new();
    let name = |group: &str| format!("imagenet21k-{group}-seed0-1-2-3-4");
    place.seeds_with(&name("none"), &[(0.4, 3.61), (0.5, 3.67)], |made| {
        made.test().given.gap = Some(0.459);
    });
    place.seeds_with(&name("shared"), &[(0.4, 3.60), (0.5, 3.65)], |made| {
        made.test().given.gap = Some(0.47);
    });
    let mut table = fill(&Layout::load("imagenet21k-jft").unwrap(), &place.path("")).unwrap();
    let folder = place.path("").display().to_string();
    table.notes.iter_mut().for_each(|note| *note = note.replace(&folder, "runs"));
    table
}

/// Compares with a file in `tests/tables`.
#[track_caller]
fn same(found: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(file);
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(found, expected, "{file}\n{found}");
}

#[test]
fn plain_text_is_aligned_and_marks_the_best_by_a_star() {
    same(&digits().to_text(PLAIN), "digits.txt");
    same(&awkward().to_text(PLAIN), "awkward.txt");
    same(&planned().to_text(PLAIN), "planned.txt");
}

#[test]
fn a_terminal_shows_the_best_in_bold_and_puts_below_what_does_not_fit() {
    let terminal = Format::Terminal(Terminal { width: Some(40), bold: true });
    same(&digits().to_text(terminal), "digits-narrow.txt");
    // A column that fits nowhere stands alone.
    let narrow = digits().to_text(Format::Terminal(Terminal { width: Some(1), bold: true }));
    assert_eq!(narrow.matches("diagonal").count(), 3);
}

#[test]
fn markdown_escapes_what_it_would_take_for_its_own() {
    same(&digits().to_text(Format::Markdown), "digits.md");
    same(&awkward().to_text(Format::Markdown), "awkward.md");
    same(&planned().to_text(Format::Markdown), "planned.md");
}

#[test]
fn latex_escapes_what_it_would_take_for_its_own() {
    same(&digits().to_text(Format::Latex), "digits.tex");
    same(&awkward().to_text(Format::Latex), "awkward.tex");
    same(&planned().to_text(Format::Latex), "planned.tex");
}

#[test]
fn csv_has_all_digits_and_nothing_that_a_spreadsheet_would_run() {
    same(&digits().to_text(Format::Csv), "digits.csv");
    same(&awkward().to_text(Format::Csv), "awkward.csv");
    same(&planned().to_text(Format::Csv), "planned.csv");
}
