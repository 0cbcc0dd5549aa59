//! `tune`: temperature and rank, each with settings that suit it, chosen on the validation split.

use std::path::{Path, PathBuf};

use aleator_run::recipe::{HeadTemperature, Noise};
use aleator_run::{Recipe, write_file, write_json};
use aleator_train::group::{Group, Kind, Member};
use aleator_train::load_run;
use serde::Serialize;

use crate::workflow::group::start;
use crate::{Error, Experiment, TrainedRun, Watch};

/// The values that [`tune`] tries, in all combinations.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Temperatures τ.
    pub temperatures: Vec<aleator_run::recipe::Temperature>,
    /// Ranks R, for noise models with factors; where settings are chosen for the data, the ranks to
    /// begin with.
    pub ranks: Vec<usize>,
}

/// One combination.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// The name of its run.
    pub name: String,
    /// τ.
    pub temperature: f32,
    /// R, for noise models with factors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// NLL of the given labels of the validation split.
    pub validation_nll: f64,
    /// Accuracy on the same.
    pub validation_top1: f64,
    /// Calibration error on the same.
    pub validation_ece: f64,
}

/// What [`tune`] found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// All trials.
    pub trials: Vec<Trial>,
    /// The index of the trial with the lowest validation NLL.
    pub best: usize,
    /// The recipe of the best trial.
    pub recipe: Recipe,
    /// The file that has it.
    pub recipe_file: PathBuf,
    /// The runs of the trials.
    pub runs: Vec<TrainedRun>,
}

/// Trains an experiment with each combination of a grid and chooses the one with the lowest
/// validation NLL. Where the recipe has `tune = "auto"`, scale, decays and rank are chosen for each
/// temperature. Writes `tune.json` and `best.toml`.
///
/// # Errors
/// When the experiment has several seeds or no noise model, or as [`fit`](crate::fit).
pub fn tune(
    experiment: &Experiment,
    grid: &Grid,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Tuning, Error> {
    let group = Group::new(Kind::Tune, members(experiment, grid)?)?;
    let runs = start(out, &group, experiment.arrays.as_deref(), watch)?;
    conclude(out, &group.members, runs)
}

/// Without noise there is nothing that a temperature or a rank could change.
fn members(experiment: &Experiment, grid: &Grid) -> Result<Vec<Member>, Error> {
    let seed = experiment.only_seed("tuning")?;
    let ranks: Vec<Option<usize>> = match experiment.recipe.head.noise {
        Noise::None => {
            return Err(Error::invalid(
                "head.noise = \"none\" has neither temperature nor rank to tune: choose a preset \
                 with noise, such as features-full",
            ));
        }
        Noise::Diagonal => vec![None],
        Noise::LowRank { .. } | Noise::SharedLowRank { .. } | Noise::OnFeatures { .. } => {
            grid.ranks.iter().copied().map(Some).collect()
        }
    };
    if ranks.is_empty() || grid.temperatures.is_empty() {
        return Err(Error::invalid("there is nothing to try: give a temperature and a rank"));
    }
    let mut members = vec![];
    for rank in ranks {
        for temperature in &grid.temperatures {
            let mut recipe = experiment.recipe.clone();
            recipe.head.temperature = HeadTemperature::Fixed(*temperature);
            let mut name = format!("temperature={}", temperature.get());
            if let Some(rank) = rank {
                recipe.head.noise = recipe.head.noise.with_rank(rank);
                name = format!("rank={rank},{name}");
            }
            members.push(Member { name, recipe, seed });
        }
    }
    Ok(members)
}

/// Chooses among the trained trials, and writes the files.
pub(crate) fn conclude(
    out: &Path,
    members: &[Member],
    runs: Vec<TrainedRun>,
) -> Result<Tuning, Error> {
    // As trained: with what was chosen for the data.
    let recipe = |run: &TrainedRun| Ok(load_run(&run.dir)?.1);
    let recipes = runs.iter().map(recipe).collect::<Result<Vec<Recipe>, Error>>()?;
    let all = members.iter().zip(&runs).zip(&recipes);
    let trial = |((member, run), recipe)| trial(member, run, recipe);
    let trials = all.map(trial).collect::<Result<Vec<Trial>, Error>>()?;
    let nll = |at: &usize| trials[*at].validation_nll;
    let best = (0..trials.len()).min_by(|a, b| nll(a).total_cmp(&nll(b))).unwrap_or(0);
    let recipe = recipes[best].clone();
    let recipe_file = out.join("best.toml");
    write_json(&out.join("tune.json"), &trials)?;
    write_file(&recipe_file, recipe.to_toml().as_bytes())?;
    Ok(Tuning { trials, best, recipe, recipe_file, runs })
}

fn trial(member: &Member, run: &TrainedRun, recipe: &Recipe) -> Result<Trial, Error> {
    let given = &run.evaluation.validation.given;
    let HeadTemperature::Fixed(temperature) = recipe.head.temperature else {
        return Err(Error::invalid("head.temperature must be a number").at(member.name.clone()));
    };
    Ok(Trial {
        name: member.name.clone(),
        temperature: temperature.get(),
        rank: recipe.head.noise.rank(),
        validation_nll: given.nll,
        validation_top1: given.top1,
        validation_ece: given.ece,
    })
}
