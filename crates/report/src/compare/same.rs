//! Whether rows may be compared: they must have been measured on the same examples.
//!
//! The fingerprint of the data does not decide this. It identifies the files, so two divisions of
//! the same files share it although they hold out different examples; and runs that were trained on
//! different files, such as corrected labels, may be compared on the same test examples. So the
//! measured examples themselves are compared, by their ids and labels.

use std::collections::BTreeSet;

use aleator_run::{ExampleRow, RunError, Split};

use super::error::CompareError;
use super::rows::{Part, Row, SeedRun};
use super::view::{Labels, View};
use crate::task::class_difference;

/// Differences between rows that do not prevent a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// They were trained on different files.
    pub other_files: bool,
    /// Some have the softmax link, some the sigmoid link.
    pub both_links: bool,
}

/// Refuses rows with other classes or measured examples than the first.
pub(super) fn check(rows: &[Row], view: &View) -> Result<Remarks, CompareError> {
    let mut remarks = Remarks::default();
    let mut runs = rows.iter().flat_map(|row| &row.runs);
    let Some(first) = runs.next() else { return Ok(remarks) };
    let mut references: Vec<Reference<'_>> =
        first.parts.iter().map(|part| Reference { part, examples: None }).collect();
    for run in runs {
        let differ = |reason: String| CompareError::Incomparable {
            first: first.dir.clone(),
            other: run.dir.clone(),
            reason,
        };
        let tasks = |run: &SeedRun| run.parts.iter().map(|part| part.task.clone()).collect();
        let [ours, theirs]: [Vec<String>; 2] = [first, run].map(tasks);
        if ours != theirs {
            return Err(differ(tasks_differ(&ours, &theirs)));
        }
        for (reference, part) in references.iter_mut().zip(&run.parts) {
            if let Some(reason) = reference.difference(part, view)? {
                return Err(differ(reason));
            }
            let (a, b) = (reference.part.run.dir.info(), part.run.dir.info());
            remarks.other_files |= a.fingerprint != b.fingerprint;
            remarks.both_links |= a.link != b.link;
        }
    }
    Ok(remarks)
}

fn tasks_differ(ours: &[String], theirs: &[String]) -> String {
    let transferred = |tasks: &[String]| tasks != [""];
    match (transferred(ours), transferred(theirs)) {
        (true, true) => {
            format!("their tasks are not the same ({} and {})", ours.join(", "), theirs.join(", "))
        }
        _ => "one is a transfer to several tasks, the other a run".to_string(),
    }
}

/// The run that all others are compared with; its examples are read when needed.
struct Reference<'a> {
    part: &'a Part,
    examples: Option<BTreeSet<Measured>>,
}

/// An example and the label that it is measured against.
type Measured = (String, Option<Vec<u32>>);

impl Reference<'_> {
    fn difference(&mut self, other: &Part, view: &View) -> Result<Option<String>, RunError> {
        let parts = [self.part, other];
        let [ours, theirs] = parts.map(|part| &part.run.evaluation.class_names);
        if let Some(reason) = class_difference(ours, theirs) {
            return Ok(Some(reason));
        }
        let [a, b] = parts.map(|part| part.run.dir.info().examples.of(view.split));
        let split = view.split.name();
        if a != b {
            return Ok(Some(format!("their {split} splits have {a} and {b} examples")));
        }
        if self.same_by_recipe(other) {
            return Ok(None);
        }
        if self.examples.is_none() {
            self.examples = Some(measured(self.part, view)?);
        }
        let theirs = measured(other, view)?;
        let ours = self.examples.iter().flatten();
        let apart = ours.zip(&theirs).find(|(a, b)| a != b);
        Ok(apart.map(|((id, _), (other_id, _))| {
            if id == other_id {
                let of = if view.labels == Labels::Clean { "clean label" } else { "label" };
                format!("example {id:?} of the {split} split has another {of} in each")
            } else {
                format!(
                    "their {split} splits hold other examples (as {id:?} and {other_id:?}): split \
                     them by the same seeds and fractions"
                )
            }
        }))
    }

    /// Whether the same files were divided in the same way, which saves comparing every example.
    fn same_by_recipe(&self, other: &Part) -> bool {
        let (a, b) = (self.part.run.dir.info(), other.run.dir.info());
        if a.fingerprint != b.fingerprint || a.set_aside != b.set_aside {
            return false;
        }
        match (self.part.run.dir.recipe(), other.run.dir.recipe()) {
            (Ok(ours), Ok(theirs)) => ours.recipe.data == theirs.recipe.data,
            _ => false,
        }
    }
}

fn measured(part: &Part, view: &View) -> Result<BTreeSet<Measured>, RunError> {
    let of_split = |row: &ExampleRow| row.split == view.split && row.split != Split::Train;
    let label = |row: ExampleRow| match view.labels {
        Labels::Given => (row.id, row.label),
        Labels::Clean => (row.id, row.clean_label),
    };
    Ok(part.run.dir.read_examples()?.into_iter().filter(of_split).map(label).collect())
}
