//! Which issues are reviewed, and in which order.

use std::collections::BTreeMap;

use aleator_report::audit::{Answer, Issue, SamplingOrder};
use serde::{Deserialize, Serialize};

/// The issues to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Suspects or all.
    pub scope: Scope,
    /// Only this pair, by its position in the list of pairs.
    pub pair: Option<usize>,
}

/// How far down the ranking the queue goes, or whether it follows the ranking at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// As many labels as are estimated to be wrong.
    Suspects,
    /// Every label.
    All,
    /// Every label, in a random order of which any beginning is a sample to count from.
    Sample,
}

impl Filter {
    /// All suspects.
    pub const SUSPECTS: Self = Self { scope: Scope::Suspects, pair: None };
}

/// A given and a suggested label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub given: Answer,
    pub suggested: Answer,
    /// How many suspects have this pair.
    pub count: usize,
}

/// The issues by scope and pair.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Whether each issue is a suspect.
    is_suspect: Vec<bool>,
    pub suspects: usize,
    /// The pairs of suspects, the most frequent first.
    pub pairs: Vec<Pair>,
    /// The position in `pairs` of each issue.
    pair_of: Vec<Option<u32>>,
    /// The order of [`Scope::Sample`].
    pub sampling: SamplingOrder,
    /// Of each label, the issues that are most surely right, the surest first.
    sure: BTreeMap<Answer, Vec<usize>>,
}

/// Issues that are kept for each label; some may be decided otherwise, or be the one in question.
const SURE: usize = 12;

/// The seed of the random order. It is always the same, so that a review continues its sample.
const SEED: u64 = 0;

impl Queue {
    pub fn new(issues: &[Issue]) -> Self {
        let key = |issue: &Issue| (issue.given, issue.suggested);
        let mut counts: BTreeMap<(Answer, Answer), usize> = BTreeMap::new();
        for issue in issues.iter().filter(|issue| issue.wrong) {
            *counts.entry(key(issue)).or_default() += 1;
        }
        let pair = |((given, suggested), count)| Pair { given, suggested, count };
        let mut pairs: Vec<Pair> = counts.into_iter().map(pair).collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.count));
        let positions: BTreeMap<(Answer, Answer), u32> =
            pairs.iter().map(|pair| (pair.given, pair.suggested)).zip(0..).collect();
        let mut sure: BTreeMap<Answer, Vec<usize>> = BTreeMap::new();
        for (at, issue) in issues.iter().enumerate().rev().filter(|(_, issue)| !issue.wrong) {
            let known = sure.entry(issue.given).or_default();
            if known.len() < SURE {
                known.push(at);
            }
        }
        Self {
            sampling: SamplingOrder::of_issues(issues, SEED),
            sure,
            is_suspect: issues.iter().map(|issue| issue.wrong).collect(),
            suspects: issues.iter().filter(|issue| issue.wrong).count(),
            pair_of: issues.iter().map(|issue| positions.get(&key(issue)).copied()).collect(),
            pairs,
        }
    }

    /// Issues with this label that are surely right, the surest first.
    pub fn sure(&self, label: Answer) -> &[usize] {
        self.sure.get(&label).map_or(&[], Vec::as_slice)
    }

    /// Whether a filter includes an issue.
    pub fn holds(&self, filter: Filter, issue: usize) -> bool {
        let is_of = |pair| self.pair_of[issue].is_some_and(|of| of as usize == pair);
        let wanted = filter.pair.is_none_or(is_of);
        wanted && (filter.scope != Scope::Suspects || self.is_suspect[issue])
    }

    /// The issues that a filter includes, in order.
    pub fn numbers(&self, filter: Filter) -> Vec<usize> {
        let holds = |issue: &usize| self.holds(filter, *issue);
        match filter.scope {
            Scope::Sample => self.sampling.ranks().filter(holds).collect(),
            Scope::Suspects | Scope::All => (0..self.is_suspect.len()).filter(holds).collect(),
        }
    }
}
