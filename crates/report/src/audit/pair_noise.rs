//! What the noise model of the folds says of pairs of classes.

use aleator_metrics::probability_above_zero;
use rayon::prelude::*;

use super::folds::{Fold, Folds};
use super::single::Posterior;
use crate::covariance::{Covariances, LARGEST_MATRIX, Observer, Tie};
use crate::error::ReportError;

/// The noise between all pairs of classes.
#[derive(Clone, Debug)]
pub(super) struct PairNoise {
    classes: usize,
    /// Mean over the examples that rather are the row's class of P(u_column > u_row).
    flips: Vec<f64>,
    /// Mean of C Σ C / τ².
    covariance: Vec<f64>,
}

impl PairNoise {
    /// `None` without a covariance, and for too many classes.
    pub fn measure(
        folds: &mut Folds,
        posteriors: &[Posterior],
        observer: Observer,
    ) -> Result<Option<Self>, ReportError> {
        let classes = folds.classes();
        if classes > LARGEST_MATRIX {
            return Ok(None);
        }
        let mut covariance = vec![0.0; classes * classes];
        let mut flips = Flips::new(classes);
        let all = folds.examples.len() as f64;
        for fold in &mut folds.folds {
            let Some(mut covariances) = covariances(fold)? else { return Ok(None) };
            let share = fold.examples.len() as f64 / all;
            let matrix = covariances.average_covariance(observer)?;
            let sums = covariance.iter_mut().zip(&matrix.centred);
            sums.for_each(|(sum, value)| *sum += share * value);
            flips.add(fold, posteriors)?;
        }
        Ok(Some(Self { classes, flips: flips.finish(), covariance }))
    }

    /// How likely `given` is above `truth` where `truth` is rather right; `None` if no example is.
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

/// The covariance of two classes of each example, in the order of the source.
pub(super) fn ties(
    folds: &mut Folds,
    pairs: &[(u32, u32)],
    observer: Observer,
) -> Result<Vec<Option<Tie>>, ReportError> {
    let mut ties = vec![None; folds.examples.len()];
    for fold in &mut folds.folds {
        let Some(mut covariances) = covariances(fold)? else { return Ok(ties) };
        let pair = |place: &usize| (pairs[*place].0 as usize, pairs[*place].1 as usize);
        let pairs: Vec<(usize, usize)> = fold.examples.iter().map(pair).collect();
        for (place, tie) in fold.examples.iter().zip(covariances.between(&pairs, observer)?) {
            ties[*place] = Some(tie);
        }
    }
    Ok(ties)
}

fn covariances(fold: &Fold) -> Result<Option<Covariances>, ReportError> {
    match Covariances::open(&fold.run, aleator_run::Split::Test) {
        Ok(covariances) => Ok(Some(covariances)),
        Err(ReportError::NoCovariance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
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

    fn add(&mut self, fold: &mut Fold, posteriors: &[Posterior]) -> Result<(), ReportError> {
        let classes = self.classes;
        for rows in fold.pieces() {
            let places = fold.examples[rows.clone()].to_vec();
            let predictions = fold.file.rows(rows)?;
            let row = |(example, place): (usize, &usize)| {
                let truth = likeliest(&posteriors[*place]) as usize;
                let above = |class: usize| {
                    let difference = predictions.difference(example, class, truth);
                    probability_above_zero(difference.mean, difference.variance)
                };
                (truth, (0..classes).map(above).collect::<Vec<f64>>())
            };
            let found: Vec<(usize, Vec<f64>)> =
                places.par_iter().enumerate().map(|(at, place)| row((at, place))).collect();
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
            // No example: not a number, which `PairNoise::flip` tells.
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
