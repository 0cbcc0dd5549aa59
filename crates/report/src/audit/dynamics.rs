//! Evidence from training: what a network predicted for examples while it learned their labels.

use rayon::prelude::*;

use super::arrays::require;
use super::planted::{PlantedError, Signs};
use super::posterior::{Confusion, Counts, Evidence};
use super::self_confidence::{divide, divide_by};
use super::settings::AuditSettings;
use super::single::{Posterior, with_classes};
use crate::error::ReportError;

/// Predictions for training examples, averaged over the epochs of a training that learned from
/// them: logarithms of probabilities, `[N, K]`.
///
/// A network that has seen a label says more for it than it should, so these numbers are no
/// evidence by themselves. They are read by comparison with trainings in which some labels were
/// replaced by errors, those of [`PlantedErrors::labels`](super::PlantedErrors::labels).
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingDynamics {
    /// Of a training on the given labels.
    pub given: Vec<f32>,
    /// Of a training on each set of planted labels, in their order.
    pub planted: Vec<Vec<f32>>,
}

/// What the dynamics say of every label.
pub(super) struct Readout {
    /// Of every example, by the training on the given labels.
    pub posteriors: Vec<Posterior>,
    /// Of every given label, averaged over the trainings that had it.
    pub given: Vec<Signs>,
    /// Of the labels by each training on planted ones.
    pub kept: Vec<Vec<Signs>>,
    /// Of the planted errors, in their order.
    pub errors: Vec<Vec<Signs>>,
}

/// Examples whose evidence is in memory at a time.
const PIECE: usize = 8192;

impl TrainingDynamics {
    /// Refuses arrays that do not fit the trainings that were asked for.
    pub(super) fn check(
        &self,
        rounds: usize,
        examples: usize,
        classes: usize,
    ) -> Result<(), ReportError> {
        let found = self.planted.len();
        require(found == rounds, "dynamics", || {
            format!("planted must have the {rounds} trainings on planted labels, found {found}")
        })?;
        for log_probs in self.planted.iter().chain([&self.given]) {
            let finite = log_probs.len() == examples * classes
                && log_probs.iter().all(|value| value.is_finite());
            require(finite, "dynamics", || {
                format!("must be [N, K] = [{examples}, {classes}] finite numbers for each training")
            })?;
        }
        Ok(())
    }

    /// Judges the given labels, and the planted ones in their trainings.
    pub(super) fn read(
        &self,
        given: &[u32],
        rounds: &[Vec<PlantedError>],
        classes: usize,
        settings: &AuditSettings,
    ) -> Readout {
        let mut own = self.given.clone();
        let labels: Vec<&[u32]> = given.iter().map(std::slice::from_ref).collect();
        let confidence = divide(&mut own, classes, &labels);
        let confusion = learn(&own, given, classes, settings);
        let judged = judge(&own, given, &confusion, settings);
        let (posteriors, given_signs) = judged.into_iter().unzip();
        let mut readout = Readout { posteriors, given: given_signs, kept: vec![], errors: vec![] };
        for (log_probs, errors) in self.planted.iter().zip(rounds) {
            let mut log_probs = log_probs.clone();
            divide_by(&mut log_probs, &confidence);
            let mut labels = given.to_vec();
            errors.iter().for_each(|error| labels[error.example] = error.label);
            let judged = judge(&log_probs, &labels, &confusion, settings);
            let signs: Vec<Signs> = judged.into_iter().map(|(_, signs)| signs).collect();
            readout.errors.push(errors.iter().map(|error| signs[error.example]).collect());
            readout.kept.push(signs);
        }
        readout.average(rounds);
        readout
    }
}

impl Readout {
    /// Gives every label the mean over the trainings that had it: more than one is less noisy.
    fn average(&mut self, rounds: &[Vec<PlantedError>]) {
        let mut counts = vec![1.0; self.given.len()];
        for (signs, errors) in self.kept.iter().zip(rounds) {
            let mut planted = vec![false; signs.len()];
            errors.iter().for_each(|error| planted[error.example] = true);
            for at in (0..signs.len()).filter(|at| !planted[*at]) {
                self.given[at].log_odds += signs[at].log_odds;
                self.given[at].class_log_odds += signs[at].class_log_odds;
                self.given[at].surprise += signs[at].surprise;
                counts[at] += 1.0;
            }
        }
        for (signs, count) in self.given.iter_mut().zip(counts) {
            signs.log_odds /= count;
            signs.class_log_odds /= count;
            signs.surprise /= count;
        }
    }
}

fn evidence<'a>(row: &[f32], label: &'a u32, settings: &AuditSettings) -> Evidence<'a> {
    let mean = row.iter().map(|log_p| f64::from(*log_p).max(f64::from(f32::MIN)));
    Evidence::new(mean, row, std::slice::from_ref(label), settings)
}

/// C, by expectation maximisation.
fn learn(log_probs: &[f32], labels: &[u32], classes: usize, settings: &AuditSettings) -> Confusion {
    let mut confusion = Confusion::new(classes, settings);
    let mut before = f64::NEG_INFINITY;
    for _ in 0..settings.passes {
        let mut counts = Counts::new(&confusion);
        for (rows, labels) in log_probs.chunks(PIECE * classes).zip(labels.chunks(PIECE)) {
            let evidence: Vec<Evidence> = rows
                .par_chunks_exact(classes)
                .zip(labels)
                .map(|(row, label)| evidence(row, label, settings))
                .collect();
            counts.add_all(&evidence, &confusion);
        }
        confusion = counts.updated(&confusion, settings);
        let change = (counts.log_likelihood - before) / labels.len() as f64;
        before = counts.log_likelihood;
        if change.abs() < settings.tolerance {
            break;
        }
    }
    confusion
}

/// The posterior of every example, and the signs that its label is wrong.
fn judge(
    log_probs: &[f32],
    labels: &[u32],
    confusion: &Confusion,
    settings: &AuditSettings,
) -> Vec<(Posterior, Signs)> {
    let classes = log_probs.len() / labels.len();
    let rows = log_probs.par_chunks_exact(classes).zip(labels);
    rows.map(|(row, label)| {
        let evidence = evidence(row, label, settings);
        let posterior = with_classes(&evidence, confusion.posterior(&evidence).0);
        let signs = Signs::of(&posterior, row, *label);
        (posterior, signs)
    })
    .collect()
}
