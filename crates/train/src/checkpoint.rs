//! Checkpoints: one folder a step, written whole or not at all, with a manifest of hashes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aleator_model::params::Parameter;
use aleator_run::AtomicFolder;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::normalize::Normalization;
use crate::state::{Progress, State};
use crate::tensors::{self, Named};

/// The format of the folder.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const STATE: &str = "state.json";
const MODEL: &str = "model.safetensors";
const AVERAGE: &str = "average.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const CENTER: &str = "normalization.center";
const SCALE: &str = "normalization.scale";

/// The checkpoints of a run.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
}

/// How long the logs were when the checkpoint was made; what came after is written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPositions {
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
    logs: LogPositions,
}

/// `manifest.json`: what the folder must hold.
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

/// What [`Checkpoints::restore_newest`] found.
#[derive(Debug, Default)]
pub struct Restored {
    /// Where the logs stood; none when no checkpoint could be used.
    pub logs: Option<LogPositions>,
    /// Checkpoints that were passed over, and why.
    pub damaged: Vec<TrainError>,
}

impl Checkpoints {
    /// Those in a folder, which need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Saves the state; returns once it is on the disk.
    pub fn save(&self, state: &State, logs: LogPositions) -> Result<(), TrainError> {
        fs::create_dir_all(&self.folder).map_err(|error| self.unusable(&self.folder, error))?;
        let folder = AtomicFolder::create(&self.path(state.progress.step))?;
        let counts =
            Counts { progress: state.progress.clone(), updates: state.optimizer.updates(), logs };
        let write =
            |name: &str, named: &[Named<'_>]| tensors::write(&folder.path().join(name), named);
        write(MODEL, &model_tensors(&state.parameters, &state.normalization))?;
        if let Some(average) = &state.average {
            write(AVERAGE, &model_tensors(average, &state.normalization))?;
        }
        write(OPTIMIZER, &optimizer_tensors(state))?;
        let json = |name: &str, text: serde_json::Result<String>| {
            let text = text.map_err(|error| self.unusable(&self.folder, error))?;
            let path = folder.path().join(name);
            fs::write(&path, text + "\n").map_err(|error| self.unusable(&path, error))
        };
        json(STATE, serde_json::to_string_pretty(&counts))?;
        let manifest = Manifest { format: FORMAT, files: hashes(folder.path())? };
        json(MANIFEST, serde_json::to_string_pretty(&manifest))?;
        Ok(folder.commit()?)
    }

    /// Brings a fresh state to the newest checkpoint that is whole.
    pub fn restore_newest(&self, state: &mut State) -> Result<Restored, TrainError> {
        let mut restored = Restored::default();
        for step in self.steps()?.into_iter().rev() {
            match self.restore(step, state) {
                Ok(logs) => {
                    restored.logs = Some(logs);
                    break;
                }
                Err(error) => restored.damaged.push(error),
            }
        }
        Ok(restored)
    }

    /// Brings a fresh state to the checkpoint of a step.
    pub fn restore(&self, step: usize, state: &mut State) -> Result<LogPositions, TrainError> {
        let folder = self.path(step);
        verify(&folder)?;
        let counts: Counts = read_json(&folder.join(STATE))?;
        if counts.progress.step != step {
            let found = counts.progress.step;
            return Err(damaged(&folder, format!("is of step {found}: it was renamed")));
        }
        let parameters = read_parameters(&folder.join(MODEL), &state.parameters)?;
        let average = match &state.average {
            Some(average) => Some(read_parameters(&folder.join(AVERAGE), average)?),
            None => None,
        };
        let averages = read_optimizer(&folder.join(OPTIMIZER), state)?;
        state.normalization = read_normalization(&folder.join(MODEL), &state.normalization)?;
        state.optimizer.restore(counts.updates, averages);
        state.average = average;
        state.restore(counts.progress, parameters);
        Ok(counts.logs)
    }

    /// Removes all but the last `keep` up to the one of step `newest`, and the best. Those after
    /// it were passed over as damaged, and must not be kept in place of whole ones.
    pub fn prune(&self, newest: usize, keep: usize, best: Option<usize>) -> Result<(), TrainError> {
        let (whole, damaged): (Vec<usize>, Vec<usize>) =
            self.steps()?.into_iter().partition(|step| *step <= newest);
        let old = &whole[..whole.len().saturating_sub(keep)];
        for step in old.iter().filter(|step| Some(**step) != best).chain(&damaged) {
            aleator_run::remove_folder(&self.path(*step))?;
        }
        Ok(())
    }

    /// The steps that have a folder, ascending.
    pub fn steps(&self) -> Result<Vec<usize>, TrainError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(self.unusable(&self.folder, error)),
        };
        let mut steps = vec![];
        for entry in entries {
            let entry = entry.map_err(|error| self.unusable(&self.folder, error))?;
            let name = entry.file_name();
            let step = name.to_str().and_then(|name| name.strip_prefix("step-"));
            steps.extend(step.and_then(|digits| digits.parse::<usize>().ok()));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// The folder of a step.
    pub fn path(&self, step: usize) -> PathBuf {
        self.folder.join(format!("step-{step:08}"))
    }

    /// The weights of a step, or their running average.
    pub fn weights_file(&self, step: usize, averaged: bool) -> PathBuf {
        self.path(step).join(if averaged { AVERAGE } else { MODEL })
    }

    fn unusable(&self, path: &Path, error: impl std::fmt::Display) -> TrainError {
        TrainError::Checkpoint { path: path.to_path_buf(), reason: error.to_string() }
    }
}

fn damaged(path: &Path, reason: impl Into<String>) -> TrainError {
    TrainError::Checkpoint { path: path.to_path_buf(), reason: reason.into() }
}

fn model_tensors<'a>(
    parameters: &'a [Parameter],
    normalization: &'a Normalization,
) -> Vec<Named<'a>> {
    let vector = |name: &str, values: &'a [f32]| Named {
        name: name.to_string(),
        shape: vec![values.len()],
        values,
    };
    let named = |parameter: &'a Parameter| Named {
        name: parameter.name.clone(),
        shape: parameter.shape.clone(),
        values: &parameter.values,
    };
    let extra = [vector(CENTER, &normalization.center), vector(SCALE, &normalization.scale)];
    parameters.iter().map(named).chain(extra).collect()
}

fn optimizer_tensors(state: &State) -> Vec<Named<'_>> {
    let pairs = state.parameters.iter().zip(state.optimizer.averages());
    pairs
        .flat_map(|(parameter, averages)| {
            averages.iter().enumerate().map(|(index, values)| Named {
                name: format!("{}.average{index}", parameter.name),
                shape: parameter.shape.clone(),
                values,
            })
        })
        .collect()
}

fn read_parameters(path: &Path, expected: &[Parameter]) -> Result<Vec<Parameter>, TrainError> {
    let mut found = tensors::read(path)?;
    let take = |parameter: &Parameter| {
        let values = tensors::take(&mut found, path, &parameter.name, &parameter.shape)?;
        Ok(Parameter { name: parameter.name.clone(), shape: parameter.shape.clone(), values })
    };
    expected.iter().map(take).collect()
}

fn read_optimizer(path: &Path, state: &State) -> Result<Vec<Vec<Vec<f32>>>, TrainError> {
    let mut found = tensors::read(path)?;
    let pairs = state.parameters.iter().zip(state.optimizer.averages());
    pairs
        .map(|(parameter, averages)| {
            let take = |index: usize| {
                let name = format!("{}.average{index}", parameter.name);
                tensors::take(&mut found, path, &name, &parameter.shape)
            };
            (0..averages.len()).map(take).collect()
        })
        .collect()
}

fn read_normalization(path: &Path, expected: &Normalization) -> Result<Normalization, TrainError> {
    let mut found = tensors::read(path)?;
    let width = expected.center.len();
    let mut vector = |name: &str| tensors::take(&mut found, path, name, &[width]);
    Ok(Normalization { center: vector(CENTER)?, scale: vector(SCALE)? })
}

/// The normalization that a checkpoint of ours holds beside its weights; none in other files, or
/// where it is of other inputs.
pub(crate) fn normalization_of(path: &Path, width: usize) -> Option<Normalization> {
    read_normalization(path, &Normalization::identity(width)).ok()
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, TrainError> {
    let text = fs::read_to_string(path).map_err(|error| damaged(path, error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| damaged(path, error.to_string()))
}

/// Every file of a folder but the manifest, with its length and hash.
fn hashes(folder: &Path) -> Result<BTreeMap<String, FileHash>, TrainError> {
    let fail = |error: std::io::Error| damaged(folder, error.to_string());
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().to_string();
        if name == MANIFEST {
            continue;
        }
        let mut hasher = blake3::Hasher::new();
        let bytes = fs::File::open(entry.path())
            .and_then(|mut file| std::io::copy(&mut file, &mut hasher))
            .map_err(|error| damaged(&entry.path(), error.to_string()))?;
        out.insert(name, FileHash { bytes, blake3: hasher.finalize().to_hex().to_string() });
    }
    Ok(out)
}

/// Whether a folder holds what its manifest says.
fn verify(folder: &Path) -> Result<(), TrainError> {
    let manifest: Manifest = read_json(&folder.join(MANIFEST))?;
    if manifest.format != FORMAT {
        let found = manifest.format;
        return Err(damaged(folder, format!("has format {found}, this program reads {FORMAT}")));
    }
    let found = hashes(folder)?;
    for (name, expected) in &manifest.files {
        match found.get(name) {
            Some(hash) if hash == expected => {}
            Some(hash) if hash.bytes != expected.bytes => {
                let (is, should) = (hash.bytes, expected.bytes);
                return Err(damaged(
                    &folder.join(name),
                    format!("is {is} bytes long, not {should}"),
                ));
            }
            Some(_) => return Err(damaged(&folder.join(name), "does not match its hash")),
            None => return Err(damaged(&folder.join(name), "is missing")),
        }
    }
    Ok(())
}
