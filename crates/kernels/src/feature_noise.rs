//! Noise on the features: Wᵀ ε′ with ε′ ~ N(0, diag(d²) + diag(v) V Vᵀ diag(v)) is the noise of the
//! utilities.
//!
//! [`given`](crate::given) has the likelihood of noise that is drawn in the space of the features,
//! and [`covariance_root`](crate::covariance_root) the root of its covariance in that of the classes.

use crate::latent::{NotFinite, all_finite};

/// Noise on the features of a batch.
#[derive(Clone, Copy, Debug)]
pub struct FeatureNoise<'a> {
    /// B.
    pub batch: usize,
    /// D.
    pub features: usize,
    /// R.
    pub rank: usize,
    /// K.
    pub classes: usize,
    /// d(x), [B, D].
    pub diag_scale: &'a [f32],
    /// v(x), [B, D].
    pub loading_scale: &'a [f32],
    /// V, [D, R].
    pub shared_loadings: &'a [f32],
    /// W, [D, K].
    pub weight: &'a [f32],
}

/// Gradients in the shapes of a [`FeatureNoise`].
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureGrad {
    /// ∂/∂d, [B, D].
    pub diag_scale: Vec<f32>,
    /// ∂/∂v, [B, D].
    pub loading_scale: Vec<f32>,
    /// ∂/∂V, [D, R].
    pub shared_loadings: Vec<f32>,
    /// ∂/∂W, [D, K].
    pub weight: Vec<f32>,
}

impl FeatureNoise<'_> {
    /// Checks the shapes, and that every number is finite.
    ///
    /// # Errors
    /// The examples with numbers that are not finite.
    ///
    /// # Panics
    /// When a slice does not have its shape.
    pub fn check(&self) -> Result<(), NotFinite> {
        let Self { batch, features, rank, classes, .. } = *self;
        for (name, values, rows, columns) in [
            ("diag_scale", self.diag_scale, batch, features),
            ("loading_scale", self.loading_scale, batch, features),
            ("shared_loadings", self.shared_loadings, features, rank),
            ("weight", self.weight, features, classes),
        ] {
            let (found, expected) = (values.len(), rows * columns);
            assert!(found == expected, "{name} must be {expected} long, found {found}");
            if all_finite(values) {
                continue;
            }
            let is_bad = |row: &usize| !all_finite(&values[row * columns..(row + 1) * columns]);
            let bad: Vec<usize> = (0..rows).filter(is_bad).collect();
            let of_all = matches!(name, "shared_loadings" | "weight");
            let of = if of_all { "feature" } else { "example" };
            let message = format!("{name} must be finite, and is not for {of} {}", bad[0]);
            return Err(NotFinite {
                rows: if of_all { (0..batch).collect() } else { bad },
                message,
            });
        }
        Ok(())
    }
}
