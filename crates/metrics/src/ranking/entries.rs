//! Average precision of (example, class) pairs that come batch by batch.

use super::score_bins::{Bounded, ScoreBins};
use crate::classification::multilabel;

/// log p of pairs and whether the class is positive: held one by one as long as they are few, then
/// counted in bins.
#[derive(Clone, Debug)]
pub(crate) struct EntryRanking {
    classes: usize,
    entries: Entries,
}

#[derive(Clone, Debug)]
enum Entries {
    /// `[N, K]` each.
    Held {
        log_on: Vec<f32>,
        multi_hot: Vec<bool>,
    },
    Counted {
        all: ScoreBins<u64>,
        of_classes: ScoreBins<u32>,
    },
}

/// Up to this many pairs are ranked exactly.
const EXACT_PAIRS: usize = 1 << 24;

/// Bits of the bins of all pairs. An exponent of their scores takes at most 2 MiB.
const BITS: u32 = 17;

/// The bins of all classes have at most this many counts in all for an exponent of their scores.
const CLASS_BINS: usize = 1 << 22;

impl EntryRanking {
    pub fn new(classes: usize) -> Self {
        Self { classes, entries: Entries::Held { log_on: vec![], multi_hot: vec![] } }
    }

    /// Adds rows, `[n, K]`.
    pub fn add(&mut self, log_on: &[f32], multi_hot: &[bool]) {
        self.add_within(EXACT_PAIRS, log_on, multi_hot);
    }

    fn add_within(&mut self, most: usize, new_on: &[f32], new_hot: &[bool]) {
        if let Entries::Held { log_on, multi_hot } = &mut self.entries {
            if log_on.len() + new_on.len() <= most {
                log_on.extend_from_slice(new_on);
                multi_hot.extend_from_slice(new_hot);
                return;
            }
            let held = (std::mem::take(log_on), std::mem::take(multi_hot));
            let bits = (CLASS_BINS / self.classes).max(8).ilog2().min(BITS);
            let of_classes = ScoreBins::new(bits, self.classes);
            self.entries = Entries::Counted { all: ScoreBins::new(BITS, 1), of_classes };
            self.count(&held.0, &held.1);
        }
        self.count(new_on, new_hot);
    }

    fn count(&mut self, log_on: &[f32], multi_hot: &[bool]) {
        let Entries::Counted { all, of_classes } = &mut self.entries else { return };
        // The bins of one class after the other, which stay in the cache meanwhile.
        for class in 0..self.classes {
            let column = log_on.iter().zip(multi_hot).skip(class).step_by(self.classes);
            for (log_p, is_on) in column {
                of_classes.add(class, *log_p, *is_on);
                all.add(0, *log_p, *is_on);
            }
        }
    }

    /// gAP, and the average precision of each class, `[K]`; `None` without positive labels.
    pub fn finish(self) -> (Option<Bounded>, Vec<Option<Bounded>>) {
        match self.entries {
            Entries::Held { log_on, multi_hot } => {
                let exact = |value| Bounded { value, error: 0.0 };
                let of_classes =
                    multilabel::class_average_precision(&log_on, self.classes, &multi_hot);
                (
                    multilabel::global_average_precision(&log_on, &multi_hot).map(exact),
                    of_classes.into_iter().map(|value| value.map(exact)).collect(),
                )
            }
            Entries::Counted { all, of_classes } => (
                all.average_precision(0),
                (0..self.classes).map(|class| of_classes.average_precision(class)).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_beyond_the_limit_are_counted_and_stay_within_their_error() {
        const CLASSES: usize = 3;
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let (mut exact, mut counted) = (EntryRanking::new(CLASSES), EntryRanking::new(CLASSES));
        for _ in 0..50 {
            let hot: Vec<bool> = (0..10 * CLASSES).map(|_| draw(4) == 0).collect();
            let logit = |is_on: &bool| draw(1000) as f32 / 100.0 - if *is_on { 4.0 } else { 6.0 };
            let log_on: Vec<f32> =
                hot.iter().map(logit).map(|logit| -(-logit).exp().ln_1p()).collect();
            exact.add(&log_on, &hot);
            counted.add_within(100, &log_on, &hot);
        }
        let ((gap, classes), (near, near_classes)) = (exact.finish(), counted.finish());
        let each = |all: Option<Bounded>, of: Vec<Option<Bounded>>| {
            let mut both: Vec<Bounded> = of.into_iter().flatten().collect();
            both.extend(all);
            both
        };
        let (exact, near) = (each(gap, classes), each(near, near_classes));
        assert_eq!((exact.len(), near.len()), (CLASSES + 1, CLASSES + 1));
        for (exact, near) in exact.iter().zip(&near) {
            assert_eq!(exact.error, 0.0);
            assert!((exact.value - near.value).abs() <= near.error, "{exact:?}, {near:?}");
            assert!(near.error > 0.0 && near.error < 0.02, "{near:?}");
        }
    }
}
