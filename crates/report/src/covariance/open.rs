//! The predictions of a split, checked against their run and read piece by piece.

use std::ops::Range;
use std::path::{Path, PathBuf};

use aleator_metrics::classification::argmax;
use aleator_run::{
    ExampleRow, Field, Link, Noise, PredictionsFile, RunDir, RunError, RunInfo, Split,
};
use rayon::prelude::*;

use super::low_rank::{Loadings, LowRank, SharedFactors};
use super::{Observer, Step};
use crate::error::ReportError;

/// The covariances of a split's examples.
///
/// ```no_run
/// use aleator_report::covariance::Covariances;
/// use aleator_run::{RunDir, Split};
///
/// let run = RunDir::open("run".as_ref())?;
/// let mut covariances = Covariances::open(&run, Split::Test)?;
/// let pairs = covariances.top_pairs(10, &mut |_| {})?;
/// let first = &pairs.by_centred[0];
/// let names = [first.first, first.second].map(|class| &run.info().class_names[class]);
/// let text = format!("{names:?} {:+.3} {:?}", first.centred, first.relation);
/// # Ok::<(), aleator_report::ReportError>(())
/// ```
#[derive(Debug)]
pub struct Covariances {
    pub(super) file: PredictionsFile,
    pub(super) shared: Option<SharedFactors>,
    pub(super) memory: usize,
    examples: Vec<ExampleRow>,
    info: RunInfo,
    dir: PathBuf,
    split: Split,
}

/// Bytes for sums over pairs of classes, unless told otherwise.
const MEMORY: usize = 1 << 30;

/// Numbers of a tensor that are looked at together.
const PIECE: usize = 1 << 22;

impl Covariances {
    /// Opens the predictions of a split, and refuses those that hold no covariance.
    pub fn open(run: &RunDir, split: Split) -> Result<Self, ReportError> {
        let info = run.info().clone();
        let none = |reason: String| ReportError::NoCovariance { dir: run.path().into(), reason };
        if info.noise == Noise::None {
            return Err(none(
                "it was trained with head.noise = \"none\"; train with head.noise = \"full\" or \
                 \"shared\""
                    .to_string(),
            ));
        }
        let (file, examples) = open_split(run, split)?;
        if let Some(reason) = missing(run, &file, split) {
            return Err(none(reason));
        }
        check_kind(&info, &file)?;
        let shared = file.shared_loadings().map(|loadings| SharedFactors::new(loadings, &file));
        let dir = run.path().to_path_buf();
        Ok(Self { file, shared, memory: MEMORY, examples, info, dir, split })
    }

    /// The covariances of predictions that are in memory and belong to no run directory; `None`
    /// without a noise model.
    pub(crate) fn in_memory(
        file: PredictionsFile,
        examples: Vec<ExampleRow>,
        info: RunInfo,
    ) -> Option<Self> {
        if !file.has(Field::DiagScale) {
            return None;
        }
        let shared = file.shared_loadings().map(|loadings| SharedFactors::new(loadings, &file));
        let (dir, split) = (PathBuf::new(), Split::Test);
        Some(Self { file, shared, memory: MEMORY, examples, info, dir, split })
    }

    /// Bounds the sums over pairs of classes that are held at a time; with less, the file is read
    /// more often.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.file.classes()
    }

    /// τ.
    pub fn temperature(&self) -> f64 {
        self.file.temperature() as f64
    }

    /// The split's rows of `examples.csv`, in the order of the predictions.
    pub fn examples(&self) -> &[ExampleRow] {
        &self.examples
    }

    /// Of the run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// The run directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Of the run.
    pub fn split(&self) -> Split {
        self.split
    }

    /// Whether classes share noise: not with `"diagonal"`.
    pub fn has_factors(&self) -> bool {
        self.file.rank() > 0
    }

    /// The class of the largest probability of each example.
    pub fn predicted(&mut self, observer: Observer) -> Result<Vec<usize>, ReportError> {
        largest(&mut self.file, Field::LogProbs, observer)
    }

    /// Rows of the file that are read together.
    pub(super) fn pieces(&self) -> Vec<Range<usize>> {
        let rank = if self.file.has(Field::Loadings) { self.file.rank() } else { 1 };
        pieces(&self.file, rank)
    }

    /// The noise of some examples.
    pub(super) fn noise(&mut self, rows: Range<usize>) -> Result<LowRank<'_>, ReportError> {
        let diag = self.numbers(Field::DiagScale, rows.clone())?;
        let loadings = match (self.file.has(Field::Loadings), self.shared.is_some()) {
            (true, _) => Loadings::Full(self.numbers(Field::Loadings, rows)?),
            (_, true) => Loadings::Shared(self.numbers(Field::LoadingScale, rows)?),
            _ => Loadings::None,
        };
        let (classes, rank) = (self.file.classes(), self.file.rank());
        Ok(LowRank { classes, rank, diag, loadings, shared: self.shared.as_ref() })
    }

    /// Some rows of a tensor, all finite.
    pub(super) fn numbers(
        &mut self,
        field: Field,
        rows: Range<usize>,
    ) -> Result<Vec<f32>, ReportError> {
        finite(&mut self.file, field, rows)
    }
}

fn finite(
    file: &mut PredictionsFile,
    field: Field,
    rows: Range<usize>,
) -> Result<Vec<f32>, ReportError> {
    let values = file.read(field, rows.clone())?.unwrap_or_default();
    let Some(at) = values.iter().position(|value| !value.is_finite()) else {
        return Ok(values);
    };
    let row = rows.start + at / (values.len() / rows.len());
    let (name, found) = (field.name(), values[at]);
    let message =
        format!("tensor {name:?}: row {row} holds {found}; covariances need finite numbers");
    Err(RunError::Damaged { path: file.path().to_path_buf(), message }.into())
}

/// The predictions of a split and its examples, if they agree with each other.
pub(super) fn open_split(
    run: &RunDir,
    split: Split,
) -> Result<(PredictionsFile, Vec<ExampleRow>), ReportError> {
    let path = run.predictions_path(split);
    if !path.exists() {
        let dir = run.path().to_path_buf();
        return Err(ReportError::NotEvaluated { dir, split: split.name() });
    }
    let file = PredictionsFile::open(&path)?;
    let examples: Vec<ExampleRow> =
        run.read_examples()?.into_iter().filter(|row| row.split == split).collect();
    let expected = (examples.len(), run.info().class_names.len());
    let found = (file.examples(), file.classes());
    let message = if found != expected {
        format!(
            "holds {} examples of {} classes, and the run has {} of {}; `aleator eval {}` makes \
             it anew",
            found.0,
            found.1,
            expected.0,
            expected.1,
            run.path().display()
        )
    } else if examples.is_empty() {
        "holds no examples".to_string()
    } else {
        return Ok((file, examples));
    };
    Err(RunError::Damaged { path, message }.into())
}

/// The class with the largest number of each example.
pub(super) fn largest(
    file: &mut PredictionsFile,
    field: Field,
    observer: Observer,
) -> Result<Vec<usize>, ReportError> {
    let (total, classes) = (file.examples(), file.classes());
    let mut out = Vec::with_capacity(total);
    for rows in pieces(file, 1) {
        let values = match field {
            // Impossible classes have the logarithm −∞.
            Field::LogProbs => file.read(field, rows)?.unwrap_or_default(),
            _ => finite(file, field, rows)?,
        };
        out.par_extend(values.par_chunks_exact(classes).map(argmax));
        observer(Step { what: "examples: predictions", done: out.len(), total });
    }
    Ok(out)
}

/// Ranges of rows with K × `depth` numbers each. They do not depend on the machine.
fn pieces(file: &PredictionsFile, depth: usize) -> Vec<Range<usize>> {
    let total = file.examples();
    let rows = (PIECE / (file.classes() * depth.max(1)).max(1)).clamp(1, 1024);
    (0..total).step_by(rows).map(|start| start..total.min(start + rows)).collect()
}

/// Why the predictions hold no covariance, and what to do.
fn missing(run: &RunDir, file: &PredictionsFile, split: Split) -> Option<String> {
    let dir = run.path().display();
    if !file.has(Field::DiagScale) {
        return Some(match members(run) {
            Some(members) => format!(
                "it is an ensemble, and a mean of probabilities has none; analyse one of its \
                 members: {members}"
            ),
            None => format!("its predictions lack diag_scale; `aleator eval {dir}` makes them"),
        });
    }
    match run.info().noise {
        Noise::LowRank { rank } if !file.has(Field::Loadings) => {
            let counts = run.info().examples;
            let examples = counts.validation.max(counts.test) as f64;
            let bytes = examples * (file.classes() * rank * size_of::<f32>()) as f64;
            let needed = (bytes / (1 << 20) as f64).ceil().max(1.0);
            Some(format!(
                "its predictions of the {} split hold no loadings, which were larger than \
                 evaluation.loadings_mib allows; set evaluation.loadings_mib to {needed} or more \
                 in {}, then `aleator eval {dir}`",
                split.name(),
                run.recipe_path().display()
            ))
        }
        _ => None,
    }
}

fn members(run: &RunDir) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Ensemble {
        members: Vec<String>,
    }
    let ensemble: Ensemble = run.read_json("ensemble.json").ok()?;
    Some(ensemble.members.join(", "))
}

/// The file must have the noise that `run.json` names.
fn check_kind(info: &RunInfo, file: &PredictionsFile) -> Result<(), RunError> {
    let found = (file.has(Field::Loadings), file.has(Field::LoadingScale), file.rank());
    let expected = match info.noise {
        Noise::None | Noise::Diagonal => (false, false, 0),
        Noise::LowRank { rank } => (true, false, rank),
        Noise::SharedLowRank { rank } => (false, true, rank),
    };
    if found == expected {
        return Ok(());
    }
    let noise = serde_json::to_string(&info.noise).unwrap_or_default();
    let message = format!("does not hold the noise {noise} that run.json names");
    Err(RunError::Damaged { path: file.path().to_path_buf(), message })
}

/// The classes that an example is judged by: the true ones where they are known.
pub(super) fn truth(row: &ExampleRow) -> Option<&[u32]> {
    row.clean_label.as_deref().or(row.label.as_deref())
}

/// Whether a pair's relation is read from the centred covariance.
pub(super) fn is_centred(info: &RunInfo) -> bool {
    info.link == Link::Softmax
}
