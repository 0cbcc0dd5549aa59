//! The pairs of classes over several seeds: what all of them learn is more than chance.

use aleator_run::{RunDir, Split};
use serde::Serialize;

use super::best::Best;
use super::matrix::CovarianceMatrix;
use super::open::Covariances;
use super::pairs::Relation;
use super::{Measure, Observer};
use crate::error::ReportError;
use crate::task::class_difference;

/// A number over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with n − 1; `None` of a single run.
    pub std: Option<f64>,
}

/// Two classes, the first of the lower index, over all examples of a split and several runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedPair {
    /// The index of a class.
    pub first: usize,
    /// The index of another.
    pub second: usize,
    /// Σ̄_ij.
    pub covariance: Spread,
    /// (C Σ̄ C)_ij / τ².
    pub centred: Spread,
    /// The correlation of C Σ̄ C; `None` where it is only rounding in every run.
    pub correlation: Option<Spread>,
    /// In how many runs the more frequent relation is found.
    pub agreeing: usize,
    /// The relation that all runs find; [`Relation::Unclear`] where they do not agree.
    pub relation: Relation,
}

impl SeedPair {
    /// The mean by one of the measures; an undefined correlation counts as zero.
    pub fn mean(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Raw => self.covariance.mean,
            Measure::Centred => self.centred.mean,
            Measure::Correlation => self.correlation.map_or(0.0, |spread| spread.mean),
        }
    }

    /// Whether all runs find the same relation.
    pub fn is_consistent(&self) -> bool {
        matches!(self.relation, Relation::Substitutes | Relation::CoOccurring)
    }
}

/// The noise of runs that differ in their seeds only.
///
/// ```no_run
/// use aleator_report::covariance::{Measure, SeedNoise};
/// use aleator_run::{RunDir, Split};
///
/// let runs = [RunDir::open("runs/seed-0".as_ref())?, RunDir::open("runs/seed-1".as_ref())?];
/// let noise = SeedNoise::of(&runs, Split::Test, &mut |_| {})?;
/// for pair in noise.strongest(Measure::Centred, 10) {
///     println!("{} and {}: {:?}", pair.first, pair.second, pair.relation);
/// }
/// # Ok::<(), aleator_report::ReportError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SeedNoise {
    runs: usize,
    classes: usize,
    /// Of the pairs (0, 1), (0, 2), …, (1, 2), ….
    tallies: Vec<Tally>,
}

/// One pair so far.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    covariance: Moments,
    centred: Moments,
    correlation: Moments,
    substitutes: usize,
    co_occurring: usize,
}

/// Mean and squared deviations, number by number (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn spread(&self) -> Spread {
        let std = (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt());
        Spread { mean: self.mean, std }
    }
}

impl SeedNoise {
    /// Reads the covariances of each run. At most
    /// [`LARGEST_MATRIX`](super::LARGEST_MATRIX) classes.
    ///
    /// # Errors
    /// When a run has no covariance or is damaged, or the runs have different classes.
    pub fn of(runs: &[RunDir], split: Split, observer: Observer) -> Result<Self, ReportError> {
        let mut noise = Self { runs: 0, classes: 0, tallies: vec![] };
        for run in runs {
            if let Some(reason) =
                class_difference(&runs[0].info().class_names, &run.info().class_names)
            {
                return Err(ReportError::different(runs[0].path(), run, "averaged with", reason));
            }
            noise.add(&Covariances::open(run, split)?.average_covariance(observer)?);
        }
        Ok(noise)
    }

    fn add(&mut self, matrix: &CovarianceMatrix) {
        let classes = matrix.classes;
        (self.runs, self.classes) = (self.runs + 1, classes);
        self.tallies.resize(classes * classes.saturating_sub(1) / 2, Tally::default());
        let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| i * classes + j));
        for (tally, at) in self.tallies.iter_mut().zip(pairs) {
            tally.covariance.add(matrix.raw[at]);
            tally.centred.add(matrix.centred[at]);
            if !matrix.correlation[at].is_nan() {
                tally.correlation.add(matrix.correlation[at]);
            }
            match Relation::of(matrix.centred[at]) {
                Relation::Substitutes => tally.substitutes += 1,
                Relation::CoOccurring => tally.co_occurring += 1,
                Relation::Unrelated | Relation::Unclear => {}
            }
        }
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// How many pairs of classes there are.
    pub fn pairs(&self) -> usize {
        self.tallies.len()
    }

    /// How many of them have the same relation in all runs.
    pub fn consistent(&self) -> usize {
        self.all().filter(SeedPair::is_consistent).count()
    }

    /// The pairs of largest absolute mean, those first whose relation is the same in all runs.
    pub fn strongest(&self, measure: Measure, count: usize) -> Vec<SeedPair> {
        let (mut consistent, mut others) = (Best::new(count), Best::new(count));
        for pair in self.all() {
            let list = if pair.is_consistent() { &mut consistent } else { &mut others };
            let size = pair.mean(measure).abs();
            list.offer(size, (pair.first, pair.second), pair);
        }
        let sorted = consistent.into_sorted().into_iter().chain(others.into_sorted());
        sorted.map(|(.., pair)| pair).take(count).collect()
    }

    /// Two different classes, in any order.
    pub fn pair(&self, a: usize, b: usize) -> SeedPair {
        let (first, second) = (a.min(b), a.max(b));
        let before = first * (2 * self.classes - first - 1) / 2;
        self.described(first, second, &self.tallies[before + second - first - 1])
    }

    fn all(&self) -> impl Iterator<Item = SeedPair> {
        let classes = self.classes;
        let pairs = (0..classes).flat_map(move |i| (i + 1..classes).map(move |j| (i, j)));
        pairs.zip(&self.tallies).map(|((i, j), tally)| self.described(i, j, tally))
    }

    fn described(&self, first: usize, second: usize, tally: &Tally) -> SeedPair {
        let Tally { covariance, centred, correlation, substitutes, co_occurring } = tally;
        SeedPair {
            first,
            second,
            covariance: covariance.spread(),
            centred: centred.spread(),
            correlation: (correlation.count > 0).then(|| correlation.spread()),
            agreeing: *substitutes.max(co_occurring),
            relation: match (*substitutes, *co_occurring) {
                (0, 0) => Relation::Unrelated,
                (all, _) if all == self.runs => Relation::Substitutes,
                (_, all) if all == self.runs => Relation::CoOccurring,
                _ => Relation::Unclear,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three classes whose pairs (0, 1), (0, 2), (1, 2) have these centred covariances.
    fn matrix(centred: [f64; 3]) -> CovarianceMatrix {
        let [a, b, c] = centred;
        let values = vec![1.0, a, b, a, 1.0, c, b, c, 1.0];
        let (raw, correlation) = (values.clone(), values.clone());
        CovarianceMatrix { classes: 3, temperature: 1.0, raw, centred: values, correlation }
    }

    #[test]
    fn only_signs_that_all_runs_share_are_named() {
        let mut noise = SeedNoise { runs: 0, classes: 0, tallies: vec![] };
        for centred in [[-0.5, 0.9, 1e-9], [-0.3, -0.8, -1e-9], [-0.1, 0.7, 1e-9]] {
            noise.add(&matrix(centred));
        }
        assert_eq!((noise.runs(), noise.pairs(), noise.consistent()), (3, 3, 1));
        let found = noise.strongest(Measure::Centred, 3);
        let summary: Vec<_> =
            found.iter().map(|it| (it.first, it.second, it.agreeing, it.relation)).collect();
        assert_eq!(
            summary,
            [
                (0, 1, 3, Relation::Substitutes),
                (0, 2, 2, Relation::Unclear),
                (1, 2, 0, Relation::Unrelated)
            ]
        );
        assert_eq!(noise.pair(1, 0), found[0]);
        assert_eq!(noise.pair(2, 1), found[2]);
        assert!((found[0].centred.mean + 0.3).abs() < 1e-12);
        assert!((found[0].centred.std.unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(noise.strongest(Measure::Centred, 1), found[..1]);
    }
}
