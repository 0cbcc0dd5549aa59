//! Evaluations as tables for people.

use std::io::{self, Write};

use aleator_metrics::significance::{mean, sample_std};
use aleator_metrics::{Evaluation, SplitEvaluation, Summary};
use aleator_train::group::Member;

/// A measure: its name, how it is read, and whether it is a share.
struct Measure {
    name: &'static str,
    read: fn(&Summary) -> Option<f64>,
    percent: bool,
}

const MEASURES: [Measure; 6] = [
    Measure { name: "top-1", read: |s| Some(s.top1), percent: true },
    Measure { name: "top-5", read: |s| s.top5, percent: true },
    Measure { name: "NLL", read: |s| Some(s.nll), percent: false },
    Measure { name: "Brier", read: |s| Some(s.brier), percent: false },
    Measure { name: "ECE", read: |s| Some(s.ece), percent: false },
    Measure { name: "gAP", read: |s| s.gap, percent: false },
];

/// One row for each split and kind of label.
pub fn print(evaluation: &Evaluation) -> io::Result<()> {
    let rows = rows(evaluation);
    let measures = measures(&rows);
    let mut out = io::stdout().lock();
    header(&mut out, &measures, CELL_WIDTH)?;
    for (name, summary) in &rows {
        let cells = measures.iter().map(|measure| cell(measure, (measure.read)(summary)));
        line(&mut out, name, cells, CELL_WIDTH)?;
    }
    if let Some(calibration) = &evaluation.calibration {
        let (before, after) = (calibration.nll_before, calibration.nll_after);
        writeln!(
            out,
            "calibrated at temperature {:.3}: validation NLL {before:.4} → {after:.4}",
            calibration.temperature
        )?;
    }
    Ok(())
}

/// The same over several runs, as mean ± standard deviation.
pub fn print_many(evaluations: &[Evaluation]) -> io::Result<()> {
    let all: Vec<Vec<(String, &Summary)>> = evaluations.iter().map(rows).collect();
    let Some(first) = all.first() else { return Ok(()) };
    let measures = measures(first);
    let mut out = io::stdout().lock();
    writeln!(out, "{} runs, mean ± standard deviation", evaluations.len())?;
    header(&mut out, &measures, SPREAD_WIDTH)?;
    for (at, (name, _)) in first.iter().enumerate() {
        let cells = measures.iter().map(|measure| {
            let values: Option<Vec<f64>> = all
                .iter()
                .map(|rows| rows.get(at).and_then(|(_, summary)| (measure.read)(summary)))
                .collect();
            spread(measure, values.unwrap_or_default())
        });
        line(&mut out, name, cells, SPREAD_WIDTH)?;
    }
    Ok(())
}

/// One row for each run, by the splits that it is judged by.
pub fn print_each(members: &[Member], evaluations: &[Evaluation]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let width = members.iter().map(|member| member.name.len()).max().unwrap_or(0) + 2;
    let columns =
        |split: &str| format!("{:>14}{:>10}{:>8}", format!("{split} NLL"), "top-1", "ECE");
    let tested = evaluations.iter().any(|evaluation| evaluation.test.is_some());
    let test = if tested { columns("test") } else { String::new() };
    writeln!(out, "{:<width$}{}{test}", "", columns("valid."))?;
    let cells = |summary: &Summary| {
        let Summary { nll, top1, ece, .. } = summary;
        format!("{nll:>14.4}{:>8.2} %{ece:>8.4}", 100.0 * top1)
    };
    for (member, evaluation) in members.iter().zip(evaluations) {
        let validation = cells(&evaluation.validation.given);
        let test = evaluation.test.as_ref().map_or(String::new(), |test| cells(&test.given));
        writeln!(out, "{:<width$}{validation}{test}", member.name)?;
    }
    Ok(())
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

/// Those measures that any row has.
fn measures(rows: &[(String, &Summary)]) -> Vec<&'static Measure> {
    let has = |measure: &&Measure| rows.iter().any(|(_, row)| (measure.read)(row).is_some());
    MEASURES.iter().filter(has).collect()
}

const NAME_WIDTH: usize = 24;
/// Of a number, and of a mean with its deviation.
const CELL_WIDTH: usize = 10;
const SPREAD_WIDTH: usize = 17;

fn header(out: &mut impl Write, measures: &[&Measure], width: usize) -> io::Result<()> {
    line(out, "", measures.iter().map(|measure| measure.name.to_string()), width)
}

fn line(
    out: &mut impl Write,
    name: &str,
    cells: impl Iterator<Item = String>,
    width: usize,
) -> io::Result<()> {
    let cells: String = cells.map(|cell| format!("{cell:>width$}")).collect();
    writeln!(out, "{name:<NAME_WIDTH$}{cells}")
}

fn cell(measure: &Measure, value: Option<f64>) -> String {
    match value {
        None => "–".to_string(),
        Some(value) if measure.percent => format!("{:.2} %", 100.0 * value),
        Some(value) => format!("{value:.4}"),
    }
}

fn spread(measure: &Measure, values: Vec<f64>) -> String {
    match (mean(&values), sample_std(&values)) {
        (Some(mean), Some(deviation)) if measure.percent => {
            format!("{:.2} ± {:.2} %", 100.0 * mean, 100.0 * deviation)
        }
        (Some(mean), Some(deviation)) => format!("{mean:.4} ± {deviation:.4}"),
        (mean, _) => cell(measure, mean),
    }
}
