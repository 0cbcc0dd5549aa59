//! Normals to study: those of a run in the form of the kernels, and random ones.

use aleator_kernels::{Covariance, Latent, split_mix};
use aleator_metrics::normal_quantile;
use aleator_report::covariance::Latents;

/// How to make up Normals.
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

impl MadeUp {
    /// Means and loadings from a Normal.
    ///
    /// ```
    /// use aleator::theory::MadeUp;
    ///
    /// let made = MadeUp { examples: 5, classes: 10, rank: 3, spread: 1.0, scale: 2.0, seed: 0 };
    /// assert_eq!(made.latents().examples(), 5);
    /// ```
    pub fn latents(&self) -> Latents {
        let Self { examples, classes, rank, spread, scale, seed } = *self;
        let unit = |word: u64| ((word >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let mut normals = split_mix(seed).map(|word| normal_quantile(unit(word)));
        let mut draw = |count: usize, scale: f64| -> Vec<f32> {
            normals.by_ref().take(count).map(|z| (scale * z) as f32).collect()
        };
        let entries = examples * classes;
        let own = if rank == 0 { scale } else { scale * 0.5f64.sqrt() };
        Latents {
            classes,
            rank,
            mean: draw(entries, spread),
            diag_scale: vec![own as f32; entries],
            loadings: draw(entries * rank, scale * (0.5 / rank.max(1) as f64).sqrt()),
            shared_loadings: vec![],
        }
    }
}

/// The kernels' form.
pub fn view(latents: &Latents) -> Latent<'_> {
    let Latents { classes, rank, mean, diag_scale, loadings, shared_loadings } = latents;
    let covariance = match (*rank, shared_loadings.is_empty()) {
        (0, _) => Covariance::Diagonal { diag_scale },
        (rank, true) => Covariance::LowRank { diag_scale, loadings, rank },
        (rank, false) => {
            let loading_scale = loadings;
            Covariance::SharedLowRank { diag_scale, loading_scale, shared_loadings, rank }
        }
    };
    Latent { batch: latents.examples(), classes: *classes, mean, covariance }
}
