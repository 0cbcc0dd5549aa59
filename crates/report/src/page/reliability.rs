//! Whether probabilities mean what they say.

use aleator_metrics::Summary;

use super::material::EvaluatedRun;
use super::{Figures, Section};
use crate::figure::reliability::draw;
use crate::number;

pub(super) fn section(run: &EvaluatedRun, figures: &mut Figures) -> Option<Section> {
    let evaluation = &run.evaluation;
    let (words, split) = match &evaluation.test {
        Some(test) => ("Test", test),
        None => ("Validation", &evaluation.validation),
    };
    let drawn: [(&str, &str, Option<&Summary>); 3] = [
        ("reliability-given", "given labels", Some(&split.given)),
        ("reliability-true", "true labels", split.clean.as_ref()),
        ("reliability-calibrated", "calibrated", split.calibrated.as_ref()),
    ];
    let mut row = String::new();
    for (name, kind, summary) in drawn {
        let Some(summary) = summary.filter(|summary| !summary.reliability.is_empty()) else {
            continue;
        };
        let title = format!("{words}, {kind}");
        row += &figures.add(draw(name, &title, &summary.reliability, summary.ece));
    }
    if row.is_empty() {
        return None;
    }
    let calibrated = evaluation.calibration.as_ref().map_or(String::new(), |calibration| {
        format!(
            " Calibration divides log-probabilities by {}, chosen on the validation split.",
            number::fixed(calibration.temperature, 3)
        )
    });
    let body = format!(
        "<figure><div class=\"row\">\n{row}</div><figcaption>Each dot is a group of predictions of \
         similar confidence: on the dashed line as many come true as the model says, and the \
         orange bar is how far it is off. The bars below count the predictions of each group.\
         {calibrated}</figcaption></figure>\n"
    );
    Some(Section { id: "calibration".to_string(), title: "Calibration".to_string(), body })
}
