//! Methods with two networks: whose probabilities are validated, evaluated and predicted.

use aleator_data::Ids;
use aleator_run::recipe::EvaluatedNetworks;
use aleator_run::{Predictions, Split};
use aleator_train::{EvaluateSettings, Predictor};

use crate::support::{Trial, adam};

const CO_TEACHING: [&str; 9] = [
    "method=co-teaching",
    "co_teaching.noise_rate=0.2",
    "co_teaching.ramp=1",
    "co_teaching.exponent=1.0",
    "head.noise=full",
    "head.rank=2",
    "network.kind=mlp",
    "network.hidden=[6]",
    "evaluation.weights=last",
];

fn trial(networks: &str) -> Trial {
    let networks = format!("evaluation.networks={networks}");
    let sets: Vec<&str> = CO_TEACHING.iter().copied().chain([networks.as_str()]).collect();
    Trial::on_clusters(&adam(), 40, &sets)
}

/// The file of predictions of the finished run, if these networks are evaluated.
fn predictions(trial: &mut Trial, networks: EvaluatedNetworks) -> Predictions {
    trial.recipe.evaluation.networks = networks;
    trial.evaluate(EvaluateSettings::default()).unwrap();
    trial.predictions(Split::Validation)
}

#[test]
fn evaluation_and_prediction_take_the_mean_of_both_networks() {
    let mut trial = trial("all");
    let evaluation = trial.finish();
    let [first, all] = [EvaluatedNetworks::First, EvaluatedNetworks::All]
        .map(|networks| predictions(&mut trial, networks));
    assert_eq!(trial.run.evaluation().unwrap().unwrap(), evaluation);
    assert_ne!(first.log_probs, all.log_probs);
    // What is no probability is of the first network.
    assert_eq!((&first.mean, &first.loadings), (&all.mean, &all.loadings));
    assert_eq!(first.diag_scale, all.diag_scale);
    // 2 p̄ − p of the first network is a distribution: that of the second.
    for (first, all) in first.log_probs.chunks_exact(3).zip(all.log_probs.chunks_exact(3)) {
        let second: Vec<f32> =
            first.iter().zip(all).map(|(first, all)| 2.0 * all.exp() - first.exp()).collect();
        let sum: f32 = second.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5 && second.iter().all(|p| *p > -1e-6), "{second:?}");
    }
    let predictor = Predictor::new(&trial.run, &trial.recipe, None).unwrap();
    let split = &trial.data.validation;
    let ids = Ids::Rows(split.inputs.len());
    for (at, row) in split.rows.iter().enumerate() {
        let found = predictor.predict(&split.inputs, &ids, *row..row + 1).unwrap();
        let pairs = found.predictions.log_probs.iter().zip(&all.log_probs[3 * at..][..3]);
        pairs.for_each(|(found, all)| assert!((found.exp() - all.exp()).abs() < 1e-6));
    }
}

#[test]
fn epochs_are_chosen_by_the_networks_that_are_evaluated() {
    let nll = |networks: &str| {
        let trial = trial(networks);
        let (_, last, _) = *trial.train().epochs.last().unwrap();
        assert_eq!(last, trial.finish().validation.given.nll, "{networks}");
        last
    };
    assert_ne!(nll("first"), nll("all"));
}

#[test]
fn one_network_is_all_networks() {
    let plain = |networks: &str| {
        let networks = format!("evaluation.networks={networks}");
        Trial::on_clusters(&adam(), 40, &["head.noise=diagonal", &networks]).finish()
    };
    assert_eq!(plain("first"), plain("all"));
}
