//! Evaluations as tables for people.

use std::io::{self, Write};

use aleator_metrics::significance::{mean, sample_std};
use aleator_metrics::{Evaluation, SplitEvaluation, Summary};

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
    header(&mut out, &measures)?;
    for (name, summary) in &rows {
        let cells = measures.iter().map(|measure| cell(measure, (measure.read)(summary)));
        line(&mut out, name, cells)?;
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
    header(&mut out, &measures)?;
    for (at, (name, _)) in first.iter().enumerate() {
        let cells = measures.iter().map(|measure| {
            let values: Option<Vec<f64>> = all
                .iter()
                .map(|rows| rows.get(at).and_then(|(_, summary)| (measure.read)(summary)))
                .collect();
            spread(measure, values.unwrap_or_default())
        });
        line(&mut out, name, cells)?;
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
const CELL_WIDTH: usize = 18;

fn header(out: &mut impl Write, measures: &[&Measure]) -> io::Result<()> {
    line(out, "", measures.iter().map(|measure| measure.name.to_string()))
}

fn line(out: &mut impl Write, name: &str, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let cells: String = cells.map(|cell| format!("{cell:>CELL_WIDTH$}")).collect();
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
