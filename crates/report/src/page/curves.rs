//! How training went.

use super::material::{Log, Material};
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

pub(super) fn section(material: &Material, figures: &mut Figures) -> Option<Section> {
    let many = material.settings.len() > 1;
    let mut charts = vec![];
    for quantity in &QUANTITIES {
        let mut series = vec![];
        for (at, setting) in material.settings.iter().enumerate() {
            for run in &setting.runs {
                let points = thinned((quantity.read)(&run.log));
                if !points.is_empty() {
                    let label = if many { setting.name.clone() } else { String::new() };
                    series.push(Series { label, colour: at % SERIES, points });
                }
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
        return None;
    }
    let lines = match many {
        true => "Each line is one run; runs of the same colour differ in their seed only",
        false => "Each line is one run",
    };
    let body = format!(
        "<figure><div class=\"row{}\">\n{}</div><figcaption>{lines}. Validation is measured against \
         the given labels, wrong ones included; long logs are drawn as means over stretches of \
         steps.</figcaption></figure>\n",
        if charts.len() == 4 { " two" } else { "" },
        charts.concat()
    );
    Some(Section { id: "training".to_string(), title: "Training".to_string(), body })
}
