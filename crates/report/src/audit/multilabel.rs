//! Classes that are on or off: which entries of a row are wrong.
//!
//! Each entry is judged by [`EntryNoise`], which is fitted to a sample of the examples: by what a
//! model says of the class. Where the labels are more probable with them, the other entries of the
//! row count too ([`CoOccurrence`]), and the errors that a row may have are weighed against each
//! other ([`RowErrors`]).

use aleator_run::Field;
use rayon::prelude::*;

use super::co_occurrence::{CoOccurrence, MOST_CLASSES};
use super::entry_noise::{Entries, EntryNoise};
use super::findings::{self, Findings, WrongLabels};
use super::parts::{self, Example, Parts};
use super::record::{Answer, Issue};
use super::row_errors::{LabelledRow, RowErrors};
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
    let mut best: Option<Judge> = None;
    let mut offer = |judge: Judge| {
        // The first of equal ones: models without means have the log-odds in their place.
        let least = best.as_ref().map(|best| best.noise.log_likelihood);
        if least.is_none_or(|least| judge.noise.log_likelihood > least) {
            best = Some(judge);
        }
    };
    for (at, utility) in choices.into_iter().enumerate() {
        let Sample { entries, residuals, step } = sample(parts, utility)?;
        let learn = |entries: &[Entries]| EntryNoise::learn(entries, settings.multilabel_passes);
        offer(Judge { utility, noise: learn(&entries), others: None });
        if (2..=MOST_CLASSES).contains(&entries.len()) {
            let (law, left_out) = CoOccurrence::learn(&entries, &residuals);
            let noise = learn(&left_out);
            let others = Others::new(law, left_out, step, &noise);
            offer(Judge { utility, noise, others: Some(others) });
        }
        let (done, total) = (at + 1, choices.len());
        observer(Step { what: "noise of the labels", done, total });
    }
    let Some(judge) = best else { unreachable!("there are two choices") };
    collect(parts, &judge, kept)
}

/// What entries are judged by.
struct Judge {
    utility: Utility,
    noise: EntryNoise,
    /// `None` where each entry stands alone.
    others: Option<Others>,
}

/// What the other entries of a row say.
struct Others {
    law: CoOccurrence,
    /// Of the examples that the law was fitted to, the utilities by a fit without the entry.
    left_out: Vec<Entries>,
    /// The distance between two of them, in examples.
    step: usize,
    errors: RowErrors,
}

impl Others {
    fn new(law: CoOccurrence, left_out: Vec<Entries>, step: usize, noise: &EntryNoise) -> Self {
        let sampled = left_out.first().map_or(0, Vec::len);
        let odds = |row: usize| {
            let entries: Vec<(f64, bool)> = left_out.iter().map(|of| of[row]).collect();
            with_row(&entries, noise, |labelled| labelled.swap_odds(ties(&law, noise)))
        };
        let odds: Vec<f64> = (0..sampled).into_par_iter().map(odds).collect();
        let errors = RowErrors::learn(&odds);
        Self { law, left_out, step, errors }
    }

    /// The log-odds of each class of an example to be on, by all others, and its label.
    fn entries(&self, row: &Row, utility: Utility) -> Vec<(f64, bool)> {
        let classes = row.fields[0].len();
        if row.position.is_multiple_of(self.step) {
            return self.left_out.iter().map(|of| of[row.position / self.step]).collect();
        }
        let residuals: Vec<f32> = (0..classes).map(|class| residual(row, class)).collect();
        let entry = |class: usize| {
            let utility = self.law.utility(class, utility.of(row, class), &residuals);
            (utility, is_on(row.example, class as u32))
        };
        (0..classes).map(entry).collect()
    }
}

/// B of two classes, as sharp as their utilities.
fn ties<'a>(law: &'a CoOccurrence, noise: &'a EntryNoise) -> impl Fn(usize, usize) -> f64 + 'a {
    |a, b| (noise.sharpness(a) * noise.sharpness(b)).sqrt() * law.tie(a, b)
}

/// Gives `take` the labels of a row with the log-odds that each is wrong.
fn with_row<T>(
    entries: &[(f64, bool)],
    noise: &EntryNoise,
    take: impl FnOnce(&LabelledRow) -> T,
) -> T {
    let log_mistakes = noise.log_mistakes();
    let log_odds = |(class, (utility, on)): (usize, &(f64, bool))| {
        let sharp = noise.sharpness(class) * utility;
        log_mistakes[usize::from(*on)] + if *on { -sharp } else { sharp }
    };
    let log_odds: Vec<f64> = entries.iter().enumerate().map(log_odds).collect();
    let is_on: Vec<bool> = entries.iter().map(|(_, on)| *on).collect();
    take(&LabelledRow { log_odds: &log_odds, is_on: &is_on, log_mistakes })
}

impl Judge {
    /// How probable each entry of an example is to be wrong.
    fn scores(&self, row: &Row) -> Vec<f64> {
        match &self.others {
            Some(others) => with_row(&others.entries(row, self.utility), &self.noise, |labelled| {
                others.errors.scores(labelled, ties(&others.law, &self.noise))
            }),
            None => {
                let score = |class: usize| {
                    let given = is_on(row.example, class as u32);
                    let on = self.noise.truly_on(class, self.utility.of(row, class), given);
                    if given { 1.0 - on } else { on }
                };
                (0..row.fields[0].len()).map(score).collect()
            }
        }
    }
}

/// Examples that are spread evenly over the data, in their order.
struct Sample {
    /// The entries of each class.
    entries: Vec<Entries>,
    /// Of each entry, its label minus the probability of the label to be on.
    residuals: Vec<Vec<f32>>,
    /// The distance between two of them, in examples.
    step: usize,
}

fn sample(parts: &mut Parts, utility: Utility) -> Result<Sample, ReportError> {
    let (classes, examples) = (parts.task.class_names.len(), parts.examples.len());
    let most = FITTED_EXAMPLES.min(FITTED_ENTRIES / classes.max(1)).max(1);
    let step = examples.div_ceil(most).max(1);
    let sampled = examples.div_ceil(step);
    let mut entries: Vec<Entries> = vec![vec![(0.0, false); sampled]; classes];
    let mut residuals = vec![vec![0.0; sampled]; classes];
    parts.each_piece(FIELDS, |rows| {
        for row in rows.iter().filter(|row| row.position % step == 0) {
            let at = row.position / step;
            for class in 0..classes {
                entries[class][at] = (utility.of(row, class), is_on(row.example, class as u32));
                residuals[class][at] = residual(row, class);
            }
        }
    })?;
    Ok(Sample { entries, residuals, step })
}

fn residual(row: &Row, class: usize) -> f32 {
    let [_, on, _] = row.fields;
    f32::from(u8::from(is_on(row.example, class as u32))) - on[class].exp()
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
    judge: &Judge,
    mut kept: Option<&mut Vec<Posterior>>,
) -> Result<Findings, ReportError> {
    // Of each class: `[given off, given on]` × `[truly off, truly on]`, summed probabilities.
    let mut tables = vec![[[0.0; 2]; 2]; parts.task.class_names.len()];
    let mut wrong = WrongLabels::new(parts.parts.len());
    let mut best = Best::new(LISTED);
    parts.each_piece(FIELDS, |rows| {
        let scores: Vec<Vec<f64>> = rows.par_iter().map(|row| judge.scores(row)).collect();
        for (row, scores) in rows.iter().zip(scores) {
            for ((class, table), score) in tables.iter_mut().enumerate().zip(scores) {
                let given = is_on(row.example, class as u32);
                let on = if given { 1.0 - score } else { score };
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
