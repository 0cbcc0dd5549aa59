//! Classes that are on or off: which entries of a row are wrong.
//!
//! Each class is judged by itself, as [`posterior`](super::posterior) does with two classes: off,
//! whose utility is 0, and on, whose utility is the class's own.

use aleator_run::Field;
use rayon::prelude::*;

use super::parts::{Example, Parts};
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{Answer, Issue};
use super::settings::AuditSettings;
use crate::covariance::{Best, Observer, Step};
use crate::error::ReportError;

/// The most entries that are listed, those most surely wrong.
const LISTED: usize = 1_000_000;

/// What is found about all entries.
pub(super) struct Entries {
    /// The entries most surely wrong, in this order.
    pub issues: Vec<Issue>,
    /// The number of entries.
    pub labels: usize,
    /// Of each part: the sum of the probabilities of being wrong, and the number of entries.
    pub wrong: Vec<(f64, usize)>,
    /// Σ s (1 − s).
    pub chance: f64,
    /// Of each class: `[given off, given on]` × `[truly off, truly on]`, summed probabilities.
    pub tables: Vec<[[f64; 2]; 2]>,
}

/// Judges every entry; `each` gets the position of an example, a class and its probability to be
/// on.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    each: &mut dyn FnMut(usize, usize, f64),
    observer: Observer,
) -> Result<Entries, ReportError> {
    let classes = parts.task.class_names.len();
    let mut confusions = vec![Confusion::new(2, settings); classes];
    for pass in 0..settings.multilabel_passes {
        let mut counts: Vec<Counts> = confusions.iter().map(Counts::new).collect();
        each_piece(parts, |rows| {
            let both = counts.par_iter_mut().zip(&confusions).enumerate();
            both.for_each(|(class, (counts, confusion))| {
                let evidence: Vec<Evidence> =
                    rows.iter().map(|row| row.evidence(class, settings)).collect();
                counts.add_all(&evidence, confusion);
            });
        })?;
        let both = counts.iter().zip(&confusions);
        confusions = both.map(|(counts, it)| counts.updated(it, settings)).collect();
        let (done, total) = (pass + 1, settings.multilabel_passes);
        observer(Step { what: "confusion of the labels", done, total });
    }
    collect(parts, &confusions, settings, each)
}

fn collect(
    parts: &mut Parts,
    confusions: &[Confusion],
    settings: &AuditSettings,
    each: &mut dyn FnMut(usize, usize, f64),
) -> Result<Entries, ReportError> {
    let classes = confusions.len();
    let mut entries = Entries {
        issues: vec![],
        labels: parts.examples.len() * classes,
        wrong: vec![(0.0, 0); parts.parts.len()],
        chance: 0.0,
        tables: vec![[[0.0; 2]; 2]; classes],
    };
    let mut best: Best<(usize, usize)> = Best::new(LISTED);
    each_piece(parts, |rows| {
        for row in rows {
            for (class, confusion) in confusions.iter().enumerate() {
                let (posterior, _) = confusion.posterior(&row.evidence(class, settings));
                let given = usize::from(row.is_on(class));
                let score = 1.0 - posterior[given];
                entries.tables[class][given][0] += posterior[0];
                entries.tables[class][given][1] += posterior[1];
                let part = &mut entries.wrong[row.part];
                *part = (part.0 + score, part.1 + 1);
                entries.chance += score * (1.0 - score);
                best.offer(score, (row.position, class));
                each(row.position, class, posterior[1]);
            }
        }
    })?;
    let ranked = best.into_ranked().into_iter();
    entries.issues = ranked
        .map(|(score, (at, class))| issue(&parts.examples[at], class as u32, score))
        .collect();
    Ok(entries)
}

fn issue(example: &Example, class: u32, score: f64) -> Issue {
    let is_on = example.row.label.iter().flatten().any(|on| *on == class);
    let (on, off) = (Answer::On(class), Answer::Off(class));
    Issue {
        id: example.row.id.clone(),
        path: example.path.clone(),
        given: if is_on { on } else { off },
        suggested: if is_on { off } else { on },
        given_probability: 1.0 - score,
        suggested_probability: score,
        score,
        wrong: false,
        covariance: None,
        correlation: None,
        truth: None,
    }
}

/// One example with its predictions.
struct Row<'a> {
    position: usize,
    part: usize,
    /// The classes that are on.
    label: &'a [u32],
    temperature: f64,
    mean: &'a [f32],
    on: &'a [f32],
    off: &'a [f32],
}

impl Row<'_> {
    fn is_on(&self, class: usize) -> bool {
        self.label.contains(&(class as u32))
    }

    fn evidence(&self, class: usize, settings: &AuditSettings) -> Evidence<'static> {
        let utilities = [0.0, f64::from(self.mean[class]) / self.temperature];
        let log_probs = [self.off[class], self.on[class]];
        let labels: &[u32] = if self.is_on(class) { &[1] } else { &[0] };
        Evidence::new(utilities.into_iter(), &log_probs, labels, settings)
    }
}

fn each_piece(parts: &mut Parts, mut take: impl FnMut(&[Row])) -> Result<(), ReportError> {
    let Parts { examples, parts, .. } = parts;
    for (number, part) in parts.iter_mut().enumerate() {
        let (classes, temperature) = (part.file.classes(), f64::from(part.file.temperature()));
        for rows in part.pieces() {
            let positions = part.examples[rows.clone()].to_vec();
            let mean = part.read(Field::Mean, rows.clone())?;
            let on = part.read(Field::LogProbs, rows.clone())?;
            let off = part.read(Field::LogProbsOff, rows)?;
            let row = |(row, position): (usize, &usize)| {
                let row = row * classes..(row + 1) * classes;
                Row {
                    position: *position,
                    part: number,
                    label: examples[*position].row.label.as_deref().unwrap_or_default(),
                    temperature,
                    mean: &mean[row.clone()],
                    on: &on[row.clone()],
                    off: &off[row],
                }
            };
            take(&positions.iter().enumerate().map(row).collect::<Vec<Row>>());
        }
    }
    Ok(())
}
