//! Opens the folds of an audit: run directories whose test splits are together all of the data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aleator_run::{ExampleRow, Link, PredictionsFile, RunDir, RunInfo, Split, SplitReader};

use super::parts::{Example, Part, Parts, Task, damaged};
use crate::covariance::Covariances;
use crate::error::ReportError;

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
        let RunInfo { link, noise, fingerprint, class_names, .. } = first.info().clone();
        let task = Task { link, noise, fingerprint, class_names };
        for run in &runs {
            same_task(first, run)?;
        }
        check_votes(first, source)?;
        let position: BTreeMap<&str, usize> =
            source.examples.iter().map(|example| example.id.as_str()).zip(0..).collect();
        let mut found: Vec<Option<(ExampleRow, usize)>> = vec![None; source.examples.len()];
        let mut parts = vec![];
        for (fold, run) in runs.iter().enumerate() {
            let (file, examples) = open_fold(run, &position, fold, &mut found)?;
            let covariances = if link == Link::Softmax { covariances(run)? } else { None };
            parts.push(Part { file, examples, covariances });
        }
        // Examples that could not be judged, such as images that cannot be decoded, are skipped.
        let mut kept = vec![None; found.len()];
        let mut examples = vec![];
        for (at, (found, source)) in found.into_iter().zip(&source.examples).enumerate() {
            let Some((row, part)) = found else { continue };
            kept[at] = Some(examples.len());
            let (path, votes) = (source.path.clone(), source.votes.clone());
            let labels = Example::evidence(&row, &votes);
            examples.push(Example { row, path, votes, labels, part });
        }
        for part in &mut parts {
            part.examples.iter_mut().for_each(|at| *at = kept[*at].expect("was just found"));
        }
        Ok(Self { task, examples, parts })
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

fn covariances(run: &RunDir) -> Result<Option<Covariances>, ReportError> {
    match Covariances::open(run, Split::Test) {
        Ok(covariances) => Ok(Some(covariances)),
        Err(ReportError::NoCovariance { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_fold(
    run: &RunDir,
    position: &BTreeMap<&str, usize>,
    fold: usize,
    found: &mut [Option<(ExampleRow, usize)>],
) -> Result<(PredictionsFile, Vec<usize>), ReportError> {
    let SplitReader { examples, file, .. } = SplitReader::open(run, Split::Test)?;
    let mut rows = vec![];
    for row in examples {
        let Some(at) = position.get(row.id.as_str()).copied() else {
            return Err(ReportError::Changed {
                dir: run.path().to_path_buf(),
                reason: format!("example {:?} is not in the training data any more", row.id),
            });
        };
        rows.push(at);
        if found[at].replace((row, fold)).is_some() {
            let id = found[at].as_ref().map(|(row, _)| row.id.clone()).unwrap_or_default();
            return Err(damaged(&run.examples_path(), format!("example {id:?} is in two folds")));
        }
    }
    Ok((file, rows))
}

/// Annotations must be of the classes that the runs know.
fn check_votes(run: &RunDir, source: &Source) -> Result<(), ReportError> {
    let classes = run.info().class_names.len() as u32;
    let unknown =
        |example: &&SourceExample| example.votes.iter().any(|(_, class)| *class >= classes);
    match source.examples.iter().find(unknown) {
        None => Ok(()),
        Some(example) => Err(ReportError::Changed {
            dir: run.path().to_path_buf(),
            reason: format!("example {:?} has a class that the run does not know", example.id),
        }),
    }
}

fn same_task(first: &RunDir, other: &RunDir) -> Result<(), ReportError> {
    let (a, b) = (first.info(), other.info());
    let reason = if a.class_names != b.class_names {
        "their classes differ"
    } else if (a.link, a.noise) != (b.link, b.noise) {
        "their heads differ"
    } else if a.fingerprint != b.fingerprint {
        "their data differ"
    } else {
        return Ok(());
    };
    Err(ReportError::Different {
        first: first.path().to_path_buf(),
        other: other.path().to_path_buf(),
        reason: reason.to_string(),
    })
}
