//! Examples of a part that are mixed with each other (Zhang et al. 2018).

use aleator_data::augment::symmetric_beta;
use aleator_kernels::{Stream, split_mix};
use burn::tensor::{Tensor, TensorData};

use super::given;
use crate::outputs::floats;
use crate::step::Part;

/// Row i becomes `shares[i]` of itself and the rest of row `partners[i]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mix {
    pub partners: Vec<usize>,
    pub shares: Vec<f64>,
}

/// What a random word of an example and a step is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    Share,
    Partner,
    /// How an example is varied in one of its views.
    View(u64),
}

impl Mix {
    /// Every example with the next one of its part, which is in random order, and most of itself:
    /// λ of Beta(α, α), or 1 − λ where that is more.
    pub fn with_next(part: &Part<'_>, alpha: f64) -> Self {
        let count = part.weights.len();
        Self {
            partners: (0..count).map(|row| (row + 1) % count).collect(),
            shares: (0..count).map(|row| larger_share(part, row, alpha)).collect(),
        }
    }

    /// The inputs of a part, [B, N].
    pub fn inputs(&self, inputs: &Tensor<2>) -> Tensor<2> {
        let [count, width] = inputs.dims();
        let old = floats(inputs.clone());
        let mixed = (0..count).flat_map(|row| {
            let (share, rest) = (self.shares[row] as f32, (1.0 - self.shares[row]) as f32);
            let (own, other) = (row * width, self.partners[row] * width);
            let old = &old;
            (0..width).map(move |at| share * old[own + at] + rest * old[other + at])
        });
        let data = TensorData::new(mixed.collect::<Vec<f32>>(), [count, width]);
        Tensor::from_data(data, &inputs.device())
    }

    /// Targets of the examples, `[B][K]`.
    pub fn targets(&self, old: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let row = |row: usize| {
            let (share, other) = (self.shares[row], &old[self.partners[row]]);
            let both = old[row].iter().zip(other);
            both.map(|(own, other)| share * own + (1.0 - share) * other).collect()
        };
        (0..old.len()).map(row).collect()
    }
}

/// The larger share of two, by λ of Beta(α, α).
pub(super) fn larger_share(part: &Part<'_>, row: usize, alpha: f64) -> f64 {
    let share = symmetric_beta(alpha, |index| word(part, row, Use::Share, index));
    share.max(1.0 - share)
}

/// A random word that is named by seed, step and example.
pub(super) fn word(part: &Part<'_>, row: usize, purpose: Use, index: u64) -> u64 {
    let seed = word_seed(part, row, purpose);
    split_mix(seed.wrapping_add(index.wrapping_mul(0xd134_2543_de82_ef95))).next().expect("endless")
}

/// The seed of all words of this use.
pub(super) fn word_seed(part: &Part<'_>, row: usize, purpose: Use) -> u64 {
    let block = match purpose {
        Use::Share => 0,
        Use::Partner => 1,
        Use::View(view) => 2 + view,
    };
    part.noise.key.block_seed(part.batch.keys[row], Stream::Method, block)
}

/// The given targets of the examples of a part, `[B][K]`.
pub(super) fn dense_targets(part: &Part<'_>, classes: usize) -> Vec<Vec<f64>> {
    let row = |row: usize| {
        let mut targets = vec![0.0; classes];
        given(&part.batch.targets, row).iter().for_each(|(class, own)| targets[*class] += own);
        targets
    };
    (0..part.weights.len()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::device;

    #[test]
    fn inputs_and_targets_are_mixed_by_the_same_shares() {
        let mix = Mix { partners: vec![1, 2, 0], shares: vec![0.75, 1.0, 0.5] };
        let data = TensorData::new(vec![1.0f32, 10.0, 2.0, 20.0, 4.0, 40.0], [3, 2]);
        let inputs = Tensor::<2>::from_data(data, &device());
        assert_eq!(floats(mix.inputs(&inputs)), [1.25, 12.5, 2.0, 20.0, 2.5, 25.0]);
        let targets = [vec![1.0, 0.0], vec![0.0, 1.0], vec![0.0, 2.0]];
        let expected = [vec![0.75, 0.25], vec![0.0, 1.0], vec![0.5, 1.0]];
        assert_eq!(mix.targets(&targets), expected);
    }
}
