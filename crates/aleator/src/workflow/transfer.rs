//! `transfer`: a trained network on other tasks, with a fresh head.

use std::path::{Path, PathBuf};

use aleator_data::inputs::recognise::recognise;
use aleator_run::recipe::{DataOverlay, Network, NetworkOverlay, Overlay};
use aleator_run::{Recipe, RunDir, Task, Tasks, write_json};
use aleator_train::group::{Group, Kind, Member};
use aleator_train::{FeatureExtractor, load_run};
use serde::Serialize;

use crate::workflow::group::start;
use crate::{Error, Experiment, TrainedRun, Watch};

/// How the tasks of a transfer are trained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferSettings {
    /// The recipe of every task, in place of the one that the tasks name.
    pub recipe: Option<String>,
    /// Keys of every task's recipe, as in `"schedule.epochs=5"`.
    pub sets: Vec<String>,
    /// The seed, in place of the recipe's.
    pub seed: Option<u64>,
    /// The step of the run's checkpoint, in place of the one that was evaluated.
    pub checkpoint: Option<usize>,
}

/// The accuracy on one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskScore {
    /// The task's name.
    pub task: String,
    /// On its validation split.
    pub validation_top1: f64,
    /// On its test split.
    pub test_top1: f64,
}

/// What [`transfer`] measured; `transfer.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    /// The tasks, in their order.
    pub tasks: Vec<TaskScore>,
    /// The mean of their test accuracies.
    pub mean_test_top1: f64,
    /// The file with the weights that every task began with; its folder names the step.
    pub weights: Option<PathBuf>,
    /// The runs of the tasks.
    #[serde(skip)]
    pub runs: Vec<TrainedRun>,
}

/// The recipe of tasks that name none: the VTAB-1k protocol.
const RECIPE: &str = "transfer/vtab";

/// Trains the network of a finished run on each task, with a fresh head. Writes `transfer.json`.
///
/// # Errors
/// When the run has no checkpoint, a task has no test split, or as [`fit`](crate::fit()).
pub fn transfer(
    run: &Path,
    tasks: &Tasks,
    settings: &TransferSettings,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Transfer, Error> {
    let (run, source) = load_run(run)?;
    let weights = FeatureExtractor::new(&run, &source, settings.checkpoint)?.weights_file;
    let overlay = network_of(&run, &source, &weights)?;
    let recipe = settings.recipe.as_ref().or(tasks.recipe.as_ref());
    let recipe = recipe.map_or(RECIPE, String::as_str);
    let mut members = vec![];
    for task in &tasks.tasks {
        let experiment = task_experiment(recipe, task, &overlay, settings, watch)
            .map_err(|error| error.at(format!("task {}", task.name)))?;
        let seed = experiment.only_seed("a transfer")?;
        members.push(Member { name: task.name.clone(), recipe: experiment.recipe, seed });
    }
    let group = Group::new(Kind::Transfer, members)?;
    let runs = start(out, &group, None, watch)?;
    conclude(out, &group, runs)
}

/// What makes a recipe's network that of the run, with inputs of the same shape.
fn network_of(run: &RunDir, source: &Recipe, weights: &Path) -> Result<Overlay, Error> {
    let pretrained = Some(weights.canonicalize().map_err(Error::io(weights))?);
    let mut data = DataOverlay::default();
    if let [channels, height, width] = run.info().input_shape[..] {
        if height != width {
            return Err(Error::invalid(format!(
                "{}: its network takes images of {width} × {height} pixels, and transfer resizes \
                 the images of the tasks to a square: train it with data.image_size",
                run.path().display()
            )));
        }
        let framing = &source.data.framing;
        data.image_size = Some(Some(height));
        data.channels = Some(channels);
        data.centre_crop = framing.centre_crop;
        data.filter = Some(framing.filter);
        data.pixel_values = Some(framing.values);
    }
    let network = NetworkOverlay::Whole(Network { pretrained, ..source.network.clone() });
    Ok(Overlay { origin: run.path().display().to_string(), data, network: Some(network) })
}

fn task_experiment(
    recipe: &str,
    task: &Task,
    network: &Overlay,
    settings: &TransferSettings,
    watch: &mut Watch<'_>,
) -> Result<Experiment, Error> {
    let mut overlay = network.clone();
    if let Some(path) = &task.data {
        let recognised = recognise(path)?;
        watch.choice(&format!("{}: {}", task.name, recognised.explanation));
        let of_run = &network.data;
        overlay.data = DataOverlay {
            image_size: of_run.image_size,
            channels: of_run.channels,
            centre_crop: of_run.centre_crop,
            filter: of_run.filter,
            pixel_values: of_run.pixel_values,
            ..recognised.overlay(path).data
        };
    }
    let sets: Vec<String> = task.sets.iter().chain(&settings.sets).cloned().collect();
    let experiment = Experiment::over(recipe, &overlay, &sets, settings.seed)?;
    if experiment.recipe.data.test.is_none() {
        return Err(Error::invalid(
            "has no test data to report on: name them by set = [\"data.test.images=PATH\"], or \
             hold out a part by set = [\"data.test.fraction=0.2\", \"data.test.seed=0\"]",
        ));
    }
    Ok(experiment)
}

/// The accuracies of the trained tasks, written to `transfer.json`.
pub(crate) fn conclude(
    out: &Path,
    group: &Group,
    runs: Vec<TrainedRun>,
) -> Result<Transfer, Error> {
    let score = |run: &TrainedRun| {
        let test = run.evaluation.test.as_ref();
        let test = test.ok_or_else(|| {
            Error::invalid("was not evaluated on test data").at(format!("task {}", run.name))
        })?;
        Ok(TaskScore {
            task: run.name.clone(),
            validation_top1: run.evaluation.validation.given.top1,
            test_top1: test.given.top1,
        })
    };
    let tasks = runs.iter().map(score).collect::<Result<Vec<_>, Error>>()?;
    let mean_test_top1 = tasks.iter().map(|task| task.test_top1).sum::<f64>() / tasks.len() as f64;
    let weights = group.members[0].recipe.network.pretrained.clone();
    let transfer = Transfer { tasks, mean_test_top1, weights, runs };
    write_json(&out.join("transfer.json"), &transfer)?;
    Ok(transfer)
}
