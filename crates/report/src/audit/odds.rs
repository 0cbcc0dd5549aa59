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

    /// Newton's method with a damping that grows until a step helps; derivatives of the gradient by
    /// differences, as there are four parameters at most.
    fn maximise(&self, start: f64) -> (Vec<f64>, f64) {
        let size = self.sources() + 2;
        let mut at = vec![0.0; size];
        (at[0], at[size - 1]) = (-3.0, start);
        let (mut value, mut gradient) = self.evaluate(&at);
        let mut damping = 1e-3;
        for _ in 0..STEPS {
            let curvature = self.curvature(&at, &gradient);
            let mut gained = None;
            while damping < 1e12 {
                let next = self.bounded(&at, &solve(&curvature, &gradient, damping));
                let (found, slope) = self.evaluate(&next);
                if found > value {
                    gained = Some((next, found, slope));
                    break;
                }
                damping *= 4.0;
            }
            let Some((next, found, slope)) = gained else { break };
            let gain = found - value;
            (at, value, gradient) = (next, found, slope);
            damping = (damping / 10.0).max(1e-12);
            if gain < TOLERANCE {
                break;
            }
        }
        (at, value)
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

    /// Minus the second derivatives.
    fn curvature(&self, at: &[f64], gradient: &[f64]) -> Vec<Vec<f64>> {
        const STEP: f64 = 1e-5;
        let column = |index: usize| {
            let mut near = at.to_vec();
            near[index] += STEP;
            let (_, there) = self.evaluate(&near);
            gradient.iter().zip(there).map(|(here, there)| (here - there) / STEP).collect()
        };
        (0..at.len()).map(column).collect()
    }

    /// The mean log-likelihood and its gradient.
    fn evaluate(&self, at: &[f64]) -> (f64, Vec<f64>) {
        let sources = self.sources();
        let given: f64 = self.given.weights.iter().sum();
        // Planted errors count as a twentieth of the labels, however many there are.
        let share = PLANTED_SHARE * given / self.planted.weights.iter().sum::<f64>();
        let law = Law {
            intercept: at[0],
            slopes: at[1..=sources]
                .iter()
                .zip(self.scales)
                .map(|(log, scale)| log.exp() / scale)
                .collect(),
            wrong: (-softplus(-at[sources + 1])).exp(),
            right: (-softplus(at[sources + 1])).exp(),
        };
        let of_given = law.sums(self.given, false);
        let of_planted = law.sums(self.planted, true);
        let sums: Vec<f64> = of_given.iter().zip(&of_planted).map(|(a, b)| a + share * b).collect();
        let (mut value, mut gradient) = (sums[0], sums[1..].to_vec());
        value += PRIOR * self.prior.add(at, self.scales, &mut gradient);
        let total = given * (1.0 + PLANTED_SHARE);
        let pull: f64 = at.iter().map(|value| value * value).sum();
        let gradient = gradient.iter().zip(at).map(|(sum, at)| sum / total - 2.0 * PULL * at);
        (value / total - PULL * pull, gradient.collect())
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
    /// The weighted sums of the log-likelihood and of its slopes by the parameters.
    fn sums(&self, labels: &Labels, are_planted: bool) -> Vec<f64> {
        let sources = self.slopes.len();
        let tasks = labels.evidence.par_chunks(LABELS * sources);
        let tasks = tasks.zip(labels.weights.par_chunks(LABELS));
        let sums = tasks.map(|(evidence, weights)| {
            let mut sums = vec![0.0; sources + 3];
            for (row, weight) in evidence.chunks_exact(sources).zip(weights) {
                self.add(row, *weight, are_planted, &mut sums);
            }
            sums
        });
        let mut total = vec![0.0; sources + 3];
        for sums in sums.collect::<Vec<_>>() {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        total
    }

    fn add(&self, row: &[f64], weight: f64, is_planted: bool, sums: &mut [f64]) {
        let terms = row.iter().zip(&self.slopes).map(|(value, slope)| value * slope);
        let eta = self.intercept + terms.clone().sum::<f64>();
        // e^η and 1, divided by the larger of them.
        let small = (-eta.abs()).exp();
        let (error, one) = if eta > 0.0 { (1.0, small) } else { (small, 1.0) };
        let planted = PLANTED_SHARE * error;
        let label = self.right * one + self.wrong * error;
        let total = planted + label;
        // Slopes of log(label) by η and by the log-odds of ε, and the share of planted ones.
        let by_eta = self.wrong * error / label;
        let by_odds = self.wrong * self.right * (error - one) / label;
        let share = planted / total;
        let (log, own_eta, own_odds) = match is_planted {
            // The logarithm of e^η where e^η itself would be zero.
            true => (PLANTED_SHARE.ln() + eta.min(0.0) - total.ln(), 1.0, 0.0),
            false => ((label / total).ln(), by_eta, by_odds),
        };
        let slope = weight * (own_eta - share - (1.0 - share) * by_eta);
        sums[0] += weight * log;
        sums[1] += slope;
        sums[2..].iter_mut().zip(terms).for_each(|(sum, term)| *sum += slope * term);
        sums[self.slopes.len() + 2] += weight * (own_odds - (1.0 - share) * by_odds);
    }
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
    /// The logarithm of its density; adds [`PRIOR`] times the derivatives.
    fn add(self, at: &[f64], scales: &[f64], gradient: &mut [f64]) -> f64 {
        let last = at.len() - 1;
        let mut value = 0.0;
        for (index, scale) in scales.iter().enumerate() {
            let expected = if index == 0 { 1.0 } else { A_LITTLE };
            let distance = at[index + 1] - (expected * scale).ln();
            value -= 0.5 * distance * distance;
            gradient[index + 1] -= PRIOR * distance;
        }
        let distance = at[0] + at[last] - self.constant;
        value -= 0.5 * distance * distance;
        gradient[0] -= PRIOR * distance;
        let (log_wrong, log_right) = (-softplus(-at[last]), -softplus(at[last]));
        value += self.share * log_wrong + (1.0 - self.share) * log_right;
        gradient[last] += PRIOR * (self.share - log_wrong.exp() - distance);
        value
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
mod tests {
    use aleator_metrics::normal_cdf;

    use super::*;

    /// Evidence of right labels from N(−2, 1), of wrong ones from N(2, 1): e^η has β = 4.
    fn labels(count: usize, wrong: f64) -> Labels {
        let quantile = |share: f64| {
            let (mut low, mut high) = (-9.0, 9.0);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if normal_cdf(middle) < share { low = middle } else { high = middle }
            }
            low
        };
        let errors = (wrong * count as f64).round() as usize;
        let spread = |at: usize, of: usize| quantile((at as f64 + 0.5) / of as f64);
        let right = (0..count - errors).map(|at| spread(at, count - errors) - 2.0);
        let evidence = right.chain((0..errors).map(|at| spread(at, errors) + 2.0)).collect();
        Labels { evidence, weights: vec![1.0; count] }
    }

    #[test]
    fn the_share_of_wrong_labels_and_the_slope_are_recovered_without_the_truth() {
        let planted = labels(1000, 1.0);
        for share in [0.02, 0.1, 0.3] {
            let given = labels(5000, share);
            let odds = Odds::learn(&given, &planted, 1, Prior { share, constant: 0.0 });
            assert!((odds.slopes[0] - 4.0).abs() < 0.2, "{share}: {odds:?}");
            let count: f64 = given.evidence.iter().map(|value| odds.wrong(&[*value])).sum();
            let expected = share * 5000.0;
            assert!((count - expected).abs() < 0.05 * expected + 2.0, "{share}: {count}");
        }
    }

    #[test]
    fn where_no_label_looks_like_an_error_none_is_wrong() {
        let given = labels(5000, 0.0);
        let odds = Odds::learn(&given, &labels(1000, 1.0), 1, Prior { share: 0.0, constant: 0.0 });
        let count: f64 = given.evidence.iter().map(|value| odds.wrong(&[*value])).sum();
        assert!(count < 5.0, "{count}");
    }

    #[test]
    fn the_gradient_is_that_of_the_likelihood() {
        let (given, planted) = (labels(40, 0.2), labels(10, 1.0));
        let prior = Prior { share: 0.3, constant: 0.5 };
        let problem = Problem { given: &given, planted: &planted, scales: &[2.0], prior };
        let at = [-1.0, 0.3, -1.5];
        let (_, gradient) = problem.evaluate(&at);
        for index in 0..3 {
            let near = |step: f64| {
                let mut there = at;
                there[index] += step;
                problem.evaluate(&there).0
            };
            let expected = (near(1e-5) - near(-1e-5)) / 2e-5;
            assert!((gradient[index] - expected).abs() < 1e-8, "{index}: {gradient:?} {expected}");
        }
    }
}
