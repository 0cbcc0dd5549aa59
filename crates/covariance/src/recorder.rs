//! The covariances of a split while it is evaluated.

use std::path::Path;

use aleator_metrics::classification::argmax;
use aleator_run::{
    CovarianceInfo, CovarianceSums, CovarianceWriter, Predictions, RunError, TieRows,
};

use crate::flips::RateSums;
use crate::gram::{Gram, columns, columns_are_centred, plan};
use crate::low_rank::{LowRank, SharedFactors};
use crate::moments::Moments;
use crate::tie::{Tie, Units, map_ties};

/// Adds up the covariances of a split while its examples are predicted, and writes a
/// [`CovarianceFile`](aleator_run::CovarianceFile).
///
/// It holds about 12 K² bytes. The file has the bits that an analysis of the stored loadings comes
/// to, whatever the size of batches and the number of threads.
#[derive(Debug)]
pub struct CovarianceRecorder {
    writer: CovarianceWriter,
    shared: Option<SharedFactors>,
    moments: Moments,
    gram: Gram,
    flips: Option<RateSums>,
}

/// Most memory that is used.
const MOST_BYTES: usize = 1 << 29;

/// Bytes for each pair (i, j): a flip, and half of the symmetric covariance.
const BYTES_OF_PAIR: usize = 12;

impl CovarianceRecorder {
    /// Whether the sums over this many classes fit in memory: at most 6,688.
    pub fn fits(classes: usize) -> bool {
        let pairs = classes.checked_mul(classes);
        pairs.and_then(|pairs| pairs.checked_mul(BYTES_OF_PAIR)).is_some_and(|it| it <= MOST_BYTES)
    }

    /// For `examples` examples whose predictions have the tensors of `first`; `None` without a noise
    /// model. With `ties` the covariances of each example's predicted class are written, too.
    pub fn create(
        path: &Path,
        examples: usize,
        first: &Predictions,
        ties: bool,
    ) -> Result<Option<Self>, RunError> {
        let Predictions { classes, rank, temperature, .. } = *first;
        let of = |loadings: &Vec<f32>| SharedFactors::new(loadings, classes, rank);
        let shared = first.shared_loadings.as_ref().map(of);
        let Some(noise) = LowRank::of(first, shared.as_ref()) else { return Ok(None) };
        let centred = columns_are_centred(&noise.loadings);
        let flips = first.log_probs_off.is_none();
        let info = CovarianceInfo { examples, classes, rank, temperature, centred, flips, ties };
        let rows = plan(classes, usize::MAX).into_iter().flatten().collect();
        let width = if shared.is_some() { 1 } else { rank };
        Ok(Some(Self {
            writer: CovarianceWriter::create(path, info)?,
            moments: Moments::new(classes),
            gram: Gram::new(rows, classes, width, shared.is_some()),
            flips: flips.then(|| RateSums::new(classes)),
            shared,
        }))
    }

    /// Adds the predictions of the next examples, with their loadings.
    pub fn push(&mut self, predictions: &Predictions) -> Result<(), RunError> {
        let Some(noise) = LowRank::of(predictions, self.shared.as_ref()) else { return Ok(()) };
        if self.writer.info().ties {
            let units = Units {
                temperature: f64::from(predictions.temperature),
                is_shift_free: predictions.log_probs_off.is_none(),
            };
            let rows = tie_rows(predictions, &noise, units);
            self.writer.write_ties(self.moments.examples, &rows)?;
        }
        self.moments.add(&noise);
        self.gram.add(&columns(&noise));
        if let Some(flips) = &mut self.flips {
            flips.add_flips(predictions);
        }
        Ok(())
    }

    /// Brings the file to its place.
    ///
    /// # Panics
    /// When examples are missing.
    pub fn commit(self) -> Result<(), RunError> {
        let Self { mut writer, shared, moments, gram, flips } = self;
        let CovarianceInfo { examples, classes, .. } = writer.info();
        assert_eq!(moments.examples, examples, "predictions of all examples");
        for block in gram.finish(examples, shared.as_ref()) {
            for row in block.rows.clone() {
                writer.write_pairs(row, block.row(row, classes))?;
            }
        }
        writer.commit(CovarianceSums {
            moments: &moments.classes,
            total: moments.total,
            flips: flips.as_ref().map(|flips| (flips.examples(), flips.sums())),
        })
    }
}

/// The covariances of each example's predicted class.
fn tie_rows(predictions: &Predictions, noise: &LowRank<'_>, units: Units) -> TieRows {
    let classes = predictions.classes;
    let predicted = predictions.log_probs.chunks_exact(classes).map(argmax);
    let wanted: Vec<(usize, usize)> = predicted.enumerate().collect();
    let found = map_ties(noise, &wanted, units, |_, ties| {
        let number = |of: fn(&Tie) -> f64| ties.iter().map(|tie| of(tie) as f32).collect();
        let columns: [Vec<f32>; 3] = [
            number(|tie| tie.covariance),
            number(|tie| tie.centred),
            number(|tie| tie.correlation.unwrap_or(f64::NAN)),
        ];
        columns
    });
    let mut rows = TieRows {
        classes: wanted.iter().map(|(_, class)| *class as u32).collect(),
        ..TieRows::default()
    };
    for [covariance, centred, correlation] in found {
        rows.covariance.extend(covariance);
        rows.centred.extend(centred);
        rows.correlation.extend(correlation);
    }
    rows
}
