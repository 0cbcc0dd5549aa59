//! The curves of training, from `metrics.jsonl`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use aleator_run::RunError;

use super::material::Material;
use super::{Figures, Section, row};
use crate::figure::SERIES;
use crate::figure::chart::{LineChart, Series, thinned};

/// The quantities of the log: the key, the title, whether values are shares. The last one is the
/// recipe's choice and not a result.
const QUANTITIES: [(&str, &str, bool); 4] = [
    ("loss", "Training loss", false),
    ("validation_nll", "Validation NLL", false),
    ("validation_top1", "Validation accuracy", true),
    ("learning_rate", "Learning rate", false),
];

/// The steps and values of each quantity.
type Log = [Vec<(f64, f64)>; QUANTITIES.len()];

pub(super) fn section(
    material: &Material,
    figures: &mut Figures,
) -> Result<Option<Section>, RunError> {
    let mut logs = vec![];
    for (at, setting) in material.settings.iter().enumerate() {
        for run in &setting.runs {
            logs.push((at, read_log(&run.dir.metrics_path())?));
        }
    }
    let many = material.settings.len() > 1;
    let (mut charts, mut folded) = (vec![], vec![]);
    for (quantity, (_, title, percent)) in QUANTITIES.into_iter().enumerate() {
        let mut series = vec![];
        for (at, log) in &logs {
            let points = thinned(&log[quantity]);
            if !points.is_empty() {
                let name = &material.settings[*at].name;
                let label = if many { name.clone() } else { String::new() };
                series.push(Series { label, colour: at % SERIES, points });
            }
        }
        let Some(first) = series.first().map(|series| series.points.clone()) else { continue };
        let runs = series.len();
        if series.iter().all(|other| other.points == first) {
            series = vec![Series { label: String::new(), colour: SERIES - 1, points: first }];
        }
        let chart = LineChart {
            name: &title.to_lowercase().replace(' ', "-"),
            title,
            description: format!("{title} over the steps of {runs} runs."),
            series,
            percent,
        };
        let chart = figures.add(chart.draw());
        if quantity + 1 == QUANTITIES.len() {
            folded.push(chart);
        } else {
            charts.push(chart);
        }
    }
    if charts.is_empty() {
        return Ok(None);
    }
    let seeds = if many { "; runs of the same colour differ in their seed only" } else { "" };
    let caption = format!(
        "Each line is one run{seeds}. Validation is measured against the given labels, wrong ones \
         included; long logs are drawn as means over stretches of steps."
    );
    let mut body = row(&charts, &caption);
    if !folded.is_empty() {
        body +=
            &format!("<details><summary>Learning rate</summary>\n{}</details>\n", row(&folded, ""));
    }
    Ok(Some(Section::new("training", "Training", body)))
}

/// A run without a log has no curves.
fn read_log(path: &Path) -> Result<Log, RunError> {
    let mut log = Log::default();
    let file = match aleator_run::open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(log),
        Err(error) => return Err(RunError::io("read", path)(error)),
    };
    for (line, number) in BufReader::new(file).lines().zip(1..) {
        let line = line.map_err(RunError::io("read", path))?;
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line)
            .map_err(|error| {
                let message = format!("line {number} is not a JSON object: {error}");
                RunError::damaged(path, message)
            })?;
        let value = |key: &str| fields.get(key).and_then(serde_json::Value::as_f64);
        let Some(step) = value("step") else { continue };
        for (values, (key, ..)) in log.iter_mut().zip(QUANTITIES) {
            values.extend(value(key).map(|value| (step, value)));
        }
    }
    Ok(log)
}
