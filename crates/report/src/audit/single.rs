//! Labels of one class: what each example rather is.

use aleator_run::Field;
use rayon::prelude::*;

use super::folds::{Fold, Folds, Judged};
use super::posterior::{Confusion, Counts, Evidence};
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// The classes that an example may be, ascending, each with its probability.
pub(super) type Posterior = Vec<(u32, f64)>;

/// Passes over the data at most.
const PASSES: usize = 60;
/// The change of the log-likelihood of an example at which more passes change nothing.
const SETTLED: f64 = 1e-6;

/// The posterior of every example, in the order of the source.
pub(super) fn judge(folds: &mut Folds, observer: Observer) -> Result<Vec<Posterior>, ReportError> {
    let classes = folds.classes();
    let mut confusion = Confusion::new(classes);
    let mut before = f64::NEG_INFINITY;
    for pass in 0..PASSES {
        let mut counts = Counts::new(classes);
        each_piece(folds, |evidence, _| counts.add_all(evidence, &confusion, classes))?;
        confusion = counts.updated(&confusion);
        observer(Step { what: "confusion of the labels", done: pass + 1, total: PASSES });
        let change = (counts.log_likelihood - before) / folds.examples.len() as f64;
        if change.abs() < SETTLED {
            break;
        }
        before = counts.log_likelihood;
    }
    let mut posteriors = vec![vec![]; folds.examples.len()];
    each_piece(folds, |evidence, places| {
        let found: Vec<Posterior> = evidence
            .par_iter()
            .map(|evidence| {
                let (posterior, _) = confusion.posterior(evidence);
                let classes = evidence.candidates.iter().map(|(class, _)| *class);
                classes.zip(posterior).collect()
            })
            .collect();
        places.iter().zip(found).for_each(|(place, found)| posteriors[*place] = found);
    })?;
    Ok(posteriors)
}

/// Gives `take` the evidence of some examples at a time, and where they stand.
fn each_piece(
    folds: &mut Folds,
    mut take: impl FnMut(&[Evidence], &[usize]),
) -> Result<(), ReportError> {
    let Folds { examples, folds, .. } = folds;
    for fold in folds {
        for rows in fold.pieces() {
            let places = fold.examples[rows.clone()].to_vec();
            let (mean, log_probs) = numbers(fold, rows)?;
            take(&evidence(fold, examples, &places, &mean, &log_probs), &places);
        }
    }
    Ok(())
}

fn numbers(
    fold: &mut Fold,
    rows: std::ops::Range<usize>,
) -> Result<(Vec<f32>, Vec<f32>), ReportError> {
    Ok((fold.read(Field::Mean, rows.clone())?, fold.read(Field::LogProbs, rows)?))
}

fn evidence<'a>(
    fold: &Fold,
    examples: &'a [Judged],
    places: &[usize],
    mean: &[f32],
    log_probs: &[f32],
) -> Vec<Evidence<'a>> {
    let classes = fold.file.classes();
    let temperature = f64::from(fold.file.temperature());
    let rows = mean.par_chunks_exact(classes).zip(log_probs.par_chunks_exact(classes));
    let one = |((mean, log_probs), place): ((&[f32], &[f32]), &usize)| {
        let mean = mean.iter().map(|mean| f64::from(*mean) / temperature);
        Evidence::new(mean, log_probs, &examples[*place].said)
    };
    rows.zip(places).map(one).collect()
}
