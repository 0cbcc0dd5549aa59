//! What noise on the features is made of, and what its gradient comes to.

use rayon::prelude::*;

use crate::feature_noise::FeatureNoise;

/// Some draws of some examples.
#[derive(Clone, Copy, Debug)]
pub struct FeatureDraws<'a> {
    /// n.
    pub draws: usize,
    /// ε_D, [b, n, D].
    pub own: &'a [f32],
    /// ε_R, [b, n, R].
    pub factors: &'a [f32],
    /// ε_R Vᵀ, [b, n, D].
    pub shared: &'a [f32],
}

impl FeatureNoise<'_> {
    /// d ⊙ ε_D + v ⊙ (ε_R Vᵀ), [b, n, D], for examples from `first` on.
    pub fn combine(&self, first: usize, draws: &FeatureDraws<'_>, out: &mut [f32]) {
        let size = self.draws_size(draws);
        let rows = out.par_chunks_mut(size).zip(draws.own.par_chunks(size));
        let rows = rows.zip(draws.shared.par_chunks(size));
        rows.enumerate().for_each(|(row, ((out, own), shared))| {
            let (diag, scale) = self.scales_of(first + row);
            let drawn = own.chunks(self.features).zip(shared.chunks(self.features));
            for (out, (own, shared)) in out.chunks_mut(self.features).zip(drawn) {
                for feature in 0..out.len() {
                    out[feature] = diag[feature] * own[feature] + scale[feature] * shared[feature];
                }
            }
        });
    }

    /// Adds ∂d and ∂v, [b, D], of a gradient [b, n, D] of what [`FeatureNoise::combine`] gives, and
    /// makes it that of ε_R Vᵀ.
    pub fn pull(
        &self,
        first: usize,
        draws: &FeatureDraws<'_>,
        grad: &mut [f32],
        diag_grad: &mut [f32],
        scale_grad: &mut [f32],
    ) {
        let size = self.draws_size(draws);
        let rows = grad.par_chunks_mut(size).zip(draws.own.par_chunks(size));
        let rows = rows.zip(draws.shared.par_chunks(size));
        let sums = diag_grad.par_chunks_mut(self.features);
        let sums = sums.zip(scale_grad.par_chunks_mut(self.features));
        rows.zip(sums).enumerate().for_each(|(row, (((grad, own), shared), sums))| {
            let (diag_grad, scale_grad) = sums;
            let (_, scale) = self.scales_of(first + row);
            let drawn = own.chunks(self.features).zip(shared.chunks(self.features));
            for (grad, (own, shared)) in grad.chunks_mut(self.features).zip(drawn) {
                for feature in 0..grad.len() {
                    diag_grad[feature] += grad[feature] * own[feature];
                    scale_grad[feature] += grad[feature] * shared[feature];
                    grad[feature] *= scale[feature];
                }
            }
        });
    }

    /// Numbers of one example's draws.
    fn draws_size(&self, draws: &FeatureDraws<'_>) -> usize {
        let numbers = draws.own.len();
        let per_factor = draws.factors.len() / self.rank.max(1);
        assert_eq!(draws.shared.len(), numbers, "draws must be [b, n, D]");
        assert_eq!(per_factor * self.features, numbers, "draws must be [b, n, D] and [b, n, R]");
        (draws.draws * self.features).max(1)
    }

    fn scales_of(&self, row: usize) -> (&[f32], &[f32]) {
        let at = row * self.features..(row + 1) * self.features;
        (&self.diag_scale[at.clone()], &self.loading_scale[at])
    }
}
