//! The numbers of the average covariance, centred by its diagonal and its row means.

use rayon::prelude::*;

use crate::ROUNDING;
use crate::low_rank::LowRank;
use crate::tie::Units;

/// One number of Σ̄ in its three forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Σ̄.
    pub raw: f64,
    /// C Σ̄ C / τ².
    pub centred: f64,
    /// Zero where it is not defined.
    pub correlation: f64,
}

/// Turns numbers of mean V Vᵀ into those of Σ̄ = diag(mean d²) + mean V Vᵀ; vectors are `[K]`.
#[derive(Clone, Debug)]
pub struct Entries {
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
    /// The standard deviations of C Σ̄ C, or of Σ̄, inverted; zero where there is none to speak of.
    inverse: Vec<f64>,
    units: Units,
}

/// What of the examples is added up to centre Σ̄ and to scale its correlations.
#[derive(Clone, Debug)]
pub struct Moments {
    /// How many examples were added.
    pub examples: usize,
    /// Of each class the sums of d², of ‖V_k‖² and of its row of V Vᵀ, `[K]`.
    pub classes: Vec<[f64; 3]>,
    /// The sum of all numbers of V Vᵀ.
    pub total: f64,
}

/// Classes of one task.
const CLASSES: usize = 64;

impl Moments {
    /// Of no examples of K classes.
    pub fn new(classes: usize) -> Self {
        Self { examples: 0, classes: vec![[0.0; 3]; classes], total: 0.0 }
    }

    /// Adds examples, one after the other: how they are divided changes no bit.
    pub fn add(&mut self, noise: &LowRank<'_>) {
        let factors = noise.sums();
        let products = noise.times(&factors);
        for factors in factors.chunks_exact(noise.rank.max(1)) {
            self.total += factors.iter().map(|value| value * value).sum::<f64>();
        }
        self.classes.par_chunks_mut(CLASSES).enumerate().for_each(|(chunk, sums)| {
            let first = chunk * CLASSES;
            for example in 0..noise.examples() {
                for (class, [diag, factors, row]) in (first..).zip(sums.iter_mut()) {
                    let at = example * noise.classes + class;
                    *diag += (noise.diag[at] as f64).powi(2);
                    *factors += noise.square(example, class);
                    *row += products[at];
                }
            }
        });
        self.examples += noise.examples();
    }
}

impl Entries {
    /// For numbers of mean V Vᵀ, or with `centred` of the mean of C V (C V)ᵀ.
    pub fn new(moments: &Moments, centred: bool, units: Units) -> Self {
        let Moments { examples, classes: sums, total } = moments;
        let (n, k) = (*examples as f64, sums.len() as f64);
        let diag: Vec<f64> = sums.iter().map(|[diag, ..]| diag / n).collect();
        let variances: Vec<f64> =
            diag.iter().zip(sums).map(|(own, [_, factors, _])| own + factors / n).collect();
        let factor_rows: Vec<f64> = sums.iter().map(|[.., row]| row / (n * k)).collect();
        let factor_mean = total / (n * k * k);
        let rows: Vec<f64> =
            diag.iter().zip(&factor_rows).map(|(own, row)| own / k + row).collect();
        let mean = diag.iter().sum::<f64>() / (k * k) + factor_mean;
        let inverse = variances.iter().zip(&rows).map(|(raw, row)| match units.is_shift_free {
            true => inverse_deviation(*raw, *row, mean),
            false => inverse_deviation(*raw, 0.0, 0.0),
        });
        let inverse = inverse.collect();
        Self { variances, factor_rows, factor_mean, centred, rows, mean, inverse, units }
    }

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
        let centred = if self.units.is_shift_free { centred } else { raw };
        let correlation = (centred * self.inverse[i] * self.inverse[j]).clamp(-1.0, 1.0);
        Entry { raw, centred: centred / self.units.temperature.powi(2), correlation }
    }

    /// The variance of one class.
    pub fn variance(&self, class: usize) -> Entry {
        let raw = self.variances[class];
        let centred = raw - 2.0 * self.rows[class] + self.mean;
        let centred = if self.units.is_shift_free { centred } else { raw };
        let correlation = f64::from(u8::from(self.inverse[class] > 0.0));
        Entry { raw, centred: centred / self.units.temperature.powi(2), correlation }
    }

    /// Whether two classes have a correlation.
    pub fn correlated(&self, i: usize, j: usize) -> bool {
        self.inverse[i] > 0.0 && self.inverse[j] > 0.0
    }
}

/// One over the standard deviation of a centred utility, from its variance, the mean of its row
/// of Σ and the mean of Σ; zero where rounding may have made the variance.
pub(crate) fn inverse_deviation(variance: f64, row: f64, mean: f64) -> f64 {
    let centred = variance - 2.0 * row + mean;
    let size = variance + 2.0 * row.abs() + mean.abs();
    if centred > ROUNDING * size { centred.sqrt().recip() } else { 0.0 }
}
