//! `aleator eval` and `aleator ensemble`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use aleator_report::ensemble;
use aleator_run::recipe::EvaluatedWeights;
use aleator_train::{EvaluateSettings, Job, evaluate, load_run, run_data};
use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::progress::Progress;
use crate::scores;

/// Arguments of `aleator eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// A trained run
    dir: PathBuf,
    /// Which weights, in place of the recipe's `evaluation.weights`
    #[arg(long)]
    weights: Option<Weights>,
    /// Samples for each example, in place of the recipe's `evaluation.samples`
    #[arg(long)]
    samples: Option<std::num::NonZeroU32>,
    /// Fit a temperature to the validation split, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
    /// Print evaluation.json instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Weights {
    /// Of the epoch with the lowest validation NLL
    Best,
    /// Of the last step
    Last,
}

/// Arguments of `aleator ensemble`.
#[derive(Args, Debug)]
pub struct EnsembleArgs {
    /// Evaluated runs of the same data
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Where the averaged predictions and their evaluation are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `aleator eval`.
pub fn eval(args: &EvalArgs) -> Result<()> {
    let (run, resolved) = load_run(&args.dir)?;
    let recipe = &resolved.recipe;
    let _lock = run.lock()?;
    let data = run_data(&run, recipe, None)?;
    let never = AtomicBool::new(false);
    let seed = run.info().seed;
    let job = Job { run: &run, recipe, seed, data: &data, stop: &never };
    let settings = EvaluateSettings {
        weights: args.weights.map(|weights| match weights {
            Weights::Best => EvaluatedWeights::Best,
            Weights::Last => EvaluatedWeights::Last,
        }),
        samples: args.samples.map(|samples| samples.get() as usize),
        calibrate: args.calibrate,
    };
    let mut progress = Progress::new("", args.quiet);
    let evaluation = evaluate(&job, &settings, &mut |event| progress.show(event));
    progress.finish();
    let evaluation = evaluation?;
    if args.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&evaluation)?)?;
    } else {
        scores::print(&evaluation)?;
    }
    Ok(())
}

/// `aleator ensemble`.
pub fn ensemble(args: &EnsembleArgs) -> Result<()> {
    let evaluation = ensemble::ensemble(&args.dirs, &args.out)?;
    writeln!(io::stdout(), "ensemble of {} runs", args.dirs.len())?;
    scores::print(&evaluation)?;
    writeln!(io::stdout(), "\nwritten to {}", args.out.display())?;
    Ok(())
}
