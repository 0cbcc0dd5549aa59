//! `evaluate`: the scores of a trained run, computed again.

use std::path::Path;

use aleator_data::inputs::recognise::recognise;
use aleator_data::{Arrays, Sources};
use aleator_metrics::Evaluation;
use aleator_run::recipe::Source;
use aleator_train::{EvaluateSettings, Job, NewScores, load_run, run_data};

use crate::{Error, Predictor, Watch};

/// Evaluates a trained run on its validation and test splits and replaces its predictions and
/// `evaluation.json`; those of a checkpoint that the settings name are only returned.
///
/// A run on arrays in memory needs the same arrays again.
///
/// # Errors
/// When the run cannot be read, its checkpoint is damaged, or its data have changed.
pub fn evaluate(
    dir: &Path,
    settings: &EvaluateSettings,
    arrays: Option<Arrays>,
    watch: &mut Watch<'_>,
) -> Result<Evaluation, Error> {
    let (run, recipe) = load_run(dir)?;
    let _lock = run.lock()?;
    let arrays = arrays.map(|it| Sources::in_memory(it, recipe.head.link)).transpose()?;
    let data = run_data(&run, &recipe, arrays.as_ref())
        .map_err(|error| Error::from(error).if_moved(dir))?;
    let job = Job { run: &run, recipe: &recipe, data: &data, stop: watch.stop() };
    Ok(aleator_train::evaluate(&job, settings, &mut |event| watch.training("", event))?)
}

/// Scores a trained run, or an ensemble, on labelled data that it has not seen. The run is left as
/// it is, and its own data need not be there.
///
/// `data` is recognised as by [`Experiment::on_path`](crate::Experiment::on_path). With `labels`, it
/// is only the embeddings or images, and `labels` is the file with their labels, or `file#column`.
/// `checkpoint` is as for [`Predictor::open_at`].
///
/// ```no_run
/// use aleator::{Watch, evaluate_on};
///
/// let (run, data) = ("run".as_ref(), "new.npy".as_ref());
/// let scores = evaluate_on(run, data, Some("new.csv#category"), None, &mut Watch::silent())?;
/// println!("accuracy {:.3}, ECE {:.3}", scores.label.top1, scores.label.ece);
/// # Ok::<(), aleator::Error>(())
/// ```
///
/// # Errors
/// When the data cannot be read, have another shape than the run's, or name other classes.
pub fn evaluate_on(
    dir: &Path,
    data: &Path,
    labels: Option<&str>,
    checkpoint: Option<usize>,
    watch: &mut Watch<'_>,
) -> Result<NewScores, Error> {
    let predictor = Predictor::open_at(dir, checkpoint)?;
    let source = match labels {
        Some(labels) => {
            Source { labels: Some(labels.to_string()), ..Source::of(predictor.inputs_at(data)) }
        }
        None => {
            let found = recognise(data).map_err(|error| {
                let hint = "If the labels are in a file of another name, give it by --labels";
                Error::invalid(format!("{error}\n{hint}"))
            })?;
            found.train
        }
    };
    let split = predictor.labelled(&source)?;
    Ok(predictor.predictor.score(&split.into(), &mut |event| watch.training("", event))?)
}
