//! The curves of training, from `metrics.jsonl`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use aleator_run::RunError;

use super::material::Material;
use super::{Figures, Section};
use crate::figure::SERIES;
use crate::figure::chart::{LineChart, Series, thinned};

/// A quantity of the log: the name of its file, its title, how it is read.
struct Quantity {
    file: &'static str,
    title: &'static str,
    read: fn(&Log) -> &[(f64, f64)],
    percent: bool,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        file: "training-loss",
        title: "Training loss",
        read: |log| &log.loss,
        percent: false,
    },
    Quantity {
        file: "validation-nll",
        title: "Validation NLL",
        read: |log| &log.validation_nll,
        percent: false,
    },
    Quantity {
        file: "validation-accuracy",
        title: "Validation accuracy",
        read: |log| &log.validation_top1,
        percent: true,
    },
    Quantity {
        file: "learning-rate",
        title: "Learning rate",
        read: |log| &log.learning_rate,
        percent: false,
    },
];

pub(super) fn section(
    material: &Material,
    figures: &mut Figures,
) -> Result<Option<Section>, RunError> {
    let mut logs = vec![];
    for (at, setting) in material.settings.iter().enumerate() {
        for run in &setting.runs {
            logs.push((at, Log::load(&run.dir.metrics_path())?));
        }
    }
    let many = material.settings.len() > 1;
    let mut charts = vec![];
    for quantity in &QUANTITIES {
        let mut series = vec![];
        for (at, log) in &logs {
            let points = thinned((quantity.read)(log));
            if !points.is_empty() {
                let name = &material.settings[*at].name;
                let label = if many { name.clone() } else { String::new() };
                series.push(Series { label, colour: at % SERIES, points });
            }
        }
        if series.is_empty() {
            continue;
        }
        let runs = series.len();
        let first = series[0].points.clone();
        if series.iter().all(|other| other.points == first) {
            series = vec![Series { label: String::new(), colour: SERIES - 1, points: first }];
        }
        let description = format!("{} over the steps of {runs} runs.", quantity.title);
        let chart = LineChart {
            name: quantity.file,
            title: quantity.title,
            description,
            x_label: "step",
            series,
            percent: quantity.percent,
        };
        charts.push(figures.add(chart.draw()));
    }
    if charts.is_empty() {
        return Ok(None);
    }
    let lines = if many {
        "Each line is one run; runs of the same colour differ in their seed only"
    } else {
        "Each line is one run"
    };
    let body = format!(
        "<figure><div class=\"row{}\">\n{}</div><figcaption>{lines}. Validation is measured against \
         the given labels, wrong ones included; long logs are drawn as means over stretches of \
         steps.</figcaption></figure>\n",
        if charts.len() == 4 { " two" } else { "" },
        charts.concat()
    );
    Ok(Some(Section { id: "training".to_string(), title: "Training".to_string(), body }))
}

/// The steps and values of each quantity in `metrics.jsonl`.
#[derive(Default)]
struct Log {
    loss: Vec<(f64, f64)>,
    learning_rate: Vec<(f64, f64)>,
    validation_nll: Vec<(f64, f64)>,
    validation_top1: Vec<(f64, f64)>,
}

impl Log {
    /// A run without a log has no curves.
    fn load(path: &Path) -> Result<Self, RunError> {
        let io = |source| RunError::Io { action: "read", path: path.to_path_buf(), source };
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(io(error)),
        };
        let mut log = Self::default();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(io)?;
            let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line)
                .map_err(|error| RunError::Damaged {
                    path: path.to_path_buf(),
                    message: format!("line {} is not a JSON object: {error}", index + 1),
                })?;
            let number = |key: &str| fields.get(key).and_then(serde_json::Value::as_f64);
            let Some(step) = number("step") else { continue };
            let all = [
                (&mut log.loss, "loss"),
                (&mut log.learning_rate, "learning_rate"),
                (&mut log.validation_nll, "validation_nll"),
                (&mut log.validation_top1, "validation_top1"),
            ];
            for (values, key) in all {
                values.extend(number(key).map(|value| (step, value)));
            }
        }
        Ok(log)
    }
}
