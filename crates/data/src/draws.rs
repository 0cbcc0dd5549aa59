//! Random words that are named, not generated: a hash of (seed, purpose, key…).

/// What a draw is for; no two purposes share a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Which examples are held out.
    HoldOut = 1,
    /// Whether a label is made wrong.
    Flip = 2,
    /// What it becomes.
    Wrong = 3,
    /// Which of several equally good classes.
    Tie = 4,
    /// Which annotation of an example an epoch uses.
    Annotation = 5,
    /// The order of an epoch.
    Order = 6,
    /// How an image is varied in an epoch.
    Augment = 7,
    /// How much of another example is mixed in.
    Mix = 8,
    /// The own noise of a class's utility.
    Utility = 9,
    /// The noise that two classes share.
    Factor = 10,
    /// The largest own noise of the classes that have nothing else.
    Largest = 11,
    /// The seed of the second view of an image.
    SecondView = 12,
    /// Which examples are used at all.
    Limit = 16,
}

/// The 64-bit word of this name.
pub(crate) fn word(seed: u64, purpose: Purpose, keys: &[u64]) -> u64 {
    let name = [seed, purpose as u64].into_iter().chain(keys.iter().copied());
    name.fold(0x243f_6a88_85a3_08d3, |state, word| mix(state ^ mix(word)))
}

/// A number in [0, 1) with 53 random bits.
pub(crate) fn unit(seed: u64, purpose: Purpose, keys: &[u64]) -> f64 {
    (word(seed, purpose, keys) >> 11) as f64 / (1u64 << 53) as f64
}

/// One of `0..count`, all equally likely (to one part in 2⁶⁴ / `count`).
pub(crate) fn below(count: usize, seed: u64, purpose: Purpose, keys: &[u64]) -> usize {
    ((u128::from(word(seed, purpose, keys)) * count as u128) >> 64) as usize
}

/// The output function of SplitMix64 after one Weyl step: a bijection with full avalanche.
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_name_changes_the_word() {
        let base = word(1, Purpose::Flip, &[2, 3]);
        let others = [
            word(2, Purpose::Flip, &[2, 3]),
            word(1, Purpose::Wrong, &[2, 3]),
            word(1, Purpose::Flip, &[3, 3]),
            word(1, Purpose::Flip, &[2, 4]),
            word(1, Purpose::Flip, &[3, 2]),
            word(1, Purpose::Flip, &[2]),
        ];
        assert!(others.iter().all(|other| *other != base), "{base} in {others:?}");
    }

    /// A change would change every split, corruption and order that was ever reported.
    #[test]
    fn words_never_change() {
        assert_eq!(word(1, Purpose::HoldOut, &[2]), 12_594_649_993_472_095_687);
    }

    #[test]
    fn below_is_uniform() {
        const DRAWS: u64 = 70_000;
        let mut counts = [0u64; 7];
        for key in 0..DRAWS {
            counts[below(7, 0, Purpose::Wrong, &[key])] += 1;
        }
        let expected = DRAWS as f64 / 7.0;
        let chi: f64 = counts.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
        // χ² with 6 degrees of freedom exceeds 30 once in 25,000.
        assert!(chi < 30.0, "{counts:?}");
    }
}
