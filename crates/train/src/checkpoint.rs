//! Checkpoints: one directory for each step, written completely or not at all, with a manifest of
//! hashes. A checkpoint is `state.json` and files of named tensors.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use aleator_run::{AtomicFolder, RunError, read_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::lbfgs::Search;
use crate::runs::hash_file;
use crate::state::{Progress, State};
use crate::tensors::{self, NamedTensor};
use crate::{Event, Normalization, Observer, TrainError};

/// The format of the directory.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const STATE: &str = "state.json";
/// What is saved of a network, in the order of [`Network::parts`](crate::network::Network::parts).
const NETWORK: [&str; 3] = ["model", "average", "optimizer"];
/// What the training method keeps, where it keeps anything.
const METHOD: &str = "method.safetensors";
/// The two tensors of a normalization; the names of the second kind say that it takes asinh.
const NORMALIZATION: [[&str; 2]; 2] = [
    ["normalization.center", "normalization.scale"],
    ["normalization.asinh_center", "normalization.asinh_scale"],
];

/// The checkpoints of a run.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    dir: PathBuf,
}

/// How long the logs were when the checkpoint was made; later lines are written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPositions {
    /// Bytes of `metrics.jsonl`.
    pub metrics: u64,
    /// Bytes of the TensorBoard file.
    pub events: u64,
}

/// `state.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    progress: Progress,
    updates: u64,
    /// That of an optimizer that searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<Search>,
    logs: LogPositions,
}

/// `manifest.json`: what the directory must hold.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    files: BTreeMap<String, FileHash>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileHash {
    bytes: u64,
    blake3: String,
}

impl Checkpoints {
    /// Those in a directory, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Saves the state; returns once it is on the disk.
    pub(crate) fn save(&self, state: &State, logs: LogPositions) -> Result<(), TrainError> {
        fs::create_dir_all(&self.dir).map_err(|error| TrainError::checkpoint(&self.dir, error))?;
        let dir = AtomicFolder::create(&self.path(state.progress.step))?;
        for (file, named) in parts(state) {
            tensors::write(&dir.path().join(file), &named)?;
        }
        let json = |name: &str, text: serde_json::Result<String>| {
            let text = text.map_err(|error| TrainError::checkpoint(&self.dir, error))?;
            let path = dir.path().join(name);
            fs::write(&path, text + "\n").map_err(|error| TrainError::checkpoint(&path, error))
        };
        let optimizer = &state.networks[0].optimizer;
        let (updates, search) = (optimizer.updates(), optimizer.search().copied());
        let counts = Counts { progress: state.progress.clone(), updates, search, logs };
        json(STATE, serde_json::to_string_pretty(&counts))?;
        let manifest = Manifest { format: FORMAT, files: hashes(dir.path())? };
        json(MANIFEST, serde_json::to_string_pretty(&manifest))?;
        Ok(dir.commit()?)
    }

    /// Brings a fresh state to the newest checkpoint that is complete; none when no checkpoint can
    /// be used.
    pub(crate) fn restore_newest(
        &self,
        state: &mut State,
        observer: &mut Observer<'_>,
    ) -> Result<Option<LogPositions>, TrainError> {
        for step in self.steps()?.into_iter().rev() {
            match self.restore(step, state) {
                Ok(logs) => return Ok(Some(logs)),
                Err(error @ TrainError::Checkpoint { .. }) => observer(Event::Damaged(&error)),
                // Training again over checkpoints that somebody else can read would lose them.
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Brings a fresh state to the checkpoint of a step. When that fails the state is as before.
    pub(crate) fn restore(
        &self,
        step: usize,
        state: &mut State,
    ) -> Result<LogPositions, TrainError> {
        let dir = CheckpointFiles::open(self.path(step))?;
        let (file, bytes) = dir.read(STATE)?;
        let counts: Counts = parse_json(&file, &bytes)?;
        if counts.progress.step != step {
            let reason = format!("is of step {}: it was renamed", counts.progress.step);
            return Err(TrainError::checkpoint(&dir.path, reason));
        }
        let mut found = vec![];
        for (file, expected) in parts(state) {
            let (file, bytes) = dir.read(&file)?;
            found.push(tensors::parse(&file, &bytes, expected)?);
        }
        put(state, &counts, found);
        Ok(counts.logs)
    }

    /// Removes all but the last `keep` up to the one of step `newest`, and `others`. Those after
    /// it are damaged, and must not be kept in place of complete ones.
    pub(crate) fn prune(
        &self,
        newest: usize,
        keep: usize,
        others: &[Option<usize>],
    ) -> Result<(), TrainError> {
        let (whole, damaged): (Vec<usize>, Vec<usize>) =
            self.steps()?.into_iter().partition(|step| *step <= newest);
        let old = &whole[..whole.len().saturating_sub(keep)];
        for step in old.iter().filter(|step| !others.contains(&Some(**step))).chain(&damaged) {
            aleator_run::remove_folder(&self.path(*step))?;
        }
        Ok(())
    }

    /// The steps that have a checkpoint, ascending.
    pub fn steps(&self) -> Result<Vec<usize>, TrainError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(unreadable(&self.dir, error)),
        };
        let mut steps = vec![];
        for entry in entries {
            let entry = entry.map_err(|error| TrainError::checkpoint(&self.dir, error))?;
            let name = entry.file_name();
            let step = name.to_str().and_then(|name| name.strip_prefix("step-"));
            steps.extend(step.and_then(|digits| digits.parse::<usize>().ok()));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// The directory of a step.
    pub fn path(&self, step: usize) -> PathBuf {
        self.dir.join(format!("step-{step:08}"))
    }

    /// The weights of a step, or their running average.
    pub fn weights_file(&self, step: usize, averaged: bool) -> PathBuf {
        self.path(step).join(file_of(0, NETWORK[usize::from(averaged)]))
    }
}

/// The file of what is saved of a network; the first needs no number.
fn file_of(network: usize, part: &str) -> String {
    match network {
        0 => format!("{part}.safetensors"),
        _ => format!("{part}-{}.safetensors", network + 1),
    }
}

/// Everything but the counts: tensors by name in files by name.
fn parts(state: &State) -> Vec<(String, Vec<NamedTensor>)> {
    let mut files = vec![];
    for (index, network) in state.networks.iter().enumerate() {
        let parts = NETWORK.into_iter().zip(network.parts());
        files.extend(parts.filter_map(|(part, named)| Some((file_of(index, part), named?))));
    }
    // Weights, or their average, are of use to others together with what is done to the inputs.
    let Normalization { center, scale, squash } = &state.normalization;
    let names = NORMALIZATION[usize::from(*squash)];
    let inputs = [NamedTensor::vector(names[0], center), NamedTensor::vector(names[1], scale)];
    let [model, average] = [NETWORK[0], NETWORK[1]].map(|part| file_of(0, part));
    for (_, named) in files.iter_mut().filter(|(file, _)| *file == model || *file == average) {
        named.extend(inputs.clone());
    }
    if !state.memory.is_empty() {
        files.push((METHOD.to_string(), state.memory.clone()));
    }
    files
}

/// Puts what was read into the places that [`parts`] names.
fn put(state: &mut State, counts: &Counts, parts: Vec<Vec<NamedTensor>>) {
    let mut parts = parts.into_iter();
    for (index, network) in state.networks.iter_mut().enumerate() {
        let mut saved = network.parts().map(|part| part.and_then(|_| parts.next()));
        if index == 0 {
            for part in saved[..2].iter_mut().flatten() {
                let squash = state.normalization.squash;
                state.normalization = normalization(&part.split_off(part.len() - 2), squash);
            }
        }
        network.restore(counts.updates, counts.search, saved);
    }
    if let Some(memory) = parts.next() {
        state.memory = memory;
    }
    state.progress = counts.progress.clone();
}

/// The normalization that a checkpoint of ours holds next to its weights; none in other files, or
/// where it is of other inputs.
pub(crate) fn normalization_of(path: &Path, width: usize) -> Option<Normalization> {
    let bytes = read_file(path).ok()?;
    [false, true].into_iter().find_map(|squash| {
        let names = NORMALIZATION[usize::from(squash)];
        let expected = names.map(|name| NamedTensor::vector(name, &vec![0.0; width]));
        Some(normalization(&tensors::parse(path, &bytes, expected).ok()?, squash))
    })
}

fn normalization(tensors: &[NamedTensor], squash: bool) -> Normalization {
    let [center, scale] = [0, 1].map(|at: usize| tensors[at].values.read().into_owned());
    Normalization { center, scale, squash }
}

fn parse_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, TrainError> {
    serde_json::from_slice(bytes).map_err(|error| TrainError::checkpoint(path, error))
}

/// Every file of a directory, with its length and hash.
fn hashes(dir: &Path) -> Result<BTreeMap<String, FileHash>, TrainError> {
    let fail = |error: std::io::Error| TrainError::checkpoint(dir, error);
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().to_string();
        let bytes = entry.metadata().map_err(fail)?.len();
        out.insert(name, FileHash { bytes, blake3: hash_file(&entry.path())? });
    }
    Ok(out)
}

/// A checkpoint whose files are read once, and checked against the manifest as they are.
struct CheckpointFiles {
    path: PathBuf,
    manifest: Manifest,
}

impl CheckpointFiles {
    fn open(path: PathBuf) -> Result<Self, TrainError> {
        let file = path.join(MANIFEST);
        let bytes = read_file(&file).map_err(|error| unreadable(&file, error))?;
        let manifest: Manifest = parse_json(&file, &bytes)?;
        if manifest.format != FORMAT {
            let found = manifest.format;
            let reason = format!("has format {found}, this program reads {FORMAT}");
            return Err(TrainError::checkpoint(&path, reason));
        }
        Ok(Self { path, manifest })
    }

    fn read(&self, name: &str) -> Result<(PathBuf, Vec<u8>), TrainError> {
        let path = self.path.join(name);
        let bytes = read_file(&path).map_err(|error| unreadable(&path, error))?;
        let Some(expected) = self.manifest.files.get(name) else {
            return Err(TrainError::checkpoint(&path, "is not in the manifest"));
        };
        let (found, length) = (bytes.len() as u64, expected.bytes);
        if found != length {
            return Err(TrainError::checkpoint(
                &path,
                format!("is {found} bytes long, not {length}"),
            ));
        }
        if blake3::hash(&bytes).to_hex().as_str() != expected.blake3 {
            return Err(TrainError::checkpoint(&path, "does not match its hash"));
        }
        Ok((path, bytes))
    }
}

/// A file that is gone or cannot be read is damage; one that this user may not read is not.
fn unreadable(path: &Path, error: io::Error) -> TrainError {
    match error.kind() {
        ErrorKind::NotFound => TrainError::checkpoint(path, "is missing"),
        ErrorKind::PermissionDenied => RunError::io("read", path)(error).into(),
        _ => TrainError::checkpoint(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_is_not_damaged() {
        let unreadable = |kind: ErrorKind| unreadable(Path::new("model.safetensors"), kind.into());
        let error = unreadable(ErrorKind::PermissionDenied);
        assert!(matches!(error, TrainError::Run(RunError::Io { .. })), "{error}");
        assert!(error.to_string().contains("you have no permission"), "{error}");
        for kind in [ErrorKind::NotFound, ErrorKind::InvalidData] {
            assert!(matches!(unreadable(kind), TrainError::Checkpoint { .. }), "{kind}");
        }
    }
}
