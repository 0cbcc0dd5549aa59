//! How probable an entry is to be wrong where each class is on or off.
//!
//! Class k of an example is truly on with probability σ(a_k u), where u is its utility by a model
//! that did not see the label, and an entry is switched on or off by mistake with the same
//! probabilities for all classes and examples:
//!
//! P(on by label | truly off) = e₀,  P(off by label | truly on) = e₁.
//!
//! All are chosen by the likelihood of the labels. The sharpness a_k says how far the model's
//! doubt is about the truth: weak models are less sure than the labels are consistent. One class
//! has too few labels to tell both its sharpness and its errors, so that log₂ a_k has a Normal
//! prior whose mean and deviation maximise the marginal likelihood of all classes.

use rayon::prelude::*;

/// The values of a_k that are weighed: 2^(−1) to 2², in steps of 2^¼.
const SHARPNESSES: usize = 13;
/// Deviations of log₂ a_k between the classes that are weighed.
const DEVIATIONS: [f64; 4] = [0.05, 0.25, 0.5, 1.0];
/// The probabilities of mistakes to begin with.
const START: f64 = 0.05;
/// Labels are right more often than not, and no mistake is impossible.
const LEAST: f64 = 1e-9;
const MOST: f64 = 0.49;
/// Mistakes that are counted before any is seen, and labels that they are counted among.
const PRIOR: (f64, f64) = (0.5, 1.0);
/// Passes end when no probability changes by more than this share.
const TOLERANCE: f64 = 1e-3;
/// Values of a_k that count for less are left out.
const LEAST_WEIGHT: f64 = 1e-3;

/// The law of truths and labels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntryNoise {
    /// Of each class, values of a_k with their weights.
    sharpness: Vec<Vec<(f64, f64)>>,
    /// `[e₀, e₁]`.
    mistakes: [f64; 2],
    /// The logarithm of the marginal likelihood of the labels.
    pub log_likelihood: f64,
}

/// `[[wrong, all]; 2]` of entries that are truly off and on.
type Counts = [[f64; 2]; 2];

/// The entries of one class: utilities, and whether the label is on.
pub(super) type Entries = Vec<(f64, bool)>;

impl EntryNoise {
    /// Fits all to the entries of the classes, in at most `passes`. Both mistakes are equally
    /// likely unless the labels say otherwise: two numbers must gain ½ log n over one (Schwarz).
    pub fn learn(classes: &[Entries], passes: usize) -> Self {
        let one = Self::fit(classes, passes, |[[a, b], [c, d]]| [[a + c, b + d]; 2]);
        let two = Self::fit(classes, passes, |counts| counts);
        let entries: usize = classes.iter().map(Vec::len).sum();
        let gain = two.log_likelihood - one.log_likelihood;
        if gain > 0.5 * (entries.max(1) as f64).ln() { two } else { one }
    }

    /// By expectation maximisation; `pool` says what counts for each kind of mistake.
    fn fit(classes: &[Entries], passes: usize, pool: fn(Counts) -> Counts) -> Self {
        let mut fitted = Self::with_mistakes(classes, [START; 2]);
        for _ in 0..passes {
            let (Self { mistakes: before, .. }, counts) = fitted;
            let mistakes = pool(counts)
                .map(|[wrong, all]| ((wrong + PRIOR.0) / (all + PRIOR.1)).clamp(LEAST, MOST));
            fitted = Self::with_mistakes(classes, mistakes);
            let small = |(new, old): (&f64, &f64)| (new - old).abs() <= TOLERANCE * old;
            if mistakes.iter().zip(&before).all(small) {
                break;
            }
        }
        fitted.0
    }

    /// The sharpness of all classes where mistakes are known, and how many of each kind there are.
    fn with_mistakes(classes: &[Entries], mistakes: [f64; 2]) -> (Self, Counts) {
        let tables: Vec<[Fit; SHARPNESSES]> = classes
            .par_iter()
            .map(|entries| std::array::from_fn(|at| Fit::of(entries, sharpness(at), mistakes)))
            .collect();
        let priors = DEVIATIONS
            .into_iter()
            .flat_map(|deviation| (0..SHARPNESSES).map(move |middle| log_prior(middle, deviation)));
        let marginal = |prior: &[f64; SHARPNESSES]| -> f64 {
            tables.iter().map(|fits| log_sum(&log_weights(fits, prior))).sum()
        };
        let priors: Vec<[f64; SHARPNESSES]> = priors.collect();
        let scored = priors.iter().map(|prior| (marginal(prior), prior));
        let best = scored.reduce(|best, next| if next.0 > best.0 { next } else { best });
        let (log_likelihood, prior) = best.unwrap_or((0.0, &priors[0]));
        let mut counts = [[0.0; 2]; 2];
        let mut chosen = vec![];
        for fits in &tables {
            let logs = log_weights(fits, prior);
            let total = log_sum(&logs);
            let weights = logs.map(|log| (log - total).exp());
            for (fit, weight) in fits.iter().zip(weights) {
                for (count, own) in counts.iter_mut().flatten().zip(fit.counts.iter().flatten()) {
                    *count += weight * own;
                }
            }
            chosen.push(worth_keeping(weights));
        }
        (Self { sharpness: chosen, mistakes, log_likelihood }, counts)
    }

    /// The mean of a_k.
    pub fn sharpness(&self, class: usize) -> f64 {
        self.sharpness[class].iter().map(|(sharpness, weight)| sharpness * weight).sum()
    }

    /// The logarithms of the odds of a mistake, of a label that is off and of one that is on.
    pub fn log_mistakes(&self) -> [f64; 2] {
        let [e0, e1] = self.mistakes;
        [(e1 / (1.0 - e0)).ln(), (e0 / (1.0 - e1)).ln()]
    }

    /// The probability that a class is truly on, given its utility and label.
    pub fn truly_on(&self, class: usize, utility: f64, label: bool) -> f64 {
        let on = |(sharpness, weight): &(f64, f64)| {
            let [off, on] = joint(sharpness * utility, label, self.mistakes);
            weight * on / (off + on)
        };
        // Rounding must not make it more than certain.
        self.sharpness[class].iter().map(on).sum::<f64>().min(1.0)
    }
}

/// The probabilities of a label together with the class being truly off and on.
fn joint(log_odds: f64, label: bool, [e0, e1]: [f64; 2]) -> [f64; 2] {
    let (off, on) = (1.0 / (1.0 + log_odds.exp()), 1.0 / (1.0 + (-log_odds).exp()));
    if label { [off * e0, on * (1.0 - e1)] } else { [off * (1.0 - e0), on * e1] }
}

/// What one value of a_k makes of the entries of a class.
struct Fit {
    log_likelihood: f64,
    counts: Counts,
}

impl Fit {
    fn of(entries: &Entries, sharpness: f64, mistakes: [f64; 2]) -> Self {
        let mut fit = Self { log_likelihood: 0.0, counts: [[0.0; 2]; 2] };
        for (utility, label) in entries {
            let [off, on] = joint(sharpness * utility, *label, mistakes);
            let total = off + on;
            fit.log_likelihood += total.ln();
            for (count, (share, is_wrong)) in
                fit.counts.iter_mut().zip([(off / total, *label), (on / total, !label)])
            {
                count[0] += if is_wrong { share } else { 0.0 };
                count[1] += share;
            }
        }
        fit
    }
}

fn sharpness(at: usize) -> f64 {
    2f64.powf(at as f64 / 4.0 - 1.0)
}

/// The logarithm of a Normal of log₂ a_k around one of its values, summing to one.
fn log_prior(middle: usize, deviation: f64) -> [f64; SHARPNESSES] {
    let log = |at: usize| -0.5 * ((at as f64 - middle as f64) / 4.0 / deviation).powi(2);
    let logs: [f64; SHARPNESSES] = std::array::from_fn(log);
    let total = log_sum(&logs);
    logs.map(|log| log - total)
}

fn log_weights(fits: &[Fit; SHARPNESSES], prior: &[f64; SHARPNESSES]) -> [f64; SHARPNESSES] {
    std::array::from_fn(|at| fits[at].log_likelihood + prior[at])
}

fn log_sum(logs: &[f64; SHARPNESSES]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// The values of a_k that matter, with weights that sum to one.
fn worth_keeping(weights: [f64; SHARPNESSES]) -> Vec<(f64, f64)> {
    let kept = || (0..SHARPNESSES).filter(|at| weights[*at] >= LEAST_WEIGHT);
    let total: f64 = kept().map(|at| weights[at]).sum();
    kept().map(|at| (sharpness(at), weights[at] / total)).collect()
}
