//! Classes that are on or off: which entries of a row are wrong.
//!
//! Each entry is judged by [`EntryNoise`], which is fitted to a sample of the examples.

use aleator_run::Field;

use super::entry_noise::{Entries, EntryNoise};
use super::findings::{self, Findings, WrongLabels};
use super::parts::{self, Example, Parts};
use super::record::{Answer, Issue};
use super::settings::AuditSettings;
use super::single::Posterior;
use crate::covariance::{Best, Observer, Step};
use crate::error::ReportError;

/// The most entries that are listed, those most surely wrong.
const LISTED: usize = 1_000_000;
/// The most examples and the most entries that the noise is fitted to.
const FITTED_EXAMPLES: usize = 20_000;
const FITTED_ENTRIES: usize = 1 << 22;

const FIELDS: [Field; 3] = [Field::Mean, Field::LogProbs, Field::LogProbsOff];
type Row<'a> = parts::Row<'a, { FIELDS.len() }>;

/// What a model says of a class: how much it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Utility {
    /// The mean of the utility, without the noise.
    Mean,
    /// The log-odds of the label, with the noise.
    LogOdds,
}

/// Judges every entry; `kept` gets for each example the probabilities of all classes to be on.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    kept: Option<&mut Vec<Posterior>>,
    observer: Observer,
) -> Result<Findings, ReportError> {
    let choices = [Utility::Mean, Utility::LogOdds];
    let mut fits = vec![];
    for (at, utility) in choices.into_iter().enumerate() {
        fits.push((
            EntryNoise::learn(&sample(parts, utility)?, settings.multilabel_passes),
            utility,
        ));
        let (done, total) = (at + 1, choices.len());
        observer(Step { what: "noise of the labels", done, total });
    }
    let better = |a: &(EntryNoise, Utility), b: &(EntryNoise, Utility)| {
        // The first of equal ones: models without means have the log-odds in their place.
        b.0.log_likelihood > a.0.log_likelihood
    };
    let best = fits.into_iter().reduce(|a, b| if better(&a, &b) { b } else { a });
    let Some((noise, utility)) = best else { unreachable!("there are two choices") };
    collect(parts, &noise, utility, kept)
}

/// The entries of each class, of examples that are spread evenly over the data.
fn sample(parts: &mut Parts, utility: Utility) -> Result<Vec<Entries>, ReportError> {
    let classes = parts.task.class_names.len();
    let most = FITTED_EXAMPLES.min(FITTED_ENTRIES / classes.max(1)).max(1);
    let step = parts.examples.len().div_ceil(most).max(1);
    let mut entries: Vec<Entries> = vec![vec![]; classes];
    parts.each_piece(FIELDS, |rows| {
        for row in rows.iter().filter(|row| row.position % step == 0) {
            for (class, entries) in entries.iter_mut().enumerate() {
                entries.push((utility.of(row, class), is_on(row.example, class as u32)));
            }
        }
    })?;
    Ok(entries)
}

impl Utility {
    fn of(self, row: &Row, class: usize) -> f64 {
        let [mean, on, off] = row.fields;
        match self {
            Self::Mean => f64::from(mean[class]) / row.temperature,
            // Finite, as the mean is, where one of the two is impossible.
            Self::LogOdds => (f64::from(on[class]) - f64::from(off[class])).clamp(-1e30, 1e30),
        }
    }
}

fn collect(
    parts: &mut Parts,
    noise: &EntryNoise,
    utility: Utility,
    mut kept: Option<&mut Vec<Posterior>>,
) -> Result<Findings, ReportError> {
    // Of each class: `[given off, given on]` × `[truly off, truly on]`, summed probabilities.
    let mut tables = vec![[[0.0; 2]; 2]; parts.task.class_names.len()];
    let mut wrong = WrongLabels::new(parts.parts.len());
    let mut best = Best::new(LISTED);
    parts.each_piece(FIELDS, |rows| {
        for row in rows {
            for (class, table) in tables.iter_mut().enumerate() {
                let given = is_on(row.example, class as u32);
                let on = noise.truly_on(class, utility.of(row, class), given);
                let score = if given { 1.0 - on } else { on };
                table[usize::from(given)][0] += 1.0 - on;
                table[usize::from(given)][1] += on;
                wrong.add(row.example.part, score);
                best.offer(score, (row.position, class as u32), ());
                if let Some(kept) = &mut kept {
                    kept[row.position].push((class as u32, on));
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
