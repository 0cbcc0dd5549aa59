//! The trials so far, and the weights that later ones begin with; saved now and then, so that
//! tuning resumes where it was stopped.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aleator_run::tuning::{Settings, Trial};
use aleator_run::{AtomicFolder, RunError, read_file, remove_folder};
use serde::{Deserialize, Serialize};

use super::loss::HeldOutLoss;
use super::search::Start;
use crate::TrainError;
use crate::tensors::{self, NamedTensor};

/// At most this much work is lost when the program is killed. It decides what is saved, and no
/// number.
const SAVED_EVERY: Duration = Duration::from_secs(5);
/// Where unfinished tuning is saved in a run directory, and its files.
const DIRECTORY: &str = "tuning-trials";
const TRIALS: &str = "trials.json";
const WEIGHTS: &str = "weights.safetensors";
/// The weights of the layer of the mean, [D, K].
const MEAN_WEIGHT: &str = "output.head.mean.weight";

/// A trial that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    settings: Settings,
    loss: HeldOutLoss,
    /// ‖W‖² / D of the layer of the mean, averaged over the folds. It stands here because weights
    /// are saved of the last trials only, and a resumed tuning asks for it again.
    weight: f64,
}

/// Weights by name, for each fold.
pub(super) type Weights = Vec<Vec<NamedTensor>>;

/// The trials of a tuning.
pub(super) struct Ledger {
    dir: PathBuf,
    trials: Vec<Known>,
    /// How many of them were asked for since the program was started.
    asked: usize,
    /// Those of the last trial, and of the one that was kept last.
    previous: Weights,
    kept: Weights,
    /// The `weight` of the trial that was kept last.
    kept_weight: Option<f64>,
    saved: Instant,
}

impl Ledger {
    /// What a run directory holds of an unfinished tuning; what is missing or damaged is tried
    /// again.
    ///
    /// # Errors
    /// When a file is there and cannot be read: trials would be made again that need not be.
    pub fn open(run: &Path) -> Result<Self, TrainError> {
        let dir = run.join(DIRECTORY);
        let weights = dir.join(WEIGHTS);
        let files = (content(&dir.join(TRIALS))?, content(&weights)?);
        let (trials, [previous, kept]) = match files {
            (Some(trials), Some(tensors)) => parse(&trials, &weights, &tensors).unwrap_or_default(),
            _ => Default::default(),
        };
        let saved = Instant::now();
        Ok(Self { dir, trials, asked: 0, previous, kept, kept_weight: None, saved })
    }

    /// How many trials were made.
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    pub fn trials(&self) -> Vec<Trial> {
        let trial = |known: &Known| Trial { settings: known.settings, nll: known.loss.nll() };
        self.trials.iter().map(trial).collect()
    }

    /// The loss of these settings, if an earlier start of the program tried them next.
    pub fn replay(&mut self, settings: &Settings) -> Option<HeldOutLoss> {
        let known = self.trials.get(self.asked).filter(|known| known.settings == *settings);
        let Some(known) = known.cloned() else {
            self.trials.truncate(self.asked);
            return None;
        };
        self.asked += 1;
        Some(known.loss)
    }

    /// The weights that a trial begins with in a fold; none for fresh ones.
    pub fn start(&self, start: Start, fold: usize) -> Option<Vec<NamedTensor>> {
        let of_mean = |named: &&NamedTensor| named.name.starts_with("output.head.mean.");
        match start {
            Start::Fresh => None,
            Start::Previous => self.previous.get(fold).cloned(),
            Start::Kept => self.kept.get(fold).cloned(),
            Start::KeptMean => Some(self.kept.get(fold)?.iter().filter(of_mean).cloned().collect()),
        }
    }

    /// Adds a trial and its weights.
    pub fn add(
        &mut self,
        settings: Settings,
        loss: HeldOutLoss,
        weights: Weights,
    ) -> Result<(), TrainError> {
        let weight =
            weights.iter().map(|fold| mean_weight(fold)).sum::<f64>() / weights.len().max(1) as f64;
        self.trials.push(Known { settings, loss, weight });
        self.asked = self.trials.len();
        self.previous = weights;
        if self.saved.elapsed() >= SAVED_EVERY {
            self.save()?;
        }
        Ok(())
    }

    /// Keeps the weights of the last trial.
    pub fn keep(&mut self) {
        let last = self.asked.checked_sub(1).and_then(|last| self.trials.get(last));
        self.kept_weight = last.map(|known| known.weight);
        if self.asked == self.trials.len() {
            self.kept = self.previous.clone();
        }
    }

    /// ‖W‖² / D of the layer of the mean, W of [D, K], in the trial that was kept last.
    pub fn kept_weight(&self) -> Option<f64> {
        self.kept_weight
    }

    /// Writes everything to the disk.
    pub fn save(&mut self) -> Result<(), TrainError> {
        remove_folder(&self.dir)?;
        let folder = AtomicFolder::create(&self.dir)?;
        let path = folder.path().join(TRIALS);
        let text = serde_json::to_vec_pretty(&self.trials).expect("trials are plain numbers");
        fs::write(&path, text).map_err(|source| RunError::Io { action: "write", path, source })?;
        let mut named = vec![];
        for (place, weights) in [&self.previous, &self.kept].into_iter().enumerate() {
            for (fold, weights) in weights.iter().enumerate() {
                named.extend(weights.iter().map(|weight| NamedTensor {
                    name: format!("{place}/{fold}/{}", weight.name),
                    ..weight.clone()
                }));
            }
        }
        tensors::write(&folder.path().join(WEIGHTS), &named)?;
        folder.commit()?;
        self.saved = Instant::now();
        Ok(())
    }
}

/// ‖W‖² / D of the layer of the mean.
fn mean_weight(weights: &[NamedTensor]) -> f64 {
    let of_layer = weights.iter().filter(|named| named.name == MEAN_WEIGHT);
    let of_feature = of_layer.map(|weight| {
        let squares: f64 = weight.values.read().iter().map(|value| f64::from(*value).powi(2)).sum();
        squares / weight.shape[0].max(1) as f64
    });
    of_feature.sum()
}

/// Removes what an unfinished tuning has saved.
pub(super) fn remove(run: &Path) -> Result<(), TrainError> {
    Ok(remove_folder(&run.join(DIRECTORY))?)
}

/// The content of a file; none where there is none.
fn content(path: &Path) -> Result<Option<Vec<u8>>, TrainError> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RunError::io("read", path)(error).into()),
    }
}

fn parse(trials: &[u8], path: &Path, tensors: &[u8]) -> Option<(Vec<Known>, [Weights; 2])> {
    let trials = serde_json::from_slice(trials).ok()?;
    let mut weights = [vec![], vec![]];
    for tensor in tensors::parse_all(path, tensors).ok()? {
        let mut parts = tensor.name.splitn(3, '/');
        let place: usize = parts.next()?.parse().ok()?;
        let fold: usize = parts.next()?.parse().ok().filter(|fold| *fold < super::MOST_FOLDS)?;
        let (name, folds) = (parts.next()?.to_string(), weights.get_mut(place)?);
        folds.resize_with(folds.len().max(fold + 1), Vec::new);
        folds[fold].push(NamedTensor { name, ..tensor });
    }
    Some((trials, weights))
}

#[cfg(test)]
mod tests {
    use aleator_run::recipe::Normalize;

    use super::*;

    fn settings(mean: f64) -> Settings {
        Settings { normalize: Normalize::Global, mean, noise: None }
    }

    /// Two folds whose W, [2, 3], is this number everywhere, and three times it.
    fn weights(value: f32) -> Weights {
        let fold = |value: f32| {
            let shape = vec![2, 3];
            let weight =
                NamedTensor { name: MEAN_WEIGHT.into(), shape, values: vec![value; 6].into() };
            vec![NamedTensor::vector("output.head.mean.bias", &[9.0; 3]), weight]
        };
        vec![fold(value), fold(3.0 * value)]
    }

    #[test]
    fn the_size_of_the_kept_weights_is_known_again_after_a_stop() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(dir.path()).unwrap();
        assert_eq!(ledger.kept_weight(), None);
        for (mean, value) in [(1.0, 0.1), (0.5, 2.0), (0.2, 7.0)] {
            ledger.add(settings(mean), HeldOutLoss::new(), weights(value)).unwrap();
            if mean == 0.5 {
                ledger.keep();
            }
        }
        // Three numbers a feature: 3 · (2² + 6²) / 2.
        assert_eq!(ledger.kept_weight(), Some(60.0));
        ledger.save().unwrap();
        let mut resumed = Ledger::open(dir.path()).unwrap();
        for mean in [1.0, 0.5] {
            assert!(resumed.replay(&settings(mean)).is_some());
        }
        resumed.keep();
        assert_eq!(resumed.kept_weight(), Some(60.0));
    }
}
