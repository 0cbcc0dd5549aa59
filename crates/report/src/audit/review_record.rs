//! `review.json`: what was done with the findings of an audit.

use std::path::Path;

use aleator_run::{RunError, read_json, write_json};
use serde::{Deserialize, Serialize};

use super::sample::SampledCount;

/// `review.json`: the decisions about an audit in numbers, and what follows from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewRecord {
    /// Labels that are decided by a person.
    pub decided: usize,
    /// Of these, how many are changed.
    pub corrected: usize,
    /// How many are kept.
    pub kept: usize,
    /// How many are ambiguous.
    pub ambiguous: usize,
    /// How many labels are wrong, by those that were decided in random order; `None` while they are
    /// too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<SampledCount>,
    /// Suggestions that were accepted for their probability; `None` where nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<Acceptance>,
}

/// Suggestions that were accepted, and labels that were left out, for their probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The least probability, from 0.5 to 1.
    pub threshold: f64,
    /// Labels that `corrected.csv` changes because the suggestion is at least this probable.
    pub accepted: usize,
    /// Examples that `pruned.csv` leaves out because a label is wrong with at least this
    /// probability.
    pub pruned: usize,
}

impl ReviewRecord {
    /// The name of the file.
    pub const FILE: &str = "review.json";

    /// The record of an audit's directory; `None` if nothing was done with the audit.
    ///
    /// # Errors
    /// When the file cannot be read, or holds something else.
    pub fn load(dir: &Path) -> Result<Option<Self>, RunError> {
        let path = dir.join(Self::FILE);
        if !path.exists() {
            return Ok(None);
        }
        let record: Self = read_json(&path)?;
        match record.accept {
            Some(accept) if !Acceptance::is_threshold(accept.threshold) => {
                let message = format!(
                    "accept.threshold must be {}, found {}",
                    Acceptance::RANGE,
                    accept.threshold
                );
                Err(RunError::damaged(&path, message))
            }
            _ => Ok(Some(record)),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), RunError> {
        write_json(&dir.join(Self::FILE), self)
    }
}

impl Acceptance {
    /// The thresholds that are possible, in words.
    pub const RANGE: &str =
        "a probability from 0.5 to 1 (below 0.5 the given label may be the more probable one)";

    /// Whether a number is a threshold: below ½ the given label may be more probable than the
    /// suggested one.
    pub fn is_threshold(value: f64) -> bool {
        (0.5..=1.0).contains(&value)
    }
}
