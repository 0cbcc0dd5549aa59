//! The covariances of a split, read in pieces.

use std::ops::Range;
use std::path::PathBuf;

use aleator_metrics::classification::argmax;
use aleator_run::{
    EnsembleFile, ExampleRow, Field, Likelihood, Link, Noise, PredictionsFile, RunDir, RunError,
    Split, SplitReader,
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
    pub(super) reader: SplitReader,
    pub(super) shared: Option<SharedFactors>,
    pub(super) memory: usize,
    /// Of the run; empty for predictions in memory.
    pub(super) class_names: Vec<String>,
    pub(super) dir: PathBuf,
}

/// Default limit of the sums over pairs of classes, in bytes.
const MEMORY: usize = 1 << 30;

/// Most examples that are read together.
const ROWS: usize = 1024;

impl Covariances {
    /// Opens the predictions of a split, and refuses those that hold no covariance.
    pub fn open(run: &RunDir, split: Split) -> Result<Self, ReportError> {
        let none = |reason: String| ReportError::NoCovariance { dir: run.path().into(), reason };
        if run.info().noise == Noise::None {
            return Err(none(
                "it was trained with head.noise = \"none\"; train with head.noise = \"full\" or \
                 \"shared\""
                    .to_string(),
            ));
        }
        if run.info().link == Link::Sigmoid && run.info().likelihood != Likelihood::Joint {
            return Err(none(
                "its classes are on or off by themselves (head.link = \"sigmoid\"): its loss \
                 depends on the variance of each class alone, so the covariances between classes \
                 are those of the initial weights and say nothing about the data; train with \
                 head.likelihood = \"joint\", which learns them"
                    .to_string(),
            ));
        }
        let reader = open_split(run, split)?;
        if let Some(reason) = missing(run, &reader.file, split) {
            return Err(none(reason));
        }
        check_kind(run.info().noise, &reader.file)?;
        let (class_names, dir) = (run.info().class_names.clone(), run.path().to_path_buf());
        Ok(Self { class_names, dir, ..Self::of(reader) })
    }

    /// The covariances of predictions that are in memory and belong to no run directory; `None`
    /// without a noise model.
    pub(crate) fn in_memory(reader: SplitReader) -> Option<Self> {
        reader.file.has(Field::DiagScale).then(|| Self::of(reader))
    }

    fn of(reader: SplitReader) -> Self {
        let file = &reader.file;
        let shared = file.shared_loadings().map(|loadings| SharedFactors::new(loadings, file));
        let (class_names, dir) = (vec![], PathBuf::new());
        Self { reader, shared, memory: MEMORY, class_names, dir }
    }

    /// Limits the memory of the sums over pairs of classes; with less, the file is read more often.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.reader.file.classes()
    }

    /// τ.
    pub fn temperature(&self) -> f64 {
        self.reader.file.temperature() as f64
    }

    /// The split's rows of `examples.csv`, in the order of the predictions.
    pub fn examples(&self) -> &[ExampleRow] {
        &self.reader.examples
    }

    /// Whether classes share noise; false with `"diagonal"`.
    pub fn has_factors(&self) -> bool {
        self.reader.file.rank() > 0
    }

    /// Whether a constant that is added to all utilities changes no probability, so that only
    /// centred numbers mean something. It does for labels that are on or off by themselves: their
    /// covariances are used as they are.
    pub fn is_shift_free(&self) -> bool {
        !self.reader.file.has(Field::LogProbsOff)
    }

    /// The class of the largest probability of each example.
    pub fn predicted(&mut self, observer: Observer) -> Result<Vec<usize>, ReportError> {
        Ok(largest(&mut self.reader, Field::LogProbs, observer)?)
    }

    /// Rows of the file that are read together.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(&self.reader)
    }

    /// The noise of some examples.
    pub(super) fn noise(&mut self, rows: Range<usize>) -> Result<LowRank<'_>, ReportError> {
        let diag = self.reader.read(Field::DiagScale, rows.clone())?;
        let loadings = match &self.shared {
            _ if self.reader.file.has(Field::Loadings) => {
                Loadings::Full(self.reader.read(Field::Loadings, rows)?)
            }
            Some(shared) => Loadings::Shared(self.reader.read(Field::LoadingScale, rows)?, shared),
            None => Loadings::None,
        };
        let (classes, rank) = (self.reader.file.classes(), self.reader.file.rank());
        Ok(LowRank { classes, rank, diag, loadings })
    }
}

/// Opens a split that has examples.
pub(super) fn open_split(run: &RunDir, split: Split) -> Result<SplitReader, RunError> {
    let reader = SplitReader::open(run, split)?;
    if reader.examples.is_empty() {
        return Err(RunError::damaged(reader.file.path(), "holds no examples"));
    }
    Ok(reader)
}

/// The class with the largest number of each example.
pub(crate) fn largest(
    reader: &mut SplitReader,
    field: Field,
    observer: Observer,
) -> Result<Vec<usize>, RunError> {
    let (total, classes) = (reader.file.examples(), reader.file.classes());
    let mut out = Vec::with_capacity(total);
    for rows in reader.pieces(classes, ROWS) {
        let values = reader.read(field, rows)?;
        out.par_extend(values.par_chunks_exact(classes).map(argmax));
        observer(Step { what: "examples: predictions", done: out.len(), total });
    }
    Ok(out)
}

/// Rows whose covariances are read together.
pub(crate) fn pieces(reader: &SplitReader) -> impl Iterator<Item = Range<usize>> + use<> {
    let rank = if reader.file.has(Field::Loadings) { reader.file.rank() } else { 1 };
    let width = reader.file.classes() * rank;
    reader.pieces(width, ROWS)
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
        Noise::LowRank { .. } | Noise::OnFeatures { .. } if !file.has(Field::Loadings) => {
            let rank = match run.info().noise {
                Noise::LowRank { rank } => rank,
                // At most, in the space of the classes.
                _ => file.classes(),
            };
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
    let ensemble = EnsembleFile::load(run.path()).ok()??;
    Some(ensemble.members.join(", "))
}

/// The file must have the noise that `run.json` names.
fn check_kind(noise: Noise, file: &PredictionsFile) -> Result<(), RunError> {
    let found = (file.has(Field::Loadings), file.has(Field::LoadingScale), file.rank());
    let expected = match noise {
        Noise::None | Noise::Diagonal => (false, false, 0),
        Noise::LowRank { rank } => (true, false, rank),
        Noise::SharedLowRank { rank } => (false, true, rank),
        // Loadings in the space of the classes, as many as their covariance has.
        Noise::OnFeatures { .. } => (true, false, file.rank()),
    };
    if found == expected {
        return Ok(());
    }
    let noise = serde_json::to_string(&noise).unwrap_or_default();
    let message = format!("does not hold the noise {noise} that run.json names");
    Err(RunError::damaged(file.path(), message))
}

/// The true label of an example, or the given one if the true one is unknown.
pub(super) fn truth(row: &ExampleRow) -> Option<&[u32]> {
    row.clean_label.as_deref().or(row.label.as_deref())
}
