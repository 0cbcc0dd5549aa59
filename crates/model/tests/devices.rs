//! Two devices, one answer: with Sobol' draws the noise is the same points everywhere.

use crate::support::{assert_close, config, device, matrix, named_grads, noise, values};
use aleator_model::{Draws, HetLinearConfig, Link, Noise};
use burn::tensor::{Device, Int, Tensor};

/// Loss and gradients of a layer on one device.
fn on(device: Device, config: &HetLinearConfig, samples: usize) -> Vec<(String, Vec<f32>)> {
    let device = device.autodiff();
    let layer = config.init(&device);
    let labels = Tensor::<1, Int>::from_ints([0, 3, 1], &device);
    let noise = noise(3, samples, Draws::Sobol);
    let loss = layer.loss_with(matrix(3, 5, 1, &device), labels, &noise);
    let mut out = vec![("loss".to_string(), values(loss.clone()))];
    out.extend(named_grads(&layer, &loss.backward()));
    out
}

#[test]
fn losses_and_gradients_are_those_of_the_cpu() {
    for link in [Link::Softmax, Link::Sigmoid] {
        for kind in [
            Noise::None,
            Noise::Diagonal,
            Noise::LowRank { rank: 2 },
            Noise::SharedLowRank { rank: 2 },
            Noise::OnFeatures { rank: 2 },
        ] {
            // More classes than features and factors: then the CPU draws on the features, too.
            let config = HetLinearConfig { classes: 9, ..config(kind, link) };
            let (ours, theirs) = (on(Device::flex(), &config, 64), on(device(), &config, 64));
            for ((name, cpu), (_, gpu)) in ours.iter().zip(&theirs) {
                println!("{link:?} {kind:?} {name}");
                // Sums of some hundred products of about 1 in another order.
                assert_close(gpu, cpu, 5e-5);
            }
        }
    }
}

#[test]
fn several_chunks_of_samples_are_one_sum() {
    // 3 × 1,024 × 2,000 entries are more than one chunk of 2²².
    let config = HetLinearConfig { classes: 2000, ..config(Noise::Diagonal, Link::Softmax) };
    let (ours, theirs) = (on(Device::flex(), &config, 1024), on(device(), &config, 1024));
    for ((_, cpu), (_, gpu)) in ours.iter().zip(&theirs) {
        assert_close(gpu, cpu, 5e-5);
    }
}

#[test]
fn odd_numbers_of_antithetic_samples_give_probabilities() {
    let device = device();
    let layer = config(Noise::LowRank { rank: 2 }, Link::Softmax).init(&device);
    for samples in [1, 2, 33] {
        let noise = noise(3, samples, Draws::Antithetic);
        let probs = values(layer.forward_with(matrix(3, 5, 1, &device), &noise).exp());
        for row in probs.chunks(4) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "S = {samples}: {row:?}");
        }
    }
}
