//! Evaluations as tables.

use aleator::metrics::{Evaluation, SplitEvaluation, Summary};
use aleator::report::compare::{Measure, Score};
use aleator::report::table::{Cell, Column, ColumnSource, Format, Section, Table, TableRow};
use aleator::{NewScores, TrainedRun};
use anyhow::Result;

use crate::output::{self, line};

/// The measures to show, if the run has them.
const SHOWN: [Measure; 7] = [
    Measure::Top1,
    Measure::Top5,
    Measure::Nll,
    Measure::Brier,
    Measure::Ece,
    Measure::Gap,
    Measure::SubsetAccuracy,
];

/// One row for each split and kind of label.
pub fn print(evaluation: &Evaluation) -> Result<()> {
    output::scores(&table(std::slice::from_ref(evaluation)), on_screen())?;
    let Some(calibration) = &evaluation.calibration else { return Ok(()) };
    let (before, after) = (calibration.nll_before, calibration.nll_after);
    line(format_args!(
        "calibrated at temperature {:.3}: validation NLL {before:.4} → {after:.4}",
        calibration.temperature
    ))
}

/// The same over several runs, as mean ± standard deviation.
pub fn print_many(runs: &[TrainedRun]) -> Result<()> {
    let evaluations: Vec<Evaluation> = runs.iter().map(|run| run.evaluation.clone()).collect();
    line(format_args!("{} runs, mean ± standard deviation", runs.len()))?;
    output::scores(&table(&evaluations), on_screen())
}

/// The scores on new data: one row for each kind of probability and of label.
pub fn print_new(scores: &NewScores) -> Result<()> {
    const LABEL: &str = "probability of the label";
    const TRUE_CLASS: &str = "probability of the true class";
    let clean = |name: &str| format!("{name}, clean labels");
    let mut rows = vec![(LABEL.to_string(), &scores.label)];
    rows.extend(scores.true_class.as_ref().map(|it| (TRUE_CLASS.to_string(), it)));
    if let Some(known) = &scores.clean {
        rows.push((clean(LABEL), &known.label));
        rows.extend(known.true_class.as_ref().map(|it| (clean(TRUE_CLASS), it)));
    }
    let examples = scores.label.examples;
    match scores.checkpoint {
        Some(step) => line(format_args!("{examples} examples, by the checkpoint of step {step}"))?,
        None => line(format_args!("{examples} examples"))?,
    }
    output::scores(&table_of(&[rows]), on_screen())
}

fn on_screen() -> Format {
    Format::Terminal(output::terminal())
}

/// A table of splits and kinds of labels by measures; all runs must have the same ones. The weights
/// that were not chosen follow where they are others.
fn table(evaluations: &[Evaluation]) -> Table {
    let others = others(evaluations);
    if others.is_empty() {
        return table_of(&evaluations.iter().map(rows).collect::<Vec<_>>());
    }
    let both = |(own, other): (_, _)| [own, other].into_iter().flat_map(rows_by_epoch).collect();
    table_of(&evaluations.iter().zip(&others).map(both).collect::<Vec<_>>())
}

/// The rows, named by the epoch of the weights.
fn rows_by_epoch(evaluation: &Evaluation) -> Vec<(String, &Summary)> {
    let epoch = &evaluation.weights;
    rows(evaluation)
        .into_iter()
        .map(|(name, row)| (format!("{name}, {epoch} epoch"), row))
        .collect()
}

/// The evaluations of the weights that were not chosen, if these are others in any run.
fn others(evaluations: &[Evaluation]) -> Vec<Evaluation> {
    let Some(name) = evaluations.iter().find_map(|it| Some(it.other()?.weights)) else {
        return vec![];
    };
    let all: Option<Vec<Evaluation>> = evaluations.iter().map(|it| it.of_weights(&name)).collect();
    all.unwrap_or_default()
}

/// The same of rows with names, for each run.
fn table_of(all: &[Vec<(String, &Summary)>]) -> Table {
    let names = all.first().map_or(&[][..], |first| first);
    let values = |at: usize, measure: Measure| -> Option<Vec<f64>> {
        all.iter().map(|rows| rows.get(at).and_then(|(_, row)| measure.read(row))).collect()
    };
    let has = |measure: &Measure| (0..names.len()).any(|at| values(at, *measure).is_some());
    let measures: Vec<Measure> = SHOWN.into_iter().filter(has).collect();
    let cell =
        |at, measure| Cell::of_score(values(at, measure).and_then(|values| Score::alone(&values)));
    let row = |(at, (name, _)): (usize, &(String, &Summary))| TableRow {
        name: name.clone(),
        runs: Some(all.len()),
        cells: measures.iter().map(|measure| cell(at, *measure)).collect(),
    };
    let column = |measure: &Measure| Column {
        key: measure.key().to_string(),
        heading: measure.heading().to_string(),
        share: measure.is_share(),
        source: ColumnSource::Runs,
    };
    Table {
        title: None,
        heading: String::new(),
        columns: measures.iter().map(column).collect(),
        sections: vec![Section { name: None, rows: names.iter().enumerate().map(row).collect() }],
        notes: vec![],
    }
}

/// One row for each run, by the splits that it is judged by.
pub fn print_each(runs: &[TrainedRun]) -> Result<()> {
    let tested = runs.iter().any(|run| run.evaluation.test.is_some());
    let mut header = vec!["", "valid. NLL", "top-1", "ECE"];
    header.extend(["test NLL", "top-1", "ECE"].iter().filter(|_| tested));
    let cells = |summary: Option<&Summary>| match summary {
        Some(Summary { nll, top1, ece, .. }) => {
            [format!("{nll:.4}"), format!("{:.2} %", 100.0 * top1), format!("{ece:.4}")]
        }
        None => [const { String::new() }; 3],
    };
    let row = |run: &TrainedRun| {
        let mut row = vec![run.name.clone()];
        row.extend(cells(Some(&run.evaluation.validation.given)));
        if tested {
            row.extend(cells(run.evaluation.test.as_ref().map(|test| &test.given)));
        }
        row
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    output::table(&header, &rows, &[0])
}

fn rows(evaluation: &Evaluation) -> Vec<(String, &Summary)> {
    let mut rows = vec![];
    let splits = [("validation", Some(&evaluation.validation)), ("test", evaluation.test.as_ref())];
    for (name, split) in splits {
        let Some(SplitEvaluation { given, clean, calibrated }) = split else { continue };
        rows.push((name.to_string(), given));
        rows.extend(calibrated.as_ref().map(|it| (format!("{name}, calibrated"), it)));
        rows.extend(clean.as_ref().map(|it| (format!("{name}, clean labels"), it)));
    }
    rows
}
