//! The numbers of the average covariance, centred by its diagonal and its row means.

use rayon::prelude::*;

use super::open::Covariances;
use super::{Observer, ROUNDING, Step};
use crate::error::ReportError;

/// One number of Σ̄ in its three forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub raw: f64,
    /// C Σ̄ C / τ².
    pub centred: f64,
    /// Zero where it is not defined.
    pub correlation: f64,
}

/// Turns numbers of mean V Vᵀ into those of Σ̄ = diag(mean d²) + mean V Vᵀ; vectors are `[K]`.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    /// The diagonal of Σ̄.
    variances: Vec<f64>,
    /// The means of the rows of mean V Vᵀ, and of these.
    factor_rows: Vec<f64>,
    factor_mean: f64,
    /// Whether the numbers are of C V (C V)ᵀ.
    centred: bool,
    /// The means of the rows of Σ̄, and of these.
    rows: Vec<f64>,
    mean: f64,
    /// Whether only C Σ̄ C can be told from the labels.
    is_shift_free: bool,
    /// The standard deviations of C Σ̄ C, or of Σ̄, inverted; zero where there is none to speak of.
    inverse: Vec<f64>,
    temperature: f64,
}

/// Classes of one task.
const CLASSES: usize = 64;

impl Covariances {
    /// Reads what converts the numbers of blocks into those of Σ̄.
    pub(super) fn entries(&mut self, observer: Observer) -> Result<Entries, ReportError> {
        let (classes, total) = (self.classes(), self.reader.file.examples());
        // Of each class: d², its square of V, its row of V Vᵀ.
        let mut sums = vec![[0.0; 3]; classes];
        let mut mean = 0.0;
        for rows in self.pieces() {
            let done = rows.end;
            let noise = self.noise(rows)?;
            let factors = noise.sums();
            let products = noise.times(&factors);
            mean += factors.iter().map(|value| value * value).sum::<f64>();
            sums.par_chunks_mut(CLASSES).enumerate().for_each(|(chunk, sums)| {
                let first = chunk * CLASSES;
                for example in 0..noise.examples() {
                    for (class, [diag, factors, row]) in (first..).zip(sums.iter_mut()) {
                        let at = example * classes + class;
                        *diag += (noise.diag[at] as f64).powi(2);
                        *factors += noise.square(example, class);
                        *row += products[at];
                    }
                }
            });
            observer(Step { what: "examples: variances", done, total });
        }
        let (n, k) = (total as f64, classes as f64);
        let diag: Vec<f64> = sums.iter().map(|[diag, ..]| diag / n).collect();
        let variances: Vec<f64> =
            diag.iter().zip(&sums).map(|(own, [_, factors, _])| own + factors / n).collect();
        let factor_rows: Vec<f64> = sums.iter().map(|[.., row]| row / (n * k)).collect();
        let factor_mean = mean / (n * k * k);
        let rows: Vec<f64> =
            diag.iter().zip(&factor_rows).map(|(own, row)| own / k + row).collect();
        let mean = diag.iter().sum::<f64>() / (k * k) + factor_mean;
        let is_shift_free = self.is_shift_free();
        let inverse = variances.iter().zip(&rows).map(|(raw, row)| match is_shift_free {
            true => inverse_deviation(*raw, *row, mean),
            false => inverse_deviation(*raw, 0.0, 0.0),
        });
        let inverse = inverse.collect();
        let (centred, temperature) = (self.blocks_are_centred(), self.temperature());
        Ok(Entries {
            variances,
            factor_rows,
            factor_mean,
            centred,
            rows,
            mean,
            is_shift_free,
            inverse,
            temperature,
        })
    }
}

impl Entries {
    /// Of two different classes, from their number of mean V Vᵀ, raw or centred.
    pub fn pair(&self, i: usize, j: usize, factors: f64) -> Entry {
        let Self { factor_rows, factor_mean, .. } = self;
        let (raw, centred) = if self.centred {
            // The factors are centred exactly already; only the diagonal has to be centred.
            let row = |class: usize| self.rows[class] - factor_rows[class];
            let raw = factors + factor_rows[i] + factor_rows[j] - factor_mean;
            (raw, factors - row(i) - row(j) + (self.mean - factor_mean))
        } else {
            (factors, factors - self.rows[i] - self.rows[j] + self.mean)
        };
        let centred = if self.is_shift_free { centred } else { raw };
        let correlation = (centred * self.inverse[i] * self.inverse[j]).clamp(-1.0, 1.0);
        Entry { raw, centred: centred / self.temperature.powi(2), correlation }
    }

    /// The variance of one class.
    pub fn variance(&self, class: usize) -> Entry {
        let raw = self.variances[class];
        let centred = raw - 2.0 * self.rows[class] + self.mean;
        let centred = if self.is_shift_free { centred } else { raw };
        let correlation = f64::from(u8::from(self.inverse[class] > 0.0));
        Entry { raw, centred: centred / self.temperature.powi(2), correlation }
    }

    /// Whether two classes have a correlation.
    pub fn correlated(&self, i: usize, j: usize) -> bool {
        self.inverse[i] > 0.0 && self.inverse[j] > 0.0
    }
}

/// One over the standard deviation of a centred utility, from its variance, the mean of its row
/// of Σ and the mean of Σ; zero where rounding may have made the variance.
pub(super) fn inverse_deviation(variance: f64, row: f64, mean: f64) -> f64 {
    let centred = variance - 2.0 * row + mean;
    let size = variance + 2.0 * row.abs() + mean.abs();
    if centred > ROUNDING * size { centred.sqrt().recip() } else { 0.0 }
}
