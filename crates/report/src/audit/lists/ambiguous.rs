//! Labels that are not surely wrong, but where another answer is about as probable.

use super::super::record::{Audit, Issue};

/// The less probable of two answers that are about equally probable has at least this share of the
/// other's probability.
const ABOUT_EQUAL: f64 = 0.5;

impl Audit {
    /// `ambiguous_examples.csv`: the labels that are not listed as wrong, where the given and the
    /// suggested answer are about equally probable, the closest first.
    pub fn ambiguous(&self) -> Vec<&Issue> {
        let mut found: Vec<&Issue> = self
            .issues
            .iter()
            .filter(|issue| !issue.wrong && closeness(issue) >= ABOUT_EQUAL)
            .collect();
        // A stable sort: of equally close ones the one that is more surely wrong comes first.
        found.sort_by(|a, b| closeness(b).total_cmp(&closeness(a)));
        found
    }
}

/// The smaller of the two probabilities over the larger; 0 where none is known.
fn closeness(issue: &Issue) -> f64 {
    let (a, b) = (issue.given_probability, issue.suggested_probability);
    let (low, high) = (a.min(b), a.max(b));
    if high > 0.0 { low / high } else { 0.0 }
}
