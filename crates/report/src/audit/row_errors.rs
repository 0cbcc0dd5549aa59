//! Which entries of a row are wrong, where the entries of a row depend on each other.
//!
//! An error makes the right entries around it improbable too, and two errors may fit together: a
//! wrong class in place of the right one is one label too many and one too few. So the truths that
//! a row may have are weighed against each other: the labels as they are, those with one entry
//! changed, and those with two. With l_k, the log-odds that the label of class k is wrong where all
//! others are right, o_k of them the odds of a mistake, and the ties B of the classes, they weigh
//!
//! 1,  e^{l_k},  (1 + s / (n o_j o_k)) e^{l_j + l_k ± B_jk},
//!
//! where s is the share of rows with a *swap*, a class that is on in place of another, n is the
//! number of swaps that a row can have, and the part with s is 0 for two entries of one kind.

/// Of each kind, on or off, the entries that may be wrong together with another: those that are
/// most likely wrong.
const CANDIDATES: usize = 16;
/// The share of swaps to begin with, its largest, and when the search for it ends.
const START: f64 = 0.03;
const MOST: f64 = 0.4;
const PASSES: usize = 200;
const TOLERANCE: f64 = 1e-4;
/// Rows with a swap that are counted before any is seen, and rows that they are counted among.
const PRIOR: (f64, f64) = (0.5, 1.0);

/// How often a class is labelled on in place of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowErrors {
    /// s.
    swaps: f64,
}

/// The labels of one row.
pub(super) struct LabelledRow<'a> {
    /// l_k of each class.
    pub log_odds: &'a [f64],
    /// Whether each class is labelled on.
    pub is_on: &'a [bool],
    /// log o of a label that is off, and of one that is on.
    pub log_mistakes: [f64; 2],
}

/// The truths that a row may have, with weights over the largest of them.
struct Alternatives {
    /// No error.
    none: f64,
    /// One, of each class.
    single: Vec<f64>,
    /// Two: the classes, the weight of two mistakes, and that of a swap for s = 1.
    double: Vec<([usize; 2], f64, f64)>,
}

impl RowErrors {
    /// The share of swaps with the largest likelihood, from what [`LabelledRow::swap_odds`] says
    /// of every row.
    pub fn learn(swap_odds: &[f64]) -> Self {
        let mut swaps = START;
        for _ in 0..PASSES {
            let found: f64 = swap_odds.iter().map(|odds| share(swaps * odds)).sum();
            let next = ((found + PRIOR.0) / (swap_odds.len() as f64 + PRIOR.1)).min(MOST);
            let change = (next - swaps).abs();
            swaps = next;
            if change <= TOLERANCE * swaps {
                break;
            }
        }
        Self { swaps }
    }

    /// How probable each entry of a row is to be wrong; `tie` is B of two classes.
    pub fn scores(&self, row: &LabelledRow, tie: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let Alternatives { none, single, double } = row.alternatives(tie);
        let weight = |mistakes: f64, swap: f64| mistakes + self.swaps * swap;
        let pairs: f64 = double.iter().map(|(_, mistakes, swap)| weight(*mistakes, *swap)).sum();
        let total = none + single.iter().sum::<f64>() + pairs;
        let mut scores = single;
        for (classes, mistakes, swap) in double {
            classes.into_iter().for_each(|class| scores[class] += weight(mistakes, swap));
        }
        // Rounding must not make it more than certain.
        scores.iter_mut().for_each(|score| *score = (*score / total).min(1.0));
        scores
    }
}

/// odds/(1 + odds), also where they are infinite.
fn share(odds: f64) -> f64 {
    1.0 / (1.0 + odds.recip())
}

impl LabelledRow<'_> {
    /// The odds of a swap in this row against all else, for s = 1.
    pub fn swap_odds(&self, tie: impl Fn(usize, usize) -> f64) -> f64 {
        let Alternatives { none, single, double } = self.alternatives(tie);
        let mistakes: f64 = double.iter().map(|(_, mistakes, _)| mistakes).sum();
        let swaps: f64 = double.iter().map(|(_, _, swap)| swap).sum();
        swaps / (none + single.iter().sum::<f64>() + mistakes).max(f64::MIN_POSITIVE)
    }

    fn alternatives(&self, tie: impl Fn(usize, usize) -> f64) -> Alternatives {
        let on = self.is_on.iter().filter(|on| **on).count();
        let possible = (on * (self.is_on.len() - on)).max(1) as f64;
        let log_swap = -possible.ln() - self.log_mistakes.iter().sum::<f64>();
        let candidates = self.candidates();
        let mut double = vec![];
        for (at, first) in candidates.iter().copied().enumerate() {
            for second in candidates[at + 1..].iter().copied() {
                let is_swap = self.is_on[first] != self.is_on[second];
                let sign = if is_swap { -1.0 } else { 1.0 };
                let log = self.log_odds[first] + self.log_odds[second] + sign * tie(first, second);
                let swap = if is_swap { log + log_swap } else { f64::NEG_INFINITY };
                double.push(([first, second], log, swap));
            }
        }
        let pairs = double.iter().flat_map(|(_, mistakes, swap)| [*mistakes, *swap]);
        let most = self.log_odds.iter().copied().chain(pairs).fold(0.0, f64::max);
        let weight = |log: f64| (log - most).exp();
        Alternatives {
            none: weight(0.0),
            single: self.log_odds.iter().map(|log| weight(*log)).collect(),
            double: double
                .into_iter()
                .map(|(classes, mistakes, swap)| (classes, weight(mistakes), weight(swap)))
                .collect(),
        }
    }

    /// The entries of which two may be wrong, ascending.
    fn candidates(&self) -> Vec<usize> {
        let mut found = vec![];
        for kind in [false, true] {
            let mut of_kind: Vec<usize> =
                (0..self.is_on.len()).filter(|class| self.is_on[*class] == kind).collect();
            of_kind.sort_by(|a, b| self.log_odds[*b].total_cmp(&self.log_odds[*a]).then(a.cmp(b)));
            found.extend(of_kind.into_iter().take(CANDIDATES));
        }
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(log_odds: &'a [f64], is_on: &'a [bool]) -> LabelledRow<'a> {
        LabelledRow { log_odds, is_on, log_mistakes: [0.01f64.ln(); 2] }
    }

    #[test]
    fn scores_are_those_of_all_truths_with_up_to_two_errors() {
        let (log_odds, is_on) = ([-1.0, 0.5, -2.0], [true, false, false]);
        let tie = |a: usize, b: usize| if a + b == 1 { 0.7 } else { 0.0 };
        let errors = RowErrors { swaps: 0.05 };
        let found = errors.scores(&row(&log_odds, &is_on), tie);
        // By hand: 1; three of one error; (0, 1) and (0, 2) may be swaps, (1, 2) may not.
        let one: Vec<f64> = log_odds.iter().map(|log| f64::exp(*log)).collect();
        let swap = 1.0 + 0.05 / (2.0 * 0.01 * 0.01);
        let two =
            [swap * f64::exp(-1.0 + 0.5 - 0.7), swap * f64::exp(-1.0 - 2.0), f64::exp(0.5 - 2.0)];
        let total = 1.0 + one.iter().sum::<f64>() + two.iter().sum::<f64>();
        let expected =
            [one[0] + two[0] + two[1], one[1] + two[0] + two[2], one[2] + two[1] + two[2]];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected / total).abs() < 1e-12, "{found} for {}", expected / total);
        }
    }

    #[test]
    fn extreme_odds_stay_probabilities() {
        let errors = RowErrors::learn(&[0.0, f64::INFINITY, 1e300]);
        for log_odds in [[1e6, 1e6, -1e6], [-1e6, -1e6, -1e6], [800.0, -800.0, 0.0]] {
            let scores = errors.scores(&row(&log_odds, &[true, false, true]), |_, _| 40.0);
            assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
        }
    }

    #[test]
    fn the_share_of_swaps_is_that_of_the_rows_that_show_one() {
        let odds: Vec<f64> = (0..400).map(|at| if at % 10 == 0 { 1e6 } else { 1e-6 }).collect();
        let found = RowErrors::learn(&odds).swaps;
        assert!((found - 0.1).abs() < 0.005, "{found}");
    }
}
