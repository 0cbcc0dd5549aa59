//! The outputs of a model for all batches, gathered as plain numbers.

use aleator_model::{Covariance, Latent, Scores};
use aleator_run::{Link, Predictions};
use burn::tensor::Tensor;

/// MiB of loadings that may be kept.
#[derive(Clone, Copy)]
pub(crate) struct LoadingsLimit(pub usize);

/// Scores of the batches so far, as plain numbers.
#[derive(Default)]
pub(crate) struct Gathered {
    examples: usize,
    rank: usize,
    temperature: f32,
    log_probs: Vec<f32>,
    log_off: Vec<f32>,
    mean: Vec<f32>,
    diag_scale: Vec<f32>,
    loadings: Vec<f32>,
    loading_scale: Vec<f32>,
    shared_loadings: Vec<f32>,
}

impl Gathered {
    /// Examples so far.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// Adds a batch, of `total` examples in all, or returns the rows that are not numbers.
    pub fn add_scores(
        &mut self,
        scores: Scores,
        total: usize,
        limit: LoadingsLimit,
    ) -> Result<(), Vec<usize>> {
        let [_, classes] = scores.latent.dims();
        let before = self.log_probs.len();
        append(&mut self.log_probs, scores.log_probs);
        if let Some(off) = scores.log_complements {
            append(&mut self.log_off, off);
        }
        let off = self.log_off.get(before..).unwrap_or_default();
        let link = if off.is_empty() { Link::Softmax } else { Link::Sigmoid };
        let mut bad = bad_rows(&self.log_probs[before..], classes, link);
        bad.extend(bad_rows(off, classes, link));
        bad.sort_unstable();
        bad.dedup();
        self.add_latent(scores.latent, total, limit);
        if bad.is_empty() { Ok(()) } else { Err(bad) }
    }

    /// Adds the Normals of a batch.
    pub fn add_latent(&mut self, latent: Latent, total: usize, limit: LoadingsLimit) {
        let [batch, classes] = latent.dims();
        self.examples += batch;
        self.temperature = latent.temperature.clone().into_scalar();
        let rank = latent.rank();
        append(&mut self.mean, latent.mean);
        match latent.covariance {
            Covariance::None => {}
            Covariance::Diagonal { diag_scale } => append(&mut self.diag_scale, diag_scale),
            Covariance::LowRank { diag_scale, loadings } => {
                append(&mut self.diag_scale, diag_scale);
                let bytes = total as f64 * (classes * rank * size_of::<f32>()) as f64;
                if bytes <= limit.0 as f64 * (1 << 20) as f64 {
                    self.rank = rank;
                    append(&mut self.loadings, loadings);
                }
            }
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings } => {
                self.rank = rank;
                append(&mut self.diag_scale, diag_scale);
                append(&mut self.loading_scale, loading_scale);
                self.shared_loadings.clear();
                append(&mut self.shared_loadings, shared_loadings);
            }
        }
    }

    /// All of them.
    pub fn finish(self, classes: usize) -> Predictions {
        let some = |values: Vec<f32>| (!values.is_empty()).then_some(values);
        Predictions {
            classes,
            rank: self.rank,
            temperature: self.temperature,
            log_probs: self.log_probs,
            log_probs_off: some(self.log_off),
            mean: self.mean,
            diag_scale: some(self.diag_scale),
            loadings: some(self.loadings),
            loading_scale: some(self.loading_scale),
            shared_loadings: some(self.shared_loadings),
        }
    }
}

/// The rows that hold no probabilities: a number is missing, or no class is possible where one
/// must be.
pub(crate) fn bad_rows(log_probs: &[f32], classes: usize, link: Link) -> Vec<usize> {
    let impossible = |row: &[f32]| row.iter().all(|value| *value == f32::NEG_INFINITY);
    let is_bad = |row: &[f32]| {
        row.iter().any(|value| value.is_nan()) || (link == Link::Softmax && impossible(row))
    };
    let rows = log_probs.chunks_exact(classes).enumerate();
    rows.filter(|(_, row)| is_bad(row)).map(|(at, _)| at).collect()
}

pub(crate) fn append<const D: usize>(to: &mut Vec<f32>, tensor: Tensor<D>) {
    to.extend(tensor.into_data().iter::<f32>());
}
