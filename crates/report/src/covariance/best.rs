//! The largest of many, in little memory.

use std::cmp::Ordering;

/// The values of the largest magnitudes; of equal ones, those of smaller keys.
///
/// What is kept does not depend on the order in which values are offered.
///
/// ```
/// use aleator_report::covariance::Best;
///
/// let mut best = Best::new(2);
/// for (magnitude, key, value) in [(1.0, 5, "c"), (3.0, 7, "a"), (3.0, 8, "b")] {
///     best.offer(magnitude, key, value);
/// }
/// assert_eq!(best.into_sorted(), [(3.0, 7, "a"), (3.0, 8, "b")]);
/// ```
#[derive(Clone, Debug)]
pub struct Best<K, V> {
    limit: usize,
    /// Smaller magnitudes are not kept; most offers end here.
    floor: f64,
    /// The largest so far, unordered, and at most half as many that came after them.
    kept: Vec<(f64, K, V)>,
}

impl<K: Ord, V> Best<K, V> {
    /// Keeps at most `limit`.
    pub fn new(limit: usize) -> Self {
        let floor = if limit == 0 { f64::INFINITY } else { f64::NEG_INFINITY };
        Self { limit, floor, kept: vec![] }
    }

    /// Keeps the value if it is among the largest.
    #[inline]
    pub fn offer(&mut self, magnitude: f64, key: K, value: V) {
        if magnitude >= self.floor {
            self.kept.push((magnitude, key, value));
            if self.kept.len() > self.limit + self.limit / 2 {
                self.drop_smallest();
            }
        }
    }

    fn drop_smallest(&mut self) {
        if self.limit > 0 && self.kept.len() > self.limit {
            let (_, smallest, _) = self.kept.select_nth_unstable_by(self.limit - 1, largest_first);
            self.floor = smallest.0;
        }
        self.kept.truncate(self.limit);
    }

    /// Keeps the largest of both.
    pub fn merge(&mut self, other: Self) {
        other
            .kept
            .into_iter()
            .for_each(|(magnitude, key, value)| self.offer(magnitude, key, value));
    }

    /// The largest first: magnitude, key and value.
    pub fn into_sorted(mut self) -> Vec<(f64, K, V)> {
        self.drop_smallest();
        self.kept.sort_unstable_by(largest_first);
        self.kept
    }
}

fn largest_first<K: Ord, V>(a: &(f64, K, V), b: &(f64, K, V)) -> Ordering {
    b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_offers_does_not_matter() {
        let all = [(2.0, 5), (1.0, 0), (2.0, 3), (4.0, 9), (2.0, 4)];
        for turn in 0..all.len() {
            let (mut first, mut second) = (Best::new(3), Best::new(3));
            for at in 0..all.len() {
                let (magnitude, key) = all[(at + turn) % all.len()];
                let half = if at < 2 { &mut first } else { &mut second };
                half.offer(magnitude, key, ());
            }
            first.merge(second);
            assert_eq!(first.into_sorted(), [(4.0, 9, ()), (2.0, 3, ()), (2.0, 4, ())]);
        }
    }

    #[test]
    fn none_are_kept_where_none_are_wanted() {
        let mut best = Best::new(0);
        best.offer(1.0, 1, ());
        assert!(best.into_sorted().is_empty());
    }
}
