//! Multilabel, where each class is positive or negative: NLL, Brier score, average precision.
//!
//! `log_on` is `log p` and `log_off` is `log(1 − p)`, both `[N, K]`; `multi_hot` marks the positive
//! classes, `[N, K]`. Both logarithms are needed because in f32 neither can be computed from the
//! other without loss.

use crate::{checks, mean_of_examples, ranking};

/// The fraction of examples whose most probable class is positive. An example without positive
/// classes counts as an error.
pub fn top1_accuracy(log_on: &[f32], classes: usize, multi_hot: &[bool]) -> f64 {
    let examples = check_on(log_on, classes, multi_hot);
    let rows = log_on.chunks(classes).zip(multi_hot.chunks(classes));
    let hits = rows.filter(|(row, on)| on[super::argmax(row)]).count();
    hits as f64 / examples as f64
}

/// The fraction of examples in which exactly the positive classes are more likely on than off.
///
/// ```
/// # use aleator_metrics::classification::multilabel::subset_accuracy;
/// let (high, low) = (0.9f32.ln(), 0.1f32.ln());
/// let (on, off) = ([high, low, high, high], [low, high, low, low]);
/// assert_eq!(subset_accuracy(&on, &off, 2, &[true, false, true, false]), 0.5);
/// ```
pub fn subset_accuracy(log_on: &[f32], log_off: &[f32], classes: usize, multi_hot: &[bool]) -> f64 {
    let examples = check(log_on, log_off, classes, multi_hot);
    let rows = log_on.chunks(classes).zip(log_off.chunks(classes)).zip(multi_hot.chunks(classes));
    let is_hit = |((on, off), is_on): &((&[f32], &[f32]), &[bool])| {
        on.iter().zip(*off).zip(*is_on).all(|((on, off), is_on)| (on > off) == *is_on)
    };
    rows.filter(is_hit).count() as f64 / examples as f64
}

/// The binary cross-entropy of each example, summed over its classes, `[N]`.
pub fn example_nll(
    log_on: &[f32],
    log_off: &[f32],
    classes: usize,
    multi_hot: &[bool],
) -> Vec<f64> {
    check(log_on, log_off, classes, multi_hot);
    let rows = log_on.chunks(classes).zip(log_off.chunks(classes)).zip(multi_hot.chunks(classes));
    rows.map(|((on, off), is_on)| losses(on, off, is_on).sum()).collect()
}

/// The binary cross-entropy, summed over classes and averaged over examples.
///
/// ```
/// # use aleator_metrics::classification::multilabel::nll;
/// let half = [0.5f32.ln(); 4];
/// assert!((nll(&half, &half, 2, &[true, false, false, false]) - 2.0 * 2f64.ln()).abs() < 1e-7);
/// ```
pub fn nll(log_on: &[f32], log_off: &[f32], classes: usize, multi_hot: &[bool]) -> f64 {
    mean_of_examples(&example_nll(log_on, log_off, classes, multi_hot))
}

/// The binary cross-entropy of each class, averaged over all examples, `[K]`.
///
/// Their sum is [`nll`].
pub fn class_nll(log_on: &[f32], log_off: &[f32], classes: usize, multi_hot: &[bool]) -> Vec<f64> {
    let examples = check(log_on, log_off, classes, multi_hot);
    let mut sums = vec![0.0; classes];
    for (at, loss) in losses(log_on, log_off, multi_hot).enumerate() {
        sums[at % classes] += loss;
    }
    sums.iter().map(|sum| sum / examples as f64).collect()
}

/// The squared error of p, summed over classes and averaged over examples.
pub fn brier(log_on: &[f32], log_off: &[f32], classes: usize, multi_hot: &[bool]) -> f64 {
    let examples = check(log_on, log_off, classes, multi_hot);
    let pairs = log_on.iter().zip(log_off).zip(multi_hot);
    let errors = pairs.map(|((on, off), is_on)| squared_error(*on, *off, *is_on));
    errors.sum::<f64>() / examples as f64
}

/// The square of p − 1 of a positive class, of p of a negative one.
pub(crate) fn squared_error(on: f32, off: f32, is_on: bool) -> f64 {
    // The error is the probability of the outcome that did not occur.
    let log_error = if is_on { off } else { on };
    (2.0 * log_error as f64).exp()
}

/// The number of examples in which each class is positive, `[K]`.
pub fn class_counts(multi_hot: &[bool], classes: usize) -> Vec<usize> {
    checks::examples("multi_hot", multi_hot.len(), classes);
    let mut counts = vec![0; classes];
    for (at, on) in multi_hot.iter().enumerate() {
        counts[at % classes] += usize::from(*on);
    }
    counts
}

/// gAP: average precision of all (example, class) pairs ranked together by their confidence;
/// `None` without positive labels.
///
/// The paper calls it "the average precision over all classes" and gives no formula. Ranking all
/// pairs in one list is what "global" means elsewhere, and what scikit-learn calls the micro
/// average. It is stricter than [`mean_average_precision`]: confidences of different classes must be
/// comparable.
///
/// ```
/// # use aleator_metrics::classification::multilabel::global_average_precision;
/// let log_on = [-0.1, -2.0, -0.3, -0.2];
/// let gap = global_average_precision(&log_on, &[true, false, true, false]);
/// assert_eq!(gap, Some(0.5 * 1.0 + 0.5 * (2.0 / 3.0)));
/// ```
pub fn global_average_precision(log_on: &[f32], multi_hot: &[bool]) -> Option<f64> {
    check_on(log_on, 1, multi_hot);
    ranking::average_precision(log_on, multi_hot)
}

/// The average precision of each class, `[K]`; `None` for a class that is never positive.
pub fn class_average_precision(
    log_on: &[f32],
    classes: usize,
    multi_hot: &[bool],
) -> Vec<Option<f64>> {
    check_on(log_on, classes, multi_hot);
    let of_class = |class| {
        let scores: Vec<f32> = log_on.iter().skip(class).step_by(classes).copied().collect();
        let on: Vec<bool> = multi_hot.iter().skip(class).step_by(classes).copied().collect();
        ranking::average_precision(&scores, &on)
    };
    (0..classes).map(of_class).collect()
}

/// mAP: the mean of [`class_average_precision`] over the classes that have one; `None` without
/// positive labels.
pub fn mean_average_precision(log_on: &[f32], classes: usize, multi_hot: &[bool]) -> Option<f64> {
    mean_over_known(&class_average_precision(log_on, classes, multi_hot))
}

fn mean_over_known(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// `−log` of the probability of the actual outcome, for each (example, class).
fn losses(log_on: &[f32], log_off: &[f32], multi_hot: &[bool]) -> impl Iterator<Item = f64> {
    let sides = log_on.iter().zip(log_off).zip(multi_hot);
    sides.map(|((on, off), is_on)| loss(*on, *off, *is_on))
}

pub(crate) fn loss(on: f32, off: f32, is_on: bool) -> f64 {
    // Not `−x`: the loss of a certain prediction is 0, not −0.
    0.0 - if is_on { on } else { off } as f64
}

/// Checks that the arguments are `[N, K]`, logarithms and labels; returns `N`.
pub(crate) fn check(log_on: &[f32], log_off: &[f32], classes: usize, multi_hot: &[bool]) -> usize {
    checks::on_off(log_on, log_off);
    check_on(log_on, classes, multi_hot)
}

/// The same without `log_off`.
pub(crate) fn check_on(log_on: &[f32], classes: usize, multi_hot: &[bool]) -> usize {
    let examples = checks::examples("log_on", log_on.len(), classes);
    checks::logarithms("log_on", log_on);
    checks::same_shape("multi_hot", multi_hot.len(), log_on.len());
    examples
}
