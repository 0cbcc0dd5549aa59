//! What the loss compares with, from each kind of labels.

use aleator_run::recipe::{Annotations, Link};

use super::Targets;
use crate::dataset::Split;
use crate::draws::{self, Purpose};
use crate::labels::{Labels, Votes};

/// Targets of some examples in one epoch of training, times their weights.
pub(super) fn training(split: &Split, examples: &[usize], seed: u64, epoch: usize) -> Targets {
    let targets = unweighted(split, examples, seed, epoch);
    let Some(weights) = &split.weights else { return targets };
    let mut dense = match targets {
        Targets::Dense(dense) => dense,
        Targets::Classes(classes) => one_hot(split, &classes),
    };
    for (row, example) in dense.chunks_exact_mut(split.classes).zip(examples) {
        row.iter_mut().for_each(|target| *target *= weights[*example]);
    }
    Targets::Dense(dense)
}

fn unweighted(split: &Split, examples: &[usize], seed: u64, epoch: usize) -> Targets {
    let Labels::Annotations(votes) = &split.labels else {
        return of_labels(split, examples);
    };
    let class = |chosen: &dyn Fn(usize, u64) -> u32| {
        let key = |example: usize| split.ids.key(example);
        classes(split, examples.iter().map(|example| chosen(*example, key(*example))).collect())
    };
    match split.annotations {
        Annotations::Majority => class(&|example, key| votes.majority(example, seed, key)),
        Annotations::Sampled => class(&|example, key| {
            let said = votes.row(example);
            said[draws::below(said.len(), seed, Purpose::Annotation, &[epoch as u64, key])]
        }),
        Annotations::Each => {
            let said: usize = examples.iter().map(|example| votes.row(*example).len()).sum();
            counts(split, votes, examples, |_| examples.len() as f64 / said as f64)
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
            counts(split, votes, examples, |example| 1.0 / votes.row(example).len() as f64)
        }
        Annotations::Each => {
            let scale = votes.len() as f64 / votes.labels.len() as f64;
            counts(split, votes, examples, |_| scale)
        }
    }
}

fn of_labels(split: &Split, examples: &[usize]) -> Targets {
    match &split.labels {
        Labels::Single(labels) => {
            classes(split, examples.iter().map(|example| labels[*example]).collect())
        }
        Labels::Soft(rows) => {
            let probs = examples.iter().flat_map(|example| rows.row(*example));
            Targets::Dense(probs.copied().collect())
        }
        Labels::MultiHot(sets) => ones(split, examples, |example| sets.row(example)),
        Labels::Annotations(_) => unreachable!("the caller knows what to do with annotations"),
    }
}

/// One class an example, in the form that the link wants.
fn classes(split: &Split, classes: Vec<u32>) -> Targets {
    match split.link {
        Link::Softmax => Targets::Classes(classes),
        Link::Sigmoid => Targets::Dense(one_hot(split, &classes)),
    }
}

fn one_hot(split: &Split, classes: &[u32]) -> Vec<f32> {
    let mut dense = vec![0.0; classes.len() * split.classes];
    for (row, class) in dense.chunks_exact_mut(split.classes).zip(classes) {
        row[*class as usize] = 1.0;
    }
    dense
}

fn ones<'a>(split: &Split, examples: &[usize], on: impl Fn(usize) -> &'a [u32]) -> Targets {
    let mut dense = vec![0.0; examples.len() * split.classes];
    for (row, example) in dense.chunks_exact_mut(split.classes).zip(examples) {
        on(*example).iter().for_each(|class| row[*class as usize] = 1.0);
    }
    Targets::Dense(dense)
}

/// How often each class was said, times `scale(example)`.
fn counts(
    split: &Split,
    votes: &Votes,
    examples: &[usize],
    scale: impl Fn(usize) -> f64,
) -> Targets {
    let mut dense = vec![0.0; examples.len() * split.classes];
    for (row, example) in dense.chunks_exact_mut(split.classes).zip(examples) {
        let one = scale(*example) as f32;
        votes.row(*example).iter().for_each(|class| row[*class as usize] += one);
    }
    Targets::Dense(dense)
}
