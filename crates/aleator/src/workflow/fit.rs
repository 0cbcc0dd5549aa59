//! `fit`: train a recipe, one run for each seed.

use std::path::{Path, PathBuf};

use aleator_metrics::Evaluation;
use aleator_report::ensemble::ensemble_once;
use aleator_run::{RunDir, Split};
use aleator_train::group::{self, Group, Kind};

use crate::workflow::group::start;
use crate::{Error, Experiment, TrainedRun, Watch};

/// What [`fit`] trained.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The directory of the run, or of all runs.
    pub dir: PathBuf,
    /// One run for each seed.
    pub runs: Vec<TrainedRun>,
    /// The directory and the scores of the runs' ensemble, where there are several.
    pub ensemble: Option<(PathBuf, Evaluation)>,
}

/// Trains and evaluates an experiment in a new directory; with several seeds, also their ensemble,
/// if the recipe keeps complete predictions.
///
/// Stopped or killed at any point, [`resume`](crate::resume) continues it to the same bits.
///
/// # Errors
/// When the data cannot be read or do not fit the recipe, the directory exists, or the loss is not
/// finite; [`Error::Interrupted`] when the watch stopped it.
pub fn fit(experiment: &Experiment, out: &Path, watch: &mut Watch<'_>) -> Result<Fit, Error> {
    let group = Group::new(Kind::Seeds, group::members("", &experiment.recipe))?;
    let runs = start(out, &group, experiment.arrays.as_deref(), watch)?;
    conclude(out, runs)
}

/// What is left to do when all runs are trained.
pub(crate) fn conclude(out: &Path, runs: Vec<TrainedRun>) -> Result<Fit, Error> {
    let kept = |run: &TrainedRun| -> Result<bool, Error> {
        Ok(!RunDir::open(&run.dir)?.keeps_no_predictions(Split::Validation))
    };
    // Without the predictions of the members there is nothing to average.
    let all_kept = runs.iter().map(kept).collect::<Result<Vec<_>, _>>()?;
    let ensemble = if runs.len() > 1 && all_kept.iter().all(|kept| *kept) {
        let dirs: Vec<PathBuf> = runs.iter().map(|run| run.dir.clone()).collect();
        let dir = out.join("ensemble");
        let evaluation = ensemble_once(&dirs, &dir)?;
        Some((dir, evaluation))
    } else {
        None
    };
    Ok(Fit { dir: out.to_path_buf(), runs, ensemble })
}
