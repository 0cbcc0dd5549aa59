//! The decision about one label, and how it is stored.

use aleator_report::audit::{Answer, Issue};
use serde::{Deserialize, Serialize};

/// The decision about one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The suggestion is right.
    Accept,
    /// The given label is right.
    Keep,
    /// Another class is right.
    Class(u32),
    /// The example is ambiguous.
    Ambiguous,
}

impl Decision {
    /// The new label. That of an ambiguous example stays the same.
    pub fn label(self, issue: &Issue) -> Answer {
        match self {
            Self::Accept => issue.suggested,
            Self::Keep | Self::Ambiguous => issue.given,
            Self::Class(class) => Answer::Class(class),
        }
    }

    /// Whether the decision is possible for an issue: another class needs single labels.
    pub fn suits(self, issue: &Issue, classes: usize) -> bool {
        match (self, issue.given) {
            (Self::Class(class), Answer::Class(_)) => (class as usize) < classes,
            (Self::Class(_), Answer::On(_) | Answer::Off(_)) => false,
            _ => true,
        }
    }
}

/// A decision that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeDecision {
    pub decision: Decision,
    /// Whether the label was looked at by itself. Labels that were accepted many at once tell
    /// nothing about how many are wrong.
    pub is_seen: bool,
}

/// A line of `decisions.jsonl`, with the names of classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// The example; in an undo of many the first of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The examples of a decision about many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// The class that is on or off; absent for single labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    pub decision: Word,
    /// The new label; absent in an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    Accept,
    /// The suggestion is accepted for all of `ids` at once.
    AcceptAll,
    Keep,
    Class,
    Ambiguous,
    /// Undoes the last decision that is not undone yet, or all of them that were made at once.
    Undo,
}

/// An answer as tables and `decisions.jsonl` name it.
pub(crate) fn in_words(answer: Answer, names: &[String]) -> &str {
    match answer {
        Answer::Class(class) => &names[class as usize],
        Answer::On(_) => "on",
        Answer::Off(_) => "off",
    }
}
