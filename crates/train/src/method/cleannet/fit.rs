//! How the encoders of CleanNet learn, and what they then say of all examples.

use aleator_kernels::{NoiseKey, Stream, split_mix};
use aleator_run::recipe;

use super::encoders::{EncodedClasses, EncodedQueries, Encoders, Gradients, Sizes, fresh};
use super::references::References;
use crate::method::adam::Adam;
use crate::tensors::NamedTensor;

/// What the encoders learn from.
pub(super) struct Task<'a> {
    settings: &'a recipe::CleanNet,
    /// Standardised, [N, D].
    features: &'a [f32],
    /// The given class of each example, `[N]`.
    labels: &'a [u32],
    verified: &'a [(usize, bool)],
    /// The examples that are not verified.
    unverified: Vec<usize>,
    references: References,
    random: (u64, usize),
    sizes: Sizes,
}

/// Encoders that have learned.
pub(super) struct Fitted {
    sizes: Sizes,
    tensors: Vec<NamedTensor>,
}

/// An example in a step.
#[derive(Clone, Copy, Debug)]
struct Query {
    example: usize,
    /// Whether its label is right, where that is verified.
    judgement: Option<bool>,
}

/// What random words are for.
#[derive(Clone, Copy)]
enum Use {
    Weights,
    Verified,
    Unverified,
    /// The first centres of a class.
    References(usize),
}

/// Added to the square of a norm.
const LEAST_SQUARE: f32 = 1e-24;
/// Examples whose φ_q are computed at once.
const BLOCK: usize = 4_096;

impl<'a> Task<'a> {
    /// `random` is the seed and the epoch.
    pub fn new(
        settings: &'a recipe::CleanNet,
        features: &'a [f32],
        labels: &'a [u32],
        classes: usize,
        verified: &'a [(usize, bool)],
        random: (u64, usize),
    ) -> Self {
        let mut is_verified = vec![false; labels.len()];
        verified.iter().for_each(|(example, _)| is_verified[*example] = true);
        let recipe::CleanNet { references: count, hidden, embedding, .. } = *settings;
        let of_class = |class| words(random, Use::References(class));
        Self {
            settings,
            features,
            labels,
            verified,
            unverified: (0..labels.len()).filter(|example| !is_verified[*example]).collect(),
            references: References::find(features, labels, classes, count, of_class),
            random,
            sizes: Sizes { features: features.len() / labels.len(), hidden, embedding },
        }
    }

    /// Encoders that begin with fresh weights.
    pub fn fit(&self) -> Fitted {
        let recipe::CleanNet { rate, steps, batch, .. } = *self.settings;
        let sizes = self.sizes;
        let mut adam = Adam::new(fresh(sizes, words(self.random, Use::Weights)), rate, steps);
        let mut of_verified = words(self.random, Use::Verified);
        let mut of_unverified = words(self.random, Use::Unverified);
        for _ in 0..steps {
            let verified = of_verified.by_ref().take(batch).map(|word| {
                let (example, right) = self.verified[below(self.verified.len(), word)];
                Query { example, judgement: Some(right) }
            });
            let mut queries: Vec<Query> = verified.collect();
            if !self.unverified.is_empty() {
                let unverified = of_unverified.by_ref().take(batch).map(|word| {
                    let example = self.unverified[below(self.unverified.len(), word)];
                    Query { example, judgement: None }
                });
                queries.extend(unverified);
            }
            let encoders = Encoders { sizes, tensors: &adam.tensors };
            let (loss, gradients) = self.loss(encoders, &queries);
            adam.step(&gradients.into_values(), loss);
        }
        Fitted { sizes, tensors: adam.tensors }
    }

    /// The loss of some examples, of which the verified and the others are averaged each, and its
    /// gradients.
    fn loss(&self, encoders: Encoders<'_>, queries: &[Query]) -> (f64, Gradients) {
        let recipe::CleanNet { unverified_weight, reconstruction_weight, .. } = *self.settings;
        let mut classes: Vec<usize> =
            queries.iter().map(|query| self.labels[query.example] as usize).collect();
        classes.sort_unstable();
        classes.dedup();
        let classes =
            EncodedBatch { encoded: encoders.encode_classes(&self.references, &classes), classes };
        let rows = queries.iter().flat_map(|query| self.features_of(query.example));
        let inputs: Vec<f32> = rows.copied().collect();
        let encoded = encoders.encode_queries(inputs.clone());
        let decoded = encoders.decode(&encoded);
        let mut gradients = Gradients::zeros(encoders.tensors);
        let count = |verified: bool| {
            queries.iter().filter(|it| it.judgement.is_some() == verified).count() as f64
        };
        let shares = [1.0 / count(true), unverified_weight / count(false)];

        let width = self.sizes.embedding;
        let mut of_queries = vec![0.0; encoded.embeddings.len()];
        let mut of_classes = vec![0.0; classes.encoded.embeddings.len()];
        let mut loss = 0.0;
        for (row, query) in queries.iter().enumerate() {
            let at = classes.position(self.labels[query.example] as usize);
            let [own, class] = [row, at].map(|at| at * width..(at + 1) * width);
            let phi_q = &encoded.embeddings[own.clone()];
            let phi_s = &classes.encoded.embeddings[class.clone()];
            let cosine = Cosine::new(phi_q, phi_s);
            let (value, slope) = self.of_similarity(f64::from(cosine.value), query.judgement);
            let share = shares[usize::from(query.judgement.is_none())];
            loss += share * value;
            let slope = (share * slope) as f32;
            cosine.add_slopes(phi_q, phi_s, slope, &mut of_queries[own]);
            cosine.swapped().add_slopes(phi_s, phi_q, slope, &mut of_classes[class]);
        }

        let share = reconstruction_weight / inputs.len() as f64;
        let errors = decoded.features.iter().zip(&inputs).map(|(found, own)| found - own);
        let errors: Vec<f32> = errors.collect();
        loss += share * errors.iter().map(|error| f64::from(error * error)).sum::<f64>();
        let of_features = errors.iter().map(|error| 2.0 * share as f32 * error).collect();
        encoders.backward_queries(&encoded, &decoded, of_queries, of_features, &mut gradients);
        encoders.backward_classes(&classes.encoded, of_classes, &mut gradients);
        (loss, gradients)
    }

    /// The loss of an example of this cosine, and its slope.
    fn of_similarity(&self, cosine: f64, judgement: Option<bool>) -> (f64, f64) {
        let recipe::CleanNet { margin, wrong_weight, .. } = *self.settings;
        match judgement.unwrap_or(cosine >= margin) {
            true => (1.0 - cosine, -1.0),
            false if cosine > margin => (wrong_weight * (cosine - margin), wrong_weight),
            false => (0.0, 0.0),
        }
    }

    fn features_of(&self, example: usize) -> &[f32] {
        &self.features[example * self.sizes.features..][..self.sizes.features]
    }
}

/// The classes of a step, in ascending order, and what became of them.
struct EncodedBatch {
    classes: Vec<usize>,
    encoded: EncodedClasses,
}

impl EncodedBatch {
    fn position(&self, class: usize) -> usize {
        self.classes.binary_search(&class).expect("the class of a query is encoded")
    }
}

/// The cosine of two vectors, and their norms.
#[derive(Clone, Copy, Debug)]
struct Cosine {
    value: f32,
    norms: [f32; 2],
}

impl Cosine {
    fn new(a: &[f32], b: &[f32]) -> Self {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let norms = [a, b].map(|it| (product(it, it) + LEAST_SQUARE).sqrt());
        Self { value: product(a, b) / (norms[0] * norms[1]), norms }
    }

    /// That of the two the other way round.
    fn swapped(self) -> Self {
        Self { norms: [self.norms[1], self.norms[0]], ..self }
    }

    /// Adds the slope by the first vector, times a factor.
    fn add_slopes(self, a: &[f32], b: &[f32], factor: f32, slopes: &mut [f32]) {
        let [own, other] = self.norms;
        for ((slope, a), b) in slopes.iter_mut().zip(a).zip(b) {
            *slope += factor * (b / other - self.value * a / own) / own;
        }
    }
}

impl Fitted {
    /// The cosine of each example and its given class, `[N]`.
    pub fn similarities(&self, task: &Task<'_>) -> Vec<f32> {
        let encoders = Encoders { sizes: self.sizes, tensors: &self.tensors };
        let mut classes: Vec<usize> = task.labels.iter().map(|label| *label as usize).collect();
        classes.sort_unstable();
        classes.dedup();
        let encoded = encoders.encode_classes(&task.references, &classes);
        let classes = EncodedBatch { classes, encoded };
        let width = self.sizes.embedding;
        let features = task.features.chunks(BLOCK * self.sizes.features);
        let mut similarities = vec![];
        for (rows, labels) in features.zip(task.labels.chunks(BLOCK)) {
            let EncodedQueries { embeddings, .. } = encoders.encode_queries(rows.to_vec());
            for (phi_q, label) in embeddings.chunks_exact(width).zip(labels) {
                let at = classes.position(*label as usize);
                let phi_s = &classes.encoded.embeddings[at * width..][..width];
                similarities.push(Cosine::new(phi_q, phi_s).value);
            }
        }
        similarities
    }
}

fn words((seed, epoch): (u64, usize), purpose: Use) -> impl Iterator<Item = u64> {
    let block = match purpose {
        Use::Weights => 0,
        Use::Verified => 1,
        Use::Unverified => 2,
        Use::References(class) => 3 + class as u64,
    };
    let key = NoiseKey { seed, step: epoch as u64 };
    split_mix(key.block_seed(u64::MAX, Stream::Method, block))
}

/// One of `0..count`.
fn below(count: usize, word: u64) -> usize {
    ((u128::from(word) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
