//! How much more often errors look like this than labels do: a regression on planted errors.
//!
//! Let f₁ be the density of the evidence u of planted errors and f = (1 − ε) f₀ + ε f₁ that of the
//! given labels, of which a share ε is wrong too and looks like the planted ones. With
//! f₁/f₀ = e^η and η = β₀ + Σ β_m u_m, the odds that a label is a planted one are
//!
//! κ e^η / (1 − ε + ε e^η),  κ = planted : given.
//!
//! They rise with the evidence and level off at κ/ε, because the most extreme given labels are
//! wrong as well; so β and ε are both learned, by maximum likelihood, without the truth. A given
//! label with this evidence is wrong with probability ε e^η / (1 − ε + ε e^η).

use rayon::prelude::*;

/// Labels with their evidence, `[N, M]`.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub evidence: Vec<f64>,
    /// How much each counts.
    pub weights: Vec<f64>,
}

impl Labels {
    fn rows(&self, sources: usize) -> impl Iterator<Item = (&[f64], f64)> {
        self.evidence.chunks_exact(sources).zip(self.weights.iter().copied())
    }
}

/// The learned law of the odds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Odds {
    intercept: f64,
    /// β of each source, none negative.
    pub slopes: Vec<f64>,
    /// log(ε/(1 − ε)).
    log_odds_wrong: f64,
}

/// Newton's steps at most, and the change of the mean log-likelihood that ends them.
const STEPS: usize = 200;
const TOLERANCE: f64 = 1e-10;
/// A slight pull of all parameters to zero, so that a maximum exists where nothing is wrong.
const PULL: f64 = 1e-6;
/// Where the search for ε starts; the likelihood may have two maxima.
const STARTS: [f64; 2] = [-4.0, -1.5];
/// ε stays between e^−14 and 98 %.
const LIMITS: (f64, f64) = (-14.0, 4.0);
/// The logarithm of a slope stays in this range; the lower end is as good as no slope.
const SLOPES: (f64, f64) = (-8.0, 4.0);

impl Odds {
    /// Learns from the given labels and planted errors. The weights of the planted ones matter
    /// only relative to each other.
    pub fn learn(given: &Labels, planted: &Labels, sources: usize, prior: Prior) -> Self {
        let mut scales = vec![0.0; sources];
        for (row, _) in given.rows(sources).chain(planted.rows(sources)) {
            scales.iter_mut().zip(row).for_each(|(sum, value)| *sum += value * value);
        }
        let count = (given.weights.len() + planted.weights.len()) as f64;
        scales.iter_mut().for_each(|sum| *sum = (*sum / count).sqrt().max(f64::MIN_POSITIVE));
        let problem = Problem { given, planted, scales: &scales, prior };
        let best = STARTS
            .iter()
            .map(|start| problem.maximise(*start))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .expect("two starts");
        let parameters = best.0;
        let slopes = parameters[1..=sources].iter().zip(&scales);
        Self {
            intercept: parameters[0],
            slopes: slopes.map(|(log, scale)| log.exp() / scale).collect(),
            log_odds_wrong: parameters[sources + 1],
        }
    }

    /// The weighted sum of the evidence: η without its constant.
    pub fn combined(&self, evidence: &[f64]) -> f64 {
        self.slopes.iter().zip(evidence).map(|(slope, value)| slope * value).sum()
    }

    /// The log-odds of being wrong without their evidence.
    pub fn constant(&self) -> f64 {
        self.log_odds_wrong + self.intercept
    }

    /// The probability that a given label with this evidence is wrong.
    pub fn wrong(&self, evidence: &[f64]) -> f64 {
        let log_odds = self.constant() + self.combined(evidence);
        1.0 / (1.0 + (-log_odds).exp())
    }
}

/// The likelihood of which labels are planted. Parameters: β₀, log β_m of scaled evidence,
/// log(ε/(1 − ε)).
struct Problem<'a> {
    given: &'a Labels,
    planted: &'a Labels,
    /// Root mean squares of the evidence.
    scales: &'a [f64],
    prior: Prior,
}

impl Problem<'_> {
    fn sources(&self) -> usize {
        self.scales.len()
    }

    /// Newton's method with a damping that grows until a step helps.
    fn maximise(&self, start: f64) -> (Vec<f64>, f64) {
        let size = self.sources() + 2;
        let mut at = vec![0.0; size];
        (at[0], at[size - 1]) = (-3.0, start);
        let mut here = self.evaluate(&at);
        let mut damping = 1e-3;
        for _ in 0..STEPS {
            let mut gained = None;
            while damping < 1e12 {
                let next = self.bounded(&at, &solve(&here.curvature, &here.gradient, damping));
                let there = self.evaluate(&next);
                if there.value > here.value {
                    gained = Some((next, there));
                    break;
                }
                damping *= 4.0;
            }
            let Some((next, there)) = gained else { break };
            let gain = there.value - here.value;
            (at, here) = (next, there);
            damping = (damping / 10.0).max(1e-12);
            if gain < TOLERANCE {
                break;
            }
        }
        (at, here.value)
    }

    fn bounded(&self, at: &[f64], step: &[f64]) -> Vec<f64> {
        let last = at.len() - 1;
        let moved = at.iter().zip(step).enumerate();
        moved
            .map(|(index, (at, step))| match index {
                0 => at + step,
                _ if index == last => (at + step).clamp(LIMITS.0, LIMITS.1),
                _ => (at + step).clamp(SLOPES.0, SLOPES.1),
            })
            .collect()
    }

    /// The mean log-likelihood with its derivatives.
    fn evaluate(&self, at: &[f64]) -> Expansion {
        let sources = self.sources();
        let given: f64 = self.given.weights.iter().sum();
        // Planted errors count as a twentieth of the labels, however many there are.
        let planted: f64 = self.planted.weights.iter().sum();
        let share = if planted > 0.0 { PLANTED_SHARE * given / planted } else { 0.0 };
        let slopes = at[1..=sources].iter().zip(self.scales);
        let law = Law {
            intercept: at[0],
            slopes: slopes.map(|(log, scale)| log.exp() / scale).collect(),
            wrong: (-softplus(-at[sources + 1])).exp(),
            right: (-softplus(at[sources + 1])).exp(),
        };
        let mut all = law.sums(self.given, false);
        all.add(&law.sums(self.planted, true), share);
        self.prior.add(at, self.scales, &mut all);
        let total = given * (1.0 + PLANTED_SHARE);
        all.value = all.value / total - PULL * at.iter().map(|value| value * value).sum::<f64>();
        for (row, (slope, at)) in all.gradient.iter_mut().zip(at).enumerate() {
            *slope = *slope / total - 2.0 * PULL * at;
            all.curvature[row].iter_mut().for_each(|value| *value /= total);
            all.curvature[row][row] += 2.0 * PULL;
        }
        all
    }
}

/// A function of the parameters near a point.
#[derive(Clone, Debug)]
struct Expansion {
    value: f64,
    gradient: Vec<f64>,
    /// Minus the second derivatives.
    curvature: Vec<Vec<f64>>,
}

impl Expansion {
    fn zero(size: usize) -> Self {
        Self { value: 0.0, gradient: vec![0.0; size], curvature: vec![vec![0.0; size]; size] }
    }

    fn add(&mut self, other: &Self, factor: f64) {
        let add = |sums: &mut [f64], values: &[f64]| {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
        };
        self.value += factor * other.value;
        add(&mut self.gradient, &other.gradient);
        let rows = self.curvature.iter_mut().zip(&other.curvature);
        rows.for_each(|(sums, values)| add(sums, values));
    }
}

/// The parameters as they act on evidence.
struct Law {
    intercept: f64,
    slopes: Vec<f64>,
    /// ε and 1 − ε.
    wrong: f64,
    right: f64,
}

/// Labels whose terms are added by one task. Sums are added in the order of the tasks, so that the
/// number of threads changes nothing.
const LABELS: usize = 4096;

impl Law {
    /// The weighted sums over labels of the log-likelihood and its derivatives.
    fn sums(&self, labels: &Labels, are_planted: bool) -> Expansion {
        let sources = self.slopes.len();
        let tasks = labels.evidence.par_chunks(LABELS * sources);
        let tasks = tasks.zip(labels.weights.par_chunks(LABELS));
        let sums = tasks.map(|(evidence, weights)| {
            let mut sums = Expansion::zero(sources + 2);
            let mut slopes = vec![0.0; sources + 1];
            for (row, weight) in evidence.chunks_exact(sources).zip(weights) {
                self.add(row, *weight, are_planted, &mut slopes, &mut sums);
            }
            sums
        });
        let mut total = Expansion::zero(sources + 2);
        sums.collect::<Vec<_>>().iter().for_each(|sums| total.add(sums, 1.0));
        total
    }

    /// Adds one label; `slopes` is memory for those of η by all parameters but the last.
    fn add(
        &self,
        row: &[f64],
        weight: f64,
        is_planted: bool,
        slopes: &mut [f64],
        sums: &mut Expansion,
    ) {
        slopes[0] = 1.0;
        let terms = row.iter().zip(&self.slopes).map(|(value, slope)| value * slope);
        slopes[1..].iter_mut().zip(terms).for_each(|(slope, term)| *slope = term);
        let eta = self.intercept + slopes[1..].iter().sum::<f64>();
        let term = self.term(eta, is_planted);
        let last = slopes.len();
        sums.value += weight * term.value;
        sums.gradient[last] += weight * term.by_odds;
        sums.curvature[last][last] -= weight * term.by_odds_twice;
        for (at, slope) in slopes.iter().enumerate() {
            sums.gradient[at] += weight * term.by_eta * slope;
            let both = weight * term.by_both * slope;
            sums.curvature[at][last] -= both;
            sums.curvature[last][at] -= both;
            let twice = weight * term.by_eta_twice * slope;
            let columns = sums.curvature[at].iter_mut().zip(&*slopes);
            columns.for_each(|(sum, slope)| *sum -= twice * slope);
            // η is the exponential of the logarithms of slopes, whose derivative is itself.
            if at > 0 {
                sums.curvature[at][at] -= weight * term.by_eta * slope;
            }
        }
    }

    /// The log-likelihood of a label, and its derivatives by η and by the log-odds of ε.
    fn term(&self, eta: f64, is_planted: bool) -> Term {
        let Self { wrong, right, .. } = *self;
        // e^η and 1, divided by the larger of them.
        let small = (-eta.abs()).exp();
        let (error, one) = if eta > 0.0 { (1.0, small) } else { (small, 1.0) };
        let planted = PLANTED_SHARE * error;
        let label = right * one + wrong * error;
        let total = planted + label;
        // Derivatives of log(label), then those of the derivatives.
        let eta_slope = wrong * error / label;
        let odds_slope = wrong * right * (error - one) / label;
        let eta_twice = eta_slope * (1.0 - eta_slope);
        let both = eta_slope * (right - odds_slope);
        let odds_twice = odds_slope * (right - wrong - odds_slope);
        // The share of planted ones, and the derivatives of log(total).
        let (share, rest) = (planted / total, label / total);
        let mean = share + rest * eta_slope;
        let share_by_odds = -share * rest * odds_slope;
        let mean_by_eta = share * (1.0 - mean) * (1.0 - eta_slope) + rest * eta_twice;
        let mean_by_odds = share_by_odds * (1.0 - eta_slope) + rest * both;
        match is_planted {
            true => Term {
                // The logarithm of e^η where e^η itself would be zero.
                value: PLANTED_SHARE.ln() + eta.min(0.0) - total.ln(),
                by_eta: 1.0 - mean,
                by_odds: -rest * odds_slope,
                by_eta_twice: -mean_by_eta,
                by_both: -mean_by_odds,
                by_odds_twice: share_by_odds * odds_slope - rest * odds_twice,
            },
            false => Term {
                value: rest.ln(),
                by_eta: eta_slope - mean,
                by_odds: share * odds_slope,
                by_eta_twice: eta_twice - mean_by_eta,
                by_both: both - mean_by_odds,
                by_odds_twice: share_by_odds * odds_slope + share * odds_twice,
            },
        }
    }
}

/// What one label adds to the log-likelihood and its derivatives.
struct Term {
    value: f64,
    by_eta: f64,
    by_odds: f64,
    by_eta_twice: f64,
    by_both: f64,
    by_odds_twice: f64,
}

/// The labels that the prior counts for.
const PRIOR: f64 = 1.0;

/// What is believed of the parameters before any label is seen: few labels say little about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Prior {
    /// The share of wrong labels.
    pub share: f64,
    /// The constant of the log-odds of being wrong. The first kind of evidence is believed as it
    /// is, β = 1, and every other a little.
    pub constant: f64,
}

/// β of evidence that is believed a little.
const A_LITTLE: f64 = 0.3;

impl Prior {
    /// Adds [`PRIOR`] times the logarithm of its density.
    fn add(self, at: &[f64], scales: &[f64], sums: &mut Expansion) {
        let last = at.len() - 1;
        let mut value = 0.0;
        for (index, scale) in scales.iter().enumerate() {
            let expected = if index == 0 { 1.0 } else { A_LITTLE };
            let distance = at[index + 1] - (expected * scale).ln();
            value -= 0.5 * distance * distance;
            sums.gradient[index + 1] -= PRIOR * distance;
            sums.curvature[index + 1][index + 1] += PRIOR;
        }
        let distance = at[0] + at[last] - self.constant;
        value -= 0.5 * distance * distance;
        sums.gradient[0] -= PRIOR * distance;
        for (row, column) in [(0, 0), (0, last), (last, 0), (last, last)] {
            sums.curvature[row][column] += PRIOR;
        }
        let (log_wrong, log_right) = (-softplus(-at[last]), -softplus(at[last]));
        value += self.share * log_wrong + (1.0 - self.share) * log_right;
        sums.gradient[last] += PRIOR * (self.share - log_wrong.exp() - distance);
        sums.curvature[last][last] += PRIOR * (log_wrong + log_right).exp();
        sums.value += PRIOR * value;
    }
}

/// κ of the regression.
const PLANTED_SHARE: f64 = 0.05;

fn softplus(value: f64) -> f64 {
    value.max(0.0) + (-value.abs()).exp().ln_1p()
}

/// (A + damping · (diag A⁺ + 1)) x = b, by elimination with pivots.
fn solve(matrix: &[Vec<f64>], right: &[f64], damping: f64) -> Vec<f64> {
    let size = right.len();
    let mut rows: Vec<Vec<f64>> = (0..size)
        .map(|row| {
            let mut all: Vec<f64> =
                (0..size).map(|column| 0.5 * (matrix[row][column] + matrix[column][row])).collect();
            all[row] += damping * (1.0 + all[row].abs());
            all.push(right[row]);
            all
        })
        .collect();
    for column in 0..size {
        let largest =
            |a: &usize, b: &usize| rows[*a][column].abs().total_cmp(&rows[*b][column].abs());
        let pivot = (column..size).max_by(largest).expect("a row");
        rows.swap(column, pivot);
        let lead = rows[column].clone();
        if lead[column] == 0.0 {
            continue;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / lead[column];
            row.iter_mut().zip(&lead).for_each(|(value, lead)| *value -= factor * lead);
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| rows[row][at] * solution[at]).sum();
        let pivot = rows[row][row];
        solution[row] = if pivot == 0.0 { 0.0 } else { (rows[row][size] - known) / pivot };
    }
    solution
}

#[cfg(test)]
mod tests;
