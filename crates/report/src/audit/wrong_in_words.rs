//! How many labels look wrong: the one sentence of the terminal, the report and the review.

use super::record::{AuditSummary, Estimate};
use crate::number;

/// The least share that is shown as a number; a smaller one would be 0.0 %.
const LEAST_SHARE: f64 = 5e-4;

impl AuditSummary {
    /// What the labels were judged by, as in "each judged by …".
    pub fn judged_by(&self) -> String {
        match self.folds {
            0 if self.files.is_some() => "the given probabilities".to_string(),
            0 if self.comparison.is_none() => "all other examples".to_string(),
            0 => "all other examples and by how training goes with it".to_string(),
            folds => format!("a model that never saw it ({folds} folds)"),
        }
    }

    /// How many labels look wrong, and how few and how many may be.
    pub fn wrong_in_words(&self) -> String {
        self.wrong.in_words(self.labels)
    }
}

impl Estimate {
    fn in_words(&self, labels: usize) -> String {
        if labels == 0 {
            return "There are no labels to judge.".to_string();
        }
        let whole = |value: f64| number::fixed(value.max(0.0), 0);
        let [count, low, high] = [self.count, self.low, self.high].map(whole);
        let share = self.count / labels as f64;
        let labels = number::count(labels);
        if count == "0" {
            let most = if high == "0" { String::new() } else { format!("; up to {high} may be") };
            return format!("None of {labels} labels looks wrong{most}.");
        }
        let share = if share < LEAST_SHARE {
            "less than 0.1 %".to_string()
        } else {
            format!("{:.1} %", 100.0 * share)
        };
        let look = if count == "1" { "looks" } else { "look" };
        format!(
            "About {count} of {labels} labels ({share}) {look} wrong; between {low} and {high} is \
             plausible."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(labels: usize, [count, low, high]: [f64; 3]) -> String {
        Estimate { count, low, high }.in_words(labels)
    }

    #[test]
    fn the_count_has_its_share_and_its_bounds() {
        assert_eq!(
            words(1797, [96.4, 0.2, 339.0]),
            "About 96 of 1797 labels (5.4 %) look wrong; between 0 and 339 is plausible."
        );
        assert_eq!(
            words(1_000_000, [1.2, 0.0, 3.0]),
            "About 1 of 1\u{202f}000\u{202f}000 labels (less than 0.1 %) looks wrong; between 0 and \
             3 is plausible."
        );
    }

    #[test]
    fn a_count_that_rounds_to_none_is_said_to_be_none() {
        assert_eq!(words(50, [0.4, 0.0, 0.2]), "None of 50 labels looks wrong.");
        assert_eq!(words(50, [0.4, 0.0, 7.0]), "None of 50 labels looks wrong; up to 7 may be.");
        assert_eq!(words(0, [0.0, 0.0, 0.0]), "There are no labels to judge.");
    }
}
