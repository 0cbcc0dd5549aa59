//! Labels drawn from the latent model of the paper: the class of the largest utility.
//!
//! ```text
//! u = m e_y + s ε + Σ_(a, b, c) √|c| (e_a + sign(c) e_b) z_ab        y given = argmax u
//! ```
//!
//! ε has the chosen law, one draw for each class; z_ab is standard Normal. So the noise of the classes
//! a and b has covariance c (and |c| more variance each), that of all others is independent: what a
//! noise model should find is known.
//!
//! Classes in no pair differ only by ε, so the largest of them is one draw, and the work for an
//! example depends on the number of pairs, not of classes.

use aleator_metrics::normal_quantile;
use aleator_run::recipe::NoiseLaw;

use crate::draws::{self, Purpose};
use crate::error::DataError;

/// The latent model of a recipe.
pub(super) struct Model<'a> {
    margin: f64,
    scale: f64,
    law: NoiseLaw,
    covariances: &'a [(usize, usize, f64)],
    /// The classes of the pairs, ascending.
    paired: Vec<usize>,
    classes: usize,
}

impl<'a> Model<'a> {
    pub fn new(
        margin: f64,
        scale: f64,
        law: NoiseLaw,
        covariances: &'a [(usize, usize, f64)],
        classes: usize,
    ) -> Result<Self, DataError> {
        let refuse = |key: &str, message: String| Err(DataError::invalid(key, message));
        for (key, value) in [("data.noise.margin", margin), ("data.noise.scale", scale)] {
            if !(value >= 0.0 && value.is_finite()) {
                return refuse(key, format!("must be a finite number of at least 0, is {value}"));
            }
        }
        for (first, second, covariance) in covariances {
            if first.max(second) >= &classes || first == second || !covariance.is_finite() {
                let message = format!(
                    "({first}, {second}, {covariance}): two different classes from 0 to {} and a \
                     finite covariance are needed",
                    classes - 1
                );
                return refuse("data.noise.covariances", message);
            }
        }
        let mut paired: Vec<usize> = covariances.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
        paired.sort_unstable();
        paired.dedup();
        Ok(Self { margin, scale, law, covariances, paired, classes })
    }

    /// The given label of an example of class `label`.
    pub fn label(&self, label: usize, seed: u64, key: u64) -> usize {
        let own = |class: usize| {
            let unit = draws::unit(seed, Purpose::Utility, &[key, class as u64]);
            self.scale * largest_of(1, self.law, unit)
        };
        // Without any noise the true class wins.
        let mut best = (label, self.margin + own(label) + self.shared(label, seed, key));
        let mut see = |class: usize, utility: f64| {
            if utility > best.1 {
                best = (class, utility);
            }
        };
        for class in self.paired.iter().copied().filter(|class| *class != label) {
            see(class, own(class) + self.shared(class, seed, key));
        }
        let alone = !self.paired.contains(&label);
        let others = self.classes - self.paired.len() - usize::from(alone);
        if others > 0 {
            let unit = draws::unit(seed, Purpose::Largest, &[key]);
            let number = draws::below(others, seed, Purpose::Wrong, &[key]);
            let utility = self.scale * largest_of(others, self.law, unit);
            see(self.unpaired(number, alone.then_some(label)), utility);
        }
        best.0
    }

    /// The noise that a class shares with others.
    fn shared(&self, class: usize, seed: u64, key: u64) -> f64 {
        let pairs = self.covariances.iter().filter(|(a, b, _)| [*a, *b].contains(&class));
        let term = |(a, b, covariance): &(usize, usize, f64)| {
            let (low, high) = (*a.min(b) as u64, *a.max(b) as u64);
            let z = normal_quantile(inner(draws::unit(seed, Purpose::Factor, &[key, low, high])));
            let sign = if class as u64 == high { covariance.signum() } else { 1.0 };
            sign * covariance.abs().sqrt() * z
        };
        pairs.map(term).sum()
    }

    /// Class `number` of those that are in no pair, without `label`.
    fn unpaired(&self, number: usize, label: Option<usize>) -> usize {
        let mut skipped = self.paired.clone();
        if let Some(label) = label {
            skipped.insert(skipped.partition_point(|class| *class < label), label);
        }
        skipped.iter().fold(number, |class, skipped| class + usize::from(*skipped <= class))
    }
}

/// The largest of `count` draws, at probability `unit`: P(largest < x) = P(ε < x)^count.
fn largest_of(count: usize, law: NoiseLaw, unit: f64) -> f64 {
    // P(ε > x), which is small with many draws.
    let above = -(inner(unit).ln() / count as f64).exp_m1();
    match law {
        NoiseLaw::Normal => -normal_quantile(above),
        NoiseLaw::Gumbel => -(-(-above).ln_1p()).ln(),
        NoiseLaw::Logistic => ((1.0 - above) / above).ln(),
    }
}

/// A number of [0, 1) moved into (0, 1), where quantiles are finite.
fn inner(unit: f64) -> f64 {
    unit.max(f64::EPSILON / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `from scipy.stats import norm, gumbel_r, logistic; dist.ppf(0.3 ** (1 / 50))`
    #[test]
    fn the_largest_of_many_is_the_quantile_of_the_root() {
        for (law, expected) in [
            (NoiseLaw::Normal, 1.9810673784553536),
            (NoiseLaw::Gumbel, 3.726396246565779),
            (NoiseLaw::Logistic, 3.714332359464026),
        ] {
            let found = largest_of(50, law, 0.3);
            assert!((found - expected).abs() < 1e-12, "{law:?}: {found}, scipy {expected}");
            assert!(
                largest_of(1, law, 0.0).is_finite() && largest_of(1 << 24, law, 0.0).is_finite()
            );
        }
    }

    #[test]
    fn unpaired_classes_are_numbered_without_the_others() {
        let covariances = [(1, 4, 1.0), (4, 5, -1.0)];
        let model = Model::new(1.0, 1.0, NoiseLaw::Normal, &covariances, 8).unwrap();
        let found = |label| (0..3).map(|number| model.unpaired(number, label)).collect::<Vec<_>>();
        assert_eq!(found(Some(2)), [0, 3, 6]);
        assert_eq!(found(Some(0)), [2, 3, 6]);
        assert_eq!((0..5).map(|n| model.unpaired(n, None)).collect::<Vec<_>>(), [0, 2, 3, 6, 7]);
    }
}
