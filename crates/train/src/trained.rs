//! Which checkpoint of a trained run is used. A damaged one is an error: another one is taken only
//! when the caller names its step.

use aleator_metrics::Evaluation;
use aleator_run::RunDir;
use aleator_run::recipe::{EvaluatedWeights, Recipe};

use crate::state::State;
use crate::{Checkpoints, TrainError};

/// The state to evaluate: of the step that the caller names, or else of the best or the last
/// checkpoint.
pub(crate) fn state_to_evaluate(
    run: &RunDir,
    recipe: &Recipe,
    weights: EvaluatedWeights,
    checkpoint: Option<usize>,
) -> Result<State, TrainError> {
    let step = match checkpoint {
        Some(step) => step,
        None => {
            let (step, finished) = chosen_step(run, weights)?;
            // What is written must not replace the scores of weights that were trained longer.
            let written = run.evaluation().ok().flatten().and_then(|it| it.step);
            match written.filter(|written| *written > step && !finished) {
                Some(written) => return Err(not_yet_trained_again(run, step, written)),
                None => step,
            }
        }
    };
    state_of(run, recipe, step)
}

/// The state that a run's evaluation is of; before there is one, as [`state_to_evaluate`].
pub(crate) fn evaluated_state(
    run: &RunDir,
    recipe: &Recipe,
    evaluation: Option<&Evaluation>,
    checkpoint: Option<usize>,
) -> Result<State, TrainError> {
    let evaluated = checkpoint.or_else(|| evaluation.and_then(|it| it.step));
    let step = match evaluated {
        Some(step) => step,
        None => chosen_step(run, recipe.evaluation.weights)?.0,
    };
    state_of(run, recipe, step)
}

/// The state of a step; an error says what to do.
pub(crate) fn state_of(run: &RunDir, recipe: &Recipe, step: usize) -> Result<State, TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    if !checkpoints.steps()?.contains(&step) {
        let error = TrainError::checkpoint(&checkpoints.path(step), "is missing");
        return Err(advised(error, run, step));
    }
    let loaded = checkpoints.load(step, run, recipe, |_| {});
    loaded.map(|(state, _)| state).map_err(|error| advised(error, run, step))
}

/// The step of the best or the last checkpoint, by what the newest one says, and whether training
/// is over.
fn chosen_step(run: &RunDir, weights: EvaluatedWeights) -> Result<(usize, bool), TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    let Some(newest) = checkpoints.steps()?.pop() else {
        let reason = "there is no checkpoint: train first, or continue with `aleator resume`";
        return Err(TrainError::checkpoint(&run.checkpoints_path(), reason));
    };
    let progress = checkpoints.progress(newest).map_err(|error| advised(error, run, newest))?;
    let step = match (weights, progress.best) {
        (EvaluatedWeights::Best, Some(best)) => best.step,
        _ => newest,
    };
    Ok((step, progress.finished))
}

/// The same error; of a damaged checkpoint with what to do about it.
fn advised(error: TrainError, run: &RunDir, step: usize) -> TrainError {
    let TrainError::Checkpoint { path, reason } = error else { return error };
    let steps = Checkpoints::new(run.checkpoints_path()).steps().unwrap_or_default();
    let others: Vec<String> =
        steps.iter().filter(|it| **it != step).map(usize::to_string).collect();
    let instead = match &others[..] {
        [] => String::new(),
        _ => format!("; --checkpoint STEP takes another one: {}", others.join(", ")),
    };
    let dir = run.path().display();
    let reason = format!(
        "{reason}\n`aleator resume {dir}` makes the checkpoint of step {step} again{instead}."
    );
    TrainError::Checkpoint { path, reason }
}

fn not_yet_trained_again(run: &RunDir, step: usize, written: usize) -> TrainError {
    let dir = run.path().display();
    let reason = format!(
        "the newest checkpoint leads to step {step}, and evaluation.json is of step {written}, \
         which is not trained again yet\n`aleator resume {dir}` does that; --checkpoint {step} \
         evaluates what there is, and writes nothing."
    );
    TrainError::checkpoint(&run.checkpoints_path(), reason)
}
