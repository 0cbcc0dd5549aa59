//! `transfer`: a trained network on other tasks, with a fresh head.

use std::path::{Path, PathBuf};

use aleator_data::DataSet;
use aleator_data::inputs::recognise::recognise;
use aleator_run::recipe::{DataOverlay, Layers, Network, NetworkOverlay, Overlay};
use aleator_run::{Recipe, RunDir, Task, Tasks, write_json};
use aleator_train::group::{Group, Kind, Member};
use aleator_train::{FeatureExtractor, check_recipe, load_run};
use serde::Serialize;

use crate::workflow::group::start;
use crate::{Error, Experiment, TrainedRun, Watch};

/// How the tasks of a transfer are trained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferSettings {
    /// The recipe of every task, in place of those that the tasks name.
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
    let transferred = Transferred::open(run, tasks, settings)?;
    let mut members = vec![];
    for task in &tasks.tasks {
        let experiment = transferred
            .experiment(task, watch)
            .map_err(|error| error.at(format!("task {}", task.name)))?;
        let seed = experiment.only_seed("a transfer")?;
        members.push(Member { name: task.name.clone(), recipe: experiment.recipe, seed });
    }
    let group = Group::new(Kind::Transfer, members)?;
    let runs = start(out, &group, None, watch)?;
    conclude(out, &group, runs)
}

/// What a task would be trained with.
#[derive(Clone, Debug)]
pub struct TaskPlan {
    /// The name of its recipe.
    pub recipe_name: String,
    /// All its settings.
    pub recipe: Recipe,
    /// The number of classes.
    pub classes: usize,
    /// The numbers of examples to learn from, of the validation split and of the test split.
    pub examples: [usize; 3],
}

/// What [`transfer`] would train each task with. The data of every task are opened, and nothing is
/// written; a task that cannot be trained has its error, and the others are looked at all the same.
///
/// # Errors
/// When the run has no checkpoint.
pub fn plan_transfer(
    run: &Path,
    tasks: &Tasks,
    settings: &TransferSettings,
    watch: &mut Watch<'_>,
) -> Result<Vec<Result<TaskPlan, Error>>, Error> {
    let transferred = Transferred::open(run, tasks, settings)?;
    let mut plan = |task: &Task| {
        let Experiment { recipe, .. } = transferred.experiment(task, watch)?;
        let data = DataSet::open(&recipe.data, recipe.head.link)?;
        check_recipe(&recipe, &data)?;
        let test = data.test.as_ref().map_or(0, |split| split.len());
        Ok(TaskPlan {
            recipe_name: transferred.recipe_of(task).to_string(),
            recipe,
            classes: data.class_names.len(),
            examples: [data.train.len(), data.validation.len(), test],
        })
    };
    Ok(tasks.tasks.iter().map(&mut plan).collect())
}

/// The network of a run, and what it is trained with on other tasks.
struct Transferred<'a> {
    tasks: &'a Tasks,
    settings: &'a TransferSettings,
    /// The network, with the channels and pixel values that it was trained on.
    network: Overlay,
    /// How the run's images were brought to one size: for recipes that do not say it.
    framing: DataOverlay,
    /// Whether the network takes inputs of one size only.
    is_sized: bool,
}

impl<'a> Transferred<'a> {
    fn open(run: &Path, tasks: &'a Tasks, settings: &'a TransferSettings) -> Result<Self, Error> {
        let (run, source) = load_run(run)?;
        let weights = FeatureExtractor::new(&run, &source, settings.checkpoint)?.weights_file;
        let pretrained = Some(weights.canonicalize().map_err(Error::io(&weights))?);
        // Head and network learn, also where the run itself had frozen the network.
        let network = Network { pretrained, frozen: false, ..source.network.clone() };
        let (mut data, mut framing) = (DataOverlay::default(), DataOverlay::default());
        if let [channels, height, width] = run.info().input_shape[..] {
            data.channels = Some(channels);
            data.pixel_values = Some(source.data.framing.values);
            framing.image_size = (height == width).then_some(Some(height));
            framing.centre_crop = source.data.framing.centre_crop;
            framing.filter = Some(source.data.framing.filter);
        }
        let is_sized = matches!(network.layers, Layers::Mlp { .. });
        Self::check_square(&run, is_sized)?;
        let network = Some(NetworkOverlay::Whole(network));
        let network = Overlay { origin: run.path().display().to_string(), data, network };
        Ok(Self { tasks, settings, network, framing, is_sized })
    }

    /// Refuses a network that takes oblong images only.
    fn check_square(run: &RunDir, is_sized: bool) -> Result<(), Error> {
        match run.info().input_shape[..] {
            [_, height, width] if is_sized && height != width => Err(Error::invalid(format!(
                "{}: its network takes images of {width} × {height} pixels, and transfer resizes \
                 the images of the tasks to a square: train it with data.image_size",
                run.path().display()
            ))),
            _ => Ok(()),
        }
    }

    fn recipe_of(&self, task: &'a Task) -> &'a str {
        let named = [&self.settings.recipe, &task.recipe, &self.tasks.recipe];
        named.into_iter().flatten().next().map_or(RECIPE, String::as_str)
    }

    /// The recipe of a task over its data: the size and framing of its images are the recipe's own,
    /// and only a recipe without any gets those of the run.
    fn experiment(&self, task: &Task, watch: &mut Watch<'_>) -> Result<Experiment, Error> {
        let mut overlay = self.network.clone();
        if let Some(path) = &task.data {
            let recognised = recognise(path)?;
            watch.choice(&format!("{}: {}", task.name, recognised.explanation));
            let DataOverlay { channels, pixel_values, .. } = overlay.data;
            let found = recognised.overlay(path).data;
            overlay.data = DataOverlay { image_size: None, channels, pixel_values, ..found };
        }
        let sets: Vec<String> = task.sets.iter().chain(&self.settings.sets).cloned().collect();
        let load = |overlay: &Overlay| {
            Experiment::over(self.recipe_of(task), overlay, &sets, self.settings.seed)
        };
        let mut experiment = load(&overlay)?;
        let of_images = !experiment.recipe.data.train.inputs.are_features();
        if of_images && (self.is_sized || experiment.recipe.data.framing.size.is_none()) {
            let DataOverlay { image_size, centre_crop, filter, .. } = self.framing;
            overlay.data = DataOverlay { image_size, centre_crop, filter, ..overlay.data };
            experiment = load(&overlay)?;
        }
        if experiment.recipe.data.test.is_none() {
            return Err(Error::invalid(
                "has no test data to report on: name them by set = [\"data.test.images=PATH\"], \
                 or hold out a part by set = [\"data.test.fraction=0.2\", \"data.test.seed=0\"]",
            ));
        }
        Ok(experiment)
    }
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
