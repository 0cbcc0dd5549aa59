//! Annotators who differ: each has a confusion of their own, shrunk to the common one.
//!
//! Dawid and Skene's model with a classifier as prior of the truth. Where class c is true,
//! annotator a gives the label y with P_a(y | c, x) ∝ C^a_cy p_y(x)^b; the rows of C^a have the
//! prior Dir(κ C_c). A row counts the common one as κ labels, so annotators with few labels are
//! judged as the average and those with many by what they did.
//!
//! κ maximises the marginal likelihood of the annotators' counts (empirical Bayes): annotators who
//! do not differ more than by chance get the common confusion, and spammers lower κ for all.

use rayon::prelude::*;

use super::parts::{Parts, Row};
use super::posterior::{Confusion, Evidence, normalised};
use super::settings::AuditSettings;
use super::single::each_piece;
use crate::covariance::{Observer, Step};
use crate::error::ReportError;

/// Rounds of the search for κ, each of [`POINTS`] values around the best of the round before.
const ROUNDS: usize = 4;
const POINTS: usize = 9;

/// The smallest κ, in labels: less is no prior at all.
const LEAST: f64 = 0.1;

/// The confusions of all annotators.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    classes: usize,
    /// C, `[K, K]`: rows are true classes and sum to one.
    common: Vec<f64>,
    /// C^a of each annotator, as `common`.
    own: Vec<Vec<f64>>,
    /// κ: how many labels the common confusion counts for, for each true class.
    pub concentration: f64,
}

/// Learns the confusions by expectation maximisation, beginning with `common` for all.
///
/// `None` where fewer than two annotators are known, and where a matrix for each would be larger
/// than the largest common one.
pub(super) fn learn(
    parts: &mut Parts,
    common: &Confusion,
    settings: &AuditSettings,
    observer: Observer,
) -> Result<Option<Crowd>, ReportError> {
    let (classes, count) = (parts.task.class_names.len(), parts.annotators.len());
    let largest = settings.confusion_classes.saturating_pow(2);
    if count < 2 || classes.saturating_pow(2).saturating_mul(count) > largest {
        return Ok(None);
    }
    let Some(common) = common.rows() else { return Ok(None) };
    let own = vec![common.clone(); count];
    let mut crowd = Crowd { classes, common, own, concentration: f64::INFINITY };
    let mut before = f64::NEG_INFINITY;
    for pass in 0..settings.passes {
        let mut counts = CrowdCounts::new(count, classes);
        each_piece(parts, settings, |rows, evidence| counts.add_all(&crowd, rows, evidence))?;
        crowd = crowd.updated(&counts, settings);
        let (done, total) = (pass + 1, settings.passes);
        observer(Step { what: "confusion of each annotator", done, total });
        let change = (counts.log_likelihood - before) / parts.examples.len() as f64;
        if change.abs() < settings.tolerance {
            break;
        }
        before = counts.log_likelihood;
    }
    Ok(Some(crowd))
}

impl Crowd {
    /// The probability of each candidate to be true, in their order, and the logarithm of the
    /// probability of the labels. An example without annotations is judged by its label and the
    /// common confusion.
    pub fn posterior(&self, evidence: &Evidence, votes: &[(u32, u32)]) -> (Vec<f64>, f64) {
        let log_weight = |(class, prior): &(u32, f64)| {
            let log_label = |matrix: &[f64], label: u32| {
                let row = self.row(matrix, *class);
                let label = label as usize;
                (row[label] * evidence.tempered[label]).ln() - dot(row, &evidence.tempered).ln()
            };
            let votes = votes.iter().map(|(by, label)| log_label(&self.own[*by as usize], *label));
            let others = if votes.len() == 0 { evidence.labels } else { &[] };
            let others = others.iter().map(|label| log_label(&self.common, *label));
            prior.ln() + votes.chain(others).sum::<f64>()
        };
        normalised(evidence, evidence.candidates.iter().map(log_weight).collect())
    }

    fn row<'a>(&self, matrix: &'a [f64], truth: u32) -> &'a [f64] {
        &matrix[truth as usize * self.classes..][..self.classes]
    }

    /// One step toward the confusions under which the labels that were seen are expected.
    fn updated(&self, counts: &CrowdCounts, settings: &AuditSettings) -> Self {
        let prior = settings.smoothing / self.classes as f64;
        let sum = |of: fn(&Counts) -> &Vec<f64>| {
            let mut sums = vec![0.0; self.common.len()];
            for one in &counts.annotators {
                sums.iter_mut().zip(of(one)).for_each(|(sum, value)| *sum += value);
            }
            sums
        };
        let (seen, expected) = (sum(|it| &it.seen), sum(|it| &it.expected_in_common));
        let step = |(weight, (seen, expected)): (&f64, (f64, f64))| {
            weight * (seen + prior) / (expected + prior)
        };
        let terms = self.common.iter().zip(seen.into_iter().zip(expected));
        let common = rows_sum_to_one(terms.map(step).collect(), self.classes);
        let concentration = counts.concentration(self.classes);
        let own = self.own.par_iter().zip(&counts.annotators).map(|(own, counts)| {
            let counted = counts.seen.iter().zip(&counts.expected);
            let step = |((weight, base), (seen, expected)): ((&f64, &f64), (&f64, &f64))| {
                let expected = expected + concentration * weight;
                let ratio = (seen + concentration * base) / expected;
                if expected > 0.0 { weight * ratio } else { 0.0 }
            };
            let terms = own.iter().zip(&common).zip(counted);
            rows_sum_to_one(terms.map(step).collect(), self.classes)
        });
        let own = own.collect();
        Self { classes: self.classes, common, own, concentration }
    }
}

/// What one pass over all examples counts.
struct CrowdCounts {
    annotators: Vec<Counts>,
    /// Σ log P(labels).
    log_likelihood: f64,
}

/// The labels of one annotator, `[K, K]` each: rows are true classes.
#[derive(Clone)]
struct Counts {
    /// How often each label was given, by the posterior.
    seen: Vec<f64>,
    /// The same by the annotator's confusion as it is.
    expected: Vec<f64>,
    /// The same by the common confusion.
    expected_in_common: Vec<f64>,
}

impl CrowdCounts {
    fn new(annotators: usize, classes: usize) -> Self {
        let zeros = vec![0.0; classes * classes];
        let none =
            Counts { seen: zeros.clone(), expected: zeros.clone(), expected_in_common: zeros };
        Self { annotators: vec![none; annotators], log_likelihood: 0.0 }
    }

    /// Counts some examples. Threads divide the annotators, so that each sum has one order.
    fn add_all(&mut self, crowd: &Crowd, rows: &[Row<2>], evidence: &[Evidence]) {
        let found: Vec<(Vec<f64>, f64)> = rows
            .par_iter()
            .zip(evidence)
            .map(|(row, evidence)| crowd.posterior(evidence, &row.example.votes))
            .collect();
        let mut votes = vec![vec![]; self.annotators.len()];
        for (at, (row, (_, log_likelihood))) in rows.iter().zip(&found).enumerate() {
            self.log_likelihood += log_likelihood.max(f64::MIN);
            row.example.votes.iter().for_each(|(by, label)| votes[*by as usize].push((at, *label)));
        }
        let counts = self.annotators.par_iter_mut().zip(&crowd.own).zip(votes);
        counts.for_each(|((counts, own), votes)| {
            for (at, label) in votes {
                let truths = evidence[at].candidates.iter().map(|(class, _)| *class as usize);
                for (truth, probability) in truths.zip(&found[at].0) {
                    let tempered = &evidence[at].tempered;
                    counts.add([own, &crowd.common], truth, label, *probability, tempered);
                }
            }
        });
    }

    /// The κ under which the counts of all annotators are most probable: of each annotator and true
    /// class they are Dirichlet-multinomial around what the common confusion expects of the same
    /// examples.
    fn concentration(&self, classes: usize) -> f64 {
        let all: f64 = self.annotators.iter().flat_map(|it| &it.seen).sum();
        most_probable_concentration(all, |concentration| self.log_evidence(concentration, classes))
    }

    fn log_evidence(&self, concentration: f64, classes: usize) -> f64 {
        let of = |counts: &Counts| -> f64 {
            let rows = counts.seen.chunks_exact(classes);
            let rows = rows.zip(counts.expected_in_common.chunks_exact(classes));
            rows.map(|(seen, expected)| polya(seen, expected, concentration)).sum()
        };
        let each: Vec<f64> = self.annotators.par_iter().map(of).collect();
        each.iter().sum()
    }
}

impl Counts {
    /// Counts a label where a class is true with some probability; `matrices` are the annotator's
    /// and the common one.
    fn add(
        &mut self,
        matrices: [&Vec<f64>; 2],
        truth: usize,
        label: u32,
        probability: f64,
        tempered: &[f64],
    ) {
        let classes = tempered.len();
        let row = truth * classes..(truth + 1) * classes;
        let totals = matrices.map(|matrix| dot(&matrix[row.clone()], tempered));
        if totals.contains(&0.0) {
            // The model excludes every label: this tells nothing about confusions.
            return;
        }
        self.seen[row.start + label as usize] += probability;
        let sums = [&mut self.expected, &mut self.expected_in_common];
        for ((sums, matrix), total) in sums.into_iter().zip(matrices).zip(totals) {
            let scale = probability / total;
            let terms = matrix[row.clone()].iter().zip(tempered);
            let sums = sums[row.clone()].iter_mut();
            sums.zip(terms).for_each(|(sum, (weight, root))| *sum += scale * weight * root);
        }
    }
}

/// The κ with the largest evidence, up to the number of all labels: the common law for everybody.
fn most_probable_concentration(all: f64, log_evidence: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (LEAST.ln(), all.max(1.0).ln());
    let mut best = high;
    for _ in 0..ROUNDS {
        let step = (high - low) / (POINTS - 1) as f64;
        let tried = (0..POINTS).map(|at| low + step * at as f64);
        let scored = tried.map(|log| (log_evidence(log.exp()), log));
        // Of equal ones the largest κ.
        (_, best) = scored.fold((f64::NEG_INFINITY, best), |a, b| if b.0 >= a.0 { b } else { a });
        (low, high) = ((best - step).max(low), (best + step).min(high));
    }
    best.exp()
}

/// How often annotators err in general: a Beta prior of each one's rate, by the labels of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorRates {
    mean: f64,
    /// How many labels of an annotator the mean counts for.
    concentration: f64,
}

impl ErrorRates {
    /// From the expected number of wrong labels of each annotator, and the number of their labels.
    pub fn of(annotators: &[(f64, f64)]) -> Self {
        let sum = |of: fn(&(f64, f64)) -> f64| annotators.iter().map(of).sum::<f64>();
        let (wrong, all) = (sum(|it| it.0), sum(|it| it.1));
        let mean = (wrong + 0.5) / (all + 1.0);
        let evidence = |concentration: f64| {
            let of = |(wrong, all): &(f64, f64)| {
                polya(&[*wrong, all - wrong], &[mean, 1.0 - mean], concentration)
            };
            annotators.iter().map(of).sum()
        };
        Self { mean, concentration: most_probable_concentration(all, evidence) }
    }

    /// The rate that is expected of new labels, with its standard deviation, by labels of which
    /// `wrong` are expected to be, with some variance.
    pub fn of_new_labels(&self, wrong: f64, variance: f64, all: f64) -> (f64, f64) {
        let size = all + self.concentration;
        let rate = (wrong + self.concentration * self.mean) / size;
        (rate, (rate * (1.0 - rate) / (size + 1.0) + variance / size.powi(2)).sqrt())
    }
}

/// The logarithm of the probability of counts that are Dirichlet-multinomial with mean `expected`
/// and concentration κ, apart from what does not depend on κ.
fn polya(seen: &[f64], expected: &[f64], concentration: f64) -> f64 {
    let (all, mean): (f64, f64) = (seen.iter().sum(), expected.iter().sum());
    if all == 0.0 || mean == 0.0 {
        return 0.0;
    }
    let term = |(seen, expected): (&f64, &f64)| {
        let alpha = (concentration * expected / mean).max(f64::MIN_POSITIVE);
        if *seen > 0.0 { log_gamma(alpha + seen) - log_gamma(alpha) } else { 0.0 }
    };
    let counts: f64 = seen.iter().zip(expected).map(term).sum();
    counts + log_gamma(concentration) - log_gamma(concentration + all)
}

/// ln Γ(x) for x > 0: Stirling's series after x is raised to where it is exact to 1e-12.
fn log_gamma(x: f64) -> f64 {
    let mut product = 1.0;
    let mut x = x;
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = (x * x).recip();
    let series =
        (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Each row over its sum; rows of zeros stay.
pub(super) fn rows_sum_to_one(mut matrix: Vec<f64>, classes: usize) -> Vec<f64> {
    for row in matrix.chunks_exact_mut(classes) {
        let sum: f64 = row.iter().sum();
        if sum > 0.0 {
            row.iter_mut().for_each(|weight| *weight /= sum);
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_gamma_of_whole_numbers_is_the_log_of_a_factorial() {
        let mut factorial = 1.0_f64;
        for n in 1..60 {
            assert!((log_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-10 * f64::from(n), "{n}");
            factorial *= f64::from(n);
        }
        assert!((log_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
    }

    /// Labels of `annotators` people, 60 for each of two classes, of whom each is right as often as
    /// `accuracy` says.
    fn counts(accuracy: impl Fn(usize) -> f64, annotators: usize) -> CrowdCounts {
        let mean = (0..annotators).map(&accuracy).sum::<f64>() / annotators as f64;
        let mut counts = CrowdCounts::new(annotators, 2);
        for (at, one) in counts.annotators.iter_mut().enumerate() {
            let right = (60.0 * accuracy(at)).round();
            one.seen = vec![right, 60.0 - right, 60.0 - right, right];
            one.expected_in_common =
                [mean, 1.0 - mean, 1.0 - mean, mean].map(|it| 60.0 * it).to_vec();
        }
        counts
    }

    #[test]
    fn few_labels_say_little_of_new_ones() {
        // Rates of 10 and 50 %, by 200 labels each, and one annotator with 2 wrong labels of 2.
        let mut annotators: Vec<(f64, f64)> =
            (0..20).map(|at| (if at % 2 == 0 { 20.0 } else { 100.0 }, 200.0)).collect();
        annotators.push((2.0, 2.0));
        let rates = ErrorRates::of(&annotators);
        let (many, sure) = rates.of_new_labels(20.0, 0.0, 200.0);
        let (few, unsure) = rates.of_new_labels(2.0, 0.0, 2.0);
        assert!(many > 0.09 && many < 0.13 && sure < 0.03, "{many} ± {sure}");
        assert!(few > 0.3 && few < 0.75 && unsure > 3.0 * sure, "{few} ± {unsure}");
    }

    #[test]
    fn annotators_who_do_not_differ_get_the_common_confusion() {
        let alike = counts(|_| 0.8, 10).concentration(2);
        // As many as there are labels: the own ones count for nothing.
        assert!((alike - 1200.0).abs() < 1.0, "{alike}");
    }

    #[test]
    fn the_concentration_is_that_of_the_annotators_accuracies() {
        // Accuracies at the quantiles of Beta(6, 2), whose concentration is 8: their variance is
        // m (1 − m) / 9 with m = 3/4.
        let spread = (0.75 * 0.25 / 9.0_f64).sqrt();
        let found = counts(|at| 0.75 + spread * if at % 2 == 0 { 1.0 } else { -1.0 }, 40);
        let found = found.concentration(2);
        assert!(found > 4.0 && found < 16.0, "{found}");
    }
}
