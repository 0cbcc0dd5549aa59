//! The result of a review: `corrected.csv`, `ambiguous.csv`, `verified.csv` of labels of one class,
//! and `pruned.csv` and `weights.csv` where suggestions are accepted for their probability.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use aleator_report::audit::{Acceptance, Answer, Issue, ReviewRecord};
use aleator_report::spreadsheet::guarded;
use aleator_run::{CsvFile, ExampleRow, Link, RunError};

use crate::decision::{Decision, MadeDecision, in_words};
use crate::session::Subject;

/// Decisions by the number of their issue.
pub(crate) type Decisions = BTreeMap<u32, MadeDecision>;

const CORRECTED: &str = "corrected.csv";
const AMBIGUOUS: &str = "ambiguous.csv";
const VERIFIED: &str = "verified.csv";
const PRUNED: &str = "pruned.csv";
const WEIGHTS: &str = "weights.csv";

/// The least weight: training takes weights above 0.
const LEAST_WEIGHT: f64 = 1e-6;

/// What the files are written from.
pub(crate) struct Outcome {
    pub subject: Arc<Subject>,
    pub decisions: Decisions,
    /// Of the decisions; its `accept` has the threshold, and is counted when the files are written.
    pub record: ReviewRecord,
}

impl Outcome {
    /// Writes all files, each atomically, and last the record of them.
    pub fn write(mut self) -> Result<ReviewRecord, RunError> {
        if let Some(accept) = &mut self.record.accept {
            *accept = self.subject.write_accepted(&self.decisions, accept.threshold)?;
        }
        let threshold = self.record.accept.map(|accept| accept.threshold);
        self.subject.write_corrected(&self.decisions, threshold)?;
        self.subject.write_ambiguous(&self.decisions)?;
        if self.subject.audit.summary.link == Link::Softmax {
            self.subject.write_verified(&self.decisions)?;
        }
        self.record.save(&self.subject.dir)?;
        Ok(self.record)
    }
}

impl Subject {
    /// The labels of all examples, in the format that `data.train.labels` reads.
    fn write_corrected(
        &self,
        decisions: &Decisions,
        threshold: Option<f64>,
    ) -> Result<(), RunError> {
        let accepted = |issue: &Issue| threshold.is_some_and(|it| is_accepted(issue, it));
        let change = |number: usize, issue: &Issue| match decisions.get(&(number as u32)) {
            Some(made) => made.decision.label(issue),
            None if accepted(issue) => issue.suggested,
            None => issue.given,
        };
        let labels = self.labels(&change);
        write(&self.dir.join(CORRECTED), &self.header(), labels.map(|(_, row)| row))
    }

    /// `pruned.csv` and, for labels of one class, `weights.csv`. A decision of a person settles a
    /// label; the others are left out or weighted by the audit's probabilities, and so are those
    /// that a person found ambiguous.
    fn write_accepted(
        &self,
        decisions: &Decisions,
        threshold: f64,
    ) -> Result<Acceptance, RunError> {
        let settled = |number: usize| {
            let decision = decisions.get(&(number as u32)).map(|made| made.decision);
            decision.filter(|decision| *decision != Decision::Ambiguous)
        };
        let label = |number: usize, issue: &Issue| {
            settled(number).map_or(issue.given, |decision| decision.label(issue))
        };
        let mut pruned = BTreeSet::new();
        let mut weights = vec![1.0; self.audit.examples.len()];
        for (number, issue) in self.audit.issues.iter().enumerate() {
            if settled(number).is_none() {
                let example = self.example_of[number] as usize;
                weights[example] = issue.given_probability.clamp(LEAST_WEIGHT, 1.0);
                if issue.score >= threshold {
                    pruned.insert(example);
                }
            }
        }
        let kept = self.labels(&label).filter(|(example, _)| !pruned.contains(example));
        write(&self.dir.join(PRUNED), &self.header(), kept.map(|(_, row)| row))?;
        if self.audit.summary.link == Link::Softmax {
            let header = [self.header(), vec!["weight"]].concat();
            let weighted = self.labels(&label).map(|(example, mut row)| {
                row.push(format!("{:?}", weights[example]));
                row
            });
            write(&self.dir.join(WEIGHTS), &header, weighted)?;
        }
        let undecided = |(number, issue): &(usize, &Issue)| {
            !decisions.contains_key(&(*number as u32)) && is_accepted(issue, threshold)
        };
        let accepted = self.audit.issues.iter().enumerate().filter(undecided).count();
        Ok(Acceptance { threshold, accepted, pruned: pruned.len() })
    }

    /// The rows of all examples in their order, with the label that `label` gives each issue.
    fn labels(
        &self,
        label: &dyn Fn(usize, &Issue) -> Answer,
    ) -> impl Iterator<Item = (usize, Vec<String>)> {
        let issues = self.audit.issues.iter().enumerate();
        let mut changes: Vec<(u32, Answer)> = issues
            .filter_map(|(number, issue)| {
                let label = label(number, issue);
                (label != issue.given).then_some((self.example_of[number], label))
            })
            .collect();
        changes.sort_by_key(|(example, _)| *example);
        let mut changes = changes.into_iter().peekable();
        let row = move |(at, example): (usize, &ExampleRow)| {
            let mut on = example.label.clone().unwrap_or_default();
            while let Some((_, answer)) = changes.next_if(|(of, _)| *of as usize == at) {
                apply(answer, &mut on);
            }
            (at, self.cells(&example.id, &on))
        };
        self.audit.examples.iter().enumerate().map(row)
    }

    fn header(&self) -> Vec<&str> {
        match self.audit.summary.link {
            Link::Softmax => vec!["id", "label"],
            Link::Sigmoid => {
                ["id"].into_iter().chain(self.names().iter().map(String::as_str)).collect()
            }
        }
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

    /// The examples whose class a person has settled, in the order of the examples. Suggestions that
    /// were accepted many at once, without a look at each, verify nothing.
    fn write_verified(&self, decisions: &Decisions) -> Result<(), RunError> {
        let is_settled = |made: &MadeDecision| made.is_seen && made.decision != Decision::Ambiguous;
        let settled = decisions.iter().filter(|(_, made)| is_settled(made));
        let mut rows: Vec<(u32, u32)> = settled
            .map(|(number, made)| {
                let issue = &self.audit.issues[*number as usize];
                (self.example_of[*number as usize], made.decision.label(issue).class())
            })
            .collect();
        rows.sort_unstable();
        let row = |(example, class): (u32, u32)| {
            self.cells(&self.audit.examples[example as usize].id, &[class])
        };
        write(&self.dir.join(VERIFIED), &self.header(), rows.into_iter().map(row))
    }

    fn write_ambiguous(&self, decisions: &Decisions) -> Result<(), RunError> {
        let mut header = vec!["id", "given", "suggested"];
        let multilabel = self.audit.summary.link == Link::Sigmoid;
        if multilabel {
            header.insert(1, "class");
        }
        let unclear = decisions.iter().filter(|(_, made)| made.decision == Decision::Ambiguous);
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

/// Whether a suggestion is probable enough. Not the score: a label that is surely wrong may have
/// several classes to be.
fn is_accepted(issue: &Issue, threshold: f64) -> bool {
    issue.suggested_probability >= threshold
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
