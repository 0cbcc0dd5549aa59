//! The arguments that choose a recipe, shared by the commands that train.

use std::path::{Path, PathBuf};

use aleator_data::inputs::recognise::{Family, recognise};
use aleator_run::{Overlay, Resolved};
use anyhow::{Context, Result, bail};
use clap::Args;

use crate::progress::tell;

/// Which recipe, and what is set over it.
#[derive(Args, Debug)]
pub struct RecipeArgs {
    /// A preset (see `aleator recipes`) or the path of a recipe; not needed with --data
    pub recipe: Option<String>,
    /// Data to look at: a file of embeddings, a folder of images by class, a manifest, WebDataset
    /// shards, Parquet, CIFAR or IDX files; `aleator doctor` says more. Without a recipe, what is
    /// found there chooses one
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Set a key of the recipe, as in --set head.rank=6; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The seed of weights, noise and batches, in place of the recipe's
    #[arg(long)]
    pub seed: Option<u64>,
}

impl RecipeArgs {
    /// The recipe with everything set, paths absolute.
    pub fn resolve(&self) -> Result<Resolved> {
        let (recipe, overlay) = match (&self.recipe, &self.data) {
            (None, None) => bail!(
                "no recipe: give a preset (`aleator recipes` lists them), a recipe file, or --data PATH"
            ),
            (Some(recipe), None) => (recipe.clone(), Overlay::default()),
            (recipe, Some(path)) => recognised(path, recipe.as_deref())?,
        };
        with_absolute_paths(aleator_run::load_over(&recipe, &overlay, &self.set, self.seed)?)
    }
}

/// The recipe as it can be run from any folder.
pub fn with_absolute_paths(mut resolved: Resolved) -> Result<Resolved> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    resolved.recipe.make_paths_absolute(&folder)?;
    Ok(resolved)
}

/// The recipe for the data at a path, and what is known of the data; prints what was found.
fn recognised(path: &Path, recipe: Option<&str>) -> Result<(String, Overlay)> {
    let recognised = recognise(path)?;
    tell(&recognised.explanation);
    let preset = match recognised.preset_family {
        Family::Features => "features-full",
        Family::Multilabel => "multilabel-full",
        Family::Images => "images-full",
    };
    let recipe = recipe.unwrap_or(preset);
    // The size of the images belongs to an experiment of the paper as its network does.
    let sized = aleator_run::paper_recipes().iter().any(|paper| paper.name == recipe);
    tell(&format!(
        "recipe: {recipe}{}",
        if sized { ", which keeps its own image size" } else { "" }
    ));
    let mut overlay = recognised.overlay(path);
    if sized {
        overlay.data.image_size = None;
    }
    Ok((recipe.to_string(), overlay))
}

/// Where a run goes when nobody says: `runs/NAME-seedN`, or the first such name that is free.
pub fn default_out(resolved: &Resolved) -> PathBuf {
    let seeds: Vec<String> = resolved.recipe.seeds.iter().map(u64::to_string).collect();
    let name = format!("{}-seed{}", resolved.name, seeds.join("-"));
    let folder = PathBuf::from("runs");
    let free = |path: &PathBuf| !path.exists();
    let numbered = (2..).map(|count| folder.join(format!("{name}-{count}")));
    std::iter::once(folder.join(&name)).chain(numbered).find(free).unwrap_or(folder)
}
