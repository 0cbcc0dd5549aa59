//! The dense layer, at the speed of the machine.

use aleator_kernels::split_mix;
use aleator_layers::dense::{self, DenseShape};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

use crate::custom_grad::custom_grad;
use crate::recycled;
use crate::slices::{Floats, is_cpu};

/// `features · weight + bias`, as `burn::nn::Linear` but with our kernels on the CPU.
#[derive(Module, Debug)]
pub struct Dense {
    /// [D, N].
    pub weight: Param<Tensor<2>>,
    /// `[N]`.
    pub bias: Param<Tensor<1>>,
}

impl Dense {
    /// Weights and bias uniform within ±1/√D, as `burn::nn::Linear` starts, drawn from `seed` so
    /// that a run can be repeated.
    pub fn init(inputs: usize, outputs: usize, seed: u64, device: &Device) -> Self {
        let bound = 1.0 / (inputs as f32).sqrt();
        let mut values = uniform(seed, (inputs + 1) * outputs, bound);
        let bias = TensorData::new(values.split_off(inputs * outputs), [outputs]);
        let weight = TensorData::new(values, [inputs, outputs]);
        Self { weight: Param::from_data(weight, device), bias: Param::from_data(bias, device) }
    }

    /// Weights that keep the variance of what passes through a rectifier (He et al., 2015), and
    /// zero bias.
    pub fn init_before_relu(inputs: usize, outputs: usize, seed: u64, device: &Device) -> Self {
        let values = uniform(seed, inputs * outputs, (6.0 / inputs as f32).sqrt());
        let weight = TensorData::new(values, [inputs, outputs]);
        let bias = TensorData::zeros::<f32, _>([outputs]);
        Self { weight: Param::from_data(weight, device), bias: Param::from_data(bias, device) }
    }

    /// # Shapes
    /// - features: [B, D]
    /// - returns: [B, N]
    pub fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if !is_cpu(&features.device()) {
            return features.matmul(weight) + bias.unsqueeze();
        }
        let [batch, inputs] = features.dims();
        let [expected, outputs] = weight.dims();
        assert!(inputs == expected, "features must be [B, {expected}], found [{batch}, {inputs}]");
        dense_on_cpu(features, weight, bias, DenseShape { batch, inputs, outputs })
    }
}

/// Numbers uniform within ±bound, drawn from `seed`.
pub(crate) fn uniform(seed: u64, len: usize, bound: f32) -> Vec<f32> {
    let unit = |word: u64| (word >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    split_mix(seed).take(len).map(|word| bound * unit(word)).collect()
}

fn dense_on_cpu(
    features: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    shape: DenseShape,
) -> Tensor<2> {
    let DenseShape { batch, inputs, outputs } = shape;
    let (x, w, b) = (Floats::of(&features), Floats::of(&weight), Floats::of(&bias));
    let out = recycled::filled([batch, outputs], |out| {
        dense::forward(x.as_slice(), w.as_slice(), Some(b.as_slice()), out, shape);
    });
    let parents = vec![features.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()];
    custom_grad(out, parents, move |upstream: Tensor<2>, wanted| {
        let upstream = Floats::new(upstream);
        let (x, w, upstream) = (x.as_slice(), w.as_slice(), upstream.as_slice());
        let features = |grad: &mut [f32]| dense::backward_features(upstream, w, grad, shape);
        let weight = |grad: &mut [f32]| dense::backward_weight(x, upstream, grad, shape);
        let bias = |grad: &mut [f32]| dense::backward_bias(upstream, grad);
        vec![
            wanted[0].then(|| recycled::filled([batch, inputs], features).into_dispatch()),
            wanted[1].then(|| recycled::filled([inputs, outputs], weight).into_dispatch()),
            wanted[2].then(|| recycled::filled([outputs], bias).into_dispatch()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use burn::tensor::Distribution;

    use super::*;

    /// Value and gradients against Burn's own matmul under autodiff.
    #[test]
    fn dense_equals_matmul_forward_and_backward() {
        let device = Device::flex().autodiff();
        let random = |shape: [usize; 2]| {
            Tensor::<2>::random(shape, Distribution::Normal(0.0, 1.0), &device).require_grad()
        };
        let (x, upstream) = (random([5, 7]), random([5, 9]));
        let layer = Dense::init(7, 9, 3, &device);
        let ours = layer.forward(x.clone());
        let theirs = x.clone().matmul(layer.weight.val()) + layer.bias.val().unsqueeze();
        let close = |a: Tensor<2>, b: Tensor<2>| {
            let error: f32 = (a - b).abs().max().into_scalar();
            assert!(error < 1e-5, "{error}"); // sums of 9 products of about 1
        };
        close(ours.clone().inner(), theirs.clone().inner());
        let ours = (ours * upstream.clone()).sum().backward();
        let theirs = (theirs * upstream).sum().backward();
        close(x.grad(&ours).unwrap(), x.grad(&theirs).unwrap());
        let weight = layer.weight.val();
        close(weight.grad(&ours).unwrap(), weight.grad(&theirs).unwrap());
        let bias = layer.bias.val();
        let bias = |grads| bias.grad(grads).unwrap().unsqueeze::<2>();
        close(bias(&ours), bias(&theirs));
    }
}
