//! Temperature scaling (Guo et al., 2017): one number that makes probabilities sharper or flatter.
//!
//! With β = 1/T and z = log p, the NLL of softmax(β z) is
//! `L(β) = mean_i [ log Σ_k exp(β z_ik) − β z_iy ]`. Under q = softmax(β z),
//! `L'(β) = mean_i [ E_q z − z_y ]` and `L''(β) = mean_i Var_q z ≥ 0`: L is convex in β and L'
//! has one change of sign. Newton's method finds it on the scale of log β, because the range of
//! temperatures spans orders of magnitude. For a sigmoid of the logit l = log p − log(1 − p),
//! `L' = Σ (σ(β l) − y) l` and `L'' = Σ σ(β l) σ(−β l) l²`.
//!
//! Terms that do not depend on the temperature are left out of L: classes with log p = −∞ keep
//! probability 0, and an example with such a label has an infinite NLL at any T.

use crate::checks;
use crate::classification::multilabel;

/// The lowest fitted temperature.
///
/// The fit ends here if every prediction is correct, so that the NLL decreases with T.
pub const LOWEST_TEMPERATURE: f64 = 1e-3;

/// The highest fitted temperature.
///
/// The fit ends here if the predictions are worse than uniform ones, so that the NLL decreases as T
/// increases.
pub const HIGHEST_TEMPERATURE: f64 = 1e3;

/// The T for which softmax(log p / T) has the lowest NLL of the labels.
///
/// It lies between [`LOWEST_TEMPERATURE`] and [`HIGHEST_TEMPERATURE`], and is 1 if every T is
/// equally good. Fit it on examples that the model was not trained on.
///
/// ```
/// # use aleator_metrics::calibration::{fit_temperature, scale_log_probs};
/// # use aleator_metrics::classification::nll;
/// // 99 % confident each time, and correct three times out of four.
/// let log_probs = [0.99f32.ln(), 0.01f32.ln()].repeat(4);
/// let labels = [0, 0, 0, 1];
/// let temperature = fit_temperature(&log_probs, 2, &labels);
/// let scaled = scale_log_probs(&log_probs, 2, temperature);
/// assert!((scaled[0].exp() - 0.75).abs() < 1e-6);
/// ```
pub fn fit_temperature(log_probs: &[f32], classes: usize, labels: &[u32]) -> f64 {
    let examples = checks::log_probs(log_probs, classes);
    checks::labels(labels, examples, classes);
    fit_shares(log_probs, classes, |example| std::iter::once((labels[example] as usize, 1.0)))
}

/// The T for which softmax(log p / T) has the lowest cross-entropy of soft targets, `[N, K]`.
pub fn fit_temperature_soft(log_probs: &[f32], classes: usize, targets: &[f32]) -> f64 {
    checks::log_probs(log_probs, classes);
    checks::targets(targets, log_probs.len());
    fit_shares(log_probs, classes, |example| {
        let target = targets[example * classes..(example + 1) * classes].iter().enumerate();
        target.filter(|(_, share)| **share > 0.0).map(|(class, share)| (class, *share as f64))
    })
}

/// Fits to the classes that each example has with a share above 0.
fn fit_shares<T: Iterator<Item = (usize, f64)>>(
    log_probs: &[f32],
    classes: usize,
    shares: impl Fn(usize) -> T,
) -> f64 {
    minimise(|beta| {
        let mut total = Derivatives::default();
        for (example, row) in log_probs.chunks(classes).enumerate() {
            if shares(example).all(|(class, _)| row[class] > f32::NEG_INFINITY) {
                let (peak, moments) = under_softmax(row, beta);
                for (class, share) in shares(example) {
                    total.slope += share * (moments.slope - (row[class] as f64 - peak));
                    total.curvature += share * moments.curvature;
                }
            }
        }
        total
    })
}

/// The T for which sigmoid((log p − log(1 − p)) / T) has the lowest binary cross-entropy.
pub fn fit_temperature_multilabel(log_on: &[f32], log_off: &[f32], multi_hot: &[bool]) -> f64 {
    multilabel::check(log_on, log_off, 1, multi_hot);
    minimise(|beta| {
        let mut total = Derivatives::default();
        for ((on, off), is_on) in log_on.iter().zip(log_off).zip(multi_hot) {
            let logit = *on as f64 - *off as f64;
            // A probability of 0 or 1 stays so at any temperature.
            if logit.is_finite() {
                let wrong = sigmoid(if *is_on { -beta * logit } else { beta * logit });
                total.slope += wrong * if *is_on { -logit } else { logit };
                total.curvature += wrong * (1.0 - wrong) * logit * logit;
            }
        }
        total
    })
}

/// log softmax(log p / T), `[N, K]`.
///
/// −∞ stays −∞; finite values stay finite.
pub fn scale_log_probs(log_probs: &[f32], classes: usize, temperature: f64) -> Vec<f32> {
    checks::log_probs(log_probs, classes);
    check_temperature(temperature);
    let mut scaled = Vec::with_capacity(log_probs.len());
    for row in log_probs.chunks(classes) {
        let peak = peak(row);
        let relative = |log_p: &f32| (*log_p as f64 - peak) / temperature;
        let log_total = row.iter().map(|log_p| relative(log_p).exp()).sum::<f64>().ln();
        scaled.extend(row.iter().map(|log_p| narrow(relative(log_p) - log_total)));
    }
    scaled
}

/// log sigmoid(l / T) and log sigmoid(−l / T) of the logits l = log p − log(1 − p): the scaled
/// `log_on` and `log_off`.
pub fn scale_multilabel(log_on: &[f32], log_off: &[f32], temperature: f64) -> (Vec<f32>, Vec<f32>) {
    checks::on_off(log_on, log_off);
    check_temperature(temperature);
    let logits = log_on.iter().zip(log_off).map(|(on, off)| *on as f64 - *off as f64);
    logits
        .map(|logit| logit / temperature)
        .map(|logit| (narrow(log_sigmoid(logit)), narrow(log_sigmoid(-logit))))
        .unzip()
}

/// L' and L''.
#[derive(Clone, Copy, Default)]
struct Derivatives {
    slope: f64,
    curvature: f64,
}

/// The T = 1/β at which a convex function of β has its minimum, from its derivatives.
fn minimise(derivatives: impl Fn(f64) -> Derivatives) -> f64 {
    /// Tolerance of log T; no NLL in f32 can resolve less.
    const TOLERANCE: f64 = 1e-10;
    /// More than twice the bisections from the whole range to the tolerance.
    const STEPS: usize = 100;

    let mut now = derivatives(1.0);
    if now.slope == 0.0 {
        return 1.0;
    }
    let falls = now.slope < 0.0;
    let end = if falls { LOWEST_TEMPERATURE } else { HIGHEST_TEMPERATURE };
    let slope_at_end = derivatives(1.0 / end).slope;
    if slope_at_end == 0.0 || (slope_at_end < 0.0) == falls {
        return end;
    }

    // In log β: the slope is negative at `falling` and positive at `rising`.
    let (mut falling, mut rising) = if falls { (0.0, -end.ln()) } else { (-end.ln(), 0.0) };
    let mut at = 0.0f64;
    let mut last_step: f64 = rising - falling;
    for _ in 0..STEPS {
        let newton = at - now.slope / (at.exp() * now.curvature);
        if (newton - at).abs() <= TOLERANCE || rising - falling <= TOLERANCE {
            break;
        }
        // Take Newton's step if it is at most half the last one; otherwise bisect the bracket.
        // Either way the bracket stays no narrower than the last step, so no step leaves it.
        let shrinks = 2.0 * (newton - at).abs() <= last_step;
        let next = if shrinks { newton } else { falling.midpoint(rising) };
        last_step = (next - at).abs();
        at = next;
        now = derivatives(at.exp());
        if now.slope < 0.0 {
            falling = at;
        } else {
            rising = at;
        }
    }
    (-at).exp()
}

/// The largest log p, and mean and variance of (log p − largest) under softmax(β log p), as slope
/// and curvature.
fn under_softmax(row: &[f32], beta: f64) -> (f64, Derivatives) {
    let peak = peak(row);
    let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
    for log_p in row.iter().filter(|log_p| **log_p > f32::NEG_INFINITY) {
        let relative = *log_p as f64 - peak;
        let weight = (beta * relative).exp();
        total += weight;
        first += weight * relative;
        second += weight * relative * relative;
    }
    let mean = first / total;
    // Rounding can make a variance of zero negative.
    let variance = (second / total - mean * mean).max(0.0);
    (peak, Derivatives { slope: mean, curvature: variance })
}

fn peak(row: &[f32]) -> f64 {
    row.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64
}

fn sigmoid(logit: f64) -> f64 {
    log_sigmoid(logit).exp()
}

fn log_sigmoid(logit: f64) -> f64 {
    logit.min(0.0) - (-logit.abs()).exp().ln_1p()
}

/// Converts to f32; finite values stay finite.
fn narrow(value: f64) -> f32 {
    if value == f64::NEG_INFINITY { f32::NEG_INFINITY } else { value.max(f32::MIN as f64) as f32 }
}

fn check_temperature(temperature: f64) {
    assert!(
        temperature > 0.0 && temperature.is_finite(),
        "temperature is {temperature}, expected a finite number above 0"
    );
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The fitted β and the number of evaluations, where every prediction has this logit and this
    /// share of them is wrong.
    fn fit(logit: f64, share: f64) -> (f64, usize) {
        let calls = Cell::new(0);
        let temperature = minimise(|beta| {
            calls.set(calls.get() + 1);
            let wrong = sigmoid(-beta * logit);
            let curvature = wrong * (1.0 - wrong) * logit * logit;
            Derivatives { slope: (share - wrong) * logit, curvature }
        });
        (1.0 / temperature, calls.get())
    }

    #[test]
    fn the_curvature_is_the_derivative_of_the_slope() {
        let row = [-0.2, -1.7, -9.0, f32::NEG_INFINITY];
        for beta in [0.1, 1.0, 3.0] {
            let slope = |beta| under_softmax(&row, beta).1.slope;
            let difference = (slope(beta + 1e-5) - slope(beta - 1e-5)) / 2e-5;
            let curvature = under_softmax(&row, beta).1.curvature;
            // The difference quotient is wrong by 1e-10 times a third derivative of at most 100.
            assert!((difference - curvature).abs() < 1e-8, "{beta}: {difference}, {curvature}");
        }
    }

    #[test]
    fn the_minimum_is_found_in_few_steps_where_newtons_method_creeps() {
        // Newton's steps in β are 1 here, and β = ln 10³⁰ = 69.
        let (beta, calls) = fit(1.0, 1e-30);
        assert!((beta / 1e30f64.ln() - 1.0).abs() < 1e-9, "{beta}");
        assert!(calls <= 25, "{calls}");
    }

    #[test]
    fn the_minimum_is_found_where_newtons_first_step_leaves_the_range() {
        for logit in [50.0, 200.0] {
            let (beta, calls) = fit(logit, 0.4);
            assert!((beta * logit / 1.5f64.ln() - 1.0).abs() < 1e-9, "{beta}");
            assert!(calls <= 25, "{calls}");
        }
    }
}
