//! `aleator eval`.

use std::io::{self, Write};
use std::path::PathBuf;

use aleator::EvaluateSettings;
use aleator::run::recipe::EvaluatedWeights;
use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::progress::watched;
use crate::scores;

/// Arguments of `aleator eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// A trained run
    dir: PathBuf,
    /// Which weights to evaluate [default: the recipe's `evaluation.weights`]
    #[arg(long)]
    weights: Option<Weights>,
    /// Samples for each example [default: the recipe's `evaluation.samples`]
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

/// `aleator eval`.
pub fn eval(args: &EvalArgs) -> Result<()> {
    let settings = EvaluateSettings {
        weights: args.weights.map(|weights| match weights {
            Weights::Best => EvaluatedWeights::Best,
            Weights::Last => EvaluatedWeights::Last,
        }),
        samples: args.samples.map(|samples| samples.get() as usize),
        calibrate: args.calibrate,
    };
    let evaluation =
        watched(args.quiet, |watch| aleator::evaluate(&args.dir, &settings, None, watch))?;
    if args.json {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&evaluation)?)?;
    } else {
        scores::print(&evaluation)?;
    }
    Ok(())
}
