//! `aleator tune`.

use std::path::{Path, PathBuf};

use aleator::{Grid, Temperature, Trial, Tuning};
use anyhow::{Context, Result};
use clap::Args;

use crate::output::{line, table};
use crate::progress::watched;
use crate::recipe_args::RecipeArgs;
use crate::train::print_written;

/// Arguments of `aleator tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Temperatures to try
    #[arg(long, value_delimiter = ',', default_value = "0.5,1,2")]
    temperatures: Vec<f32>,
    /// Ranks to try, for noise models with factors; with tune = "auto", the ranks to begin with
    #[arg(long, value_delimiter = ',', default_value = "2,6,15")]
    ranks: Vec<usize>,
    /// The directory of the trials, their table and the chosen recipe; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `aleator tune`.
pub fn tune(args: &TuneArgs, quiet: bool) -> Result<()> {
    let temperatures = args.temperatures.iter().map(|value| Temperature::try_from(*value));
    let grid = Grid {
        temperatures: temperatures.collect::<Result<_, _>>().context("--temperatures")?,
        ranks: args.ranks.clone(),
    };
    let tuning = watched(quiet, |watch| {
        aleator::tune(&args.recipe.experiment(watch)?, &grid, &args.out, watch)
    })?;
    print(&args.out, &tuning)
}

/// The trials, and where the chosen recipe is.
pub fn print(out: &Path, tuning: &Tuning) -> Result<()> {
    let row = |(at, trial): (usize, &Trial)| {
        vec![
            if at == tuning.best { "*" } else { "" }.to_string(),
            trial.rank.map_or("–".to_string(), |rank| rank.to_string()),
            trial.temperature.to_string(),
            format!("{:.4}", trial.validation_nll),
            format!("{:.2} %", 100.0 * trial.validation_top1),
            format!("{:.4}", trial.validation_ece),
        ]
    };
    let rows: Vec<Vec<String>> = tuning.trials.iter().enumerate().map(row).collect();
    table(&["", "rank", "temperature", "NLL", "top-1", "ECE"], &rows, &[0])?;
    let file = tuning.recipe_file.display();
    line("* the lowest NLL on the validation split")?;
    line(format_args!("\nThe chosen recipe: {file}; `aleator train {file} --out DIR` trains it."))?;
    print_written(out, &tuning.runs)
}
