//! Every class in one table.

use std::collections::BTreeMap;

use aleator_metrics::{ClassSummary, Summary};
use aleator_run::{EvaluatedRun, Split};

use super::Section;
use super::material::AuditAt;
use super::table::{self, Cell, DASH, Extent};
use crate::audit::{Audit, ClassFinding};
use crate::escape;
use crate::number;

/// What an audit says of each class; `None` where it lists none.
pub(super) fn of_audit(at: &AuditAt) -> Option<Section> {
    let (audit, names) = (&at.audit, &at.audit.summary.class_names);
    if audit.classes.is_empty() {
        return None;
    }
    let mut classes = Classes::new(names);
    classes.add_audit(audit, names);
    let caption = "Noise: the share of the labels of this class that is expected to be wrong. \
                   Missed: the share of the examples of this class that is expected to be \
                   labelled otherwise. Rather: the classes that they are expected to be of.";
    Some(Section::new("noisy-classes", "Classes of the audit", classes.table(caption)))
}

/// How well a run does on each class.
pub(super) fn of_run(run: &EvaluatedRun) -> Section {
    let (split, summary) = match &run.evaluation.test {
        Some(test) => (Split::Test, &test.given),
        None => (Split::Validation, &run.evaluation.validation.given),
    };
    let mut classes = Classes::new(&run.dir.info().class_names);
    classes.add_run(summary);
    let caption = "Against the given labels: count, recall (share of the class that is found), \
                   precision (share of the predictions of the class that are right), NLL.";
    let title = format!("Classes of the {} split", split.name());
    Section::new("classes", title, classes.table(caption))
}

/// The table, which grows column by column.
struct Classes {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Classes {
    fn new(names: &[String]) -> Self {
        let rows = names.iter().map(|name| vec![Cell::name(name)]).collect();
        Self { columns: vec!["Class"], rows }
    }

    fn table(&self, caption: &str) -> String {
        let caption = format!("{caption} Choose the heading of a column to sort by it.");
        table::html(Extent::Long("classes"), &self.columns, &self.rows, &caption)
    }

    fn add(&mut self, column: &'static str, cell: impl Fn(usize) -> Cell) {
        self.columns.push(column);
        for (class, row) in self.rows.iter_mut().enumerate() {
            row.push(cell(class));
        }
    }

    fn add_run(&mut self, summary: &Summary) {
        type Read = fn(&ClassSummary) -> Option<f64>;
        let per_class = &summary.per_class;
        let value = |class: usize, read: Read| per_class.get(class).and_then(read);
        self.add("Count", |class| Cell::fixed(value(class, |it| Some(it.count as f64)), 0));
        let shares: [(&str, Read); 3] = [
            ("Recall", |it| it.top1),
            ("Precision", |it| it.precision),
            ("Average precision", |it| it.ap),
        ];
        for (column, read) in shares {
            if per_class.iter().any(|it| read(it).is_some()) {
                self.add(column, |class| Cell::percent(value(class, read)));
            }
        }
        self.add("NLL", |class| Cell::fixed(value(class, |it| it.nll), 3));
    }

    fn add_audit(&mut self, audit: &Audit, names: &[String]) {
        let by_class: BTreeMap<usize, &ClassFinding> =
            audit.classes.iter().map(|it| (it.class as usize, it)).collect();
        let mut add = |column, cell: &dyn Fn(&ClassFinding) -> Cell| {
            let missing = || Cell::Number(None, DASH.to_string());
            self.add(column, |class| by_class.get(&class).map_or_else(missing, |it| cell(it)));
        };
        add("Labels", &|it| Cell::count(it.given));
        add("Noise", &|it| Cell::percent(Some(it.noise_rate)));
        add("Missed", &|it| Cell::percent(Some(it.missed_rate)));
        if audit.classes.iter().any(|it| it.known_noise_rate.is_some()) {
            add("True noise", &|it| Cell::percent(it.known_noise_rate));
        }
        let other = |(class, share): &(u32, f64)| {
            let name = escape::name(&names[*class as usize]);
            format!("{name}\u{a0}({})", number::percent(*share, 0))
        };
        add("Rather", &|it| {
            Cell::Html(it.confused_with.iter().map(other).collect::<Vec<_>>().join(", "))
        });
    }
}
