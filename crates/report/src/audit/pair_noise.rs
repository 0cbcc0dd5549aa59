//! The noise between pairs of classes, from the covariances of the examples.

use aleator_covariance::RateSums;
use rayon::prelude::*;

use super::findings::most_probable;
use super::parts::Part;
use super::single::Posterior;
use crate::covariance::{LARGEST_MATRIX, Observer, Tie};
use crate::error::ReportError;

/// The noise between all pairs of classes.
pub(super) struct PairNoise {
    classes: usize,
    /// P(u_column > u_row), over the examples whose most probable class is the row's.
    flips: RateSums,
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
        let mut flips = RateSums::new(classes);
        let all = posteriors.len() as f64;
        for part in parts {
            let Some(covariances) = &mut part.covariances else { return Ok(None) };
            let share = part.positions.len() as f64 / all;
            let matrix = covariances.average_covariance(observer)?;
            let sums = covariance.iter_mut().zip(&matrix.centred);
            sums.for_each(|(sum, value)| *sum += share * value);
            add_flips(&mut flips, part, classes, posteriors)?;
        }
        Ok(Some(Self { classes, flips, covariance }))
    }

    /// How likely the utility of `given` is above that of `truth` where `truth` is the most probable
    /// class; `None` if no example is.
    pub fn flip(&self, truth: u32, given: u32) -> Option<f64> {
        self.flips.rate(truth as usize, given as usize)
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

fn add_flips(
    flips: &mut RateSums,
    part: &mut Part,
    classes: usize,
    posteriors: &[Posterior],
) -> Result<(), ReportError> {
    for rows in part.pieces() {
        let positions = &part.positions[rows.clone()];
        let predictions = part.reader.file.rows(rows)?;
        let rates = |(row, position): (usize, &usize)| {
            let truth =
                most_probable(&posteriors[*position]).map_or(0, |(class, _)| class as usize);
            let flip = |class: usize| predictions.flip_probability(row, class, truth);
            (truth, (0..classes).map(flip).collect::<Vec<f64>>())
        };
        let found: Vec<(usize, Vec<f64>)> = positions.par_iter().enumerate().map(rates).collect();
        found.into_iter().for_each(|(truth, rates)| flips.add(truth, rates.into_iter()));
    }
    Ok(())
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
        let pairs: Vec<(usize, usize)> = part.positions.iter().map(pair).collect();
        for (at, tie) in part.positions.iter().zip(covariances.between(&pairs, observer)?) {
            ties[*at] = Some(tie);
        }
    }
    Ok(ties)
}
