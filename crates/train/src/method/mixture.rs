//! Two Normals fitted to numbers of one dimension.

/// Iterations at most, and the gain of the mean log-likelihood that is too small to go on.
const ITERATIONS: usize = 100;
const TOLERANCE: f64 = 1e-5;
/// Added to each variance, for numbers from 0 to 1.
const LEAST_VARIANCE: f64 = 5e-4;

/// A component: its share, its mean and its variance.
#[derive(Clone, Copy, Debug)]
struct Normal {
    share: f64,
    mean: f64,
    variance: f64,
}

impl Normal {
    /// log of share times density.
    fn log_density(&self, value: f64) -> f64 {
        let square = (value - self.mean).powi(2) / self.variance;
        self.share.ln() - 0.5 * (square + (std::f64::consts::TAU * self.variance).ln())
    }
}

/// The probability of each number to come from the component with the smaller mean, by
/// expectation-maximisation from the two halves of the range. Where all are equal it is one.
pub(super) fn smaller_component(values: &[f64]) -> Vec<f64> {
    let (low, high) = bounds(values);
    if low == high {
        return vec![1.0; values.len()];
    }
    let mut posterior: Vec<f64> =
        values.iter().map(|value| f64::from(u8::from(*value < 0.5 * (low + high)))).collect();
    let mut before = f64::NEG_INFINITY;
    let mut smaller_first = true;
    for _ in 0..ITERATIONS {
        let [first, second] = components(values, &posterior);
        smaller_first = first.mean <= second.mean;
        let mut total = 0.0;
        for (own, value) in posterior.iter_mut().zip(values) {
            let (first, second) = (first.log_density(*value), second.log_density(*value));
            let largest = first.max(second);
            let sum = largest + ((first - largest).exp() + (second - largest).exp()).ln();
            *own = (first - sum).exp();
            total += sum;
        }
        let mean = total / values.len() as f64;
        if mean - before < TOLERANCE {
            break;
        }
        before = mean;
    }
    if smaller_first { posterior } else { posterior.into_iter().map(|it| 1.0 - it).collect() }
}

/// Brings numbers to the range from 0 to 1.
pub(super) fn to_unit_range(values: &mut [f64]) {
    let (low, high) = bounds(values);
    let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
    values.iter_mut().for_each(|value| *value = (*value - low) * scale);
}

fn bounds(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    (low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn components(values: &[f64], posterior: &[f64]) -> [Normal; 2] {
    [false, true].map(|second| {
        let weight = |own: &f64| if second { 1.0 - own } else { *own };
        let count: f64 = posterior.iter().map(weight).sum::<f64>().max(f64::MIN_POSITIVE);
        let pairs = || values.iter().zip(posterior).map(|(value, own)| (value, weight(own)));
        let mean = pairs().map(|(value, weight)| weight * value).sum::<f64>() / count;
        let square = |(value, weight): (&f64, f64)| weight * (value - mean).powi(2);
        let variance = pairs().map(square).sum::<f64>() / count + LEAST_VARIANCE;
        Normal { share: count / values.len() as f64, mean, variance }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aleator_kernels::quantile::inverse_normal_cdf;

    /// 3,000 numbers around 0.2 and 1,000 around 0.7, by their quantiles.
    fn mixed() -> Vec<f64> {
        let normal = |count: usize, mean: f64, deviation: f64| {
            let quantile = move |at: usize| {
                let unit = (at as f64 + 0.5) / count as f64;
                f64::from(inverse_normal_cdf((unit * 2f64.powi(32)) as u32))
            };
            (0..count).map(move |at| mean + deviation * quantile(at))
        };
        normal(3_000, 0.2, 0.05).chain(normal(1_000, 0.7, 0.1)).collect()
    }

    #[test]
    fn the_posterior_is_that_of_the_two_normals() {
        let values = mixed();
        let found = smaller_component(&values);
        let first = Normal { share: 0.75, mean: 0.2, variance: 0.05f64.powi(2) + LEAST_VARIANCE };
        let second = Normal { share: 0.25, mean: 0.7, variance: 0.01 + LEAST_VARIANCE };
        for (value, found) in values.iter().zip(found) {
            let odds = (second.log_density(*value) - first.log_density(*value)).exp();
            // The overlap of the two moves their moments a little.
            assert!((found - 1.0 / (1.0 + odds)).abs() < 0.02, "{value}: {found} {odds}");
        }
    }

    #[test]
    fn equal_and_few_numbers_have_an_answer() {
        assert_eq!(smaller_component(&[0.5; 3]), [1.0; 3]);
        let found = smaller_component(&[0.0, 1.0]);
        assert!(found[0] > 0.99 && found[1] < 0.01, "{found:?}");
        let mut values = [3.0, 5.0, 4.0];
        to_unit_range(&mut values);
        assert_eq!(values, [0.0, 1.0, 0.5]);
        let mut same = [2.0, 2.0];
        to_unit_range(&mut same);
        assert_eq!(same, [0.0, 0.0]);
    }
}
