//! A pair of classes as a table.

use aleator::PairFindings;
use aleator::report::table::columns::on_one_line;
use anyhow::Result;
use serde_json::Value;

use super::print::{NAME, numbers, signed};
use crate::output::{line, table};

/// The numbers of each run, and the examples of the first.
pub fn print(found: &[PairFindings], json: bool, terminal: bool) -> Result<()> {
    let Some(first) = found.first() else { return Ok(()) };
    if json {
        let all = found.iter().map(PairFindings::json).collect::<Value>();
        let shown = if found.len() == 1 { &all[0] } else { &all };
        return line(serde_json::to_string_pretty(shown)?);
    }
    let [a, b] = first.classes();
    let (split, examples) = (first.split.name(), first.examples.len());
    line(format_args!("{a} and {b}: {split} split, {examples} examples"))?;
    let row = |found: &PairFindings| {
        [vec![found.dir.display().to_string()], numbers(&found.found.pair).into()].concat()
    };
    let header = ["run", "covariance", "centred", "corr.", "flip A→B", "B→A", "relation"];
    table(&header, &found.iter().map(row).collect::<Vec<_>>(), &[0, 6])?;
    let Some(most_tied) = &first.found.examples else {
        return line(
            "\nThe loadings of single examples were not kept (evaluation.loadings_mib): in which ones \
             they are\ntied most is not known.",
        );
    };
    line(format_args!("\nExamples in which they are tied most, by covariance"))?;
    let name = |label: Option<&[u32]>| {
        let names = label.unwrap_or_default().iter();
        names.map(|class| first.info.class_names[*class as usize].as_str()).collect::<Vec<_>>()
    };
    let cut = |text: &str| on_one_line(text, terminal.then_some(NAME));
    let rows: Vec<Vec<String>> = most_tied
        .iter()
        .map(|it| {
            let example = &first.examples[it.row];
            let label = name(example.label.as_deref()).join(", ");
            vec![cut(&example.id), cut(&label), signed(it.covariance)]
        })
        .collect();
    table(&["example", "label", "covariance"], &rows, &[0, 1])
}
