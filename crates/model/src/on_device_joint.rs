//! The joint likelihood of several labels on devices other than the CPU, over chunks of samples.

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;
use burn::tensor::activation::{log_sigmoid, sigmoid};

use crate::latent::Latent;
use crate::likelihood::BatchNoise;
use crate::on_device::{Chunk, Sums, chunks, log_mean_exp};

/// log P of all labels of each example, [B, 1].
///
/// # Shapes
/// - labels: [B, K], each between 0 (off) and 1 (on)
pub(crate) fn log_probs(latent: &Latent, noise: &BatchNoise, labels: &Tensor<2>) -> Tensor<2> {
    let of_chunk = |chunk| of_samples(&Chunk::draw(latent, noise, chunk), labels);
    log_mean_exp(chunks(latent, noise).map(of_chunk))
}

/// Gradients of Σ upstream · log P, in the order of [`Latent::tensors`].
///
/// # Shapes
/// - log_probs: the output of [`log_probs`]; upstream: [B, 1]
pub(crate) fn backward(
    latent: &Latent,
    noise: &BatchNoise,
    labels: &Tensor<2>,
    log_probs: Tensor<2>,
    upstream: Tensor<2>,
) -> Vec<Option<DispatchTensor>> {
    let samples: usize = chunks(latent, noise).map(|chunk| chunk.len()).sum();
    let upstream = upstream.unsqueeze_dim::<3>(1) / samples as f32;
    let log_probs = log_probs.unsqueeze_dim::<3>(1);
    let labels_of_samples = labels.clone().unsqueeze_dim::<3>(1);
    let sums = chunks(latent, noise).map(|chunk| {
        let drawn = Chunk::draw(latent, noise, chunk);
        let pull = (of_samples(&drawn, labels) - log_probs.clone()).exp() * upstream.clone();
        let slope = labels_of_samples.clone() - sigmoid(drawn.scaled.clone());
        let grad = slope * pull;
        Sums::of(grad / latent.temperature.clone().reshape([1, 1, 1]), &drawn, latent)
    });
    sums.reduce(Sums::add).expect("at least one sample").into_grads(latent)
}

/// log Π_c p(y_c ∣ u_sc) of each sample, [B, n, 1].
fn of_samples(chunk: &Chunk, labels: &Tensor<2>) -> Tensor<3> {
    let labels = labels.clone().unsqueeze_dim::<3>(1);
    // log σ(−x) = log σ(x) − x.
    let terms = log_sigmoid(chunk.scaled.clone()) - (-labels + 1.0) * chunk.scaled.clone();
    terms.sum_dim(2)
}

#[cfg(test)]
mod tests {
    use aleator_kernels::fused::log_probs as log_probs_of_kernel;
    use aleator_kernels::multilabel::joint_loss_and_grad;
    use aleator_kernels::{Draws, LatentGrad, NoiseKey, Targets, Vectors};
    use burn::tensor::{Device, Tensor, TensorData};

    use super::{backward, log_probs};
    use crate::latent::{Covariance, CpuLatent, Latent};
    use crate::likelihood::BatchNoise;
    use crate::slices::Floats;

    fn tensor<const D: usize>(shape: [usize; D], step: f32) -> Tensor<D> {
        let numbers = 0..shape.iter().product::<usize>();
        let values: Vec<f32> = numbers.map(|at| (step * (at + 1) as f32).sin()).collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex())
    }

    fn problem() -> (Latent, BatchNoise) {
        let (batch, classes, rank) = (3, 4, 2);
        let latent = Latent {
            mean: tensor([batch, classes], 0.7),
            covariance: Covariance::LowRank {
                diag_scale: tensor([batch, classes], 1.1),
                loadings: tensor([batch, classes, rank], 0.3),
            },
            temperature: Tensor::from_floats([0.8], &Device::flex()),
        };
        let noise = BatchNoise {
            key: NoiseKey { seed: 3, step: 5 },
            ids: vec![1, 20, 300],
            samples: 64,
            draws: Draws::Sobol,
        };
        (latent, noise)
    }

    fn close(name: &str, found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len(), "{name}");
        let pairs = found.iter().zip(expected);
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 5e-5, "{name}: {a} {b}"));
    }

    #[test]
    fn the_softmax_in_tensor_operations_is_that_of_the_kernel() {
        let (latent, noise) = problem();
        let found = crate::on_device::log_probs(&latent, &noise);
        let cpu = CpuLatent::new(&latent);
        let mut expected = vec![0.0; 12];
        let (view, sampling) = (cpu.view(), noise.sampling());
        let (tau, vectors) = (cpu.temperature(), Vectors::Detected);
        log_probs_of_kernel(&view, tau, &sampling, vectors, &mut expected).unwrap();
        close("log p", Floats::new(found).as_slice(), &expected);
    }

    /// Tensor operations of any device, here on the CPU, give what the fused kernel does.
    #[test]
    fn loss_and_gradients_are_those_of_the_kernel() {
        let (latent, noise) = problem();
        let [batch, classes] = latent.dims();
        let labels = tensor([batch, classes], 2.9).greater_elem(0.0).float();
        let value = log_probs(&latent, &noise, &labels);
        let upstream = -Tensor::ones([batch, 1], &Device::flex());
        let grads = backward(&latent, &noise, &labels, value.clone(), upstream);

        let (cpu, labels) = (CpuLatent::new(&latent), Floats::new(labels));
        let (view, targets) = (cpu.view(), Targets::Dense(labels.as_slice()));
        let expected = joint_loss_and_grad(
            &view,
            cpu.temperature(),
            &noise.sampling(),
            targets,
            &[1.0; 3],
            Vectors::Detected,
            LatentGrad::zeros(&view),
        )
        .unwrap();
        close("loss", Floats::new(-value).as_slice(), &expected.losses);
        let grad = expected.grad;
        let expected = [grad.mean, vec![grad.temperature], grad.diag_scale, grad.loadings];
        for (at, (found, expected)) in grads.into_iter().zip(expected).enumerate() {
            let found = Tensor::<1>::from_dispatch(found.unwrap());
            close(&format!("gradient {at}"), Floats::new(found).as_slice(), &expected);
        }
    }
}
