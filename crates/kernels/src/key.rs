//! The name of a draw of noise: (seed, step, example, stream, block).
//!
//! There is no state. A block of draws is a pure function of its name, so its bits do not depend on
//! the number of threads or the order of the batch, and nothing must be saved to resume.

/// Names the noise of one training step or one evaluation.
///
/// ```
/// use aleator_kernels::{NoiseKey, Stream};
///
/// let key = NoiseKey { seed: 0, step: 7 };
/// assert_eq!(key.block_seed(3, Stream::Factor, 0), key.block_seed(3, Stream::Factor, 0));
/// assert_ne!(key.block_seed(3, Stream::Factor, 0), key.block_seed(3, Stream::Diagonal, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseKey {
    /// The seed of the run.
    pub seed: u64,
    /// The optimizer step, so that every step sees fresh noise.
    pub step: u64,
}

/// One stream for each random quantity, so that no two share a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// ε_K, one draw for each sample and class.
    Diagonal,
    /// ε_R, one draw for each sample and factor.
    Factor,
    /// The scrambling of a Sobol' sequence.
    Scramble,
    /// The weights that a layer starts from.
    Initial,
    /// What a training method draws.
    Method,
}

impl NoiseKey {
    /// Evaluation always uses the noise of this step, so that predictions are repeatable.
    pub const EVALUATION_STEP: u64 = u64::MAX;

    /// The 64-bit seed of one block of draws of one example.
    pub fn block_seed(&self, example: u64, stream: Stream, block: u64) -> u64 {
        [self.seed, self.step, example, stream as u64, block]
            .into_iter()
            .fold(0x243f_6a88_85a3_08d3, |state, word| mix(state ^ mix(word)))
    }
}

/// Weyl constant of SplitMix64: the golden ratio as a 64-bit odd fraction.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 after one Weyl step: a bijection with full avalanche.
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The SplitMix64 sequence from a seed. It seeds the vector generators, and suffices where only a
/// few words are needed.
///
/// ```
/// let words: Vec<u64> = aleator_kernels::split_mix(7).take(3).collect();
/// assert_eq!(words, aleator_kernels::split_mix(7).take(3).collect::<Vec<u64>>());
/// ```
pub fn split_mix(seed: u64) -> impl Iterator<Item = u64> {
    (0u64..).map(move |index| mix(seed.wrapping_add(index.wrapping_mul(GOLDEN))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_name_changes_the_seed() {
        let key = NoiseKey { seed: 1, step: 2 };
        let base = key.block_seed(3, Stream::Diagonal, 4);
        let others = [
            NoiseKey { seed: 2, step: 2 }.block_seed(3, Stream::Diagonal, 4),
            NoiseKey { seed: 1, step: 3 }.block_seed(3, Stream::Diagonal, 4),
            key.block_seed(4, Stream::Diagonal, 4),
            key.block_seed(3, Stream::Factor, 4),
            key.block_seed(3, Stream::Diagonal, 5),
            NoiseKey { seed: 2, step: 1 }.block_seed(3, Stream::Diagonal, 4),
        ];
        assert!(others.iter().all(|other| *other != base), "{base} in {others:?}");
    }
}
