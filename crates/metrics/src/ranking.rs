//! How well scores rank relevant items before the others: AUROC and average precision.
//!
//! Items of equal score share one threshold and have no order. Scores may be infinite.

mod entries;
mod score_bins;

pub(crate) use entries::EntryRanking;
pub(crate) use score_bins::Bounded;

/// The probability that a relevant item scores above an irrelevant one, where ties count half;
/// `None` if all items are relevant or none is.
///
/// ```
/// # use aleator_metrics::ranking::auroc;
/// let suspicion = [0.9, 0.8, 0.3, 0.3];
/// assert_eq!(auroc(&suspicion, &[true, false, true, false]), Some(0.625));
/// ```
pub fn auroc<S: Copy + Into<f64>>(scores: &[S], relevant: &[bool]) -> Option<f64> {
    let (mut above, mut below) = (0u64, 0u64);
    // Twice the number of pairs in the right order, exact in integers.
    let mut ordered = 0u128;
    for tie in ties(&ranked(scores, relevant)) {
        ordered += tie.irrelevant as u128 * (2 * above as u128 + tie.relevant as u128);
        above += tie.relevant;
        below += tie.irrelevant;
    }
    let pairs = above as u128 * below as u128;
    (pairs > 0).then(|| ordered as f64 / (2 * pairs) as f64)
}

/// `Σ_n (R_n − R_{n−1}) P_n` over the thresholds n, with precision P and recall R; `None` if no
/// item is relevant.
///
/// This is scikit-learn's definition: a step function, without interpolation.
///
/// ```
/// # use aleator_metrics::ranking::average_precision;
/// let suspicion = [0.9, 0.8, 0.3, 0.1];
/// let expected = 0.5 * 1.0 + 0.5 * (2.0 / 3.0);
/// assert_eq!(average_precision(&suspicion, &[true, false, true, false]), Some(expected));
/// ```
pub fn average_precision<S: Copy + Into<f64>>(scores: &[S], relevant: &[bool]) -> Option<f64> {
    let total = relevant.iter().filter(|relevant| **relevant).count();
    let (mut found, mut seen, mut sum) = (0, 0, 0.0);
    for tie in ties(&ranked(scores, relevant)) {
        found += tie.relevant;
        seen += tie.relevant + tie.irrelevant;
        sum += tie.relevant as f64 / total as f64 * (found as f64 / seen as f64);
    }
    (total > 0).then_some(sum)
}

/// The items with one score.
struct Tie {
    relevant: u64,
    irrelevant: u64,
}

/// The items with their scores, highest first.
fn ranked<S: Copy + Into<f64>>(scores: &[S], relevant: &[bool]) -> Vec<(S, bool)> {
    assert_eq!(scores.len(), relevant.len(), "scores and relevant must have one value per item");
    if let Some(at) = scores.iter().position(|score| (*score).into().is_nan()) {
        panic!("scores[{at}] is NaN, which has no rank");
    }
    let mut items: Vec<(S, bool)> = scores.iter().copied().zip(relevant.iter().copied()).collect();
    items.sort_unstable_by(|a, b| b.0.into().total_cmp(&a.0.into()));
    items
}

/// Ranked items grouped by score; 0 and −0 are equal.
fn ties<S: Copy + Into<f64>>(ranked: &[(S, bool)]) -> impl Iterator<Item = Tie> {
    ranked.chunk_by(|a, b| a.0.into() == b.0.into()).map(|group| {
        let relevant = group.iter().filter(|(_, relevant)| *relevant).count();
        Tie { relevant: relevant as u64, irrelevant: (group.len() - relevant) as u64 }
    })
}
