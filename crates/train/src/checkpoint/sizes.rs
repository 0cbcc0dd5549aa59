//! The sizes in the records of a run, compared with those of its weights.

use std::collections::BTreeMap;

use aleator_run::recipe::Recipe;
use aleator_run::{RunDir, RunError};

use super::files::CheckpointFiles;
use super::{NETWORK, NORMALIZATION, file_of};
use crate::TrainError;
use crate::experiment::{self, Shape};

/// Refuses records that describe another network than a checkpoint holds, before one is built.
pub(super) fn check(
    files: &CheckpointFiles,
    run: &RunDir,
    recipe: &Recipe,
) -> Result<(), TrainError> {
    let name = file_of(0, NETWORK[0]);
    let Some(misfit) = misfit(&files.shapes(&name)?, run, recipe) else { return Ok(()) };
    // A damaged file says nothing about the records.
    files.read(&name)?;
    Err(match misfit {
        Misfit::Network(message) => TrainError::Recipe(message),
        Misfit::Record(record, message) => {
            let file = files.path.join(&name);
            let message = format!("{message} {}; restore it as it was", file.display());
            RunError::damaged(&run.path().join(record), message).into()
        }
    })
}

enum Misfit {
    /// A network that cannot be built.
    Network(String),
    /// What a record says, and what the weights say.
    Record(&'static str, String),
}

fn misfit(shapes: &BTreeMap<String, Vec<usize>>, run: &RunDir, recipe: &Recipe) -> Option<Misfit> {
    let size = |name: &str| shapes.get(name)?.first().copied();
    let shape = Shape::of_run(run.info());
    let model = experiment::classifier(recipe, run.info().seed, shape);
    if let Err(message) = model.backbone.check() {
        return Some(Misfit::Network(format!("network.kind: {message}")));
    }
    let inputs = NORMALIZATION.iter().find_map(|[center, _]| size(center));
    if let Some(inputs) = inputs.filter(|inputs| *inputs != shape.input.len()) {
        let found = &run.info().input_shape;
        let message = format!("input_shape is {found:?}, and {inputs} numbers are expected by");
        return Some(Misfit::Record(RunDir::INFO, message));
    }
    let classes = size("output.head.mean.bias");
    if let Some(classes) = classes.filter(|classes| *classes != shape.classes) {
        let found = shape.classes;
        let message = format!("class_names lists {found} classes, and {classes} are expected by");
        return Some(Misfit::Record(RunDir::INFO, message));
    }
    let held = shapes.values().map(|shape| shape.iter().product::<usize>()).sum();
    if model.parameters().and_then(|counts| counts.total()).is_none_or(|total| total > held) {
        let message = format!("describes a network that is larger than the {held} numbers in");
        return Some(Misfit::Record("recipe.toml", message));
    }
    None
}
