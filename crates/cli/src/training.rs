//! `aleator train`, `resume` and `sweep`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aleator_data::Sources;
use aleator_metrics::Evaluation;
use aleator_report::ensemble;
use aleator_run::RunDir;
use aleator_train::Event;
use aleator_train::group::{self, Group, GroupOutcome, Kind, Member};
use anyhow::{Context, Result};
use clap::Args;

use crate::interrupt;
use crate::progress::Progress;
use crate::recipe_args::{RecipeArgs, default_out, with_absolute_paths};
use crate::{auditing, demo, scores, transfer, tune};

/// Arguments of `aleator train`.
#[derive(Args, Debug)]
pub struct TrainArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Where the run is written; must not exist [default: runs/NAME-seedN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fit a temperature to the validation split after training, and report calibrated scores too
    #[arg(long)]
    calibrate: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments of `aleator resume`.
#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The run, or the folder of several runs, to go on with
    dir: PathBuf,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Arguments of `aleator sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// The path of a recipe with `base` and `[axes]`, or a sweep that `aleator recipes` lists
    sweep: PathBuf,
    /// Set a key of every run
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where the runs are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// `aleator train`.
pub fn train(args: &TrainArgs) -> Result<()> {
    let mut resolved = args.recipe.resolve()?;
    if args.calibrate {
        // Into the recipe, so that a run that is resumed remembers it.
        resolved.recipe.evaluation.calibrate = true;
    }
    let out = args.out.clone().unwrap_or_else(|| default_out(&resolved));
    let group = Group { kind: Kind::Seeds, members: group::members("", &resolved) };
    start(&out, &group, None, args.quiet)
}

/// `aleator sweep`.
pub fn sweep(args: &SweepArgs) -> Result<()> {
    let mut members = vec![];
    for point in aleator_run::load_sweep(&args.sweep, &args.set)? {
        members.extend(group::members(&point.name, &with_absolute_paths(point.resolved)?));
    }
    start(&args.out, &Group { kind: Kind::Sweep, members }, None, args.quiet)
}

/// Trains new runs and shows their results; `sources` are their data where they are open already.
pub fn start(out: &Path, group: &Group, sources: Option<&Sources>, quiet: bool) -> Result<()> {
    let stop = interrupt::flag()?;
    let mut shown = Shown::new(quiet);
    let ended = group::start(out, group, sources, stop, &mut |member, event| {
        shown.show(member, event);
    });
    shown.finish();
    conclude(out, group, sources, ended?, quiet)
}

/// `aleator resume`.
pub fn resume(args: &ResumeArgs) -> Result<()> {
    go_on(&args.dir, &group::open(&args.dir)?, args.quiet)
}

/// Trains what is missing of runs whose folder is there, and shows what came out.
pub fn go_on(dir: &Path, group: &Group, quiet: bool) -> Result<()> {
    let stop = interrupt::flag()?;
    let audited = group.kind == Kind::Audit;
    let sources = audited.then(|| auditing::prepare(dir, group, quiet)).transpose()?;
    let sources = sources.as_ref();
    let mut shown = Shown::new(quiet);
    let ended = group::resume(dir, group, sources, stop, &mut |member, event| {
        shown.show(member, event);
    });
    shown.finish();
    conclude(dir, group, sources, ended?, quiet)
}

/// One bar after the other, for the members of a group.
pub struct Shown {
    quiet: bool,
    current: Option<(String, Progress)>,
}

impl Shown {
    /// Nothing is shown yet.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, current: None }
    }

    /// Shows an event of a member.
    pub fn show(&mut self, member: &Member, event: Event<'_>) {
        if self.current.as_ref().is_none_or(|(name, _)| *name != member.name) {
            let progress = Progress::new(&member.name, self.quiet);
            if let Some((_, old)) = self.current.replace((member.name.clone(), progress)) {
                old.finish();
            }
        }
        if let Some((_, progress)) = &mut self.current {
            progress.show(event);
        }
    }

    /// Takes the last bar away.
    pub fn finish(self) {
        if let Some((_, progress)) = self.current {
            progress.finish();
        }
    }
}

/// What is made of runs that are done, or how to go on.
fn conclude(
    out: &Path,
    group: &Group,
    sources: Option<&Sources>,
    ended: GroupOutcome,
    quiet: bool,
) -> Result<()> {
    let evaluations = match ended {
        GroupOutcome::Evaluated(evaluations) => evaluations,
        GroupOutcome::Interrupted { name, step } => {
            if !out.exists() {
                let message = "stopped before the run began: nothing is written".to_string();
                return Err(interrupt::Interrupted(message).into());
            }
            let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
            let place = out.display();
            let message = format!("saved at step {step}{of}; go on with `aleator resume {place}`");
            return Err(interrupt::Interrupted(message).into());
        }
    };
    let members = &group.members;
    match group.kind {
        Kind::Demo => demo::conclude(out, members)?,
        Kind::Tune => tune::conclude(out, members, &evaluations)?,
        Kind::Audit => {
            let sources = sources.context("the data of an audit are opened first")?;
            auditing::conclude(out, members, sources, quiet)?;
        }
        Kind::Transfer => transfer::conclude(out, members, &evaluations)?,
        Kind::Sweep => scores::print_each(members, &evaluations)?,
        Kind::Seeds => conclude_seeds(out, members, &evaluations)?,
    }
    say_set_aside(out, members)?;
    writeln!(io::stdout(), "\nwritten to {}", out.display())?;
    Ok(())
}

/// How many images were left out, and where they are named.
fn say_set_aside(out: &Path, members: &[Member]) -> Result<()> {
    for member in members {
        let run = RunDir::open(&out.join(&member.name))?;
        let count = run.info().set_aside.len();
        if count > 0 {
            let (s, were) = if count == 1 { ("", "was") } else { ("s", "were") };
            writeln!(
                io::stdout(),
                "{count} image{s} that cannot be decoded {were} set aside: see {}",
                run.path().join("run.json").display()
            )?;
        }
    }
    Ok(())
}

fn conclude_seeds(out: &Path, members: &[Member], evaluations: &[Evaluation]) -> Result<()> {
    if let [evaluation] = evaluations {
        scores::print(evaluation)?;
        return Ok(());
    }
    // First the files: whoever reads the output may have seen enough of it.
    let dirs: Vec<PathBuf> = members.iter().map(|member| out.join(&member.name)).collect();
    let place = out.join("ensemble");
    let ensemble = ensemble::ensemble_once(&dirs, &place)?;
    scores::print_many(evaluations)?;
    writeln!(io::stdout(), "\nThe ensemble of them, in {}:", place.display())?;
    scores::print(&ensemble)?;
    Ok(())
}
