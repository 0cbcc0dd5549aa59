//! What is trained on what: a recipe with the data that it names, or with arrays in memory.

use std::path::Path;
use std::sync::Arc;

use aleator_data::inputs::empty_classes;
use aleator_data::inputs::recognise::{Family, recognise_columns};
use aleator_data::{Arrays, ColumnNames, Sources};
use aleator_run::recipe::{Data, DataOverlay, InputSource, Overlay, Source};
use aleator_run::{Recipe, Resolved, load_over, paper_recipes};
use aleator_train::load_run;

use super::finetune::refuse_without_weights;
use crate::{Error, Watch};

/// How the names of the presets begin that train a network from pixels alone.
const FROM_PIXELS: &str = "images-";

/// The preset that judges labels without folds.
pub(crate) const TO_AUDIT: &str = "features-audit";

/// A recipe and its data.
///
/// ```no_run
/// use aleator::{Experiment, Watch};
///
/// // A preset whose data are named by settings, as on the command line:
/// let sets = ["data.train.features=x.npy", "data.train.labels=y.npy"].map(String::from);
/// let mut experiment = Experiment::load("features-full", &sets, None)?;
/// // Settings are fields:
/// experiment.recipe.head.samples = 500;
///
/// // The preset that suits whatever is found at a path:
/// let photos = Experiment::on_path("photos".as_ref(), None, &[], None, &mut Watch::silent())?;
/// # Ok::<(), aleator::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The recipe's name, usable as that of a directory.
    pub name: String,
    /// All settings.
    pub recipe: Recipe,
    /// Data in memory; `None` where the recipe names files.
    pub(crate) arrays: Option<Arc<Sources>>,
}

impl Experiment {
    /// Loads a preset or a recipe file. Each of `sets` overrides a key, as in `"head.rank=6"`;
    /// `seed` replaces the recipe's seeds. Relative paths start at the current directory.
    ///
    /// # Errors
    /// When the recipe does not exist, or says something unknown or impossible.
    pub fn load(recipe: &str, sets: &[String], seed: Option<u64>) -> Result<Self, Error> {
        refuse_without_weights(recipe, sets)?;
        Self::over(recipe, &Overlay::default(), sets, seed)
    }

    /// Looks at the data at a path and loads the recipe of this name, or the preset that suits
    /// them. What was found and chosen is a [`Choice`](crate::Event::Choice).
    ///
    /// # Errors
    /// When the data are of no known format, or as [`Experiment::load`].
    pub fn on_path(
        path: &Path,
        recipe: Option<&str>,
        sets: &[String],
        seed: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        Self::on_table(path, &ColumnNames::default(), recipe, sets, seed, watch)
    }

    /// [`Experiment::on_path`], where the caller says what some columns of a table are.
    ///
    /// ```no_run
    /// use aleator::{ColumnNames, Experiment, Watch};
    ///
    /// let columns = ColumnNames { label: Some("grape".into()), ..ColumnNames::default() };
    /// let path = "wine.csv".as_ref();
    /// let wine = Experiment::on_table(path, &columns, None, &[], None, &mut Watch::silent())?;
    /// # Ok::<(), aleator::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Experiment::on_path`], and when the table lacks a column that is named.
    pub fn on_table(
        path: &Path,
        columns: &ColumnNames,
        recipe: Option<&str>,
        sets: &[String],
        seed: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let (recipe, overlay) = data_at(path, columns, recipe, preset_to_train, sets, watch)?;
        Self::over(&recipe, &overlay, sets, seed)
    }

    /// Looks at the data at a path and loads the preset by which their labels are judged best.
    ///
    /// # Errors
    /// As [`Experiment::on_table`].
    pub fn to_audit(
        path: &Path,
        columns: &ColumnNames,
        sets: &[String],
        seed: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let (recipe, overlay) = data_at(path, columns, None, preset_to_audit, sets, watch)?;
        Self::over(&recipe, &overlay, sets, seed)
    }

    /// The recipe by which labels of these data are judged without folds.
    pub(crate) fn auditing(data: Data, seed: u64) -> Result<Self, Error> {
        let overlay = DataOverlay { train: Some(data.train.clone()), ..DataOverlay::default() };
        let overlay =
            Overlay { origin: "the audited data".to_string(), data: overlay, network: None };
        let mut experiment = Self::over(TO_AUDIT, &overlay, &[], Some(seed))?;
        experiment.recipe.data = data;
        Ok(experiment)
    }

    /// Loads a preset or a recipe file for data in memory.
    ///
    /// # Errors
    /// When the arrays do not fit together or hold impossible values, or as [`Experiment::load`].
    pub fn on_arrays(
        arrays: Arrays,
        recipe: &str,
        sets: &[String],
        seed: Option<u64>,
    ) -> Result<Self, Error> {
        // The link decides how labels are read, so the recipe is loaded before the arrays are.
        let train = Source::of(InputSource::Memory(String::new()));
        let data = DataOverlay { train: Some(train), ..DataOverlay::default() };
        let overlay = Overlay { origin: "arrays".to_string(), data, ..Overlay::default() };
        let mut experiment = Self::over(recipe, &overlay, sets, seed)?;
        let sources = Sources::in_memory(arrays, experiment.recipe.head.link)?;
        sources.record_in(&mut experiment.recipe.data);
        experiment.recipe.check()?;
        Ok(Self { arrays: Some(Arc::new(sources)), ..experiment })
    }

    /// The experiment of a trained run, with `sets` and `seed` as in [`Experiment::load`].
    ///
    /// # Errors
    /// When the run cannot be read, or as [`Experiment::load`].
    pub fn of_run(dir: &Path, sets: &[String], seed: Option<u64>) -> Result<Self, Error> {
        let (_, recipe) = load_run(dir)?;
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, recipe: absolute(recipe.with_sets(sets, seed)?)?, arrays: None })
    }

    pub(crate) fn over(
        recipe: &str,
        overlay: &Overlay,
        sets: &[String],
        seed: Option<u64>,
    ) -> Result<Self, Error> {
        let Resolved { name, recipe } = load_over(recipe, overlay, sets, seed)?;
        Ok(Self { name, recipe: absolute(recipe)?, arrays: None })
    }

    /// The seed of a workflow that trains with one.
    pub(crate) fn only_seed(&self, workflow: &str) -> Result<u64, Error> {
        match self.recipe.seeds[..] {
            [seed] => Ok(seed),
            _ => Err(Error::invalid(format!(
                "{workflow} needs one seed, and {} has several: choose one (--seed 0 on the command \
                 line)",
                self.name
            ))),
        }
    }
}

/// The preset that suits data of a family.
pub(crate) fn preset_to_train(family: Family) -> &'static str {
    match family {
        Family::Features => "features-full",
        Family::Multilabel => "multilabel-full",
        Family::Images => "images-full",
    }
}

/// The preset by which labels are judged best.
fn preset_to_audit(family: Family) -> &'static str {
    match family {
        Family::Features => TO_AUDIT,
        other => preset_to_train(other),
    }
}

/// Looks at the data at a path: the recipe of this name, or the preset that suits them, and what to
/// lay over it. Both are said to the user.
pub(crate) fn data_at(
    path: &Path,
    columns: &ColumnNames,
    recipe: Option<&str>,
    preset: fn(Family) -> &'static str,
    sets: &[String],
    watch: &mut Watch<'_>,
) -> Result<(String, Overlay), Error> {
    let recognised = recognise_columns(path, columns)?;
    watch.choice(&recognised.explanation);
    warn_of_empty_classes(&recognised.train.inputs, watch)?;
    let recipe = recipe.unwrap_or_else(|| preset(recognised.preset_family));
    // The size of the images belongs to an experiment of the paper, as its network does.
    let sized = paper_recipes().iter().any(|paper| paper.name == recipe);
    let mut overlay = recognised.overlay(path);
    if sized {
        overlay.data.image_size = None;
    }
    refuse_without_weights(recipe, sets)?;
    if let Some(sentence) = recognised.resizing().filter(|_| !sized) {
        watch.choice(&sentence);
    }
    let note = if sized { ", which keeps its own image size" } else { "" };
    watch.choice(&format!("recipe: {recipe}{note}"));
    let from_scratch = recipe.starts_with(FROM_PIXELS);
    if let Some(advice) = recognised.advice(path).filter(|_| from_scratch) {
        watch.choice(&advice);
    }
    Ok((recipe.to_string(), overlay))
}

/// Names the folders of classes that hold no image.
fn warn_of_empty_classes(inputs: &InputSource, watch: &mut Watch<'_>) -> Result<(), Error> {
    let InputSource::Images(paths) = inputs else { return Ok(()) };
    for path in paths.iter().filter(|path| path.is_dir()) {
        for empty in empty_classes(path)? {
            watch.warn(&format!("{} has no images: it is left out", empty.display()));
        }
    }
    Ok(())
}

/// Makes all paths absolute.
pub(crate) fn absolute(mut recipe: Recipe) -> Result<Recipe, Error> {
    let here = std::env::current_dir().map_err(Error::io(".".as_ref()))?;
    recipe.make_paths_absolute(&here)?;
    Ok(recipe)
}
