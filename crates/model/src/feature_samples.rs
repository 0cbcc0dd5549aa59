//! The softmax likelihood of noise on the features, on the CPU: dense products over blocks of draws.
//!
//! Wᵀ ε′ of antithetic draws is computed once for both signs, forward and back. No more draws are
//! held at a time than make [`HELD`] numbers, or one block of one example.

use std::ops::Range;

use aleator_kernels::feature_noise::{FeatureGrad, FeatureNoise};
use aleator_kernels::given::{BLOCK, FeatureDraws, Given, Labelled, LogMean, Moments, Normals};
use aleator_kernels::{NotFinite, Targets, Temperature};
use aleator_layers::dense::{self, DenseShape};

use crate::likelihood::BatchNoise;
use crate::recycled::{self, Scratch};

/// Numbers of one array of draws: 32 MiB.
const HELD: usize = 1 << 23;

/// A batch with noise on its features.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    /// μ(x), [B, K].
    pub mean: &'a [f32],
    pub noise: FeatureNoise<'a>,
    pub temperature: Temperature,
}

/// Gradients of a loss.
pub(crate) struct Gradients {
    /// [B, K].
    pub mean: Vec<f32>,
    pub temperature: f32,
    pub noise: FeatureGrad,
}

/// Some draws of some examples on their way to the utilities.
struct Block {
    /// ε_D, [b, n, D].
    own: Scratch,
    /// ε_R, [b, n, R].
    factors: Scratch,
    /// ε_R Vᵀ, [b, n, D].
    shared: Scratch,
    /// ε′, [b, n, D].
    on_features: Scratch,
    /// Wᵀ ε′, [b, n, K].
    on_utilities: Scratch,
}

struct Sampler<'a> {
    batch: Batch<'a>,
    normals: Normals<'a>,
    /// Vᵀ, [R, D].
    loadings: Vec<f32>,
    /// Most numbers of one array of draws.
    held: usize,
}

impl<'a> Batch<'a> {
    /// log p, [B, K].
    pub fn log_probs(self, noise: &'a BatchNoise) -> Result<Vec<f32>, NotFinite> {
        let sampler = Sampler::new(self, noise)?;
        let mut out = vec![0.0; self.mean.len()];
        for (rows, blocks) in sampler.parts() {
            sampler.average(&rows, &blocks, None, &mut out[sampler.utilities(&rows)]);
        }
        Ok(out)
    }

    /// log p and the variance of the samples' probabilities, [B, K].
    pub fn predict(self, noise: &'a BatchNoise) -> Result<(Vec<f32>, Vec<f32>), NotFinite> {
        let sampler = Sampler::new(self, noise)?;
        let (mut log_probs, mut variance) = (vec![0.0; self.mean.len()], vec![]);
        for (rows, blocks) in sampler.parts() {
            let mut moments = Moments::new(&sampler.given(&rows, &(0..0)));
            let out = &mut log_probs[sampler.utilities(&rows)];
            sampler.average(&rows, &blocks, Some(&mut moments), out);
            variance.extend(moments.variance(sampler.normals.signs.samples()));
        }
        Ok((log_probs, variance))
    }

    /// log p, [B, K], and the gradients of Σ weight · −log p of the targets.
    pub fn loss_and_grad(
        self,
        noise: &'a BatchNoise,
        targets: Targets<'_>,
        weights: &[f32],
    ) -> Result<(Vec<f32>, Gradients), NotFinite> {
        Ok(Sampler::new(self, noise)?.loss_and_grad(targets, weights))
    }

    fn zeros(&self) -> Gradients {
        let FeatureNoise { batch, features, rank, classes, .. } = self.noise;
        let zeros = |len: usize| {
            let mut zeros = recycled::take(len);
            zeros.fill(0.0);
            zeros
        };
        Gradients {
            mean: zeros(batch * classes),
            temperature: 0.0,
            noise: FeatureGrad {
                diag_scale: zeros(batch * features),
                loading_scale: zeros(batch * features),
                shared_loadings: zeros(features * rank),
                weight: zeros(features * classes),
            },
        }
    }
}

impl<'a> Sampler<'a> {
    fn new(batch: Batch<'a>, noise: &'a BatchNoise) -> Result<Self, NotFinite> {
        let FeatureNoise { features, rank, classes, shared_loadings, .. } = batch.noise;
        let covariance = aleator_kernels::Covariance::None;
        let (mean, rows) = (batch.mean, batch.noise.batch);
        aleator_kernels::Latent { batch: rows, classes, mean, covariance }.check()?;
        batch.noise.check()?;
        let transposed = (0..rank).flat_map(|factor| {
            (0..features).map(move |feature| shared_loadings[feature * rank + factor])
        });
        let loadings = transposed.collect();
        let normals = Normals::new(noise.sampling(), features, rank);
        Ok(Self { batch, normals, loadings, held: HELD })
    }

    fn loss_and_grad(&self, targets: Targets<'_>, weights: &[f32]) -> (Vec<f32>, Gradients) {
        let FeatureNoise { batch, classes, .. } = self.batch.noise;
        targets.check(batch, classes);
        assert_eq!(weights.len(), batch, "one weight for each example");
        let mut out = vec![0.0; batch * classes];
        let mut grad = self.batch.zeros();
        for (rows, blocks) in self.parts() {
            let log_probs = &mut out[self.utilities(&rows)];
            let last = self.average(&rows, &blocks, None, log_probs);
            let samples = self.normals.signs.samples();
            let labels = Labelled { log_probs, samples, targets, weights, first: rows.start };
            // Draws that are still there need not be made again.
            let mut held = last.filter(|_| blocks.len() == 1).into_iter();
            for draws in &blocks {
                let block = held.next().unwrap_or_else(|| self.block(&rows, draws));
                self.pull(&rows, draws, block, &labels, &mut grad);
            }
        }
        (out, grad)
    }

    /// Examples that are computed together, each with the blocks of its draws.
    fn parts(&self) -> impl Iterator<Item = (Range<usize>, Vec<Range<usize>>)> + use<> {
        let FeatureNoise { batch, features, classes, .. } = self.batch.noise;
        let (draws, width) = (self.normals.signs.draws, features.max(classes));
        let rows = (self.held / (draws * width).max(1)).max(1);
        let block = (self.held / width / BLOCK).max(1) * BLOCK;
        let blocks = (0..draws).step_by(block).map(|first| first..draws.min(first + block));
        let blocks: Vec<Range<usize>> = blocks.collect();
        let parts = (0..batch).step_by(rows).map(move |first| first..batch.min(first + rows));
        parts.map(move |rows| (rows, blocks.clone()))
    }

    /// Where the utilities of examples are in [B, K].
    fn utilities(&self, rows: &Range<usize>) -> Range<usize> {
        let classes = self.batch.noise.classes;
        rows.start * classes..rows.end * classes
    }

    fn given(&self, rows: &Range<usize>, draws: &Range<usize>) -> Given<'a> {
        Given {
            classes: self.batch.noise.classes,
            mean: &self.batch.mean[self.utilities(rows)],
            signs: self.normals.signs.part(draws.start, draws.end),
            temperature: self.batch.temperature,
        }
    }

    fn block(&self, rows: &Range<usize>, draws: &Range<usize>) -> Block {
        let FeatureNoise { features, rank, classes, weight, .. } = self.batch.noise;
        let batch = rows.len() * draws.len();
        let scratch = |width: usize| Scratch::new(batch * width);
        let mut block = Block {
            own: scratch(features),
            factors: scratch(rank),
            shared: scratch(features),
            on_features: scratch(features),
            on_utilities: scratch(classes),
        };
        let Block { own, factors, shared, on_features, on_utilities } = &mut block;
        self.normals.draw(rows.clone(), draws.clone(), own, factors);
        let shape = DenseShape { batch, inputs: rank, outputs: features };
        dense::forward(factors, &self.loadings, None, shared, shape);
        let drawn = FeatureDraws { draws: draws.len(), own, factors, shared };
        self.batch.noise.combine(rows.start, &drawn, on_features);
        let shape = DenseShape { batch, inputs: features, outputs: classes };
        dense::forward(on_features, weight, None, on_utilities, shape);
        block
    }

    /// log p of some examples; returns the last block.
    fn average(
        &self,
        rows: &Range<usize>,
        blocks: &[Range<usize>],
        mut moments: Option<&mut Moments>,
        out: &mut [f32],
    ) -> Option<Block> {
        let mut mean = LogMean::new(out.len());
        let mut last = None;
        for draws in blocks {
            let block = self.block(rows, draws);
            mean.add(&self.given(rows, draws), &block.on_utilities, moments.as_deref_mut());
            last = Some(block);
        }
        mean.log_probs(out);
        last
    }

    /// Adds the gradients of one block.
    fn pull(
        &self,
        rows: &Range<usize>,
        draws: &Range<usize>,
        block: Block,
        labels: &Labelled<'_>,
        grad: &mut Gradients,
    ) {
        let FeatureNoise { features, rank, classes, weight, .. } = self.batch.noise;
        let Block { own, factors, shared, mut on_features, mut on_utilities } = block;
        let pulled = self.given(rows, draws).pull(&mut on_utilities, labels);
        add(&mut grad.mean[self.utilities(rows)], &pulled.mean);
        grad.temperature += pulled.temperature as f32;
        let batch = rows.len() * draws.len();
        let shape = DenseShape { batch, inputs: features, outputs: classes };
        add_product(&mut grad.noise.weight, |out| {
            dense::backward_weight(&on_features, &on_utilities, out, shape);
        });
        // ε′ has been used: its memory takes its gradient.
        dense::backward_features(&on_utilities, weight, &mut on_features, shape);
        let at = rows.start * features..rows.end * features;
        let (diag, scale) =
            (&mut grad.noise.diag_scale[at.clone()], &mut grad.noise.loading_scale[at]);
        let drawn =
            FeatureDraws { draws: draws.len(), own: &own, factors: &factors, shared: &shared };
        self.batch.noise.pull(rows.start, &drawn, &mut on_features, diag, scale);
        let shape = DenseShape { batch, inputs: features, outputs: rank };
        add_product(&mut grad.noise.shared_loadings, |out| {
            dense::backward_weight(&on_features, &factors, out, shape);
        });
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Adds what `product` overwrites a buffer of the same length by.
pub(crate) fn add_product(to: &mut [f32], product: impl FnOnce(&mut [f32])) {
    let mut own = Scratch::new(to.len());
    product(&mut own);
    add(to, &own);
}

#[cfg(test)]
mod tests {
    use aleator_kernels::{Draws, NoiseKey, split_mix};

    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        split_mix(seed)
            .take(count)
            .map(|word| (word >> 40) as f32 / (1 << 23) as f32 - 1.0)
            .collect()
    }

    /// The draws of three examples in one piece, by example, and in blocks that are made twice.
    #[test]
    fn how_many_draws_are_held_changes_nothing() {
        let (batch, features, rank, classes) = (3, 5, 2, 7);
        let mean = numbers(batch * classes, 1);
        let (diag, scale) = (numbers(batch * features, 2), numbers(batch * features, 3));
        let (loadings, weight) = (numbers(features * rank, 4), numbers(features * classes, 5));
        let noise = FeatureNoise {
            batch,
            features,
            rank,
            classes,
            diag_scale: &diag,
            loading_scale: &scale,
            shared_loadings: &loadings,
            weight: &weight,
        };
        let temperature = Temperature::try_from(0.3).unwrap();
        let inputs = Batch { mean: &mean, noise, temperature };
        let targets = Targets::Sparse {
            offsets: &[0, 1, 3, 4],
            classes: &[6, 0, 2, 3],
            probs: &[1.0, 0.3, 0.7, 1.0],
        };
        for draws in [Draws::Independent, Draws::Antithetic, Draws::Sobol] {
            let key = NoiseKey { seed: 1, step: 2 };
            let noise = BatchNoise { key, ids: vec![4, 9, 1], samples: 301, draws };
            let found = [HELD, 301 * 7, 64 * 7].map(|held| {
                let sampler = Sampler { held, ..Sampler::new(inputs, &noise).unwrap() };
                let (log_probs, grad) = sampler.loss_and_grad(targets, &[0.5, 0.25, 1.0]);
                let FeatureGrad { diag_scale, loading_scale, shared_loadings, weight } = grad.noise;
                let parts = [log_probs, grad.mean, diag_scale, loading_scale, shared_loadings];
                let mut all = parts.concat();
                all.extend(weight);
                all.push(grad.temperature);
                all
            });
            let [whole, by_example, in_blocks] = found;
            for other in [by_example, in_blocks] {
                for (a, b) in whole.iter().zip(other) {
                    // Sums of 301 terms of about 1 in another order.
                    assert!((a - b).abs() < 1e-4 * a.abs().max(1.0), "{draws:?}: {a} and {b}");
                }
            }
        }
    }
}
