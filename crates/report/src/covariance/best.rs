//! The largest of many, in little memory.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The items of the largest magnitudes; of equal ones, those that are smaller.
///
/// What is kept does not depend on the order in which items are offered.
///
/// ```
/// use aleator_report::covariance::Best;
///
/// let mut best = Best::new(2);
/// for (magnitude, item) in [(1.0, "c"), (3.0, "a"), (3.0, "b")] {
///     best.offer(magnitude, item);
/// }
/// assert_eq!(best.into_sorted(), ["a", "b"]);
/// ```
#[derive(Clone, Debug)]
pub struct Best<T: Ord> {
    limit: usize,
    /// Smaller magnitudes are not kept; most offers end here.
    floor: f64,
    heap: BinaryHeap<Reverse<Candidate<T>>>,
}

/// An item of [`Best`] whose key alone decides between equal magnitudes.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<K, V> {
    /// What orders it.
    pub key: K,
    /// What goes along.
    pub value: V,
}

#[derive(Clone, Debug)]
struct Candidate<T> {
    magnitude: f64,
    item: T,
}

impl<T: Ord> Best<T> {
    /// Keeps at most `limit`.
    pub fn new(limit: usize) -> Self {
        let floor = if limit == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self { limit, floor, heap: BinaryHeap::new() }
    }

    /// Keeps the item if it is among the largest.
    #[inline]
    pub fn offer(&mut self, magnitude: f64, item: T) {
        if magnitude >= self.floor {
            self.keep(Candidate { magnitude, item });
        }
    }

    fn keep(&mut self, candidate: Candidate<T>) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(candidate));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && candidate > worst.0
        {
            *worst = Reverse(candidate);
        }
        if self.heap.len() == self.limit
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.floor = worst.magnitude;
        }
    }

    /// Keeps the largest of both.
    pub fn merge(&mut self, other: Self) {
        for Reverse(candidate) in other.heap {
            self.offer(candidate.magnitude, candidate.item);
        }
    }

    /// The largest first.
    pub fn into_sorted(self) -> Vec<T> {
        self.into_ranked().into_iter().map(|(_, item)| item).collect()
    }

    /// The largest first, each with its magnitude.
    pub fn into_ranked(self) -> Vec<(f64, T)> {
        let pair = |Reverse(Candidate { magnitude, item })| (magnitude, item);
        self.heap.into_sorted_vec().into_iter().map(pair).collect()
    }
}

impl<T: Ord> Ord for Candidate<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.magnitude.total_cmp(&other.magnitude).then_with(|| other.item.cmp(&self.item))
    }
}

impl<T: Ord> PartialOrd for Candidate<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Candidate<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Candidate<T> {}

impl<K: Ord, V> Ord for Ranked<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord, V> PartialOrd for Ranked<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, V> PartialEq for Ranked<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<K: Ord, V> Eq for Ranked<K, V> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_offers_does_not_matter() {
        let all = [(2.0, 5), (1.0, 0), (2.0, 3), (4.0, 9), (2.0, 4)];
        for turn in 0..all.len() {
            let (mut first, mut second) = (Best::new(3), Best::new(3));
            for at in 0..all.len() {
                let (magnitude, item) = all[(at + turn) % all.len()];
                let half = if at < 2 { &mut first } else { &mut second };
                half.offer(magnitude, item);
            }
            first.merge(second);
            assert_eq!(first.into_sorted(), [9, 3, 4]);
        }
    }

    #[test]
    fn none_are_kept_where_none_are_wanted() {
        let mut best = Best::new(0);
        best.offer(1.0, 1);
        assert!(best.into_sorted().is_empty());
    }
}
