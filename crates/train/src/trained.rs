//! Which checkpoint of a trained run is used. A damaged one is an error: another one is taken only
//! when the caller names its step.

use aleator_metrics::Evaluation;
use aleator_run::recipe::{EvaluatedNetworks, EvaluatedWeights, Recipe};
use aleator_run::{EVALUATION, RunDir};

use crate::experiment::Shape;
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
    if let Some(step) = checkpoint {
        return named_state(run, recipe, step);
    }
    let (step, finished) = chosen_step(run, weights)?;
    // What is written must not replace the scores of weights that were trained longer.
    let written = run.evaluation().ok().flatten().and_then(|it| it.step);
    match written.filter(|written| *written > step && !finished) {
        Some(written) => Err(not_yet_trained_again(run, step, written)),
        None => state_of(run, recipe, step),
    }
}

/// The step of the best checkpoint where `weights` are the last, and the other way round; it may be
/// the same one. None where there is no choice: the run was never validated, or goes on to train
/// on the validation examples, so that only the last weights count.
pub(crate) fn other_step(
    run: &RunDir,
    recipe: &Recipe,
    weights: EvaluatedWeights,
) -> Result<Option<usize>, TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    let Some(newest) = checkpoints.steps()?.pop() else { return Ok(None) };
    let best = checkpoints.progress(newest)?.best.filter(|_| !recipe.optimizer.rule.refits());
    Ok(best.map(|best| match weights.other() {
        EvaluatedWeights::Best => best.step,
        EvaluatedWeights::Last => newest,
    }))
}

/// The state that a run's evaluation is of; before there is one, as [`state_to_evaluate`].
pub(crate) fn evaluated_state(
    run: &RunDir,
    recipe: &Recipe,
    evaluation: Option<&Evaluation>,
    checkpoint: Option<usize>,
) -> Result<State, TrainError> {
    if let Some(step) = checkpoint {
        return named_state(run, recipe, step);
    }
    match evaluation.and_then(|it| it.step) {
        Some(step) => state_of(run, recipe, step),
        None => state_of(run, recipe, chosen_step(run, recipe.evaluation.weights)?.0),
    }
}

/// The state of a step that the caller names.
fn named_state(run: &RunDir, recipe: &Recipe, step: usize) -> Result<State, TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    let steps = checkpoints.steps()?;
    if !steps.contains(&step) {
        let reason = format!("there is no such checkpoint, but those of steps {}", listed(&steps));
        return Err(TrainError::checkpoint(&checkpoints.path(step), reason));
    }
    checkpoints.load(step, run, recipe, |state| prepare(state, run, recipe)).map(|(state, _)| state)
}

/// The state of a step that the records of the run name; an error says what to do.
pub(crate) fn state_of(run: &RunDir, recipe: &Recipe, step: usize) -> Result<State, TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    if checkpoints.is_empty()? {
        return Err(untrained(run));
    }
    let loaded = checkpoints.load(step, run, recipe, |state| prepare(state, run, recipe));
    loaded.map(|(state, _)| state).map_err(|error| advised(error, run, step))
}

/// The step of the best or the last checkpoint, by what the newest one says, and whether training
/// is over.
fn chosen_step(run: &RunDir, weights: EvaluatedWeights) -> Result<(usize, bool), TrainError> {
    let checkpoints = Checkpoints::new(run.checkpoints_path());
    let Some(newest) = checkpoints.steps()?.pop() else { return Err(untrained(run)) };
    let progress = checkpoints.progress(newest).map_err(|error| advised(error, run, newest))?;
    let step = match (weights, progress.best) {
        (EvaluatedWeights::Best, Some(best)) => best.step,
        _ => newest,
    };
    Ok((step, progress.finished))
}

/// Gives a fresh state the further networks that are evaluated; what a method keeps is not needed.
fn prepare(state: &mut State, run: &RunDir, recipe: &Recipe) {
    if recipe.evaluation.networks == EvaluatedNetworks::All {
        for _ in 1..recipe.method.networks() {
            state.add_network(recipe, run.info().seed, Shape::of_run(run.info()));
        }
    }
}

fn untrained(run: &RunDir) -> TrainError {
    let mut reason =
        format!("there is no checkpoint: continue with `aleator resume {}`", run.path().display());
    if run.path().join(EVALUATION).exists() {
        // Resuming leaves a run that is evaluated and has no checkpoints as it is.
        reason += ", after removing evaluation.json, to train the run again";
    }
    TrainError::checkpoint(&run.checkpoints_path(), reason)
}

/// The same error; of a damaged checkpoint with what to do about it.
fn advised(error: TrainError, run: &RunDir, step: usize) -> TrainError {
    let TrainError::Checkpoint { path, reason } = error else { return error };
    let mut others = Checkpoints::new(run.checkpoints_path()).steps().unwrap_or_default();
    others.retain(|other| *other != step);
    let instead = match &others[..] {
        [] => String::new(),
        others => format!("; --checkpoint STEP takes another one: {}", listed(others)),
    };
    let dir = run.path().display();
    let reason = format!(
        "{reason}\n`aleator resume {dir}` makes the checkpoint of step {step} again{instead}."
    );
    TrainError::Checkpoint { path, reason }
}

fn listed(steps: &[usize]) -> String {
    let steps: Vec<String> = steps.iter().map(usize::to_string).collect();
    steps.join(", ")
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
