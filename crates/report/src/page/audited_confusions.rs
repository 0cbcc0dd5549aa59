//! Which classes are confused in the labels that an audit judged.

use super::confusions::{PAIRS, arrow, correlation_map, distances, heat_figure, shares};
use super::material::AuditAt;
use super::table::{self, Cell, Extent};
use super::{Figures, Section};
use crate::audit::PairFinding;
use crate::cluster::order;
use crate::figure::heat::{HeatMap, NAMED};

/// As heat maps in one order, and as a table.
pub(super) fn section(at: &AuditAt, figures: &mut Figures) -> Option<Section> {
    let (audit, names) = (&at.audit, &at.audit.summary.class_names);
    let classes = names.len();
    let confused = audit.pairs.iter().filter(|pair| pair.given != pair.truth);
    // Less than half a label in all is no confusion, however it is coloured.
    if classes < 2 || confused.map(|pair| pair.count).sum::<f64>() < 0.5 {
        return None;
    }
    let mut counts = vec![0.0; classes * classes];
    let mut correlation = vec![0.0; classes * classes];
    let mut correlated = false;
    for pair in &audit.pairs {
        let (given, truth) = (pair.given as usize, pair.truth as usize);
        counts[given * classes + truth] += pair.count;
        if let Some(value) = pair.correlation {
            correlated |= value != 0.0;
            correlation[given * classes + truth] = value;
            correlation[truth * classes + given] = value;
        }
    }
    let drawn = correlated && classes <= NAMED;
    let value = shares(&counts, classes);
    let order = order(&distances(classes, &value), classes);
    let map = HeatMap {
        name: "given-and-true",
        title: "Given labels and what is expected to be true, %",
        description: "Share of each given label that is expected to be of each class; the largest \
                      share beside the diagonal is"
            .to_string(),
        rows: "given",
        columns: "expected",
        class_names: names,
        order: &order,
        value: &value,
        percent: true,
    };
    let mut maps = figures.add(map.draw());
    let mut words = format!(
        "{} each given label (row), the share that is expected to be of each class (column); \
         agreement, on the diagonal, is left grey.",
        if drawn { "First map: of" } else { "Of" }
    );
    // Of many pairs the strongest correlations are chance: the folds of an audit share most of
    // their examples, and cannot tell.
    if drawn {
        let value = |i: usize, j: usize| correlation[i * classes + j];
        let title = "Correlation of the learned noise";
        maps += &figures.add(correlation_map("audit-correlation", title, &value, names, &order));
        words += " Second map: how the learned noise of two classes goes together, for the pairs that \
                  the audit lists.";
    }
    if classes > NAMED {
        words += " Groups are named by the class in their middle.";
    }
    let body = heat_figure(&maps, &words) + &audit_table(&audit.pairs, names);
    Some(Section::new("label-confusions", "Confusions of the audit", body))
}

fn audit_table(pairs: &[PairFinding], names: &[String]) -> String {
    let apart = pairs.iter().filter(|pair| pair.given != pair.truth).take(PAIRS);
    let has_noise = apart.clone().any(|pair| pair.flip_probability.is_some());
    let row = |pair: &PairFinding| {
        let pair_name = arrow(&names[pair.truth as usize], &names[pair.given as usize]);
        let mut row = vec![Cell::Html(pair_name), Cell::fixed(Some(pair.count), 1)];
        if has_noise {
            row.extend([Cell::percent(pair.flip_probability), Cell::fixed(pair.correlation, 2)]);
        }
        row
    };
    let rows: Vec<Vec<Cell>> = apart.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut columns = vec!["True → given", "Expected labels"];
    let mut caption = "The confusions that are expected most often in the labels.".to_string();
    if has_noise {
        columns.extend(["Flip", "Correlation"]);
        caption += " Flip: how likely noise alone lifts the given class above the true one.";
    }
    table::html(Extent::Short, &columns, &rows, &caption)
}
