//! Every class in one table.

use aleator_metrics::{ClassSummary, Summary};
use aleator_run::EvaluatedRun;

use super::Section;
use super::material::{AuditAt, Material};
use super::table::{Cell, Extent, Table};
use crate::audit::ClassFinding;
use crate::escape;
use crate::number;

/// A column: its name, and the number of a class.
type Column<'a> = (&'static str, Box<dyn Fn(usize) -> Cell + 'a>);

pub(super) fn section(material: &Material, run: Option<&EvaluatedRun>) -> Option<Section> {
    let names = &material.class_names;
    let mut columns: Vec<Column<'_>> = vec![];
    let mut captions = vec![];
    if let Some(at) = material.audits.first() {
        columns.extend(audit_columns(at, names));
        captions.push(
            "Noise: the share of the labels of this class that is expected to be wrong. Missed: \
             the share of the examples of this class that is expected to be labelled otherwise."
                .to_string(),
        );
    }
    if let Some(run) = run {
        let (split, summary) = measured(run);
        columns.extend(run_columns(summary));
        captions.push(format!(
            "Of the {split} split, against the given labels: count, recall (share of the class \
             that is found), precision (share of the predictions of the class that are right), NLL."
        ));
    }
    if columns.is_empty() {
        return None;
    }
    let row = |(class, name): (usize, &String)| {
        let mut row = vec![Cell::name(name)];
        row.extend(columns.iter().map(|(_, cell)| cell(class)));
        row
    };
    let rows = names.iter().enumerate().map(row).collect();
    let mut titles = vec!["Class"];
    titles.extend(columns.iter().map(|(title, _)| *title));
    captions.push("Choose the heading of a column to sort by it.".to_string());
    let table = Table {
        caption: captions.join(" "),
        columns: titles,
        rows,
        extent: Extent::Long("classes"),
    };
    Some(Section { id: "classes".to_string(), title: "Classes".to_string(), body: table.html() })
}

fn measured(run: &EvaluatedRun) -> (&'static str, &Summary) {
    match &run.evaluation.test {
        Some(test) => ("test", &test.given),
        None => ("validation", &run.evaluation.validation.given),
    }
}

fn run_columns(summary: &Summary) -> Vec<Column<'_>> {
    let percent = |share: f64| number::percent(share, 1);
    let of = |class: usize| summary.per_class.get(class);
    let any = |read: fn(&ClassSummary) -> Option<f64>| {
        summary.per_class.iter().any(|class| read(class).is_some())
    };
    let mut columns: Vec<Column<'_>> = vec![(
        "Count",
        Box::new(move |class| {
            Cell::number(of(class).map(|it| it.count as f64), |count| number::fixed(count, 0))
        }),
    )];
    if any(|class| class.top1) {
        let cell = move |class| Cell::number(of(class).and_then(|it| it.top1), percent);
        columns.push(("Recall", Box::new(cell)));
    }
    if any(|class| class.precision) {
        let cell = move |class| Cell::number(of(class).and_then(|it| it.precision), percent);
        columns.push(("Precision", Box::new(cell)));
    }
    if any(|class| class.ap) {
        let cell = move |class| Cell::number(of(class).and_then(|it| it.ap), percent);
        columns.push(("Average precision", Box::new(cell)));
    }
    let nll =
        move |class| Cell::number(of(class).and_then(|it| it.nll), |nll| number::fixed(nll, 3));
    columns.push(("NLL", Box::new(nll)));
    columns
}

fn audit_columns<'a>(at: &'a AuditAt, names: &'a [String]) -> Vec<Column<'a>> {
    let percent = |share: f64| number::percent(share, 1);
    let mut by_class: Vec<Option<&ClassFinding>> = vec![None; names.len()];
    for finding in &at.audit.classes {
        by_class[finding.class as usize] = Some(finding);
    }
    let by_class = std::rc::Rc::new(by_class);
    let column = |title, cell: Box<dyn Fn(&ClassFinding) -> Cell>| -> Column<'a> {
        let by_class = by_class.clone();
        let missing = || Cell::Number(None, "–".to_string());
        (title, Box::new(move |class| by_class[class].map_or_else(missing, &cell)))
    };
    let mut columns = vec![
        column(
            "Labels",
            Box::new(|it| Cell::Number(Some(it.given as f64), number::count(it.given))),
        ),
        column("Noise", Box::new(move |it| Cell::number(Some(it.noise_rate), percent))),
        column("Missed", Box::new(move |it| Cell::number(Some(it.missed_rate), percent))),
    ];
    if at.audit.classes.iter().any(|it| it.known_noise_rate.is_some()) {
        let cell = move |it: &ClassFinding| Cell::number(it.known_noise_rate, percent);
        columns.push(column("True noise", Box::new(cell)));
    }
    let others: Vec<String> = names.iter().map(|name| escape::name(name)).collect();
    let rather = move |it: &ClassFinding| {
        let other = |(class, share): &(u32, f64)| {
            format!("{}\u{a0}{}", others[*class as usize], number::percent(*share, 0))
        };
        Cell::Html(it.confused_with.iter().map(other).collect::<Vec<_>>().join(", "))
    };
    columns.push(column("Rather", Box::new(rather)));
    columns
}
