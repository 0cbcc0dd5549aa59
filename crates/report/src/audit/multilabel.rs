//! Classes that are on or off: which entries of a row are wrong.
//!
//! Each class is judged by itself, as [`posterior`](super::posterior) does with two classes: off,
//! whose utility is 0, and on, whose utility is the class's own.

use aleator_run::Field;
use rayon::prelude::*;

use super::findings::{self, Findings, WrongLabels};
use super::parts::{self, Example, Parts};
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{Answer, Issue};
use super::settings::AuditSettings;
use super::single::Posterior;
use crate::covariance::{Best, Observer, Step};
use crate::error::ReportError;

/// The most entries that are listed, those most surely wrong.
const LISTED: usize = 1_000_000;

const FIELDS: [Field; 3] = [Field::Mean, Field::LogProbs, Field::LogProbsOff];
type Row<'a> = parts::Row<'a, { FIELDS.len() }>;

/// Judges every entry; `kept` gets for each example the probabilities of all classes to be on.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    kept: Option<&mut Vec<Posterior>>,
    observer: Observer,
) -> Result<Findings, ReportError> {
    let classes = parts.task.class_names.len();
    let mut confusions = vec![Confusion::new(2, settings); classes];
    for pass in 0..settings.multilabel_passes {
        let mut counts: Vec<Counts> = confusions.iter().map(Counts::new).collect();
        parts.each_piece(FIELDS, |rows| {
            let both = counts.par_iter_mut().zip(&confusions).enumerate();
            both.for_each(|(class, (counts, confusion))| {
                let evidence: Vec<Evidence> =
                    rows.iter().map(|row| evidence(row, class, settings)).collect();
                counts.add_all(&evidence, confusion);
            });
        })?;
        let both = counts.iter().zip(&confusions);
        confusions = both.map(|(counts, it)| counts.updated(it, settings)).collect();
        let (done, total) = (pass + 1, settings.multilabel_passes);
        observer(Step { what: "confusion of the labels", done, total });
    }
    collect(parts, &confusions, settings, kept)
}

fn collect(
    parts: &mut Parts,
    confusions: &[Confusion],
    settings: &AuditSettings,
    mut kept: Option<&mut Vec<Posterior>>,
) -> Result<Findings, ReportError> {
    // Of each class: `[given off, given on]` × `[truly off, truly on]`, summed probabilities.
    let mut tables = vec![[[0.0; 2]; 2]; confusions.len()];
    let mut wrong = WrongLabels::new(parts.parts.len());
    let mut best = Best::new(LISTED);
    parts.each_piece(FIELDS, |rows| {
        for row in rows {
            for (class, confusion) in confusions.iter().enumerate() {
                let (posterior, _) = confusion.posterior(&evidence(row, class, settings));
                let given = usize::from(is_on(row.example, class as u32));
                let score = 1.0 - posterior[given];
                tables[class][given][0] += posterior[0];
                tables[class][given][1] += posterior[1];
                wrong.add(row.example.part, score);
                best.offer(score, (row.position, class as u32), ());
                if let Some(kept) = &mut kept {
                    kept[row.position].push((class as u32, posterior[1]));
                }
            }
        }
    })?;
    let ranked = best.into_sorted().into_iter();
    Ok(Findings {
        issues: ranked
            .map(|(score, (at, class), ())| issue(&parts.examples[at], class, score))
            .collect(),
        classes: findings::entry_classes(&tables),
        pairs: vec![],
        annotators: vec![],
        consensus: vec![],
        concentration: None,
        wrong: wrong.estimate(),
        comparison: None,
    })
}

fn issue(example: &Example, class: u32, score: f64) -> Issue {
    let mut answers = [Answer::Off(class), Answer::On(class)];
    if is_on(example, class) {
        answers.reverse();
    }
    let [given, suggested] = answers;
    Issue {
        id: example.row.id.clone(),
        path: example.path.clone(),
        given,
        suggested,
        given_probability: 1.0 - score,
        suggested_probability: score,
        score,
        wrong: false,
        covariance: None,
        correlation: None,
        truth: None,
    }
}

fn is_on(example: &Example, class: u32) -> bool {
    example.row.label.iter().flatten().any(|on| *on == class)
}

fn evidence(row: &Row, class: usize, settings: &AuditSettings) -> Evidence<'static> {
    let [mean, on, off] = row.fields;
    let utilities = [0.0, f64::from(mean[class]) / row.temperature];
    let labels: &[u32] = if is_on(row.example, class as u32) { &[1] } else { &[0] };
    Evidence::new(utilities.into_iter(), &[off[class], on[class]], labels, settings)
}
