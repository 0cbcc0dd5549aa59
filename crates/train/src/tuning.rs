//! Settings that suit the data: how features are scaled, the decays and the rank, chosen by the
//! loss on held-out examples with their given labels.
//!
//! The temperature is not searched: probabilities depend on μ/τ and Σ/τ² alone, so another τ is
//! another decay.

mod ledger;
mod search;
mod trials;

use aleator_data::Split;
use aleator_data::variation::Variation;
use aleator_run::RunDir;
use aleator_run::recipe::{Link, Noise, Normalize, Recipe, Rule};
pub use aleator_run::tuning::{NoiseSettings, Settings, Trial, Tuning};

use crate::experiment::Shape;
use crate::{Job, Observer, Outcome, TrainError};

use ledger::Ledger;
use search::{Space, search};
use trials::{Bench, Fold, Unfinished};

/// From this many validation examples on, they decide; fewer would let chance decide, and the
/// training split is divided into folds.
const ENOUGH: usize = 2_000;
/// Parts of the examples, each held out once; more where there are fewer than `FEW` examples, whose
/// fits are short and suffer most from what is held out. Then chance also decides by how examples
/// are divided, so they are divided several times, until about `FEW` were held out, as far as
/// fits of this many products take no time.
const FOLDS: usize = 3;
const FOLDS_OF_FEW: usize = 5;
const FEW: usize = 1_000;
const MOST_DIVISIONS: usize = 4;
const MOST_FOLDS: usize = FOLDS_OF_FEW * MOST_DIVISIONS;
const MOST_PRODUCTS: usize = 1 << 20;
/// Trials learn from at most this many examples, and are measured on at most a fifth of it.
const MOST: usize = 50_000;
/// Trials are compared, not reported: they may be less exact than the run.
const SAMPLES: usize = 32;
const HELD_OUT_SAMPLES: usize = 256;
const TOLERANCE: f64 = 1e-3;

/// Writes settings into the recipe of a trial.
fn write_to_trial(settings: &Settings, recipe: &mut Recipe) {
    settings.write_to(recipe, 1.0);
    recipe.head.samples = recipe.head.samples.min(SAMPLES);
    recipe.evaluation.samples = recipe.evaluation.samples.min(HELD_OUT_SAMPLES);
    if let Rule::Lbfgs { tolerance, .. } = &mut recipe.optimizer.rule {
        *tolerance = tolerance.max(TOLERANCE);
    }
}

/// Chooses the settings of a run.
///
/// # Errors
/// When the data cannot be read, or a loss is not finite.
pub(crate) fn tune(
    job: &Job<'_>,
    observer: &mut Observer<'_>,
) -> Result<Outcome<Tuning>, TrainError> {
    match choose(job, observer) {
        Ok(chosen) => Ok(Outcome::Finished(chosen)),
        Err(Unfinished::Stopped) => Ok(Outcome::Interrupted { step: 0 }),
        Err(Unfinished::Failed(error)) => Err(error),
    }
}

/// Writes `tuning.json` and the chosen settings into the recipe of a run; they may have been
/// chosen for another one, with another seed or another fold.
pub(crate) fn write(
    tuning: &Tuning,
    run: &mut RunDir,
    recipe: &Recipe,
    examples: usize,
) -> Result<Recipe, TrainError> {
    let mut recipe = recipe.clone();
    tuning.chosen.write_to(&mut recipe, tuning.trained_on as f64 / examples as f64);
    run.write_json(Tuning::NAME, tuning)?;
    run.replace_recipe(&recipe)?;
    ledger::remove(run.path())?;
    Ok(recipe)
}

fn choose(job: &Job<'_>, observer: &mut Observer<'_>) -> Result<Tuning, Unfinished> {
    let train = &job.data.train;
    let seed = job.run.info().seed;
    let folds = folds(job);
    let trained_on = folds[0].train.len();
    let space = Space { normalize: scales(job.recipe, train)?, noise: noise(job) };
    let mut bench = Bench {
        recipe: job.recipe,
        seed,
        shape: Shape { input: job.data.shape, classes: train.classes },
        folds,
        ledger: Ledger::open(job.run.path()),
        stop: job.stop,
        observer,
    };
    let chosen = match search(&space, &mut bench) {
        Ok(chosen) => chosen,
        Err(unfinished) => {
            bench.ledger.save()?;
            return Err(unfinished);
        }
    };
    let (folds, trials) = (bench.folds.len(), bench.ledger.trials());
    Ok(Tuning { trained_on, folds, trials, chosen })
}

/// The examples of the trials: the validation split decides if it is large, else folds. Of the
/// examples that will be trained on, that is; a validation split that never will be is measured by
/// the models of all folds.
fn folds(job: &Job<'_>) -> Vec<Fold> {
    let (train, validation) = (job.data.train.sample(MOST), &job.data.validation);
    let all = job.data.train_and_validation().filter(|_| job.recipe.optimizer.rule.refits());
    let apart = all.is_none();
    let examples = all.as_ref().map_or(train.len(), Split::len);
    let count = if examples < FEW { FOLDS_OF_FEW } else { FOLDS };
    if validation.len() >= ENOUGH || train.len() < count {
        return vec![Fold::new(train, vec![(validation.sample(MOST / FOLDS), 1.0)])];
    }
    let all = all.unwrap_or(train);
    let products = examples * job.data.shape.len() * all.classes;
    let divisions = FEW.div_ceil(examples).min(MOST_PRODUCTS / products).clamp(1, MOST_DIVISIONS);
    let weight = 1.0 / count as f64;
    let fold = |(rest, held_out): (Split, Split)| {
        let validation = apart.then(|| (Split::clone(validation), weight));
        Fold::new(rest, [(held_out, 1.0)].into_iter().chain(validation).collect())
    };
    (0..divisions).flat_map(|seed| all.folds(count, seed as u64)).map(fold).collect()
}

/// The ways to scale the features that may matter, the recipe's first.
fn scales(recipe: &Recipe, train: &Split) -> Result<Vec<Normalize>, TrainError> {
    let sample = train.sample(MOST);
    Ok(Variation::of(&sample.inputs, &sample.rows)?.scales(recipe.network.normalize))
}

/// The ranks to search. Under softmax only differences of utilities count, so K − 1 factors are
/// as good as any number.
fn noise(job: &Job<'_>) -> Option<Option<(usize, usize)>> {
    let classes = job.data.train.classes;
    let most = match job.recipe.head.link {
        Link::Softmax => classes.saturating_sub(1).max(1),
        Link::Sigmoid => classes,
    };
    match job.recipe.head.noise {
        Noise::None => None,
        Noise::Diagonal => Some(None),
        Noise::LowRank { rank } | Noise::SharedLowRank { rank } => {
            Some(Some((rank.min(most), most)))
        }
    }
}
