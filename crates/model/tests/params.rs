//! Parameters by name: the names are keys of files, and never change.

use crate::support;
use crate::support::{config, matrix, mean_loss, noise, tau};
use aleator_model::{
    BackboneConfig, Classifier, ClassifierConfig, HeadTemperature, HetLinearConfig, Link, Noise,
    params,
};
use burn::tensor::Device;

fn classifier(backbone: BackboneConfig, kind: Noise, device: &Device) -> Classifier {
    let learned = HeadTemperature::Learned { low: tau(0.5), high: tau(1.5) };
    let output = HetLinearConfig {
        feature_dim: backbone.feature_dim(),
        temperature: learned,
        ..config(kind, Link::Softmax)
    };
    ClassifierConfig { backbone, output, frozen: false }.init(device)
}

fn none() -> BackboneConfig {
    BackboneConfig::None { inputs: 5 }
}

fn names(backbone: BackboneConfig, kind: Noise) -> Vec<(String, Vec<usize>)> {
    let model = classifier(backbone, kind, &Device::flex());
    params::read(&model).into_iter().map(|it| (it.name, it.shape)).collect()
}

#[track_caller]
fn assert_names(found: Vec<(String, Vec<usize>)>, expected: &[(&str, &[usize])]) {
    let found: Vec<(&str, &[usize])> =
        found.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_names_of_a_full_head_are_keys_of_files() {
    let expected: [(&str, &[usize]); 7] = [
        ("output.head.mean.weight", &[5, 4]),
        ("output.head.mean.bias", &[4]),
        ("output.head.diag_scale.weight", &[5, 4]),
        ("output.head.diag_scale.bias", &[4]),
        ("output.head.loadings.weight", &[5, 8]),
        ("output.head.loadings.bias", &[8]),
        ("output.head.temperature_logit", &[1]),
    ];
    assert_names(names(none(), Noise::LowRank { rank: 2 }), &expected);
}

#[test]
fn the_names_of_a_shared_head_are_keys_of_files() {
    let expected: [(&str, &[usize]); 8] = [
        ("output.head.mean.weight", &[5, 4]),
        ("output.head.mean.bias", &[4]),
        ("output.head.diag_scale.weight", &[5, 4]),
        ("output.head.diag_scale.bias", &[4]),
        ("output.head.loading_scale.weight", &[5, 4]),
        ("output.head.loading_scale.bias", &[4]),
        ("output.head.shared_loadings", &[4, 3]),
        ("output.head.temperature_logit", &[1]),
    ];
    assert_names(names(none(), Noise::SharedLowRank { rank: 3 }), &expected);
}

#[test]
fn the_names_of_networks_are_keys_of_files() {
    let mlp = names(BackboneConfig::Mlp { inputs: 6, hidden: vec![7, 3] }, Noise::None);
    let conv = BackboneConfig::Conv { image: [2, 5, 4], channels: vec![3, 6] };
    let conv = names(conv, Noise::None);
    let expected: [(&str, &[usize]); 7] = [
        ("network.Mlp.layers.0.weight", &[6, 7]),
        ("network.Mlp.layers.0.bias", &[7]),
        ("network.Mlp.layers.1.weight", &[7, 3]),
        ("network.Mlp.layers.1.bias", &[3]),
        ("output.head.mean.weight", &[3, 4]),
        ("output.head.mean.bias", &[4]),
        ("output.head.temperature_logit", &[1]),
    ];
    assert_names(mlp, &expected);
    let expected: [(&str, &[usize]); 7] = [
        ("network.Conv.layers.0.weight", &[3, 2, 3, 3]),
        ("network.Conv.layers.0.bias", &[3]),
        ("network.Conv.layers.1.weight", &[6, 3, 3, 3]),
        ("network.Conv.layers.1.bias", &[6]),
        ("output.head.mean.weight", &[6, 4]),
        ("output.head.mean.bias", &[4]),
        ("output.head.temperature_logit", &[1]),
    ];
    assert_names(conv, &expected);
}

#[test]
fn what_is_written_is_read_back_and_used() {
    let device = Device::flex();
    let kind = Noise::SharedLowRank { rank: 2 };
    let model = classifier(BackboneConfig::Mlp { inputs: 5, hidden: vec![6] }, kind, &device);
    let mut parameters = params::read(&model);
    for (at, parameter) in parameters.iter_mut().enumerate() {
        parameter.values = support::numbers(parameter.values.len(), 100 + at as u64);
    }
    let written = params::write(model.clone(), &parameters);
    assert_eq!(params::read(&written), parameters);
    let score = |model: &Classifier| {
        let draws = noise(3, 16, aleator_model::Draws::Independent);
        let scores = model.score(matrix(3, 5, 1, &device), &draws).unwrap();
        support::values(scores.log_probs)
    };
    assert_ne!(score(&written), score(&model));
    let back = params::write(written, &params::read(&model));
    assert_eq!(score(&back), score(&model));
}

#[test]
fn gradients_have_the_names_and_shapes_of_parameters_before_and_after_a_write() {
    let device = Device::flex().autodiff();
    let backbone = BackboneConfig::Mlp { inputs: 5, hidden: vec![6] };
    let model = classifier(backbone, Noise::LowRank { rank: 2 }, &device);
    let gradients = |model: &Classifier| {
        let draws = noise(3, 16, aleator_model::Draws::Independent);
        let outcome = mean_loss(model, matrix(3, 5, 1, &device), &[0, 3, 1], &draws).unwrap();
        let mut gradients = outcome.loss.backward();
        let read = params::gradients(model, &gradients);
        let taken = params::take_gradients(model, &mut gradients);
        assert!(taken.iter().zip(&read).all(|(taken, read)| *taken.read() == read.values));
        read
    };
    let found = gradients(&model);
    let parameters = params::read(&model);
    assert_eq!(found.len(), parameters.len());
    for (gradient, parameter) in found.iter().zip(&parameters) {
        assert_eq!((&gradient.name, &gradient.shape), (&parameter.name, &parameter.shape));
        assert!(gradient.values.iter().any(|value| *value != 0.0), "{}", gradient.name);
    }
    assert_eq!(gradients(&params::write(model, &parameters)), found);
}

#[test]
fn what_the_loss_does_not_reach_has_a_zero_gradient() {
    let device = Device::flex().autodiff();
    let model = classifier(none(), Noise::Diagonal, &device);
    let mean = model.output().head().forward(matrix(2, 5, 1, &device)).mean;
    let gradients = params::gradients(&model, &mean.sum().backward());
    for gradient in gradients {
        let reached = gradient.name.starts_with("output.head.mean.");
        assert_eq!(gradient.values.iter().any(|value| *value != 0.0), reached, "{}", gradient.name);
    }
}

#[test]
#[should_panic(expected = "output.head.mean.weight has another shape")]
fn another_shape_is_refused() {
    let model = classifier(none(), Noise::None, &Device::flex());
    let mut parameters = params::read(&model);
    parameters[0].shape = vec![4, 5];
    params::write(model, &parameters);
}

#[test]
#[should_panic(expected = "no values for output.head.temperature_logit")]
fn a_missing_parameter_is_refused() {
    let model = classifier(none(), Noise::None, &Device::flex());
    let mut parameters = params::read(&model);
    parameters.pop();
    params::write(model, &parameters);
}
