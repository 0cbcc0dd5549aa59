//! Instance-dependent noise: harder examples flip more, toward the classes they resemble.
//!
//! The given label of input x with true class y is drawn from
//!
//! ```text
//! P(given = k | x, y) ∝ exp( β s_k(x) + b·[k = y] ),    s_k(x) = −½ Σ_j (x_j − m_kj)² / v_j
//! ```
//!
//! - m_k is the mean of class k, without x itself in its own class; v the variance within classes,
//!   shared by all of them. s_k is how much x resembles class k.
//! - β = 2 / sd(margin), with margin = s_y − max over k ≠ y of s_k: one standard deviation of the
//!   margin changes the odds of a flip by about e². Neither the number of features nor their scale
//!   changes how uneven the noise is; unscaled, s is so steep in many features that the hardest
//!   examples would always flip and all others never.
//! - b, what annotators know apart from resemblance, is chosen so that the mean probability of a flip
//!   is the rate.
//!
//! So the odds of a flip are e^(−b) Σ_{k≠y} exp(β (s_k − s_y)), and where it goes is softmax of β s
//! over k ≠ y. A class without examples is never given.

use crate::draws::{self, Purpose};
use crate::error::DataError;
use crate::ids::Ids;
use crate::inputs::Inputs;

/// The log-odds of a flip that one standard deviation of the margin is worth.
const STEEPNESS: f64 = 2.0;

/// A share of the total variance that is added to the variance within classes, so that a feature
/// that is constant within classes does not decide alone.
const VARIANCE_FLOOR: f64 = 1e-3;

pub(super) fn corrupt(
    labels: &[u32],
    classes: usize,
    ids: &Ids,
    inputs: &Inputs,
    seed: u64,
    rate: f64,
) -> Result<Vec<u32>, DataError> {
    let resemblance = Resemblance::fit(labels, classes, inputs)?;
    let mut margins = Vec::with_capacity(labels.len());
    resemblance.for_each(labels, inputs, |_, scores| {
        margins.push(scores.own - scores.best_other);
    })?;
    let deviation = standard_deviation(&margins);
    let steepness = if deviation > 0.0 { STEEPNESS / deviation } else { 0.0 };

    // The distribution of the wrong label does not depend on b, so it is drawn first: nothing
    // of size N × K is kept.
    let mut flip_log_odds = Vec::with_capacity(labels.len());
    let mut wrong = Vec::with_capacity(labels.len());
    resemblance.for_each(labels, inputs, |index, Scores { own, best_other, others }| {
        let odds =
            others.iter().map(|(class, score)| (*class, (steepness * (score - best_other)).exp()));
        let total: f64 = odds.clone().map(|(_, odds)| odds).sum();
        flip_log_odds.push(total.ln() + steepness * (best_other - own));
        let unit = draws::unit(seed, Purpose::Wrong, &[ids.key(index)]);
        wrong.push(choose(odds, unit * total));
    })?;

    let knowledge = solve_knowledge(&flip_log_odds, rate);
    let given = (0..labels.len()).map(|index| {
        let prob = sigmoid(flip_log_odds[index] - knowledge);
        let flips = draws::unit(seed, Purpose::Flip, &[ids.key(index)]) < prob;
        if flips { wrong[index] } else { labels[index] }
    });
    Ok(given.collect())
}

/// How much inputs resemble the classes.
struct Resemblance {
    /// m_k √(1/v), `[K, D]`.
    means: Vec<f64>,
    /// The same of all examples, `[D]`.
    centre: Vec<f64>,
    /// √(1/v), `[D]`; 0 for a feature that never changes.
    scale: Vec<f64>,
    /// Examples of each class, `[K]`.
    counts: Vec<usize>,
}

/// How much one example resembles the classes.
struct Scores<'a> {
    /// s_y.
    own: f64,
    /// max over k ≠ y of s_k.
    best_other: f64,
    /// (k, s_k) for k ≠ y that have examples.
    others: &'a [(u32, f64)],
}

impl Resemblance {
    fn fit(labels: &[u32], classes: usize, inputs: &Inputs) -> Result<Self, DataError> {
        let width = inputs.shape().len();
        let mut counts = vec![0; classes];
        let mut means = vec![0.0; classes * width];
        let mut centre = vec![0.0; width];
        for_each_input(inputs, |row, input| {
            let class = labels[row] as usize;
            counts[class] += 1;
            add(&mut means[class * width..][..width], input);
            add(&mut centre, input);
        })?;
        if counts.iter().filter(|count| **count > 0).count() < 2 {
            let message = "kind = \"instance\" needs examples of at least two classes";
            return Err(DataError::invalid("data.noise", message));
        }
        for (mean, count) in means.chunks_exact_mut(width).zip(&counts) {
            mean.iter_mut().for_each(|sum| *sum /= (*count).max(1) as f64);
        }
        centre.iter_mut().for_each(|sum| *sum /= labels.len() as f64);
        let scale = scales(labels, inputs, &means, &centre)?;
        for mean in means.chunks_exact_mut(width).chain([&mut centre[..]]) {
            mean.iter_mut().zip(&scale).for_each(|(mean, scale)| *mean *= scale);
        }
        Ok(Self { means, centre, scale, counts })
    }

    fn for_each(
        &self,
        labels: &[u32],
        inputs: &Inputs,
        mut see: impl FnMut(usize, Scores),
    ) -> Result<(), DataError> {
        let width = self.scale.len();
        let mut scaled = vec![0.0; width];
        let mut others = vec![];
        for_each_input(inputs, |row, input| {
            for ((scaled, value), scale) in scaled.iter_mut().zip(input).zip(&self.scale) {
                *scaled = f64::from(*value) * scale;
            }
            let label = labels[row] as usize;
            let score = |mean: &[f64]| -0.5 * squared_distance(&scaled, mean);
            let mean = |class: usize| &self.means[class * width..][..width];
            others.clear();
            others.extend((0..self.counts.len()).filter_map(|class| {
                let counts = class != label && self.counts[class] > 0;
                counts.then(|| (class as u32, score(mean(class))))
            }));
            // Without x the mean of its n examples is n / (n − 1) times as far away.
            let own = match self.counts[label] {
                1 => score(&self.centre),
                count => score(mean(label)) * (count as f64 / (count - 1) as f64).powi(2),
            };
            let best_other = others.iter().map(|(_, score)| *score).fold(f64::MIN, f64::max);
            see(row, Scores { own, best_other, others: &others });
        })
    }
}

/// √(1/v) of each feature.
fn scales(
    labels: &[u32],
    inputs: &Inputs,
    means: &[f64],
    centre: &[f64],
) -> Result<Vec<f64>, DataError> {
    let width = centre.len();
    let (mut within, mut total) = (vec![0.0; width], vec![0.0; width]);
    for_each_input(inputs, |row, input| {
        let mean = &means[labels[row] as usize * width..][..width];
        for (feature, value) in input.iter().enumerate() {
            within[feature] += (f64::from(*value) - mean[feature]).powi(2);
            total[feature] += (f64::from(*value) - centre[feature]).powi(2);
        }
    })?;
    let count = labels.len() as f64;
    let scale = |(within, total): (&f64, &f64)| {
        if *total > 0.0 { ((within + VARIANCE_FLOOR * total) / count).sqrt().recip() } else { 0.0 }
    };
    Ok(within.iter().zip(&total).map(scale).collect())
}

fn for_each_input(inputs: &Inputs, mut see: impl FnMut(usize, &[f32])) -> Result<(), DataError> {
    let mut input = vec![0.0; inputs.shape().len()];
    for row in 0..inputs.len() {
        inputs.read(row, &mut input)?;
        see(row, &input);
    }
    Ok(())
}

fn add(sums: &mut [f64], input: &[f32]) {
    sums.iter_mut().zip(input).for_each(|(sum, value)| *sum += f64::from(*value));
}

/// Eight sums side by side, which the compiler turns into vectors.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let (whole_a, rest_a) = a.as_chunks::<8>();
    let (whole_b, rest_b) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in whole_a.iter().zip(whole_b) {
        for lane in 0..8 {
            sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f64>() + rest
}

fn standard_deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// b: the mean of sigmoid(log-odds − b) falls in b, so halving finds where it is the rate.
fn solve_knowledge(flip_log_odds: &[f64], rate: f64) -> f64 {
    if rate <= 0.0 || rate >= 1.0 {
        return if rate <= 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    let mean = |b: f64| {
        let probs = flip_log_odds.iter().map(|odds| sigmoid(odds - b));
        probs.sum::<f64>() / flip_log_odds.len() as f64
    };
    // Here every probability rounds to 1, or is below 1e-20.
    let mut low = flip_log_odds.iter().copied().fold(f64::MAX, f64::min) - 50.0;
    let mut high = flip_log_odds.iter().copied().fold(f64::MIN, f64::max) + 50.0;
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if mean(middle) > rate { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// The class at which the running sum of `odds` passes `target`.
fn choose(odds: impl Iterator<Item = (u32, f64)>, target: f64) -> u32 {
    let mut running = 0.0;
    let mut last = 0;
    for (class, odds) in odds.filter(|(_, odds)| *odds > 0.0) {
        running += odds;
        last = class;
        if running > target {
            break;
        }
    }
    last
}
