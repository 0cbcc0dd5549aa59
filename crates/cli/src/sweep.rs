//! `aleator sweep`.

use std::path::{Path, PathBuf};

use aleator::TrainedRun;
use aleator::run::load_sweep;
use anyhow::Result;
use clap::Args;

use crate::progress::watched;
use crate::scores;
use crate::train::print_written;

/// Arguments of `aleator sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// A recipe file with `base` and `[axes]`, or a sweep that `aleator recipes` lists
    sweep: PathBuf,
    /// Set a key of every run
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The directory of the runs; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `aleator sweep`.
pub fn sweep(args: &SweepArgs, quiet: bool) -> Result<()> {
    let points = load_sweep(&args.sweep, &args.set)?;
    let runs = watched(quiet, |watch| aleator::sweep(points, &args.out, watch))?;
    print(&args.out, &runs)
}

/// One row for each run.
pub fn print(out: &Path, runs: &[TrainedRun]) -> Result<()> {
    scores::print_each(runs)?;
    print_written(out, runs)
}
