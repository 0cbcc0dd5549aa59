//! The Normals of some examples in the form that the kernels take.

use std::ops::Range;

use aleator_kernels::{Covariance, Latent, Temperature, split_mix};
use aleator_metrics::normal_quantile;
use aleator_run::{Field, RunError};

use super::open::Covariances;
use crate::error::ReportError;

/// μ, d and V of some examples, of a run or made up.
///
/// ```
/// use aleator_report::covariance::{Latents, MadeUp};
///
/// let made_up = MadeUp { examples: 5, classes: 10, rank: 3, spread: 1.0, scale: 2.0, seed: 0 };
/// let latents = Latents::made_up(&made_up);
/// assert_eq!(latents.view().batch, 5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Latents {
    /// K.
    pub classes: usize,
    /// R.
    pub rank: usize,
    mean: Vec<f32>,
    diag_scale: Vec<f32>,
    /// V(x), or v(x) with shared loadings.
    loadings: Vec<f32>,
    /// V; empty if each example has its own.
    shared_loadings: Vec<f32>,
}

/// How to make up [`Latents`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MadeUp {
    /// How many.
    pub examples: usize,
    /// K.
    pub classes: usize,
    /// R.
    pub rank: usize,
    /// The standard deviation of the means.
    pub spread: f64,
    /// The standard deviation of a utility: half of its variance is its own, half is shared.
    pub scale: f64,
    /// Names the numbers.
    pub seed: u64,
}

impl Latents {
    /// Means and loadings from a Normal.
    pub fn made_up(made_up: &MadeUp) -> Self {
        let MadeUp { examples, classes, rank, spread, scale, seed } = *made_up;
        let unit = |word: u64| ((word >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let mut normals = split_mix(seed).map(|word| normal_quantile(unit(word)));
        let mut draw = |count: usize, scale: f64| -> Vec<f32> {
            normals.by_ref().take(count).map(|z| (scale * z) as f32).collect()
        };
        let entries = examples * classes;
        let own = if rank == 0 { scale } else { scale * 0.5f64.sqrt() };
        Self {
            classes,
            rank,
            mean: draw(entries, spread),
            diag_scale: vec![own as f32; entries],
            loadings: draw(entries * rank, scale * (0.5 / rank.max(1) as f64).sqrt()),
            shared_loadings: vec![],
        }
    }

    /// The kernels' form.
    pub fn view(&self) -> Latent<'_> {
        let (diag_scale, loadings, rank) = (&self.diag_scale[..], &self.loadings[..], self.rank);
        let shared_loadings = &self.shared_loadings[..];
        let covariance = match (rank, shared_loadings.is_empty()) {
            (0, _) => Covariance::Diagonal { diag_scale },
            (_, true) => Covariance::LowRank { diag_scale, loadings, rank },
            (_, false) => {
                let loading_scale = loadings;
                Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, rank }
            }
        };
        let batch = self.mean.len() / self.classes;
        Latent { batch, classes: self.classes, mean: &self.mean, covariance }
    }

    /// The class of the largest mean of each example.
    pub fn leading(&self) -> Vec<u32> {
        let rows = self.mean.chunks_exact(self.classes);
        rows.map(|row| aleator_metrics::classification::argmax(row) as u32).collect()
    }

    /// softmax(μ/τ) of each example, `[n, K]`.
    pub fn softmax(&self, temperature: Temperature) -> Vec<f64> {
        let tau = f64::from(temperature.get());
        let row = |mean: &[f32]| {
            let largest = f64::from(mean.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let powers: Vec<f64> =
                mean.iter().map(|m| ((f64::from(*m) - largest) / tau).exp()).collect();
            let total: f64 = powers.iter().sum();
            powers.into_iter().map(move |power| power / total)
        };
        self.mean.chunks_exact(self.classes).flat_map(row).collect()
    }
}

impl Covariances {
    /// The Normals of some examples.
    pub fn latents(&mut self, rows: Range<usize>) -> Result<Latents, ReportError> {
        let field = match self.shared {
            _ if self.reader.file.has(Field::Loadings) => Some(Field::Loadings),
            Some(_) => Some(Field::LoadingScale),
            None => None,
        };
        let reader = &mut self.reader;
        let loadings = field.map(|field| reader.read(field, rows.clone())).transpose()?;
        Ok(Latents {
            classes: reader.file.classes(),
            rank: reader.file.rank(),
            mean: reader.read(Field::Mean, rows.clone())?,
            diag_scale: reader.read(Field::DiagScale, rows)?,
            loadings: loadings.unwrap_or_default(),
            shared_loadings: self.shared.as_ref().map_or(vec![], |shared| shared.rows.clone()),
        })
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
        let path = self.reader.file.path();
        let all = all.ok_or_else(|| RunError::damaged(path, "holds no examples"))?;
        let leading = all.leading();
        let label = |(row, leading): (&usize, u32)| match self.examples()[*row].label.as_deref() {
            Some([label]) => *label,
            _ => leading,
        };
        let labels = rows.iter().zip(leading).map(label).collect();
        Ok((all, labels))
    }

    /// τ, as the kernels take it.
    pub fn link_temperature(&self) -> Result<Temperature, ReportError> {
        let tau = self.reader.file.temperature();
        let damaged = |_| RunError::damaged(self.reader.file.path(), format!("τ is {tau}"));
        Ok(Temperature::try_from(tau).map_err(damaged)?)
    }
}
