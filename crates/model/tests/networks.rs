//! Published networks: their sizes, shapes and gradients, and their batch normalisation.

use crate::support;
use crate::support::{config, matrix, mean_loss, noise, values};
use aleator_model::params::{self, Parameter};
use aleator_model::{
    BackboneConfig, BatchStatistics, Classifier, ClassifierConfig, Draws, HeadTemperature,
    HetLinearConfig, ImageNetwork, Link, Noise, NormConfig, ParameterCounts, TrainingLoss,
};
use burn::tensor::{Device, Tensor};

fn image(network: ImageNetwork, size: usize) -> BackboneConfig {
    BackboneConfig::Image {
        network,
        image: [3, size, size],
        norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
        hidden: vec![],
    }
}

fn with_hidden(network: ImageNetwork, layers: &[usize]) -> BackboneConfig {
    match image(network, 96) {
        BackboneConfig::Image { network, image, norm, .. } => {
            BackboneConfig::Image { network, image, norm, hidden: layers.to_vec() }
        }
        other => other,
    }
}

fn classifier_of(backbone: BackboneConfig, classes: usize, kind: Noise) -> ClassifierConfig {
    let feature_dim = backbone.feature_dim();
    let output = HetLinearConfig { feature_dim, classes, ..config(kind, Link::Softmax) };
    ClassifierConfig { backbone, output, frozen: false }
}

/// What a model learns, which is what was counted before it was made.
fn learned(backbone: BackboneConfig, classes: usize, kind: Noise) -> usize {
    let config = classifier_of(backbone, classes, kind);
    let model = config.init(&Device::flex());
    let learned = params::learned(&params::read(&model));
    assert_eq!(config.parameters().unwrap().total(), Some(learned), "{config:?}");
    learned
}

#[test]
fn parameters_are_counted_without_a_model() {
    for noise in [
        Noise::None,
        Noise::Diagonal,
        Noise::LowRank { rank: 3 },
        Noise::SharedLowRank { rank: 3 },
        Noise::OnFeatures { rank: 3 },
    ] {
        learned(BackboneConfig::None { inputs: 7 }, 5, noise);
        learned(BackboneConfig::Mlp { inputs: 7, hidden: vec![6, 4] }, 5, noise);
        learned(BackboneConfig::Conv { image: [3, 9, 9], channels: vec![4, 6] }, 5, noise);
        learned(with_hidden(ImageNetwork::ResNet20, &[12, 9]), 5, noise);
    }
    let backbone = BackboneConfig::None { inputs: 7 };
    let mut config = classifier_of(backbone, 5, Noise::SharedLowRank { rank: 3 });
    let (low, high) = (support::tau(0.3), support::tau(3.0));
    config.output.temperature = HeadTemperature::Learned { low, high };
    let ParameterCounts { network, mean, diag_scale, loadings, loading_scale, temperature } =
        config.parameters().unwrap();
    let parts = [network, mean, diag_scale, loadings, loading_scale, temperature];
    assert_eq!(parts, [0, 40, 40, 15, 40, 1]);
    // More than a machine can count.
    config.output.noise = Noise::LowRank { rank: usize::MAX };
    assert_eq!(config.parameters(), None);
    let wide = BackboneConfig::Image {
        network: ImageNetwork::ResNet20,
        image: [usize::MAX, 32, 32],
        norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
        hidden: vec![],
    };
    assert_eq!(classifier_of(wide, 5, Noise::None).parameters().and_then(|all| all.total()), None);
}

/// Published counts for 1,000 classes. Pre-activation moves each norm from behind a convolution
/// to the front of the next, which leaves their sum as it is: the first block's norm is the stem's
/// of v1, the final one the last block's. Only the norms of projection shortcuts go, so a v2
/// network has torchvision's v1 count less 2 · (their channels).
#[test]
fn residual_networks_have_their_published_numbers_of_parameters() {
    let basic_shortcuts = 2 * (128 + 256 + 512);
    let bottleneck_shortcuts = 2 * (256 + 512 + 1024 + 2048);
    for (network, published) in [
        (ImageNetwork::ResNet18, 11_689_512 - basic_shortcuts),
        (ImageNetwork::ResNet34, 21_797_672 - basic_shortcuts),
        (ImageNetwork::ResNet50, 25_557_032 - bottleneck_shortcuts),
        (ImageNetwork::ResNet101, 44_549_160 - bottleneck_shortcuts),
    ] {
        assert_eq!(learned(image(network, 96), 1000, Noise::None), published, "{network:?}");
    }
}

/// The three counts that the paper gives for ImageNet, and torchvision's v1 less its shortcuts'
/// norms.
#[test]
fn resnet_152_has_the_paper_s_numbers_of_parameters() {
    let network = ImageNetwork::ResNet152;
    let homoscedastic = learned(image(network, 96), 1000, Noise::None);
    assert_eq!(homoscedastic, 60_185_128);
    assert_eq!(homoscedastic, 60_192_808 - 2 * (256 + 512 + 1024 + 2048));
    // The heads' counts without the 60 M others again: d has K outputs, V has K·R.
    let head = |outputs: usize| 2048 * outputs + outputs;
    assert_eq!(homoscedastic + head(1000) + head(15 * 1000), 92_969_128);
    assert_eq!(learned(image(network, 96), 1000, Noise::LowRank { rank: 15 }), 92_969_128);
    assert_eq!(learned(with_hidden(network, &[11_500]), 1000, Noise::None), 93_200_628);
}

/// Wide networks for 10 classes: 36,479,194 and 1,467,610 as published. ResNet-20 and -56 have
/// 269,722 and 853,018 with identity shortcuts and v1's norms behind each convolution; the two
/// projections add 16·32 + 32·64, and pre-activation needs no further norms.
#[test]
fn networks_for_small_images_have_their_numbers_of_parameters() {
    let projections = 16 * 32 + 32 * 64;
    for (network, published) in [
        (ImageNetwork::ResNet20, 269_722 + projections),
        (ImageNetwork::ResNet56, 853_018 + projections),
        (ImageNetwork::WideResNet28x2, 1_467_610),
        (ImageNetwork::WideResNet28x10, 36_479_194),
    ] {
        assert_eq!(learned(image(network, 32), 10, Noise::None), published, "{network:?}");
    }
}

/// Keras' trainable count (TF-slim's form: norms without scale), and EfficientNet-Lite0's.
#[test]
fn the_other_networks_have_their_published_numbers_of_parameters() {
    let count = |network| learned(image(network, 96), 1000, Noise::None);
    assert_eq!(count(ImageNetwork::InceptionResNetV2), 55_813_192);
    assert_eq!(count(ImageNetwork::EfficientNetLite0), 4_652_008);
}

#[test]
fn features_have_the_width_of_the_network_at_any_size_of_image() {
    let device = Device::flex();
    for (network, size, width) in [
        (ImageNetwork::ResNet20, 8, 64),
        (ImageNetwork::ResNet20, 32, 64),
        (ImageNetwork::WideResNet28x2, 32, 128),
        (ImageNetwork::ResNet18, 32, 512),
        (ImageNetwork::ResNet18, 224, 512),
        (ImageNetwork::ResNet50, 32, 2048),
        (ImageNetwork::EfficientNetLite0, 32, 1280),
        (ImageNetwork::EfficientNetLite0, 224, 1280),
        (ImageNetwork::InceptionResNetV2, 75, 1536),
        (ImageNetwork::InceptionResNetV2, 299, 1536),
    ] {
        let backbone = image(network, size);
        backbone.check().unwrap();
        assert_eq!(backbone.feature_dim(), width);
        let batch = if size > 100 { 1 } else { 2 };
        let features =
            backbone.init(1, &device).forward(matrix(batch, 3 * size * size, 1, &device));
        assert_eq!(features.dims(), [batch, width], "{network:?}");
        assert!(values(features).iter().all(|value| value.is_finite()), "{network:?}");
    }
    let hidden = with_hidden(ImageNetwork::ResNet20, &[7, 5]).init(1, &device);
    assert_eq!(hidden.forward(matrix(1, 3 * 96 * 96, 1, &device)).dims(), [1, 5]);
}

#[test]
fn what_cannot_be_made_is_refused_with_advice() {
    for network in ImageNetwork::ALL {
        let smallest = network.smallest_image();
        assert_eq!(ImageNetwork::from_name(network.name()), Some(network));
        assert_eq!(image(network, smallest).check(), Ok(()));
        let message = image(network, smallest - 1).check().unwrap_err();
        let found = format!("found {0} × {0}", smallest - 1);
        for word in [network.name(), &format!("{smallest} × {smallest}"), &found, "resnet-20"] {
            assert!(message.contains(word), "{word:?} is not in: {message}");
        }
    }
    let with = |image, momentum, epsilon, hidden| {
        let norm = NormConfig { momentum, epsilon };
        BackboneConfig::Image { network: ImageNetwork::ResNet20, image, norm, hidden }.check()
    };
    let refused = [
        (with([0, 32, 32], 0.9, 1e-5, vec![]), "image"),
        (with([3, 32, 32], 0.9, 1e-5, vec![4, 0]), "hidden"),
        (with([3, 32, 32], 1.0, 1e-5, vec![]), "momentum"),
        (with([3, 32, 32], f32::NAN, 1e-5, vec![]), "momentum"),
        (with([3, 32, 32], 0.9, 0.0, vec![]), "epsilon"),
        (BackboneConfig::None { inputs: 0 }.check(), "inputs"),
        (BackboneConfig::Mlp { inputs: 4, hidden: vec![0] }.check(), "hidden"),
        (BackboneConfig::Conv { image: [1, 2, 2], channels: vec![0] }.check(), "channels"),
    ];
    for (outcome, word) in refused {
        let message = outcome.unwrap_err();
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
}

const BATCH: usize = 3;
const SIZE: usize = 8;

fn small(frozen: bool) -> Classifier {
    let config = classifier_of(image(ImageNetwork::ResNet20, SIZE), 4, Noise::LowRank { rank: 2 });
    ClassifierConfig { frozen, ..config }.init(&Device::flex().autodiff())
}

fn loss(model: &Classifier) -> TrainingLoss {
    let device = Device::flex().autodiff();
    let noise = noise(BATCH, 32, Draws::Antithetic);
    mean_loss(model, matrix(BATCH, 3 * SIZE * SIZE, 1, &device), &[0, 3, 1], &noise).unwrap()
}

/// Moves each parameter along its own gradient, and holds the change of the loss against it.
#[test]
fn gradients_of_a_residual_network_are_slopes() {
    let model = small(false);
    let gradients = params::gradients(&model, &loss(&model).loss.backward());
    let parameters = params::read(&model);
    for (at, gradient) in gradients.iter().enumerate() {
        let norm = gradient.values.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt();
        if params::is_statistic(&gradient.name) {
            assert_eq!(norm, 0.0, "{}", gradient.name);
            continue;
        }
        assert!(norm > 1e-4, "{}: {norm}", gradient.name);
        let moved = |by: f64| {
            let mut moved: Vec<Parameter> = parameters.clone();
            for (value, slope) in moved[at].values.iter_mut().zip(&gradient.values) {
                *value += (by * *slope as f64 / norm) as f32;
            }
            loss(&params::write(model.clone(), &moved)).loss.into_scalar::<f32>() as f64
        };
        const STEP: f64 = 2e-3;
        let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        // Rectifiers that switch within the step, and rounding through twenty layers, 1e-6 / 4e-3.
        let allowed = 0.03 * norm + 5e-4;
        assert!((slope - norm).abs() < allowed, "{}: {slope} for {norm}", gradient.name);
    }
}

#[test]
fn a_frozen_network_gives_no_statistics_and_gets_no_gradient() {
    let model = small(true);
    let outcome = loss(&model);
    assert!(outcome.statistics.is_empty());
    assert_eq!((model.norm_momentum(), small(false).norm_momentum()), (None, Some(0.9)));
    for gradient in params::gradients(&model, &outcome.loss.backward()) {
        let zero = gradient.values.iter().all(|value| *value == 0.0);
        assert_eq!(zero, gradient.name.starts_with("network."), "{}", gradient.name);
    }
    // It is the network of evaluation: the mean is the head's of the features.
    let device = Device::flex().autodiff();
    let features = model.features(matrix(BATCH, 3 * SIZE * SIZE, 1, &device));
    let mean = values(model.output().head().forward(features).mean.inner());
    support::assert_close(&outcome.mean.read(), &mean, 1e-5);
}

#[test]
fn training_goes_by_the_batch_and_evaluation_by_the_running_statistics() {
    let device = Device::flex();
    let network = image(ImageNetwork::ResNet20, SIZE).init(1, &device);
    let x = matrix(BATCH, 3 * SIZE * SIZE, 1, &device);
    let evaluated = values(network.forward(x.clone()));
    let (trained, statistics) = network.forward_training(x.clone());
    assert_ne!(evaluated, values(trained));
    assert_eq!(evaluated, values(network.forward(x.clone())), "forward changes nothing");
    // An example's features do not depend on its company in evaluation, and do in training.
    let alone = x.slice([0..1, 0..3 * SIZE * SIZE]);
    support::assert_close(&values(network.forward(alone.clone())), &evaluated[..64], 1e-5);
    assert_ne!(network.forward_training(alone).1, statistics);
}

#[test]
fn statistics_name_the_norms_in_the_order_of_the_parameters() {
    for network in
        [ImageNetwork::ResNet18, ImageNetwork::InceptionResNetV2, ImageNetwork::EfficientNetLite0]
    {
        let size = network.smallest_image();
        let backbone = image(network, size);
        let model = classifier_of(backbone, 4, Noise::None).init(&Device::flex());
        let inputs = matrix(2, 3 * size * size, 1, &Device::flex());
        let noise = noise(2, 1, Draws::Antithetic);
        let outcome = mean_loss(&model, inputs, &[0, 1], &noise).unwrap();
        let means: Vec<(String, usize)> = params::read(&model)
            .into_iter()
            .filter(|parameter| parameter.name.ends_with("running_mean"))
            .map(|parameter| (parameter.name, parameter.values.len()))
            .collect();
        let found: Vec<(String, usize)> = outcome
            .statistics
            .iter()
            .map(|found| (format!("{}.running_mean", found.name), found.mean.len()))
            .collect();
        assert_eq!(found, means);
    }
}

/// Moves the running statistics among the parameters.
fn follow(parameters: &mut [Parameter], found: &[BatchStatistics], momentum: f32) {
    for parameter in parameters {
        let update = |found: &BatchStatistics| {
            found.update(&parameter.name, &mut parameter.values, momentum)
        };
        found.iter().for_each(update);
    }
}

/// The first norm of ResNet-20 sees the stem's output, whose moments are easily computed; running
/// statistics come as near to those of a repeated batch as 0.9ⁿ.
#[test]
fn running_statistics_converge_to_those_of_the_batch() {
    let model = small(false);
    let mut parameters = params::read(&model);
    let found = loss(&model).statistics;
    let first = &found[0];
    assert_eq!(first.name, "network.Image.trunk.Residual.stages.0.blocks.0.norm1");
    let stem = stem_moments(&parameters[0]);
    support::assert_close(&first.mean, &stem.0, 1e-5);
    support::assert_close(&first.variance, &stem.1, 1e-4);
    for _ in 0..200 {
        let momentum = model.norm_momentum().unwrap();
        follow(&mut parameters, &found, momentum);
    }
    for statistics in &found {
        let of = |ending: &str| {
            let name = format!("{}.{ending}", statistics.name);
            &parameters.iter().find(|it| it.name == name).expect("a parameter").values
        };
        support::assert_close(of("running_mean"), &statistics.mean, 1e-5);
        support::assert_close(of("running_variance"), &statistics.variance, 1e-5);
    }
    // Evaluation is then training on that batch, but for the unbiased variance: n / (n − 1) of
    // n = 3 · 2 · 2 in the last stage.
    let model = params::write(model, &parameters);
    let device = Device::flex().autodiff();
    let x = matrix(BATCH, 3 * SIZE * SIZE, 1, &device);
    let evaluated = values(model.features(x.clone()).inner());
    let trained = values(model.network().forward_training(x).0.inner());
    let norm = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>().sqrt();
    let difference: Vec<f32> = evaluated.iter().zip(&trained).map(|(a, b)| a - b).collect();
    assert!(
        norm(&difference) < 0.2 * norm(&trained),
        "{} of {}",
        norm(&difference),
        norm(&trained)
    );
}

/// Mean and unbiased variance of each channel after the 3 × 3 stem, by their definitions.
fn stem_moments(weight: &Parameter) -> (Vec<f32>, Vec<f32>) {
    let x = support::numbers(BATCH * 3 * SIZE * SIZE, 1);
    let at = |example: usize, channel: usize, y: isize, x_: isize| {
        let inside = (0..SIZE as isize).contains(&y) && (0..SIZE as isize).contains(&x_);
        let place = (example * 3 + channel) * SIZE * SIZE;
        if inside { x[place + y as usize * SIZE + x_ as usize] as f64 } else { 0.0 }
    };
    let moments = |taps: &[f32]| {
        let mut outs = vec![];
        for place in 0..BATCH * SIZE * SIZE {
            let (example, y, x_) = (place / (SIZE * SIZE), place / SIZE % SIZE, place % SIZE);
            let tap = |(tap, weight): (usize, &f32)| {
                let (channel, dy, dx) = (tap / 9, tap / 3 % 3, tap % 3);
                let (y, x_) = ((y + dy) as isize - 1, (x_ + dx) as isize - 1);
                *weight as f64 * at(example, channel, y, x_)
            };
            outs.push(taps.iter().enumerate().map(tap).sum::<f64>());
        }
        let count = outs.len() as f64;
        let mean = outs.iter().sum::<f64>() / count;
        let squares: f64 = outs.iter().map(|out| (out - mean).powi(2)).sum();
        (mean as f32, (squares / (count - 1.0)) as f32)
    };
    weight.values.chunks_exact(27).map(moments).unzip()
}

/// Every parameter takes part, and the directions are right: plain gradient descent on one batch
/// ends near zero.
#[test]
fn one_batch_is_learned_by_heart() {
    let config = classifier_of(image(ImageNetwork::ResNet20, SIZE), 4, Noise::None);
    let mut model = config.init(&Device::flex().autodiff());
    let first = loss(&model).loss.into_scalar::<f32>();
    for _ in 0..15 {
        let outcome = loss(&model);
        let mut parameters = params::read(&model);
        let gradients = params::gradients(&model, &outcome.loss.backward());
        for (parameter, gradient) in parameters.iter_mut().zip(&gradients) {
            for (value, slope) in parameter.values.iter_mut().zip(&gradient.values) {
                *value -= 0.05 * slope;
            }
        }
        follow(&mut parameters, &outcome.statistics, 0.5);
        model = params::write(model, &parameters);
    }
    let last = loss(&model).loss.into_scalar::<f32>();
    assert!(first > 0.5 && last < 0.1, "from {first} to {last}");
}

#[test]
fn a_bad_example_is_named_though_it_spoils_the_batch() {
    let model = small(false);
    let mut numbers = support::numbers(BATCH * 3 * SIZE * SIZE, 1);
    numbers[3 * SIZE * SIZE + 5] = f32::INFINITY;
    let device = Device::flex().autodiff();
    let data = burn::tensor::TensorData::new(numbers, [BATCH, 3 * SIZE * SIZE]);
    let noise = noise(BATCH, 8, Draws::Independent);
    let outcome = mean_loss(&model, Tensor::from_data(data, &device), &[0, 3, 1], &noise);
    assert_eq!(outcome.err(), Some(vec![1]));
}

#[test]
fn weights_depend_on_the_seed_alone_and_no_two_layers_share_them() {
    let device = Device::flex();
    let weights = |seed| params::read(&image(ImageNetwork::ResNet20, 8).init(seed, &device));
    assert_eq!(weights(1), weights(1));
    let (one, two) = (weights(1), weights(2));
    let random = |all: Vec<Parameter>| -> Vec<Parameter> {
        all.into_iter().filter(|parameter| parameter.shape.len() == 4).collect()
    };
    let (one, two) = (random(one), random(two));
    for (at, a) in one.iter().enumerate() {
        assert_ne!(a.values, two[at].values);
        for b in &one[at + 1..] {
            assert_ne!(a.values[..9], b.values[..9], "{} and {}", a.name, b.name);
        }
    }
}
