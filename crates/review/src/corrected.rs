//! `corrected.csv` and `ambiguous.csv`: the result of the decisions.

use std::collections::BTreeMap;
use std::path::Path;

use aleator_report::audit::{Answer, Issue};
use aleator_report::spreadsheet::guarded;
use aleator_run::{CsvFile, ExampleRow, Link, RunError};

use crate::decision::{Decision, in_words};

/// Decisions by the number of their issue.
pub(crate) type Decisions = BTreeMap<u32, Decision>;

pub(crate) const CORRECTED: &str = "corrected.csv";
pub(crate) const AMBIGUOUS: &str = "ambiguous.csv";

/// The labels of all examples, in the format that `data.train.labels` reads.
pub(crate) struct Corrected<'a> {
    pub link: Link,
    pub names: &'a [String],
    pub examples: &'a [ExampleRow],
    pub issues: &'a [Issue],
    /// The example of each issue.
    pub example_of: &'a [u32],
}

impl Corrected<'_> {
    /// Writes both files, each atomically.
    pub fn write(&self, dir: &Path, decisions: &Decisions) -> Result<(), RunError> {
        let changes = self.changes(decisions);
        let header = match self.link {
            Link::Softmax => vec!["id", "label"],
            Link::Sigmoid => {
                ["id"].into_iter().chain(self.names.iter().map(String::as_str)).collect()
            }
        };
        let mut changes = changes.into_iter().peekable();
        let rows = self.examples.iter().zip(0_u32..).map(|(example, at)| {
            let mut on = example.label.clone().unwrap_or_default();
            while let Some((_, answer)) = changes.next_if(|(example, _)| *example == at) {
                apply(answer, &mut on);
            }
            self.cells(&example.id, &on)
        });
        write(&dir.join(CORRECTED), &header, rows)?;
        self.write_ambiguous(dir, decisions)
    }

    /// The changed labels, by example.
    fn changes(&self, decisions: &Decisions) -> Vec<(u32, Answer)> {
        let mut changes: Vec<(u32, Answer)> = decisions
            .iter()
            .filter_map(|(number, decision)| {
                let issue = &self.issues[*number as usize];
                let label = decision.label(issue);
                (label != issue.given).then_some((self.example_of[*number as usize], label))
            })
            .collect();
        changes.sort_by_key(|(example, _)| *example);
        changes
    }

    fn cells(&self, id: &str, on: &[u32]) -> Vec<String> {
        let mut cells = vec![guarded(id).into_owned()];
        match self.link {
            Link::Softmax => {
                let name = on.first().map_or("", |class| &self.names[*class as usize]);
                cells.push(guarded(name).into_owned());
            }
            Link::Sigmoid => {
                let bit = |class: u32| if on.contains(&class) { "1" } else { "0" };
                cells.extend((0..self.names.len() as u32).map(|class| bit(class).to_string()));
            }
        }
        cells
    }

    fn write_ambiguous(&self, dir: &Path, decisions: &Decisions) -> Result<(), RunError> {
        let mut header = vec!["id", "given", "suggested"];
        if self.link == Link::Sigmoid {
            header.insert(1, "class");
        }
        let unclear = decisions.iter().filter(|(_, decision)| **decision == Decision::Ambiguous);
        let rows = unclear.map(|(number, _)| {
            let issue = &self.issues[*number as usize];
            let class = &self.names[issue.given.class() as usize];
            let answers = [issue.given, issue.suggested].map(|answer| in_words(answer, self.names));
            let mut cells = vec![guarded(&issue.id).into_owned()];
            cells.extend((self.link == Link::Sigmoid).then(|| guarded(class).into_owned()));
            cells.extend(answers.map(|answer| guarded(answer).into_owned()));
            cells
        });
        write(&dir.join(AMBIGUOUS), &header, rows)
    }
}

fn apply(answer: Answer, on: &mut Vec<u32>) {
    match answer {
        Answer::Class(class) => *on = vec![class],
        Answer::Off(class) => on.retain(|other| *other != class),
        Answer::On(class) if !on.contains(&class) => on.push(class),
        Answer::On(_) => {}
    }
}

fn write(
    path: &Path,
    header: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<(), RunError> {
    let header: Vec<String> = header.iter().map(|name| guarded(name).into_owned()).collect();
    CsvFile::write(path, &header, |file| {
        for row in rows {
            file.row(&row)?;
        }
        Ok(())
    })
}
