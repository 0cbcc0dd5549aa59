//! `aleator sweep`.

use std::path::{Path, PathBuf};

use aleator::TrainedRun;
use aleator::run::load_sweep;
use anyhow::Result;
use clap::Args;

use crate::progress::watched;
use crate::recipe_args::ColumnArgs;
use crate::scores;
use crate::train::print_written;

/// Arguments of `aleator sweep`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct SweepArgs {
    /// A recipe file with `base` and `[axes]`, or a sweep that `aleator recipes` lists
    sweep: PathBuf,
    /// Data to train on, as `aleator train --data` takes them [default: those of the recipe]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Set a key of every run
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The directory of the runs; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

const AFTER_HELP: &str = "\
A sweep is a recipe file like this one; every combination of the axes is a run:
  base = \"features-full\"
  [axes]
  \"head.rank\" = [2, 6, 15]
  seed = [0, 1, 2]

Examples:
  aleator sweep ranks.toml --data x.npy --out ranks
  aleator compare ranks                  one row for each rank, mean ± standard deviation over seeds";

/// `aleator sweep`.
pub fn sweep(args: &SweepArgs, quiet: bool) -> Result<()> {
    let runs = watched(quiet, |watch| {
        let columns = args.columns.names();
        let points = match &args.data {
            Some(data) => aleator::sweep_on_path(&args.sweep, data, &columns, &args.set, watch)?,
            None => {
                args.columns.refuse_without_table()?;
                load_sweep(&args.sweep, &args.set)?
            }
        };
        aleator::sweep(points, &args.out, watch)
    })?;
    print(&args.out, &runs)
}

/// One row for each run.
pub fn print(out: &Path, runs: &[TrainedRun]) -> Result<()> {
    scores::print_each(runs)?;
    print_written(out, runs)
}
