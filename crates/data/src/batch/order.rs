//! The order of examples in training: a permutation for each epoch that is computed, not stored.

use std::ops::Range;

use crate::draws::{self, Purpose};

/// Which examples each step of training sees, and each part of a step.
///
/// ```
/// use aleator_data::Order;
///
/// let order = Order { examples: 103, batch: 10, part: 10, seed: 0 };
/// assert_eq!(order.steps_per_epoch(), 11);
/// let mut seen: Vec<usize> = (11..22).flat_map(|step| order.examples_of(step)).collect();
/// seen.sort_unstable();
/// assert_eq!(seen, (0..103).collect::<Vec<_>>());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Examples of the split; at least 1.
    pub examples: usize,
    /// At most this many examples in a batch; at least 1.
    pub batch: usize,
    /// At most this many of them in a part of it; at least 1.
    pub part: usize,
    /// Another seed, another order.
    pub seed: u64,
}

impl Order {
    /// Steps of one pass over the examples.
    ///
    /// # Panics
    /// When there are no examples or batches are empty.
    pub fn steps_per_epoch(&self) -> usize {
        assert!(self.examples > 0 && self.batch > 0, "{self:?} has no steps");
        self.examples.div_ceil(self.batch)
    }

    /// The pass over the examples that a step belongs to.
    pub fn epoch(&self, step: usize) -> usize {
        step / self.steps_per_epoch()
    }

    /// The examples of one step. Steps of an epoch differ by at most one in size, so that no
    /// small last batch has a noisy gradient of full weight.
    pub fn examples_of(&self, step: usize) -> impl Iterator<Item = usize> + use<> {
        let permutation = Permutation::new(self.examples, self.seed, self.epoch(step));
        self.positions(step).map(move |position| permutation.at(position))
    }

    /// Parts of every step: consecutive, almost equal in size, none of them empty.
    pub fn parts(&self) -> usize {
        let steps = self.steps_per_epoch();
        let (least, most) = (self.examples / steps, self.examples.div_ceil(steps));
        most.div_ceil(self.part).min(least)
    }

    /// Which of a step's examples are those of a part.
    pub fn rows_of(&self, step: usize, part: usize) -> Range<usize> {
        let (size, parts) = (self.positions(step).len(), self.parts());
        part * size / parts..(part + 1) * size / parts
    }

    fn positions(&self, step: usize) -> Range<usize> {
        let steps = self.steps_per_epoch();
        let within = step % steps;
        let bound = |step: usize| (step as u128 * self.examples as u128 / steps as u128) as usize;
        bound(within)..bound(within + 1)
    }
}

/// Enough for every bit to depend on every other in domains of a few bits.
const ROUNDS: usize = 8;

/// A Feistel network on the smallest domain of 4ʷ numbers that holds all examples; what falls
/// outside of them is sent through again until it falls inside (cycle walking).
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    fn new(count: usize, seed: u64, epoch: usize) -> Self {
        let bits = u64::BITS - (count as u64).saturating_sub(1).leading_zeros();
        let key = |round| draws::word(seed, Purpose::Order, &[epoch as u64, round as u64]);
        Self {
            count: count as u64,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(key),
        }
    }

    fn at(&self, position: usize) -> usize {
        let mut value = position as u64;
        loop {
            value = self.encrypt(value);
            if value < self.count {
                return value as usize;
            }
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let halves = (value >> self.half_bits, value & mask);
        let (left, right) = self
            .keys
            .iter()
            .fold(halves, |(left, right), key| (right, left ^ (draws::mix(key ^ right) & mask)));
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_is_a_permutation() {
        let counts = [1, 2, 3, 4, 5, 7, 16, 17, 64, 97, 255, 256, 257, 1_009, 4_096, 10_007];
        for count in counts {
            for epoch in 0..5 {
                let permutation = Permutation::new(count, 3, epoch);
                let mut seen: Vec<usize> = (0..count).map(|at| permutation.at(at)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..count), "{count} examples, epoch {epoch}");
            }
        }
    }

    /// Where an example comes in an epoch is uniform, for domains from one bit upwards.
    #[test]
    fn every_example_comes_anywhere_equally_often() {
        const EPOCHS: usize = 20_000;
        for count in [2, 3, 5, 10, 16, 23] {
            let mut counts = vec![0.0; count * count];
            for epoch in 0..EPOCHS {
                let permutation = Permutation::new(count, 0, epoch);
                (0..count).for_each(|at| counts[at * count + permutation.at(at)] += 1.0);
            }
            let expected = EPOCHS as f64 / count as f64;
            let chi: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
            // χ² has (n − 1)² degrees of freedom f; five standard deviations √(2f), and some for
            // the tail of few degrees.
            let freedom = ((count - 1) * (count - 1)) as f64;
            let bound = freedom + 5.0 * (2.0 * freedom).sqrt() + 10.0;
            assert!(chi < bound, "{count} examples: χ² = {chi:.1} of at most {bound:.1}");
        }
    }

    /// Neighbours of one epoch are not neighbours of the next more often than by chance.
    #[test]
    fn epochs_are_independent() {
        const COUNT: usize = 100;
        const EPOCHS: usize = 2_000;
        let mut apart_by_one = 0;
        for epoch in 0..EPOCHS {
            let order = Permutation::new(COUNT, 1, epoch);
            let pairs = (0..COUNT - 1).map(|at| (order.at(at), order.at(at + 1)));
            apart_by_one += pairs.filter(|(a, b)| a.abs_diff(*b) == 1).count();
        }
        // 2 (n − 1) of n (n − 1) ordered pairs, n − 1 of them in each epoch.
        let expected = (EPOCHS * 2 * (COUNT - 1)) as f64 / COUNT as f64;
        let error = 5.0 * expected.sqrt();
        assert!((apart_by_one as f64 - expected).abs() < error, "{apart_by_one} of {expected}");
    }

    #[test]
    fn batches_of_an_epoch_differ_by_one_example_at_most() {
        for (examples, batch) in [(1, 10), (10, 10), (11, 10), (1_797, 100), (7, 2), (5, 1)] {
            let order = Order { examples, batch, part: batch, seed: 0 };
            let sizes: Vec<usize> =
                (0..order.steps_per_epoch()).map(|step| order.examples_of(step).count()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(most - least <= 1 && *most <= batch, "{examples} by {batch}: {sizes:?}");
            assert_eq!(sizes.iter().sum::<usize>(), examples);
        }
    }

    #[test]
    fn parts_are_a_step_in_pieces_of_almost_equal_size() {
        for (examples, batch, part) in [(100, 32, 8), (65, 64, 32), (5, 4, 1), (3, 9, 2), (7, 7, 7)]
        {
            let order = Order { examples, batch, part, seed: 0 };
            for step in 0..order.steps_per_epoch() {
                let rows: Vec<_> =
                    (0..order.parts()).map(|part| order.rows_of(step, part)).collect();
                let size = order.examples_of(step).count();
                assert!(rows.iter().cloned().flatten().eq(0..size), "{order:?}: {rows:?}");
                let sizes: Vec<usize> = rows.iter().map(|rows| rows.len()).collect();
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                assert!(*least > 0 && most - least <= 1, "{order:?}: {rows:?}");
            }
        }
    }

    #[test]
    fn seed_and_epoch_change_the_order() {
        let order = |seed, step| -> Vec<usize> {
            Order { examples: 50, batch: 50, part: 50, seed }.examples_of(step).collect()
        };
        assert_eq!(order(0, 3), order(0, 3));
        assert_ne!(order(0, 3), order(0, 4));
        assert_ne!(order(0, 3), order(1, 3));
    }
}
