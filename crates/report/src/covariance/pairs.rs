//! The pairs of classes whose noise is tied most.

use std::collections::BTreeSet;
use std::ops::Range;

use aleator_covariance::{Block, Entries, Measure};
use rayon::prelude::*;
use serde::Serialize;

use super::best::Best;
use super::open::Covariances;
use super::sums::Flips;
use super::{NO_EFFECT, Observer};
use crate::error::ReportError;

/// Two classes, the first of the lower index, over all examples of a split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassPair {
    /// The index of a class.
    pub first: usize,
    /// The index of another.
    pub second: usize,
    /// Σ̄_ij.
    pub covariance: f64,
    /// (C Σ̄ C)_ij / τ².
    pub centred: f64,
    /// (C Σ̄ C)_ij divided by both standard deviations; `None` if one of these is only rounding.
    pub correlation: Option<f64>,
    /// P(u_second > u_first), averaged over the examples whose utility has its largest mean in
    /// the first class; `None` where there are none.
    pub flip: Option<f64>,
    /// The same with the classes exchanged.
    pub flip_back: Option<f64>,
    /// The meaning of the sign.
    pub relation: Relation,
}

/// How the noise of two classes is related.
///
/// It is the sign of the centred covariance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Negative: where one class gains, the other loses, as when annotators choose between them.
    Substitutes,
    /// Positive: both gain at the expense of others, as when they occur together or look alike.
    CoOccurring,
    /// Their noise is independent, or too small to have an effect.
    Unrelated,
    /// Negative in some runs, positive or without an effect in others.
    Unclear,
}

impl Relation {
    /// Of two classes, by their centred covariance in units of τ².
    pub fn of(centred: f64) -> Self {
        match centred {
            value if value <= -NO_EFFECT => Self::Substitutes,
            value if value >= NO_EFFECT => Self::CoOccurring,
            _ => Self::Unrelated,
        }
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Substitutes => "substitutes",
            Self::CoOccurring => "co-occurring",
            Self::Unrelated => "unrelated",
            Self::Unclear => "sign varies",
        }
    }
}

/// The pairs of largest absolute value, by three measures; the largest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopPairs {
    /// By Σ̄, as the paper has it; none with noise `"diagonal"`, whose classes share no noise.
    pub by_covariance: Vec<ClassPair>,
    /// By C Σ̄ C / τ².
    pub by_centred: Vec<ClassPair>,
    /// By the correlation of C Σ̄ C.
    pub by_correlation: Vec<ClassPair>,
}

impl TopPairs {
    /// The pairs by one of the measures.
    pub fn by(&self, measure: Measure) -> &[ClassPair] {
        match measure {
            Measure::Raw => &self.by_covariance,
            Measure::Centred => &self.by_centred,
            Measure::Correlation => &self.by_correlation,
        }
    }
}

/// The largest pairs (i, j), with their numbers of mean V Vᵀ.
type BestPairs = Best<(usize, usize), f64>;

impl Covariances {
    /// The pairs of classes of largest absolute average covariance.
    ///
    /// Reads the predictions about three times, and more often if K² sums do not fit in memory.
    pub fn top_pairs(&mut self, top: usize, observer: Observer) -> Result<TopPairs, ReportError> {
        let classes = self.classes();
        let entries = self.entries(observer)?;
        let mut best = [(); 3].map(|()| Best::new(top));
        self.for_each_block(observer, |block| {
            let rows: Vec<usize> = block.rows.clone().collect();
            let found: Vec<[BestPairs; 3]> = rows
                .par_chunks(ROWS)
                .map(|rows| best_of_rows(block, rows, classes, &entries, top))
                .collect();
            for found in found {
                best.iter_mut().zip(found).for_each(|(best, found)| best.merge(found));
            }
        })?;
        let lists = best.map(Best::into_sorted);
        let pairs: BTreeSet<(usize, usize)> = lists.iter().flatten().map(|it| it.1).collect();
        let both_ways = pairs.into_iter().flat_map(|(i, j)| [(i, j), (j, i)]);
        let flips = self.flips(both_ways, observer)?;
        let related = self.has_factors();
        let describe = |(_, pair, factors): (f64, (usize, usize), f64)| {
            class_pair(&entries, &flips, related, pair, factors)
        };
        let [by_covariance, by_centred, by_correlation] =
            lists.map(|list| list.into_iter().map(describe).collect());
        Ok(TopPairs { by_covariance, by_centred, by_correlation })
    }
}

/// Two classes, from their number of mean V Vᵀ.
pub(super) fn class_pair(
    entries: &Entries,
    flips: &Flips,
    related: bool,
    (i, j): (usize, usize),
    factors: f64,
) -> ClassPair {
    let entry = entries.pair(i, j, factors);
    ClassPair {
        first: i,
        second: j,
        covariance: entry.raw,
        centred: entry.centred,
        correlation: entries.correlated(i, j).then_some(entry.correlation),
        flip: flips[&(i, j)],
        flip_back: flips[&(j, i)],
        relation: if related { Relation::of(entry.centred) } else { Relation::Unrelated },
    }
}

/// Rows of a block for one task.
const ROWS: usize = 16;

fn best_of_rows(
    block: &Block,
    rows: &[usize],
    classes: usize,
    entries: &Entries,
    top: usize,
) -> [BestPairs; 3] {
    let mut best = [(); 3].map(|()| Best::new(top));
    for i in rows.iter().copied() {
        let others: Range<usize> = i + 1..classes;
        for (j, factors) in others.zip(&block.row(i, classes)[1..]) {
            let entry = entries.pair(i, j, *factors);
            let values = [entry.raw, entry.centred, entry.correlation];
            for (best, value) in best.iter_mut().zip(values) {
                if value != 0.0 {
                    best.offer(value.abs(), (i, j), *factors);
                }
            }
        }
    }
    best
}
