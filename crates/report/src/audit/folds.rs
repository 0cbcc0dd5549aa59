//! Opens the folds of an audit: run directories whose test splits are together all of the data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aleator_run::{ExampleRow, Link, RunDir, RunError, RunInfo, Split, SplitReader};

use super::parts::{Example, Part, Parts, Task};
use crate::covariance::Covariances;
use crate::error::ReportError;
use crate::task::task_difference;

/// What is known of the examples apart from the files of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// All examples of the training source, in its order.
    pub examples: Vec<SourceExample>,
    /// The names of the annotators; empty where they are not known.
    pub annotators: Vec<String>,
}

/// One example of a [`Source`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceExample {
    /// Its id.
    pub id: String,
    /// The classes that its label names.
    pub label: Vec<u32>,
    /// The file of its image, where it has one of its own.
    pub path: Option<PathBuf>,
    /// Annotator and class of each annotation; empty where annotators are not known.
    pub votes: Vec<(u32, u32)>,
}

impl Parts {
    /// Opens the runs and puts their test splits in the order of the source.
    pub fn open(dirs: &[PathBuf], source: &Source) -> Result<Self, ReportError> {
        let runs: Vec<RunDir> =
            dirs.iter().map(|dir| RunDir::open(dir)).collect::<Result<_, _>>()?;
        let Some(first) = runs.first() else { return Err(ReportError::TooFew(0)) };
        for run in &runs {
            if let Some(reason) = difference(first.info(), run.info()) {
                return Err(ReportError::different(first.path(), run, "audited with", reason));
            }
        }
        check_votes(first, source)?;
        let position: BTreeMap<&str, usize> =
            source.examples.iter().map(|example| example.id.as_str()).zip(0..).collect();
        let mut parts = vec![];
        // Position in the source, fold, row of the fold.
        let mut found: Vec<(usize, usize, usize, ExampleRow)> = vec![];
        for (fold, run) in runs.iter().enumerate() {
            let mut reader = SplitReader::open(run, Split::Test)?;
            for (at, row) in std::mem::take(&mut reader.examples).into_iter().enumerate() {
                let Some(position) = position.get(row.id.as_str()) else {
                    let reason =
                        format!("example {:?} is not in the training data any more", row.id);
                    return Err(changed(run, reason));
                };
                found.push((*position, fold, at, row));
            }
            let positions = vec![0; reader.file.examples()];
            parts.push(Part { reader, positions, covariances: covariances(run)? });
        }
        found.sort_by_key(|(position, ..)| *position);
        if let Some(twice) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (_, fold, _, row) = &twice[1];
            let message = format!("example {:?} is in two folds", row.id);
            return Err(RunError::damaged(&runs[*fold].examples_path(), message).into());
        }
        // Examples that could not be judged, such as images that cannot be decoded, are skipped.
        let mut examples = Vec::with_capacity(found.len());
        for (position, fold, at, row) in found {
            parts[fold].positions[at] = examples.len();
            let SourceExample { path, votes, .. } = source.examples[position].clone();
            examples.push(Example::new(row, path, votes, fold));
        }
        let RunInfo { link, noise, fingerprint, class_names, .. } = first.info().clone();
        let (folds, self_confidence) = (runs.len(), None);
        let task = Task { link, noise, fingerprint, class_names, folds, self_confidence };
        let annotators = source.annotators.clone();
        Ok(Self { task, annotators, examples, parts, planting: None, dynamics: None })
    }
}

impl Source {
    /// All examples of the source, also those that could not be judged.
    pub(super) fn rows(&self, judged: &[Example]) -> Vec<ExampleRow> {
        // All of them are training data; each was in the test split of one fold.
        let split = Split::Train;
        let mut judged = judged.iter().peekable();
        let row = |example: &SourceExample| match judged.next_if(|it| it.row.id == example.id) {
            Some(judged) => ExampleRow { split, ..judged.row.clone() },
            None => ExampleRow {
                id: example.id.clone(),
                split,
                label: Some(example.label.clone()),
                clean_label: None,
            },
        };
        self.examples.iter().map(row).collect()
    }
}

/// `None` without a noise model, where each class is on or off, and where the loadings were not kept.
fn covariances(run: &RunDir) -> Result<Option<Covariances>, ReportError> {
    if run.info().link == Link::Sigmoid {
        return Ok(None);
    }
    match Covariances::open(run, Split::Test) {
        Ok(covariances) => Ok(Some(covariances).filter(Covariances::has_latents)),
        Err(ReportError::NoCovariance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Annotations must be of the classes that the runs know.
fn check_votes(run: &RunDir, source: &Source) -> Result<(), ReportError> {
    let classes = run.info().class_names.len() as u32;
    let unknown =
        |example: &&SourceExample| example.votes.iter().any(|(_, class)| *class >= classes);
    source.examples.iter().find(unknown).map_or(Ok(()), |example| {
        let reason = format!("example {:?} has a class that the run does not know", example.id);
        Err(changed(run, reason))
    })
}

fn changed(run: &RunDir, reason: String) -> ReportError {
    ReportError::Changed { dir: run.path().to_path_buf(), reason }
}

/// How two folds differ, if they do.
fn difference(ours: &RunInfo, theirs: &RunInfo) -> Option<String> {
    task_difference(ours, theirs)
        .or_else(|| (ours.noise != theirs.noise).then(|| "their heads differ".to_string()))
        .or_else(|| {
            (ours.fingerprint != theirs.fingerprint).then(|| "their data differ".to_string())
        })
}
