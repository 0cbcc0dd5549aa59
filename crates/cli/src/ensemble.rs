//! `aleator ensemble`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::output::line;
use crate::scores;

/// Arguments of `aleator ensemble`.
#[derive(Args, Debug)]
pub struct EnsembleArgs {
    /// Evaluated runs of the same data
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// The directory of the averaged predictions and their evaluation; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `aleator ensemble`.
pub fn ensemble(args: &EnsembleArgs) -> Result<()> {
    let evaluation = aleator::ensemble(&args.dirs, &args.out)?;
    line(format_args!("ensemble of {} runs", args.dirs.len()))?;
    scores::print(&evaluation)?;
    line(format_args!("\nwritten to {}", args.out.display()))
}
