//! Rows at the last epoch, and at the one that the validation split chose. Each is compared with
//! rows of the same kind.

use aleator_run::recipe::EvaluatedWeights;
use aleator_run::{EnsembleFile, EvaluatedRun, RunDir};

use super::rows::{Part, Row, SeedRun};

/// Which weights of the runs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownWeights {
    /// Those of the last epoch.
    Last,
    /// Those of the epoch with the lowest validation NLL.
    Best,
    /// Both, in a group each.
    Both,
}

/// Rows that are compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Which weights they are of, where there are several groups.
    pub name: Option<&'static str>,
    pub rows: Vec<Row>,
}

/// The rows of a comparison, by their weights.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub groups: Vec<Group>,
    /// What to say of them.
    pub notes: Vec<String>,
}

impl Groups {
    /// The rows as they were evaluated.
    pub fn one(rows: &[Row]) -> Self {
        Self { groups: vec![Group { name: None, rows: rows.to_vec() }], notes: vec![] }
    }

    /// The rows at these weights; by default at both if that makes a difference to any run.
    pub fn new(rows: &[Row], shown: Option<ShownWeights>) -> Self {
        let differ = |part: &Part| part.run.evaluation.other().is_some();
        match shown {
            Some(ShownWeights::Last) => Self::at(rows, EvaluatedWeights::Last),
            Some(ShownWeights::Best) => Self::at(rows, EvaluatedWeights::Best),
            Some(ShownWeights::Both) => Self::both(rows),
            None if rows.iter().flat_map(parts).any(differ) => Self::both(rows),
            None => Self::one(rows),
        }
    }

    /// All rows, of all groups.
    pub fn rows(&self) -> Vec<Row> {
        self.groups.iter().flat_map(|group| group.rows.clone()).collect()
    }

    /// All rows at these weights; a row that has only others is shown with them.
    fn at(rows: &[Row], weights: EvaluatedWeights) -> Self {
        let mut without = vec![];
        let row = |row: &Row| {
            row.at(weights).unwrap_or_else(|| {
                without.push(row.name.clone());
                row.clone()
            })
        };
        let group = Group { name: None, rows: rows.iter().map(row).collect() };
        let mut notes = vec![weights_note(weights).to_string()];
        notes.extend(recorded_once(&without));
        Self { groups: vec![group], notes }
    }

    /// A group for each epoch. A row with one set of weights stands in the group of these.
    fn both(rows: &[Row]) -> Self {
        let mut groups = [EvaluatedWeights::Last, EvaluatedWeights::Best]
            .map(|weights| Group { name: Some(heading(weights)), rows: vec![] });
        let mut without = vec![];
        for row in rows {
            let found = [EvaluatedWeights::Last, EvaluatedWeights::Best].map(|it| row.at(it));
            if found.iter().any(Option::is_none) {
                without.push(row.name.clone());
            }
            // Of an ensemble whose members are gone nobody knows; its own name says so.
            let unknown = found.iter().all(Option::is_none).then(|| row.clone());
            let [last, best] = found;
            groups[0].rows.extend(last.or(unknown));
            groups[1].rows.extend(best);
        }
        let mut notes = vec!["Rows are compared with those of the same epoch.".to_string()];
        notes.extend(recorded_once(&without));
        let groups = groups.into_iter().filter(|group| !group.rows.is_empty()).collect();
        Self { groups, notes }
    }
}

fn heading(weights: EvaluatedWeights) -> &'static str {
    match weights {
        EvaluatedWeights::Last => "last epoch",
        EvaluatedWeights::Best => "best validation NLL",
    }
}

fn weights_note(weights: EvaluatedWeights) -> &'static str {
    match weights {
        EvaluatedWeights::Last => "Weights of the last epoch.",
        EvaluatedWeights::Best => "Weights of the epoch with the lowest validation NLL.",
    }
}

fn recorded_once(names: &[String]) -> Option<String> {
    let advice = "where a run has others, `aleator eval` records both";
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("One set of weights is recorded of {names}; {advice}."))
}

fn parts(row: &Row) -> impl Iterator<Item = &Part> {
    row.runs.iter().flat_map(|run| &run.parts)
}

impl Row {
    /// The same runs at these weights, if all of them have scores of these.
    fn at(&self, weights: EvaluatedWeights) -> Option<Self> {
        let part = |part: &Part| {
            let run = at_weights(&part.run, weights)?;
            Some(Part { task: part.task.clone(), run })
        };
        let run = |run: &SeedRun| {
            let parts = run.parts.iter().map(part).collect::<Option<_>>()?;
            Some(SeedRun { parts, ..run.clone() })
        };
        let runs = self.runs.iter().map(run).collect::<Option<_>>()?;
        Some(Self { name: self.name.clone(), runs })
    }
}

/// A run at these weights; an ensemble is at those of its members.
fn at_weights(run: &EvaluatedRun, weights: EvaluatedWeights) -> Option<EvaluatedRun> {
    if is_ensemble_of(run, weights) {
        return Some(run.clone());
    }
    let evaluation = run.evaluation.of_weights(weights.name())?;
    Some(EvaluatedRun { dir: run.dir.clone(), evaluation })
}

/// Whether these are the weights of all members of an ensemble.
fn is_ensemble_of(run: &EvaluatedRun, weights: EvaluatedWeights) -> bool {
    let folder = run.dir.path();
    let Ok(Some(file)) = EnsembleFile::load(folder) else { return false };
    file.dirs(folder).iter().all(|dir| {
        let member = RunDir::open(dir).and_then(|run| run.evaluation());
        member.is_ok_and(|it| it.is_some_and(|it| it.weights == weights.name()))
    })
}
