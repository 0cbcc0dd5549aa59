//! Held-out losses, and whether one is lower than another by more than chance.

use aleator_kernels::split_mix;
use serde::{Deserialize, Serialize};

/// Groups that held-out examples fall into by their ids; the standard error that these give is
/// right to a part of 1/√(2 · `GROUPS`), 7 %.
const GROUPS: usize = 100;

/// How well settings do on examples that were held out, each once or several times.
///
/// What happens to one example when it is held out again says little new, so all its losses stay
/// in its group, and only groups are taken as independent of each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeldOutLoss {
    /// Σ weight · (−log p of the label) of each group, `[GROUPS]`.
    sums: Vec<f64>,
    /// Σ weight of each group, the same in every trial, `[GROUPS]`.
    weights: Vec<f64>,
}

impl HeldOutLoss {
    /// Of no example.
    pub fn new() -> Self {
        Self { sums: vec![0.0; GROUPS], weights: vec![0.0; GROUPS] }
    }

    /// Adds the loss of the example with this key.
    pub fn add(&mut self, key: u64, weight: f64, nll: f64) {
        // Keys are often row numbers, and rows often sorted or periodic, which groups must not be.
        let word = split_mix(key).next().expect("the words do not end");
        let group = (word % GROUPS as u64) as usize;
        self.sums[group] += weight * nll;
        self.weights[group] += weight;
    }

    /// Adds what was held out elsewhere.
    pub fn merge(&mut self, other: &Self) {
        for (own, other) in [(&mut self.sums, &other.sums), (&mut self.weights, &other.weights)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        }
    }

    /// −log p of a label, on average.
    pub fn nll(&self) -> f64 {
        self.sums.iter().sum::<f64>() / self.weights.iter().sum::<f64>()
    }

    /// Whether it is lower than another by more than the standard error of the difference, as far
    /// as there are groups to tell.
    ///
    /// The mean gain is ḡ = Σ_i G_i / Σ_i w_i over groups with gains G_i and weights w_i. Their
    /// sizes differ, so its error is that of a ratio: n/(n − 1) · Σ_i (G_i − ḡ w_i)² / (Σ_i w_i)².
    pub fn is_surely_below(&self, other: &Self) -> bool {
        let gain = other.nll() - self.nll();
        let filled = self.weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        if filled < 2.0 {
            return gain > 0.0;
        }
        let sums = other.sums.iter().zip(&self.sums).map(|(other, own)| other - own);
        let rests = sums.zip(&self.weights).map(|(sum, weight)| sum - gain * weight);
        let squares: f64 = rests.map(|rest| rest * rest).sum();
        let error = (filled / (filled - 1.0) * squares).sqrt() / self.weights.iter().sum::<f64>();
        gain > error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loss of examples, each held out in every division.
    fn loss<const N: usize>(nll: [f64; N], divisions: usize) -> HeldOutLoss {
        let mut loss = HeldOutLoss::new();
        for _ in 0..divisions {
            nll.iter().enumerate().for_each(|(key, nll)| loss.add(key as u64, 1.0, *nll));
        }
        loss
    }

    #[test]
    fn the_mean_is_that_of_weighted_examples_in_any_number_of_parts() {
        let mut first = HeldOutLoss::new();
        first.add(3, 1.0, 0.5);
        let mut second = HeldOutLoss::new();
        second.add(4, 0.5, 2.0);
        first.merge(&second);
        assert!((first.nll() - 1.0).abs() < 1e-12, "(0.5 + 0.5 · 2) / 1.5");
    }

    #[test]
    fn a_gain_that_may_be_chance_is_none() {
        let plain = loss([0.5, 0.7, 0.6, 0.8], 1);
        // The same mean gain of 0.01: once everywhere, once of one example against the others.
        assert!(loss([0.49, 0.69, 0.59, 0.79], 1).is_surely_below(&plain));
        assert!(!loss([0.52, 0.72, 0.62, 0.70], 1).is_surely_below(&plain));
        assert!(!plain.is_surely_below(&plain));
    }

    #[test]
    fn holding_the_same_examples_out_again_makes_no_gain_surer() {
        // Gains of 1 ± 4/3 · √(n − 1), so the mean is 3/4 of its standard error. Taken as four
        // times as many examples it would be 3/2 of it.
        let spread = 4.0 / 3.0 * 39f64.sqrt();
        let gains: [f64; 40] =
            std::array::from_fn(|at| 1.0 + if at % 2 == 0 { spread } else { -spread });
        for divisions in [1, 2, 4] {
            let plain = loss([20.0; 40], divisions);
            assert!(!loss(gains.map(|gain| 20.0 - gain), divisions).is_surely_below(&plain));
            // A mean of 5/4 of the error is believed, again for any number of divisions.
            let surer = gains.map(|gain| 20.0 - gain - 2.0 / 3.0);
            assert!(loss(surer, divisions).is_surely_below(&plain));
        }
    }

    #[test]
    fn without_a_true_gain_one_standard_error_is_exceeded_as_often_as_theory_says() {
        // An example's gain is its own part, the same in all divisions, and one of the division.
        let mut words = split_mix(11);
        let mut centred = || (words.next().unwrap() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        let (sets, mut exceeded) = (2_000, 0);
        for _ in 0..sets {
            let own: [f64; 60] = std::array::from_fn(|_| centred());
            let (mut plain, mut other) = (HeldOutLoss::new(), HeldOutLoss::new());
            for _ in 0..4 {
                for (key, own) in own.iter().enumerate() {
                    plain.add(key as u64, 1.0, 5.0);
                    other.add(key as u64, 1.0, 5.0 - own - 0.3 * centred());
                }
            }
            exceeded += usize::from(other.is_surely_below(&plain));
        }
        // P(Z > 1) = 0.159, within five standard errors of 2,000 draws. Divisions that counted as
        // other examples would give P(Z > 1/2) = 0.31.
        let rate = exceeded as f64 / sets as f64;
        assert!((rate - 0.159).abs() < 5.0 * (0.159 * 0.841 / sets as f64).sqrt(), "{rate}");
    }
}
