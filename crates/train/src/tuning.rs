//! Settings that suit the data: how features are scaled, the decays and the rank, chosen by the
//! loss on held-out examples with their given labels.
//!
//! The temperature is not searched: probabilities depend on μ/τ and Σ/τ² alone, so another τ is
//! another decay.

mod ledger;
mod loss;
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

/// This many held-out examples decide; fewer would let chance decide. A validation split that has
/// fewer is not enough, and the examples are divided into folds.
const ENOUGH: usize = 2_000;
/// Parts of the examples, of which as many are held out in turn as are enough; more parts where
/// there are fewer than `FEW` examples, whose fits are short and suffer most from what is held out.
/// Then chance also decides by how examples are divided, so they are divided several times, until
/// about `FEW` were held out, as far as fits of this many products take no time.
const FOLDS: usize = 3;
const FOLDS_OF_FEW: usize = 5;
const FEW: usize = 1_000;
const MOST_DIVISIONS: usize = 4;
const MOST_FOLDS: usize = FOLDS_OF_FEW * MOST_DIVISIONS;
const MOST_PRODUCTS: usize = 1 << 20;
/// Trials learn from at most this many examples, and are measured on at most a third of it.
const MOST: usize = 50_000;
/// And from no more than take this many products at each evaluation, about half a second on two
/// cores, but at least from these of each class.
const MOST_PRODUCTS_OF_A_TRIAL: usize = 1 << 34;
const LEAST_OF_A_CLASS: usize = 10;
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
        ledger: Ledger::open(job.run.path())?,
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
    let (train, validation) = (&job.data.train, &job.data.validation);
    let most = most_examples(job.recipe.head.noise, job.data.shape.len(), train.classes);
    let joined = job.data.train_and_validation().filter(|_| job.recipe.optimizer.rule.refits());
    let apart = joined.is_none();
    let all = joined.unwrap_or_else(|| Split::clone(train));
    let examples = all.len();
    let count = if examples < FEW { FOLDS_OF_FEW } else { FOLDS };
    if validation.len() >= ENOUGH || train.len() < count {
        let held_out = validation.sample(MOST / FOLDS);
        return vec![Fold::new(train.sample(most), vec![(held_out, 1.0)])];
    }
    let products = examples * job.data.shape.len() * all.classes;
    let divisions = FEW.div_ceil(examples).min(MOST_PRODUCTS / products).clamp(1, MOST_DIVISIONS);
    let used = ENOUGH.div_ceil(examples / count).min(count);
    let fold = |(rest, held_out): (Split, Split)| {
        let validation = apart.then(|| (Split::clone(validation), 1.0 / used as f64));
        let held_out = (held_out.sample(MOST / FOLDS), 1.0);
        Fold::new(rest.sample(most), [held_out].into_iter().chain(validation).collect())
    };
    let division = |seed| all.folds(count, seed as u64).into_iter().take(used);
    (0..divisions).flat_map(division).map(fold).collect()
}

/// How many examples a trial learns from. Decays are per example, so what is chosen with fewer
/// suits more.
fn most_examples(noise: Noise, width: usize, classes: usize) -> usize {
    // Layers from the features to a number for each class.
    let layers = match noise {
        Noise::None => 1,
        Noise::Diagonal => 2,
        Noise::SharedLowRank { .. } => 3,
        Noise::LowRank { rank } => 2 + rank,
        // One to the classes and two to the features.
        Noise::OnFeatures { .. } => 1 + (2 * width).div_ceil(classes),
    };
    let products = width.saturating_mul(classes).saturating_mul(layers).max(1);
    (MOST_PRODUCTS_OF_A_TRIAL / products).max(LEAST_OF_A_CLASS * classes).min(MOST)
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
        Noise::OnFeatures { rank } => {
            let most = job.data.shape.len().max(1);
            Some(Some((rank.min(most), most)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_learn_from_fewer_examples_where_each_costs_much() {
        let full = Noise::LowRank { rank: 6 };
        assert_eq!(most_examples(full, 256, 10), MOST);
        assert_eq!(most_examples(full, 1_280, 10), MOST);
        // 2³⁴ / (1,280 · 345 · 8)
        assert_eq!(most_examples(full, 1_280, 345), 4_862);
        assert!(most_examples(Noise::Diagonal, 1_280, 345) > 2 * 4_862);
        // However much it costs, every class is seen.
        assert_eq!(most_examples(full, 4_096, 1_000), 10_000);
        assert_eq!(most_examples(full, usize::MAX, 100_000), MOST);
    }
}
