//! Noise on the features against its form in the space of the classes, and against autodiff.

use crate::support::{assert_close, config, matrix, named_grads, noise, numbers, values};
use aleator_kernels::given::{Normals, Signs};
use aleator_kernels::{NoiseLaw, Sampling};
use aleator_model::{
    BatchNoise, Covariance, Draws, FeatureNoise, HetLinear, HetLinearConfig, Latent, Likelihood,
    Link, Noise, sigmoid_logits, softmax_log_probs,
};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// With five features and two factors: few classes are computed in their own space where samples
/// are many, others in that of the features.
fn layer(classes: usize, link: Link, device: &Device) -> HetLinear {
    HetLinearConfig { classes, ..config(Noise::OnFeatures { rank: 2 }, link) }.init(device)
}

fn latent(layer: &HetLinear, device: &Device) -> (Latent, FeatureNoise) {
    let latent = layer.head().forward(matrix(3, 5, 1, device));
    let Covariance::OnFeatures(noise) = latent.covariance.clone() else {
        panic!("the head has noise on its features")
    };
    (latent, noise)
}

/// Wᵀ (diag(d²) + diag(v) V Vᵀ diag(v)) W of one example in f64.
fn dense_covariance(noise: &FeatureNoise, example: usize) -> Vec<f64> {
    let doubles = |tensor: &Tensor<2>| -> Vec<f64> {
        values(tensor.clone().inner()).into_iter().map(f64::from).collect()
    };
    let [features, rank] = noise.shared_loadings.dims();
    let classes = noise.weight.dims()[1];
    let (diag, scale) = (doubles(&noise.diag_scale), doubles(&noise.loading_scale));
    let (loadings, weight) = (doubles(&noise.shared_loadings), doubles(&noise.weight));
    let row = example * features;
    let mut out = vec![0.0; classes * classes];
    for i in 0..features {
        for j in 0..features {
            let shared: f64 =
                (0..rank).map(|r| loadings[i * rank + r] * loadings[j * rank + r]).sum();
            let own = if i == j { diag[row + i] * diag[row + i] } else { 0.0 };
            let covariance = own + scale[row + i] * scale[row + j] * shared;
            for a in 0..classes {
                for b in 0..classes {
                    out[a * classes + b] +=
                        weight[i * classes + a] * covariance * weight[j * classes + b];
                }
            }
        }
    }
    out
}

#[test]
fn utilities_have_the_covariance_of_the_noise_that_w_carries_over() {
    let device = Device::flex();
    for classes in [4, 9] {
        let (latent, noise) = latent(&layer(classes, Link::Softmax, &device), &device);
        let in_class_space = latent.clone().in_class_space();
        assert_eq!(in_class_space.rank(), classes.min(7));
        for example in 0..3 {
            let expected: Vec<f32> =
                dense_covariance(&noise, example).into_iter().map(|value| value as f32).collect();
            assert_close(&values(latent.covariance(example)), &expected, 1e-5);
            assert_close(&values(in_class_space.covariance(example)), &expected, 1e-5);
        }
    }
}

#[test]
fn probabilities_are_those_of_the_same_normal_on_the_utilities() {
    let device = Device::flex();
    let many = noise(3, 1 << 15, Draws::Sobol);
    // Nine classes are more than the dimensions of their noise, and are sampled by features.
    for classes in [4, 9] {
        let (latent, _) = latent(&layer(classes, Link::Softmax, &device), &device);
        let found = values(softmax_log_probs(latent.clone(), &many).exp());
        // Σ as loadings that the kernels of noise on utilities take.
        let diag_scale = latent.mean.zeros_like();
        let root = |example: usize| {
            let wide = latent.clone().in_class_space();
            let Covariance::LowRank { loadings, .. } = wide.covariance else { unreachable!() };
            loadings.narrow(0, example, 1)
        };
        let loadings = Tensor::cat((0..3).map(root).collect(), 0);
        let covariance = Covariance::LowRank { diag_scale, loadings };
        let expected = values(softmax_log_probs(Latent { covariance, ..latent }, &many).exp());
        assert_close(&found, &expected, 2e-4);
    }
}

#[test]
fn the_sigmoid_sees_the_variances_exactly() {
    let device = Device::flex();
    let (latent, noise) = latent(&layer(9, Link::Sigmoid, &device), &device);
    let variances = (0..3).flat_map(|example| {
        let covariance = dense_covariance(&noise, example);
        (0..9).map(move |class| (covariance[class * 9 + class]).sqrt() as f32)
    });
    let data = TensorData::new(variances.collect::<Vec<f32>>(), [3, 9]);
    let covariance = Covariance::Diagonal { diag_scale: Tensor::from_data(data, &device) };
    let expected = sigmoid_logits(Latent { covariance, ..latent.clone() });
    assert_close(&values(sigmoid_logits(latent)), &values(expected), 1e-5);
}

/// The draws of a batch as tensors [B, n, D] and [B, n, R], with their signs.
fn drawn(noise: &BatchNoise, device: &Device) -> (Tensor<3>, Tensor<3>, Signs) {
    let BatchNoise { key, ref ids, samples, draws } = *noise;
    let sampling = Sampling { key, ids, samples, draws, law: NoiseLaw::Normal };
    let normals = Normals::new(sampling, 5, 2);
    let (batch, count) = (ids.len(), normals.signs.draws);
    let (mut own, mut factors) = (vec![0.0; batch * count * 5], vec![0.0; batch * count * 2]);
    normals.draw(0..batch, 0..count, &mut own, &mut factors);
    let tensor = |values: Vec<f32>, width: usize| {
        Tensor::from_data(TensorData::new(values, [batch, count, width]), device)
    };
    (tensor(own, 5), tensor(factors, 2), normals.signs)
}

/// −log mean softmax of the labels by Burn's own operations, averaged over the batch.
fn loss_by_autodiff(
    layer: &HetLinear,
    labels: &[usize],
    noise: &BatchNoise,
    device: &Device,
) -> Tensor<1> {
    let (latent, of) = latent(layer, device);
    let (own, factors, signs) = drawn(noise, device);
    let shared = factors.matmul(of.shared_loadings.clone().transpose().unsqueeze());
    let row = |scale: &Tensor<2>| scale.clone().unsqueeze_dim::<3>(1);
    let on_features = row(&of.diag_scale) * own + row(&of.loading_scale) * shared;
    let on_utilities = on_features.matmul(of.weight.clone().unsqueeze());
    let mirrored = -on_utilities.clone().narrow(1, 0, signs.mirrored.max(1));
    let all = match signs.mirrored {
        0 => on_utilities,
        _ => Tensor::cat(vec![on_utilities, mirrored], 1),
    };
    let utilities = latent.mean.unsqueeze_dim::<3>(1) + all;
    let probs = softmax(utilities / latent.temperature.reshape([1, 1, 1]), 2);
    let mean = probs.mean_dim(1).squeeze_dim::<2>(1);
    let log_probs = labels.iter().enumerate().map(|(example, label)| {
        mean.clone().narrow(0, example, 1).narrow(1, *label, 1).log().reshape([1])
    });
    -Tensor::cat(log_probs.collect(), 0).mean()
}

#[test]
fn losses_and_gradients_are_those_of_autodiff() {
    let device = Device::flex().autodiff();
    let layer = HetLinearConfig {
        temperature: aleator_model::HeadTemperature::Learned {
            low: crate::support::tau(0.05),
            high: crate::support::tau(5.0),
        },
        classes: 9,
        ..config(Noise::OnFeatures { rank: 2 }, Link::Softmax)
    }
    .init(&device);
    for (draws, samples) in [(Draws::Independent, 8), (Draws::Antithetic, 7), (Draws::Sobol, 80)] {
        let noise = noise(3, samples, draws);
        let expected = loss_by_autodiff(&layer, &[0, 8, 3], &noise, &device);
        let labels = Tensor::<1, Int>::from_ints([0, 8, 3], &device);
        let found = layer.loss_with(matrix(3, 5, 1, &device), labels, &noise);
        assert_close(&values(found.clone().inner()), &values(expected.clone().inner()), 1e-5);
        let expected = named_grads(&layer, &expected.backward());
        for ((name, found), (_, expected)) in
            named_grads(&layer, &found.backward()).iter().zip(&expected)
        {
            println!("{draws:?} {name}");
            assert_close(found, expected, 1e-5);
        }
    }
}

/// Any cross-entropy on the logits has the gradients of the loss, in both spaces.
#[test]
fn the_logits_pull_as_the_loss_does() {
    let device = Device::flex().autodiff();
    for (classes, samples) in [(4, 64), (4, 8), (9, 64)] {
        let layer = layer(classes, Link::Softmax, &device);
        let noise = noise(3, samples, Draws::Antithetic);
        let labels = Tensor::<1, Int>::from_ints([0, 3, 1], &device);
        let loss = layer.loss_with(matrix(3, 5, 1, &device), labels, &noise);
        let log_probs = layer.forward_with(matrix(3, 5, 1, &device), &noise);
        let of = |example: usize, class: usize| {
            log_probs.clone().narrow(0, example, 1).narrow(1, class, 1).reshape([1])
        };
        let by_hand = -Tensor::cat(vec![of(0, 0), of(1, 3), of(2, 1)], 0).mean();
        assert_close(&values(loss.clone().inner()), &values(by_hand.clone().inner()), 1e-5);
        let expected = named_grads(&layer, &by_hand.backward());
        for ((name, found), (_, expected)) in
            named_grads(&layer, &loss.backward()).iter().zip(&expected)
        {
            println!("K = {classes}, S = {samples}: {name}");
            assert_close(found, expected, 2e-5);
        }
    }
}

/// ∂ Σ C ⊙ L of the triangular root by differences.
#[test]
fn the_root_in_class_space_has_the_gradient_of_its_differences() {
    let device = Device::flex().autodiff();
    let shapes = [[3, 5], [3, 5], [5, 2], [5, 4]];
    let given: Vec<Vec<f32>> =
        shapes.iter().zip(10..).map(|([a, b], seed)| numbers(a * b, seed)).collect();
    let upstream = numbers(3 * 4 * 4, 20);
    let forward = |given: &[Vec<f32>], device: &Device| {
        let tensors: Vec<Tensor<2>> = given
            .iter()
            .zip(shapes)
            .map(|(values, shape)| {
                let tensor = Tensor::from_data(TensorData::new(values.clone(), shape), device);
                if device.is_autodiff() { tensor.require_grad() } else { tensor }
            })
            .collect();
        let [diag_scale, loading_scale, shared_loadings, weight] =
            tensors.clone().try_into().unwrap();
        let noise = FeatureNoise { diag_scale, loading_scale, shared_loadings, weight };
        let latent = Latent {
            mean: Tensor::zeros([3, 4], device),
            covariance: Covariance::OnFeatures(noise),
            temperature: Tensor::ones([1], device),
        };
        let Covariance::LowRank { loadings, .. } = latent.in_class_space().covariance else {
            unreachable!()
        };
        let along = Tensor::from_data(TensorData::new(upstream.clone(), [3, 4, 4]), device);
        (tensors, (loadings * along).sum())
    };
    let (tensors, value) = forward(&given, &device);
    let grads = value.backward();
    let plain = Device::flex();
    let value_at = |given: &[Vec<f32>]| {
        let (_, value) = forward(given, &plain);
        f64::from(value.into_scalar::<f32>())
    };
    for (part, tensor) in tensors.iter().enumerate() {
        let found = values(tensor.grad(&grads).unwrap());
        for at in 0..found.len() {
            let step = 2e-3;
            let moved = |by: f32| {
                let mut given = given.clone();
                given[part][at] += by;
                value_at(&given)
            };
            let expected = ((moved(step) - moved(-step)) / (2.0 * f64::from(step))) as f32;
            // Rounding of a sum of 48 numbers of about 1, over the step.
            let error = (found[at] - expected).abs();
            assert!(
                error < 4e-3 * expected.abs().max(1.0),
                "{part}[{at}]: {} {expected}",
                found[at]
            );
        }
    }
}

#[test]
fn threads_and_the_order_of_a_batch_change_no_bit() {
    let device = Device::flex().autodiff();
    for (classes, samples) in [(4, 64), (9, 100)] {
        let layer = layer(classes, Link::Softmax, &device);
        let numbers = |threads: usize, order: [usize; 3]| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let x = matrix(3, 5, 1, &device);
                let x = Tensor::cat(order.map(|row| x.clone().narrow(0, row, 1)).to_vec(), 0);
                let mut noise = noise(3, samples, Draws::Antithetic);
                noise.ids = order.map(|row| noise.ids[row]).to_vec();
                let latent = layer.head().forward(x);
                let log_probs = values(softmax_log_probs(latent, &noise).inner());
                order.map(|row| {
                    let at = order.iter().position(|other| *other == row).unwrap();
                    let bits = log_probs[at * classes..][..classes].iter().map(|p| p.to_bits());
                    (row, bits.collect::<Vec<u32>>())
                })
            })
        };
        let sorted = |mut rows: [(usize, Vec<u32>); 3]| {
            rows.sort();
            rows
        };
        let one = numbers(1, [0, 1, 2]);
        assert_eq!(one, numbers(3, [0, 1, 2]));
        assert_eq!(one, sorted(numbers(2, [2, 0, 1])));
    }
}

/// Likelihoods of whole covariances: of several labels together, and by the expansion.
#[test]
fn other_likelihoods_learn_the_covariance_of_features_too() {
    let device = Device::flex().autodiff();
    for (likelihood, link) in [
        (Likelihood::Joint, Link::Sigmoid),
        (Likelihood::Expansion, Link::Softmax),
        (Likelihood::LogExpansion, Link::Softmax),
    ] {
        let config = config(Noise::OnFeatures { rank: 2 }, link);
        let layer = HetLinearConfig { likelihood, ..config }.init(&device);
        let noise = noise(3, 256, Draws::Sobol);
        let labels = Tensor::from_data([[1.0, 0.0, 0.0, 0.0]; 3], &device);
        let loss = |layer: &HetLinear, labels: &Tensor<2>| {
            layer.loss_with(matrix(3, 5, 1, &device), labels.clone(), &noise)
        };
        let found = named_grads(&layer, &loss(&layer, &labels).backward());
        for (name, found) in found {
            for (at, found) in found.iter().enumerate() {
                let moved = |by: f32| {
                    let layer = aleator_model::params::update(layer.clone(), |_, parameter| {
                        if parameter.name == name {
                            parameter.values.change(|values| values[at] += by);
                        }
                    });
                    f64::from(loss(&layer, &labels).inner().into_scalar::<f32>())
                };
                let step = 1e-2;
                let expected = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
                let error = (f64::from(*found) - expected).abs();
                // Rounding of a loss of about 3 over the step, and the third derivative.
                assert!(error < 2e-3, "{likelihood:?} {name}[{at}]: {found} for {expected}");
            }
        }
    }
}

#[test]
fn a_layer_without_weights_has_no_noise_and_finite_gradients() {
    let device = Device::flex().autodiff();
    for (classes, link) in [(4, Link::Softmax), (9, Link::Softmax), (4, Link::Sigmoid)] {
        let layer = layer(classes, link, &device);
        let layer = aleator_model::params::update(layer, |_, parameter| {
            if parameter.name == "head.mean.weight" {
                parameter.values.change(|values| values.fill(0.0));
            }
        });
        let labels = matrix(3, classes, 2, &device).greater_elem(0.0).float();
        let noise = noise(3, 64, Draws::Antithetic);
        let loss = layer.loss_with(matrix(3, 5, 1, &device), labels, &noise);
        for (name, grad) in named_grads(&layer, &loss.backward()) {
            assert!(grad.iter().all(|value| value.is_finite()), "{link:?} {name}: {grad:?}");
        }
    }
}
