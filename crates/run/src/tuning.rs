//! `tuning.json`: the settings that were chosen for the data of a run, and all that were tried.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::RunError;
use crate::recipe::range::MANY;
use crate::recipe::{Noise, Normalize, Recipe, Tune};

/// What was chosen, and why: `tuning.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The examples of a trial.
    pub trained_on: usize,
    /// How many times some examples were held out: once where the validation split, or a part of
    /// the training examples, is large.
    pub folds: usize,
    /// All trials, in their order.
    pub trials: Vec<Trial>,
    /// The settings with the lowest loss. Decays are those of trials; training on more examples
    /// has in proportion less.
    pub chosen: Settings,
}

impl Tuning {
    /// The file in a run directory.
    pub const NAME: &str = "tuning.json";

    /// Reads the file of a run directory; `None` if its settings were not chosen by tuning.
    pub fn load(folder: &Path) -> Result<Option<Self>, RunError> {
        let path = folder.join(Self::NAME);
        if !path.is_file() {
            return Ok(None);
        }
        let tuning: Self = atomic::read_json(&path)?;
        tuning.check().map_err(|message| RunError::damaged(&path, message))?;
        Ok(Some(tuning))
    }

    /// Refuses settings that no recipe has.
    fn check(&self) -> Result<(), String> {
        let Settings { mean, noise, .. } = self.chosen;
        let decays =
            noise.map(|noise| [("diagonal", noise.diagonal), ("loadings", noise.loadings)]);
        for (name, decay) in [("mean", mean)].into_iter().chain(decays.into_iter().flatten()) {
            if !(decay.is_finite() && decay >= 0.0) {
                return Err(format!("chosen: {name} must be at least 0, found {decay}"));
            }
        }
        let rank = noise.and_then(|noise| noise.rank);
        if rank.is_some_and(|rank| !(1..=MANY as usize).contains(&rank)) {
            return Err(format!("chosen: rank must be from 1 to {MANY}, found {rank:?}"));
        }
        if self.trained_on == 0 {
            return Err("trained_on must be at least 1, found 0".to_string());
        }
        Ok(())
    }

    /// Whether any trial had noise.
    pub fn tried_noise(&self) -> bool {
        self.trials.iter().any(|trial| trial.settings.noise.is_some())
    }
}

/// What was chosen, in one paragraph for people.
impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trained_on, folds, trials, chosen } = self;
        let held_out = match folds {
            1 => "one held-out part".to_string(),
            _ => format!("{folds} folds"),
        };
        let scale = chosen.normalize.in_words();
        write!(f, "chosen by {} trials on {trained_on} examples and {held_out}: ", trials.len())?;
        write!(f, "{scale}; decay of the mean {:.1e}", chosen.mean)?;
        match chosen.noise {
            Some(NoiseSettings { diagonal, loadings, rank }) => {
                write!(f, ", of the noise {diagonal:.1e}")?;
                let Some(rank) = rank else { return Ok(()) };
                write!(f, " (diagonal) and {loadings:.1e} (factors); rank {rank}")
            }
            None if self.tried_noise() => {
                write!(f, "; no noise, because it does not lower the held-out loss")
            }
            None => Ok(()),
        }
    }
}

/// Some settings and their held-out loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was tried.
    #[serde(flatten)]
    pub settings: Settings,
    /// −log p of a held-out label, on average.
    pub nll: f64,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How features are scaled.
    pub normalize: Normalize,
    /// λ of the layer of μ(x).
    pub mean: f64,
    /// The noise; none where a model without noise is as good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseSettings>,
}

/// What is chosen for the layers of Σ(x).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseSettings {
    /// λ of the layer of d(x).
    pub diagonal: f64,
    /// λ of the loadings.
    pub loadings: f64,
    /// R, for noise with factors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

impl Settings {
    /// Writes these settings into a recipe. Decays are multiplied by `share`, the examples that
    /// they were chosen with over those that the recipe trains on: the sum of losses grows with
    /// the examples, what it is weighed against does not.
    pub fn write_to(&self, recipe: &mut Recipe, share: f64) {
        recipe.tune = Tune::Off;
        recipe.network.normalize = self.normalize;
        let l2 = &mut recipe.optimizer.l2;
        l2.mean = self.mean * share;
        match self.noise {
            Some(NoiseSettings { diagonal, loadings, rank }) => {
                l2.diagonal = Some(diagonal * share);
                l2.covariance = loadings * share;
                l2.shared_loadings = None;
                if let Some(rank) = rank {
                    recipe.head.noise = recipe.head.noise.with_rank(rank);
                }
            }
            None => recipe.head.noise = Noise::None,
        }
    }
}
