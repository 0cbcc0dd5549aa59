//! Checkpoints: one directory for each step, written completely or not at all, with a manifest of
//! hashes. A checkpoint is `state.json` and files of named tensors.

mod files;
mod sizes;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aleator_run::recipe::Recipe;
use aleator_run::{AtomicFolder, RunDir, RunError};
use serde::{Deserialize, Serialize};

use crate::lbfgs::Search;
use crate::state::{Progress, State};
use crate::tensors::{self, NamedTensor};
use crate::{Event, Normalization, Observer, TrainError};
use files::{CheckpointFiles, other_run, write_json, write_manifest};

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

/// In front of the step in the name of a checkpoint.
const WHOLE: &str = "step-";
/// The same of a checkpoint that training did not resume from.
const PASSED_OVER: &str = "passed-over-step-";

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

impl Checkpoints {
    /// Those in a directory, which need not exist yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Saves the state; returns once it is on the disk.
    pub(crate) fn save(&self, state: &State, logs: LogPositions) -> Result<(), TrainError> {
        fs::create_dir_all(&self.dir).map_err(RunError::io("create", &self.dir))?;
        let dir = AtomicFolder::create(&self.path(state.progress.step))?;
        for (file, named) in parts(state) {
            tensors::write(&dir.path().join(file), &named)?;
        }
        let optimizer = &state.networks[0].optimizer;
        let (updates, search) = (optimizer.updates(), optimizer.search().copied());
        let counts = Counts { progress: state.progress.clone(), updates, search, logs };
        write_json(&dir.path().join(STATE), &counts)?;
        write_manifest(dir.path())?;
        Ok(dir.commit()?)
    }

    /// The newest whole checkpoint of a step below `end`, as `load` finds it; none when there is
    /// none.
    pub(crate) fn load_newest(
        &self,
        end: usize,
        load: &dyn Fn(usize) -> Result<(State, LogPositions), TrainError>,
        observer: &mut Observer<'_>,
    ) -> Result<Option<(State, LogPositions)>, TrainError> {
        for step in self.steps()?.into_iter().rev().filter(|step| *step < end) {
            match load(step) {
                Ok(found) => return Ok(Some(found)),
                Err(error @ TrainError::Checkpoint { .. }) => observer(Event::Damaged(&error)),
                // Training again over a checkpoint that may be whole would lose it.
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The state of a step. `prepare` gives a fresh state what the training method keeps. No
    /// network is built before the sizes in the records of the run are those of the weights.
    pub(crate) fn load(
        &self,
        step: usize,
        run: &RunDir,
        recipe: &Recipe,
        prepare: impl FnOnce(&mut State),
    ) -> Result<(State, LogPositions), TrainError> {
        sizes::check(&CheckpointFiles::open(self.path(step))?, run, recipe)?;
        let mut state = State::of_run(run, recipe);
        prepare(&mut state);
        let logs = self.restore(step, &mut state)?;
        Ok((state, logs))
    }

    /// Brings a fresh state to the checkpoint of a step. When that fails the state is as before.
    pub(crate) fn restore(
        &self,
        step: usize,
        state: &mut State,
    ) -> Result<LogPositions, TrainError> {
        let dir = CheckpointFiles::open(self.path(step))?;
        let counts = dir.counts(step)?;
        let mut found = vec![];
        for (file, expected) in parts(state) {
            let tensors = tensors::parse(&dir.path.join(&file), &dir.read(&file)?, expected);
            found.push(tensors.map_err(other_run)?);
        }
        put(state, &counts, found);
        Ok(counts.logs)
    }

    /// How far training was at a step.
    pub(crate) fn progress(&self, step: usize) -> Result<Progress, TrainError> {
        Ok(CheckpointFiles::open(self.path(step))?.counts(step)?.progress)
    }

    /// What is damaged of the checkpoint of a step.
    pub(crate) fn damage(&self, step: usize) -> Result<Option<TrainError>, TrainError> {
        let whole = || {
            let files = CheckpointFiles::open(self.path(step))?;
            files.verify()?;
            files.counts(step)
        };
        match whole() {
            Ok(_) => Ok(None),
            Err(error @ TrainError::Checkpoint { .. }) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// The first of the other checkpoints that an evaluation may need and that is damaged: its
    /// step, and what is wrong with it.
    pub(crate) fn lost(
        &self,
        progress: &Progress,
    ) -> Result<Option<(usize, TrainError)>, TrainError> {
        let mut needed = vec![progress.best.map(|best| best.step), progress.joined];
        needed.sort_unstable();
        for step in needed.into_iter().flatten().filter(|step| *step != progress.step) {
            if let Some(error) = self.damage(step)? {
                return Ok(Some((step, error)));
            }
        }
        Ok(None)
    }

    /// Gives the checkpoints after `newest`, or all, other names: training did not resume from them
    /// and will not, but they are not its own to delete.
    pub(crate) fn pass_over(&self, newest: Option<usize>) -> Result<(), TrainError> {
        for step in self.steps()?.into_iter().filter(|step| newest.is_none_or(|it| *step > it)) {
            let name = |copy: usize| match copy {
                1 => self.dir.join(format!("{PASSED_OVER}{step:08}")),
                _ => self.dir.join(format!("{PASSED_OVER}{step:08}-{copy}")),
            };
            let free = (1..).map(name).find(|path| fs::symlink_metadata(path).is_err());
            let (path, free) = (self.path(step), free.expect("some number is free"));
            fs::rename(&path, &free).map_err(RunError::io("rename", &path))?;
        }
        Ok(())
    }

    /// Removes all but the last `keep` up to the one of step `newest`, and `others`; and of those
    /// that were passed over the ones that training has gone beyond.
    pub(crate) fn prune(
        &self,
        newest: usize,
        keep: usize,
        others: &[Option<usize>],
    ) -> Result<(), TrainError> {
        let own: Vec<usize> = self.steps()?.into_iter().filter(|step| *step <= newest).collect();
        let old = &own[..own.len().saturating_sub(keep)];
        for step in old.iter().filter(|step| !others.contains(&Some(**step))) {
            aleator_run::remove_folder(&self.path(*step))?;
        }
        for (_, path) in self.passed_over()?.into_iter().filter(|(step, _)| *step <= newest) {
            aleator_run::remove_folder(&path)?;
        }
        Ok(())
    }

    /// The steps that have a checkpoint, ascending.
    pub fn steps(&self) -> Result<Vec<usize>, TrainError> {
        let step = |name: &str| {
            let step = name.strip_prefix(WHOLE)?.parse().ok()?;
            (self.path(step).file_name()? == name).then_some(step)
        };
        let mut steps: Vec<usize> = self.names()?.iter().filter_map(|name| step(name)).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Whether nothing was ever saved, or everything was removed.
    pub(crate) fn is_empty(&self) -> Result<bool, TrainError> {
        Ok(self.steps()?.is_empty() && self.passed_over()?.is_empty())
    }

    /// The steps and directories of checkpoints that training did not resume from.
    fn passed_over(&self) -> Result<Vec<(usize, PathBuf)>, TrainError> {
        let found = |name: &String| {
            let step = name.strip_prefix(PASSED_OVER)?.split('-').next()?.parse().ok()?;
            Some((step, self.dir.join(name)))
        };
        Ok(self.names()?.iter().filter_map(found).collect())
    }

    /// Everything in the directory, if there is one.
    fn names(&self) -> Result<Vec<String>, TrainError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(RunError::io("read", &self.dir)(error).into()),
        };
        let mut names = vec![];
        for entry in entries {
            let entry = entry.map_err(RunError::io("read", &self.dir))?;
            names.extend(entry.file_name().into_string().ok());
        }
        Ok(names)
    }

    /// The directory of a step.
    pub fn path(&self, step: usize) -> PathBuf {
        self.dir.join(format!("{WHOLE}{step:08}"))
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
    let bytes = fs::read(path).ok()?;
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

impl CheckpointFiles {
    /// `state.json`.
    fn counts(&self, step: usize) -> Result<Counts, TrainError> {
        let counts: Counts = self.read_json(STATE)?;
        let progress = &counts.progress;
        if progress.step != step {
            let reason = format!("is of step {}: it was renamed", progress.step);
            return Err(TrainError::checkpoint(&self.path, reason));
        }
        let named = [progress.best.map(|best| best.step), progress.joined];
        if let Some(later) = named.into_iter().flatten().find(|named| *named > step) {
            let reason = format!("names step {later}, which comes after its own, {step}");
            return Err(TrainError::checkpoint(&self.path.join(STATE), reason));
        }
        Ok(counts)
    }
}
