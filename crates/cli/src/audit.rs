//! `aleator audit`.

pub mod findings;
mod probabilities;

use std::path::{Path, PathBuf};

use aleator::{AUDIT_FOLDS, Experiment};
use anyhow::{Result, bail};
use clap::Args;

use crate::checkpoint_arg::CheckpointArg;
use crate::progress::{shown, watched};
use crate::recipe_args::{RecipeArgs, free_name};
use crate::review;
use crate::values::{threshold, whole};
use probabilities::ProbabilityArgs;

/// Arguments of `aleator audit`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct AuditArgs {
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    probabilities: ProbabilityArgs,
    /// The directory of the findings; must not exist [default: audits/NAME, or the first such name
    /// that is free]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The number of folds; each is judged by a model that was trained on the others. Embeddings and
    /// tables need none, unless a recipe is given
    #[arg(long, value_name = "N", default_value_t = AUDIT_FOLDS, value_parser = whole(1..=usize::MAX))]
    folds: usize,
    /// With a trained run: train its whole network for every fold, not only the head
    #[arg(long)]
    whole: bool,
    #[command(flatten)]
    checkpoint: CheckpointArg,
    /// Accept suggestions that are at least this probable without looking at them, and write
    /// corrected.csv, pruned.csv and weights.csv to train on
    #[arg(long, value_name = "P", value_parser = threshold)]
    accept: Option<f64>,
}

const AFTER_HELP: &str = "\
Embeddings and tables are judged without folds: each label by all other examples, in closed form, \
and by how training goes with it. Both are compared with labels that are made wrong on purpose, \
which says how probable each label is to be wrong. Images, several classes for an example, and \
any RECIPE that is given: the data are divided into folds, and each is judged by a model that was \
trained on the others and never saw its labels.

RECIPE is a preset, a recipe file, or the directory of a trained run; the network of a run on \
images embeds the images once, and labels are judged by that (--whole trains the network again \
for every fold).

Written to DIR:
  issues.csv      every label, the one that is most surely wrong first, with a suggestion
  classes.csv     for each class how many of its labels are wrong, and which classes they more likely belong to
  pairs.csv       how often each class is given where another is true
  annotators.csv  who errs how often and confuses what, where annotators are known
  consensus.csv   one label for each example by all annotators and the model, to train on
  near_duplicates.csv     groups of (nearly) identical examples, those with different labels first (features only)
  outliers.csv            examples that belong to no class (features only)
  ambiguous_examples.csv  labels that are about as likely right as wrong
and with --accept P three label files, one of which to train on:
  corrected.csv   suggestions with a probability of at least P take the place of the labels
  pruned.csv      labels that are wrong with a probability of at least P are left out
  weights.csv     all labels, each weighted by the probability that it is right

Examples:
  aleator audit --data photos.safetensors        in audits/photos
  aleator audit --data photos.safetensors --out audit
  aleator audit features-full --set data.train.features=x.npy --set data.train.labels=y.npy --out audit
  aleator audit runs/photos --out audit          with the network of a trained run
  aleator audit --probabilities p.npy --labels y.npy --out audit
                                                 with probabilities of any other model
  aleator resume audit                           continue after Ctrl-C
  aleator report audit                           the findings as a page, with the images
  aleator review audit                           go through the suspects and correct them
  aleator audit --data photos.safetensors --out audit --accept 0.95
  aleator train --data photos.safetensors --set data.train.labels=audit/corrected.csv
                                                 correct them without looking, and train on it";

/// `aleator audit`.
pub fn audit(args: &AuditArgs, quiet: bool) -> Result<()> {
    let (AuditArgs { folds, .. }, RecipeArgs { set, seed, .. }) = (args, &args.recipe);
    let out = &args.out.clone().unwrap_or_else(|| args.default_out());
    if args.checkpoint.step.is_some() && (args.whole || args.trained_run().is_none()) {
        bail!(
            "--checkpoint is of a trained run whose network judges: give its directory, without --whole"
        );
    }
    let audit = match args.probabilities.files() {
        Some(files) => shown(quiet, |watch| aleator::audit_probabilities(&files, out, watch))?,
        None => watched(quiet, |watch| match args.trained_run() {
            Some(dir) if args.whole => {
                aleator::audit(&Experiment::of_run(dir, set, *seed)?, *folds, out, watch)
            }
            Some(dir) => {
                let step = args.checkpoint.step;
                aleator::audit_run(dir, set, *seed, step, *folds, out, watch)
            }
            None => aleator::audit(&args.recipe.experiment_to_audit(watch)?, *folds, out, watch),
        })?,
    };
    findings::print(out, &audit)?;
    args.accept.map_or(Ok(()), |threshold| review::accept(out, threshold))
}

impl AuditArgs {
    /// `audits/NAME`, where NAME is that of what is audited.
    fn default_out(&self) -> PathBuf {
        let probabilities = self.probabilities.files().map(|files| files.probabilities);
        let recipe = self.recipe.recipe.clone();
        let data = self.recipe.data.as_ref().map(|path| path.display().to_string());
        let audited = data.or(recipe).or(probabilities).unwrap_or_default();
        let name = Path::new(&audited).file_stem().unwrap_or("audit".as_ref());
        free_name(&Path::new("audits").join(name))
    }

    /// The directory that was given in place of a recipe.
    fn trained_run(&self) -> Option<&Path> {
        let path = Path::new(self.recipe.recipe.as_deref()?);
        (self.recipe.data.is_none() && path.is_dir()).then_some(path)
    }
}
