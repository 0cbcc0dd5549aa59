//! The run directory: everything that a run writes.
//!
//! `docs/run-directory.md` describes every file. The directory has a temporary name until the recipe
//! and `run.json` are on disk.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic::{self, AtomicFolder, exists};
use crate::error::RunError;
use crate::recipe::range::is_default;
use crate::recipe::{KeptPredictions, Likelihood, Link, Noise, Recipe};
use crate::regular::{check_own_folder, open_own, read_file};

/// The version of the directory's layout, and of `group.json`, that this program writes and reads.
pub const FORMAT: u32 = 1;

/// The parts into which examples are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The examples to train on.
    Train,
    /// The examples that choose between weights.
    Validation,
    /// The examples that are only measured.
    Test,
}

impl Split {
    /// All splits, in the order of every file.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The name in `examples.csv` and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// `run.json`: the facts that every reader of the directory needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// The seed of this run: one of the recipe's.
    pub seed: u64,
    /// A hash of the data files.
    pub fingerprint: String,
    /// What turns utilities into probabilities.
    pub link: Link,
    /// Which probability of the labels was maximised.
    #[serde(default, skip_serializing_if = "is_default")]
    pub likelihood: Likelihood,
    /// The noise model.
    pub noise: Noise,
    /// The names of the classes, in their order.
    pub class_names: Vec<String>,
    /// The shape of one input, such as `[768]` or `[3, 32, 32]`.
    pub input_shape: Vec<usize>,
    /// The names of the features, where they were the columns of a table: new tables are read by
    /// these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_names: Option<Vec<String>>,
    /// How many examples each split has.
    pub examples: SplitCounts,
    /// Examples that were left out because their images cannot be decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
    /// BLAKE3 of the file with the initial weights, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained: Option<String>,
}

/// An example that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// The split that it would be in.
    pub split: Split,
    /// Its id.
    pub id: String,
    /// Why it was left out.
    pub reason: String,
}

/// Most numbers in one input; a larger one means a damaged file.
const LARGEST_INPUT: usize = 1 << 28;

impl RunInfo {
    /// Refuses sizes that no run has.
    fn check(&self) -> Result<(), String> {
        if self.class_names.is_empty() {
            return Err("class_names must name at least one class, found none".to_string());
        }
        let shape = &self.input_shape;
        let size = shape.iter().try_fold(1_usize, |size, side| size.checked_mul(*side));
        if !matches!((shape.len(), size), (1 | 3, Some(1..=LARGEST_INPUT))) {
            return Err(format!(
                "input_shape must be [features] or [channels, height, width], found {shape:?}"
            ));
        }
        match &self.feature_names {
            Some(names) if shape[..] != [names.len()] => Err(format!(
                "feature_names must be one for each of input_shape = {shape:?}, found {}",
                names.len()
            )),
            _ => Ok(()),
        }
    }
}

/// How many examples each split has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitCounts {
    /// Training examples.
    pub train: usize,
    /// Validation examples.
    pub validation: usize,
    /// Test examples; 0 without a test split.
    pub test: usize,
}

impl SplitCounts {
    /// The count of one split.
    pub fn of(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train,
            Split::Validation => self.validation,
            Split::Test => self.test,
        }
    }
}

/// The first files of a run directory.
#[derive(Clone, Debug)]
pub struct CreateRun {
    /// The resolved recipe, as [`Document::to_toml`](crate::Document::to_toml) writes it.
    pub recipe: String,
    /// `run.json`.
    pub info: RunInfo,
}

/// A run directory that exists.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("run");
/// use aleator_run::{CreateRun, FORMAT, Likelihood, Link, Noise, RunDir, RunInfo, SplitCounts};
///
/// let info = RunInfo {
///     format: FORMAT,
///     version: "0.1.0".to_string(),
///     seed: 0,
///     fingerprint: "5d41402a".to_string(),
///     link: Link::Softmax,
///     likelihood: Likelihood::Marginal,
///     noise: Noise::LowRank { rank: 6 },
///     class_names: vec!["cat".to_string(), "dog".to_string()],
///     input_shape: vec![768],
///     feature_names: None,
///     examples: SplitCounts { train: 900, validation: 100, test: 0 },
///     set_aside: vec![],
///     pretrained: None,
/// };
/// let run = RunDir::create(&path, &CreateRun { recipe: String::new(), info })?;
/// let _lock = run.lock()?;
/// run.write_json("evaluation.json", &serde_json::json!({ "accuracy": 0.9 }))?;
/// assert_eq!(RunDir::open(&path)?.info().class_names[1], "dog");
/// # Ok::<(), aleator_run::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    info: RunInfo,
}

impl RunDir {
    /// The name of the file with the [`RunInfo`], which makes a directory a run.
    pub const INFO: &str = "run.json";

    /// Creates the directory and its parents. An empty directory may exist there, nothing else.
    pub fn create(path: &Path, run: &CreateRun) -> Result<Self, RunError> {
        let folder = AtomicFolder::create_new(path)?;
        for name in [CHECKPOINTS, PREDICTIONS, TENSORBOARD] {
            fs::create_dir(folder.path().join(name)).map_err(RunError::io("create", path))?;
        }
        let made = Self { path: folder.path().to_path_buf(), info: run.info.clone() };
        atomic::write_file(&made.recipe_path(), run.recipe.as_bytes())?;
        made.write_json(Self::INFO, &run.info)?;
        folder.commit_new()?;
        Ok(Self { path: path.to_path_buf(), info: run.info.clone() })
    }

    /// Writes the recipe whose settings were chosen after the directory was made. The one that was
    /// given stays as `untuned.toml`.
    ///
    /// Killed in between, it can be called again with the same recipe.
    pub fn replace_recipe(&mut self, recipe: &Recipe) -> Result<(), RunError> {
        let untuned = self.path.join("untuned.toml");
        if !atomic::exists(&untuned)? {
            let path = self.recipe_path();
            let given = read_file(&path).map_err(RunError::io("read", &path))?;
            atomic::write_file(&untuned, &given)?;
        }
        self.info.noise = recipe.head.noise;
        self.write_json(Self::INFO, &self.info)?;
        atomic::write_file(&self.recipe_path(), recipe.to_toml().as_bytes())
    }

    /// Opens a directory that this version of the program can read.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let file = path.join(Self::INFO);
        if !exists(path)? {
            return Err(RunError::Missing { path: path.to_path_buf() });
        }
        if !file.is_file() {
            return Err(RunError::NotARun { path: path.to_path_buf() });
        }
        let info: RunInfo = read_current(&file)?;
        info.check().map_err(|message| RunError::damaged(&file, message))?;
        Ok(Self { path: path.to_path_buf(), info })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `run.json`.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// `recipe.toml`: the resolved recipe.
    pub fn recipe_path(&self) -> PathBuf {
        self.path.join("recipe.toml")
    }

    /// `examples.csv`: see [`write_examples`](Self::write_examples).
    pub fn examples_path(&self) -> PathBuf {
        self.path.join("examples.csv")
    }

    /// `metrics.jsonl`: see [`MetricsLog`](crate::MetricsLog).
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// The file for TensorBoard: see [`EventFile`](crate::EventFile).
    pub fn events_path(&self) -> PathBuf {
        self.path.join(TENSORBOARD).join("events.out.tfevents.0.aleator")
    }

    /// The directory of the checkpoints, each a directory of its own.
    pub fn checkpoints_path(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// The predictions for a split: see [`Predictions`](crate::Predictions).
    pub fn predictions_path(&self, split: Split) -> PathBuf {
        self.path.join(PREDICTIONS).join(format!("{}.safetensors", split.name()))
    }

    /// The most probable classes of a split: see
    /// [`TopPredictionsWriter`](crate::TopPredictionsWriter).
    pub fn top_predictions_path(&self, split: Split) -> PathBuf {
        self.path.join(PREDICTIONS).join(format!("{}.top.safetensors", split.name()))
    }

    /// The covariances of a split whose loadings are not in its predictions: see
    /// [`CovarianceFile`](crate::CovarianceFile).
    pub fn covariance_path(&self, split: Split) -> PathBuf {
        self.path.join(PREDICTIONS).join(format!("{}.covariance.safetensors", split.name()))
    }

    /// Whether there are no complete predictions of a split because the recipe keeps none
    /// (`evaluation.predictions`).
    pub fn keeps_no_predictions(&self, split: Split) -> bool {
        let kept = || self.recipe().map(|it| it.recipe.evaluation.predictions);
        !self.predictions_path(split).exists()
            && kept().is_ok_and(|kept| kept != KeptPredictions::All)
    }

    /// Locks the directory for writing until the lock is dropped, and removes what a killed writer
    /// left. File systems without locks let everybody in.
    ///
    /// # Errors
    /// When another process writes there, or one of the folders to write to is a link.
    pub fn lock(&self) -> Result<RunLock, RunError> {
        let lock = lock_folder(&self.path)?;
        for folder in [CHECKPOINTS, PREDICTIONS, TENSORBOARD] {
            check_own_folder(&self.path, folder)?;
            atomic::remove_leftovers(&self.path.join(folder))?;
        }
        Ok(lock)
    }

    /// Writes a JSON file of the directory atomically.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), RunError> {
        atomic::write_json(&self.path.join(name), value)
    }

    /// Reads a JSON file of the directory.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, RunError> {
        atomic::read_json(&self.path.join(name))
    }
}

/// No other process writes to the run while this lives.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// Locks any directory for writing until the lock is dropped, and removes what a killed writer left
/// there; [`RunDir::lock`] does it for a run and its folders.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let lock = aleator_run::lock_folder(folder.path())?;
/// assert!(aleator_run::lock_folder(folder.path()).is_err());
/// drop(lock);
/// aleator_run::lock_folder(folder.path())?;
/// # Ok::<(), aleator_run::RunError>(())
/// ```
pub fn lock_folder(folder: &Path) -> Result<RunLock, RunError> {
    let path = folder.join(".lock");
    let options = File::options().read(true).write(true).create(true).truncate(false).clone();
    let mut file = open_own(&path, &options).map_err(RunError::io("open", &path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let holder = holder(&mut file);
            return Err(RunError::Locked { path: folder.to_path_buf(), holder });
        }
        Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
            return Err(RunError::io("lock", &path)(error));
        }
        _ => (),
    }
    note_holder(&mut file).map_err(RunError::io("write", &path))?;
    atomic::remove_leftovers(folder)?;
    Ok(RunLock { _file: file })
}

const CHECKPOINTS: &str = "checkpoints";
const PREDICTIONS: &str = "predictions";
const TENSORBOARD: &str = "tensorboard";

/// Reads a JSON file that has its format and the version of its writer in it.
pub(crate) fn read_current<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    let value: Value = atomic::read_json(path)?;
    let text = |key: &str| match value.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "(none)".to_string(),
    };
    if value.get("format").and_then(Value::as_u64) != Some(FORMAT.into()) {
        let (found, writer) = (text("format"), text("version"));
        return Err(RunError::Format { path: path.to_path_buf(), found, writer });
    }
    serde_json::from_value(value).map_err(|error| RunError::damaged(path, error))
}

/// The process whose id is in the lock file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // Longer than any process id; some systems refuse to read a locked file.
    let read = file.take(32).read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(number) if read.is_ok() => format!("process {number}"),
        _ => "another process".to_string(),
    }
}

fn note_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}
