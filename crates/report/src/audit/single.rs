//! Labels of one class: which class each example belongs to.

use aleator_run::Field;
use rayon::prelude::*;

use super::parts::{Example, Part, Parts};
use super::posterior::{Confusion, Counts, Evidence};
use super::settings::AuditSettings;
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// The classes that an example may belong to, ascending, each with its probability.
pub(super) type Posterior = Vec<(u32, f64)>;

/// The posterior of every example, in the order of the data.
pub(super) fn judge(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Vec<Posterior>, ReportError> {
    let confusion = learn(parts, settings, observer)?;
    let mut posteriors = vec![vec![]; parts.examples.len()];
    each_piece(parts, settings, |evidence, examples| {
        let found: Vec<Posterior> = evidence
            .par_iter()
            .map(|evidence| {
                let (posterior, _) = confusion.posterior(evidence);
                let classes = evidence.candidates.iter().map(|(class, _)| *class);
                classes.zip(posterior).collect()
            })
            .collect();
        examples.iter().zip(found).for_each(|(at, found)| posteriors[*at] = found);
    })?;
    Ok(posteriors)
}

/// C, by expectation maximisation.
fn learn(
    parts: &mut Parts,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Confusion, ReportError> {
    let mut confusion = Confusion::new(parts.task.class_names.len(), settings);
    let mut before = f64::NEG_INFINITY;
    for pass in 0..settings.passes {
        let mut counts = Counts::new(&confusion);
        each_piece(parts, settings, |evidence, _| counts.add_all(evidence, &confusion))?;
        confusion = counts.updated(&confusion, settings);
        let (done, total) = (pass + 1, settings.passes);
        observer(Step { what: "confusion of the labels", done, total });
        let change = (counts.log_likelihood - before) / parts.examples.len() as f64;
        if change.abs() < settings.tolerance {
            break;
        }
        before = counts.log_likelihood;
    }
    Ok(confusion)
}

/// Gives `take` the evidence of some examples at a time, and their positions.
fn each_piece(
    parts: &mut Parts,
    settings: &AuditSettings,
    mut take: impl FnMut(&[Evidence], &[usize]),
) -> Result<(), ReportError> {
    let Parts { examples, parts, .. } = parts;
    for part in parts {
        for rows in part.pieces() {
            let positions = part.examples[rows.clone()].to_vec();
            let mean = part.read(Field::Mean, rows.clone())?;
            let log_probs = part.read(Field::LogProbs, rows)?;
            take(&evidence(part, examples, &positions, &mean, &log_probs, settings), &positions);
        }
    }
    Ok(())
}

fn evidence<'a>(
    part: &Part,
    examples: &'a [Example],
    positions: &[usize],
    mean: &[f32],
    log_probs: &[f32],
    settings: &AuditSettings,
) -> Vec<Evidence<'a>> {
    let classes = part.file.classes();
    let temperature = f64::from(part.file.temperature());
    let one = |(row, at): (usize, &usize)| {
        let row = row * classes..(row + 1) * classes;
        let mean = mean[row.clone()].iter().map(|mean| f64::from(*mean) / temperature);
        Evidence::new(mean, &log_probs[row], &examples[*at].labels, settings)
    };
    positions.par_iter().enumerate().map(one).collect()
}
