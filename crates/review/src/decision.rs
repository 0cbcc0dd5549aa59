//! What a person decided about one suspect, and how it is written down.

use aleator_report::audit::{Answer, Issue};
use serde::{Deserialize, Serialize};

/// What a person decided about one suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The suggestion is right.
    Accept,
    /// The given label is right.
    Keep,
    /// Another class is right.
    Class(u32),
    /// Nobody can tell.
    Ambiguous,
}

impl Decision {
    /// What the label says from now on. Where nobody can tell it stays as it was.
    pub fn label(self, issue: &Issue) -> Answer {
        match self {
            Self::Accept => issue.suggested,
            Self::Keep | Self::Ambiguous => issue.given,
            Self::Class(class) => Answer::Class(class),
        }
    }

    /// Whether it can be said of an issue: another class only where one class is right.
    pub fn suits(self, issue: &Issue, classes: usize) -> bool {
        match (self, issue.given) {
            (Self::Class(class), Answer::Class(_)) => (class as usize) < classes,
            (Self::Class(_), Answer::On(_) | Answer::Off(_)) => false,
            _ => true,
        }
    }
}

/// A line of `decisions.jsonl`, with the names of classes, for people and other programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub id: String,
    /// The class that is on or off; absent where one class is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    pub decision: Word,
    /// What the label says from now on; absent in an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    Accept,
    Keep,
    Class,
    Ambiguous,
    /// Takes the last decision back that was not taken back yet.
    Undo,
}

/// An answer as tables and lines have it.
pub(crate) fn in_words(answer: Answer, names: &[String]) -> &str {
    match answer {
        Answer::Class(class) => &names[class as usize],
        Answer::On(_) => "on",
        Answer::Off(_) => "off",
    }
}
