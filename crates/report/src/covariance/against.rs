//! A run compared with another that has no noise model: does the noise explain the other's
//! mistakes?

use std::collections::BTreeMap;

use aleator_run::{ExampleRow, Field, RunDir};
use serde::Serialize;

use super::open::{Covariances, largest, open_split, truth};
use super::ties::ClassRow;
use super::{Measure, Observer, Tie};
use crate::error::ReportError;
use crate::task::class_difference;

/// Two runs on the same examples.
///
/// The first run has a noise model; `cases` lists the mistakes of the other that it avoids.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Examples with a label to judge by.
    pub examples: usize,
    /// Both are right.
    pub both_right: usize,
    /// Only the first is right: the number of `cases`.
    pub first_right: usize,
    /// Only the other one is right.
    pub other_right: usize,
    /// Neither is.
    pub both_wrong: usize,
    /// The examples where only the first is right, by absolute covariance, the largest first.
    pub cases: Vec<Case>,
    /// The ranks of the other's wrong classes by absolute covariance with the right class.
    pub ranks: Ranks,
}

/// An example where the first run is right and the other is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The row of the example in the split.
    pub row: usize,
    /// What the first run predicts, which is right.
    pub predicted: usize,
    /// What the other predicts, with its covariance to `predicted`.
    pub other: Tie,
    /// The place of the other's class among all classes but `predicted`; 1 if no class has a
    /// larger absolute covariance.
    pub rank: usize,
}

/// How often a class had each rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// `counts[r]` classes had rank r + 1; K − 1 of them.
    pub counts: Vec<usize>,
}

impl Ranks {
    /// The number of cases.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The share with rank `rank` or better.
    pub fn share_within(&self, rank: usize) -> Option<f64> {
        let within: usize = self.counts.iter().take(rank).sum();
        let total = self.total();
        (total > 0).then(|| within as f64 / total as f64)
    }

    /// The lowest rank that at least half of the cases reach.
    pub fn median(&self) -> Option<usize> {
        let total = self.total();
        let mut within = 0;
        let reached = |count: &usize| {
            within += count;
            total > 0 && 2 * within >= total
        };
        self.counts.iter().position(reached).map(|at| at + 1)
    }

    /// Counts in at most `bins` equal ranges of ranks: (first rank, last rank, count).
    pub fn histogram(&self, bins: usize) -> Vec<(usize, usize, usize)> {
        let width = self.counts.len().div_ceil(bins.max(1)).max(1);
        let bin = |(at, counts): (usize, &[usize])| {
            (at * width + 1, at * width + counts.len(), counts.iter().sum())
        };
        self.counts.chunks(width).enumerate().map(bin).collect()
    }
}

impl Covariances {
    /// Compares this run with another one, on the examples of the split.
    ///
    /// A prediction is right if it is in the example's true label, or in its given label if the
    /// true one is unknown. `predicted` comes from [`predicted`](Self::predicted).
    pub fn against(
        &mut self,
        predicted: &[usize],
        other: &RunDir,
        measure: Measure,
        observer: Observer,
    ) -> Result<Comparison, ReportError> {
        let first = self.dir.clone();
        let differ = |reason| ReportError::different(&first, other, "compared with", reason);
        if !self.has_factors() {
            return Err(differ(
                "its noise is \"diagonal\", so that no two classes share any; train with \
                 head.noise = \"full\" or \"shared\""
                    .to_string(),
            ));
        }
        if let Some(reason) = class_difference(&self.class_names, &other.info().class_names) {
            return Err(differ(reason));
        }
        let mut reader = open_split(other, self.split())?;
        let places = same_examples(self.examples(), &reader.examples).map_err(differ)?;
        let theirs = largest(&mut reader, Field::LogProbs, observer)?;
        let others: Vec<usize> = places.into_iter().map(|place| theirs[place]).collect();
        let (mut comparison, rows) = self.judge(predicted, &others);
        let find = |row: usize, of: &ClassRow| Case {
            row,
            predicted: predicted[row],
            other: of.tie(others[row]),
            rank: of.rank(others[row], measure),
        };
        let cases = &mut comparison.cases;
        self.map_rows(&rows, &find, observer, &mut |case| {
            cases.push(case);
            Ok(())
        })?;
        let size = |case: &Case| case.other.value(measure).abs();
        cases.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.row.cmp(&b.row)));
        for case in cases {
            comparison.ranks.counts[case.rank - 1] += 1;
        }
        Ok(comparison)
    }

    /// Counts who is right, and lists the examples where only the first is, with their class.
    fn judge(&self, predicted: &[usize], others: &[usize]) -> (Comparison, Vec<(usize, usize)>) {
        let mut comparison = Comparison {
            examples: 0,
            both_right: 0,
            first_right: 0,
            other_right: 0,
            both_wrong: 0,
            cases: vec![],
            ranks: Ranks { counts: vec![0; self.classes() - 1] },
        };
        let mut rows = vec![];
        for (row, example) in self.examples().iter().enumerate() {
            let Some(truth) = truth(example) else { continue };
            let right = |class: usize| truth.iter().any(|label| *label as usize == class);
            comparison.examples += 1;
            match (right(predicted[row]), right(others[row])) {
                (true, true) => comparison.both_right += 1,
                (true, false) => {
                    comparison.first_right += 1;
                    rows.push((row, predicted[row]));
                }
                (false, true) => comparison.other_right += 1,
                (false, false) => comparison.both_wrong += 1,
            }
        }
        (comparison, rows)
    }
}

/// For each of our examples, its position in theirs.
fn same_examples(ours: &[ExampleRow], theirs: &[ExampleRow]) -> Result<Vec<usize>, String> {
    let only_in = |id: &str, which: &str| {
        format!(
            "they are not of the same examples: {id:?} is in the {which} only; train both with the \
             same data and splits"
        )
    };
    let mut places = BTreeMap::new();
    for (place, row) in theirs.iter().enumerate() {
        if places.insert(row.id.as_str(), place).is_some() {
            return Err(format!("example {:?} occurs twice in the second", row.id));
        }
    }
    let mut found = Vec::with_capacity(ours.len());
    for row in ours {
        let place = places.remove(row.id.as_str()).ok_or_else(|| only_in(&row.id, "first"))?;
        if truth(row) != truth(&theirs[place]) {
            return Err(format!("example {:?} has another label there", row.id));
        }
        found.push(place);
    }
    places.keys().next().map_or(Ok(found), |id| Err(only_in(id, "second")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_summed_up() {
        let ranks = Ranks { counts: vec![5, 0, 3, 1, 1] };
        assert_eq!((ranks.total(), ranks.median()), (10, Some(1)));
        assert_eq!(ranks.share_within(3), Some(0.8));
        assert_eq!(ranks.histogram(2), [(1, 3, 8), (4, 5, 2)]);
        assert_eq!(ranks.histogram(50).len(), 5);
        let none = Ranks { counts: vec![0; 3] };
        assert_eq!((none.median(), none.share_within(1)), (None, None));
        assert!(Ranks { counts: vec![] }.histogram(3).is_empty());
    }
}
