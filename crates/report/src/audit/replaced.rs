//! How many labels must be wrong even if every other doubt is the model's: a lower bound.
//!
//! Labels are explained by the model, however sharp or soft it should be, and by labels that were
//! replaced at random in a share ε of all cases. Hard examples need no ε; clear examples with an
//! impossible label do.

use aleator_run::Field;
use rayon::prelude::*;

use super::parts::Parts;
use crate::error::ReportError;

/// Examples that are looked at, at most, at equal distances in the data.
const EXAMPLES: usize = 20_000;
/// From half as sharp as the model to four times, in steps of a sixth of an octave.
const STEPS: usize = 18;
const STEPS_OF_AN_OCTAVE: f64 = 6.0;

/// The share of labels that were replaced and are now wrong; `given` are the labels of all examples.
pub(super) fn share(parts: &mut Parts, given: &[u32]) -> Result<f64, ReportError> {
    let (examples, classes) = (parts.examples.len(), parts.task.class_names.len());
    let step = examples.div_ceil(EXAMPLES).max(1);
    let mut own: Vec<(u32, Vec<f64>)> = vec![];
    parts.each_piece([Field::Mean], |rows| {
        let some: Vec<(u32, Vec<f64>)> = rows
            .par_iter()
            .filter(|row| row.position % step == 0)
            .map(|row| {
                let label = given[row.position];
                let [mean] = row.fields;
                let mean: Vec<f64> =
                    mean.iter().map(|value| f64::from(*value) / row.temperature).collect();
                (label, (0..=STEPS).map(|at| probability(&mean, label, sharpness(at))).collect())
            })
            .collect();
        own.extend(some);
    })?;
    let count = own.len() as f64;
    let mut frequencies = vec![0.0; classes];
    own.iter().for_each(|(label, _)| frequencies[*label as usize] += 1.0 / count);
    let (mut best, mut share) = (f64::NEG_INFINITY, 0.0);
    for at in 0..=STEPS {
        let pairs: Vec<(f64, f64)> =
            own.iter().map(|(label, own)| (own[at], frequencies[*label as usize])).collect();
        let replaced = share_of_replaced(&pairs);
        let log = |(own, any): &(f64, f64)| ((1.0 - replaced) * own + replaced * any).ln();
        let log_likelihood: f64 = pairs.iter().map(log).sum();
        if log_likelihood > best {
            (best, share) = (log_likelihood, replaced);
        }
    }
    // A label that is replaced may be drawn as it was.
    Ok(share * (1.0 - frequencies.iter().map(|frequency| frequency * frequency).sum::<f64>()))
}

fn sharpness(step: usize) -> f64 {
    0.5 * (step as f64 / STEPS_OF_AN_OCTAVE).exp2()
}

/// softmax(a μ/τ) of a label.
fn probability(mean: &[f64], label: u32, sharpness: f64) -> f64 {
    let most = mean.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = mean.iter().map(|value| (sharpness * (value - most)).exp()).sum();
    (sharpness * (mean[label as usize] - most)).exp() / sum
}

/// ε of the mixture (1 − ε) own + ε any, by expectation maximisation.
fn share_of_replaced(pairs: &[(f64, f64)]) -> f64 {
    let mut share = 0.05;
    for _ in 0..200 {
        let posterior = |(own, any): &(f64, f64)| {
            let replaced = share * any;
            replaced / ((1.0 - share) * own + replaced)
        };
        let next = pairs.iter().map(posterior).sum::<f64>() / pairs.len() as f64;
        let change = (next - share).abs();
        share = next;
        if change < 1e-7 {
            break;
        }
    }
    share
}
