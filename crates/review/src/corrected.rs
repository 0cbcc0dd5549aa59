//! `corrected.csv` and `ambiguous.csv`: the result of the decisions.

use std::collections::BTreeMap;
use std::path::Path;

use aleator_report::audit::Answer;
use aleator_report::spreadsheet::guarded;
use aleator_run::{CsvFile, Link, RunError};

use crate::decision::{Decision, in_words};
use crate::session::Subject;

/// Decisions by the number of their issue.
pub(crate) type Decisions = BTreeMap<u32, Decision>;

pub(crate) const CORRECTED: &str = "corrected.csv";
pub(crate) const AMBIGUOUS: &str = "ambiguous.csv";

impl Subject {
    /// Writes both files, each atomically: the labels of all examples, in the format that
    /// `data.train.labels` reads, and the ambiguous ones.
    pub fn write_corrected(&self, decisions: &Decisions) -> Result<(), RunError> {
        let header = match self.audit.summary.link {
            Link::Softmax => vec!["id", "label"],
            Link::Sigmoid => {
                ["id"].into_iter().chain(self.names().iter().map(String::as_str)).collect()
            }
        };
        let mut changes = self.changes(decisions).into_iter().peekable();
        let rows = self.audit.examples.iter().zip(0_u32..).map(|(example, at)| {
            let mut on = example.label.clone().unwrap_or_default();
            while let Some((_, answer)) = changes.next_if(|(example, _)| *example == at) {
                apply(answer, &mut on);
            }
            self.cells(&example.id, &on)
        });
        write(&self.dir.join(CORRECTED), &header, rows)?;
        self.write_ambiguous(decisions)
    }

    /// The changed labels, by example.
    fn changes(&self, decisions: &Decisions) -> Vec<(u32, Answer)> {
        let mut changes: Vec<(u32, Answer)> = decisions
            .iter()
            .filter_map(|(number, decision)| {
                let issue = &self.audit.issues[*number as usize];
                let label = decision.label(issue);
                (label != issue.given).then_some((self.example_of[*number as usize], label))
            })
            .collect();
        changes.sort_by_key(|(example, _)| *example);
        changes
    }

    fn cells(&self, id: &str, on: &[u32]) -> Vec<String> {
        let mut cells = vec![guarded(id).into_owned()];
        match self.audit.summary.link {
            Link::Softmax => {
                let name = on.first().map_or("", |class| &self.names()[*class as usize]);
                cells.push(guarded(name).into_owned());
            }
            Link::Sigmoid => {
                let bit = |class: u32| if on.contains(&class) { "1" } else { "0" };
                cells.extend((0..self.names().len() as u32).map(|class| bit(class).to_string()));
            }
        }
        cells
    }

    fn write_ambiguous(&self, decisions: &Decisions) -> Result<(), RunError> {
        let mut header = vec!["id", "given", "suggested"];
        let multilabel = self.audit.summary.link == Link::Sigmoid;
        if multilabel {
            header.insert(1, "class");
        }
        let unclear = decisions.iter().filter(|(_, decision)| **decision == Decision::Ambiguous);
        let rows = unclear.map(|(number, _)| {
            let issue = &self.audit.issues[*number as usize];
            let class = &self.names()[issue.given.class() as usize];
            let mut cells = vec![issue.id.as_str()];
            cells.extend(multilabel.then_some(class.as_str()));
            cells.extend([issue.given, issue.suggested].map(|it| in_words(it, self.names())));
            cells.into_iter().map(|cell| guarded(cell).into_owned()).collect()
        });
        write(&self.dir.join(AMBIGUOUS), &header, rows)
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
