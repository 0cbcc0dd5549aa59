//! How much of the doubt in the predictions is wrong labels: several readings, weighed.
//!
//! Predictions of labels alone cannot tell labels that are wrong from examples that the model finds
//! hard, so every count rests on an assumption. A [`Reading`] is one: a sharpness a of the truth and
//! a power b of the label's own plausibility ([`posterior`](super::posterior)). With b = 0 errors do
//! not depend on the example; with larger b they gather where the example is ambiguous, as those of
//! people do. All readings are fitted, and each counts by how well it explains the labels.
//!
//! Likelihoods of so simple laws differ by more than the labels can decide, so a reading loses a
//! factor e for each tenth of what the best one gains over "no label is wrong", and not for each
//! nat. Whether any label is wrong is decided apart, by labels that are replaced at random in a
//! share ε of all cases: clear examples with an impossible label need ε > 0, hard examples do not.

use aleator_metrics::normal_cdf;
use aleator_run::Field;
use rayon::prelude::*;

use super::parts::Parts;
use super::posterior::{Confusion, Counts, Evidence};
use super::record::{AuditReading, Estimate};
use super::settings::AuditSettings;
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// The values of a, and of b, that are tried. More than 4 is as good as certainty; b = 1 would make
/// the label say nothing about the truth.
const SHARPNESS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0];
const LABEL_POWERS: [f64; 4] = [0.0, 0.2, 0.4, 0.6];

/// The part of the best gain by which a reading falls behind when it loses a factor e.
const DECISIVE: f64 = 0.1;

/// Readings that count for less than this are left out.
const LEAST_WEIGHT: f64 = 0.01;

/// Readings are weighed on at most this many examples, and on fewer where classes are many: this
/// many products of examples, candidates and classes.
const EXAMPLES: usize = 10_000;
const PRODUCTS: usize = 10_000_000;
const FEWEST: usize = 500;

/// Passes over all examples that follow those over the sample.
const LAST_PASSES: usize = 5;

/// One way to read the predictions.
pub(super) struct Reading {
    /// Has its sharpness and label power.
    pub settings: AuditSettings,
    pub confusion: Confusion,
    /// How much it counts; those of all readings sum to one.
    pub weight: f64,
    log_likelihood: f64,
}

/// All readings that count.
pub(super) struct Readings {
    pub all: Vec<Reading>,
    /// How probable it is that any label is wrong.
    pub any_wrong: f64,
    /// The share of labels that were replaced at random, if all other doubt is the model's.
    pub replaced: f64,
}

/// Some examples, held in memory.
struct Sample {
    /// μ/τ and log p of each, `[K]`.
    rows: Vec<(Vec<f64>, Vec<f32>)>,
    labels: Vec<Vec<u32>>,
    given: Vec<u32>,
}

impl Readings {
    /// Fits and weighs all readings; `given` are the labels of all examples.
    pub fn learn(
        parts: &mut Parts,
        given: &[u32],
        settings: &AuditSettings,
        observer: Observer,
    ) -> Result<Self, ReportError> {
        let classes = parts.task.class_names.len();
        let sample = Sample::read(parts, given, settings)?;
        let mut all = vec![];
        let total = SHARPNESS.len() * LABEL_POWERS.len();
        for label_power in LABEL_POWERS {
            let mut confusion = Confusion::new(classes, settings);
            for sharpness in SHARPNESS {
                let settings = AuditSettings { sharpness, label_power, ..*settings };
                let (fitted, log_likelihood) = sample.fit(confusion, &settings);
                confusion = fitted.clone();
                all.push(Reading { settings, confusion: fitted, weight: 0.0, log_likelihood });
                observer(Step { what: "readings of the predictions", done: all.len(), total });
            }
        }
        weigh(&mut all, sample.without_noise());
        let (replaced, gain) = sample.replaced();
        // Half the logarithm of the number of examples is what one more parameter must gain
        // (Schwarz). Without evidence the odds are even: errors of people may hide in hard
        // examples.
        let evidence = (gain - 0.5 * (sample.rows.len() as f64).ln()).max(0.0);
        let any_wrong = 1.0 / (1.0 + (-evidence).exp());
        Ok(Self { all, any_wrong, replaced })
    }

    /// How many passes over all data each reading still needs.
    pub fn last_passes(examples: usize, classes: usize, settings: &AuditSettings) -> usize {
        if sample_size(examples, classes, settings) < examples { LAST_PASSES } else { 0 }
    }

    /// The number of wrong labels and its interval, from the sum of the scores of each reading and
    /// the variance of that sum.
    pub fn estimate(&self, sums: &[(f64, f64)], examples: usize) -> Estimate {
        let weights: Vec<f64> =
            self.all.iter().map(|reading| self.any_wrong * reading.weight).collect();
        let count = weights.iter().zip(sums).map(|(weight, (sum, _))| weight * sum).sum();
        let below = |number: f64| {
            let parts = weights.iter().zip(sums).map(|(weight, (sum, variance))| {
                // At least one label, so that a reading without doubt is no certainty.
                weight * normal_cdf((number - sum) / (variance + 1.0).sqrt())
            });
            1.0 - self.any_wrong + parts.sum::<f64>()
        };
        let replaced = self.replaced * examples as f64;
        let fewest = (replaced - 1.96 * (replaced + 1.0).sqrt()).max(0.0);
        Estimate {
            count,
            low: quantile(&below, 0.025, examples).min(fewest).min(count),
            high: quantile(&below, 0.975, examples).max(count),
        }
    }

    /// What `audit.json` says of them.
    pub fn record(&self, sums: &[(f64, f64)]) -> Vec<AuditReading> {
        let record = |(reading, (wrong, _)): (&Reading, &(f64, f64))| AuditReading {
            sharpness: reading.settings.sharpness,
            label_power: reading.settings.label_power,
            weight: reading.weight,
            wrong: *wrong,
        };
        self.all.iter().zip(sums).map(record).collect()
    }
}

/// Gives the readings their weights and leaves out those that hardly count. `none` is the
/// log-likelihood if no label is wrong.
fn weigh(all: &mut Vec<Reading>, none: f64) {
    let best = all.iter().map(|it| it.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
    // One nat at least: less is no difference at all.
    let scale = (DECISIVE * (best - none)).max(1.0);
    for reading in all.iter_mut() {
        reading.weight = ((reading.log_likelihood - best) / scale).exp();
    }
    for _ in 0..2 {
        let sum: f64 = all.iter().map(|reading| reading.weight).sum();
        all.iter_mut().for_each(|reading| reading.weight /= sum);
        all.retain(|reading| reading.weight >= LEAST_WEIGHT);
    }
    let sum: f64 = all.iter().map(|reading| reading.weight).sum();
    all.iter_mut().for_each(|reading| reading.weight /= sum);
}

/// The smallest number of labels that `below` gives this share, by bisection.
fn quantile(below: &impl Fn(f64) -> f64, share: f64, examples: usize) -> f64 {
    let (mut low, mut high) = (0.0, examples as f64);
    if below(low) >= share {
        return low;
    }
    // 2⁻⁴⁰ of the number of examples is far below one label.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    high
}

/// How many examples readings are weighed on.
fn sample_size(examples: usize, classes: usize, settings: &AuditSettings) -> usize {
    let products = classes.saturating_mul(classes.min(settings.candidates)).max(1);
    examples.min((PRODUCTS / products).clamp(FEWEST, EXAMPLES))
}

impl Sample {
    /// Examples at equal distances in the data.
    fn read(
        parts: &mut Parts,
        given: &[u32],
        settings: &AuditSettings,
    ) -> Result<Self, ReportError> {
        let (examples, classes) = (parts.examples.len(), parts.task.class_names.len());
        let step = examples.div_ceil(sample_size(examples, classes, settings).max(1)).max(1);
        let mut found = vec![];
        parts.each_piece([Field::Mean, Field::LogProbs], |rows| {
            for row in rows.iter().filter(|row| row.position % step == 0) {
                let [mean, log_probs] = row.fields;
                let mean = mean.iter().map(|mean| f64::from(*mean) / row.temperature).collect();
                let labels = row.example.labels.clone();
                found.push((row.position, (mean, log_probs.to_vec()), labels));
            }
        })?;
        // Parts come one after the other; the order of the data is that of no model.
        found.sort_unstable_by_key(|(position, ..)| *position);
        let mut sample = Self { rows: vec![], labels: vec![], given: vec![] };
        for (position, row, labels) in found {
            sample.rows.push(row);
            sample.labels.push(labels);
            sample.given.push(given[position]);
        }
        Ok(sample)
    }

    /// C by expectation maximisation from `start`, and the log-likelihood of the labels.
    fn fit(&self, start: Confusion, settings: &AuditSettings) -> (Confusion, f64) {
        let evidence: Vec<Evidence> = self
            .rows
            .par_iter()
            .zip(&self.labels)
            .map(|((mean, log_probs), labels)| {
                Evidence::new(mean.iter().copied(), log_probs, labels, settings)
            })
            .collect();
        let (mut confusion, mut before) = (start, f64::NEG_INFINITY);
        for _ in 0..settings.passes {
            let mut counts = Counts::new(&confusion);
            counts.add_all(&evidence, &confusion);
            confusion = counts.updated(&confusion, settings);
            let change = (counts.log_likelihood - before) / evidence.len() as f64;
            before = counts.log_likelihood;
            // Weights of readings differ by far more than the tolerance of the final fit.
            if change.abs() < 10.0 * settings.tolerance {
                break;
            }
        }
        (confusion, before)
    }

    /// The probability of each given label under softmax(a μ/τ).
    fn given_probabilities(&self, sharpness: f64) -> Vec<f64> {
        let both = self.rows.par_iter().zip(&self.given);
        both.map(|((mean, _), given)| {
            let most = mean.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = mean.iter().map(|value| (sharpness * (value - most)).exp()).sum();
            (sharpness * (mean[*given as usize] - most)).exp() / sum
        })
        .collect()
    }

    /// The log-likelihood of the labels if none is wrong: that of the model as it is.
    fn without_noise(&self) -> f64 {
        let both = self.rows.iter().zip(&self.labels);
        let log_label = |((_, log_probs), labels): (&(Vec<f64>, Vec<f32>), &Vec<u32>)| -> f64 {
            labels.iter().map(|label| f64::from(log_probs[*label as usize])).sum()
        };
        let given: f64 = both.map(log_label).sum();
        if given.is_finite() { given } else { f64::MIN / 2.0 }
    }

    /// The share of labels that are replaced by one drawn from all labels, and the log-likelihood
    /// that is gained by it; the sharpness is free in both.
    fn replaced(&self) -> (f64, f64) {
        /// From half as sharp as the model to four times, in steps of a twelfth of an octave.
        const STEPS: usize = 36;
        let count = self.given.len() as f64;
        let mut frequencies = vec![0.0; self.rows.first().map_or(0, |(mean, _)| mean.len())];
        self.given.iter().for_each(|class| frequencies[*class as usize] += 1.0 / count);
        let (mut none, mut best, mut share) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0);
        for step in 0..=STEPS {
            let probabilities = self.given_probabilities(0.5 * (step as f64 / 12.0).exp2());
            let pairs: Vec<(f64, f64)> = probabilities
                .into_iter()
                .zip(self.given.iter().map(|class| frequencies[*class as usize]))
                .collect();
            let log_likelihood = |replaced: f64| -> f64 {
                let log = |(own, any): &(f64, f64)| ((1.0 - replaced) * own + replaced * any).ln();
                pairs.iter().map(log).sum()
            };
            none = none.max(log_likelihood(0.0));
            let replaced = share_of_replaced(&pairs);
            let found = log_likelihood(replaced);
            if found > best {
                // A label that is replaced may be drawn as it was.
                let same: f64 = frequencies.iter().map(|frequency| frequency * frequency).sum();
                (best, share) = (found, replaced * (1.0 - same));
            }
        }
        (share, (best - none).max(0.0))
    }
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
