//! The folds of an audit: every example once, judged by a model that never saw its label.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use aleator_run::{
    ExampleRow, Field, PredictionsFile, RunDir, RunError, RunInfo, Split, SplitReader,
};

use crate::error::ReportError;

/// What the data say of the examples beside what the runs wrote.
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
    /// What was said of it: annotator and class; empty where annotators are not known.
    pub votes: Vec<(u32, u32)>,
}

/// The test splits of all folds.
#[derive(Debug)]
pub(super) struct Folds {
    pub info: RunInfo,
    /// What was judged, in the order of the source.
    pub examples: Vec<Judged>,
    pub folds: Vec<Fold>,
}

/// An example and where its judgement stands.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub row: ExampleRow,
    pub source: SourceExample,
    /// What annotators said, or the given label alone.
    pub said: Vec<u32>,
    pub fold: usize,
}

/// The predictions of one fold.
#[derive(Debug)]
pub(super) struct Fold {
    pub run: RunDir,
    pub file: PredictionsFile,
    /// Of each row of the file, its place in [`Folds::examples`].
    pub examples: Vec<usize>,
}

/// Numbers that are looked at together.
const PIECE: usize = 1 << 22;

impl Folds {
    /// Opens the runs and puts their test splits in the order of the source.
    pub fn open(dirs: &[PathBuf], source: &Source) -> Result<Self, ReportError> {
        let runs: Vec<RunDir> =
            dirs.iter().map(|dir| RunDir::open(dir)).collect::<Result<_, _>>()?;
        let Some(info) = runs.first().map(|run| run.info().clone()) else {
            return Err(ReportError::TooFew(0));
        };
        for run in &runs {
            same_task(&runs[0], run)?;
        }
        check_votes(&runs[0], source)?;
        let place: BTreeMap<&str, usize> =
            source.examples.iter().map(|example| example.id.as_str()).zip(0..).collect();
        let mut found: Vec<Option<(ExampleRow, usize)>> = vec![None; source.examples.len()];
        let mut opened = vec![];
        for (fold, run) in runs.into_iter().enumerate() {
            let (file, places) = open_fold(&run, &place, fold, &mut found)?;
            opened.push(Fold { run, file, examples: places });
        }
        let mut kept = vec![None; found.len()];
        let mut examples = vec![];
        for (at, (found, source)) in found.into_iter().zip(&source.examples).enumerate() {
            let Some((row, fold)) = found else { continue };
            kept[at] = Some(examples.len());
            let said = match source.votes.is_empty() {
                true => row.label.clone().unwrap_or_default(),
                false => source.votes.iter().map(|(_, class)| *class).collect(),
            };
            examples.push(Judged { row, source: source.clone(), said, fold });
        }
        for fold in &mut opened {
            fold.examples.iter_mut().for_each(|at| *at = kept[*at].expect("was just found"));
        }
        Ok(Self { info, examples, folds: opened })
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.info.class_names.len()
    }
}

impl Fold {
    /// Rows of the file that are read together.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.examples.len();
        let step = (PIECE / self.file.classes()).max(1);
        (0..rows).step_by(step).map(move |start| start..rows.min(start + step))
    }

    /// Some rows of a tensor that every file has.
    pub fn read(&mut self, field: Field, rows: Range<usize>) -> Result<Vec<f32>, ReportError> {
        let values = self.file.read(field, rows.clone())?.unwrap_or_default();
        // An impossible class has log 0; a mean is a number.
        let finite = |value: &f32| {
            value.is_finite() || (field != Field::Mean && *value == f32::NEG_INFINITY)
        };
        match values.iter().position(|value| !finite(value)) {
            None => Ok(values),
            Some(at) => {
                let row = rows.start + at / self.file.classes();
                let message = format!("tensor {:?}: row {row} is not finite", field.name());
                Err(damaged(self.file.path(), message))
            }
        }
    }
}

fn open_fold(
    run: &RunDir,
    place: &BTreeMap<&str, usize>,
    fold: usize,
    found: &mut [Option<(ExampleRow, usize)>],
) -> Result<(PredictionsFile, Vec<usize>), ReportError> {
    let SplitReader { examples, file, .. } = SplitReader::open(run, Split::Test)?;
    let mut places = vec![];
    for row in examples {
        let Some(at) = place.get(row.id.as_str()).copied() else {
            return Err(ReportError::Changed {
                dir: run.path().to_path_buf(),
                reason: format!("example {:?} is not in the training data any more", row.id),
            });
        };
        places.push(at);
        if found[at].replace((row, fold)).is_some() {
            let id = found[at].as_ref().map(|(row, _)| row.id.clone()).unwrap_or_default();
            return Err(damaged(&run.examples_path(), format!("example {id:?} is in two folds")));
        }
    }
    Ok((file, places))
}

/// What annotators said must be of the classes that the runs know.
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

fn damaged(path: &Path, message: String) -> ReportError {
    RunError::Damaged { path: path.to_path_buf(), message }.into()
}
