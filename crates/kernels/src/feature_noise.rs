//! Noise on the features: Wᵀ ε′ with ε′ ~ N(0, diag(d²) + diag(v) V Vᵀ diag(v)) is the noise of the
//! utilities.
//!
//! Here is its covariance as a triangular root in the space of the classes: Σ = L Lᵀ is K × K, and
//! with K < D + R u = μ + L ε has the law of Wᵀ(φ + ε′) with fewer draws. All sums are in f64, each
//! in one order. [`given`](crate::given) has the likelihood of noise that is drawn in the space of the
//! features.

use rayon::prelude::*;

use crate::latent::{NotFinite, all_finite};

/// A pivot below this share of its variance is rounding: the class adds no noise of its own.
const LEAST_PIVOT: f64 = 1e-10;

/// Noise on the features of a batch.
///
/// ```
/// use aleator_kernels::feature_noise::FeatureNoise;
///
/// let noise = FeatureNoise {
///     batch: 1,
///     features: 2,
///     rank: 1,
///     classes: 1,
///     diag_scale: &[3.0, 0.0],
///     loading_scale: &[0.0, 2.0],
///     shared_loadings: &[1.0, 2.0],
///     weight: &[1.0, 1.0],
/// };
/// // √(3² + (2 · 2)²)
/// assert_eq!(noise.class_roots(), [[5.0]]);
/// ```
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
    /// L of each example, [K, K], lower triangular, with L Lᵀ = Σ.
    ///
    /// # Panics
    /// When [`FeatureNoise::check`] finds something.
    pub fn class_roots(&self) -> Vec<Vec<f64>> {
        self.check().unwrap_or_else(|error| panic!("{error}"));
        let root = |row| cholesky(self.covariance(row), self.classes);
        (0..self.batch).into_par_iter().map(root).collect()
    }

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

    /// d_j and v_j of an example.
    fn scales(&self, row: usize, feature: usize) -> [f64; 2] {
        let at = row * self.features + feature;
        [self.diag_scale, self.loading_scale].map(|scale| scale[at].into())
    }

    /// V_j, `[R]`.
    fn loadings(&self, feature: usize) -> &[f32] {
        &self.shared_loadings[feature * self.rank..][..self.rank]
    }

    /// W_j, `[K]`.
    fn weights(&self, feature: usize) -> &[f32] {
        &self.weight[feature * self.classes..][..self.classes]
    }

    /// Vᵀ diag(v) W, [R, K].
    fn projected(&self, row: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.rank * self.classes];
        for feature in 0..self.features {
            let [_, scale] = self.scales(row, feature);
            for (loading, out) in self.loadings(feature).iter().zip(out.chunks_mut(self.classes)) {
                add_scaled(out, scale * f64::from(*loading), self.weights(feature));
            }
        }
        out
    }

    /// The lower triangle of Σ, [K, K].
    fn covariance(&self, row: usize) -> Vec<f64> {
        let classes = self.classes;
        let mut out = vec![0.0; classes * classes];
        let mut add = |vector: &[f64]| {
            for (k, out) in out.chunks_mut(classes).enumerate() {
                let factor = vector[k];
                for (out, value) in out[..=k].iter_mut().zip(vector) {
                    *out += factor * value;
                }
            }
        };
        for feature in 0..self.features {
            let [scale, _] = self.scales(row, feature);
            let scaled = self.weights(feature).iter().map(|weight| scale * f64::from(*weight));
            add(&scaled.collect::<Vec<f64>>());
        }
        self.projected(row).chunks(classes).for_each(&mut add);
        out
    }

    /// Gradients of d, v, V and W from that of L, [B, K, K].
    ///
    /// # Panics
    /// When shapes do not match.
    pub fn pull_class_roots(&self, roots: &[Vec<f64>], upstream: &[f32]) -> FeatureGrad {
        let expected = self.batch * self.classes * self.classes;
        assert_eq!(upstream.len(), expected, "the gradient of L must be [B, K, K]");
        let Self { batch, features, rank, classes, .. } = *self;
        // Of each example ∂Σ, [K, K], and 2 Vᵀ diag(v) W ∂Σ, [R, K].
        let of_row = |row: usize| {
            let upstream = &upstream[row * classes * classes..][..classes * classes];
            let pulled = pull_cholesky(&roots[row], upstream, classes);
            let twice: Vec<f64> = pulled.iter().map(|value| 2.0 * value).collect();
            let projected = product(&self.projected(row), &twice, classes);
            (twice, projected)
        };
        let rows: Vec<(Vec<f64>, Vec<f64>)> = (0..batch).into_par_iter().map(of_row).collect();
        let of_feature = |feature: usize| self.pull_feature(feature, &rows);
        let found: Vec<Column> = (0..features).into_par_iter().map(of_feature).collect();
        let mut diag_scale = vec![0.0; batch * features];
        let mut loading_scale = diag_scale.clone();
        let mut shared_loadings = Vec::with_capacity(features * rank);
        let mut weight = Vec::with_capacity(features * classes);
        for (feature, grad) in found.into_iter().enumerate() {
            for (row, [own, loading]) in grad.scales.into_iter().enumerate() {
                diag_scale[row * features + feature] = own as f32;
                loading_scale[row * features + feature] = loading as f32;
            }
            shared_loadings.extend(grad.loadings.into_iter().map(|value| value as f32));
            weight.extend(grad.weights.into_iter().map(|value| value as f32));
        }
        FeatureGrad { diag_scale, loading_scale, shared_loadings, weight }
    }

    fn pull_feature(&self, feature: usize, rows: &[(Vec<f64>, Vec<f64>)]) -> Column {
        let classes = self.classes;
        let own: Vec<f64> = self.weights(feature).iter().map(|weight| f64::from(*weight)).collect();
        let mut grad = Column {
            scales: Vec::with_capacity(rows.len()),
            loadings: vec![0.0; self.rank],
            weights: vec![0.0; classes],
        };
        for (row, (twice, projected)) in rows.iter().enumerate() {
            let [diag, scale] = self.scales(row, feature);
            let along = product(&own, twice, classes);
            let diag_grad = diag * dot(&along, &own);
            for (grad, value) in grad.weights.iter_mut().zip(&along) {
                *grad += diag * diag * value;
            }
            let mut scale_grad = 0.0;
            let loadings = self.loadings(feature).iter().zip(&mut grad.loadings);
            for ((loading, loading_grad), pull) in loadings.zip(projected.chunks(classes)) {
                let loading = f64::from(*loading);
                let reach = dot(pull, &own);
                scale_grad += loading * reach;
                *loading_grad += scale * reach;
                for (grad, value) in grad.weights.iter_mut().zip(pull) {
                    *grad += scale * loading * value;
                }
            }
            grad.scales.push([diag_grad, scale_grad]);
        }
        grad
    }
}

/// What one feature's numbers get.
struct Column {
    /// ∂d_j and ∂v_j of each example.
    scales: Vec<[f64; 2]>,
    /// `[R]`.
    loadings: Vec<f64>,
    /// `[K]`.
    weights: Vec<f64>,
}

fn add_scaled(out: &mut [f64], factor: f64, values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += factor * f64::from(*value);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Rows [n, K] times a matrix [K, K].
fn product(rows: &[f64], matrix: &[f64], classes: usize) -> Vec<f64> {
    let mut out = vec![0.0; rows.len()];
    for (row, out) in rows.chunks(classes).zip(out.chunks_mut(classes)) {
        for (factor, line) in row.iter().zip(matrix.chunks(classes)) {
            for (out, value) in out.iter_mut().zip(line) {
                *out += factor * value;
            }
        }
    }
    out
}

/// L of a lower triangle, in place; columns without a variance of their own are zero.
fn cholesky(mut matrix: Vec<f64>, classes: usize) -> Vec<f64> {
    for k in 0..classes {
        let (above, row) = matrix.split_at_mut(k * classes);
        let row = &mut row[..classes];
        for j in 0..k {
            let other = &above[j * classes..][..=j];
            let pivot = other[j];
            let rest = row[j] - dot(&row[..j], &other[..j]);
            row[j] = if pivot > 0.0 { rest / pivot } else { 0.0 };
        }
        let variance = row[k];
        let rest = variance - dot(&row[..k], &row[..k]);
        row[k] = if rest > LEAST_PIVOT * variance { rest.sqrt() } else { 0.0 };
    }
    matrix
}

/// ∂Σ, symmetric, from ∂L: L⁻ᵀ Φ(Lᵀ ∂L) L⁻¹, where Φ keeps the lower triangle and halves its
/// diagonal, and the mean with its transpose is taken. What has no variance gets nothing.
fn pull_cholesky(root: &[f64], upstream: &[f32], classes: usize) -> Vec<f64> {
    let at = |row: usize, column: usize| row * classes + column;
    let mut phi = vec![0.0; classes * classes];
    for i in 0..classes {
        for j in 0..=i {
            let terms = (i..classes).map(|k| root[at(k, i)] * f64::from(upstream[at(k, j)]));
            phi[at(i, j)] = terms.sum::<f64>() * if i == j { 0.5 } else { 1.0 };
        }
    }
    // X = L⁻ᵀ Φ by back substitution, column by column.
    for column in 0..classes {
        solve_transposed(root, classes, |k| at(k, column), &mut phi);
    }
    // X L⁻¹: row by row, the same substitution on the transposed equation.
    for row in 0..classes {
        solve_transposed(root, classes, |k| at(row, k), &mut phi);
    }
    let mean = |i: usize, j: usize| 0.5 * (phi[at(i, j)] + phi[at(j, i)]);
    (0..classes).flat_map(|i| (0..classes).map(move |j| (i, j))).map(|(i, j)| mean(i, j)).collect()
}

/// Solves Lᵀ x = b in place, where the entries of b are at `index(0..K)`.
fn solve_transposed(
    root: &[f64],
    classes: usize,
    index: impl Fn(usize) -> usize,
    values: &mut [f64],
) {
    for k in (0..classes).rev() {
        let pivot = root[k * classes + k];
        let sum: f64 =
            (k + 1..classes).map(|below| root[below * classes + k] * values[index(below)]).sum();
        values[index(k)] = if pivot > 0.0 { (values[index(k)] - sum) / pivot } else { 0.0 };
    }
}
