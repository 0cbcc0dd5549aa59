//! `aleator train`.

use std::path::PathBuf;

use aleator::{Fit, TrainedRun};
use anyhow::Result;
use clap::Args;

use crate::output::line;
use crate::progress::watched;
use crate::recipe_args::{RecipeArgs, default_out};
use crate::scores;

/// Arguments of `aleator train`.
#[derive(Args, Debug)]
pub struct TrainArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    /// The directory of the run; must not exist [default: runs/NAME-seedN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fit a temperature to the validation split after training, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
}

/// `aleator train`.
pub fn train(args: &TrainArgs, quiet: bool) -> Result<()> {
    let fit = watched(quiet, |watch| {
        let mut experiment = args.recipe.experiment(watch)?;
        experiment.recipe.evaluation.calibrate |= args.calibrate;
        let out = args.out.clone().unwrap_or_else(|| default_out(&experiment));
        aleator::fit(&experiment, &out, watch)
    })?;
    print(&fit)
}

/// The scores, and where everything is.
pub fn print(fit: &Fit) -> Result<()> {
    match (&fit.runs[..], &fit.ensemble) {
        ([run], _) => scores::print(&run.evaluation)?,
        (runs, ensemble) => {
            scores::print_many(runs)?;
            if let Some((dir, evaluation)) = ensemble {
                line(format_args!("\nTheir ensemble, in {}:", dir.display()))?;
                scores::print(evaluation)?;
            }
        }
    }
    print_written(&fit.dir, &fit.runs)
}

/// Where the runs are, and how many images were left out.
pub fn print_written(out: &std::path::Path, runs: &[TrainedRun]) -> Result<()> {
    for run in runs.iter().filter(|run| run.set_aside > 0) {
        let (s, were) = if run.set_aside == 1 { ("", "was") } else { ("s", "were") };
        line(format_args!(
            "{} image{s} that cannot be decoded {were} left out: see {}",
            run.set_aside,
            run.dir.join("run.json").display()
        ))?;
    }
    line(format_args!("\nwritten to {}", out.display()))
}
