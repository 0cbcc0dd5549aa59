//! The Normals of some examples as arrays, for those who compute with them.

use std::ops::Range;

use aleator_covariance::Loadings;
use aleator_metrics::classification::argmax;
use aleator_run::{Field, RunError};

use super::open::Covariances;
use crate::error::ReportError;

/// μ, d and V of n examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Latents {
    /// K.
    pub classes: usize,
    /// R.
    pub rank: usize,
    /// μ(x), `[n, K]`.
    pub mean: Vec<f32>,
    /// d(x), `[n, K]`.
    pub diag_scale: Vec<f32>,
    /// V(x), `[n, K, R]`, or v(x), `[n, K]`, with shared loadings; empty without factors.
    pub loadings: Vec<f32>,
    /// V, `[K, R]`; empty if each example has its own.
    pub shared_loadings: Vec<f32>,
}

impl Latents {
    /// n.
    pub fn examples(&self) -> usize {
        self.mean.len() / self.classes
    }

    /// The class of the largest mean of each example.
    pub fn leading(&self) -> Vec<u32> {
        self.mean.chunks_exact(self.classes).map(|row| argmax(row) as u32).collect()
    }

    /// softmax(μ/τ) of each example, `[n, K]`.
    pub fn softmax(&self, temperature: f64) -> Vec<f64> {
        let row = |mean: &[f32]| {
            let largest = f64::from(mean.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let powers: Vec<f64> =
                mean.iter().map(|m| ((f64::from(*m) - largest) / temperature).exp()).collect();
            let total: f64 = powers.iter().sum();
            powers.into_iter().map(move |power| power / total)
        };
        self.mean.chunks_exact(self.classes).flat_map(row).collect()
    }
}

impl Covariances {
    /// Rows of the split to read one after the other, as many as memory should hold.
    pub fn row_ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.pieces()
    }

    /// The log-probabilities that the run predicts for some examples, `[n, K]`.
    pub fn log_probs(&mut self, rows: Range<usize>) -> Result<Vec<f32>, ReportError> {
        Ok(self.reader()?.read(Field::LogProbs, rows)?)
    }

    /// The Normals of some examples.
    pub fn latents(&mut self, rows: Range<usize>) -> Result<Latents, ReportError> {
        let (classes, rank) = (self.classes(), self.rank);
        let reader = self.latent_reader()?;
        let mean = reader.read(Field::Mean, rows.clone())?;
        let noise = self.noise(rows)?;
        let loadings = match noise.loadings {
            Loadings::Full(values) | Loadings::Shared(values, _) => values.into_owned(),
            Loadings::None => vec![],
        };
        let diag_scale = noise.diag.into_owned();
        let shared_loadings = self.shared.as_ref().map_or(vec![], |shared| shared.rows.clone());
        Ok(Latents { classes, rank, mean, diag_scale, loadings, shared_loadings })
    }

    /// About `most` examples, evenly spread over the split, and the class that each is labelled
    /// with; examples with several classes or none count as their leading class.
    pub fn some_latents(&mut self, most: usize) -> Result<(Latents, Vec<u32>), ReportError> {
        let total = self.examples().len();
        let step = total.div_ceil(most.max(1)).max(1);
        let rows: Vec<usize> = (0..total).step_by(step).collect();
        let mut all: Option<Latents> = None;
        for row in &rows {
            let one = self.latents(*row..row + 1)?;
            match &mut all {
                None => all = Some(one),
                Some(all) => {
                    all.mean.extend(one.mean);
                    all.diag_scale.extend(one.diag_scale);
                    all.loadings.extend(one.loadings);
                }
            }
        }
        let path = self.reader()?.file.path();
        let all = all.ok_or_else(|| RunError::damaged(path, "holds no examples"))?;
        let labels = rows.iter().zip(all.leading());
        let labels = labels.map(|(row, leading)| self.label(*row).unwrap_or(leading)).collect();
        Ok((all, labels))
    }

    /// The given label of an example that has exactly one.
    pub fn label(&self, row: usize) -> Option<u32> {
        match self.examples()[row].label.as_deref() {
            Some([label]) => Some(*label),
            _ => None,
        }
    }
}
