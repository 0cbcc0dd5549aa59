//! Classes that are on or off: which entries of a row are wrong.
//!
//! Each class is judged by itself, as [`posterior`](super::posterior) does with two classes: off,
//! whose utility is 0, and on, whose utility is the class's own.

use aleator_run::Field;
use rayon::prelude::*;

use super::folds::Folds;
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{Answer, Issue};
use crate::covariance::{Best, Observer, Step};
use crate::error::ReportError;

/// Passes over the data.
const PASSES: usize = 20;
/// Entries that are listed at most, the surest.
const LISTED: usize = 1_000_000;

/// What is known of all entries.
pub(super) struct Entries {
    /// The surest of them, best first.
    pub issues: Vec<Issue>,
    /// How many there are.
    pub labels: usize,
    /// Of each fold: the sum of the probabilities of being wrong, and how many entries.
    pub wrong: Vec<(f64, usize)>,
    /// Σ s (1 − s).
    pub chance: f64,
    /// Of each class: `[given off, given on]` × `[rather off, rather on]`, summed probabilities.
    pub tables: Vec<[[f64; 2]; 2]>,
}

/// Judges every entry.
pub(super) fn judge(folds: &mut Folds, observer: Observer) -> Result<Entries, ReportError> {
    let classes = folds.classes();
    let mut confusions = vec![Confusion::new(2); classes];
    for pass in 0..PASSES {
        let mut counts = vec![Counts::new(2); classes];
        each_row(folds, |row| {
            let both = counts.par_iter_mut().zip(&confusions).enumerate();
            both.for_each(|(class, (counts, confusion))| {
                let evidence: Vec<Evidence> =
                    row.iter().map(|example| example.evidence(class)).collect();
                counts.add_all(&evidence, confusion, 2);
            });
        })?;
        let updated = counts.iter().zip(&confusions).map(|(counts, it)| counts.updated(it));
        confusions = updated.collect();
        observer(Step { what: "confusion of the labels", done: pass + 1, total: PASSES });
    }
    collect(folds, &confusions)
}

fn collect(folds: &mut Folds, confusions: &[Confusion]) -> Result<Entries, ReportError> {
    let classes = confusions.len();
    let mut entries = Entries {
        issues: vec![],
        labels: folds.examples.len() * classes,
        wrong: vec![(0.0, 0); folds.folds.len()],
        chance: 0.0,
        tables: vec![[[0.0; 2]; 2]; classes],
    };
    let mut best: Best<(usize, usize, u64)> = Best::new(LISTED);
    each_row(folds, |rows| {
        for example in rows {
            for (class, confusion) in confusions.iter().enumerate() {
                let (posterior, _) = confusion.posterior(&example.evidence(class));
                let given = usize::from(example.on(class));
                let score = 1.0 - posterior[given];
                entries.tables[class][given][0] += posterior[0];
                entries.tables[class][given][1] += posterior[1];
                let fold = &mut entries.wrong[example.fold];
                *fold = (fold.0 + score, fold.1 + 1);
                entries.chance += score * (1.0 - score);
                best.offer(score, (example.place, class, score.to_bits()));
            }
        }
    })?;
    let issue = |(place, class, bits): (usize, usize, u64)| {
        let judged = &folds.examples[place];
        let class = class as u32;
        let is_on = judged.row.label.iter().flatten().any(|on| *on == class);
        let (on, off) = (Answer::On(class), Answer::Off(class));
        let score = f64::from_bits(bits);
        Issue {
            id: judged.row.id.clone(),
            path: judged.source.path.clone(),
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
    };
    entries.issues = best.into_sorted().into_iter().map(issue).collect();
    Ok(entries)
}

/// One example as its fold judged it.
struct Row<'a> {
    place: usize,
    fold: usize,
    /// The classes that are on.
    label: &'a [u32],
    temperature: f64,
    mean: &'a [f32],
    on: &'a [f32],
    off: &'a [f32],
}

impl Row<'_> {
    fn on(&self, class: usize) -> bool {
        self.label.contains(&(class as u32))
    }

    fn evidence(&self, class: usize) -> Evidence<'static> {
        let utilities = [0.0, f64::from(self.mean[class]) / self.temperature];
        let log_probs = [self.off[class], self.on[class]];
        let said: &[u32] = if self.on(class) { &[1] } else { &[0] };
        Evidence::new(utilities.into_iter(), &log_probs, said)
    }
}

fn each_row(folds: &mut Folds, mut take: impl FnMut(&[Row])) -> Result<(), ReportError> {
    let Folds { examples, folds, .. } = folds;
    for (number, fold) in folds.iter_mut().enumerate() {
        let (classes, temperature) = (fold.file.classes(), f64::from(fold.file.temperature()));
        for rows in fold.pieces() {
            let places = fold.examples[rows.clone()].to_vec();
            let mean = fold.read(Field::Mean, rows.clone())?;
            let on = fold.read(Field::LogProbs, rows.clone())?;
            let off = fold.read(Field::LogProbsOff, rows)?;
            let numbers = mean.chunks(classes).zip(on.chunks(classes).zip(off.chunks(classes)));
            let row = |(place, (mean, (on, off))): (&usize, (_, (_, _)))| Row {
                place: *place,
                fold: number,
                label: examples[*place].row.label.as_deref().unwrap_or_default(),
                temperature,
                mean,
                on,
                off,
            };
            take(&places.iter().zip(numbers).map(row).collect::<Vec<Row>>());
        }
    }
    Ok(())
}
