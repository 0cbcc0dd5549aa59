//! `aleator eval`.

use std::path::PathBuf;

use aleator::EvaluateSettings;
use aleator::run::recipe::EvaluatedWeights;
use anyhow::Result;
use clap::Args;

use crate::output::line;
use crate::progress::shown;
use crate::scores;
use crate::values::{Choice, choice};

/// Arguments of `aleator eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// A trained run
    dir: PathBuf,
    /// Which weights to evaluate [default: the recipe's `evaluation.weights`]
    #[arg(long, value_parser = choice(&WEIGHTS))]
    weights: Option<EvaluatedWeights>,
    /// Samples for each example [default: the recipe's `evaluation.samples`]
    #[arg(long)]
    samples: Option<std::num::NonZeroU32>,
    /// Fit a temperature to the validation split, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
    /// Print evaluation.json instead of a table
    #[arg(long)]
    json: bool,
}

const WEIGHTS: [Choice<EvaluatedWeights>; 2] = [
    ("best", EvaluatedWeights::Best, "Of the epoch with the lowest validation NLL"),
    ("last", EvaluatedWeights::Last, "Of the last step"),
];

/// `aleator eval`.
pub fn eval(args: &EvalArgs, quiet: bool) -> Result<()> {
    let settings = EvaluateSettings {
        weights: args.weights,
        samples: args.samples.map(|samples| samples.get() as usize),
        calibrate: args.calibrate,
    };
    let evaluation = shown(quiet, |watch| aleator::evaluate(&args.dir, &settings, None, watch))?;
    if args.json {
        return line(serde_json::to_string_pretty(&evaluation)?);
    }
    scores::print(&evaluation)
}
