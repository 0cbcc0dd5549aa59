//! Noise on the features in the space of the classes, on the CPU: roots of Σ = Wᵀ Σ′ W, [K, K] for
//! each example, by dense products that all examples share.
//!
//! With Z_j,ab = W_ja W_jb the part of Σ that each feature adds on its own is d² · Z, and with
//! Y_j,rk = V_jr W_jk the factors give P = v · Y and Pᵀ P. Gradients are the transposed products.
//! Z and Y are made in blocks of pairs of classes and of factors, so neither they nor what is
//! computed with them takes more memory than [`HELD`] numbers, one row of a triangle (as W), or the
//! roots themselves.

use std::ops::Range;

use aleator_kernels::covariance_root::Covariances;
use aleator_kernels::feature_noise::{FeatureGrad, FeatureNoise};
use aleator_layers::dense::{self, DenseShape};
use rayon::prelude::*;

use crate::feature_samples::add_product;

/// Numbers of Z or Y at a time: 32 MiB.
const HELD: usize = 1 << 23;

/// Σ of a batch.
pub(crate) struct ClassCovariance<'a> {
    noise: FeatureNoise<'a>,
    /// d², [B, D].
    squares: Vec<f32>,
    /// Most numbers of Z or Y.
    held: usize,
}

impl<'a> ClassCovariance<'a> {
    pub fn new(noise: FeatureNoise<'a>) -> Self {
        let squares = noise.diag_scale.iter().map(|scale| scale * scale).collect();
        Self { noise, squares, held: HELD }
    }

    /// Overwrites [B, K, K] by L, lower triangular, with L Lᵀ = Σ.
    pub fn write_roots(&self, out: &mut [f32]) {
        for pairs in self.pairs() {
            self.write_own(&pairs, out);
        }
        for factors in self.factors() {
            let projected = self.projected(&factors, &self.factor_products(&factors));
            self.add_squares(&projected, out);
        }
        self.covariances().take_roots(out);
    }

    /// Gradients of d, v, V and W from that of L.
    pub fn pull(&self, roots: &[f32], upstream: &[f32]) -> FeatureGrad {
        let FeatureNoise { features, rank, classes, diag_scale, loading_scale, .. } = self.noise;
        let mut covariance = upstream.to_vec();
        self.covariances().pull_roots(roots, &mut covariance);
        let mut grad = FeatureGrad {
            diag_scale: vec![0.0; diag_scale.len()],
            loading_scale: vec![0.0; loading_scale.len()],
            shared_loadings: vec![0.0; features * rank],
            weight: vec![0.0; features * classes],
        };
        for pairs in self.pairs() {
            self.pull_own(&pairs, &covariance, &mut grad);
        }
        let scales = grad.diag_scale.iter_mut().zip(diag_scale);
        scales.for_each(|(grad, scale)| *grad *= 2.0 * scale);
        for factors in self.factors() {
            self.pull_factors(&factors, &covariance, &mut grad);
        }
        grad
    }

    /// A number of Σ sums D products of three and R of two numbers, which are sums in turn.
    fn covariances(&self) -> Covariances {
        let FeatureNoise { features, rank, classes, .. } = self.noise;
        Covariances { classes, terms: features + rank + 2 }
    }

    /// Numbers of an example's Σ; at least 1, as the length of a part.
    fn size(&self) -> usize {
        (self.noise.classes * self.noise.classes).max(1)
    }

    // ---- what each feature adds on its own ----

    /// Blocks of rows of the triangle of pairs of classes.
    fn pairs(&self) -> Vec<Pairs> {
        let FeatureNoise { features, classes, .. } = self.noise;
        let most = self.held / features.max(1);
        let mut out = vec![];
        let mut first = 0;
        while first < classes {
            let fits = |last: &usize| triangle(*last) - triangle(first) <= most;
            let last = (first + 2..=classes).take_while(fits).last().unwrap_or(first + 1);
            out.push(Pairs { rows: first..last });
            first = last;
        }
        out
    }

    /// Z, [D, C].
    fn pair_products(&self, pairs: &Pairs) -> Vec<f32> {
        let FeatureNoise { features, classes, weight, .. } = self.noise;
        let mut out = vec![0.0; features * pairs.count()];
        let features = out.par_chunks_mut(pairs.count()).zip(weight.par_chunks(classes));
        features.for_each(|(out, weight)| {
            for (row, at) in pairs.rows() {
                let others = out[at].iter_mut().zip(weight);
                others.for_each(|(out, other)| *out = weight[row] * other);
            }
        });
        out
    }

    fn write_own(&self, pairs: &Pairs, out: &mut [f32]) {
        let FeatureNoise { batch, features, classes, .. } = self.noise;
        let shape = DenseShape { batch, inputs: features, outputs: pairs.count() };
        let mut own = vec![0.0; batch * pairs.count()];
        dense::forward(&self.squares, &self.pair_products(pairs), None, &mut own, shape);
        let examples = out.par_chunks_mut(self.size()).zip(own.par_chunks(pairs.count()));
        examples.for_each(|(out, own)| {
            for (row, at) in pairs.rows() {
                out[row * classes..][..=row].copy_from_slice(&own[at]);
            }
        });
    }

    /// Adds ∂(d²) to that of d, and the gradient of W.
    fn pull_own(&self, pairs: &Pairs, covariance: &[f32], grad: &mut FeatureGrad) {
        let FeatureNoise { batch, features, classes, weight, .. } = self.noise;
        let shape = DenseShape { batch, inputs: features, outputs: pairs.count() };
        let mut own = vec![0.0; batch * pairs.count()];
        let examples = own.par_chunks_mut(pairs.count()).zip(covariance.par_chunks(self.size()));
        examples.for_each(|(own, covariance)| {
            for (row, at) in pairs.rows() {
                let own = &mut own[at];
                own.copy_from_slice(&covariance[row * classes..][..=row]);
                // Each stands for both triangles.
                own[..row].iter_mut().for_each(|value| *value *= 2.0);
            }
        });
        let mut products = self.pair_products(pairs);
        add_product(&mut grad.diag_scale, |out| {
            dense::backward_features(&own, &products, out, shape);
        });
        dense::backward_weight(&self.squares, &own, &mut products, shape);
        let numbers = grad.weight.par_chunks_mut(classes).zip(weight.par_chunks(classes));
        numbers.zip(products.par_chunks(pairs.count())).for_each(|((grad, weight), pulled)| {
            for (row, at) in pairs.rows() {
                for (other, pulled) in pulled[at].iter().enumerate() {
                    grad[row] += pulled * weight[other];
                    grad[other] += pulled * weight[row];
                }
            }
        });
    }

    // ---- what features share ----

    /// Blocks of factors: with no more of them than classes P is no larger than the roots.
    fn factors(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let FeatureNoise { features, rank, classes, .. } = self.noise;
        let most = (self.held / (features * classes).max(1)).clamp(1, classes.max(1));
        (0..rank).step_by(most).map(move |first| first..rank.min(first + most))
    }

    /// Y, [D, n K].
    fn factor_products(&self, factors: &Range<usize>) -> Vec<f32> {
        let FeatureNoise { features, rank, classes, shared_loadings, weight, .. } = self.noise;
        let width = factors.len() * classes;
        let mut out = vec![0.0; features * width];
        let features = out.par_chunks_mut(width).zip(weight.par_chunks(classes));
        features.zip(shared_loadings.par_chunks(rank)).for_each(|((out, weight), loadings)| {
            for (out, loading) in out.chunks_mut(classes).zip(&loadings[factors.clone()]) {
                out.iter_mut().zip(weight).for_each(|(out, weight)| *out = loading * weight);
            }
        });
        out
    }

    /// P, [B, n, K].
    fn projected(&self, factors: &Range<usize>, products: &[f32]) -> Vec<f32> {
        let shape = self.factor_shape(factors);
        let mut out = vec![0.0; shape.batch * shape.outputs];
        dense::forward(self.noise.loading_scale, products, None, &mut out, shape);
        out
    }

    fn factor_shape(&self, factors: &Range<usize>) -> DenseShape {
        let FeatureNoise { batch, features, classes, .. } = self.noise;
        DenseShape { batch, inputs: features, outputs: factors.len() * classes }
    }

    /// Adds the lower triangles of Pᵀ P.
    fn add_squares(&self, projected: &[f32], out: &mut [f32]) {
        let (classes, size) = (self.noise.classes, self.size());
        let width = (projected.len() / self.noise.batch.max(1)).max(1);
        let examples = out.par_chunks_mut(size).zip(projected.par_chunks(width));
        examples.for_each(|(out, projected)| {
            for factor in projected.chunks(classes) {
                for (row, out) in out.chunks_mut(classes).enumerate() {
                    let others = out[..=row].iter_mut().zip(factor);
                    others.for_each(|(out, other)| *out += factor[row] * other);
                }
            }
        });
    }

    /// Adds the gradients of v, V and W.
    fn pull_factors(&self, factors: &Range<usize>, covariance: &[f32], grad: &mut FeatureGrad) {
        let FeatureNoise { rank, classes, shared_loadings, weight, .. } = self.noise;
        let shape = self.factor_shape(factors);
        let mut products = self.factor_products(factors);
        let projected = self.projected(factors, &products);
        let mut pulled = vec![0.0; projected.len()];
        let width = shape.outputs.max(1);
        let examples = pulled.par_chunks_mut(width).zip(projected.par_chunks(width));
        examples.zip(covariance.par_chunks(self.size())).for_each(
            |((pulled, factors), covariance)| {
                for (pulled, factor) in pulled.chunks_mut(classes).zip(factors.chunks(classes)) {
                    for (along, line) in factor.iter().zip(covariance.chunks(classes)) {
                        let sums = pulled.iter_mut().zip(line);
                        sums.for_each(|(sum, value)| *sum += 2.0 * along * value);
                    }
                }
            },
        );
        add_product(&mut grad.loading_scale, |out| {
            dense::backward_features(&pulled, &products, out, shape);
        });
        dense::backward_weight(self.noise.loading_scale, &pulled, &mut products, shape);
        let features = grad.weight.par_chunks_mut(classes).zip(weight.par_chunks(classes));
        let loadings = grad.shared_loadings.par_chunks_mut(rank);
        let loadings = loadings.zip(shared_loadings.par_chunks(rank));
        let features = features.zip(loadings).zip(products.par_chunks(width));
        features.for_each(|(((weight_grad, weight), (loading_grad, loadings)), pulled)| {
            for (factor, pulled) in factors.clone().zip(pulled.chunks(classes)) {
                for (class, pulled) in pulled.iter().enumerate() {
                    loading_grad[factor] += pulled * weight[class];
                    weight_grad[class] += pulled * loadings[factor];
                }
            }
        });
    }
}

/// Pairs (a, b) of classes with b ≤ a, for some a.
struct Pairs {
    rows: Range<usize>,
}

impl Pairs {
    /// C.
    fn count(&self) -> usize {
        triangle(self.rows.end) - triangle(self.rows.start)
    }

    /// Each a, with the columns of its pairs.
    fn rows(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let before = triangle(self.rows.start);
        self.rows.clone().map(move |row| (row, triangle(row) - before..triangle(row + 1) - before))
    }
}

/// Pairs of this many classes.
fn triangle(classes: usize) -> usize {
    classes * (classes + 1) / 2
}

#[cfg(test)]
mod tests {
    use aleator_kernels::split_mix;

    use super::*;

    const SIZES: [usize; 4] = [7, 11, 3, 6];

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let words = split_mix(seed).take(count);
        words.map(|word| (word >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    fn given() -> [Vec<f32>; 5] {
        let [batch, features, rank, classes] = SIZES;
        let sizes = [
            batch * features,
            batch * features,
            features * rank,
            features * classes,
            batch * classes * classes,
        ];
        std::array::from_fn(|at| numbers(sizes[at], at as u64))
    }

    fn noise(given: &[Vec<f32>; 5]) -> FeatureNoise<'_> {
        let [batch, features, rank, classes] = SIZES;
        let [diag_scale, loading_scale, shared_loadings, weight, _] = given.each_ref();
        FeatureNoise {
            batch,
            features,
            rank,
            classes,
            diag_scale,
            loading_scale,
            shared_loadings,
            weight,
        }
    }

    fn roots_and_grad(given: &[Vec<f32>; 5], held: usize) -> (Vec<f32>, FeatureGrad) {
        let of = ClassCovariance { held, ..ClassCovariance::new(noise(given)) };
        // What the buffer held before says nothing.
        let mut roots = vec![f32::NAN; given[4].len()];
        of.write_roots(&mut roots);
        let grad = of.pull(&roots, &given[4]);
        (roots, grad)
    }

    fn parts(grad: &FeatureGrad) -> [&[f32]; 4] {
        [&grad.diag_scale, &grad.loading_scale, &grad.shared_loadings, &grad.weight]
    }

    #[test]
    fn blocks_of_pairs_and_of_factors_change_nothing_but_rounding() {
        let given = given();
        let (roots, grad) = roots_and_grad(&given, HELD);
        // One row of the triangle and one factor at a time, and some of each.
        for held in [0, 11 * 12] {
            let of = ClassCovariance { held, ..ClassCovariance::new(noise(&given)) };
            assert!(of.pairs().len() > 1 && of.factors().count() > 1);
            let (other_roots, other_grad) = roots_and_grad(&given, held);
            assert_eq!(roots.len(), other_roots.len());
            let found = parts(&grad).into_iter().zip(parts(&other_grad));
            for (found, other) in found.chain([(&roots[..], &other_roots[..])]) {
                for (a, b) in found.iter().zip(other) {
                    assert!((a - b).abs() < 2e-5 * a.abs().max(1.0), "{held}: {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let given = given();
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| roots_and_grad(&given, 11 * 12))
        };
        assert_eq!(of(1), of(3));
    }

    #[test]
    fn columns_of_w_that_depend_on_each_other_keep_gradients_finite() {
        let [_, _, _, classes] = SIZES;
        for factor in [0.0, 3.0, 1e-12] {
            let mut given = given();
            for weight in given[3].chunks_mut(classes) {
                weight[1] = factor * weight[0];
                weight[4] = 0.3 * weight[2] - 0.9 * weight[0];
            }
            let (roots, grad) = roots_and_grad(&given, HELD);
            let all = parts(&grad).concat();
            assert!(roots.iter().chain(&all).all(|value| value.is_finite()), "{factor}");
            // What is divided by the least pivot, √δ of a deviation, and no smaller one.
            let of_w = grad.weight.iter().map(|value| value.abs()).fold(0.0, f32::max);
            assert!(factor == 1e-12 || of_w < 1e4, "{factor}: {of_w}");
        }
    }
}
