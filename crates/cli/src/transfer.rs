//! `aleator transfer`.

use std::path::{Path, PathBuf};

use aleator::run::load_tasks;
use aleator::{TaskScore, Transfer, TransferSettings};
use anyhow::Result;
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::output::{line, table};
use crate::progress::watched;
use crate::train::print_written;

/// Arguments of `aleator transfer`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct TransferArgs {
    /// A trained run whose network is carried over
    run: PathBuf,
    /// The tasks: a TOML file with a section for each
    tasks: PathBuf,
    /// The recipe of every task, in place of the file's [default: transfer/vtab]
    #[arg(long)]
    recipe: Option<String>,
    /// Set a key of every task's recipe
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The seed of the head, batches and augmentation, in place of the recipe's
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    checkpoint: CheckpointArg,
    /// Where the runs and the table are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

const AFTER_HELP: &str = "\
The head of the run is dropped. Each task gets a fresh one without noise, and head and network \
learn from 1,000 of its examples (the VTAB-1k protocol); reported are the accuracy on each task's \
test split and their mean. A file of tasks:

  [tasks.cifar10]
  data = \"cifar-10-batches-bin\"          # as `aleator train --data` takes it

  [tasks.digits]
  set = [\"data.train.builtin=digits\", \"data.test.fraction=0.5\", \"data.test.seed=0\"]

Example:
  aleator transfer runs/photos tasks.toml --out transferred";

/// `aleator transfer`.
pub fn transfer(args: &TransferArgs, quiet: bool) -> Result<()> {
    let tasks = load_tasks(&args.tasks)?;
    let settings = TransferSettings {
        recipe: args.recipe.clone(),
        sets: args.set.clone(),
        seed: args.seed,
        checkpoint: args.checkpoint.step,
    };
    let transfer =
        watched(quiet, |watch| aleator::transfer(&args.run, &tasks, &settings, &args.out, watch))?;
    print(&args.out, &transfer)
}

/// The accuracy on each task, and the mean.
pub fn print(out: &Path, transfer: &Transfer) -> Result<()> {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let row = |task: &TaskScore| {
        vec![task.task.clone(), percent(task.validation_top1), percent(task.test_top1)]
    };
    let mut rows: Vec<Vec<String>> = transfer.tasks.iter().map(row).collect();
    rows.push(vec!["mean".to_string(), String::new(), percent(transfer.mean_test_top1)]);
    table(&["", "validation top-1", "test top-1"], &rows, &[0])?;
    if let Some(weights) = &transfer.weights {
        line(format_args!("\nevery task began with {}", weights.display()))?;
    }
    print_written(out, &transfer.runs)
}
