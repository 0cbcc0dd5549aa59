//! Mean, spread and significance of a column's values.

use aleator_metrics::significance::{TTest, mean, paired_t_test, pooled_t_test, sample_std};
use serde::Deserialize;

use super::measure::Direction;

/// Differences with a smaller p-value are significant, as in the paper.
pub const SIGNIFICANT: f64 = 0.05;

/// How a row is tested against the best one; all tests are two-tailed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// Unpaired with pooled variance (Student), as in the paper.
    Unpaired,
    /// Paired where the two rows have the same seeds, else unpaired.
    #[serde(rename = "paired")]
    PairedBySeed,
}

/// The values of one row in one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// One for each run; none is NaN.
    pub values: Vec<f64>,
    /// The seed of each run, ascending; `None` if runs have no seed of their own.
    pub seeds: Option<Vec<u64>>,
}

impl Values {
    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The summary of a row's values in one column, compared with the best row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The mean over the runs; may be infinite.
    pub mean: f64,
    /// The sample standard deviation; `None` for one run and for infinite values.
    pub std: Option<f64>,
    /// How many runs.
    pub runs: usize,
    /// Whether no other row of the column has a better mean.
    pub best: bool,
    /// The test against the best row; `None` for the best row and without enough values.
    pub against_best: Option<Against>,
}

/// A test against the best row of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Against {
    /// The two-tailed p-value.
    pub p_value: f64,
    /// Whether runs of the same seed were paired.
    pub paired: bool,
}

impl Score {
    /// The score of values that are not compared with others.
    pub fn alone(values: &[f64]) -> Option<Self> {
        let (mean, std) = (mean(values)?, sample_std(values));
        Some(Self { mean, std, runs: values.len(), best: false, against_best: None })
    }

    /// Whether the best row is significantly better: the row gets a †.
    pub fn is_significant(&self) -> bool {
        self.against_best.is_some_and(|against| against.p_value < SIGNIFICANT)
    }
}

/// The scores of a column's rows; `None` for a row without values.
///
/// ```
/// use aleator_report::compare::{Direction, Test, Values, scores};
///
/// let row = |values: &[f64]| Values { values: values.to_vec(), seeds: None };
/// let rows = [row(&[0.763, 0.767, 0.765]), row(&[0.793, 0.791, 0.794]), row(&[])];
/// let scores = scores(&rows, Direction::Higher, Test::Unpaired);
/// assert!(scores[0].unwrap().is_significant());
/// assert!(scores[1].unwrap().best);
/// assert!(scores[2].is_none());
/// ```
pub fn scores(rows: &[Values], direction: Direction, test: Test) -> Vec<Option<Score>> {
    let mut scores: Vec<Option<Score>> = rows.iter().map(|row| Score::alone(&row.values)).collect();
    let Some(best) = best_row(&scores, direction) else { return scores };
    let best_mean = scores[best].map(|score| score.mean);
    for (at, score) in scores.iter_mut().enumerate() {
        let Some(score) = score else { continue };
        score.best = Some(score.mean) == best_mean;
        if at != best {
            score.against_best = against(&rows[at], &rows[best], test);
        }
    }
    scores
}

/// The first row with the best mean; `None` if there are not two rows to compare, or the best is
/// infinitely bad.
fn best_row(scores: &[Option<Score>], direction: Direction) -> Option<usize> {
    let means = scores.iter().enumerate().filter_map(|(at, score)| Some((at, (*score)?.mean)));
    if means.clone().count() < 2 {
        return None;
    }
    let better = |best: (usize, f64), next: (usize, f64)| {
        if direction.is_better(next.1, best.1) { next } else { best }
    };
    means.reduce(better).filter(|(_, mean)| mean.is_finite()).map(|(at, _)| at)
}

fn against(row: &Values, best: &Values, test: Test) -> Option<Against> {
    let paired = test == Test::PairedBySeed && row.seeds.is_some() && row.seeds == best.seeds;
    let outcome: Option<TTest> = if paired {
        paired_t_test(&row.values, &best.values)
    } else {
        pooled_t_test(&row.values, &best.values)
    };
    outcome.map(|outcome| Against { p_value: outcome.p_value, paired })
}
