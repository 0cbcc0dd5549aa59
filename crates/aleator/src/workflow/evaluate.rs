//! `evaluate`: the scores of a trained run, computed again.

use std::path::Path;

use aleator_data::{Arrays, Sources};
use aleator_metrics::Evaluation;
use aleator_train::{EvaluateSettings, Job, load_run, run_data};

use crate::{Error, Watch};

/// Evaluates a trained run on its validation and test splits and replaces its predictions and
/// `evaluation.json`.
///
/// A run on arrays in memory needs the same arrays again.
///
/// # Errors
/// When the run cannot be read, or its data have changed.
pub fn evaluate(
    dir: &Path,
    settings: &EvaluateSettings,
    arrays: Option<Arrays>,
    watch: &mut Watch<'_>,
) -> Result<Evaluation, Error> {
    let (run, recipe) = load_run(dir)?;
    let _lock = run.lock()?;
    let arrays = arrays.map(|it| Sources::in_memory(it, recipe.head.link)).transpose()?;
    let data = run_data(&run, &recipe, arrays.as_ref())?;
    let job = Job { run: &run, recipe: &recipe, data: &data, stop: watch.stop() };
    Ok(aleator_train::evaluate(&job, settings, &mut |event| watch.training("", event))?)
}
