//! Whether a difference between runs exceeds their spread: mean, standard deviation, t-tests.
//!
//! A statistic that the values do not determine is `None`, never NaN. Values may be infinite, such
//! as an infinite NLL; a NaN is a bug of the caller.

/// The mean; `None` without values, or with both `∞` and `−∞`.
pub fn mean(values: &[f64]) -> Option<f64> {
    check("values", values);
    let first = values.first()?;
    if values.iter().any(|value| value.is_infinite()) {
        let sum: f64 = values.iter().sum();
        return (!sum.is_nan()).then_some(sum);
    }
    // Relative to the first value, so that the mean of equal values has exactly their bits.
    let differences: f64 = values.iter().map(|value| value - first).sum();
    Some(first + differences / values.len() as f64)
}

/// The sample standard deviation, with `n − 1`; `None` for fewer than two values or infinite ones.
///
/// ```
/// # use aleator_metrics::significance::sample_std;
/// assert_eq!(sample_std(&[1.0, 3.0]), Some(2f64.sqrt()));
/// assert_eq!(sample_std(&[1.0]), None);
/// ```
pub fn sample_std(values: &[f64]) -> Option<f64> {
    Moments::of("values", values).map(|moments| moments.variance.sqrt())
}

/// The outcome of a t-test. Every number is finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TTest {
    /// The difference of means in units of its standard error; positive if the first is larger.
    pub t: f64,
    /// The degrees of freedom ν; not a whole number in Welch's test.
    pub degrees_of_freedom: f64,
    /// The probability of a |t| at least as large if the true means are equal (two-tailed).
    pub p_value: f64,
}

/// The unpaired t-test for samples of different variance (Welch).
///
/// `None` for fewer than two values in a sample, for infinite values, and if neither sample
/// varies.
///
/// ```
/// # use aleator_metrics::significance::welch_t_test;
/// let ours = [0.793, 0.791, 0.794, 0.792, 0.793];
/// let theirs = [0.767, 0.769, 0.766, 0.768, 0.765];
/// let test = welch_t_test(&ours, &theirs).expect("both samples vary");
/// assert!(test.t > 0.0 && test.p_value < 0.05);
/// ```
pub fn welch_t_test(first: &[f64], second: &[f64]) -> Option<TTest> {
    let (a, b) = (Moments::of("first", first)?, Moments::of("second", second)?);
    let (error_a, error_b) = (a.variance / a.count, b.variance / b.count);
    let error = error_a + error_b;
    let (share_a, share_b) = (error_a / error, error_b / error);
    // Shares, not the variances themselves, whose squares could leave the range of f64.
    let inverse = share_a * share_a / (a.count - 1.0) + share_b * share_b / (b.count - 1.0);
    TTest::new(a.mean - b.mean, error, 1.0 / inverse)
}

/// The unpaired t-test for samples of equal variance (Student).
///
/// The paper's "unpaired two-tailed t-test" is this one or Welch's; the paper does not specify.
///
/// `None` for fewer than two values in a sample, for infinite values, and if neither sample
/// varies.
pub fn pooled_t_test(first: &[f64], second: &[f64]) -> Option<TTest> {
    let (a, b) = (Moments::of("first", first)?, Moments::of("second", second)?);
    let degrees_of_freedom = a.count + b.count - 2.0;
    let squares = a.variance * (a.count - 1.0) + b.variance * (b.count - 1.0);
    let variance = squares / degrees_of_freedom;
    TTest::new(a.mean - b.mean, variance * (1.0 / a.count + 1.0 / b.count), degrees_of_freedom)
}

/// The paired t-test: `first[i]` and `second[i]` share everything else, such as seed and data.
///
/// `None` for fewer than two pairs, for infinite values, and if all differences are equal.
pub fn paired_t_test(first: &[f64], second: &[f64]) -> Option<TTest> {
    assert_eq!(first.len(), second.len(), "first and second must have the same length");
    check("first", first);
    check("second", second);
    if first.iter().chain(second).any(|value| value.is_infinite()) {
        return None;
    }
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    let moments = Moments::of("first − second", &differences)?;
    TTest::new(moments.mean, moments.variance / moments.count, moments.count - 1.0)
}

impl TTest {
    fn new(difference: f64, squared_error: f64, degrees_of_freedom: f64) -> Option<Self> {
        let t = difference / squared_error.sqrt();
        (t.is_finite() && degrees_of_freedom.is_finite()).then(|| {
            let p_value = two_tailed_p_value(t, degrees_of_freedom);
            Self { t, degrees_of_freedom, p_value }
        })
    }
}

/// P(|T| ≥ |t|) for Student's t with ν degrees of freedom: `I_x(ν/2, ½)` with `x = ν/(ν + t²)`.
///
/// The relative error is below 1e-12 for ν up to 10⁴ and below 1e-10 up to 10⁶, even for tiny
/// results.
pub fn two_tailed_p_value(t: f64, degrees_of_freedom: f64) -> f64 {
    assert!(!t.is_nan(), "t is NaN");
    assert!(
        degrees_of_freedom > 0.0 && degrees_of_freedom.is_finite(),
        "degrees_of_freedom is {degrees_of_freedom}, expected a finite number above 0"
    );
    let a = 0.5 * degrees_of_freedom;
    let ratio = t * t / degrees_of_freedom;
    // x and y = 1 − x, both at full precision.
    let (x, y) = (1.0 / (1.0 + ratio), 1.0 / (1.0 + 1.0 / ratio));
    // x^a √y / B(a, ½)
    let density =
        (-a * ratio.ln_1p()).exp() * y.sqrt() * half_step_of_gamma(a) / std::f64::consts::PI.sqrt();
    // The fraction converges fast below the distribution's mean; above it, the complement's does.
    if x < (a + 1.0) / (a + 2.5) {
        density / a * beta_fraction(a, 0.5, x)
    } else {
        1.0 - density / 0.5 * beta_fraction(0.5, a, y)
    }
}

/// Γ(a + ½) / Γ(a).
///
/// A difference of log-gammas would lose digits as a grows; Stirling's series of the ratio gains
/// them. From a = 16 its next term is below 3e-16; smaller a step up by Γ(a + 1) = a Γ(a).
fn half_step_of_gamma(a: f64) -> f64 {
    const SERIES: [f64; 5] =
        [-1.0 / 8.0, 1.0 / 192.0, -1.0 / 640.0, 17.0 / 14336.0, -31.0 / 18432.0];
    let (mut a, mut factor) = (a, 1.0);
    while a < 16.0 {
        factor *= a / (a + 0.5);
        a += 1.0;
    }
    let inverse_square = 1.0 / (a * a);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term);
    factor * a.sqrt() * (series / a).exp()
}

/// The continued fraction of the incomplete beta function,
/// `I_x(a, b) = x^a (1−x)^b / (a B(a, b)) · fraction`, evaluated forwards by Lentz's method.
///
/// DLMF 8.17.22.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    /// About √max(a, b) steps are needed, far fewer than this for any number of runs.
    const STEPS: usize = 100_000;
    /// Replaces a zero denominator.
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };

    let mut numerator = 1.0;
    let mut denominator = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    for m in 1..STEPS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            denominator = 1.0 / nonzero(1.0 + term * denominator);
            numerator = nonzero(1.0 + term / numerator);
            change = numerator * denominator;
            fraction *= change;
        }
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    fraction
}

/// Mean and variance of a sample, if both exist.
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(name: &str, values: &[f64]) -> Option<Self> {
        check(name, values);
        if values.len() < 2 {
            return None;
        }
        let (mean, count) = (mean(values)?, values.len() as f64);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let variance = squares / (count - 1.0);
        variance.is_finite().then_some(Self { count, mean, variance })
    }
}

fn check(name: &str, values: &[f64]) {
    if let Some(at) = values.iter().position(|value| value.is_nan()) {
        panic!("{name}[{at}] is NaN, expected a number");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mpmath.mp.dps = 30; print(exp(loggamma(a + 0.5) - loggamma(a)))`
    #[test]
    fn half_step_of_gamma_equals_mpmaths() {
        for (a, expected) in [
            (0.25, 0.33798912003364236),
            (0.5, 0.5641895835477563),
            (1.0, 0.886226925452758),
            (3.7, 1.8598266980544115),
            (15.5, 3.905387041517736),
            (16.0, 3.9688767938289397),
            (500.0, 22.355090304698624),
            (1e6, 999.9998750000078),
        ] {
            let found = half_step_of_gamma(a);
            // At most 16 factors, each rounded twice; a wrong term of the series is 2e-14.
            assert!((found / expected - 1.0f64).abs() < 4e-15, "{a}: {found}");
        }
    }
}
