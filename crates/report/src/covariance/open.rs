//! The covariances of a split, read in pieces.

use std::ops::Range;
use std::path::PathBuf;

use aleator_covariance::{CovarianceRecorder, Loadings, LowRank, SharedFactors, Units};
use aleator_metrics::classification::argmax;
use aleator_run::{
    CovarianceFile, EnsembleFile, ExampleRow, Field, Likelihood, Link, Noise, PredictionsFile,
    RunDir, RunError, RunInfo, Split, SplitReader,
};
use rayon::prelude::*;

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
    /// Empty for predictions in memory.
    examples: Vec<ExampleRow>,
    /// N.
    pub(super) total: usize,
    split: Split,
    /// `None` if the run keeps no complete ones.
    pub(super) predictions: Option<SplitReader>,
    /// What stands for loadings that were not kept.
    pub(super) sums: Option<CovarianceFile>,
    classes: usize,
    pub(super) rank: usize,
    units: Units,
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
        if let Some(reason) = unlearned(run.info()) {
            return Err(none(reason.to_string()));
        }
        let predictions = match open_split(run, split) {
            Err(RunError::NotKept { .. } | RunError::NotEvaluated { .. }) => None,
            opened => Some(opened?),
        };
        let sums = match &predictions {
            Some(reader) if !lacks_loadings(run, &reader.file) => None,
            Some(reader) => open_sums(run, split, reader.examples.len())?,
            None => open_sums(run, split, run.split_examples(split)?.len())?,
        };
        let mut opened = match (predictions, sums) {
            (Some(reader), None) => {
                if let Some(reason) = missing(run, &reader.file, split) {
                    return Err(none(reason));
                }
                check_kind(run.info().noise, &reader.file)?;
                Self::of(reader)
            }
            (None, Some(sums)) => Self::of_sums(sums, run.split_examples(split)?, split),
            (Some(mut reader), Some(sums)) => {
                check_same(&sums, &reader.file, run)?;
                let examples = std::mem::take(&mut reader.examples);
                Self { predictions: Some(reader), ..Self::of_sums(sums, examples, split) }
            }
            (None, None) => return Err(run.no_predictions(split).into()),
        };
        opened.class_names = run.info().class_names.clone();
        opened.dir = run.path().to_path_buf();
        Ok(opened)
    }

    /// The covariances of predictions that are in memory and belong to no run directory; `None`
    /// without a noise model.
    pub(crate) fn in_memory(reader: SplitReader) -> Option<Self> {
        reader.file.has(Field::DiagScale).then(|| Self::of(reader))
    }

    fn of(mut reader: SplitReader) -> Self {
        let file = &reader.file;
        let (classes, rank) = (file.classes(), file.rank());
        let shared = |loadings| SharedFactors::new(loadings, classes, rank);
        Self {
            total: file.examples(),
            classes,
            rank,
            units: Units {
                temperature: f64::from(file.temperature()),
                is_shift_free: !file.has(Field::LogProbsOff),
            },
            shared: file.shared_loadings().map(shared),
            examples: std::mem::take(&mut reader.examples),
            split: reader.split,
            predictions: Some(reader),
            sums: None,
            memory: MEMORY,
            class_names: vec![],
            dir: PathBuf::new(),
        }
    }

    fn of_sums(sums: CovarianceFile, examples: Vec<ExampleRow>, split: Split) -> Self {
        let info = sums.info();
        let temperature = f64::from(info.temperature);
        Self {
            total: info.examples,
            examples,
            split,
            predictions: None,
            sums: Some(sums),
            classes: info.classes,
            rank: info.rank,
            units: Units { temperature, is_shift_free: info.flips },
            shared: None,
            memory: MEMORY,
            class_names: vec![],
            dir: PathBuf::new(),
        }
    }

    /// Limits the memory of the sums over pairs of classes; with less, the file is read more often.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// K.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// τ.
    pub fn temperature(&self) -> f64 {
        self.units.temperature
    }

    pub(super) fn units(&self) -> Units {
        self.units
    }

    /// The split's rows of `examples.csv`, in the order of the predictions.
    pub fn examples(&self) -> &[ExampleRow] {
        &self.examples
    }

    /// Whether classes share noise; false with `"diagonal"`.
    pub fn has_factors(&self) -> bool {
        self.rank > 0
    }

    /// Whether a constant that is added to all utilities changes no probability, so that only
    /// centred numbers mean something. It does for labels that are on or off by themselves: their
    /// covariances are used as they are.
    pub fn is_shift_free(&self) -> bool {
        self.units.is_shift_free
    }

    /// Whether the Normal of each example is known. Else its loadings were not kept: there are sums
    /// over the examples, and the covariances of each one's predicted class.
    pub fn has_latents(&self) -> bool {
        self.sums.is_none()
    }

    /// Whether single examples have predictions, and so ties. A run that keeps no complete
    /// predictions has averages only.
    pub fn has_examples(&self) -> bool {
        self.predictions.is_some()
    }

    /// The class of the largest probability of each example.
    ///
    /// # Errors
    /// When the run keeps no complete predictions, or they are damaged.
    pub fn predicted(&mut self, observer: Observer) -> Result<Vec<usize>, ReportError> {
        Ok(largest(self.reader()?, Field::LogProbs, observer)?)
    }

    pub(super) fn split(&self) -> Split {
        self.split
    }

    /// The predictions of single examples.
    pub(super) fn reader(&mut self) -> Result<&mut SplitReader, RunError> {
        let (dir, split) = (&self.dir, self.split.name());
        let missing = || RunError::NotKept { dir: dir.clone(), split };
        self.predictions.as_mut().ok_or_else(missing)
    }

    /// The predictions of examples whose loadings are known.
    pub(super) fn latent_reader(&mut self) -> Result<&mut SplitReader, ReportError> {
        if self.has_latents() {
            return Ok(self.reader()?);
        }
        let (classes, rank, dir) = (self.classes, self.rank, self.dir.display());
        let needed = needed_mib(self.total, classes * rank);
        let reason = format!(
            "its predictions of the {} split hold no loadings of single examples, which are needed \
             here; set evaluation.loadings_mib to {needed} or more and evaluation.predictions to \
             \"all\" in {dir}/recipe.toml, then `aleator eval {dir}`",
            self.split.name()
        );
        Err(ReportError::NoCovariance { dir: self.dir.clone(), reason })
    }

    /// Rows of the file that are read together; none without predictions.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.predictions.as_ref().map(pieces).into_iter().flatten()
    }

    /// The noise of some examples.
    pub(super) fn noise(&mut self, rows: Range<usize>) -> Result<LowRank<'_>, ReportError> {
        let (classes, rank) = (self.classes, self.rank);
        let reader = self.latent_reader()?;
        let diag = reader.read(Field::DiagScale, rows.clone())?.into();
        let field =
            [Field::Loadings, Field::LoadingScale].into_iter().find(|it| reader.file.has(*it));
        let values = field.map(|field| reader.read(field, rows)).transpose()?;
        let loadings = match (values, &self.shared) {
            (Some(values), None) => Loadings::Full(values.into()),
            (Some(values), Some(shared)) => Loadings::Shared(values.into(), shared),
            (None, _) => Loadings::None,
        };
        Ok(LowRank { classes, rank, diag, loadings })
    }
}

/// Why the labels say nothing about covariances between classes, and what to do.
fn unlearned(info: &RunInfo) -> Option<&'static str> {
    match (info.noise, info.link, info.likelihood) {
        (Noise::None, ..) => Some(
            "it was trained with head.noise = \"none\"; train with head.noise = \"full\" or \"shared\"",
        ),
        (_, Link::Sigmoid, Likelihood::Joint) | (_, Link::Softmax, _) => None,
        (_, Link::Sigmoid, _) => Some(
            "its classes are on or off by themselves (head.link = \"sigmoid\"): its loss depends on \
             the variance of each class alone, so the covariances between classes are those of the \
             initial weights and say nothing about the data; train with head.likelihood = \
             \"joint\", which learns them",
        ),
    }
}

/// MiB of the loadings of a split.
fn needed_mib(examples: usize, width: usize) -> f64 {
    let bytes = examples as f64 * width as f64 * size_of::<f32>() as f64;
    (bytes / (1 << 20) as f64).ceil().max(1.0)
}

/// Whether these predictions had loadings of each example that were not kept.
fn lacks_loadings(run: &RunDir, file: &PredictionsFile) -> bool {
    let own = !matches!(run.info().noise, Noise::Diagonal | Noise::SharedLowRank { .. });
    own && file.has(Field::DiagScale) && !file.has(Field::Loadings)
}

/// The sums over the examples of a split, where its evaluation wrote them.
fn open_sums(
    run: &RunDir,
    split: Split,
    examples: usize,
) -> Result<Option<CovarianceFile>, RunError> {
    let path = run.covariance_path(split);
    if !path.exists() {
        return Ok(None);
    }
    let file = CovarianceFile::open(&path)?;
    let info = file.info();
    let found = (info.examples, info.classes, info.rank);
    let rank = match run.info().noise {
        Noise::Diagonal => 0,
        Noise::LowRank { rank } | Noise::SharedLowRank { rank } => rank,
        // `run.json` does not say how many factors of utilities there are.
        _ => info.rank,
    };
    let expected = (examples, run.info().class_names.len(), rank);
    if found != expected {
        let message = format!(
            "holds (examples, classes, rank) = {found:?}, and the run has {expected:?}; \
             `aleator eval {}` writes it again",
            run.path().display()
        );
        return Err(RunError::damaged(&path, message));
    }
    Ok(Some(file))
}

/// The sums and the predictions must be of one evaluation, as far as their heads can tell.
fn check_same(
    sums: &CovarianceFile,
    predictions: &PredictionsFile,
    run: &RunDir,
) -> Result<(), RunError> {
    let info = sums.info();
    let found = (info.temperature, info.flips, info.ties);
    let expected = (predictions.temperature(), !predictions.has(Field::LogProbsOff), true);
    if found == expected {
        return Ok(());
    }
    let message = format!(
        "does not belong to {}: (temperature, flips, ties) are {found:?}, expected {expected:?}; \
         `aleator eval {}` writes both again",
        predictions.path().display(),
        run.path().display()
    );
    Err(RunError::damaged(sums.path(), message))
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
    if !lacks_loadings(run, file) {
        return None;
    }
    let (classes, split) = (file.classes(), split.name());
    if CovarianceRecorder::fits(classes) {
        return Some(format!(
            "its evaluation of the {split} split left neither loadings nor sums of them; \
             `aleator eval {dir}` makes them"
        ));
    }
    let rank = match run.info().noise {
        Noise::LowRank { rank } => rank,
        // At most, in the space of the classes.
        _ => classes,
    };
    let needed = needed_mib(file.examples(), classes * rank);
    Some(format!(
        "its predictions of the {split} split hold no loadings, which were larger than \
         evaluation.loadings_mib allows, and {classes} classes have too many pairs to be added up \
         in memory; set evaluation.loadings_mib to {needed} or more in {}, then `aleator eval {dir}`",
        run.recipe_path().display()
    ))
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
