//! Calibration: reliability diagrams.

use aleator_run::EvaluatedRun;

use super::scores::AGAINST;
use super::{Figures, Section, row};
use crate::figure::reliability::draw;
use crate::number;

pub(super) fn section(run: &EvaluatedRun, figures: &mut Figures) -> Option<Section> {
    let mut diagrams = vec![];
    for against in &AGAINST {
        let summary = (against.read)(&run.evaluation);
        if let Some(summary) = summary.filter(|summary| !summary.reliability.is_empty()) {
            let name = format!("reliability-{}", against.file);
            let diagram = draw(&name, against.words, &summary.reliability, summary.ece);
            diagrams.push(figures.add(diagram));
        }
    }
    if diagrams.is_empty() {
        return None;
    }
    let mut caption = "Each dot is a group of predictions of similar confidence: on the dashed \
                       line as many come true as the model says, and the orange bar is how far it \
                       is off; groups of fewer than five are faded. The bars below count the predictions of each \
                       group."
        .to_string();
    if let Some(calibration) = &run.evaluation.calibration {
        caption += &format!(
            " Calibration divides log-probabilities by {}, chosen on the validation split.",
            number::fixed(calibration.temperature, 3)
        );
    }
    Some(Section { id: "calibration", title: "Calibration", body: row(&diagrams, &caption) })
}
