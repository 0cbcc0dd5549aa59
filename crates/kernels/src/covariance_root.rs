//! Covariances of a batch as triangular roots, Σ = L Lᵀ, and the gradients of these.
//!
//! Covariances come as sums in f32, roots are computed in f64, each by one task.
//!
//! A sum of n terms in f32 is off by at most n · 2⁻²⁴ times the sum of their magnitudes. Σ_ab is
//! a sum of products of what Σ_aa and Σ_bb sum the squares of, so by Cauchy and Schwarz its error is
//! at most δ √(Σ_aa Σ_bb) with δ = n · 2⁻²⁴: a correlation is known to δ and no better. Where classes
//! depend on each other (W has proportional columns, or there is no more noise than a few factors)
//! pivots are such errors, of either sign, and gradients divide by them. So the share δ of its
//! variance is added to each class as noise of its own. No pivot of Σ + δ diag(Σ) is then below
//! δ Σ_kk, because Σ alone has no negative ones; one that is below owes it to rounding, and is set
//! to it. Nothing is divided by less, and covariances stay what they are.

use rayon::prelude::*;

/// The rounding of one operation, relative to its result.
const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// Variances below this are none: squares of this size lose their digits in f32.
const LEAST_VARIANCE: f64 = (f32::MIN_POSITIVE / f32::EPSILON) as f64;

/// A batch of covariances, [B, K, K].
///
/// ```
/// use aleator_kernels::covariance_root::Covariances;
///
/// let mut matrix = [4.0, 0.0, 2.0, 10.0];
/// Covariances { classes: 2, terms: 1 }.take_roots(&mut matrix);
/// assert!(matrix.iter().zip([2.0, 0.0, 1.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-6));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Covariances {
    /// K.
    pub classes: usize,
    /// n: the operations in f32 behind each of their numbers.
    pub terms: usize,
}

impl Covariances {
    /// Replaces each Σ, of which only the lower triangle is read, by L. A class without variance has
    /// a row and a column of zeros. Numbers that are not finite give such numbers.
    ///
    /// # Panics
    /// When the slice is not [B, K, K].
    pub fn take_roots(self, matrices: &mut [f32]) {
        let size = self.size(matrices);
        let work = || vec![0.0; size];
        let matrices = matrices.par_chunks_mut(size.max(1));
        matrices.for_each_init(work, |work, matrix| self.take_root(matrix, work));
    }

    /// Replaces each ∂L by ∂Σ, symmetric; `roots` are what [`Covariances::take_roots`] made. What
    /// has no variance gets nothing.
    ///
    /// # Panics
    /// When the slices are not [B, K, K].
    pub fn pull_roots(self, roots: &[f32], grads: &mut [f32]) {
        let size = self.size(grads);
        assert_eq!(roots.len(), grads.len(), "a root and its gradient have one shape");
        let work = || (vec![0.0; size], vec![0.0; size]);
        let both = grads.par_chunks_mut(size.max(1)).zip(roots.par_chunks(size.max(1)));
        both.for_each_init(work, |(wide, phi), (grad, root)| {
            wide.iter_mut().zip(root).for_each(|(wide, value)| *wide = f64::from(*value));
            self.pull_root(wide, grad, phi);
        });
    }

    fn size(self, matrices: &[f32]) -> usize {
        let size = self.classes * self.classes;
        assert!(matrices.len().is_multiple_of(size.max(1)), "covariances must be [B, K, K]");
        size
    }

    /// δ.
    fn share(self) -> f64 {
        self.terms as f64 * ROUNDING
    }

    fn take_root(self, matrix: &mut [f32], root: &mut [f64]) {
        let classes = self.classes;
        for k in 0..classes {
            let (above, row) = root.split_at_mut(k * classes);
            let found = &mut matrix[k * classes..][..classes];
            for j in 0..k {
                let other = &above[j * classes..][..=j];
                let rest = f64::from(found[j]) - dot(&row[..j], &other[..j]);
                row[j] = if other[j] == 0.0 { 0.0 } else { rest / other[j] };
            }
            let variance = f64::from(found[k]);
            row[k] = if variance < LEAST_VARIANCE {
                0.0
            } else {
                let own = self.share() * variance;
                (variance + own - dot(&row[..k], &row[..k])).max(own).sqrt()
            };
            found.fill(0.0);
            found[..=k].iter_mut().zip(&*row).for_each(|(to, value)| *to = *value as f32);
        }
    }

    /// L⁻ᵀ Φ(Lᵀ ∂L) L⁻¹, where Φ keeps the lower triangle and halves its diagonal; the mean with
    /// its transpose is taken, and variances count with what was added to them.
    fn pull_root(self, root: &[f64], grad: &mut [f32], phi: &mut [f64]) {
        let classes = self.classes;
        phi.fill(0.0);
        for (from, along) in root.chunks(classes).zip(grad.chunks(classes)) {
            for (i, phi) in phi.chunks_mut(classes).enumerate() {
                for (phi, along) in phi[..=i].iter_mut().zip(along) {
                    *phi += from[i] * f64::from(*along);
                }
            }
        }
        (0..classes).for_each(|k| phi[k * classes + k] *= 0.5);
        // X = L⁻ᵀ Φ, and then X L⁻¹ by the same substitution on the transposed equation.
        solve_transposed(root, classes, phi);
        transpose(phi, classes);
        solve_transposed(root, classes, phi);
        for i in 0..classes {
            for j in 0..=i {
                let mean = 0.5 * (phi[i * classes + j] + phi[j * classes + i]);
                let mean = if i == j { mean * (1.0 + self.share()) } else { mean };
                grad[i * classes + j] = mean as f32;
                grad[j * classes + i] = mean as f32;
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves Lᵀ X = B in place, from the last row up.
fn solve_transposed(root: &[f64], classes: usize, values: &mut [f64]) {
    for k in (0..classes).rev() {
        let (above, below) = values.split_at_mut((k + 1) * classes);
        let row = &mut above[k * classes..];
        for (other, from) in below.chunks(classes).zip(root.chunks(classes).skip(k + 1)) {
            let factor = from[k];
            row.iter_mut().zip(other).for_each(|(to, value)| *to -= factor * value);
        }
        let pivot = root[k * classes + k];
        row.iter_mut().for_each(|value| *value = if pivot == 0.0 { 0.0 } else { *value / pivot });
    }
}

fn transpose(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..i {
            matrix.swap(i * size + j, j * size + i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split_mix;

    const K: usize = 5;
    const OF: Covariances = Covariances { classes: K, terms: 40 };

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let words = split_mix(seed).take(count);
        words.map(|word| (word >> 11) as f64 / (1u64 << 52) as f64 - 1.0).collect()
    }

    /// M Mᵀ of [K, n], in f64.
    fn gram(rows: &[f64], width: usize) -> Vec<f64> {
        let row = |k: usize| &rows[k * width..][..width];
        (0..K * K).map(|at| dot(row(at / K), row(at % K))).collect()
    }

    fn narrow(values: &[f64]) -> Vec<f32> {
        values.iter().map(|value| *value as f32).collect()
    }

    fn root_of(covariance: &[f64]) -> Vec<f32> {
        let mut matrix = narrow(covariance);
        OF.take_roots(&mut matrix);
        matrix
    }

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().map(|value| f64::from(*value)).collect()
    }

    #[test]
    fn a_root_times_its_transpose_is_the_covariance_also_of_few_factors() {
        // Five classes of nine, two and one factors, so that up to four pivots are rounding alone.
        for width in [9, 2, 1] {
            let expected = gram(&numbers(K * width, width as u64), width);
            let root = root_of(&expected);
            let found = gram(&wide(&root), K);
            for i in 0..K {
                for j in 0..K {
                    let scale = (expected[i * K + i] * expected[j * K + j]).sqrt();
                    let error = (found[i * K + j] - expected[i * K + j]).abs();
                    assert!(error < 2.0 * OF.share() * scale, "{width}: {error} of {scale}");
                    assert!(j <= i || root[i * K + j] == 0.0);
                }
                assert!(
                    f64::from(root[i * K + i]).powi(2) > 0.99 * OF.share() * expected[i * K + i]
                );
            }
        }
    }

    #[test]
    fn gradients_are_those_of_differences() {
        let upstream = numbers(K * K, 7);
        let of = |covariance: &[f64]| {
            let mut root = vec![0.0; K * K];
            let mut matrix = vec![0.0; K * K];
            // In f64 throughout, by the same recursion.
            for k in 0..K {
                for j in 0..=k {
                    let dot: f64 = (0..j).map(|i| matrix[k * K + i] * matrix[j * K + i]).sum();
                    let own = if j == k { 1.0 + OF.share() } else { 1.0 };
                    let rest = own * covariance[k * K + j] - dot;
                    matrix[k * K + j] = if j == k { rest.sqrt() } else { rest / matrix[j * K + j] };
                }
            }
            root.copy_from_slice(&matrix);
            dot(&root, &upstream)
        };
        let covariance = gram(&numbers(K * 9, 3), 9);
        let mut grad = narrow(&upstream);
        OF.pull_roots(&root_of(&covariance), &mut grad);
        for i in 0..K {
            for j in 0..=i {
                let moved = |by: f64| {
                    let mut covariance = covariance.clone();
                    covariance[i * K + j] += by;
                    of(&covariance)
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                // The entry stands for both triangles.
                let found = f64::from(grad[i * K + j]) * if i == j { 1.0 } else { 2.0 };
                let error = (found - expected).abs();
                assert!(error < 1e-4 * expected.abs().max(1.0), "{i} {j}: {found} {expected}");
                assert_eq!(grad[i * K + j], grad[j * K + i]);
            }
        }
    }

    #[test]
    fn classes_that_depend_on_others_or_have_no_noise_keep_gradients_finite() {
        let mut rows = numbers(K * 9, 4);
        rows.copy_within(0..9, 9);
        rows[9..18].iter_mut().for_each(|value| *value *= -3.0);
        rows[27..36].fill(0.0);
        rows[36..45].iter_mut().for_each(|value| *value *= 1e-14);
        for covariance in [gram(&rows, 9), vec![0.0; K * K]] {
            let root = root_of(&covariance);
            assert!((0..K).all(|k| root[3 * K + k] == 0.0 && root[k * K + 3] == 0.0));
            let mut grad = narrow(&numbers(K * K, 5));
            OF.pull_roots(&root, &mut grad);
            assert!(root.iter().chain(&grad).all(|value| value.is_finite()), "{root:?} {grad:?}");
            assert!((0..K).all(|k| grad[3 * K + k] == 0.0 && grad[k * K + 3] == 0.0));
        }
    }

    #[test]
    fn what_is_not_finite_stays_so_in_its_example_alone() {
        let good = narrow(&gram(&numbers(K * 9, 6), 9));
        for (at, value) in [(0, f32::NAN), (K * K - 1, f32::INFINITY)] {
            let mut matrices = [&good[..], &good].concat();
            matrices[at] = value;
            OF.take_roots(&mut matrices);
            assert!(matrices[..K * K].iter().any(|value| !value.is_finite()));
            assert!(matrices[K * K..].iter().all(|value| value.is_finite()));
        }
    }
}
