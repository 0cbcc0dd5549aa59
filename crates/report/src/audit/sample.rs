//! How many labels are wrong, by a random sample of them that a person has decided.
//!
//! The labels are divided into strata along the ranking, and each stratum is put into a random
//! order. A person who decides n_h labels of stratum h in that order has drawn n_h of its N_h
//! labels without replacement, each with probability n_h / N_h, whatever the scores are worth. So
//! Ŵ = Σ_h N_h x_h / n_h, where x_h of the decided labels are wrong, is unbiased
//! (Horvitz–Thompson). docs/audit.md has the argument and the interval.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::record::{Answer, Issue};

/// Most strata. Each must be sampled before there is a count, so that more of them cost labels, and
/// the variance within strata hardly becomes less.
const STRATA: usize = 4;

/// Least labels of a stratum before there is a count.
const LEAST: usize = 4;

/// Quantile of the standard Normal for intervals of 95 %.
const Z: f64 = 1.96;

/// An order of labels of which every beginning is a stratified random sample.
///
/// ```
/// use aleator_report::audit::SamplingOrder;
///
/// // Of 1,000 labels, ranked by score, 100 are wrong: every tenth, whatever the scores say.
/// let scores: Vec<f64> = (0..1000).map(|rank| 1.0 - rank as f64 / 1000.0).collect();
/// let is_wrong = |rank: usize| rank % 10 == 0;
/// let order = SamplingOrder::new(&scores, |rank| (rank as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
/// let reviewed: std::collections::BTreeSet<usize> = order.ranks().take(200).collect();
/// let count = order.count(|rank| reviewed.contains(&rank).then(|| is_wrong(rank))).unwrap();
/// assert_eq!(count.sampled, 200);
/// assert!(count.low < 100.0 && 100.0 < count.high);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingOrder {
    /// The ranks of each stratum, in the order in which they are drawn; none is empty.
    strata: Vec<Vec<u32>>,
}

/// How many labels are wrong, by a sample of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledCount {
    /// An unbiased estimate.
    pub count: f64,
    /// The lower end of a 95 % interval.
    pub low: f64,
    /// The upper end of a 95 % interval.
    pub high: f64,
    /// The labels that it is made from.
    pub sampled: usize,
    /// How many more would halve the interval; `None` if it has no width, or nothing is left.
    pub to_halve: Option<usize>,
}

/// One stratum: its size, and how many of its decided labels are wrong. Forecasts have fractions.
struct Stratum {
    size: f64,
    decided: f64,
    wrong: f64,
}

impl SamplingOrder {
    /// Divides labels that are ranked by `scores`; `key` is a random number for each rank.
    ///
    /// A stratum is a range of ranks over which √(s (1 − s)) + its mean sums to about the same as
    /// over the others. If scores are right, √(s (1 − s)) is the deviation of a label, and equally
    /// large samples of such strata have the least variance (Neyman, Dalenius and Hodges). The mean
    /// guards against scores that are wrong: no label is drawn less than half as often as in a
    /// sample without strata.
    pub fn new(scores: &[f64], key: impl Fn(usize) -> u64) -> Self {
        let deviation = |score: &f64| (score * (1.0 - score)).max(0.0).sqrt();
        let mean = scores.iter().map(deviation).sum::<f64>() / scores.len().max(1) as f64;
        let share = |score: &f64| if mean > 0.0 { deviation(score) + mean } else { 1.0 };
        let total: f64 = scores.iter().map(share).sum();
        let count = (scores.len() / (2 * LEAST)).clamp(1, STRATA);
        let mut strata = vec![vec![]; count];
        let mut before = 0.0;
        for (score, rank) in scores.iter().zip(0_u32..) {
            let middle = before + 0.5 * share(score);
            let stratum = (count as f64 * middle / total) as usize;
            strata[stratum.min(count - 1)].push(rank);
            before += share(score);
        }
        strata.retain(|ranks| !ranks.is_empty());
        for ranks in &mut strata {
            ranks.sort_by_cached_key(|rank| (key(*rank as usize), *rank));
        }
        Self { strata }
    }

    /// The order of an audit's labels, keyed by `seed` and their ids: it does not change when the
    /// same labels are audited again, except that labels move between strata.
    pub fn of_issues(issues: &[Issue], seed: u64) -> Self {
        let scores: Vec<f64> = issues.iter().map(|issue| issue.score).collect();
        Self::new(&scores, |rank| key(&issues[rank], seed))
    }

    /// All ranks, one stratum after the other in turn.
    pub fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        let longest = self.strata.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|at| self.strata.iter().filter_map(move |ranks| ranks.get(at)))
            .map(|rank| *rank as usize)
    }

    /// How many labels must be decided in this order before there is a count.
    pub fn least(&self) -> usize {
        self.strata.iter().map(|ranks| ranks.len().min(LEAST)).sum()
    }

    /// How many labels are wrong, where `is_wrong` knows this of the ranks that were decided.
    ///
    /// Of each stratum those count that were decided without a gap from its beginning; labels that
    /// were decided in another order are no random sample, and only bound the count. `None` until
    /// every stratum has four (or all) of its labels decided.
    pub fn count(&self, is_wrong: impl Fn(usize) -> Option<bool>) -> Option<SampledCount> {
        let stratum = |ranks: &Vec<u32>| {
            let known = ranks.iter().map_while(|rank| is_wrong(*rank as usize));
            let (decided, wrong) =
                known.fold((0, 0), |(decided, wrong), it| (decided + 1, wrong + usize::from(it)));
            (decided >= ranks.len().min(LEAST)).then_some(Stratum {
                size: ranks.len() as f64,
                decided: decided as f64,
                wrong: wrong as f64,
            })
        };
        let strata: Vec<Stratum> = self.strata.iter().map(stratum).collect::<Option<_>>()?;
        let count: f64 = strata.iter().map(|it| it.size * it.rate()).sum();
        let (below, above) = margins(&strata);
        let all = self.strata.iter().flatten();
        let (mut wrong, mut right) = (0.0, 0.0);
        all.clone().filter_map(|rank| is_wrong(*rank as usize)).for_each(|is_wrong| {
            *(if is_wrong { &mut wrong } else { &mut right }) += 1.0;
        });
        let most = all.count() as f64 - right;
        Some(SampledCount {
            count,
            low: (count - below).max(wrong),
            high: (count + above).min(most),
            sampled: strata.iter().map(|it| it.decided as usize).sum(),
            to_halve: to_halve(&strata),
        })
    }
}

impl Stratum {
    fn rate(&self) -> f64 {
        self.wrong / self.decided
    }

    /// Anscombe's interval of the share that is wrong: asin √p, whose variance hardly depends on p.
    /// Labels that are drawn without replacement count for more as fewer are left; when all are
    /// decided, the share is known.
    fn interval(&self) -> (f64, f64) {
        let left = self.size - self.decided;
        if left <= 0.0 {
            return (self.rate(), self.rate());
        }
        let (p, n) = (self.rate(), self.decided * (self.size - 1.0) / left);
        let centre = ((p * n + 0.375) / (n + 0.75)).sqrt().asin();
        let half = Z / (2.0 * (n + 0.5).sqrt());
        let low = (centre - half).max(0.0).sin().powi(2);
        let high = (centre + half).min(FRAC_PI_2).sin().powi(2);
        (if p > 0.0 { low.min(p) } else { 0.0 }, if p < 1.0 { high.max(p) } else { 1.0 })
    }

    /// The same stratum after `more` labels, if these are wrong as often as those before. Half a
    /// label of each kind is added, as none that is wrong among few does not mean none at all.
    fn forecast(&self, more: usize) -> Self {
        let rate = (self.wrong + 0.5) / (self.decided + 1.0);
        let decided = (self.decided + more as f64).min(self.size);
        Self { size: self.size, decided, wrong: rate * decided }
    }
}

/// How far the interval reaches below and above the count. The strata are independent, so that the
/// squares of their distances add up (Zou and Donner's method of variance estimates recovery);
/// unlike a variance alone, it is right where no label of a stratum is wrong.
fn margins(strata: &[Stratum]) -> (f64, f64) {
    let (mut below, mut above) = (0.0, 0.0);
    for stratum in strata {
        let (low, high) = stratum.interval();
        below += (stratum.size * (stratum.rate() - low)).powi(2);
        above += (stratum.size * (high - stratum.rate())).powi(2);
    }
    (below.sqrt(), above.sqrt())
}

/// How many more labels would halve the interval.
fn to_halve(strata: &[Stratum]) -> Option<usize> {
    let width = |more: usize| {
        let later: Vec<Stratum> = strata.iter().map(|it| it.forecast(more)).collect();
        let (below, above) = margins(&later);
        below + above
    };
    let left = |stratum: &Stratum| (stratum.size - stratum.decided) as usize;
    let most = strata.iter().map(left).max()?;
    let goal = width(0) / 2.0;
    if most == 0 || goal == 0.0 {
        return None;
    }
    let (mut too_few, mut enough) = (0, most);
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        *(if width(middle) <= goal { &mut enough } else { &mut too_few }) = middle;
    }
    Some(strata.iter().map(|stratum| left(stratum).min(enough)).sum())
}

/// A random number for each label: 64 bits of SHA-256 of the seed, the class and the id.
fn key(issue: &Issue, seed: u64) -> u64 {
    let class = match issue.given {
        Answer::Class(_) => u32::MAX,
        Answer::On(class) | Answer::Off(class) => class,
    };
    let mut hasher = Sha256::new();
    hasher.update(seed.to_le_bytes());
    hasher.update(class.to_le_bytes());
    hasher.update(issue.id.as_bytes());
    let hash = hasher.finalize();
    u64::from_le_bytes(*hash.first_chunk().expect("a hash has 32 bytes"))
}
