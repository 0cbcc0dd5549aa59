//! The last epoch and the best one: both are scored, and the predictions of one are kept.

use std::fs;
use std::sync::atomic::AtomicBool;

use crate::support::{DIGITS, RECIPE, Trial};
use aleator_metrics::{Evaluation, OtherWeights};
use aleator_run::Split;
use aleator_run::recipe::EvaluatedWeights;
use aleator_train::{EvaluateSettings, Event, evaluate};

/// Steps that are too large, so that a later epoch is worse than an earlier one.
fn diverging(sets: &[&str]) -> Trial {
    let all = ["optimizer.learning_rate=30.0", "schedule.epochs=5"];
    let all: Vec<&str> = all.iter().chain(sets).copied().collect();
    Trial::on_clusters(RECIPE, 40, &all)
}

fn of(weights: EvaluatedWeights) -> EvaluateSettings {
    EvaluateSettings { weights: Some(weights), ..EvaluateSettings::default() }
}

#[test]
fn the_weights_that_were_not_chosen_are_scored_as_if_they_had_been() {
    for calibrate in ["false", "true"] {
        let calibrate = format!("evaluation.calibrate={calibrate}");
        let trial = diverging(&["data.test.fraction=0.2", "data.test.seed=1", &calibrate]);
        let best = trial.finish();
        let predictions = fs::read(trial.run.predictions_path(Split::Validation)).unwrap();
        let last = trial.evaluate(of(EvaluatedWeights::Last)).unwrap();
        assert_eq!((best.weights.as_str(), last.weights.as_str()), ("best", "last"));
        assert!(best.step < last.step);
        let of_last = fs::read(trial.run.predictions_path(Split::Validation)).unwrap();
        assert!(of_last != predictions, "predictions are of the chosen weights");
        // The law of the true class is fitted to the chosen weights alone.
        let alone = |evaluation: &Evaluation| {
            let evaluation = evaluation.clone();
            Evaluation { true_class: None, other_weights: None, ..evaluation }
        };
        assert_eq!(best.other().unwrap(), alone(&last));
        assert_eq!(last.other().unwrap(), alone(&best));
        assert_eq!(trial.run.evaluation().unwrap().unwrap(), last);
        assert_eq!(trial.evaluate(of(EvaluatedWeights::Best)).unwrap(), best);
        assert!(fs::read(trial.run.predictions_path(Split::Validation)).unwrap() == predictions);
    }
}

#[test]
fn a_best_epoch_that_is_the_last_is_scored_once() {
    let trial = Trial::new(RECIPE, &[DIGITS, "schedule.epochs=1"]);
    let evaluation = trial.finish();
    let step = evaluation.step.unwrap();
    let other = OtherWeights { weights: "last".to_string(), step, scores: None };
    assert_eq!(evaluation.other_weights, Some(other));
}

#[test]
fn a_checkpoint_that_the_user_names_has_no_other() {
    let trial = diverging(&[]);
    let written = trial.finish();
    let named = EvaluateSettings { checkpoint: written.step, ..EvaluateSettings::default() };
    assert_eq!(trial.evaluate(named).unwrap().other_weights, None);
    assert_eq!(trial.run.evaluation().unwrap().unwrap(), written);
}

#[test]
fn training_that_goes_on_with_the_validation_examples_ends_with_one_set_of_weights() {
    let sgd = "kind = \"sgd\"\nmomentum = 0.9\nnesterov = false";
    let lbfgs = "kind = \"lbfgs\"\nmemory = 5\ntolerance = 1e-3\nrefit = true";
    let recipe = RECIPE.replace(sgd, lbfgs);
    let sets = ["evaluation.weights=last", "training.batch=1000", "schedule.epochs=20"];
    let evaluation = Trial::on_clusters(&recipe, 40, &sets).finish();
    assert_eq!((evaluation.weights.as_str(), evaluation.other_weights), ("last", None));
}

#[test]
fn other_weights_that_are_damaged_are_left_out_with_a_warning() {
    let trial = diverging(&["evaluation.weights=last"]);
    let whole = trial.finish();
    let best = whole.other_weights.clone().unwrap().step;
    fs::remove_file(trial.checkpoint(best).join("model.safetensors")).unwrap();
    let (stop, mut warnings) = (AtomicBool::new(false), vec![]);
    let evaluation = evaluate(&trial.job(&stop), &EvaluateSettings::default(), &mut |event| {
        if let Event::Warning(message) = event {
            warnings.push(message.to_string());
        }
    });
    assert_eq!(evaluation.unwrap(), Evaluation { other_weights: None, ..whole.clone() });
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    for words in ["the best weights are left out", "model.safetensors", "aleator resume"] {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    // Made again, it is scored again.
    assert_eq!(trial.finish(), whole);
}
