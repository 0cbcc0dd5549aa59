//! The noise between pairs of classes, from the covariances of the examples.

use aleator_metrics::probability_above_zero;
use rayon::prelude::*;

use super::parts::Part;
use super::single::Posterior;
use crate::covariance::{LARGEST_MATRIX, Observer, Tie};
use crate::error::ReportError;

/// The noise between all pairs of classes.
#[derive(Clone, Debug)]
pub(super) struct PairNoise {
    classes: usize,
    /// P(u_column > u_row), averaged over the examples whose most probable class is the row's.
    flips: Vec<f64>,
    /// Mean of C Σ C / τ².
    covariance: Vec<f64>,
}

impl PairNoise {
    /// `None` without a covariance, and for too many classes.
    pub fn measure(
        parts: &mut [Part],
        classes: usize,
        posteriors: &[Posterior],
        observer: Observer,
    ) -> Result<Option<Self>, ReportError> {
        if classes > LARGEST_MATRIX {
            return Ok(None);
        }
        let mut covariance = vec![0.0; classes * classes];
        let mut flips = Flips::new(classes);
        let all = posteriors.len() as f64;
        for part in parts {
            let Some(covariances) = &mut part.covariances else { return Ok(None) };
            let share = part.examples.len() as f64 / all;
            let matrix = covariances.average_covariance(observer)?;
            let sums = covariance.iter_mut().zip(&matrix.centred);
            sums.for_each(|(sum, value)| *sum += share * value);
            flips.add(part, posteriors)?;
        }
        Ok(Some(Self { classes, flips: flips.finish(), covariance }))
    }

    /// How likely the utility of `given` is above that of `truth` where `truth` is the most probable
    /// class; `None` if no example is.
    pub fn flip(&self, truth: u32, given: u32) -> Option<f64> {
        let rate = self.flips[truth as usize * self.classes + given as usize];
        (!rate.is_nan()).then_some(rate)
    }

    /// C Σ̄ C / τ².
    pub fn covariance(&self, a: u32, b: u32) -> f64 {
        self.covariance[a as usize * self.classes + b as usize]
    }

    /// Its correlation.
    pub fn correlation(&self, a: u32, b: u32) -> Option<f64> {
        let scale = (self.covariance(a, a) * self.covariance(b, b)).sqrt();
        (scale > 0.0).then(|| (self.covariance(a, b) / scale).clamp(-1.0, 1.0))
    }
}

/// The covariance of two classes of each example, in the order of the data.
pub(super) fn ties(
    parts: &mut [Part],
    pairs: &[(u32, u32)],
    observer: Observer,
) -> Result<Vec<Option<Tie>>, ReportError> {
    let mut ties = vec![None; pairs.len()];
    for part in parts {
        let Some(covariances) = &mut part.covariances else { return Ok(ties) };
        let pair = |at: &usize| (pairs[*at].0 as usize, pairs[*at].1 as usize);
        let pairs: Vec<(usize, usize)> = part.examples.iter().map(pair).collect();
        for (at, tie) in part.examples.iter().zip(covariances.between(&pairs, observer)?) {
            ties[*at] = Some(tie);
        }
    }
    Ok(ties)
}

struct Flips {
    classes: usize,
    examples: Vec<usize>,
    sums: Vec<f64>,
}

impl Flips {
    fn new(classes: usize) -> Self {
        Self { classes, examples: vec![0; classes], sums: vec![0.0; classes * classes] }
    }

    fn add(&mut self, part: &mut Part, posteriors: &[Posterior]) -> Result<(), ReportError> {
        let classes = self.classes;
        for rows in part.pieces() {
            let examples = part.examples[rows.clone()].to_vec();
            let predictions = part.file.rows(rows)?;
            let flips = |(row, example): (usize, &usize)| {
                let truth = likeliest(&posteriors[*example]) as usize;
                let above = |class: usize| {
                    let difference = predictions.difference(row, class, truth);
                    probability_above_zero(difference.mean, difference.variance)
                };
                (truth, (0..classes).map(above).collect::<Vec<f64>>())
            };
            let found: Vec<(usize, Vec<f64>)> =
                examples.par_iter().enumerate().map(flips).collect();
            for (truth, rates) in found {
                self.examples[truth] += 1;
                let sums = &mut self.sums[truth * classes..(truth + 1) * classes];
                sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<f64> {
        for (row, examples) in self.sums.chunks_exact_mut(self.classes).zip(&self.examples) {
            // NaN without an example, which `PairNoise::flip` turns into `None`.
            row.iter_mut().for_each(|sum| *sum /= *examples as f64);
        }
        self.sums
    }
}

/// The most probable class; of equal ones the first.
pub(super) fn likeliest(posterior: &Posterior) -> u32 {
    let better = |best: (u32, f64), next: &(u32, f64)| if next.1 > best.1 { *next } else { best };
    posterior.iter().fold((0, f64::NEG_INFINITY), better).0
}
