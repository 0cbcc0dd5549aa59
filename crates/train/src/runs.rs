//! A run from its first file to its last.

use std::path::Path;

use aleator_data::{DataSet, InputShape, Labels, Split};
use aleator_metrics::Evaluation;
use aleator_run::recipe::{Layers, Link, Recipe};
use aleator_run::{
    CreateRun, ExampleRow, FORMAT, Resolved, RunDir, RunError, RunInfo, SetAside, SplitCounts,
};

use crate::error::TrainError;
use crate::evaluate::{EVALUATION, EvaluateSettings, evaluate, is_on};
use crate::experiment::{self, Shape};
use crate::normalize::Normalization;
use crate::set_aside::without;
use crate::state::State;
use crate::{Ended, Job, Observer, train};

/// How [`finish_run`] came back.
#[derive(Clone, Debug)]
pub enum Finished {
    /// Trained and evaluated.
    Evaluated(Box<Evaluation>),
    /// Asked to stop; the state is saved.
    Interrupted {
        /// Steps done.
        step: usize,
    },
}

/// Refuses a recipe that its data do not fit.
pub fn check_recipe(recipe: &Recipe, data: &DataSet) -> Result<(), TrainError> {
    let refuse = |message: String| Err(TrainError::Recipe(message));
    let of_images = matches!(recipe.network.layers, Layers::Conv { .. } | Layers::Image { .. });
    if let (true, InputShape::Features(width)) = (of_images, &data.shape) {
        return refuse(format!(
            "the network of the recipe needs images, and the data are vectors of {width} \
             features; use network.kind = \"none\" or \"mlp\""
        ));
    }
    let shape = Shape { input: data.shape, classes: data.class_names.len() };
    let model = experiment::classifier(recipe, 0, &shape);
    model.backbone.check().or_else(|message| refuse(format!("network.kind: {message}")))
}

/// Makes the directory of a new run, with the recipe, the data's fingerprint and the splits.
/// `set_aside` says what is left out of the data already.
pub fn create_run(
    path: &Path,
    resolved: &Resolved,
    seed: u64,
    data: &DataSet,
    set_aside: &[SetAside],
) -> Result<RunDir, TrainError> {
    check_recipe(&resolved.recipe, data)?;
    check_weights(&resolved.recipe, seed, data)?;
    let head = &resolved.recipe.head;
    let info = RunInfo {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed,
        fingerprint: data.fingerprint.clone(),
        link: head.link,
        noise: head.noise,
        class_names: data.class_names.clone(),
        input_shape: match data.shape {
            InputShape::Features(width) => vec![width],
            InputShape::Image { channels, height, width } => vec![channels, height, width],
        },
        examples: SplitCounts {
            train: data.train.len(),
            validation: data.validation.len(),
            test: data.test.as_ref().map_or(0, |split| split.len()),
        },
        set_aside: set_aside.to_vec(),
        pretrained: resolved.recipe.network.pretrained.as_deref().map(hash_of).transpose()?,
    };
    let recipe = resolved.recipe.to_toml();
    Ok(RunDir::create(path, &CreateRun { recipe, info })?)
}

/// The data of a run that exists, without what was set aside when it began.
///
/// # Errors
/// When the data cannot be read.
pub fn open_data(run: &RunDir, recipe: &Recipe) -> Result<DataSet, TrainError> {
    let data = DataSet::open(&recipe.data, recipe.head.link)?;
    without(data, &run.info().set_aside)
}

/// BLAKE3 of a file of weights.
fn hash_of(path: &Path) -> Result<String, TrainError> {
    let mut hasher = blake3::Hasher::new();
    let read = |source| RunError::Io { action: "read", path: path.to_path_buf(), source };
    let file = std::fs::File::open(path).map_err(read)?;
    hasher.update_reader(file).map_err(read)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Refuses pretrained weights that do not fit the network, before anything is written.
fn check_weights(recipe: &Recipe, seed: u64, data: &DataSet) -> Result<(), TrainError> {
    let Some(path) = recipe.network.pretrained.as_deref() else { return Ok(()) };
    let shape = Shape { input: data.shape, classes: data.class_names.len() };
    let normalization = Normalization::identity(shape.input.len());
    State::start(recipe, seed, &shape, normalization).load_network(path)
}

/// Refuses weights that are not those that the run began with.
pub(crate) fn same_weights(run: &RunDir, path: &Path) -> Result<(), TrainError> {
    if run.info().pretrained.as_deref() == Some(hash_of(path)?.as_str()) {
        return Ok(());
    }
    Err(TrainError::Recipe(format!(
        "{}: has changed since the run in {} began; restore it, or start a new run",
        path.display(),
        run.path().display()
    )))
}

/// The recipe of a run that exists.
pub fn load_run(path: &Path) -> Result<(RunDir, Resolved), TrainError> {
    let run = RunDir::open(path)?;
    let resolved = run.recipe()?;
    Ok((run, resolved))
}

/// Trains a run to its end from wherever it stands, and evaluates it; a run that is evaluated
/// already is left as it is.
///
/// The data must be those that the run began with.
pub fn finish_run(job: &Job<'_>, observer: &mut Observer<'_>) -> Result<Finished, TrainError> {
    same_data(job.run, job.data)?;
    if !job.run.examples_path().exists() {
        job.run.write_examples(rows(job.data))?;
    }
    if job.run.path().join(EVALUATION).exists() {
        return Ok(Finished::Evaluated(Box::new(job.run.read_json(EVALUATION)?)));
    }
    match train(job, observer)? {
        Ended::Interrupted { step } => Ok(Finished::Interrupted { step }),
        Ended::Finished { .. } => {
            let settings = EvaluateSettings::default();
            Ok(Finished::Evaluated(Box::new(evaluate(job, &settings, observer)?)))
        }
    }
}

/// Refuses data that are not those that the run began with: a changed split would leak what was
/// held out.
pub(crate) fn same_data(run: &RunDir, data: &DataSet) -> Result<(), TrainError> {
    let expected = &run.info().fingerprint;
    if *expected == data.fingerprint {
        return Ok(());
    }
    Err(TrainError::OtherData {
        dir: run.path().to_path_buf(),
        expected: expected.clone(),
        found: data.fingerprint.clone(),
    })
}

/// The rows of `examples.csv`.
fn rows(data: &DataSet) -> impl Iterator<Item = ExampleRow> + '_ {
    let of = |split: aleator_run::Split, examples: &'_ Split| {
        let labels = label_sets(examples);
        let clean = examples.clean_labels.clone();
        let row = move |(index, label): (usize, Vec<u32>), id: String| ExampleRow {
            id,
            split,
            label: Some(label),
            clean_label: clean.as_ref().map(|clean| vec![clean[index]]),
        };
        let ids: Vec<String> =
            (0..examples.len()).map(|at| examples.ids.name(at).to_string()).collect();
        labels.into_iter().enumerate().zip(ids).map(move |(label, id)| row(label, id))
    };
    let train = of(aleator_run::Split::Train, &data.train);
    let validation = of(aleator_run::Split::Validation, &data.validation);
    let test = data.test.as_ref().map(|split| of(aleator_run::Split::Test, split));
    train.chain(validation).chain(test.into_iter().flatten())
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
