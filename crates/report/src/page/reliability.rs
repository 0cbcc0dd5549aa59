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
            diagrams.push((against.split, figures.add(diagram)));
        }
    }
    // The first is of the split that the page reports; the other is folded.
    let (split, _) = *diagrams.first()?;
    let of = |wanted: bool| {
        let kept = diagrams.iter().filter(|(of, _)| (*of == split) == wanted);
        kept.map(|(_, diagram)| diagram.clone()).collect::<Vec<String>>()
    };
    let mut caption = "Each dot is a group of predictions of similar confidence: on the dashed \
                       line as many come true as the model says, and the orange bar is how far it \
                       is off; groups of fewer than ten are faded. The bars below count the predictions of each \
                       group."
        .to_string();
    if let Some(calibration) = &run.evaluation.calibration {
        caption += &format!(
            " Calibration divides log-probabilities by {}, chosen on the validation split.",
            number::fixed(calibration.temperature, 3)
        );
    }
    let mut body = row(&of(true), &caption);
    let others = of(false);
    if !others.is_empty() {
        body += &format!(
            "<details><summary>The same on the validation split</summary>\n{}</details>\n",
            row(&others, "")
        );
    }
    Some(Section::new("calibration", format!("Calibration on the {} split", split.name()), body))
}
