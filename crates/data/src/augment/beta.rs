//! Numbers of a Beta distribution from named random words.

use std::f64::consts::TAU;

/// A number of Beta(α, α) in [0, 1]. `word(index)` gives independent random words.
///
/// X / (X + Y) of two Gamma variables, in logarithms: for small α both may be too small for a
/// float.
pub fn symmetric(alpha: f64, word: impl Fn(u64) -> u64) -> f64 {
    let first = log_gamma_variate(alpha, |index| word(2 * index));
    let second = log_gamma_variate(alpha, |index| word(2 * index + 1));
    1.0 / (1.0 + (second - first).exp())
}

/// The logarithm of a number of Gamma(shape, 1), after Marsaglia and Tsang (2000); below shape 1
/// from shape + 1, times a power of a uniform number.
fn log_gamma_variate(shape: f64, word: impl Fn(u64) -> u64) -> f64 {
    // In (0, 1): a logarithm is taken.
    let unit = |index| ((word(index) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    let raised = if shape < 1.0 { shape + 1.0 } else { shape };
    // Finite, so that a difference is a number.
    let boost = if shape < 1.0 { (unit(0).ln() / shape).max(f64::MIN / 4.0) } else { 0.0 };
    let d = raised - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // At least 95 of 100 attempts are accepted, so the loop ends.
    for attempt in 0.. {
        let [radius, angle, accept] = [1, 2, 3].map(|part| unit(3 * attempt + part));
        let normal = (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos();
        let v = (1.0 + c * normal).powi(3);
        if v > 0.0 && accept.ln() < 0.5 * normal * normal + d * (1.0 - v + v.ln()) {
            return (d * v).ln() + boost;
        }
    }
    unreachable!("the attempts do not end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::{self, Purpose};

    fn sample(alpha: f64, key: u64) -> f64 {
        symmetric(alpha, |index| draws::word(7, Purpose::Mix, &[0, key, index]))
    }

    /// Mean 1/2, variance 1 / (4 (2α + 1)), fourth central moment 3 / (16 (2α + 1) (2α + 3)).
    #[test]
    fn moments_are_those_of_the_distribution() {
        const COUNT: u64 = 100_000;
        for alpha in [0.1, 0.2, 0.5, 1.0, 2.0, 8.0] {
            let moment = |power| {
                (0..COUNT).map(|key| (sample(alpha, key) - 0.5).powi(power)).sum::<f64>()
                    / COUNT as f64
            };
            let variance = 0.25 / (2.0 * alpha + 1.0);
            let fourth = 3.0 / (16.0 * (2.0 * alpha + 1.0) * (2.0 * alpha + 3.0));
            // Five standard errors.
            let error = 5.0 / (COUNT as f64).sqrt();
            assert!(moment(1).abs() < error * variance.sqrt(), "mean of α = {alpha}");
            let spread = (fourth - variance * variance).sqrt();
            assert!((moment(2) - variance).abs() < error * spread, "variance of α = {alpha}");
            assert!((moment(4) - fourth).abs() < error * fourth.sqrt() / 4.0, "tails of {alpha}");
        }
    }

    #[test]
    fn extreme_shapes_give_numbers() {
        for alpha in [f64::MIN_POSITIVE, 1e-300, 1e-6, 1e-3, 1e3, 1e15] {
            for key in 0..1_000 {
                let share = sample(alpha, key);
                assert!((0.0..=1.0).contains(&share), "{share} of α = {alpha}");
            }
        }
    }
}
