//! The scores of all runs.

use std::fmt::Write;

use aleator_metrics::{Evaluation, SplitEvaluation, Summary};

use super::material::{AuditAt, Material, Setting};
use super::table::{Cell, Extent, Table};
use super::{Figures, Section};
use crate::escape;
use crate::figure::SERIES;
use crate::figure::dots::DotChart;
use crate::number;

/// A measure: its name, what it is in words, and how it is read and shown.
struct Measure {
    name: &'static str,
    file: &'static str,
    words: &'static str,
    read: fn(&Summary) -> Option<f64>,
    percent: bool,
}

const MEASURES: [Measure; 6] = [
    Measure {
        name: "Accuracy",
        file: "accuracy",
        words: "share of examples whose most probable class is the label",
        read: |summary| Some(summary.top1),
        percent: true,
    },
    Measure {
        name: "Top 5",
        file: "top5",
        words: "share of examples whose label is among the five most probable",
        read: |summary| summary.top5,
        percent: true,
    },
    Measure {
        name: "NLL",
        file: "nll",
        words: "negative log-likelihood of the labels; lower is better",
        read: |summary| Some(summary.nll),
        percent: false,
    },
    Measure {
        name: "ECE",
        file: "ece",
        words: "expected calibration error: how far confidence is from the share that comes true",
        read: |summary| Some(summary.ece),
        percent: false,
    },
    Measure {
        name: "Brier",
        file: "brier",
        words: "squared error of the probabilities; lower is better",
        read: |summary| Some(summary.brier),
        percent: false,
    },
    Measure {
        name: "gAP",
        file: "gap",
        words: "average precision over all examples and classes; higher is better",
        read: |summary| summary.gap,
        percent: true,
    },
];

/// Which labels of which split.
struct Against {
    words: &'static str,
    read: fn(&Evaluation) -> Option<&Summary>,
}

const AGAINST: [Against; 6] = [
    Against { words: "Test, given labels", read: |it| it.test.as_ref().map(|split| &split.given) },
    Against { words: "Test, true labels", read: |it| it.test.as_ref().and_then(clean) },
    Against { words: "Test, calibrated", read: |it| it.test.as_ref().and_then(calibrated) },
    Against { words: "Validation, given labels", read: |it| Some(&it.validation.given) },
    Against { words: "Validation, true labels", read: |it| clean(&it.validation) },
    Against { words: "Validation, calibrated", read: |it| calibrated(&it.validation) },
];

fn clean(split: &SplitEvaluation) -> Option<&Summary> {
    split.clean.as_ref()
}

fn calibrated(split: &SplitEvaluation) -> Option<&Summary> {
    split.calibrated.as_ref()
}

/// "In short".
pub(super) fn section(material: &Material, figures: &mut Figures) -> Option<Section> {
    let mut body = String::new();
    for (folder, count) in &material.unfinished {
        let folder = escape::text(&folder.display().to_string());
        let _ = writeln!(
            body,
            "<p class=\"note\">{count} of the runs in <code>{folder}</code> are not finished and \
             not shown; <code>aleator resume {folder}</code> resumes them.</p>"
        );
    }
    for audit in &material.audits {
        body += &audit_tiles(audit, material.audits.len() > 1);
    }
    match material.settings.as_slice() {
        [] => {}
        [setting] => body += &setting_tiles(setting),
        settings => body += &beside(settings, figures),
    }
    if !material.settings.is_empty() {
        body += &scores_table(&material.settings);
    }
    Some(Section { id: "scores".to_string(), title: "In short".to_string(), body })
}

/// The split that is shown first.
fn first_against(settings: &[Setting]) -> &'static Against {
    let runs = || settings.iter().flat_map(|setting| &setting.runs);
    let told = |against: &&Against| runs().all(|run| (against.read)(&run.evaluation).is_some());
    AGAINST.iter().find(told).unwrap_or(&AGAINST[3])
}

fn values(setting: &Setting, against: &Against, measure: &Measure) -> Vec<f64> {
    let summaries = setting.runs.iter().filter_map(|run| (against.read)(&run.evaluation));
    summaries.filter_map(measure.read).collect()
}

fn shown(values: &[f64], measure: &Measure) -> String {
    if measure.percent { number::percent_spread(values, 2) } else { number::spread(values, 4) }
}

fn tile(label: &str, value: &str, words: &str) -> String {
    format!(
        "<div class=\"tile\"><dt>{label}</dt><dd><b>{value}</b><span>{words}</span></dd></div>\n"
    )
}

fn setting_tiles(setting: &Setting) -> String {
    let against = first_against(std::slice::from_ref(setting));
    let mut out = String::from("<dl class=\"tiles\">\n");
    for measure in MEASURES.iter().filter(|measure| measure.name != "Top 5") {
        let values = values(setting, against, measure);
        if !values.is_empty() {
            out += &tile(measure.name, &shown(&values, measure), measure.words);
        }
    }
    out + "</dl>\n"
}

fn audit_tiles(at: &AuditAt, named: bool) -> String {
    let summary = &at.audit.summary;
    let mut out = String::new();
    if named {
        let _ = writeln!(out, "<h3>{}</h3>", escape::name(&at.name));
    }
    out += "<dl class=\"tiles\">\n";
    let by = match summary.folds {
        0 => "given probabilities".to_string(),
        folds => format!("{folds} folds"),
    };
    let judged = format!("of {} examples, by {by}", number::count(summary.examples));
    out += &tile("Labels judged", &number::count(summary.labels), &judged);
    let wrong = summary.wrong;
    let count = |value: f64| number::fixed(value.max(0.0), 0);
    let interval = format!("95\u{202f}% interval {} to {}", count(wrong.low), count(wrong.high));
    out += &tile("Estimated wrong", &count(wrong.count), &interval);
    if summary.labels > 0 {
        let share = number::percent(wrong.count / summary.labels as f64, 1);
        out += &tile("Estimated noise", &share, "of all labels");
    }
    if let Some(known) = &summary.known {
        let wrong = format!("{} labels are known to be wrong", number::count(known.wrong));
        out += &tile("AUROC", &number::fixed(known.auroc, 3), &format!("of the ranking; {wrong}"));
        let precision = number::fixed(known.average_precision, 3);
        out += &tile("Average precision", &precision, "of the ranking beside the truth");
    }
    out + "</dl>\n"
}

/// One small figure for each measure, with all settings.
fn beside(settings: &[Setting], figures: &mut Figures) -> String {
    let against = first_against(settings);
    let mut charts = vec![];
    for measure in MEASURES.iter().filter(|measure| measure.name != "Top 5") {
        let row = |(at, setting): (usize, &Setting)| {
            (setting.name.clone(), at % SERIES, values(setting, against, measure))
        };
        let rows: Vec<(String, usize, Vec<f64>)> = settings.iter().enumerate().map(row).collect();
        if rows.iter().all(|(_, _, values)| values.is_empty()) {
            continue;
        }
        let told = |(name, _, values): &(String, usize, Vec<f64>)| {
            format!("{}: {}", escape::label(name, 40), shown(values, measure))
        };
        let described: Vec<String> = rows.iter().take(20).map(told).collect();
        let chart = DotChart {
            name: &format!("compared-{}", measure.file),
            title: measure.name,
            description: format!("{}. {}.", against.words, described.join("; ")),
            rows,
            percent: measure.percent,
        };
        charts.push(figures.add(chart.draw()));
    }
    let spread = if settings.iter().any(|setting| setting.runs.len() > 1) {
        "each dot is the mean over seeds, its line one standard deviation to either side"
    } else {
        "each dot is one run"
    };
    let two = if charts.len() == 4 { " two" } else { "" };
    format!(
        "<figure><div class=\"row{two}\">\n{}</div><figcaption>{}: {spread}.</figcaption></figure>\n",
        charts.concat(),
        against.words
    )
}

fn scores_table(settings: &[Setting]) -> String {
    let told = |measure: &&Measure| {
        let each = |against: &Against| {
            settings.iter().any(|setting| !values(setting, against, measure).is_empty())
        };
        AGAINST.iter().any(each)
    };
    let measures: Vec<&Measure> = MEASURES.iter().filter(told).collect();
    let mut rows = vec![];
    for against in &AGAINST {
        for setting in settings {
            let cells = measures.iter().map(|measure| {
                let values = values(setting, against, measure);
                let shown =
                    if values.is_empty() { "–".to_string() } else { shown(&values, measure) };
                (values.is_empty(), shown)
            });
            let cells: Vec<(bool, String)> = cells.collect();
            if cells.iter().all(|(empty, _)| *empty) {
                continue;
            }
            let mut row = vec![Cell::Html(against.words.to_string())];
            if settings.len() > 1 {
                row.push(Cell::name(&setting.name));
            }
            row.extend(cells.into_iter().map(|(_, shown)| Cell::Number(None, shown)));
            rows.push(row);
        }
    }
    let mut columns = vec!["Measured on"];
    if settings.len() > 1 {
        columns.push("Setting");
    }
    columns.extend(measures.iter().map(|measure| measure.name));
    let words: Vec<String> =
        measures.iter().map(|measure| format!("{}: {}", measure.name, measure.words)).collect();
    let seeds = if settings.iter().any(|setting| setting.runs.len() > 1) {
        "Mean ± standard deviation over seeds. "
    } else {
        ""
    };
    let caption = format!("{seeds}{}.", words.join("; "));
    Table { caption, columns, rows, extent: Extent::Short }.html()
}
