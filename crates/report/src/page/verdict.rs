//! What the numbers come to, in a sentence.

use aleator_metrics::Summary;
use aleator_metrics::significance::mean;

use super::material::Setting;
use super::scores::{Against, shown, values};
use crate::audit::Audit;
use crate::compare::Measure;
use crate::escape;
use crate::number;

/// A difference of mean confidence and accuracy below this is none to speak of.
const WELL_CALIBRATED: f64 = 0.02;

/// How many labels look wrong, and where to start.
pub(super) fn of_audit(audit: &Audit) -> String {
    let (summary, names) = (&audit.summary, &audit.summary.class_names);
    let suspects = audit.issues.iter().filter(|issue| issue.wrong).count();
    if summary.labels == 0 || suspects == 0 {
        return paragraph("No label looks wrong.");
    }
    let share = number::percent(summary.wrong.count / summary.labels as f64, 1);
    let mut words = format!(
        "About {share} of the labels look wrong. Start with the {} <a href=\"#suspects\">suspect \
         labels</a>: <code>aleator review</code> goes through them.",
        number::count(suspects)
    );
    let confused = audit.pairs.iter().find(|pair| pair.given != pair.truth && pair.count >= 1.0);
    if let Some(pair) = confused {
        let [given, truth] = [pair.given, pair.truth].map(|at| escape::name(&names[at as usize]));
        words += &format!(
            " Most often {given} is given where {truth} is true: about {} times.",
            number::fixed(pair.count, 0)
        );
    }
    paragraph(&words)
}

/// How good the best setting is, and whether its probabilities can be believed.
pub(super) fn of_runs(settings: &[Setting], against: &Against) -> String {
    let nll = |setting: &Setting| mean(&values(setting, against, Measure::Nll));
    let with_nll = settings.iter().filter_map(|setting| Some((nll(setting)?, setting)));
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
