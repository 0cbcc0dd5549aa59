//! `aleator audit`: which labels are wrong, and what they should be.

mod embeddings;
mod findings;
mod probabilities;
mod source;

use std::path::{Path, PathBuf};

use aleator_data::Sources;
use aleator_report::audit;
use aleator_run::recipe::HeldOut;
use aleator_run::{Resolved, write_file};
use aleator_train::group::{Group, Kind, Member};
use aleator_train::{check_recipe, load_run};
use anyhow::{Context, Result, bail};
use clap::Args;

use crate::at_least_one;
use crate::progress::Counter;
use crate::recipe_args::RecipeArgs;
use crate::training;
use probabilities::ProbabilityArgs;

/// Arguments of `aleator audit`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct AuditArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    probabilities: ProbabilityArgs,
    /// Where the findings are written; must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Parts that the data are divided into; each is judged by a model of the others
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    folds: usize,
    /// Of a trained run: train its whole network for every part, not only the head
    #[arg(long)]
    whole: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

const AFTER_HELP: &str = "\
The data are divided into parts. Each part is judged by a model that was trained on the others \
and never saw its labels; a model that saw them would repeat them. RECIPE is a preset, a recipe \
file, or the folder of a trained run; of a run on images the trained network makes embeddings \
once, and only heads are trained for the parts (--whole trains everything anew).

Written to DIR:
  issues.csv      every label, the one that is most surely wrong first, with a suggestion
  classes.csv     for each class how many of its labels are wrong, and what they rather are
  pairs.csv       how often each class is given where another is true
  annotators.csv  who errs how often and confuses what, where annotators are known

Examples:
  aleator audit --data photos.safetensors --out audit
  aleator audit features-full --set data.train.features=x.npy --set data.train.labels=y.npy --out audit
  aleator audit runs/photos --out audit          with the network of a trained run
  aleator audit --probabilities p.npy --labels y.npy --out audit
                                                 with probabilities of any other model
  aleator resume audit                           go on after Ctrl-C
  aleator report audit                           the findings as a page, with the images
  aleator review audit                           go through the suspects and correct them";

/// `aleator audit`.
pub fn run(args: &AuditArgs) -> Result<()> {
    if let Some(files) = args.probabilities.files() {
        return probabilities::run(&files, &args.out, args.quiet);
    }
    if args.folds < 2 {
        bail!("--folds {}: at least 2, so that each part has others to learn from", args.folds);
    }
    match trained_run(args) {
        Some(dir) if !args.whole => {
            let (run, resolved) = load_run(&dir)?;
            let resolved = with_settings(resolved, &args.recipe)?;
            if run.info().input_shape.len() == 3 {
                return embeddings::start(args, &run, &resolved);
            }
            start(args, &resolved)
        }
        Some(dir) => start(args, &with_settings(load_run(&dir)?.1, &args.recipe)?),
        None => start(args, &args.recipe.resolve()?),
    }
}

/// The folder that was given in place of a recipe.
fn trained_run(args: &AuditArgs) -> Option<PathBuf> {
    let path = PathBuf::from(args.recipe.recipe.as_ref()?);
    (args.recipe.data.is_none() && path.is_dir()).then_some(path)
}

/// The recipe of a run with what is set over it.
fn with_settings(mut resolved: Resolved, args: &RecipeArgs) -> Result<Resolved> {
    resolved.recipe = resolved.recipe.with_sets(&args.set, args.seed)?;
    crate::recipe_args::with_absolute_paths(resolved)
}

fn start(args: &AuditArgs, resolved: &Resolved) -> Result<()> {
    let group = group(resolved, args.folds)?;
    let sources = sources(&group.members)?;
    // The last part is the smallest: where it has examples all have, before anything is written.
    if let Some(last) = group.members.last() {
        let recipe = &last.resolved.recipe;
        check_recipe(recipe, &sources.divide(&recipe.data)?)?;
    }
    training::start(&args.out, &group, Some(&sources), args.quiet)
}

/// The data of all folds.
fn sources(members: &[Member]) -> Result<Sources> {
    let recipe = &members.first().context("an audit has folds")?.resolved.recipe;
    Ok(Sources::open(&recipe.data, recipe.head.link)?)
}

fn only_seed(resolved: &Resolved) -> Result<u64> {
    match resolved.recipe.seeds[..] {
        [seed] => Ok(seed),
        _ => bail!("an audit wants one seed, and {} has several: add --seed 0", resolved.name),
    }
}

/// One run for each part.
fn group(resolved: &Resolved, folds: usize) -> Result<Group> {
    let seed = only_seed(resolved)?;
    let member = |fold: usize| -> Result<Member> {
        let mut resolved = resolved.clone();
        resolved.recipe.data.test = Some(HeldOut::Fold { fold, folds, seed: 0 });
        resolved.recipe.check()?;
        Ok(Member { name: format!("fold-{fold}"), resolved, seed })
    };
    Ok(Group { kind: Kind::Audit, members: (0..folds).map(member).collect::<Result<_>>()? })
}

/// The data of an audit that is resumed, with all embeddings that it needs.
pub fn prepare(out: &Path, group: &Group, quiet: bool) -> Result<Sources> {
    embeddings::finish(out, quiet)?;
    sources(&group.members)
}

/// Judges the labels when all folds are trained.
pub fn conclude(out: &Path, members: &[Member], sources: &Sources, quiet: bool) -> Result<()> {
    let first = members.first().context("an audit has folds")?;
    let dirs: Vec<PathBuf> = members.iter().map(|member| out.join(&member.name)).collect();
    let source = source::of(sources, &first.resolved.recipe)?;
    let counter = Counter::new("judging the labels", quiet);
    let audit = audit::analyse(&dirs, &source, &mut |step| counter.show(step.done, step.total));
    counter.finish();
    let audit = audit?;
    let mut recipe = first.resolved.recipe.clone();
    recipe.data.test = None;
    write_file(&out.join("recipe.toml"), recipe.to_toml().as_bytes())?;
    audit.save(out)?;
    findings::print(&audit, out)
}
