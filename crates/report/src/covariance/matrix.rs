//! The average covariance as a matrix, for few classes.

use super::Observer;
use super::open::Covariances;
use crate::error::ReportError;

/// The average covariance over a split, in three forms; all `[K, K]`, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct CovarianceMatrix {
    /// K.
    pub classes: usize,
    /// τ.
    pub temperature: f64,
    /// Σ̄.
    pub raw: Vec<f64>,
    /// C Σ̄ C / τ².
    pub centred: Vec<f64>,
    /// The correlations of C Σ̄ C; NaN for classes whose variance is only rounding.
    pub correlation: Vec<f64>,
}

/// Most classes of a matrix: three matrices of this size are 100 MB.
pub const LARGEST_MATRIX: usize = 2048;

impl Covariances {
    /// The average covariance of at most [`LARGEST_MATRIX`] classes.
    pub fn average_covariance(
        &mut self,
        observer: Observer,
    ) -> Result<CovarianceMatrix, ReportError> {
        let classes = self.classes();
        if classes > LARGEST_MATRIX {
            return Err(ReportError::TooManyClasses { classes, limit: LARGEST_MATRIX });
        }
        let entries = self.entries(observer)?;
        let size = classes * classes;
        let (mut raw, mut centred) = (vec![0.0; size], vec![0.0; size]);
        let mut correlation = vec![f64::NAN; size];
        self.for_each_block(observer, |block| {
            for i in block.rows.clone() {
                for (j, factors) in (i..classes).zip(block.row(i, classes)) {
                    let entry =
                        if i == j { entries.variance(i) } else { entries.pair(i, j, *factors) };
                    for at in [i * classes + j, j * classes + i] {
                        (raw[at], centred[at]) = (entry.raw, entry.centred);
                        if entries.correlated(i, j) {
                            correlation[at] = entry.correlation;
                        }
                    }
                }
            }
        })?;
        let temperature = self.temperature();
        Ok(CovarianceMatrix { classes, temperature, raw, centred, correlation })
    }
}
