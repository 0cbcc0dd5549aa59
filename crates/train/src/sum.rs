//! Sums over the parts of a step, in an order that does not depend on who computed which part.
//!
//! The parts are the leaves of a binary tree: part 2n is added to part 2n + 1, pairs to pairs,
//! and so on. A process with consecutive parts can sum the whole subtrees among them; the rest is
//! summed where all blocks come together, to the same bits.

use aleator_model::BatchStatistics;
use aleator_model::params::Values;
use rayon::prelude::*;

/// What can be summed.
pub(crate) trait Summand {
    /// Adds what comes after it.
    fn add(&mut self, next: Self);
}

/// A whole subtree: some consecutive parts, summed.
#[derive(Clone, Debug)]
pub(crate) struct Block<T> {
    first: usize,
    parts: usize,
    sum: T,
}

impl<T> Block<T> {
    /// A leaf.
    pub fn part(part: usize, value: T) -> Self {
        Self { first: part, parts: 1, sum: value }
    }
}

/// Blocks in the order of their parts; those that make a larger subtree are one.
#[derive(Debug)]
pub(crate) struct TreeSum<T> {
    /// The subtrees that could not be joined yet.
    pub blocks: Vec<Block<T>>,
}

impl<T> Default for TreeSum<T> {
    fn default() -> Self {
        Self { blocks: vec![] }
    }
}

impl<T: Summand> TreeSum<T> {
    /// Adds the block that follows.
    pub fn add(&mut self, mut block: Block<T>) {
        while let Some(last) = self.blocks.pop_if(|last| {
            let siblings = last.parts == block.parts && last.first % (2 * last.parts) == 0;
            siblings && last.first + last.parts == block.first
        }) {
            block = join(last, block);
        }
        self.blocks.push(block);
    }

    /// The sum of all parts; where their number is no power of two, the right side of the tree
    /// lacks leaves. None when there are no parts.
    pub fn finish(self) -> Option<T> {
        let from_the_right = self.blocks.into_iter().rev();
        from_the_right.reduce(|right, left| join(left, right)).map(|block| block.sum)
    }
}

fn join<T: Summand>(mut left: Block<T>, right: Block<T>) -> Block<T> {
    left.sum.add(right.sum);
    Block { first: left.first, parts: left.parts + right.parts, sum: left.sum }
}

/// Below this many numbers a second thread costs more than it gives.
pub(crate) const CHUNK: usize = 1 << 15;

/// Changes each number of `values` by that of `others`.
pub(crate) fn change_each(
    values: &mut Values,
    others: &Values,
    rule: impl Fn(&mut f32, f32) + Sync,
) {
    let others = others.read();
    values.change(|values| {
        let pairs = values.par_chunks_mut(CHUNK).zip(others.par_chunks(CHUNK));
        pairs.for_each(|(values, others)| {
            values.iter_mut().zip(others).for_each(|(value, other)| rule(value, *other));
        });
    });
}

impl Summand for Vec<Values> {
    fn add(&mut self, next: Self) {
        let pairs = self.iter_mut().zip(&next);
        pairs.for_each(|(sum, next)| change_each(sum, next, |sum, next| *sum += next));
    }
}

impl Summand for Vec<BatchStatistics> {
    fn add(&mut self, next: Self) {
        for (sum, next) in self.iter_mut().zip(next) {
            sum.mean.iter_mut().zip(next.mean).for_each(|(sum, value)| *sum += value);
            sum.variance.iter_mut().zip(next.variance).for_each(|(sum, value)| *sum += value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Summand for f32 {
        fn add(&mut self, next: Self) {
            *self += next;
        }
    }

    /// Numbers whose sum depends on the order.
    fn parts(count: usize) -> Vec<f32> {
        let words = aleator_kernels::split_mix(1).take(count);
        words.map(|word| (word >> 40) as f32 * 10f32.powi((word % 9) as i32)).collect()
    }

    fn tree(parts: &[f32], range: std::ops::Range<usize>) -> TreeSum<f32> {
        let mut sum = TreeSum::default();
        range.for_each(|part| sum.add(Block::part(part, parts[part])));
        sum
    }

    #[test]
    fn the_sum_does_not_depend_on_who_summed_which_parts() {
        for count in [1, 2, 3, 6, 7, 8, 12, 31, 64] {
            let parts = parts(count);
            let whole = tree(&parts, 0..count).finish().unwrap();
            for holders in 1..=count {
                let mut sum = TreeSum::default();
                for holder in 0..holders {
                    let own = holder * count / holders..(holder + 1) * count / holders;
                    tree(&parts, own).blocks.into_iter().for_each(|block| sum.add(block));
                }
                let found = sum.finish().unwrap();
                assert_eq!(found.to_bits(), whole.to_bits(), "{count} parts, {holders} holders");
            }
        }
    }

    #[test]
    fn four_parts_are_two_pairs_and_three_a_pair_and_one() {
        let tiny = 2f32.powi(-24);
        // From the left each would be lost against 1; in pairs the two add up first.
        assert_eq!(tree(&[1.0, 0.0, tiny, tiny], 0..4).finish(), Some(1.0 + 2.0 * tiny));
        assert_eq!(tree(&[tiny, tiny, 1.0], 0..3).finish(), Some(1.0 + 2.0 * tiny));
        assert_eq!(tree(&[], 0..0).finish(), None);
    }
}
