//! The annotators and their error rates.

use super::Section;
use super::material::AuditAt;
use super::table::{self, Cell, Extent};
use crate::audit::AnnotatorFinding;
use crate::escape;
use crate::number;

pub(super) fn section(at: &AuditAt) -> Option<Section> {
    let (annotators, names) = (&at.audit.annotators, &at.audit.summary.class_names);
    if annotators.is_empty() {
        return None;
    }
    let known = annotators.iter().any(|it| it.known_error_rate.is_some());
    let row = |it: &AnnotatorFinding| {
        let mut row = vec![
            Cell::name(&it.name),
            Cell::count(it.annotations),
            Cell::percent(Some(it.error_rate)),
            Cell::percent(Some(it.new_error_rate)),
        ];
        row.extend(known.then(|| Cell::percent(it.known_error_rate)));
        let name = |class: u32| escape::name(&names[class as usize]);
        let confusion = |(truth, given, count): &(u32, u32, f64)| {
            format!("{} → {}\u{a0}({})", name(*truth), name(*given), number::fixed(*count, 0))
        };
        let confusions: Vec<String> = it.confuses.iter().map(confusion).collect();
        row.push(Cell::Html(confusions.join(", ")));
        row
    };
    let mut columns = vec!["Annotator", "Labels", "Expected wrong", "Of new labels"];
    columns.extend(known.then_some("Truly wrong"));
    columns.push("Confuses (true → given)");
    let rows: Vec<Vec<Cell>> = annotators.iter().map(row).collect();
    let caption = "The share of each annotator's labels that is expected to be wrong, the share to \
                   expect of new ones, which is nearer to that of all annotators the fewer labels \
                   are theirs, and what they take for what most often (how many labels).";
    let body = table::html(Extent::Long("annotators"), &columns, &rows, caption);
    Some(Section::new("annotators", "Annotators", body))
}
