//! Scores that are added up batch by batch equal those of the whole, bit for bit.

use crate::support::{CLASSES, Data, Draws};
use aleator_metrics::calibration::{
    expected_calibration_error, reliability, reliability_multilabel, reliability_soft,
};
use aleator_metrics::classification::{self, multilabel};
use aleator_metrics::{
    LogProbs, RELIABILITY_BINS, SplitAccumulator, SplitEvaluation, Summary, Truth,
};

/// Sizes of batches, the last of which is often smaller.
const SIZES: [usize; 4] = [1, 7, 32, 1000];

/// Data that two additions in another order would round differently.
fn data() -> Data {
    Data::drawn(&mut Draws::new(5), 300, CLASSES)
}

fn in_batches(log_probs: &LogProbs, given: &Truth, clean: &Truth, size: usize) -> SplitEvaluation {
    let mut scores = SplitAccumulator::new(Some(1.7));
    let rows = log_probs.on.chunks(size * CLASSES).enumerate();
    for (at, on) in rows {
        let first = at * size;
        let cells = first * CLASSES..first * CLASSES + on.len();
        let off = log_probs.off.as_ref().map(|off| off[cells.clone()].to_vec());
        let batch = LogProbs { classes: CLASSES, on: on.to_vec(), off };
        let part = |truth: &Truth| match truth {
            Truth::Classes(all) => Truth::Classes(all[first..first + on.len() / CLASSES].to_vec()),
            Truth::Soft(all) => Truth::Soft(all[cells.clone()].to_vec()),
            Truth::MultiHot(all) => Truth::MultiHot(all[cells.clone()].to_vec()),
        };
        scores.add(&batch, &part(given), Some(&part(clean)));
    }
    scores.finish()
}

#[track_caller]
fn assert_any_batches(log_probs: &LogProbs, given: &Truth, clean: &Truth) -> Summary {
    let whole = SplitEvaluation {
        given: log_probs.summary(given),
        clean: Some(log_probs.summary(clean)),
        calibrated: Some(log_probs.scaled(1.7).summary(given)),
    };
    for size in SIZES {
        assert_eq!(in_batches(log_probs, given, clean, size), whole, "batches of {size}");
    }
    whole.given
}

#[test]
fn one_class_per_example() {
    let Data { log_probs: on, labels, .. } = data();
    let clean: Vec<u32> = labels.iter().map(|label| (label + 1) % 7).collect();
    let (nll, brier) =
        (classification::nll(&on, CLASSES, &labels), classification::brier(&on, CLASSES, &labels));
    let top5 = classification::top_k_accuracy(&on, CLASSES, &labels, 5);
    let bins = reliability(&on, CLASSES, &labels, RELIABILITY_BINS);
    let log_probs = LogProbs { classes: CLASSES, on, off: None };
    let found = assert_any_batches(&log_probs, &Truth::Classes(labels), &Truth::Classes(clean));
    assert_eq!((found.nll, found.brier, found.top5), (nll, brier, Some(top5)));
    assert_eq!((found.ece, found.reliability), (expected_calibration_error(&bins), bins));
}

#[test]
fn soft_targets() {
    let Data { log_probs: on, targets, labels, .. } = data();
    let nll = classification::nll_soft(&on, CLASSES, &targets);
    let brier = classification::brier_soft(&on, CLASSES, &targets);
    let bins = reliability_soft(&on, CLASSES, &targets, RELIABILITY_BINS);
    let log_probs = LogProbs { classes: CLASSES, on, off: None };
    let found = assert_any_batches(&log_probs, &Truth::Soft(targets), &Truth::Classes(labels));
    assert_eq!((found.nll, found.brier, found.reliability), (nll, brier, bins));
}

#[test]
fn multilabel_classes() {
    let Data { log_on: on, log_off, multi_hot: hot, labels, .. } = data();
    let nll = multilabel::nll(&on, &log_off, CLASSES, &hot);
    let brier = multilabel::brier(&on, &log_off, CLASSES, &hot);
    let top1 = multilabel::top1_accuracy(&on, CLASSES, &hot);
    let subsets = multilabel::subset_accuracy(&on, &log_off, CLASSES, &hot);
    let of_classes = multilabel::class_nll(&on, &log_off, CLASSES, &hot);
    let aps = multilabel::class_average_precision(&on, CLASSES, &hot);
    let gap = multilabel::global_average_precision(&on, &hot);
    let mean_ap = multilabel::mean_average_precision(&on, CLASSES, &hot);
    let bins = reliability_multilabel(&on, &hot, RELIABILITY_BINS);
    let log_probs = LogProbs { classes: CLASSES, on, off: Some(log_off) };
    let found = assert_any_batches(&log_probs, &Truth::MultiHot(hot), &Truth::Classes(labels));
    assert_eq!((found.nll, found.brier, found.top1), (nll, brier, top1));
    assert_eq!((found.gap, found.mean_ap, found.reliability), (gap, mean_ap, bins));
    assert_eq!((found.gap_error, found.mean_ap_error), (None, None));
    assert_eq!(found.subset_accuracy, Some(subsets));
    let each: Vec<_> = found.per_class.iter().map(|it| (it.nll.unwrap(), it.ap)).collect();
    assert_eq!(each, of_classes.into_iter().zip(aps).collect::<Vec<_>>());
}
