//! All digits, for programs and spreadsheets. Titles and notes are left out.

use super::{Cell, Column, ColumnSource, Table};
use crate::compare::Printed;
use crate::spreadsheet::guarded;

pub(super) fn text(table: &Table) -> String {
    let grouped = table.sections.iter().any(|section| section.name.is_some());
    let mut writer = csv::Writer::from_writer(vec![]);
    let mut header: Vec<String> = grouped.then(|| "group".to_string()).into_iter().collect();
    header.extend(["name", "runs"].map(String::from));
    header.extend(table.columns.iter().flat_map(headings));
    write(&mut writer, &header);
    for section in &table.sections {
        for row in &section.rows {
            let group = section.name.as_deref().unwrap_or_default();
            let mut cells: Vec<String> =
                grouped.then(|| guarded(group).into()).into_iter().collect();
            cells.push(guarded(&row.name).into());
            cells.push(row.runs.unwrap_or(0).to_string());
            let columns = table.columns.iter().enumerate();
            cells.extend(columns.flat_map(|(at, column)| numbers(row.cell(at), column)));
            write(&mut writer, &cells);
        }
    }
    let bytes = writer.into_inner().expect("memory takes every byte");
    String::from_utf8(bytes).expect("cells are text")
}

fn write(writer: &mut csv::Writer<Vec<u8>>, cells: &[String]) {
    writer.write_record(cells).expect("every row has a cell for each column");
}

fn headings(column: &Column) -> Vec<String> {
    let endings: &[&str] = match column.source {
        ColumnSource::Runs => &["mean", "std", "p"],
        ColumnSource::Paper => &["paper_mean", "paper_std"],
    };
    endings.iter().map(|ending| format!("{}_{ending}", column.key)).collect()
}

fn numbers(cell: &Cell, column: &Column) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let printed = |printed: &Printed| {
        if column.share { printed.as_share() } else { printed.text.clone() }
    };
    match (column.source, cell) {
        (ColumnSource::Runs, Cell::Score(score)) => {
            let p_value = score.against_best.map(|against| against.p_value);
            vec![number(Some(score.mean)), number(score.std), number(p_value)]
        }
        (ColumnSource::Paper, Cell::Published(published)) => {
            let std = published.std.as_ref().map_or(String::new(), printed);
            vec![printed(&published.mean), std]
        }
        _ => vec![String::new(); headings(column).len()],
    }
}
