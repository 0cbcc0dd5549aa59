//! Calibration: reliability diagrams.

use aleator_metrics::Summary;
use aleator_run::EvaluatedRun;

use super::{Figures, Section};
use crate::figure::reliability::draw;
use crate::number;

pub(super) fn section(run: &EvaluatedRun, figures: &mut Figures) -> Option<Section> {
    let evaluation = &run.evaluation;
    let splits = [("Test", evaluation.test.as_ref()), ("Validation", Some(&evaluation.validation))];
    let mut row = String::new();
    let mut count = 0;
    for (words, split) in splits {
        let Some(split) = split else { continue };
        let kinds: [(&str, &str, Option<&Summary>); 3] = [
            ("given", "given labels", Some(&split.given)),
            ("true", "true labels", split.clean.as_ref()),
            ("calibrated", "calibrated", split.calibrated.as_ref()),
        ];
        for (file, kind, summary) in kinds {
            let Some(summary) = summary.filter(|summary| !summary.reliability.is_empty()) else {
                continue;
            };
            let name = format!("reliability-{}-{file}", words.to_lowercase());
            let title = format!("{words}, {kind}");
            count += 1;
            row += &figures.add(draw(&name, &title, &summary.reliability, summary.ece));
        }
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
    let two = if count == 4 { " two" } else { "" };
    let body = format!(
        "<figure><div class=\"row{two}\">\n{row}</div><figcaption>Each dot is a group of predictions of \
         similar confidence: on the dashed line as many come true as the model says, and the \
         orange bar is how far it is off. The bars below count the predictions of each group.\
         {calibrated}</figcaption></figure>\n"
    );
    Some(Section { id: "calibration".to_string(), title: "Calibration".to_string(), body })
}
