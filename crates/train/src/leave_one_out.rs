//! What all other examples say of an example, in closed form.
//!
//! A ridge regression of the labels on M random features of the inputs,
//! φ(x) = max(0, Wx + b), has exact leave-one-out predictions: with the eigenvectors of ΦᵀΦ,
//! every example is predicted by the model that was fitted to all others, without fitting N
//! models, and for every penalty λ at once,
//!
//! ŷ₋ᵢ = yᵢ − (yᵢ − ŷᵢ)/(1 − hᵢ),  hᵢ = 1/N + (φᵢ − φ̄)ᵀ(ΦᵀΦ + λ)⁻¹(φᵢ − φ̄).
//!
//! λ and the scaling of the inputs are those with the smallest leave-one-out error. Softmax of
//! a ŷ₋ + b, with a and b of the largest likelihood, turns the predictions into probabilities.

mod calibration;
mod random_features;
mod ridge;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use aleator_data::variation::Variation;
use aleator_data::{Labels, Split};
use aleator_run::recipe::Normalize;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::{Normalization, TrainError};
use calibration::calibrated;
use random_features::{ROWS, RandomFeatures};
use ridge::{Ridge, rounded};

/// M, where there are examples enough; more features hardly predict better and cost M².
const MOST_FEATURES: usize = 2048;
/// Random features for each example where examples are few.
const FEATURES_PER_EXAMPLE: usize = 4;
/// Examples whose features are in memory at a time: few enough that the memory of one block is
/// given to the next one.
const BLOCK: usize = 2048;
/// Examples that choose λ, and those that choose the scaling of the inputs.
const CHOOSING_PENALTY: usize = 4096;
const CHOOSING_SCALE: usize = 2_000;
/// M of the comparison of scalings.
const SCALE_FEATURES: usize = 512;
/// The penalties that are tried, as shares of the largest eigenvalue: 10⁻⁷ to 10⁻¹.
const PENALTIES: usize = 13;
const DECADES: f64 = 6.0;
const LARGEST_PENALTY: f64 = 0.1;

/// The predictions of every example by all others.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaveOneOut {
    /// Logarithms of probabilities, `[N, K]`.
    pub log_probs: Vec<f32>,
    /// How the inputs were scaled.
    pub normalize: Normalize,
}

/// Predicts the label of every example from all other examples; `None` when it was stopped.
///
/// The same examples give the same bits on any number of threads.
///
/// # Errors
/// When inputs cannot be read.
pub fn leave_one_out(
    examples: &Split,
    stop: &AtomicBool,
) -> Result<Option<LeaveOneOut>, TrainError> {
    let classes = examples.classes;
    let targets = targets(examples);
    let few = every(examples.len(), CHOOSING_SCALE);
    let sample = Rows { split: examples, rows: &few };
    let few_targets = rows_of(&targets, classes, &few);
    let mut best: Option<(f64, Normalize)> = None;
    let scales = Variation::of(&examples.inputs, &examples.rows)?.scales(Normalize::Global);
    for normalize in scales {
        let normalization = Normalization::fit(normalize, examples)?;
        let Some(fit) = Fit::new(&sample, &normalization, &few_targets, SCALE_FEATURES, stop)?
        else {
            return Ok(None);
        };
        if best.is_none_or(|(error, _)| fit.error < error) {
            best = Some((fit.error, normalize));
        }
    }
    let normalize = best.map_or(Normalize::Global, |(_, normalize)| normalize);
    let normalization = Normalization::fit(normalize, examples)?;
    let all: Vec<usize> = (0..examples.len()).collect();
    let rows = Rows { split: examples, rows: &all };
    let Some(fit) = Fit::new(&rows, &normalization, &targets, MOST_FEATURES, stop)? else {
        return Ok(None);
    };
    let ridge = Ridge::new(&fit, fit.penalty);
    let mut predicted = Vec::with_capacity(targets.len());
    let complete = rows.each_block(&normalization, &fit.features, stop, |range, features| {
        let targets = &targets[range.start * classes..range.end * classes];
        predicted.extend(ridge.left_out(features, targets));
    })?;
    if !complete {
        return Ok(None);
    }
    Ok(Some(LeaveOneOut { log_probs: calibrated(&predicted, &targets, classes), normalize }))
}

/// The labels as shares of the classes, `[N, K]`: of several annotations, how often each is named.
fn targets(examples: &Split) -> Vec<f32> {
    let classes = examples.classes;
    let mut targets = vec![0.0; examples.len() * classes];
    let mut add = |example: usize, class: u32, share: f32| {
        targets[example * classes + class as usize] += share;
    };
    match &examples.labels {
        Labels::Single(labels) => {
            labels.iter().enumerate().for_each(|(example, class)| add(example, *class, 1.0));
        }
        Labels::Annotations(votes) => {
            for example in 0..examples.len() {
                let span = votes.offsets[example]..votes.offsets[example + 1];
                let share = 1.0 / span.len().max(1) as f32;
                votes.labels[span].iter().for_each(|class| add(example, *class, share));
            }
        }
        Labels::MultiHot(sets) => {
            for example in 0..examples.len() {
                sets.row(example).iter().for_each(|class| add(example, *class, 1.0));
            }
        }
        Labels::Soft(probs) => return probs.values.clone(),
    }
    targets
}

/// At most this many rows, at equal distances.
fn every(examples: usize, most: usize) -> Vec<usize> {
    (0..examples).step_by(examples.div_ceil(most).max(1)).collect()
}

fn rows_of(matrix: &[f32], width: usize, rows: &[usize]) -> Vec<f32> {
    rows.iter().flat_map(|row| &matrix[row * width..(row + 1) * width]).copied().collect()
}

/// Some examples of a split.
struct Rows<'a> {
    split: &'a Split,
    rows: &'a [usize],
}

impl Rows<'_> {
    /// Gives `take` the centred features of some rows at a time; false when it was stopped. The
    /// next rows are read meanwhile.
    fn each_block(
        &self,
        normalization: &Normalization,
        features: &RandomFeatures,
        stop: &AtomicBool,
        mut take: impl FnMut(Range<usize>, &Mat<f32>) + Send,
    ) -> Result<bool, TrainError> {
        let mut inputs = self.inputs(0, normalization)?;
        for start in (0..self.rows.len()).step_by(BLOCK) {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let range = start..self.rows.len().min(start + BLOCK);
            let (next, ()) = rayon::join(
                || self.inputs(range.end, normalization),
                || take(range.clone(), &features.of(&inputs)),
            );
            inputs = next?;
        }
        Ok(true)
    }

    /// The normalised inputs of the block that begins here; none beyond the end.
    fn inputs(&self, start: usize, normalization: &Normalization) -> Result<Vec<f32>, TrainError> {
        let width = self.split.inputs.shape().len();
        let block = &self.rows[start..self.rows.len().min(start + BLOCK)];
        let mut inputs = vec![0.0; block.len() * width];
        for (row, out) in block.iter().zip(inputs.chunks_exact_mut(width)) {
            self.split.inputs.read(self.split.rows[*row], out)?;
        }
        normalization.apply(&mut inputs);
        Ok(inputs)
    }
}

/// The eigenvalues of a symmetric matrix, given by its lower triangle, ascending and none negative,
/// and its eigenvectors.
fn eigen(matrix: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>), TrainError> {
    let size = matrix.nrows();
    let (mut values, mut vectors) = (Diag::zeros(size), Mat::zeros(size, size));
    let needed =
        self_adjoint_evd_scratch::<f64>(size, ComputeEigenvectors::Yes, TASKS, Default::default());
    self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        TASKS,
        MemStack::new(&mut MemBuffer::new(needed)),
        Default::default(),
    )
    .map_err(|_| {
        TrainError::Recipe("the inputs of the examples are too large to compare".to_string())
    })?;
    Ok(((0..size).map(|at| values[at].max(0.0)).collect(), vectors))
}

/// How the eigenvectors are divided into tasks. It decides in which order numbers are added, so
/// it is the same on any number of threads.
const TASKS: Par = Par::Rayon(NonZeroUsize::new(8).expect("not zero"));

/// The regression for all penalties.
struct Fit {
    features: RandomFeatures,
    examples: usize,
    /// The mean of the targets, `[K]`.
    mean: Vec<f32>,
    /// Eigenvectors V of the centred ΦᵀΦ, `[M, M]`, and its eigenvalues.
    vectors: Mat<f64>,
    values: Vec<f64>,
    /// Vᵀ Φᵀ Y, `[M, K]`.
    loads: Mat<f64>,
    /// λ, and the leave-one-out error with it.
    penalty: f64,
    error: f64,
}

impl Fit {
    /// Fits some examples, on at most this many features; `None` when it was stopped.
    fn new(
        rows: &Rows<'_>,
        normalization: &Normalization,
        targets: &[f32],
        most: usize,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, TrainError> {
        let examples = rows.rows.len();
        let (width, classes) = (normalization.center.len(), targets.len() / examples);
        let count = most.min(FEATURES_PER_EXAMPLE * examples);
        let square = mean_square(rows, normalization)?;
        let mut features = RandomFeatures::new(width, count, square);
        let mut gram = Mat::<f64>::zeros(count, count);
        let mut loads = Mat::<f64>::zeros(count, classes);
        let mut sums = vec![0.0f64; count];
        let complete = rows.each_block(normalization, &features, stop, |range, block| {
            let own = &targets[range.start * classes..range.end * classes];
            let own = MatRef::from_row_major_slice(own, range.len(), classes);
            let tasks = gram.par_col_chunks_mut(STRIPE).zip(loads.par_row_chunks_mut(STRIPE));
            let tasks = tasks.zip(sums.par_chunks_mut(STRIPE)).enumerate();
            tasks.for_each(|(stripe, ((gram, loads), sums))| {
                let start = stripe * STRIPE;
                let stripe = block.subcols(start, sums.len());
                // The upper triangle is the lower one.
                let below = block.subcols(start, count - start);
                add(gram.subrows_mut(start, count - start), below.transpose(), stripe);
                add(loads, stripe.transpose(), own);
                for (column, sum) in stripe.col_iter().zip(sums) {
                    *sum += column.iter().map(|value| f64::from(*value)).sum::<f64>();
                }
            });
        })?;
        if !complete {
            return Ok(None);
        }
        let mean = class_means(targets, classes);
        center(&mut gram, &mut loads, &sums, &mean, examples);
        features.mean = sums.iter().map(|sum| (sum / examples as f64) as f32).collect();
        let (values, vectors) = eigen(&gram)?;
        let mut rotated = Mat::zeros(count, classes);
        matmul(&mut rotated, Accum::Replace, vectors.transpose(), &loads, 1.0, Par::Seq);
        let loads = rotated;
        let mean = mean.iter().map(|mean| *mean as f32).collect();
        let (penalty, error) = (0.0, f64::INFINITY);
        let mut fit = Self { features, examples, mean, vectors, values, loads, penalty, error };
        let complete = fit.choose_penalty(rows, normalization, targets, stop)?;
        Ok(complete.then_some(fit))
    }

    /// The λ with the smallest leave-one-out error; false when it was stopped.
    fn choose_penalty(
        &mut self,
        rows: &Rows<'_>,
        normalization: &Normalization,
        targets: &[f32],
        stop: &AtomicBool,
    ) -> Result<bool, TrainError> {
        let classes = self.mean.len();
        let chosen = every(rows.rows.len(), CHOOSING_PENALTY);
        let positions: Vec<usize> = chosen.iter().map(|at| rows.rows[*at]).collect();
        let sample = Rows { split: rows.split, rows: &positions };
        let targets = rows_of(targets, classes, &chosen);
        let largest = self.values.last().copied().unwrap_or_default().max(LEAST_EIGENVALUE);
        let step = DECADES / (PENALTIES - 1) as f64;
        let penalties: Vec<f64> = (0..PENALTIES)
            .map(|at| largest * LARGEST_PENALTY * 10f64.powf(-step * at as f64))
            .collect();
        let vectors = rounded(&self.vectors);
        let mut errors = vec![0.0; PENALTIES];
        let complete = sample.each_block(normalization, &self.features, stop, |range, block| {
            let targets = &targets[range.start * classes..range.end * classes];
            let found = self.errors(block, targets, &vectors, &penalties);
            errors.iter_mut().zip(found).for_each(|(sum, error)| *sum += error);
        })?;
        for (penalty, error) in penalties.into_iter().zip(errors) {
            if error < self.error {
                (self.penalty, self.error) = (penalty, error);
            }
        }
        Ok(complete)
    }

    /// The sum of the squared leave-one-out errors of some examples under each penalty.
    fn errors(
        &self,
        features: &Mat<f32>,
        targets: &[f32],
        vectors: &Mat<f32>,
        penalties: &[f64],
    ) -> Vec<f64> {
        let tasks = features.par_row_chunks(ROWS);
        let tasks = tasks.zip(targets.par_chunks(ROWS * self.mean.len()));
        let found = tasks.map(|(features, targets)| {
            let rotated = product(features, vectors.as_ref());
            let error = |penalty: &f64| self.error_of(&rotated, targets, *penalty);
            penalties.iter().map(error).collect::<Vec<f64>>()
        });
        let mut errors = vec![0.0; penalties.len()];
        for found in found.collect::<Vec<_>>() {
            errors.iter_mut().zip(found).for_each(|(sum, error)| *sum += error);
        }
        errors
    }

    /// The same under one penalty, from Φ V.
    fn error_of(&self, rotated: &Mat<f32>, targets: &[f32], penalty: f64) -> f64 {
        let shrink: Vec<f64> = self.values.iter().map(|value| 1.0 / (value + penalty)).collect();
        let loads = Mat::from_fn(self.loads.nrows(), self.loads.ncols(), |at, class| {
            (shrink[at] * self.loads[(at, class)]) as f32
        });
        let fitted = product(rotated.as_ref(), loads.as_ref());
        let mut leverages = vec![0.0; rotated.nrows()];
        for (column, shrink) in rotated.col_iter().zip(&shrink) {
            let (squares, shrink) = (leverages.iter_mut().zip(column.iter()), *shrink as f32);
            squares.for_each(|(sum, value)| *sum += f64::from(value * value * shrink));
        }
        let mut predicted = vec![0.0; targets.len()];
        self.leave_out(&fitted, &leverages, targets, &mut predicted);
        predicted.iter().zip(targets).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    }
}

/// The largest eigenvalue is taken to be at least this, so that a penalty is never zero.
const LEAST_EIGENVALUE: f64 = 1e-30;

/// Columns of ΦᵀΦ that one task computes.
const STRIPE: usize = 256;

fn product(left: MatRef<'_, f32>, right: MatRef<'_, f32>) -> Mat<f32> {
    let mut out = Mat::zeros(left.nrows(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, Par::Seq);
    out
}

/// Adds left · right, which is computed in f32.
fn add(sum: MatMut<'_, f64>, left: MatRef<'_, f32>, right: MatRef<'_, f32>) {
    let block = product(left, right);
    for (sum, block) in sum.col_iter_mut().zip(block.col_iter()) {
        sum.iter_mut().zip(block.iter()).for_each(|(sum, value)| *sum += f64::from(*value));
    }
}

/// The mean over the examples of the squared length of an input.
fn mean_square(rows: &Rows<'_>, normalization: &Normalization) -> Result<f64, TrainError> {
    let chosen = every(rows.rows.len(), CHOOSING_SCALE);
    let mut input = vec![0.0; normalization.center.len()];
    let mut sum = 0.0;
    for at in &chosen {
        rows.split.inputs.read(rows.split.rows[rows.rows[*at]], &mut input)?;
        normalization.apply(&mut input);
        sum += input.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    }
    Ok(sum / chosen.len() as f64)
}

fn class_means(targets: &[f32], classes: usize) -> Vec<f64> {
    let mut means = vec![0.0; classes];
    for row in targets.chunks_exact(classes) {
        means.iter_mut().zip(row).for_each(|(mean, target)| *mean += f64::from(*target));
    }
    let examples = (targets.len() / classes) as f64;
    means.iter().map(|sum| sum / examples).collect()
}

/// Takes the means of the features and of the targets away; of the Gram matrix from its lower
/// triangle alone.
fn center(gram: &mut Mat<f64>, loads: &mut Mat<f64>, sums: &[f64], mean: &[f64], examples: usize) {
    for column in 0..gram.ncols() {
        for row in column..gram.nrows() {
            gram[(row, column)] -= sums[row] * sums[column] / examples as f64;
        }
    }
    for (column, mean) in mean.iter().enumerate() {
        for row in 0..loads.nrows() {
            loads[(row, column)] -= sums[row] * mean;
        }
    }
}

#[cfg(test)]
mod tests;
