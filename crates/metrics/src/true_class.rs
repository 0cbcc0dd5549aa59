//! The probability of the true class, with the noise of the labels taken out.
//!
//! The true class of an example is drawn from t(x) = softmax(α u(x)), with u = μ/τ the mean of its
//! utilities, and its label from row c of a confusion matrix C if the true class is c:
//! `p(y | x) = Σ_c t_c(x) C_cy`. Only labels are seen. A network that learned from wrong labels
//! spreads u over the classes that they name; C explains this spread, so α may exceed 1.
//!
//! α and C are the mode of their posterior given the labels of examples that were not trained on,
//! in two stages, so that rows of C with few examples learn from all others:
//! 1. `C_cy = (1 − ε) [c = y] + ε f_y`, with f the frequencies of the labels: α and ε.
//! 2. Each row of C has a Dirichlet prior around its row of stage 1: α and C. Left out above
//!    [`MOST_CONFUSED`] classes, where hardly a row has the examples to outweigh its prior.
//!
//! For a given α, expectation maximisation finds ε or C; a search in log α surrounds it. Three
//! priors lead to "no noise, α = 1" where examples are few: ε has seen K correct labels, each row
//! of C has seen K labels as in stage 1, and log α is Normal with standard deviation log 2.
//! A label is right at least as often as any one mistake (C_cc ≥ C_cy): without this, classes that
//! exchange their labels could not be told from classes that exchange their names.

use serde::{Deserialize, Serialize};

use crate::calibration::scale_log_probs;
use crate::evaluation::Truth;

/// The law of the true class, and of the label given the true class.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct TrueClass {
    /// α: the true class has the law softmax(α μ/τ).
    pub sharpness: f64,
    /// The share of labels that differ from the true class, under this model.
    pub noise_rate: f64,
    /// C, `[K, K]`: the probability of each label, row by row of true classes; up to
    /// [`MOST_CONFUSED`] classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Vec<Vec<f64>>>,
}

/// The confusions of more classes than this are neither fitted one by one nor recorded.
pub const MOST_CONFUSED: usize = 256;

impl TrueClass {
    /// Fits utilities μ/τ, `[N, K]`, of examples that the model was not trained on, to their given
    /// labels. `None` for multilabel classes, and where no utility is finite.
    ///
    /// ```
    /// use aleator_metrics::{TrueClass, Truth};
    ///
    /// // Two classes that the network tells apart beyond doubt; one label in five is wrong.
    /// let utilities: Vec<f32> =
    ///     (0..2000).flat_map(|n| if n % 2 == 0 { [4.0, -4.0] } else { [-4.0, 4.0] }).collect();
    /// let labels = (0..2000).map(|n| (n + u32::from(n % 10 < 2)) % 2).collect();
    /// let fitted = TrueClass::fit(&utilities, 2, &Truth::Classes(labels)).unwrap();
    /// // The doubt is the labels', not the network's.
    /// assert!((fitted.noise_rate - 0.2).abs() < 0.01);
    /// assert!((fitted.sharpness - 1.0).abs() < 0.1);
    /// ```
    ///
    /// # Panics
    /// If the labels do not fit the utilities in size.
    pub fn fit(utilities: &[f32], classes: usize, given: &Truth) -> Option<Self> {
        let mut sample = TrueClassSample::new(utilities.len() / classes, classes);
        sample.add(utilities, given);
        sample.fit()
    }

    fn of(evidence: Evidence) -> Self {
        let classes = evidence.classes;
        let frequencies = evidence.label_frequencies();
        let flips = |log_alpha: f64| {
            let flips = Flips::fit(&evidence, log_alpha.exp(), &frequencies);
            (flips.log_posterior + log_prior(log_alpha), flips.rate)
        };
        let (log_alpha, rate) = maximise(flips);
        if classes > MOST_CONFUSED {
            let same = frequencies.iter().map(|frequency| 1.0 - rate * (1.0 - frequency));
            return Self::new(&evidence, log_alpha.exp(), same, None);
        }
        let around = Rows::around(rate, &frequencies);
        let confusion = |log_alpha: f64| {
            let (rows, log_posterior) = around.fit(&evidence, log_alpha.exp());
            (log_posterior + log_prior(log_alpha), rows)
        };
        let (log_alpha, rows) = maximise(confusion);
        let diagonal = rows.cells.iter().step_by(classes + 1).copied();
        Self::new(&evidence, log_alpha.exp(), diagonal, Some(&rows))
    }

    /// `diagonal` is that of C.
    fn new(
        evidence: &Evidence,
        sharpness: f64,
        diagonal: impl Iterator<Item = f64>,
        rows: Option<&Rows>,
    ) -> Self {
        let shares = evidence.mean_probabilities(sharpness);
        let right: f64 = shares.into_iter().zip(diagonal).map(|(share, cell)| share * cell).sum();
        let confusion = rows.map(|it| it.cells.chunks_exact(it.classes).map(<[f64]>::to_vec));
        Self {
            sharpness,
            noise_rate: (1.0 - right).clamp(0.0, 1.0),
            confusion: confusion.map(Iterator::collect),
        }
    }

    /// log t, `[N, K]`, from utilities μ/τ.
    ///
    /// # Panics
    /// If the utilities are not rows of `classes` numbers, or a row has no finite number.
    pub fn log_probs(&self, utilities: &[f32], classes: usize) -> Vec<f32> {
        let below_zero: Vec<f32> = utilities
            .chunks(classes)
            .flat_map(|row| {
                let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                row.iter().map(move |value| value - most)
            })
            .collect();
        scale_log_probs(&below_zero, classes, 1.0 / self.sharpness)
    }
}

/// Some of the utilities and labels of a split, which come batch by batch, to fit [`TrueClass`] to.
///
/// ```
/// use aleator_metrics::{TrueClass, TrueClassSample, Truth};
///
/// let row = |n: u32| if n % 3 == 0 { [1.0, -1.0] } else { [-1.0, 1.0] };
/// let mut sample = TrueClassSample::new(300, 2);
/// (0..300).for_each(|n| sample.add(&row(n), &Truth::Classes(vec![n % 2])));
/// let (all, labels) = ((0..300).flat_map(row).collect::<Vec<f32>>(), (0..300).map(|n| n % 2));
/// let whole = TrueClass::fit(&all, 2, &Truth::Classes(labels.collect()));
/// assert_eq!(sample.fit(), whole);
/// ```
#[derive(Clone, Debug)]
pub struct TrueClassSample {
    /// Every n-th example is held.
    every: usize,
    /// Examples that were added.
    seen: usize,
    evidence: Evidence,
}

impl TrueClassSample {
    /// For a split of `examples` examples.
    pub fn new(examples: usize, classes: usize) -> Self {
        /// The fit takes seconds up to this many numbers; more are represented by every n-th
        /// example.
        const MOST: usize = 1 << 21;
        let every = (examples * classes).div_ceil(MOST).max(1);
        let evidence = Evidence { classes, utilities: vec![], labels: vec![], total: 0.0 };
        Self { every, seen: 0, evidence }
    }

    /// Adds utilities μ/τ, `[N, K]`, and given labels. Multilabel classes are not held.
    ///
    /// # Panics
    /// If the labels do not fit the utilities in size.
    pub fn add(&mut self, utilities: &[f32], given: &Truth) {
        let classes = self.evidence.classes;
        let examples = utilities.len() / classes;
        match given {
            Truth::Classes(labels) => assert_eq!(labels.len(), examples, "labels must be [N]"),
            Truth::Soft(rows) => assert_eq!(rows.len(), utilities.len(), "labels must be [N, K]"),
            Truth::MultiHot(_) => return,
        }
        let first = self.seen.next_multiple_of(self.every) - self.seen;
        for example in (first..examples).step_by(self.every) {
            let cells = example * classes..(example + 1) * classes;
            let shares = |row: &[f32]| {
                let shares = row.iter().enumerate().filter(|(_, share)| **share > 0.0);
                shares.map(|(class, share)| (class, f64::from(*share))).collect()
            };
            let labels = match given {
                Truth::Classes(all) => vec![(all[example] as usize, 1.0)],
                Truth::Soft(all) => shares(&all[cells.clone()]),
                Truth::MultiHot(_) => vec![],
            };
            self.evidence.push(&utilities[cells], labels);
        }
        self.seen += examples;
    }

    /// The law; `None` for multilabel classes, and where no utility is finite.
    pub fn fit(self) -> Option<TrueClass> {
        (!self.evidence.labels.is_empty()).then(|| TrueClass::of(self.evidence))
    }
}

/// The log density of the prior of log α, apart from a constant.
fn log_prior(log_alpha: f64) -> f64 {
    const DEVIATION: f64 = std::f64::consts::LN_2;
    -0.5 * (log_alpha / DEVIATION).powi(2)
}

/// The log α that maximises the first number of `at`, and the second number there.
fn maximise<T>(at: impl Fn(f64) -> (f64, T)) -> (f64, T) {
    /// Four standard deviations of the prior on either side.
    const REACH: f64 = 4.0 * std::f64::consts::LN_2;
    /// The interval shrinks to REACH · 2 · 0.618²⁰ < 0.0004, far below the error of any estimate.
    const STEPS: usize = 20;
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (-REACH, REACH);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (at(left).0, at(right).0);
    for _ in 0..STEPS {
        if at_left < at_right {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = at(right).0;
        } else {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = at(left).0;
        }
    }
    let best = (low + high) / 2.0;
    (best, at(best).1)
}

/// EM stops when a step gains less than this per label, or after `STEPS` steps.
const GAIN: f64 = 1e-7;
const STEPS: usize = 300;

/// Utilities and labels.
#[derive(Clone, Debug)]
struct Evidence {
    classes: usize,
    /// `[N, K]`; the largest of each row is 0.
    utilities: Vec<f64>,
    /// Example, class and share of each label; of soft labels all with a share above 0.
    labels: Vec<(usize, usize, f64)>,
    /// The sum of the shares.
    total: f64,
}

impl Evidence {
    /// Adds an example, unless a utility is not finite.
    fn push(&mut self, utilities: &[f32], labels: Vec<(usize, f64)>) {
        if !utilities.iter().all(|value| value.is_finite()) {
            return;
        }
        let at = self.utilities.len() / self.classes;
        let most = f64::from(utilities.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        self.utilities.extend(utilities.iter().map(|value| f64::from(*value) - most));
        for (class, share) in labels {
            self.labels.push((at, class, share));
            self.total += share;
        }
    }

    /// The frequency of each label, as if each class had been seen once more.
    fn label_frequencies(&self) -> Vec<f64> {
        let mut counts = vec![1.0; self.classes];
        self.labels.iter().for_each(|(_, class, share)| counts[*class] += share);
        let total = self.total + self.classes as f64;
        counts.into_iter().map(|count| count / total).collect()
    }

    /// t = softmax(α u), `[N, K]`.
    fn probabilities(&self, sharpness: f64) -> Vec<f64> {
        let mut probs: Vec<f64> = self.utilities.iter().map(|u| (sharpness * u).exp()).collect();
        for row in probs.chunks_exact_mut(self.classes) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|prob| *prob /= sum);
        }
        probs
    }

    /// How often each class is true, `[K]`.
    fn mean_probabilities(&self, sharpness: f64) -> Vec<f64> {
        let probs = self.probabilities(sharpness);
        let examples = (probs.len() / self.classes) as f64;
        let mut sums = vec![0.0; self.classes];
        for row in probs.chunks_exact(self.classes) {
            sums.iter_mut().zip(row).for_each(|(sum, prob)| *sum += prob);
        }
        sums.into_iter().map(|sum| sum / examples).collect()
    }
}

/// Stage 1: labels are replaced at one rate, by one drawn from the frequencies of all labels.
struct Flips {
    /// ε.
    rate: f64,
    log_posterior: f64,
}

impl Flips {
    fn fit(evidence: &Evidence, sharpness: f64, frequencies: &[f64]) -> Self {
        let probs = evidence.probabilities(sharpness);
        let prior = evidence.classes as f64;
        let (mut rate, mut last) = (0.1_f64, f64::NEG_INFINITY);
        for _ in 0..STEPS {
            let (mut flipped, mut log_posterior) = (0.0, prior * (1.0 - rate).ln());
            for (example, class, share) in &evidence.labels {
                let kept = (1.0 - rate) * probs[example * evidence.classes + class];
                let replaced = rate * frequencies[*class];
                flipped += share * replaced / (kept + replaced);
                log_posterior += share * (kept + replaced).ln();
            }
            if log_posterior - last < GAIN * evidence.total {
                break;
            }
            last = log_posterior;
            rate = flipped / (evidence.total + prior);
        }
        Self { rate, log_posterior: last }
    }
}

/// Stage 2: C.
#[derive(Clone)]
struct Rows {
    classes: usize,
    /// `[K, K]`, rows are true classes.
    cells: Vec<f64>,
}

impl Rows {
    /// C of stage 1.
    fn around(rate: f64, frequencies: &[f64]) -> Self {
        let classes = frequencies.len();
        let cell = |at: usize| {
            let (truth, label) = (at / classes, at % classes);
            rate * frequencies[label] + if truth == label { 1.0 - rate } else { 0.0 }
        };
        Self { classes, cells: (0..classes * classes).map(cell).collect() }
    }

    /// The mode of the posterior for this α, with this C as that of the prior; and its log density.
    fn fit(&self, evidence: &Evidence, sharpness: f64) -> (Self, f64) {
        let classes = self.classes;
        let probs = evidence.probabilities(sharpness);
        let prior: Vec<f64> = self.cells.iter().map(|cell| classes as f64 * cell).collect();
        let (mut now, mut last) = (self.clone(), f64::NEG_INFINITY);
        let mut joint = vec![0.0; classes];
        for _ in 0..STEPS {
            let mut counts = prior.clone();
            let terms = prior.iter().zip(&now.cells).filter(|(prior, _)| **prior > 0.0);
            let mut log_posterior: f64 = terms.map(|(prior, cell)| prior * cell.ln()).sum();
            for (example, label, share) in &evidence.labels {
                let row = &probs[example * classes..(example + 1) * classes];
                let column = now.cells[*label..].iter().step_by(classes);
                let mut sum = 0.0;
                for ((joint, prob), cell) in joint.iter_mut().zip(row).zip(column) {
                    *joint = prob * cell;
                    sum += *joint;
                }
                log_posterior += share * sum.ln();
                if sum > 0.0 {
                    let column = counts[*label..].iter_mut().step_by(classes);
                    column.zip(&joint).for_each(|(count, joint)| *count += share * joint / sum);
                }
            }
            if log_posterior - last < GAIN * evidence.total {
                break;
            }
            last = log_posterior;
            now.cells = counts;
            now.normalise();
        }
        (now, last)
    }

    /// Makes rows of counts the most probable laws in which no mistake is likelier than the truth:
    /// mistakes that are counted more often share their mean with it.
    fn normalise(&mut self) {
        for (truth, row) in self.cells.chunks_exact_mut(self.classes).enumerate() {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|count| *count /= total);
            let mut order: Vec<usize> = (0..row.len()).filter(|label| *label != truth).collect();
            order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
            let (mut sum, mut pooled) = (row[truth], vec![truth]);
            for label in order {
                if row[label] <= sum / pooled.len() as f64 {
                    break;
                }
                sum += row[label];
                pooled.push(label);
            }
            let mean = sum / pooled.len() as f64;
            pooled.into_iter().for_each(|label| row[label] = mean);
        }
    }
}
