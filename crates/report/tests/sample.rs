//! The count of wrong labels from a sample of them: unbiased, and inside its interval.

use std::collections::BTreeSet;

use aleator_report::audit::{SampledCount, SamplingOrder};

use crate::support::Random;

const LABELS: usize = 2_000;
const ORDERS: u64 = 400;

/// Ranked scores of which most are near 0 and some near 1, as audits have them.
fn scores() -> Vec<f64> {
    let mut random = Random(7);
    let mut scores: Vec<f64> = (0..LABELS).map(|_| f64::from(random.uniform()).powi(6)).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores
}

/// SplitMix64's output function: a random number for each seed and rank.
fn key(seed: u64, rank: usize) -> u64 {
    let mut z = (seed << 32 | rank as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The counts that reviews of `reviewed` labels come to, in many random orders.
fn counts(wrong: &[bool], reviewed: usize) -> Vec<SampledCount> {
    let scores = scores();
    let one = |seed: u64| {
        let order = SamplingOrder::new(&scores, |rank| key(seed, rank));
        let seen: BTreeSet<usize> = order.ranks().take(reviewed).collect();
        order.count(|rank| seen.contains(&rank).then(|| wrong[rank])).expect("a count")
    };
    (0..ORDERS).map(one).collect()
}

/// Labels that are wrong with a probability that depends on their score.
fn wrong(probability: impl Fn(f64) -> f64) -> Vec<bool> {
    let mut random = Random(11);
    scores().iter().map(|score| f64::from(random.uniform()) < probability(*score)).collect()
}

/// Scores that are right, too high, too low, useless, and data without a wrong label.
fn populations() -> [(&'static str, Vec<bool>); 7] {
    [
        ("right", wrong(|score| score)),
        ("too high", wrong(|score| score * score)),
        ("too low", wrong(|score| score.sqrt())),
        ("useless", wrong(|_| 0.1)),
        ("upside down", wrong(|score| 0.3 * (1.0 - score))),
        ("rare", wrong(|_| 0.004)),
        ("none", wrong(|_| 0.0)),
    ]
}

/// The mean over random orders is the truth, to the standard error of a mean over that many.
#[test]
fn the_count_is_unbiased_whatever_the_scores_are_worth() {
    for (name, wrong) in populations() {
        let truth = wrong.iter().filter(|wrong| **wrong).count() as f64;
        for reviewed in [16, 50, 300] {
            let counts = counts(&wrong, reviewed);
            let all = counts.len() as f64;
            let mean = counts.iter().map(|it| it.count).sum::<f64>() / all;
            let squares = counts.iter().map(|it| (it.count - mean).powi(2)).sum::<f64>();
            // Four standard errors: 21 comparisons fail by chance once in 700.
            let tolerance = 4.0 * (squares / (all - 1.0) / all).sqrt();
            assert!((mean - truth).abs() <= tolerance, "{name}, {reviewed}: {mean} for {truth}");
        }
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    for (name, wrong) in populations() {
        let truth = wrong.iter().filter(|wrong| **wrong).count() as f64;
        for reviewed in [16, 50, 300] {
            let counts = counts(&wrong, reviewed);
            let inside = counts.iter().filter(|it| it.low <= truth && truth <= it.high).count();
            let share = inside as f64 / counts.len() as f64;
            // Of 400 intervals that hold it with 0.95, fewer than 0.92 hold it once in 200.
            assert!(share >= 0.92, "{name}, {reviewed}: {share} of the intervals hold {truth}");
        }
    }
}

/// Against the 1 / √n of a sample without strata and of the same size.
#[test]
fn strata_by_score_need_fewer_labels() {
    let wrong = wrong(|score| score);
    let rate = wrong.iter().filter(|wrong| **wrong).count() as f64 / LABELS as f64;
    let counts = counts(&wrong, 200);
    let mean = counts.iter().map(|it| it.count).sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|it| (it.count - mean).powi(2)).sum::<f64>();
    let variance = squares / (counts.len() - 1) as f64;
    let all = LABELS as f64;
    let without = all * all * rate * (1.0 - rate) / 200.0 * (1.0 - 200.0 / all);
    assert!(variance < 0.6 * without, "{variance} against {without}");
}

#[test]
fn the_forecast_of_a_halved_interval_comes_true() {
    let (wrong, scores) = (wrong(|score| score), scores());
    let order = SamplingOrder::new(&scores, |rank| key(3, rank));
    let after = |reviewed: usize| {
        let seen: BTreeSet<usize> = order.ranks().take(reviewed).collect();
        order.count(|rank| seen.contains(&rank).then(|| wrong[rank])).expect("a count")
    };
    let first = after(120);
    let more = first.to_halve.expect("labels are left");
    let second = after(120 + more);
    let ratio = (second.high - second.low) / (first.high - first.low);
    assert!((0.35..0.65).contains(&ratio), "{ratio} after {more} more");
}

#[test]
fn labels_that_are_all_decided_are_counted() {
    let wrong = wrong(|score| score);
    let truth = wrong.iter().filter(|wrong| **wrong).count() as f64;
    let order = SamplingOrder::new(&scores(), |rank| key(0, rank));
    let count = order.count(|rank| Some(wrong[rank])).expect("a count");
    assert_eq!((count.low, count.high), (truth, truth));
    assert!((count.count - truth).abs() < 1e-9, "{count:?}");
    assert_eq!((count.sampled, count.to_halve), (LABELS, None));
}

/// Those most surely wrong are no sample: they bound the count, and do not decide it.
#[test]
fn labels_decided_in_another_order_do_not_pass_for_a_sample() {
    let wrong = wrong(|score| score * score);
    let order = SamplingOrder::new(&scores(), |rank| key(0, rank));
    let surest = |rank: usize| (rank < 150).then(|| wrong[rank]);
    assert_eq!(order.count(surest), None);
    let seen: BTreeSet<usize> = order.ranks().take(40).collect();
    let sample = |rank: usize| seen.contains(&rank).then(|| wrong[rank]);
    let alone = order.count(sample).expect("a count");
    let both = order.count(|rank| surest(rank).or(sample(rank))).expect("a count");
    let found = (0..LABELS).filter(|rank| surest(*rank).or(sample(*rank)) == Some(true)).count();
    assert!(both.low >= found as f64, "{both:?}, {found} found");
    assert!(
        alone.low <= both.low && both.high <= alone.high + 1e-9 + (both.count - alone.count).abs()
    );
}

#[test]
fn every_label_is_drawn_once_and_few_labels_make_few_strata() {
    for count in [1, 2, 3, 5, 17, 500] {
        let scores: Vec<f64> = (0..count).map(|rank| if rank == 0 { 0.5 } else { 0.0 }).collect();
        let order = SamplingOrder::new(&scores, |rank| key(0, rank));
        let mut ranks: Vec<usize> = order.ranks().collect();
        assert!(order.least() <= count);
        ranks.sort_unstable();
        assert_eq!(ranks, (0..count).collect::<Vec<_>>());
    }
    assert_eq!(SamplingOrder::new(&[], |_| 0).ranks().count(), 0);
    assert_eq!(SamplingOrder::new(&[0.0; 40], |rank| key(0, rank)).least(), 16);
    assert_eq!(SamplingOrder::new(&[0.0; 6], |rank| key(0, rank)).least(), 4);
}
