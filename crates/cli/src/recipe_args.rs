//! The arguments that choose a recipe and its data, shared by the commands that train.

use std::path::PathBuf;

use aleator::{Error, Experiment, Watch};
use clap::Args;

/// A recipe, and what is set over it.
#[derive(Args, Debug)]
pub struct RecipeArgs {
    /// A preset (see `aleator recipes`) or a recipe file; not needed with --data
    pub recipe: Option<String>,
    /// Data to train on: a file of embeddings, a directory of images by class, a manifest,
    /// WebDataset shards, Parquet, CIFAR or IDX files; `aleator doctor` says how it is read.
    /// Without a recipe, the data choose one
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Pretrained weights to start from, for the presets finetune-*: a safetensors file, which
    /// says which network it is of, or the name of a network in docs/weights.md whose file is in
    /// this directory. Without a recipe, finetune-full
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Set a key of the recipe, as in --set head.rank=6; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed of weights, noise and batches, in place of the recipe's
    #[arg(long)]
    pub seed: Option<u64>,
}

impl RecipeArgs {
    /// The recipe with everything set, and its data.
    pub fn experiment(&self, watch: &mut Watch<'_>) -> Result<Experiment, Error> {
        let recipe = self.recipe.as_deref();
        if let Some(weights) = &self.weights {
            let data = self.data.as_deref();
            return Experiment::from_weights(weights, data, recipe, &self.set, self.seed, watch);
        }
        match (&self.data, recipe) {
            (Some(path), _) => Experiment::on_path(path, recipe, &self.set, self.seed, watch),
            (None, Some(recipe)) => Experiment::load(recipe, &self.set, self.seed),
            (None, None) => Err(Error::Invalid(
                "no recipe: give a preset (`aleator recipes` lists them), a recipe file, or \
                 --data PATH"
                    .to_string(),
            )),
        }
    }
}

/// The default directory of a run: `runs/NAME-seedN`, or the first such name that is free.
pub fn default_out(experiment: &Experiment) -> PathBuf {
    let seeds: Vec<String> = experiment.recipe.seeds.iter().map(u64::to_string).collect();
    let name = format!("{}-seed{}", experiment.name, seeds.join("-"));
    free_name(&PathBuf::from("runs").join(name))
}

/// This path, or the first of `PATH-2`, `PATH-3`, … that does not exist.
pub fn free_name(path: &std::path::Path) -> PathBuf {
    let numbered = (2..).map(|count| PathBuf::from(format!("{}-{count}", path.display())));
    let mut names = std::iter::once(path.to_path_buf()).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_else(|| path.to_path_buf())
}
