//! What an evaluation leaves on disk: predictions, and sums over what is not kept.

use std::fs;

use crate::support::{RECIPE, Trial};
use aleator_run::recipe::KeptPredictions;
use aleator_run::{CovarianceFile, Split, SplitReader};
use aleator_train::EvaluateSettings;

#[test]
fn loadings_beyond_the_limit_are_added_up_instead_of_written() {
    let mut trial = Trial::on_clusters(RECIPE, 40, &["head.noise=full", "head.rank=2"]);
    trial.train();
    let sums = trial.run.covariance_path(Split::Validation);
    let mut written = |mib: usize, batch: usize, kept: KeptPredictions| {
        trial.recipe.evaluation.loadings_mib = mib;
        trial.recipe.evaluation.batch = batch;
        trial.recipe.evaluation.predictions = kept;
        trial.evaluate(EvaluateSettings::default()).unwrap();
        (kept == KeptPredictions::All).then(|| trial.predictions(Split::Validation))
    };
    let all = written(1, 64, KeptPredictions::All).unwrap();
    assert_eq!(all.loadings.as_ref().map(Vec::len), Some(10 * 3 * 2));
    assert!(!sums.exists());
    let none = written(0, 64, KeptPredictions::All).unwrap();
    assert_eq!((none.rank, &none.loadings), (0, &None));
    assert_eq!(none.diag_scale, all.diag_scale);
    assert_eq!(none.log_probs, all.log_probs);
    // They are sums over these examples.
    let mut file = CovarianceFile::open(&sums).unwrap();
    let info = file.info();
    assert_eq!((info.examples, info.classes, info.rank, info.ties), (10, 3, 2, true));
    let loadings = all.loadings.unwrap();
    let squares: f64 = loadings.iter().map(|value| f64::from(*value).powi(2)).sum();
    let found: f64 = file.moments().unwrap().0.iter().map(|of| of[1]).sum();
    assert!((found - squares).abs() < 1e-12 * squares, "{found} {squares}");
    // The size of batches changes no byte.
    let whole = fs::read(&sums).unwrap();
    written(0, 3, KeptPredictions::All);
    assert!(fs::read(&sums).unwrap() == whole);
    // Averages are had without the predictions of single examples.
    for kept in [KeptPredictions::None, KeptPredictions::Top(2)] {
        written(1, 64, kept);
        let mut averages = CovarianceFile::open(&sums).unwrap();
        assert!(!averages.info().ties);
        assert_eq!(averages.pairs(0..3).unwrap(), file.pairs(0..3).unwrap());
    }
    // What is in the predictions is not written a second time.
    written(1, 64, KeptPredictions::All);
    assert!(!sums.exists());
}

/// Covariances that the labels say nothing about, deviation D18, and models without any.
#[test]
fn covariances_that_are_not_learned_are_not_added_up() {
    for (sets, expected) in [
        (&["head.noise=none"][..], false),
        (&["head.noise=diagonal"], true),
        (&["head.noise=shared", "head.rank=2"], true),
        (&["head.noise=full", "head.rank=2", "head.link=sigmoid"], false),
        (&["head.noise=full", "head.rank=2", "head.link=sigmoid", "head.likelihood=joint"], true),
    ] {
        let mut trial = Trial::on_clusters(RECIPE, 40, sets);
        trial.recipe.evaluation.predictions = KeptPredictions::None;
        trial.finish();
        let sums = trial.run.covariance_path(Split::Validation);
        assert_eq!(sums.exists(), expected, "{sets:?}");
        if expected {
            let several = sets.contains(&"head.link=sigmoid");
            assert_eq!(CovarianceFile::open(&sums).unwrap().info().flips, !several);
        }
    }
}

#[test]
fn scores_do_not_depend_on_the_predictions_that_are_kept() {
    for sets in [&["head.link=softmax"][..], &["head.link=sigmoid"]] {
        let mut trial = Trial::on_clusters(RECIPE, 40, sets);
        trial.recipe.evaluation.calibrate = true;
        trial.recipe.evaluation.batch = 7;
        let all = trial.finish();
        assert!(all.validation.calibrated.is_some() && all.calibration.is_some());
        let (path, top) = (
            trial.run.predictions_path(Split::Validation),
            trial.run.top_predictions_path(Split::Validation),
        );
        let complete = fs::read(&path).unwrap();
        let mut evaluated = |kept: KeptPredictions| {
            trial.recipe.evaluation.predictions = kept;
            fs::write(trial.run.recipe_path(), trial.recipe.to_toml()).unwrap();
            trial.evaluate(EvaluateSettings::default()).unwrap()
        };
        assert_eq!(evaluated(KeptPredictions::Top(2)), all);
        assert!(!path.exists(), "predictions of another evaluation were left");
        let shapes = aleator_run::tensor_shapes(&top).unwrap();
        assert_eq!(
            (&shapes["classes"][..], &shapes["log_probs"][..]),
            (&[10, 2][..], &[10, 2][..])
        );
        assert_eq!(evaluated(KeptPredictions::None), all);
        assert!(!path.exists() && !top.exists());
        let message = SplitReader::open(&trial.run, Split::Validation).unwrap_err().to_string();
        assert!(message.contains("evaluation.predictions = \"all\" in"), "{message}");
        trial.recipe.evaluation.predictions = KeptPredictions::All;
        assert_eq!(trial.evaluate(EvaluateSettings::default()).unwrap(), all);
        assert!(fs::read(&path).unwrap() == complete);
    }
}
