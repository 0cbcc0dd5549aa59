//! Which law the errors follow, read from the labels that are surely wrong.
//!
//! Labels with the most extreme evidence are wrong under any law, so they are a sample of the true
//! errors, and planted errors with evidence as extreme show what each law expects them to be: on
//! examples how ambiguous, and labels how surprising. Shares of *anywhere* and *ambiguous* are
//! those of the largest likelihood of the examples' ambiguity. Errors by *class* alone are another
//! law, not a part of that mixture: it weighs as much as it is probable, given how ambiguous and
//! how surprising the sure errors are.

use super::planted::ErrorLaw;

/// Where an error is, and how it looks, apart from how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// The logarithm of how probable an error is there.
    pub ambiguity: f64,
    /// −log p of the label.
    pub surprise: f64,
}

/// Ranges of ambiguity that decide between errors anywhere and on ambiguous examples.
const AMBIGUITIES: usize = 6;
/// Ranges of ambiguity, and of surprise in each, that decide whether the class alone matters.
const CELLS: (usize, usize) = (5, 4);
/// What each law has at least in every range, as planted errors are few.
const FLOOR: f64 = 1e-3;
/// Rounds of expectation maximisation.
const ROUNDS: usize = 300;

/// How much each law counts; they sum to one, and are equal where no label is surely wrong. `sure`
/// are the labels that are, `planted` the errors that look as sure, with their weights under each
/// law.
pub(super) fn weigh(sure: &[Place], planted: &[(Place, ErrorLaw)]) -> ErrorLaw {
    let mut all = ErrorLaw::default();
    planted.iter().for_each(|(_, weight)| all.add(*weight));
    if sure.is_empty() || !(all.anywhere > 0.0 && all.ambiguous > 0.0 && all.class > 0.0) {
        return ErrorLaw { anywhere: 1.0 / 3.0, ambiguous: 1.0 / 3.0, class: 1.0 / 3.0 };
    }
    let planted: Vec<(Place, ErrorLaw)> =
        planted.iter().map(|(place, weight)| (*place, weight.shares(all))).collect();
    let anywhere = share_anywhere(sure, &planted);
    let by_example =
        |weight: &ErrorLaw| anywhere * weight.anywhere + (1.0 - anywhere) * weight.ambiguous;
    let log_ratio = log_probability(sure, &planted, |weight| weight.class)
        - log_probability(sure, &planted, by_example);
    // Before any label is seen it is one law of three.
    let class = 1.0 / (1.0 + 2.0 * (-log_ratio).exp());
    let rest = 1.0 - class;
    ErrorLaw { anywhere: rest * anywhere, ambiguous: rest * (1.0 - anywhere), class }
}

/// The share of errors that fall anywhere among those that depend on the example. Each law counts
/// for one label before any is seen.
fn share_anywhere(sure: &[Place], planted: &[(Place, ErrorLaw)]) -> f64 {
    let cells = Cells::new(sure, (AMBIGUITIES, 1));
    let seen = cells.count(sure.iter().map(|place| (place, 1.0)));
    let law = |weight: fn(&ErrorLaw) -> f64| -> Vec<f64> {
        let expected = cells.count(planted.iter().map(|(place, it)| (place, weight(it))));
        expected.into_iter().map(|share| share + FLOOR).collect()
    };
    let pairs: Vec<(f64, f64)> =
        law(|it| it.anywhere).into_iter().zip(law(|it| it.ambiguous)).collect();
    let mut share = 0.5;
    for _ in 0..ROUNDS {
        let own = |(seen, (anywhere, ambiguous)): (&f64, &(f64, f64))| {
            seen * share * anywhere / (share * anywhere + (1.0 - share) * ambiguous)
        };
        let from_anywhere: f64 = seen.iter().zip(&pairs).map(own).sum();
        share = (from_anywhere + 1.0) / (sure.len() as f64 + 2.0);
    }
    share
}

/// The logarithm of how probable the places of the sure errors are, if the planted ones with these
/// weights are a sample of the same law (a Dirichlet-multinomial).
fn log_probability(
    sure: &[Place],
    planted: &[(Place, ErrorLaw)],
    weight: impl Fn(&ErrorLaw) -> f64,
) -> f64 {
    let cells = Cells::new(sure, CELLS);
    let seen = cells.count(sure.iter().map(|place| (place, 1.0)));
    let shares = cells.count(planted.iter().map(|(place, it)| (place, weight(it))));
    let squares: f64 = planted.iter().map(|(_, it)| weight(it).powi(2)).sum();
    // Planted errors with unequal weights say as much as this many with equal ones.
    let planted = if squares > 0.0 { 1.0 / squares } else { 0.0 };
    let pseudo: Vec<f64> = shares.iter().map(|share| planted * share + 0.5).collect();
    let own: f64 = seen.iter().zip(&pseudo).map(|(seen, pseudo)| log_rising(*pseudo, *seen)).sum();
    own - log_rising(pseudo.iter().sum(), seen.iter().sum())
}

/// log Γ(start + count)/Γ(start).
fn log_rising(start: f64, count: f64) -> f64 {
    (0..count as usize).map(|step| (start + step as f64).ln()).sum()
}

/// Ranges of ambiguity, and of surprise within each, with equally many of some places.
struct Cells {
    ambiguities: Vec<f64>,
    /// Of each range of ambiguity.
    surprises: Vec<Vec<f64>>,
}

impl Cells {
    fn new(places: &[Place], (rows, columns): (usize, usize)) -> Self {
        let ambiguities = bounds(places.iter().map(|place| place.ambiguity).collect(), rows);
        let in_row = |row: usize| {
            let own = places.iter().filter(|it| range(&ambiguities, it.ambiguity) == row);
            bounds(own.map(|place| place.surprise).collect(), columns)
        };
        let surprises = (0..rows).map(in_row).collect();
        Self { ambiguities, surprises }
    }

    /// The sum of the weights in every cell.
    fn count<'a>(&self, places: impl Iterator<Item = (&'a Place, f64)>) -> Vec<f64> {
        let columns = self.surprises.iter().map(|bounds| bounds.len() + 1).max().unwrap_or(1);
        let mut sums = vec![0.0; self.surprises.len() * columns];
        for (place, weight) in places {
            let row = range(&self.ambiguities, place.ambiguity);
            sums[row * columns + range(&self.surprises[row], place.surprise)] += weight;
        }
        sums
    }
}

/// The bounds between `parts` ranges that hold equally many of the values.
fn bounds(mut values: Vec<f64>, parts: usize) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let bound = |part: usize| values.get(part * values.len() / parts).copied();
    (1..parts).filter_map(bound).collect()
}

fn range(bounds: &[f64], value: f64) -> usize {
    bounds.partition_point(|bound| *bound <= value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors whose ambiguity and surprise are spread over a range, shifted by the law.
    fn places(count: usize, ambiguity: f64, surprise: f64) -> Vec<Place> {
        let spread = |at: usize, step: f64| (at as f64 * step).fract();
        (0..count)
            .map(|at| Place {
                ambiguity: ambiguity + spread(at, 0.618_034),
                surprise: surprise + spread(at, 0.414_214),
            })
            .collect()
    }

    /// Planted errors of each law: those by class are where those on ambiguous examples are, and
    /// more surprising.
    fn planted() -> Vec<(Place, ErrorLaw)> {
        let of = |ambiguity: f64, surprise: f64, law: ErrorLaw| {
            places(300, ambiguity, surprise).into_iter().map(move |place| (place, law))
        };
        let none = ErrorLaw::default();
        of(0.0, 0.0, ErrorLaw { anywhere: 1.0, ..none })
            .chain(of(0.5, 0.0, ErrorLaw { ambiguous: 1.0, ..none }))
            .chain(of(0.5, 0.5, ErrorLaw { class: 1.0, ..none }))
            .collect()
    }

    #[test]
    fn the_law_of_the_sure_errors_is_found() {
        let found = weigh(&places(500, 0.0, 0.0), &planted());
        assert!(found.anywhere > 0.95, "{found:?}");
        let found = weigh(&places(500, 0.5, 0.0), &planted());
        assert!(found.ambiguous > 0.95, "{found:?}");
        let found = weigh(&places(500, 0.5, 0.5), &planted());
        assert!(found.class > 0.99, "{found:?}");
        let mixed = [places(300, 0.0, 0.0), places(200, 0.5, 0.0)].concat();
        let found = weigh(&mixed, &planted());
        // Five standard errors of a share of 500 labels.
        assert!((found.anywhere - 0.6).abs() < 0.11 && found.class < 0.01, "{found:?}");
    }

    #[test]
    fn where_nothing_is_sure_no_law_is_preferred() {
        for (sure, planted) in [(vec![], planted()), (places(20, 0.0, 0.0), vec![])] {
            let ErrorLaw { anywhere, ambiguous, class } = weigh(&sure, &planted);
            assert!([anywhere, ambiguous, class].iter().all(|it| *it == 1.0 / 3.0));
        }
    }
}
