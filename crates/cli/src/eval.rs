//! `aleator eval`.

use std::path::{Path, PathBuf};

use aleator::EvaluateSettings;
use aleator::run::Split;
use aleator::run::recipe::EvaluatedWeights;
use aleator::theory::{PredictionScores, compare_predictions};
use anyhow::Result;
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::output::{line, table};
use crate::progress::shown;
use crate::scores;
use crate::values::{Choice, choice};

/// Arguments of `aleator eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// A trained run; with --data also runs of several seeds, or an ensemble
    dir: PathBuf,
    /// Whose predictions to keep; both are scored [default: the recipe's `evaluation.weights`]
    #[arg(long, value_parser = choice(&WEIGHTS), conflicts_with = "step")]
    weights: Option<EvaluatedWeights>,
    /// Samples for each example [default: the recipe's `evaluation.samples`]
    #[arg(long)]
    samples: Option<std::num::NonZeroU32>,
    /// Fit a temperature to the validation split, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
    /// Compare the predictions with those that need no sampling (expansion, probit, mean field), on
    /// the test split, or the validation split without one
    #[arg(long, conflicts_with_all = ["data", "step"])]
    sampling_free: bool,
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
    let free = match args.sampling_free {
        true => Some(shown(quiet, |watch| compare_predictions(&args.dir, None, watch))?),
        false => None,
    };
    if args.json {
        let mut json = serde_json::to_value(&evaluation)?;
        if let Some((split, scores)) = &free {
            json["sampling_free"] = serde_json::json!({"split": split.name(), "scores": scores});
        }
        return line(serde_json::to_string_pretty(&json)?);
    }
    if let Some(step) = args.checkpoint.step {
        let dir = args.dir.display();
        line(format_args!("of the checkpoint of step {step}; nothing in {dir} was changed"))?;
    }
    scores::print(&evaluation)?;
    free.map_or(Ok(()), |(split, scores)| print_sampling_free(split, &scores))
}

fn print_sampling_free(split: Split, scores: &[PredictionScores]) -> Result<()> {
    line(format_args!("\nPredictions without sampling, {} split, given labels", split.name()))?;
    let row = |it: &PredictionScores| {
        vec![
            it.prediction.name().to_string(),
            format!("{:.2} %", 100.0 * it.top1),
            format!("{:.4}", it.nll),
            format!("{:.4}", it.error),
            format!("{:.4}", it.largest_error),
        ]
    };
    let header = ["prediction", "top-1", "NLL", "mean error", "largest error"];
    table(&header, &scores.iter().map(row).collect::<Vec<_>>(), &[0])
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
