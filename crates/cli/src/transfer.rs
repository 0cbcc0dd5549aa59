//! `aleator transfer`: a trained network on other tasks, with a fresh head.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_data::inputs::recognise::recognise;
use aleator_metrics::Evaluation;
use aleator_run::recipe::{DataOverlay, Network, Overlay};
use aleator_run::{Resolved, RunDir, Task, load_tasks, write_file};
use aleator_train::group::{Group, Kind, Member};
use aleator_train::{load_run, weights_file};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use crate::progress::tell;
use crate::recipe_args::with_absolute_paths;
use crate::training;

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
    /// Where the runs and the table are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
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

const RECIPE: &str = "transfer/vtab";

/// `aleator transfer`.
pub fn transfer(args: &TransferArgs) -> Result<()> {
    let (run, source) = load_run(&args.run)?;
    let weights = source.recipe.evaluation.weights;
    let file = weights_file(&run, &source.recipe, weights, &mut |_| {})?;
    let tasks = load_tasks(&args.tasks)?;
    let recipe = args.recipe.clone().or(tasks.recipe).unwrap_or_else(|| RECIPE.to_string());
    let network = network_overlay(&run, &source, &file)?;
    let mut members = vec![];
    for task in &tasks.tasks {
        let resolved = task_recipe(&recipe, task, &network, args)
            .with_context(|| format!("{}: task {}", args.tasks.display(), task.name))?;
        let [seed] = resolved.recipe.seeds[..] else {
            bail!("transfer wants one seed, and {recipe} has several: add --seed 0");
        };
        members.push(Member { name: task.name.clone(), resolved, seed });
    }
    training::start(&args.out, &Group { kind: Kind::Transfer, members }, args.quiet)
}

/// What makes a recipe's network that of the run, with inputs of the same shape.
fn network_overlay(run: &RunDir, source: &Resolved, weights: &Path) -> Result<Overlay> {
    let weights = weights.canonicalize().with_context(|| weights.display().to_string())?;
    let network = Network { pretrained: Some(weights), ..source.recipe.network.clone() };
    let mut data = DataOverlay::default();
    if let [channels, height, width] = run.info().input_shape[..] {
        if height != width {
            bail!(
                "{}: its network sees images of {width} × {height} pixels; transfer brings the \
                 tasks' images to a square: train it with data.image_size",
                run.path().display()
            );
        }
        let framing = source.recipe.data.framing;
        data = DataOverlay {
            image_size: Some(Some(height)),
            channels: Some(channels),
            centre_crop: framing.centre_crop,
            filter: Some(framing.filter),
            pixel_values: Some(framing.values),
            ..data
        };
    }
    Ok(Overlay {
        origin: format!("the run {}", run.path().display()),
        data,
        network: Some(network),
    })
}

fn task_recipe(
    recipe: &str,
    task: &Task,
    network: &Overlay,
    args: &TransferArgs,
) -> Result<Resolved> {
    let mut overlay = network.clone();
    if let Some(path) = &task.data {
        let recognised = recognise(path)?;
        tell(&format!("{}: {}", task.name, recognised.explanation));
        let found = recognised.overlay(path).data;
        overlay.data = DataOverlay {
            image_size: overlay.data.image_size.or(found.image_size),
            label_kind: found.label_kind,
            class_names: found.class_names,
            train: found.train,
            validation: found.validation,
            test: found.test,
            ..overlay.data
        };
    }
    let sets = [&task.sets[..], &args.set].concat();
    let resolved = aleator_run::load_over(recipe, &overlay, &sets, args.seed)?;
    let resolved = with_absolute_paths(resolved)?;
    if resolved.recipe.data.test.is_none() {
        bail!(
            "has no test data to report on: name them by set = [\"data.test.images=PATH\"], or take \
             a part by set = [\"data.test.fraction=0.2\", \"data.test.seed=0\"]"
        );
    }
    Ok(resolved)
}

/// One line of `transfer.json`.
#[derive(Debug, Serialize)]
struct Row {
    task: String,
    validation_top1: f64,
    test_top1: f64,
}

/// `transfer.json`.
#[derive(Debug, Serialize)]
struct Table {
    tasks: Vec<Row>,
    mean_test_top1: f64,
}

/// Accuracy on each task, and the mean.
pub fn conclude(out: &Path, members: &[Member], evaluations: &[Evaluation]) -> Result<()> {
    let row = |(member, evaluation): (&Member, &Evaluation)| Row {
        task: member.name.clone(),
        validation_top1: evaluation.validation.given.top1,
        test_top1: evaluation.test.as_ref().map_or(f64::NAN, |test| test.given.top1),
    };
    let tasks: Vec<Row> = members.iter().zip(evaluations).map(row).collect();
    let mean_test_top1 = tasks.iter().map(|row| row.test_top1).sum::<f64>() / tasks.len() as f64;
    let table = Table { tasks, mean_test_top1 };
    // First the file: whoever reads the output may have seen enough of it.
    let text = serde_json::to_string_pretty(&table)? + "\n";
    write_file(&out.join("transfer.json"), text.as_bytes())?;
    print(&table)?;
    Ok(())
}

fn print(table: &Table) -> io::Result<()> {
    let names = table.tasks.iter().map(|row| row.task.len());
    let width = names.max().unwrap_or(0).max("mean".len()) + 2;
    let mut out = io::stdout().lock();
    writeln!(out, "{:<width$}{:>18}{:>12}", "", "validation top-1", "test top-1")?;
    for row in &table.tasks {
        let (validation, test) = (100.0 * row.validation_top1, 100.0 * row.test_top1);
        writeln!(out, "{:<width$}{validation:>16.2} %{test:>10.2} %", row.task)?;
    }
    writeln!(out, "{:<width$}{:>18}{:>10.2} %", "mean", "", 100.0 * table.mean_test_top1)
}
