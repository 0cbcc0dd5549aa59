//! Networks before the head: shapes, gradients, and inputs that are not finite.

use crate::support;
use crate::support::{config, matrix, mean_loss, noise, values};
use aleator_model::params::{self, Parameter};
use aleator_model::{
    BackboneConfig, BatchNoise, Classifier, ClassifierConfig, Draws, HetLinearConfig, Link, Noise,
};
use burn::tensor::{Device, Tensor};

fn classifier(backbone: BackboneConfig, kind: Noise, device: &Device) -> Classifier {
    let feature_dim = backbone.feature_dim();
    let output = HetLinearConfig { feature_dim, ..config(kind, Link::Softmax) };
    ClassifierConfig { backbone, output, frozen: false }.init(device)
}

fn conv() -> BackboneConfig {
    BackboneConfig::Conv { image: [2, 5, 4], channels: vec![3, 4] }
}

const BATCH: usize = 3;

fn loss(model: &Classifier, inputs: usize, noise: &BatchNoise) -> Tensor<1> {
    let device = Device::flex().autodiff();
    mean_loss(model, matrix(BATCH, inputs, 1, &device), &[0, 3, 1], noise).unwrap().loss
}

/// Moves along the gradient and along random directions, and holds the change of the loss against
/// the gradient.
fn assert_gradient(backbone: BackboneConfig, inputs: usize) {
    let model = classifier(backbone, Noise::LowRank { rank: 2 }, &Device::flex().autodiff());
    let noise = noise(BATCH, 32, Draws::Antithetic);
    let gradients = params::gradients(&model, &loss(&model, inputs, &noise).backward());
    let parameters = params::read(&model);
    for (at, gradient) in gradients.iter().enumerate() {
        // Along its own gradient the loss of each parameter changes most.
        let norm = gradient.values.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt();
        assert!(norm > 1e-4, "{}: {norm}", gradient.name);
        let moved = |by: f64| {
            let mut moved: Vec<Parameter> = parameters.clone();
            for (value, slope) in moved[at].values.iter_mut().zip(&gradient.values) {
                *value += (by * *slope as f64 / norm) as f32;
            }
            let model = params::write(model.clone(), &moved);
            loss(&model, inputs, &noise).into_scalar::<f32>() as f64
        };
        const STEP: f64 = 3e-3;
        let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        // Rounding of the losses, 1e-7 / 6e-3; the curvature and rectifiers that switch within
        // the step.
        let allowed = 0.02 * norm + 2e-4;
        assert!((slope - norm).abs() < allowed, "{}: {slope} for {norm}", gradient.name);
    }
}

#[test]
fn gradients_of_dense_layers_are_slopes() {
    assert_gradient(BackboneConfig::Mlp { inputs: 6, hidden: vec![8, 5] }, 6);
}

#[test]
fn gradients_of_convolutions_are_slopes() {
    assert_gradient(conv(), 40);
}

#[test]
fn convolutions_equal_their_sums() {
    let device = Device::flex();
    let model = classifier(conv(), Noise::None, &device);
    let x = matrix(1, 40, 9, &device);
    let found = values(model.features(x.clone()));
    let weights = params::read(&model);
    let first = convolve(&values(x), [2, 5, 4], &weights[0], &weights[1], 1);
    let second = convolve(&first, [3, 5, 4], &weights[2], &weights[3], 2);
    // 5 × 4 halved is 3 × 2.
    let expected: Vec<f32> =
        second.chunks_exact(6).map(|channel| channel.iter().sum::<f32>() / 6.0).collect();
    support::assert_close(&found, &expected, 1e-5);
}

/// A 3 × 3 convolution with a border of zeros and a rectifier, by its definition.
fn convolve(
    x: &[f32],
    [depth, height, width]: [usize; 3],
    weight: &Parameter,
    bias: &Parameter,
    stride: usize,
) -> Vec<f32> {
    let at = |c: usize, y: isize, x_: isize| {
        let inside = (0..height as isize).contains(&y) && (0..width as isize).contains(&x_);
        if inside { x[(c * height + y as usize) * width + x_ as usize] } else { 0.0 }
    };
    let mut out = vec![];
    for to in 0..weight.shape[0] {
        for row in (0..height).step_by(stride) {
            for column in (0..width).step_by(stride) {
                let mut sum = bias.values[to];
                for (tap, weight) in weight.values[to * depth * 9..][..depth * 9].iter().enumerate()
                {
                    let (c, dy, dx) = (tap / 9, tap / 3 % 3, tap % 3);
                    let (y, x_) = ((row + dy) as isize - 1, (column + dx) as isize - 1);
                    sum += weight * at(c, y, x_);
                }
                out.push(sum.max(0.0));
            }
        }
    }
    out
}

#[test]
fn the_same_seed_gives_the_same_weights_and_another_seed_others() {
    let device = Device::flex();
    let with = |seed: u64| {
        let backbone = BackboneConfig::Mlp { inputs: 6, hidden: vec![8] };
        let feature_dim = backbone.feature_dim();
        let output = HetLinearConfig { feature_dim, seed, ..config(Noise::None, Link::Softmax) };
        params::read(&ClassifierConfig { backbone, output, frozen: false }.init(&device))
    };
    assert_eq!(with(1), with(1));
    let (one, two) = (with(1), with(2));
    assert!(one.iter().zip(&two).filter(|(a, _)| a.shape.len() > 1).all(|(a, b)| a != b));
}

#[test]
fn rows_whose_inputs_are_not_finite_are_named() {
    let device = Device::flex();
    let mut numbers = support::numbers(BATCH * 40, 1);
    numbers[40 + 7] = f32::NAN;
    let inputs = || {
        let data = burn::tensor::TensorData::new(numbers.clone(), [BATCH, 40]);
        Tensor::<2>::from_data(data, &device)
    };
    let on_features = Noise::OnFeatures { rank: 2 };
    // Few draws of noise on the features are made there, many on the utilities.
    for (kind, samples) in [(Noise::Diagonal, 8), (on_features, 8), (on_features, 256)] {
        let model = classifier(conv(), kind, &device);
        let noise = noise(BATCH, samples, Draws::Independent);
        assert_eq!(model.score(inputs(), &noise).err(), Some(vec![1]));
        assert_eq!(model.predict(inputs(), &noise).err(), Some(vec![1]));
        assert_eq!(mean_loss(&model, inputs(), &[0, 3, 1], &noise).err(), Some(vec![1]));
    }
}

#[test]
#[should_panic(expected = "as many features as the network gives")]
fn a_head_for_other_features_is_refused() {
    let backbone = BackboneConfig::Mlp { inputs: 6, hidden: vec![8] };
    let output = config(Noise::None, Link::Softmax); // of 5 features
    ClassifierConfig { backbone, output, frozen: false }.init(&Device::flex());
}
