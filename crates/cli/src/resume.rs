//! `aleator resume`.

use std::path::PathBuf;

use aleator::Resumed;
use anyhow::Result;
use clap::Args;

use crate::progress::watched;
use crate::{audit, demo, review, sweep, train, transfer, tune};

/// Arguments of `aleator resume`.
#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The directory of a run, of several runs, or of an audit that was stopped
    dir: PathBuf,
    /// Where the data are now, if they were moved: the training inputs, or the folder with all files.
    /// They are accepted if their content is the same, and the recipe then names the new place
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
}

/// `aleator resume`.
pub fn resume(args: &ResumeArgs, quiet: bool) -> Result<()> {
    let dir = &args.dir;
    if let Some(data) = &args.data {
        aleator::move_data(dir, data)?;
    }
    match watched(quiet, |watch| aleator::resume(dir, None, watch))? {
        Resumed::Fit(fit) => train::print(&fit),
        Resumed::Sweep(runs) => sweep::print(dir, &runs),
        Resumed::Tuning(tuning) => tune::print(dir, &tuning),
        Resumed::Transfer(transfer) => transfer::print(dir, &transfer),
        Resumed::Audit(audit) => {
            audit::findings::print(dir, &audit)?;
            aleator::to_accept(dir)?.map_or(Ok(()), |threshold| review::accept(dir, threshold))
        }
        Resumed::Demo(demo) => demo::print(dir, &demo),
    }
}
