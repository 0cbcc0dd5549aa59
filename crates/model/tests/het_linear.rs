//! The drop-in layer, on the device under test.

use crate::support::{
    assert_close, config, device, matrix, named_grads, noise, numbers, tau, values,
};
use aleator_model::{
    BatchNoise, DiagScale, Draws, ExampleNoise, HeadTemperature, HetLinear, HetLinearConfig,
    Labels, Link, Noise, NoiseKey,
};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Int, Tensor, TensorData};

const NOISES: [Noise; 5] = [
    Noise::None,
    Noise::Diagonal,
    Noise::LowRank { rank: 2 },
    Noise::SharedLowRank { rank: 2 },
    Noise::OnFeatures { rank: 2 },
];

fn classes(device: &burn::tensor::Device) -> Tensor<1, Int> {
    Tensor::from_ints([0, 3, 1, 2, 2, 0], device)
}

#[test]
fn any_cross_entropy_on_the_logits_is_the_loss() {
    let device = device().autodiff();
    for kind in NOISES {
        let layer = config(kind, Link::Softmax).init(&device);
        let (x, noise) = (matrix(6, 5, 1, &device), noise(6, 64, Draws::Independent));
        let fused = layer.loss_with(x.clone(), classes(&device), &noise);
        let cross_entropy = CrossEntropyLossConfig::new().init(&device);
        let theirs = cross_entropy.forward(layer.forward_with(x, &noise), classes(&device));
        // log p sums to one, so that softmax of it is p again, up to rounding.
        assert_close(&values(theirs.clone()), &values(fused.clone()), 1e-5);
        let (ours, theirs) = (fused.backward(), theirs.backward());
        let pairs = named_grads(&layer, &ours).into_iter().zip(named_grads(&layer, &theirs));
        for ((name, ours), (_, theirs)) in pairs {
            println!("{name}");
            assert_close(&theirs, &ours, 2e-5);
        }
    }
}

#[test]
fn sigmoid_cross_entropy_on_the_logits_is_the_loss() {
    let device = device().autodiff();
    let labels: Vec<f32> =
        numbers(24, 9).iter().map(|x| if *x > 0.0 { 1.0 } else { 0.0 }).collect();
    let labels = Tensor::<2>::from_data(TensorData::new(labels, [6, 4]), &device);
    for kind in NOISES {
        let layer = config(kind, Link::Sigmoid).init(&device);
        let x = matrix(6, 5, 1, &device) * 3.0;
        let fused = layer.loss(x.clone(), labels.clone());
        let logits = layer.forward(x);
        // −y z + log(1 + e^z), summed over the classes.
        let softplus = burn::tensor::activation::softplus(logits.clone(), 1.0);
        let theirs = (softplus - labels.clone() * logits).sum() / 6.0;
        assert_close(&values(theirs.clone()), &values(fused.clone()), 1e-5);
        let (ours, theirs) = (fused.backward(), theirs.backward());
        let pairs = named_grads(&layer, &ours).into_iter().zip(named_grads(&layer, &theirs));
        for ((name, ours), (_, theirs)) in pairs {
            println!("{name}");
            assert_close(&theirs, &ours, 5e-5);
        }
    }
}

/// What the layer draws by itself at a step.
fn drawn(step: u64, ids: Vec<u64>, samples: usize) -> BatchNoise {
    BatchNoise { key: NoiseKey { seed: 1, step }, ids, samples, draws: Draws::Independent }
}

#[test]
fn evaluation_has_a_number_of_samples_of_its_own() {
    let device = device().autodiff();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let layer = layer.with_evaluation_samples(500);
    assert_eq!((layer.config().samples, layer.evaluation_samples()), (64, 500));
    let x = matrix(3, 5, 2, &device);
    let many = drawn(NoiseKey::EVALUATION_STEP, vec![0, 1, 2], 500);
    let few = drawn(0, vec![0, 1, 2], 64);
    let expected = values(layer.predict_with(x.clone(), &many).log_probs);
    assert_eq!(values(layer.predict(x.clone()).log_probs), expected);
    // Training takes those of the configuration.
    assert_eq!(
        values(layer.forward(x.clone()).inner()),
        values(layer.forward_with(x.clone(), &few).inner())
    );
    // A layer without autodiff evaluates.
    let frozen = layer.valid();
    assert_eq!(values(frozen.forward(x.inner())), expected);
}

#[test]
fn shared_noise_gives_an_example_the_same_in_any_row_and_company() {
    let device = device().autodiff();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let x = matrix(1, 5, 2, &device);
    let twice = Tensor::cat(vec![x.clone(), x.clone()], 0);
    let rows = |layer: &HetLinear| {
        let both = values(layer.predict(twice.clone()).log_probs);
        (both[..4].to_vec(), both[4..].to_vec())
    };
    let (first, second) = rows(&layer);
    assert_ne!(first, second, "each example has its own noise");
    let shared = layer.clone().with_example_noise(ExampleNoise::Shared);
    let (first, second) = rows(&shared);
    assert_eq!(first, second);
    assert_eq!(values(shared.predict(x.clone()).log_probs), first);
    // Every step draws anew, and all examples of it the same.
    let expected = layer.forward_with(twice.clone(), &drawn(0, vec![0, 0], 64));
    assert_eq!(values(shared.forward(twice.clone()).inner()), values(expected.inner()));
    let next = layer.forward_with(twice.clone(), &drawn(1, vec![0, 0], 64));
    assert_eq!(values(shared.forward(twice).inner()), values(next.inner()));
}

#[test]
fn soft_targets_are_a_mixture_of_hard_losses() {
    let device = device().autodiff();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let (x, noise) = (matrix(2, 5, 4, &device), noise(2, 64, Draws::Independent));
    let hard = |a: i32, b: i32| {
        let labels = Tensor::<1, Int>::from_ints([a, b], &device);
        values(layer.loss_with(x.clone(), labels, &noise))[0]
    };
    let soft = Tensor::<2>::from_floats([[0.75, 0.0, 0.25, 0.0], [0.75, 0.0, 0.25, 0.0]], &device);
    let found = values(layer.loss_with(x.clone(), soft, &noise))[0];
    assert_close(&[found], &[0.75 * hard(0, 0) + 0.25 * hard(2, 2)], 1e-5);
}

/// The moments of the whole path: features → head → sampled probabilities. For two classes
/// without smoothing p₀ = Φ((μ₀ − μ₁) / sd(u₀ − u₁)), with μ and Σ as `predict` reports them.
#[test]
fn sampled_probabilities_have_the_mean_and_covariance_that_predict_reports() {
    let device = device();
    for kind in &NOISES[1..] {
        let layer = HetLinearConfig {
            classes: 2,
            temperature: HeadTemperature::Fixed(tau(1e-3)),
            samples: 20_000,
            ..config(*kind, Link::Softmax)
        }
        .init(&device);
        let x = matrix(3, 5, 8, &device);
        let prediction = layer.predict(x);
        let mean = values(prediction.latent.mean.clone());
        let probs = values(prediction.log_probs.exp());
        let variance = values(prediction.variance);
        for example in 0..3 {
            let sigma = values(prediction.latent.covariance(example));
            let sd = (sigma[0] + sigma[3] - 2.0 * sigma[1]).sqrt();
            let expected = normal_cdf((mean[2 * example] - mean[2 * example + 1]) / sd);
            // Five standard errors of 20,000 coin tosses.
            let allowed = 5.0 * (expected * (1.0 - expected) / 20_000.0).sqrt();
            let found = probs[2 * example];
            assert!((found - expected).abs() < allowed, "{kind:?} {found} for {expected}");
            // Without smoothing a sample's probability is 0 or 1, so its variance is p(1 − p).
            let bernoulli = found * (1.0 - found);
            assert!((variance[2 * example] - bernoulli).abs() < 0.01);
        }
    }
}

fn normal_cdf(x: f32) -> f32 {
    let steps = 2000;
    let h = x as f64 / steps as f64;
    let density = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0.5 + (0..steps).map(|i| density((i as f64 + 0.5) * h) * h).sum::<f64>()) as f32
}

#[test]
fn every_kind_of_draw_estimates_the_same_probabilities() {
    let device = device();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let x = matrix(3, 5, 2, &device);
    let probs = |draws: Draws| values(layer.forward_with(x.clone(), &noise(3, 8192, draws)).exp());
    let sobol = probs(Draws::Sobol);
    // Five standard errors; the standard deviation of a probability is below one half.
    let allowed = 5.0 * 0.5 / (8192f32).sqrt();
    assert_close(&probs(Draws::Independent), &sobol, allowed);
    assert_close(&probs(Draws::Antithetic), &sobol, allowed);
}

/// Deviation D11: evaluation repeats itself.
#[test]
fn training_draws_fresh_noise_and_evaluation_the_same() {
    let device = device();
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device.clone().autodiff());
    let x = matrix(3, 5, 2, &device.clone().autodiff());
    let first = values(layer.forward(x.clone()));
    let second = values(layer.forward(x.clone()));
    assert_ne!(first, second);
    layer.set_step(0);
    assert_eq!(first, values(layer.forward(x.clone())), "a saved step repeats its noise");
    let frozen = layer.valid();
    let x = x.inner();
    assert_eq!(values(frozen.forward(x.clone())), values(frozen.forward(x)));
}

#[test]
fn a_copy_of_a_layer_counts_its_own_steps() {
    let device = device().autodiff();
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device);
    let x = matrix(3, 5, 2, &device);
    layer.forward(x.clone());
    let copy = layer.clone();
    copy.forward(x.clone());
    copy.forward(x);
    assert_eq!((layer.step(), copy.step()), (1, 3));
}

#[test]
fn an_empty_batch_goes_through_forward_and_backward() {
    let device = device().autodiff();
    for link in [Link::Softmax, Link::Sigmoid] {
        for kind in NOISES {
            let layer = config(kind, link).init(&device);
            let logits = layer.forward(Tensor::zeros([0, 5], &device));
            assert_eq!(logits.dims(), [0, 4]);
            if cfg!(not(feature = "wgpu")) {
                logits.sum().backward();
            }
        }
    }
}

#[test]
fn an_example_sees_its_own_noise_wherever_it_stands_in_the_batch() {
    let device = device();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    let x = matrix(3, 5, 2, &device);
    let forward = |x: Tensor<2>, ids: Vec<u64>| {
        let noise = BatchNoise { ids, ..noise(3, 64, Draws::Independent) };
        values(layer.forward_with(x, &noise))
    };
    let all = forward(x.clone(), vec![7, 8, 9]);
    let last = forward(x.narrow(0, 2, 1), vec![9]);
    assert_close(&last, &all[8..], 1e-6);
}

/// Both parametrisations of d(x) learn (deviation D5).
#[test]
fn every_head_overfits_one_batch() {
    let device = device().autodiff();
    for link in [Link::Softmax, Link::Sigmoid] {
        for kind in NOISES {
            for diag_scale in [DiagScale::Affine, DiagScale::Softplus] {
                let temperature = HeadTemperature::Learned { low: tau(0.3), high: tau(3.0) };
                let samples = 32;
                let config =
                    HetLinearConfig { diag_scale, temperature, samples, ..config(kind, link) };
                let loss = overfit(config.init(&device), 60);
                assert!(loss < 0.35, "{link:?} {kind:?} {diag_scale:?}: {loss}");
            }
        }
    }
}

fn overfit(mut layer: HetLinear, steps: usize) -> f32 {
    let device = device().autodiff();
    let x = matrix(4, 5, 3, &device) * 2.0;
    let labels = Tensor::<1, Int>::from_ints([0, 1, 2, 3], &device);
    let mut adam = AdamConfig::new().init();
    let mut last = f32::NAN;
    for _ in 0..steps {
        let loss = layer.loss(x.clone(), Labels::Classes(labels.clone()));
        last = values(loss.clone())[0];
        let grads = GradientsParams::from_grads(loss.backward(), &layer);
        layer = adam.step(0.2, layer, grads);
    }
    last
}

#[test]
fn a_learned_temperature_starts_in_the_middle_and_gets_the_right_gradient() {
    let device = device().autodiff();
    let temperature = HeadTemperature::Learned { low: tau(0.5), high: tau(1.5) };
    let layer =
        HetLinearConfig { temperature, ..config(Noise::LowRank { rank: 2 }, Link::Softmax) }
            .init(&device);
    let (x, noise) = (matrix(6, 5, 1, &device), noise(6, 64, Draws::Independent));
    let start = layer.head().forward(x.clone()).temperature;
    assert_close(&values(start), &[1.0], 1e-6);
    let grads = layer.loss_with(x.clone(), classes(&device), &noise).backward();
    let grads = named_grads(&layer, &grads);
    let (_, found) = grads.iter().find(|(name, _)| name.ends_with("temperature_logit")).unwrap();
    // dτ/dt = (high − low)/4 at t = 0; the loss by τ by central differences with fixed heads.
    let loss = |value: f32| {
        let fixed = HetLinearConfig {
            temperature: HeadTemperature::Fixed(tau(value)),
            ..layer.config().clone()
        };
        values(fixed.init(&device).loss_with(x.clone(), classes(&device), &noise))[0]
    };
    let expected = (loss(1.05) - loss(0.95)) / 0.1 * 0.25;
    assert_close(found, &[expected], 2e-3);
}

#[test]
fn extreme_features_give_finite_losses_and_gradients() {
    let device = device().autodiff();
    for link in [Link::Softmax, Link::Sigmoid] {
        for kind in NOISES {
            let layer = config(kind, link).init(&device);
            let x = matrix(6, 5, 1, &device) * 1e4;
            let loss = layer.loss(x, classes(&device));
            assert!(values(loss.clone())[0].is_finite());
            for (name, grad) in named_grads(&layer, &loss.backward()) {
                assert!(grad.iter().all(|g| g.is_finite()), "{link:?} {kind:?} {name}");
            }
        }
    }
}

#[test]
fn weights_scale_the_losses_of_examples_and_their_gradients() {
    let device = device().autodiff();
    for link in [Link::Softmax, Link::Sigmoid] {
        let layer = config(Noise::LowRank { rank: 2 }, link).init(&device);
        let (x, noise) = (matrix(6, 5, 1, &device), noise(6, 64, Draws::Independent));
        let weighted = |weights: &[f32]| {
            layer.weighted_loss_with(x.clone(), classes(&device), weights, &noise)
        };
        let mean = weighted(&[1.0 / 6.0; 6]);
        let plain = layer.loss_with(x.clone(), classes(&device), &noise);
        assert_eq!(values(mean.sum), values(plain), "1/B each is the mean");
        let weights = [0.5, 0.0, 2.0, 1.0, -1.0, 0.25];
        let all = weighted(&weights);
        let losses = values(all.losses);
        let sum: f32 = losses.iter().zip(weights).map(|(loss, weight)| loss * weight).sum();
        assert_close(&values(all.sum.clone()), &[sum], 1e-5);
        // The gradient is the sum of those of examples alone.
        let mut expected: Vec<Vec<f32>> = vec![];
        for (at, weight) in weights.iter().enumerate() {
            let mut alone = [0.0; 6];
            alone[at] = 1.0;
            let one = weighted(&alone);
            assert_eq!(values(one.losses), losses, "losses are not weighted");
            for (index, (_, grad)) in
                named_grads(&layer, &one.sum.backward()).into_iter().enumerate()
            {
                let scaled = grad.iter().map(|grad| weight * grad);
                match expected.get_mut(index) {
                    None => expected.push(scaled.collect()),
                    Some(sum) => sum.iter_mut().zip(scaled).for_each(|(sum, grad)| *sum += grad),
                }
            }
        }
        let found = named_grads(&layer, &all.sum.backward());
        for ((name, found), expected) in found.iter().zip(&expected) {
            println!("{link:?} {name}");
            assert_close(found, expected, 1e-5);
        }
    }
}

#[test]
#[cfg(not(feature = "wgpu"))]
fn parameters_are_changed_where_they_are() {
    use aleator_model::params;
    let layer = config(Noise::Diagonal, Link::Softmax).init(&device().autodiff());
    let mut addresses = vec![];
    let layer = params::update(layer, |_, parameter| {
        addresses.push(parameter.values.read().as_ptr() as usize);
        parameter.values.change(|values| values.fill(0.25));
    });
    // A step in between, with its graph, leaves nothing that would force a copy.
    let x = matrix(6, 5, 1, &device().autodiff());
    drop(layer.loss(x, classes(&device().autodiff())).backward());
    let mut found = vec![];
    params::update(layer, |_, parameter| {
        parameter.values.change(|values| values[0] += 1.0);
        found.push(parameter.values.read().as_ptr() as usize);
    });
    assert_eq!(found, addresses);
}
