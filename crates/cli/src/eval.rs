//! `aleator eval`.

use std::path::{Path, PathBuf};

use aleator::EvaluateSettings;
use aleator::run::recipe::EvaluatedWeights;
use anyhow::Result;
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::output::line;
use crate::progress::shown;
use crate::scores;
use crate::values::{Choice, choice};

/// Arguments of `aleator eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// A trained run; with --data also runs of several seeds, or an ensemble
    dir: PathBuf,
    /// Which weights to evaluate [default: the recipe's `evaluation.weights`]
    #[arg(long, value_parser = choice(&WEIGHTS), conflicts_with = "step")]
    weights: Option<EvaluatedWeights>,
    /// Samples for each example [default: the recipe's `evaluation.samples`]
    #[arg(long)]
    samples: Option<std::num::NonZeroU32>,
    /// Fit a temperature to the validation split, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
    #[command(flatten)]
    checkpoint: CheckpointArg,
    /// Evaluate on other data with labels of the same classes, and leave the run as it is; its own
    /// data need not be there
    #[arg(long, value_name = "PATH", conflicts_with_all = ["weights", "samples", "calibrate"])]
    data: Option<PathBuf>,
    /// The labels of --data where they are not recognised: a file, or FILE#COLUMN
    #[arg(long, value_name = "FILE", requires = "data")]
    labels: Option<String>,
    /// Write the scores of --data to a file, as JSON
    #[arg(long, value_name = "FILE", requires = "data")]
    out: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

const WEIGHTS: [Choice<EvaluatedWeights>; 2] = [
    ("best", EvaluatedWeights::Best, "Of the epoch with the lowest validation NLL"),
    ("last", EvaluatedWeights::Last, "Of the last step"),
];

/// `aleator eval`.
pub fn eval(args: &EvalArgs, quiet: bool) -> Result<()> {
    if let Some(data) = &args.data {
        return eval_on(args, data, quiet);
    }
    let settings = EvaluateSettings {
        weights: args.weights,
        samples: args.samples.map(|samples| samples.get() as usize),
        calibrate: args.calibrate,
        checkpoint: args.checkpoint.step,
    };
    let evaluation = shown(quiet, |watch| aleator::evaluate(&args.dir, &settings, None, watch))?;
    if args.json {
        return line(serde_json::to_string_pretty(&evaluation)?);
    }
    if let Some(step) = args.checkpoint.step {
        let dir = args.dir.display();
        line(format_args!("of the checkpoint of step {step}; nothing in {dir} was changed"))?;
    }
    scores::print(&evaluation)
}

fn eval_on(args: &EvalArgs, data: &Path, quiet: bool) -> Result<()> {
    let labels = args.labels.as_deref();
    let step = args.checkpoint.step;
    let scores = shown(quiet, |watch| aleator::evaluate_on(&args.dir, data, labels, step, watch))?;
    if let Some(out) = &args.out {
        aleator::run::write_json(out, &scores)?;
    }
    match (args.json, &args.out) {
        (true, _) => line(serde_json::to_string_pretty(&scores)?),
        (false, None) => scores::print_new(&scores),
        (false, Some(out)) => {
            scores::print_new(&scores)?;
            line(format_args!("\nwritten to {}", out.display()))
        }
    }
}
