//! The scores of all runs.

use aleator_metrics::{Evaluation, Summary};
use aleator_run::Split;

use super::material::{Material, Setting, dir_name};
use super::table::{self, Cell, DASH, Extent};
use super::{Figures, Section, row, verdict};
use crate::audit::{Acceptance, AuditSummary, ReviewRecord, SampledCount};
use crate::compare::Measure;
use crate::escape;
use crate::figure::dots::DotChart;
use crate::number;

/// A measure with its name and what it is in words.
type Named = (Measure, &'static str, &'static str);

const MEASURES: [Named; 6] = [
    (Measure::Top1, "Accuracy", "share of examples whose most probable class is the label"),
    (Measure::Top5, "Top 5", "share of examples whose label is among the five most probable"),
    (Measure::Nll, "NLL", "negative log-likelihood of the labels; lower is better"),
    (
        Measure::Ece,
        "ECE",
        "expected calibration error: how far confidence is from the share that comes true",
    ),
    (Measure::Brier, "Brier", "squared error of the probabilities; lower is better"),
    (Measure::Gap, "gAP", "average precision over all examples and classes; higher is better"),
];

/// Most rows of a table of scores that is not folded.
const UNFOLDED: usize = 3;

/// The measures of tiles and figures.
fn in_short() -> impl Iterator<Item = &'static Named> {
    MEASURES.iter().filter(|(measure, ..)| *measure != Measure::Top5)
}

/// Which labels of which split: in words, and in the names of files.
pub(super) struct Against {
    pub split: Split,
    pub words: &'static str,
    pub file: &'static str,
    pub read: Read,
}

type Read = fn(&Evaluation) -> Option<&Summary>;

const fn against(split: Split, words: &'static str, file: &'static str, read: Read) -> Against {
    Against { split, words, file, read }
}

pub(super) const AGAINST: [Against; 6] = [
    against(Split::Test, "Test, given labels", "test-given", |it| Some(&it.test.as_ref()?.given)),
    against(Split::Test, "Test, true labels", "test-true", |it| it.test.as_ref()?.clean.as_ref()),
    against(Split::Test, "Test, calibrated", "test-calibrated", |it| {
        it.test.as_ref()?.calibrated.as_ref()
    }),
    against(Split::Validation, "Validation, given labels", "validation-given", |it| {
        Some(&it.validation.given)
    }),
    against(Split::Validation, "Validation, true labels", "validation-true", |it| {
        it.validation.clean.as_ref()
    }),
    against(Split::Validation, "Validation, calibrated", "validation-calibrated", |it| {
        it.validation.calibrated.as_ref()
    }),
];

/// "In short".
pub(super) fn section(material: &Material, figures: &mut Figures) -> Section {
    let mut body = String::new();
    for (dir, count) in &material.unfinished {
        let dir = escape::text(&dir.display().to_string());
        body += &format!(
            "<p class=\"note\">{count} of the runs in <code>{dir}</code> are not finished and not \
             shown; <code>aleator resume {dir}</code> resumes them.</p>\n"
        );
    }
    for audit in &material.audits {
        if material.audits.len() > 1 {
            body += &format!("<h3>{}</h3>\n", escape::name(&dir_name(&audit.dir)));
        }
        body += &verdict::of_audit(audit);
        let review = audit.review.iter().flat_map(review_tiles);
        body += &tiles(audit_tiles(&audit.audit.summary).into_iter().chain(review).collect());
    }
    body += &verdict::of_runs(&material.judged(), first_against(&material.settings));
    if material.audits.is_empty() {
        body += &numbers(&material.settings, figures);
    }
    Section::new("scores", "In short", body)
}

/// The scores of runs on a page that starts with the suspects of an audit.
pub(super) fn of_runs(material: &Material, figures: &mut Figures) -> Option<Section> {
    let runs = !material.settings.is_empty();
    runs.then(|| {
        let body = numbers(&material.settings, figures);
        Section::new("run-scores", "Scores of the runs", body)
    })
}

fn numbers(settings: &[Setting], figures: &mut Figures) -> String {
    let shown = match settings {
        [] => return String::new(),
        [setting] => tiles(setting_tiles(setting)),
        settings => beside(settings, figures),
    };
    shown + &scores_table(settings)
}

/// The split that is shown first.
fn first_against(settings: &[Setting]) -> &'static Against {
    let runs = || settings.iter().flat_map(|setting| &setting.runs);
    let known = |against: &&Against| runs().all(|run| (against.read)(&run.evaluation).is_some());
    AGAINST.iter().find(known).unwrap_or(&AGAINST[3])
}

pub(super) fn values(setting: &Setting, against: &Against, measure: Measure) -> Vec<f64> {
    let summaries = setting.runs.iter().filter_map(|run| (against.read)(&run.evaluation));
    summaries.filter_map(|summary| measure.read(summary)).collect()
}

pub(super) fn shown(values: &[f64], measure: Measure) -> String {
    if measure.is_share() { number::percent_spread(values, 2) } else { number::spread(values, 4) }
}

/// A label, its value and what it is in words.
type Tile = (&'static str, String, String);

fn tiles(tiles: Vec<Tile>) -> String {
    let tile = |(label, value, words): &Tile| {
        format!(
            "<div class=\"tile\"><dt>{label}</dt><dd><b>{value}</b><span>{words}</span></dd></div>\n"
        )
    };
    format!("<dl class=\"tiles\">\n{}</dl>\n", tiles.iter().map(tile).collect::<String>())
}

fn setting_tiles(setting: &Setting) -> Vec<Tile> {
    let against = first_against(std::slice::from_ref(setting));
    let tile = |(measure, name, words): &Named| {
        let values = values(setting, against, *measure);
        (!values.is_empty()).then(|| (*name, shown(&values, *measure), words.to_string()))
    };
    in_short().filter_map(tile).collect()
}

fn audit_tiles(summary: &AuditSummary) -> Vec<Tile> {
    let by = match summary.folds {
        0 if summary.files.is_some() => "given probabilities".to_string(),
        0 => "all others".to_string(),
        folds => format!("{folds} folds"),
    };
    let judged = format!("of {} examples, by {by}", number::count(summary.examples));
    let wrong = summary.wrong;
    let count = |value: f64| number::fixed(value.max(0.0), 0);
    let interval = format!("between {} and {} is plausible", count(wrong.low), count(wrong.high));
    let mut tiles = vec![
        ("Look wrong", count(wrong.count), interval),
        ("Labels judged", number::count(summary.labels), judged),
    ];
    if let Some(known) = &summary.known {
        let words = "by the true labels, which the audit does not use".to_string();
        tiles.push(("Truly wrong", number::count(known.wrong), words));
        let words = format!(
            "of the ranking by suspicion (AUROC); average precision {}",
            number::fixed(known.average_precision, 3)
        );
        tiles.push(("Agreement with the truth", number::fixed(known.auroc, 3), words));
    }
    tiles
}

/// What a person, or a threshold in their place, made of an audit.
fn review_tiles(review: &ReviewRecord) -> Vec<Tile> {
    let mut tiles = vec![];
    if let Some(SampledCount { count, low, high, sampled, .. }) = review.count {
        let [count, low, high] = [count, low, high].map(|value| number::fixed(value, 0));
        let words = format!(
            "between {low} and {high} (95 %), by {} reviewed labels of a random sample",
            number::count(sampled)
        );
        tiles.push(("Wrong by review", count, words));
    }
    if review.decided > 0 {
        let [corrected, kept, ambiguous] =
            [review.corrected, review.kept, review.ambiguous].map(number::count);
        let words = format!("{corrected} corrected, {kept} kept, {ambiguous} ambiguous");
        tiles.push(("Decided", number::count(review.decided), words));
    }
    if let Some(Acceptance { threshold, accepted, pruned }) = review.accept {
        let words = format!(
            "suggestions of at least {threshold} in corrected.csv; {} examples left out of \
             pruned.csv",
            number::count(pruned)
        );
        tiles.push(("Accepted", number::count(accepted), words));
    }
    tiles
}

/// One small figure for each measure, with all settings.
fn beside(settings: &[Setting], figures: &mut Figures) -> String {
    let against = first_against(settings);
    let mut charts = vec![];
    // It says what the NLL says.
    for (measure, title, _) in in_short().filter(|(measure, ..)| *measure != Measure::Brier) {
        let row = |setting: &Setting| (setting.name.clone(), values(setting, against, *measure));
        let rows: Vec<(String, Vec<f64>)> = settings.iter().map(row).collect();
        if rows.iter().all(|(_, values)| values.is_empty()) {
            continue;
        }
        let in_words = |(name, values): &(String, Vec<f64>)| {
            format!("{}: {}", escape::label(name, 40), shown(values, *measure))
        };
        let described: Vec<String> = rows.iter().take(20).map(in_words).collect();
        let chart = DotChart {
            name: &format!("compared-{}", title.to_lowercase()),
            title,
            description: format!("{}. {}.", against.words, described.join("; ")),
            rows,
            percent: measure.is_share(),
        };
        charts.push(figures.add(chart.draw()));
    }
    let spread = if settings.iter().any(|setting| setting.runs.len() > 1) {
        "each dot is the mean over seeds, its line one standard deviation to either side"
    } else {
        "each dot is one run"
    };
    row(&charts, &format!("{}: {spread}.", against.words))
}

fn scores_table(settings: &[Setting]) -> String {
    let known = |(measure, ..): &&Named| {
        let each = |against: &Against| {
            settings.iter().any(|setting| !values(setting, against, *measure).is_empty())
        };
        AGAINST.iter().any(each)
    };
    let measures: Vec<&Named> = MEASURES.iter().filter(known).collect();
    let named = settings.len() > 1;
    let mut rows = vec![];
    for against in &AGAINST {
        for setting in settings {
            let values = measures.iter().map(|(measure, ..)| values(setting, against, *measure));
            let values: Vec<Vec<f64>> = values.collect();
            if values.iter().all(Vec::is_empty) {
                continue;
            }
            let mut row = vec![Cell::Html(against.words.to_string())];
            row.extend(named.then(|| Cell::name(&setting.name)));
            row.extend(values.iter().zip(&measures).map(|(values, (measure, ..))| {
                let shown = (!values.is_empty()).then(|| shown(values, *measure));
                Cell::Number(None, shown.unwrap_or(DASH.to_string()))
            }));
            rows.push(row);
        }
    }
    let mut columns = vec!["Measured on"];
    columns.extend(named.then_some("Setting"));
    columns.extend(measures.iter().map(|(_, name, _)| *name));
    // A single setting has tiles, which explain the others.
    let explained = |(measure, ..): &&&Named| !named && *measure != Measure::Top5;
    let words: Vec<String> = measures
        .iter()
        .filter(|it| !explained(it))
        .map(|(_, name, words)| format!("{name}: {words}."))
        .collect();
    let seeds = if settings.iter().any(|setting| setting.runs.len() > 1) {
        "Mean ± standard deviation over seeds. "
    } else {
        ""
    };
    let table = table::html(Extent::Short, &columns, &rows, &format!("{seeds}{}", words.join(" ")));
    if rows.len() <= UNFOLDED {
        return table;
    }
    format!("<details><summary>All scores</summary>\n{table}</details>\n")
}
