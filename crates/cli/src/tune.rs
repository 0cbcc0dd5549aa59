//! `aleator tune`: temperature and rank, chosen on the validation split.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_metrics::Evaluation;
use aleator_report::table::columns::lines;
use aleator_run::recipe::{HeadTemperature, Noise};
use aleator_run::{Resolved, write_file};
use aleator_train::group::{Group, Kind, Member};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use crate::recipe_args::RecipeArgs;
use crate::training;

/// Arguments of `aleator tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Temperatures to try
    #[arg(long, value_delimiter = ',', default_value = "0.3,0.5,1,2,3")]
    temperatures: Vec<f32>,
    /// Ranks to try, for noise with factors
    #[arg(long, value_delimiter = ',', default_value = "2,6,15")]
    ranks: Vec<usize>,
    /// Where trials, table and the chosen recipe are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// One line of `tune.json`.
#[derive(Debug, Serialize)]
struct Trial {
    name: String,
    temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    validation_nll: f64,
    validation_top1: f64,
    validation_ece: f64,
}

/// `aleator tune`.
pub fn tune(args: &TuneArgs) -> Result<()> {
    let base = args.recipe.resolve()?;
    if base.recipe.seeds.len() > 1 {
        bail!("tuning wants one seed, and the recipe has several: add --seed 0");
    }
    let group = Group { kind: Kind::Tune, members: members(args, &base)? };
    training::start(&args.out, &group, None, args.quiet)
}

/// The table of the trials, and the recipe of the best.
pub fn conclude(out: &Path, members: &[Member], evaluations: &[Evaluation]) -> Result<()> {
    let trials: Vec<Trial> = members.iter().zip(evaluations).map(trial).collect();
    let best = (0..trials.len())
        .min_by(|a, b| trials[*a].validation_nll.total_cmp(&trials[*b].validation_nll))
        .context("there was nothing to try: give at least one temperature")?;
    // First the files: whoever reads the output may have seen enough of it.
    record(out, &trials, &members[best].resolved)?;
    print(&trials, best)?;
    let chosen = out.join(CHOSEN);
    writeln!(
        io::stdout(),
        "\nThe chosen recipe: {0}; `aleator train {0} --out DIR` runs it.",
        chosen.display()
    )?;
    Ok(())
}

const CHOSEN: &str = "best.toml";

/// The grid; without noise there is nothing that a temperature or a rank could change.
fn members(args: &TuneArgs, base: &Resolved) -> Result<Vec<Member>> {
    let ranks: Vec<Option<usize>> = match base.recipe.head.noise {
        Noise::None => bail!(
            "head.noise = \"none\" has neither temperature nor rank to tune: take a preset with \
             noise, as features-full"
        ),
        Noise::Diagonal => vec![None],
        Noise::LowRank { .. } | Noise::SharedLowRank { .. } => {
            args.ranks.iter().map(|rank| Some(*rank)).collect()
        }
    };
    let mut members = vec![];
    for rank in ranks {
        for temperature in &args.temperatures {
            let mut resolved = base.clone();
            let head = &mut resolved.recipe.head;
            head.temperature = HeadTemperature::Fixed((*temperature).try_into()?);
            let mut name = format!("temperature={temperature}");
            if let Some(new) = rank {
                if let Noise::LowRank { rank } | Noise::SharedLowRank { rank } = &mut head.noise {
                    *rank = new;
                }
                name = format!("rank={new},{name}");
            }
            resolved.recipe.check()?;
            let seed = resolved.recipe.seeds[0];
            members.push(Member { name, resolved, seed });
        }
    }
    Ok(members)
}

fn trial((member, evaluation): (&Member, &Evaluation)) -> Trial {
    let given = &evaluation.validation.given;
    let head = &member.resolved.recipe.head;
    let (HeadTemperature::Fixed(temperature) | HeadTemperature::Learned { low: temperature, .. }) =
        head.temperature;
    Trial {
        name: member.name.clone(),
        temperature: temperature.get(),
        rank: match head.noise {
            Noise::LowRank { rank } | Noise::SharedLowRank { rank } => Some(rank),
            Noise::None | Noise::Diagonal => None,
        },
        validation_nll: given.nll,
        validation_top1: given.top1,
        validation_ece: given.ece,
    }
}

fn print(trials: &[Trial], best: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let row = |(at, trial): (usize, &Trial)| {
        vec![
            if at == best { "*" } else { "" }.to_string(),
            trial.rank.map_or("–".to_string(), |rank| rank.to_string()),
            trial.temperature.to_string(),
            format!("{:.4}", trial.validation_nll),
            format!("{:.2} %", 100.0 * trial.validation_top1),
            format!("{:.4}", trial.validation_ece),
        ]
    };
    let rows: Vec<Vec<String>> = trials.iter().enumerate().map(row).collect();
    for line in lines(&["", "rank", "temperature", "NLL", "top-1", "ECE"], &rows, &[0]) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "* the lowest NLL on the validation split")
}

fn record(out: &Path, trials: &[Trial], best: &Resolved) -> Result<()> {
    let table = serde_json::to_string_pretty(trials)? + "\n";
    write_file(&out.join("tune.json"), table.as_bytes())?;
    write_file(&out.join(CHOSEN), best.recipe.to_toml().as_bytes())?;
    Ok(())
}
