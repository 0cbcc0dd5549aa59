//! `aleator transfer`.

use std::path::{Path, PathBuf};

use aleator::run::recipe::{Augment, Crop};
use aleator::run::{Tasks, load_tasks};
use aleator::{TaskPlan, TaskScore, Transfer, TransferSettings};
use anyhow::{Result, bail};
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
    /// The tasks: a TOML file with a section for each, or transfer/vtab-tasks
    tasks: PathBuf,
    /// The recipe of every task, in place of those that the file names [default: transfer/vtab]
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
    /// Open the data and print what each task would be trained with; train nothing
    #[arg(long)]
    dry_run: bool,
    /// Where the runs and the table are written; must not exist
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
The head of the run is dropped. Each task gets a fresh one without noise, and head and network \
learn from 1,000 of its examples (the VTAB-1k protocol); reported are the accuracy on each task's \
test split and their mean. The recipe says how large images are and how they are cut; channels and \
pixel values are those that the network was trained on. A file of tasks:

  recipe = \"transfer/vtab\"               # of tasks that name none

  [tasks.cifar10]
  recipe = \"transfer/vtab-small\"         # images of less than 96 × 96 pixels
  data = \"cifar-10-batches-bin\"          # as `aleator train --data` takes it

  [tasks.digits]
  set = [\"data.train.builtin=digits\", \"data.test.fraction=0.5\", \"data.test.seed=0\"]

Examples:
  aleator transfer runs/photos tasks.toml --dry-run
  aleator transfer runs/photos tasks.toml --out transferred
  aleator transfer runs/jft transfer/vtab-tasks --out vtab    the 19 tasks of the paper";

/// `aleator transfer`.
pub fn transfer(args: &TransferArgs, quiet: bool) -> Result<()> {
    let tasks = load_tasks(&args.tasks)?;
    let settings = TransferSettings {
        recipe: args.recipe.clone(),
        sets: args.set.clone(),
        seed: args.seed,
        checkpoint: args.checkpoint.step,
    };
    let Some(out) = args.out.as_deref().filter(|_| !args.dry_run) else {
        let plans =
            watched(quiet, |watch| aleator::plan_transfer(&args.run, &tasks, &settings, watch))?;
        return print_plans(&tasks, &plans);
    };
    let transfer =
        watched(quiet, |watch| aleator::transfer(&args.run, &tasks, &settings, out, watch))?;
    print(out, &transfer)
}

/// What each task would be trained with, and which cannot be.
fn print_plans(tasks: &Tasks, plans: &[Result<TaskPlan, aleator::Error>]) -> Result<()> {
    let planned = || tasks.tasks.iter().zip(plans);
    let rows: Vec<Vec<String>> = planned()
        .filter_map(|(task, plan)| Some(plan_row(&task.name, plan.as_ref().ok()?)))
        .collect();
    let header =
        ["", "recipe", "pixels", "crop", "flip", "classes", "learns from", "validation", "test"];
    if !rows.is_empty() {
        table(&header, &rows, &[0, 1, 3, 4])?;
    }
    if let Some(Ok(plan)) = plans.iter().find(|plan| plan.is_ok())
        && let Some(weights) = &plan.recipe.network.pretrained
    {
        line(format_args!("\nevery task begins with {}", weights.display()))?;
    }
    let failed: Vec<String> = planned()
        .filter_map(|(task, plan)| Some(format!("{}: {}", task.name, plan.as_ref().err()?)))
        .collect();
    if !failed.is_empty() {
        let (count, all) = (failed.len(), plans.len());
        bail!("{count} of {all} tasks cannot be trained:\n{}", failed.join("\n"));
    }
    Ok(())
}

fn plan_row(task: &str, plan: &TaskPlan) -> Vec<String> {
    let data = &plan.recipe.data;
    let crop = match data.augment.map(|augment| augment.crop) {
        Some(Crop::Inception { area: (low, high), .. }) if low == high => {
            format!("{:.0} % of the area", 100.0 * low)
        }
        Some(Crop::Inception { area: (low, high), .. }) => {
            format!("{:.0} to {:.0} % of the area", 100.0 * low, 100.0 * high)
        }
        Some(Crop::Padded { padding }) => format!("padded by {padding}"),
        Some(Crop::None) | None => "none".to_string(),
    };
    let flips = matches!(data.augment, Some(Augment { flip: true, .. }));
    let size = data.framing.size.map_or("as they are".to_string(), |size| size.to_string());
    let flip = if flips { "yes" } else { "no" };
    let words = [task, &plan.recipe_name, &size, &crop, flip].map(String::from);
    let [train, validation, test] = plan.examples;
    let counts = [plan.classes, train, validation, test].map(|count| count.to_string());
    words.into_iter().chain(counts).collect()
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
