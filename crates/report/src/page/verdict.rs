//! What the numbers come to, in a sentence.

use std::collections::BTreeMap;

use aleator_metrics::Summary;
use aleator_metrics::significance::mean;

use super::material::{AuditAt, Setting};
use super::repeat::shell;
use super::scores::{Against, shown, values};
use crate::audit::Audit;
use crate::compare::Measure;
use crate::escape;
use crate::number;

/// A difference of mean confidence and accuracy below this is none to speak of.
const WELL_CALIBRATED: f64 = 0.02;

/// One direction of a confusion has at least this share of it where the other is not mentioned.
const ONE_SIDED: f64 = 0.75;

/// How many labels look wrong, which classes they confuse, and where to start.
pub(super) fn of_audit(at: &AuditAt) -> String {
    let audit = &at.audit;
    // A line may break before a plain space.
    let mut words = audit.summary.wrong_in_words().replace(" %", "\u{202f}%");
    let suspects = audit.issues.iter().filter(|issue| issue.wrong).count();
    if suspects == 0 {
        return paragraph(&words);
    }
    words += &most_confused(audit);
    let (them, labels) = if suspects == 1 { ("it", "label") } else { ("them", "labels") };
    words += &format!(
        " Start with the {} <a href=\"#suspects\">suspect {labels}</a>; <code>aleator review {}</code> \
         corrects {them}.",
        number::count(suspects),
        escape::text(&shell(&at.dir)),
    );
    paragraph(&words)
}

/// The two classes that are taken for each other most often, in either direction.
fn most_confused(audit: &Audit) -> String {
    let mut pairs: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
    for pair in audit.pairs.iter().filter(|pair| pair.given != pair.truth) {
        let both = (pair.given.min(pair.truth), pair.given.max(pair.truth));
        pairs.entry(both).or_default()[usize::from(pair.given > pair.truth)] += pair.count;
    }
    let total = |counts: &[f64; 2]| counts[0] + counts[1];
    // Of equal ones the first, as the order of classes has it.
    let most = pairs.iter().rev().max_by(|a, b| total(a.1).total_cmp(&total(b.1)));
    let Some((&(low, high), counts)) = most.filter(|(_, counts)| total(counts) >= 1.0) else {
        return String::new();
    };
    let [low, high] = [low, high].map(|at| escape::name(&audit.summary.class_names[at as usize]));
    let share = counts[0] / total(counts);
    let pair = if share >= ONE_SIDED {
        format!("{high} labelled {low}")
    } else if share <= 1.0 - ONE_SIDED {
        format!("{low} labelled {high}")
    } else {
        format!("{low} ↔ {high}")
    };
    format!(" Most often: {pair}, about {} labels.", number::fixed(total(counts), 0))
}

/// How good the best setting is, and whether its probabilities can be believed.
pub(super) fn of_runs(settings: &[&Setting], against: &Against) -> String {
    let nll = |setting: &Setting| mean(&values(setting, against, Measure::Nll));
    let with_nll = settings.iter().filter_map(|setting| Some((nll(setting)?, *setting)));
    let Some((_, best)) = with_nll.min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return String::new();
    };
    let on = escape::text(&against.words.to_lowercase());
    let mut words = match (settings.len(), best.name.as_str()) {
        (1, _) | (_, "") => format!("Measured on {on}: "),
        (_, name) => format!(
            "On {on}, {} has the lowest NLL, {}; ",
            escape::name(name),
            shown(&values(best, against, Measure::Nll), Measure::Nll)
        ),
    };
    let accuracy = values(best, against, Measure::Top1);
    if !accuracy.is_empty() {
        let accuracy = shown(&accuracy, Measure::Top1);
        words += &format!("its first choice is the label for {accuracy} of the examples");
    }
    let summaries = best.runs.iter().filter_map(|run| (against.read)(&run.evaluation));
    let gaps: Vec<f64> = summaries.filter_map(confidence_gap).collect();
    if let Some(gap) = mean(&gaps) {
        let points = number::fixed(100.0 * gap.abs(), 0);
        words += &match gap {
            gap if gap.abs() < WELL_CALIBRATED => {
                ", and its probabilities come true as often as they say".to_string()
            }
            gap if gap < 0.0 => {
                format!(", and it is too careful: {points} points less sure than it is right")
            }
            _ => format!(", and it is too confident: {points} points more sure than it is right"),
        };
    }
    paragraph(&format!("{}.", words.trim_end_matches([' ', ';', ':'])))
}

/// The mean confidence less the share that comes true.
fn confidence_gap(summary: &Summary) -> Option<f64> {
    let bins = summary.reliability.iter();
    let parts = bins.filter_map(|bin| Some((bin.count as f64, bin.confidence? - bin.accuracy?)));
    let (count, sum) = parts.fold((0.0, 0.0), |(all, sum), (n, gap)| (all + n, sum + n * gap));
    (count > 0.0).then(|| sum / count)
}

fn paragraph(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("<p class=\"verdict\">{first}{}</p>\n", letters.as_str())
}
