//! A run from its first file to its last.

use std::path::Path;

use aleator_data::{DataSet, InputShape, Labels, Sources, Split};
use aleator_metrics::Evaluation;
use aleator_run::recipe::{Link, Recipe, Rule, Tune};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, RunDir, RunError, RunInfo, SetAside, SplitCounts,
};

use crate::evaluate::is_on;
use crate::experiment::{self, Shape};
use crate::method;
use crate::state::State;
use crate::{Checkpoints, EvaluateSettings, Job, Observer, Outcome, TrainError, evaluate, train};

/// Refuses a recipe that does not fit its data.
pub fn check_recipe(recipe: &Recipe, data: &DataSet) -> Result<(), TrainError> {
    let refuse = |message: String| Err(TrainError::Recipe(message));
    let model = experiment::checked(recipe, Shape::of(data))?;
    let more = if recipe.optimizer.rule.refits() { data.validation.len() } else { 0 };
    let (examples, batch) = (data.train.len() + more, recipe.training.batch);
    if matches!(recipe.optimizer.rule, Rule::Lbfgs { .. }) && batch < examples {
        return refuse(format!(
            "optimizer.kind = \"lbfgs\" needs all {examples} examples in one step, and \
             training.batch is {batch}: raise it, and training.parts with it"
        ));
    }
    // The weights and their gradients, at least.
    let numbers = model.parameters().and_then(|counts| counts.total()?.checked_mul(2));
    match numbers.map(|numbers| Vec::<f32>::new().try_reserve_exact(numbers)) {
        Some(Ok(())) => Ok(()),
        _ => refuse(
            "the network or the rank of the recipe is larger than the memory; lower network.hidden, \
             network.channels or head.rank"
                .to_string(),
        ),
    }
}

/// Makes the directory of a new run, with the recipe, the data's fingerprint and the sizes of the
/// splits. `set_aside` lists the examples that were left out of `data`.
pub fn create_run(
    path: &Path,
    recipe: &Recipe,
    seed: u64,
    data: &DataSet,
    set_aside: &[SetAside],
) -> Result<RunDir, TrainError> {
    check_recipe(recipe, data)?;
    check_weights(recipe, seed, data)?;
    method::of(recipe).check(data)?;
    let Described { class_names, input_shape, feature_names, examples } = described(data);
    let info = RunInfo {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed,
        fingerprint: data.fingerprint.clone(),
        link: recipe.head.link,
        likelihood: recipe.head.likelihood,
        noise: recipe.head.noise,
        class_names,
        input_shape,
        feature_names,
        examples,
        set_aside: set_aside.to_vec(),
        pretrained: recipe.network.pretrained.as_deref().map(hash_file).transpose()?,
    };
    let recipe = recipe.to_toml();
    Ok(RunDir::create(path, &CreateRun { recipe, info })?)
}

/// What `run.json` says of the data.
struct Described {
    class_names: Vec<String>,
    input_shape: Vec<usize>,
    feature_names: Option<Vec<String>>,
    examples: SplitCounts,
}

fn described(data: &DataSet) -> Described {
    Described {
        class_names: data.class_names.clone(),
        input_shape: match data.shape {
            InputShape::Features(width) => vec![width],
            InputShape::Image { channels, height, width } => vec![channels, height, width],
        },
        feature_names: data.train.inputs.feature_names().map(<[String]>::to_vec),
        examples: SplitCounts {
            train: data.train.len(),
            validation: data.validation.len(),
            test: data.test.as_ref().map_or(0, |split| split.len()),
        },
    }
}

/// The data of a run, without the images that were set aside when it started; from `sources` where
/// the caller has them open, or has them in memory.
///
/// # Errors
/// When the data cannot be read, or `sources` are not those of the recipe.
pub fn run_data(
    run: &RunDir,
    recipe: &Recipe,
    sources: Option<&Sources>,
) -> Result<DataSet, TrainError> {
    let data = match sources {
        Some(sources) => divide(sources, recipe)?,
        None => DataSet::open(&recipe.data, recipe.head.link)?,
    };
    Ok(data.leave_out(&run.info().set_aside)?)
}

/// Divides sources as a recipe says, unless they were opened for another kind of recipe.
pub(crate) fn divide(sources: &Sources, recipe: &Recipe) -> Result<DataSet, TrainError> {
    if sources.link() != recipe.head.link {
        let message = "head.link is not the one that the data were opened with";
        return Err(TrainError::Recipe(message.to_string()));
    }
    Ok(sources.divide(&recipe.data)?)
}

/// BLAKE3 of a file, in hexadecimal.
pub fn hash_file(path: &Path) -> Result<String, TrainError> {
    let mut hasher = blake3::Hasher::new();
    let read = |source| RunError::Io { action: "read", path: path.to_path_buf(), source };
    let file = aleator_run::open_file(path).map_err(read)?;
    hasher.update_reader(file).map_err(read)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Refuses pretrained weights that do not fit the network, before anything is written.
fn check_weights(recipe: &Recipe, seed: u64, data: &DataSet) -> Result<(), TrainError> {
    let Some(path) = recipe.network.pretrained.as_deref() else { return Ok(()) };
    State::start(recipe, seed, Shape::of(data)).load_network(path)
}

/// Refuses weights other than those that the run started from.
pub(crate) fn same_weights(run: &RunDir, path: &Path) -> Result<(), TrainError> {
    if run.info().pretrained.as_deref() == Some(hash_file(path)?.as_str()) {
        return Ok(());
    }
    Err(TrainError::Recipe(format!(
        "{}: has changed since the run in {} started; restore it, or start a new run",
        path.display(),
        run.path().display()
    )))
}

/// Opens a run, and reads its recipe.
pub fn load_run(path: &Path) -> Result<(RunDir, Recipe), TrainError> {
    let run = RunDir::open(path)?;
    let recipe = run.recipe()?.recipe;
    same_model(&run, &recipe)?;
    Ok((run, recipe))
}

/// Trains a run to its end from its newest checkpoint, and evaluates it; a run that is already
/// evaluated is left as it is, unless one of its checkpoints is damaged, which is made again.
///
/// The data must be those that the run started with.
pub fn finish_run(
    job: &Job<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome<Evaluation>, TrainError> {
    check_job(job)?;
    if !job.run.examples_path().exists() {
        job.run.write_examples(rows(job.data))?;
    }
    if let Some(evaluation) = job.run.evaluation()?
        && has_its_checkpoints(job.run)?
    {
        return Ok(Outcome::Finished(evaluation));
    }
    Ok(match train(job, observer)? {
        Outcome::Interrupted { step } => Outcome::Interrupted { step },
        Outcome::Finished(()) => {
            Outcome::Finished(evaluate(job, &EvaluateSettings::default(), observer)?)
        }
    })
}

/// Whether training is over and what it ended with is whole. Whoever removed all checkpoints has
/// no use for them.
fn has_its_checkpoints(run: &RunDir) -> Result<bool, TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    let Some(newest) = checkpoints.steps()?.pop() else { return checkpoints.is_empty() };
    if checkpoints.damage(newest)?.is_some() {
        return Ok(false);
    }
    let progress = checkpoints.progress(newest)?;
    Ok(progress.finished && checkpoints.lost(&progress)?.is_none())
}

/// Refuses a job whose run, recipe and data do not belong together.
pub(crate) fn check_job(job: &Job<'_>) -> Result<(), TrainError> {
    same_data(job.run, job.data)?;
    same_model(job.run, job.recipe)?;
    if job.data.train.link != job.recipe.head.link {
        let message = "head.link is not the one that the data were opened with";
        return Err(TrainError::Recipe(message.to_string()));
    }
    check_recipe(job.recipe, job.data)
}

/// Refuses data other than those that the run started with: a changed split would leak what was
/// held out.
///
/// # Errors
/// When the fingerprints differ, or `run.json` describes other data.
pub fn same_data(run: &RunDir, data: &DataSet) -> Result<(), TrainError> {
    let info = run.info();
    if info.fingerprint != data.fingerprint {
        return Err(TrainError::OtherData {
            dir: run.path().to_path_buf(),
            expected: info.fingerprint.clone(),
            found: data.fingerprint.clone(),
        });
    }
    let found = described(data);
    let fields = [
        ("class_names", info.class_names == found.class_names),
        ("input_shape", info.input_shape == found.input_shape),
        ("feature_names", info.feature_names == found.feature_names),
        ("examples", info.examples == found.examples),
    ];
    match fields.into_iter().find(|(_, same)| !same) {
        None => Ok(()),
        Some((field, _)) => Err(changed(run, field, "the data")),
    }
}

/// Refuses a recipe of another model than `run.json` names.
fn same_model(run: &RunDir, recipe: &Recipe) -> Result<(), TrainError> {
    let (info, head) = (run.info(), &recipe.head);
    if info.link != head.link {
        return Err(changed(run, "link", "recipe.toml"));
    }
    // Until settings are chosen the noise may be written to `run.json` alone.
    if info.noise != head.noise && recipe.tune == Tune::Off {
        return Err(changed(run, "noise", "recipe.toml"));
    }
    Ok(())
}

/// The error for a field of `run.json` that contradicts what it describes.
fn changed(run: &RunDir, field: &str, other: &str) -> TrainError {
    let path = run.path().join(RunDir::INFO);
    let message = format!("{field} is not that of {other}: one of the two was changed; restore it");
    RunError::damaged(&path, message).into()
}

/// The rows of `examples.csv`.
fn rows(data: &DataSet) -> impl Iterator<Item = ExampleRow> + '_ {
    let splits = [Some(&data.train), Some(&data.validation), data.test.as_ref()];
    splits.into_iter().flatten().flat_map(|split| {
        label_sets(split).into_iter().enumerate().map(|(at, label)| ExampleRow {
            id: split.ids.name(at).into_owned(),
            split: split.name,
            label: Some(label),
            clean_label: split.clean_labels.as_ref().map(|clean| vec![clean[at]]),
        })
    })
}

/// The classes that the given label of each example names.
pub fn label_sets(split: &Split) -> Vec<Vec<u32>> {
    match &split.labels {
        Labels::MultiHot(rows) => (0..split.len()).map(|row| rows.row(row).to_vec()).collect(),
        Labels::Soft(rows) if split.link == Link::Sigmoid => {
            let on = |row: &[f32]| {
                let classes = (0..).zip(row).filter(|(_, prob)| is_on(**prob));
                classes.map(|(class, _)| class).collect()
            };
            rows.values.chunks_exact(rows.classes).map(on).collect()
        }
        labels => {
            let hard = labels.hard(crate::evaluate::TIE_SEED, &split.ids);
            hard.unwrap_or_default().into_iter().map(|label| vec![label]).collect()
        }
    }
}
