//! The arguments that choose a recipe and its data, shared by the commands that train.

use std::path::{Path, PathBuf};

use aleator::run::Document;
use aleator::{ColumnNames, Error, Experiment, Watch};
use clap::Args;

/// What the columns of a table are, where their names do not say it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Columns of a table")]
pub struct ColumnArgs {
    /// The column of labels; recognised if it is called label, class, target, y or category, or is
    /// the only one of words
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// The column of ids; recognised if it is called id
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// The column that says train, validation or test; recognised if it is called split
    #[arg(long, value_name = "COLUMN")]
    split: Option<String>,
    /// A column that is not used; may be given several times
    #[arg(long, value_name = "COLUMN")]
    ignore: Vec<String>,
}

impl ColumnArgs {
    /// As the library takes them.
    pub fn names(&self) -> ColumnNames {
        let Self { label, id, split, ignore } = self;
        let (label, id, split) = (label.clone(), id.clone(), split.clone());
        ColumnNames { label, id, split, ignore: ignore.clone() }
    }

    /// Refuses names of columns where there is no table.
    pub fn refuse_without_table(&self) -> Result<(), Error> {
        if self.names() == ColumnNames::default() {
            return Ok(());
        }
        Err(Error::Invalid(
            "--label, --id, --split and --ignore name columns of the table of --data PATH, which \
             is not given"
                .to_string(),
        ))
    }
}

/// A recipe, and what is set over it.
#[derive(Args, Debug)]
pub struct RecipeArgs {
    /// A preset (see `aleator recipes`) or a recipe file; not needed with --data
    pub recipe: Option<String>,
    /// Data to train on: a table, a file of embeddings, a directory of images by class, a manifest,
    /// WebDataset shards, Parquet, CIFAR or IDX files; `aleator doctor` says how it is read.
    /// Without a recipe, the data choose one
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Pretrained weights to start from, for the presets finetune-*: a safetensors file, which
    /// says which network it is of, or the name of a network in docs/weights.md whose file is in
    /// this directory. Without a recipe, finetune-full
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Set a key of the recipe, as in --set head.rank=6; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed of weights, noise and batches, in place of the recipe's
    #[arg(long)]
    pub seed: Option<u64>,
}

impl RecipeArgs {
    /// The recipe with everything set, and its data, for an audit.
    pub fn experiment_to_audit(&self, watch: &mut Watch<'_>) -> Result<Experiment, Error> {
        match (&self.data, &self.recipe, &self.weights) {
            (Some(path), None, None) => {
                let columns = self.columns.names();
                Experiment::to_audit(path, &columns, &self.set, self.seed, watch)
            }
            _ => self.experiment(watch),
        }
    }

    /// The recipe with everything set, and its data.
    pub fn experiment(&self, watch: &mut Watch<'_>) -> Result<Experiment, Error> {
        let recipe = self.recipe.as_deref();
        let columns = self.columns.names();
        if let Some(weights) = &self.weights {
            let data = self.data.as_deref();
            return Experiment::from_weights(weights, data, recipe, &self.set, self.seed, watch);
        }
        if self.data.is_none() {
            self.columns.refuse_without_table()?;
        }
        match (&self.data, recipe) {
            (Some(path), _) => {
                Experiment::on_table(path, &columns, recipe, &self.set, self.seed, watch)
            }
            (None, Some(recipe)) if is_data(Path::new(recipe)) => {
                let found =
                    if Path::new(recipe).exists() { "holds data" } else { "does not exist" };
                Err(Error::Invalid(format!(
                    "{recipe} {found}, and a recipe was expected: did you mean --data {recipe}?"
                )))
            }
            (None, Some(recipe)) => Experiment::load(recipe, &self.set, self.seed),
            (None, None) => Err(Error::Invalid(
                "no recipe: give a preset (`aleator recipes` lists them), a recipe file, or \
                 --data PATH"
                    .to_string(),
            )),
        }
    }
}

/// Whether a path that stands where a recipe is expected means data to train on.
fn is_data(path: &Path) -> bool {
    const DATA: [&str; 8] = ["npy", "npz", "csv", "tsv", "parquet", "safetensors", "jsonl", "tar"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_preset = || path.to_str().is_some_and(|name| Document::preset(name).is_ok());
    DATA.iter().any(|data| ending.eq_ignore_ascii_case(data)) || (path.is_dir() && !is_preset())
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
