//! What the head's tests share. They run on the CPU, or with feature `wgpu` on that device.
#![allow(dead_code)] // each test file uses its part

use aleator_model::{
    BatchNoise, Classifier, DiagScale, Draws, HeadTemperature, HetLinearConfig, Likelihood, Link,
    Noise, NoiseKey, Targets, Temperature, TrainingLoss,
};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

/// The device under test, without autodiff.
pub fn device() -> Device {
    #[cfg(feature = "wgpu")]
    return Device::wgpu(Default::default());
    #[cfg(not(feature = "wgpu"))]
    Device::flex()
}

pub fn tau(value: f32) -> Temperature {
    Temperature::try_from(value).unwrap()
}

pub fn config(noise: Noise, link: Link) -> HetLinearConfig {
    HetLinearConfig {
        feature_dim: 5,
        classes: 4,
        noise,
        link,
        likelihood: Likelihood::Marginal,
        temperature: HeadTemperature::Fixed(tau(0.8)),
        diag_scale: DiagScale::Softplus,
        samples: 64,
        draws: Draws::Independent,
        seed: 1,
    }
}

pub fn noise(batch: usize, samples: usize, draws: Draws) -> BatchNoise {
    let ids = (0..batch as u64).map(|i| 10 + i).collect();
    BatchNoise { key: NoiseKey { seed: 3, step: 5 }, ids, samples, draws }
}

/// The mean loss of examples of one class each.
pub fn mean_loss(
    model: &Classifier,
    inputs: Tensor<2>,
    classes: &[u32],
    noise: &BatchNoise,
) -> Result<TrainingLoss, Vec<usize>> {
    let weights = vec![1.0 / classes.len() as f32; classes.len()];
    model.loss(model.forward(inputs), Targets::Classes(classes), &weights, noise, None)
}

/// Numbers between −1 and 1 that look random.
pub fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let words = aleator_kernels::split_mix(seed).take(count);
    words.map(|word| (word >> 40) as f32 / (1u64 << 23) as f32 - 1.0).collect()
}

pub fn matrix(rows: usize, columns: usize, seed: u64, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(numbers(rows * columns, seed), [rows, columns]), device)
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let allowed = tolerance * expected.abs().max(1.0);
        assert!((found - expected).abs() <= allowed, "[{at}]: {found} for {expected}");
    }
}

/// The gradients of a module's parameters by their checkpoint keys.
pub fn named_grads(module: &impl Module, grads: &Gradients) -> Vec<(String, Vec<f32>)> {
    struct Visitor<'a> {
        grads: &'a Gradients,
        path: Vec<String>,
        found: Vec<(String, Vec<f32>)>,
    }
    impl ModuleVisitor for Visitor<'_> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_string());
        }

        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let grad = param.val().grad(self.grads).expect("every parameter has a gradient");
            self.found.push((self.path.join("."), values(grad)));
        }
    }
    let mut visitor = Visitor { grads, path: vec![], found: vec![] };
    module.visit(&mut visitor);
    visitor.found
}
