//! What the loss compares with, from each kind of labels.

use std::collections::BTreeMap;
use std::ops::Range;

use aleator_run::recipe::{Annotations, Link};

use super::mixup;
use crate::dataset::Split;
use crate::draws::{self, Purpose};
use crate::labels::{Labels, Votes, pick};

/// What the loss compares predictions with.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// One class for each example, `[B]`.
    Classes(Vec<u32>),
    /// Weights of some classes: classes that are on, probabilities, or scaled counts of
    /// annotations.
    Sparse(SparseTargets),
}

impl Targets {
    fn into_sparse(self) -> SparseTargets {
        match self {
            Self::Sparse(rows) => rows,
            Self::Classes(classes) => classes.into_iter().map(|class| [(class, 1.0)]).collect(),
        }
    }
}

/// Weights of some classes of each example; the others have none.
///
/// ```
/// use aleator_data::SparseTargets;
///
/// let mut rows = SparseTargets::default();
/// rows.push([(3, 1.0)]);
/// rows.push([(0, 0.75), (1, 0.0), (4, 0.25)]);
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows.row(1).collect::<Vec<_>>(), [(0, 0.75), (4, 0.25)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseTargets {
    /// Example i has the entries from `offsets[i]` to `offsets[i + 1]`, [B + 1].
    pub offsets: Vec<usize>,
    /// Classes, ascending in each example.
    pub classes: Vec<u32>,
    /// Their weights, none of them zero.
    pub weights: Vec<f32>,
}

impl Default for SparseTargets {
    fn default() -> Self {
        Self { offsets: vec![0], classes: vec![], weights: vec![] }
    }
}

impl<T: IntoIterator<Item = (u32, f32)>> FromIterator<T> for SparseTargets {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        let mut targets = Self::default();
        rows.into_iter().for_each(|row| targets.push(row));
        targets
    }
}

impl SparseTargets {
    /// Examples.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an example, whose classes ascend; zeros are left out.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        for (class, weight) in row.into_iter().filter(|(_, weight)| *weight != 0.0) {
            self.classes.push(class);
            self.weights.push(weight);
        }
        self.offsets.push(self.classes.len());
    }

    /// The classes of an example with their weights.
    pub fn row(&self, example: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let entries = self.offsets[example]..self.offsets[example + 1];
        entries.map(|at| (self.classes[at], self.weights[at]))
    }
}

/// A step of training.
pub(super) struct Step<'a> {
    pub split: &'a Split,
    pub examples: &'a [usize],
    pub seed: u64,
    pub epoch: usize,
}

impl Step<'_> {
    /// Targets of some rows of the step, times the weights of their examples, mixed with the next
    /// row where that is wanted.
    pub fn targets(&self, rows: Range<usize>, mixed: bool) -> Targets {
        let Self { split, examples: of_step, .. } = *self;
        if !mixed {
            return self.unmixed(&of_step[rows]);
        }
        // Mixed annotations are scaled by their sum over the step; other targets need the next row.
        let each = matches!(split.labels, Labels::Annotations(_))
            && split.annotations == Annotations::Each;
        let wanted = if each { 0..of_step.len() } else { rows.clone() };
        let examples = &of_step[wanted.clone()];
        let keys: Vec<u64> = examples.iter().map(|example| split.ids.key(*example)).collect();
        let shares = mixup::shares(split, &keys, self.seed, self.epoch);
        let shares = shares.expect("the recipe asks for mixup");
        let next = of_step[wanted.end % of_step.len()];
        let with_next: Vec<usize> = examples.iter().copied().chain([next]).collect();
        let mut targets = mixup::mix_targets(&self.unmixed(&with_next).into_sparse(), &shares);
        if each {
            // Examples have as much weight as annotations; that of the step stays as it was.
            let sum: f64 = targets.weights.iter().map(|weight| f64::from(*weight)).sum();
            let scale = of_step.len() as f64 / sum;
            let scaled = |weight: &mut f32| *weight = (f64::from(*weight) * scale) as f32;
            targets.weights.iter_mut().for_each(scaled);
        }
        Targets::Sparse(rows.map(|row| targets.row(row - wanted.start)).collect())
    }

    fn unmixed(&self, examples: &[usize]) -> Targets {
        let targets = self.unweighted(examples);
        let Some(weights) = &self.split.weights else { return targets };
        let targets = targets.into_sparse();
        let weighted = examples.iter().enumerate().map(|(row, example)| {
            targets.row(row).map(|(class, target)| (class, target * weights[*example]))
        });
        Targets::Sparse(weighted.collect())
    }

    fn unweighted(&self, examples: &[usize]) -> Targets {
        let Self { split, seed, epoch, .. } = *self;
        let Labels::Annotations(votes) = &split.labels else {
            return of_labels(split, examples);
        };
        let class = |chosen: &dyn Fn(usize, u64) -> u32| {
            let chosen = |example: &usize| chosen(*example, split.ids.key(*example));
            classes(split, examples.iter().map(chosen).collect())
        };
        match split.annotations {
            Annotations::Majority => class(&|example, key| votes.majority(example, seed, key)),
            Annotations::Sampled => class(&|example, key| {
                let given = votes.row(example);
                given[draws::below(given.len(), seed, Purpose::Annotation, &[epoch as u64, key])]
            }),
            Annotations::Each => {
                let given: usize =
                    self.examples.iter().map(|example| votes.row(*example).len()).sum();
                counts(votes, examples, |_| self.examples.len() as f64 / given as f64)
            }
        }
    }
}

/// Targets of some examples in evaluation: nothing is drawn, and the sum of losses over all
/// examples does not depend on the size of batches.
pub(super) fn evaluation(split: &Split, examples: &[usize]) -> Targets {
    let Labels::Annotations(votes) = &split.labels else {
        return of_labels(split, examples);
    };
    match split.annotations {
        Annotations::Majority => {
            let majority = |example: &usize| votes.majority(*example, 0, split.ids.key(*example));
            classes(split, examples.iter().map(majority).collect())
        }
        // What drawing one annotation gives on average.
        Annotations::Sampled => {
            counts(votes, examples, |example| 1.0 / votes.row(example).len() as f64)
        }
        Annotations::Each => {
            let scale = votes.len() as f64 / votes.labels.len() as f64;
            counts(votes, examples, |_| scale)
        }
    }
}

fn of_labels(split: &Split, examples: &[usize]) -> Targets {
    match &split.labels {
        Labels::Single(labels) => classes(split, pick(labels, examples)),
        Labels::Soft(rows) => {
            let probs = |example: &usize| (0..).zip(rows.row(*example).iter().copied());
            Targets::Sparse(examples.iter().map(probs).collect())
        }
        Labels::MultiHot(sets) => {
            let on = |example: &usize| sets.row(*example).iter().map(|class| (*class, 1.0));
            Targets::Sparse(examples.iter().map(on).collect())
        }
        Labels::Annotations(_) => unreachable!("the caller knows what to do with annotations"),
    }
}

/// One class for each example, in the form that the link wants.
fn classes(split: &Split, classes: Vec<u32>) -> Targets {
    let targets = Targets::Classes(classes);
    match split.link {
        Link::Softmax => targets,
        Link::Sigmoid => Targets::Sparse(targets.into_sparse()),
    }
}

/// How many annotators gave each class, times `scale(example)`.
fn counts(votes: &Votes, examples: &[usize], scale: impl Fn(usize) -> f64) -> Targets {
    let counted = |example: &usize| {
        let one = scale(*example) as f32;
        let mut counts = BTreeMap::new();
        votes.row(*example).iter().for_each(|class| *counts.entry(*class).or_insert(0.0) += one);
        counts
    };
    Targets::Sparse(examples.iter().map(counted).collect())
}
