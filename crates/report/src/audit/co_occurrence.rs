//! What the other entries of a row say of an entry.
//!
//! Classes that are on or off go together, or exclude each other, beyond what a model learns from
//! the inputs. Given the other labels of its row, class k is labelled on with log-odds
//!
//! w_k u_k + Σ_j B_kj (y_j − p_j) + c_k,
//!
//! where u_k is its utility by a model that did not see the row, and y_j − p_j is what the label of
//! class j says beyond the model: an Ising model of the labels with the predictions as its field.
//! Each class is fitted by itself to all labels (pseudo-likelihood), with the Normal prior of a
//! ridge on B. As a label must not be judged by a fit to itself, its own part is taken out of the
//! fit again, to the first order.

use rayon::prelude::*;

use super::entry_noise::Entries;

/// The classes at most whose labels are looked at for one class: those that go with it most.
const PARTNERS: usize = 32;
/// With more classes than this, whose pairs do not fit into memory, every entry stands alone.
pub(super) const MOST_CLASSES: usize = 4096;
/// The precision of the prior of B, and of w around 1 and of c.
const RIDGE: f64 = 1.0;
const LOOSE: f64 = 0.01;
/// Utilities that are larger say no more.
const LARGEST_UTILITY: f64 = 30.0;
/// Newton's steps, and what each must gain for each entry.
const STEPS: usize = 20;
const TOLERANCE: f64 = 1e-7;
/// The least part of a fit that the other rows must have.
const LEAST_REST: f64 = 0.1;

/// How the labels of all classes depend on the others.
#[derive(Clone, Debug)]
pub(super) struct CoOccurrence {
    classes: Vec<ClassLaw>,
}

/// How one class depends on the others.
#[derive(Clone, Debug)]
struct ClassLaw {
    /// The classes j with a B_kj, ascending.
    partners: Vec<usize>,
    /// w_k, B_kj of the partners, c_k.
    weights: Vec<f64>,
}

impl CoOccurrence {
    /// Fits all classes to the entries of some rows, with y − p of each, both by class and in the
    /// order of the rows. Also gives the entries with the log-odds above in place of their
    /// utilities, each by a fit without it.
    pub fn learn(entries: &[Entries], residuals: &[Vec<f32>]) -> (Self, Vec<Entries>) {
        let norms: Vec<f64> = residuals.par_iter().map(|of| product(of, of)).collect();
        let fitted: Vec<(ClassLaw, Entries)> = (0..entries.len())
            .into_par_iter()
            .map(|class| {
                let partners = partners(class, residuals, &norms);
                let rows = Rows::new(&entries[class], residuals, &partners);
                let (weights, left_out) = rows.fit();
                (ClassLaw { partners, weights }, left_out)
            })
            .collect();
        let (classes, left_out) = fitted.into_iter().unzip();
        (Self { classes }, left_out)
    }

    /// The log-odds of a class of a row that nothing was fitted to.
    pub fn utility(&self, class: usize, utility: f64, residuals: &[f32]) -> f64 {
        let ClassLaw { partners, weights } = &self.classes[class];
        let partners = partners.iter().map(|other| f64::from(residuals[*other]));
        dot(weights, &terms(utility, partners))
    }

    /// What two classes being on together adds to the log-odds: the mean of B_kj and B_jk, 0 where
    /// neither looks at the other.
    pub fn tie(&self, first: usize, second: usize) -> f64 {
        let of = |class: usize, other: usize| {
            let ClassLaw { partners, weights } = &self.classes[class];
            let at = partners.binary_search(&other).ok();
            at.map_or(0.0, |at| weights[1 + at])
        };
        0.5 * (of(first, second) + of(second, first))
    }
}

/// The classes whose labels vary with that of a class, apart from what a model explains; `norms`
/// are the sums of the squares of `residuals`.
fn partners(class: usize, residuals: &[Vec<f32>], norms: &[f64]) -> Vec<usize> {
    let strength = |other: usize| {
        let shared = product(&residuals[class], &residuals[other]).powi(2);
        if norms[other] > 0.0 { shared / norms[other] } else { 0.0 }
    };
    let others = (0..residuals.len()).filter(|other| *other != class);
    let mut others: Vec<(f64, usize)> = others.map(|other| (strength(other), other)).collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    others.truncate(PARTNERS);
    let mut partners: Vec<usize> = others.into_iter().map(|(_, other)| other).collect();
    partners.sort_unstable();
    partners
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// u_k, y_j − p_j of the partners, and 1.
fn terms(utility: f64, partners: impl Iterator<Item = f64>) -> Vec<f64> {
    let own = utility.clamp(-LARGEST_UTILITY, LARGEST_UTILITY);
    [own].into_iter().chain(partners).chain([1.0]).collect()
}

/// What one class is fitted to.
struct Rows<'a> {
    entries: &'a Entries,
    /// The [`terms`] of all rows, one after the other.
    table: Vec<f64>,
    /// The number of terms of a row.
    size: usize,
}

impl<'a> Rows<'a> {
    fn new(entries: &'a Entries, residuals: &[Vec<f32>], partners: &[usize]) -> Self {
        let of_row = |(row, (utility, _)): (usize, &(f64, bool))| {
            terms(*utility, partners.iter().map(|other| f64::from(residuals[*other][row])))
        };
        let table = entries.iter().enumerate().flat_map(of_row).collect();
        Self { entries, table, size: partners.len() + 2 }
    }

    /// The terms of each row, with its label.
    fn each(&self) -> impl Iterator<Item = (&[f64], bool)> {
        self.table.chunks_exact(self.size).zip(self.entries.iter().map(|(_, on)| *on))
    }

    /// By Newton's method, with steps that are halved until they gain.
    fn fit(&self) -> (Vec<f64>, Entries) {
        let mut weights = vec![0.0; self.size];
        weights[0] = 1.0;
        let mut loss = self.loss(&weights);
        let mut inverse = self.inverse_curvature(&weights);
        for _ in 0..STEPS {
            let slope = self.slope(&weights);
            let step: Vec<f64> = inverse.iter().map(|row| dot(row, &slope)).collect();
            let halves = (0..10).map(|halving| 0.5f64.powi(halving));
            let tried = halves.map(|scale| -> Vec<f64> {
                weights.iter().zip(&step).map(|(weight, step)| weight + scale * step).collect()
            });
            let better = tried.map(|weights| (self.loss(&weights), weights));
            let Some((least, found)) = better.into_iter().find(|(tried, _)| *tried < loss) else {
                break;
            };
            let gain = loss - least;
            (loss, weights) = (least, found);
            inverse = self.inverse_curvature(&weights);
            if gain < TOLERANCE * self.entries.len() as f64 {
                break;
            }
        }
        let left_out = self.left_out(&weights, &inverse);
        (weights, left_out)
    }

    /// −log of the likelihood and the prior.
    fn loss(&self, weights: &[f64]) -> f64 {
        let row = |(terms, on): (&[f64], bool)| {
            let log_odds = dot(weights, terms);
            let against = if on { -log_odds } else { log_odds };
            // log(1 + e^against) without overflow.
            against.max(0.0) + (-against.abs()).exp().ln_1p()
        };
        let labels: f64 = self.each().map(row).sum();
        let prior = |(at, weight): (usize, &f64)| {
            0.5 * precision(at, weights.len()) * (weight - middle(at)).powi(2)
        };
        labels + weights.iter().enumerate().map(prior).sum::<f64>()
    }

    /// The gradient of the logarithm of the likelihood and the prior.
    fn slope(&self, weights: &[f64]) -> Vec<f64> {
        let prior =
            |(at, weight): (usize, &f64)| -precision(at, weights.len()) * (weight - middle(at));
        let mut slope: Vec<f64> = weights.iter().enumerate().map(prior).collect();
        for (terms, on) in self.each() {
            let rest = f64::from(u8::from(on)) - sigmoid(dot(weights, terms));
            slope.iter_mut().zip(terms).for_each(|(sum, term)| *sum += rest * term);
        }
        slope
    }

    /// The inverse of its negative second derivative.
    fn inverse_curvature(&self, weights: &[f64]) -> Vec<Vec<f64>> {
        let size = weights.len();
        let mut matrix = vec![vec![0.0; size]; size];
        for (terms, _) in self.each() {
            let variance = variance(dot(weights, terms));
            for (sums, term) in matrix.iter_mut().zip(terms) {
                let scale = variance * term;
                sums.iter_mut().zip(terms).for_each(|(sum, other)| *sum += scale * other);
            }
        }
        for (at, row) in matrix.iter_mut().enumerate() {
            row[at] += precision(at, size);
        }
        inverse(matrix)
    }

    /// The log-odds of each entry by the fit without it, to the first order.
    fn left_out(&self, weights: &[f64], inverse: &[Vec<f64>]) -> Entries {
        let entry = |(terms, on): (&[f64], bool)| {
            let log_odds = dot(weights, terms);
            let reach: f64 =
                inverse.iter().zip(terms).map(|(row, term)| term * dot(row, terms)).sum();
            let rest = f64::from(u8::from(on)) - sigmoid(log_odds);
            let others = (1.0 - reach * variance(log_odds)).max(LEAST_REST);
            (log_odds - reach * rest / others, on)
        };
        self.each().map(entry).collect()
    }
}

/// The precision of the prior of a weight: u_k comes first, the constant last.
fn precision(at: usize, size: usize) -> f64 {
    if at == 0 || at + 1 == size { LOOSE } else { RIDGE }
}

/// The mean of the prior: the utility as it is, and nothing else.
fn middle(at: usize) -> f64 {
    if at == 0 { 1.0 } else { 0.0 }
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

fn variance(log_odds: f64) -> f64 {
    sigmoid(log_odds) * sigmoid(-log_odds)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The inverse of a symmetric positive definite matrix, by Gauss and Jordan; no pivot is below the
/// least precision of the prior.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let size = matrix.len();
    for pivot in 0..size {
        let scale = matrix[pivot][pivot].max(f64::MIN_POSITIVE).recip();
        matrix[pivot][pivot] = 1.0;
        matrix[pivot].iter_mut().for_each(|value| *value *= scale);
        let pivot_row = matrix[pivot].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = std::mem::replace(&mut row[pivot], 0.0);
            row.iter_mut().zip(&pivot_row).for_each(|(value, own)| *value -= factor * own);
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number from 0 to 1 that depends on its name alone.
    fn uniform(a: usize, b: usize) -> f64 {
        let mut word = (a as u64) << 32 | b as u64;
        for _ in 0..2 {
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^= word >> 31;
        }
        (word >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Three classes: the second follows the first, of which a model knows little; the third is
    /// alone.
    fn rows(count: usize) -> (Vec<Entries>, Vec<Vec<f32>>) {
        let label = |row: usize, class: usize| match class {
            1 => uniform(row, 0) < 0.5 || uniform(row, 1) < 0.02,
            _ => uniform(row, class) < 0.5,
        };
        let entries: Vec<Entries> =
            (0..3).map(|class| (0..count).map(|row| (0.1, label(row, class))).collect()).collect();
        let residual = |(_, on): &(f64, bool)| f32::from(u8::from(*on)) - 0.5;
        let residuals = entries.iter().map(|of| of.iter().map(residual).collect()).collect();
        (entries, residuals)
    }

    #[test]
    fn an_inverse_times_its_matrix_is_one() {
        let matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, -1.0], vec![0.5, -1.0, 2.0]];
        let found = inverse(matrix.clone());
        for (row, line) in matrix.iter().enumerate() {
            for column in 0..3 {
                let sum: f64 = line.iter().zip(&found).map(|(a, b)| a * b[column]).sum();
                assert!((sum - f64::from(u8::from(row == column))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn classes_that_go_together_speak_for_each_other_and_the_others_do_not() {
        let (entries, residuals) = rows(400);
        let (law, _) = CoOccurrence::learn(&entries, &residuals);
        let of = |class: usize, residuals: [f32; 3]| law.utility(class, 0.1, &residuals);
        assert!(of(1, [0.5, 0.0, 0.0]) - of(1, [-0.5, 0.0, 0.0]) > 3.0);
        assert!((of(2, [0.5, 0.0, 0.0]) - of(2, [-0.5, 0.0, 0.0])).abs() < 0.5);
    }

    /// As exact as its first order allows: a fit to all other rows is the reference.
    #[test]
    fn the_part_of_an_entry_in_its_own_fit_is_taken_out() {
        let (entries, residuals) = rows(60);
        let (with, left_out) = CoOccurrence::learn(&entries, &residuals);
        for row in 0..20 {
            let mut others = (entries.clone(), residuals.clone());
            others.0.iter_mut().for_each(|of| _ = of.remove(row));
            others.1.iter_mut().for_each(|of| _ = of.remove(row));
            let (without, _) = CoOccurrence::learn(&others.0, &others.1);
            let own: Vec<f32> = residuals.iter().map(|of| of[row]).collect();
            let exact = without.utility(1, 0.1, &own);
            let naive = with.utility(1, 0.1, &own);
            let found = left_out[1][row].0;
            // A tenth of what the entry itself adds.
            assert!(
                (found - exact).abs() <= 0.02 + 0.1 * (naive - exact).abs(),
                "row {row}: {found} for {exact}, {naive} with it"
            );
        }
    }
}
