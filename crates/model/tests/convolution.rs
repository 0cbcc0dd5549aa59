//! Convolution and batch normalisation under autodiff against Burn's own operations.

use aleator_model::{
    Activation, Backbone, BackboneConfig, ImageNetwork, NormConfig, convolve, normalise_batch,
    normalise_fixed,
};
use burn::tensor::activation::relu;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Gradients, Tensor, TensorData};

/// Numbers in `[-1, 1)` from a linear congruence, the same on every machine.
fn numbers<const D: usize>(shape: [usize; D], seed: u32, device: &Device) -> Tensor<D> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

#[track_caller]
fn assert_close<const D: usize>(name: &str, ours: Tensor<D>, theirs: Tensor<D>) {
    assert_eq!(ours.dims(), theirs.dims(), "{name}");
    let size: f32 = theirs.clone().abs().max().into_scalar();
    let error: f32 = (ours - theirs).abs().max().into_scalar();
    assert!(error <= 2e-5 * (1.0 + size), "{name}: {error} of {size}"); // sums of ≤ 2,000 products
}

#[test]
fn the_convolution_equals_burns_forward_and_backward() {
    let device = Device::flex().autodiff();
    // batch, inputs, outputs, size, kernel, stride, padding, groups
    let cases = [
        (2, 3, 8, [9, 11], [3, 3], [1, 1], [1, 1], 1),
        (3, 16, 16, [16, 16], [3, 3], [1, 1], [1, 1], 1),
        (2, 8, 24, [15, 14], [3, 3], [2, 2], [1, 1], 1),
        (2, 12, 7, [8, 8], [1, 1], [2, 2], [0, 0], 1),
        (2, 5, 6, [12, 20], [1, 7], [1, 1], [0, 3], 1),
        (2, 8, 8, [13, 13], [3, 3], [2, 1], [1, 1], 8),
        (2, 8, 12, [10, 10], [3, 3], [1, 1], [1, 1], 4),
    ];
    for (batch, inputs, outputs, [height, width], [down, right], stride, padding, groups) in cases {
        let x = numbers([batch, inputs, height, width], 1, &device).require_grad();
        let weight = numbers([outputs, inputs / groups, down, right], 2, &device).require_grad();
        let [y, z] = padding;
        let ours = convolve(x.clone(), weight.clone(), stride, [y, y, z, z], groups);
        let options = ConvOptions::new(stride, padding, [1, 1], groups);
        let theirs = conv2d(x.clone(), weight.clone(), None, options);
        assert_close("value", ours.clone().inner(), theirs.clone().inner());
        let upstream = numbers(ours.dims(), 3, &device);
        let ours = (ours * upstream.clone()).sum().backward();
        let theirs = (theirs * upstream).sum().backward();
        assert_close("input", x.grad(&ours).unwrap(), x.grad(&theirs).unwrap());
        assert_close("weight", weight.grad(&ours).unwrap(), weight.grad(&theirs).unwrap());
    }
}

/// Zeros below and to the right only, as networks from TensorFlow have them.
#[test]
fn padding_may_differ_from_side_to_side() {
    let device = Device::flex();
    let x = numbers([2, 3, 8, 8], 1, &device);
    let weight = numbers([4, 3, 3, 3], 2, &device);
    let ours = convolve(x.clone(), weight.clone(), [2, 2], [0, 1, 0, 1], 1);
    let below = Tensor::cat(vec![x, Tensor::zeros([2, 3, 1, 8], &device)], 2);
    let padded = Tensor::cat(vec![below, Tensor::zeros([2, 3, 9, 1], &device)], 3);
    let options = ConvOptions::new([2, 2], [0, 0], [1, 1], 1);
    assert_close("value", ours, conv2d(padded, weight, None, options));
}

/// Images that need no gradient get none; the weight gets its own.
#[test]
fn an_input_that_needs_no_gradient_gets_none() {
    let device = Device::flex().autodiff();
    let x = numbers([2, 3, 8, 8], 1, &device);
    let weight = numbers([4, 3, 3, 3], 2, &device).require_grad();
    let out = convolve(x.clone(), weight.clone(), [1, 1], [1; 4], 1);
    let grads = out.sum().backward();
    assert!(x.grad(&grads).is_none());
    assert!(weight.grad(&grads).is_some());
}

/// A tensor that is not laid out in its own order.
#[test]
fn turned_images_are_convolved_as_they_read() {
    let device = Device::flex();
    let weight = numbers([4, 3, 3, 3], 2, &device);
    let turned = numbers([2, 3, 6, 9], 1, &device).swap_dims(2, 3);
    let ours = convolve(turned.clone(), weight.clone(), [1, 1], [1; 4], 1);
    let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    assert_close("value", ours, conv2d(turned, weight, None, options));
}

fn activate(y: Tensor<4>, activation: Activation) -> Tensor<4> {
    match activation {
        Activation::None => y,
        Activation::Relu => relu(y),
        Activation::Relu6 => y.clamp(0.0, 6.0),
    }
}

/// By tensor operations: the output, with mean and variance of the batch where none are given.
fn plain_norm(
    x: Tensor<4>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    given: Option<[Tensor<1>; 2]>,
    activation: Activation,
) -> Tensor<4> {
    let [_, channels, _, _] = x.dims();
    let shape = [1, channels, 1, 1];
    let mean_of = |x: Tensor<4>| x.mean_dim(0).mean_dim(2).mean_dim(3);
    let (mean, variance) = match given {
        Some([mean, variance]) => (mean.reshape(shape), variance.reshape(shape)),
        None => {
            let mean = mean_of(x.clone());
            let apart = x.clone() - mean.clone();
            (mean, mean_of(apart.clone() * apart))
        }
    };
    let normal = (x - mean) / (variance + 1e-3).sqrt();
    activate(normal * scale.reshape(shape) + shift.reshape(shape), activation)
}

fn assert_gradients<const D: usize>(
    name: &str,
    of: &Tensor<D>,
    ours: &Gradients,
    theirs: &Gradients,
) {
    assert_close(name, of.grad(ours).unwrap(), of.grad(theirs).unwrap());
}

#[test]
fn batch_normalisation_equals_tensor_operations_forward_and_backward() {
    let device = Device::flex().autodiff();
    for activation in [Activation::None, Activation::Relu, Activation::Relu6] {
        for fixed in [false, true] {
            let x = (numbers([4, 5, 6, 7], 1, &device) + 0.5).require_grad();
            let scale = (numbers([5], 2, &device) * 4.0).require_grad();
            let shift = (numbers([5], 3, &device) + 1.0).require_grad();
            let mean = numbers([5], 4, &device);
            let variance = numbers([5], 5, &device).abs() + 0.1;
            let ours = if fixed {
                let [mean, variance] = [mean.clone(), variance.clone()];
                let (scale, shift) = (Some(scale.clone()), shift.clone());
                normalise_fixed(x.clone(), scale, shift, mean, variance, 1e-3, activation)
            } else {
                let scale = Some(scale.clone());
                normalise_batch(x.clone(), scale, shift.clone(), 1e-3, activation).out
            };
            let given = fixed.then_some([mean, variance]);
            let theirs = plain_norm(x.clone(), scale.clone(), shift.clone(), given, activation);
            assert_close("value", ours.clone().inner(), theirs.clone().inner());
            let upstream = numbers(ours.dims(), 6, &device);
            let ours = (ours * upstream.clone()).sum().backward();
            let theirs = (theirs * upstream).sum().backward();
            assert_gradients("x", &x, &ours, &theirs);
            assert_gradients("scale", &scale, &ours, &theirs);
            assert_gradients("shift", &shift, &ours, &theirs);
        }
    }
}

#[test]
fn the_batchs_mean_and_variance_come_with_the_result() {
    let device = Device::flex();
    let x = Tensor::<4>::from_data([[[[1.0, 3.0]], [[2.0, 2.0]]]], &device);
    let shift = Tensor::<1>::from_data([0.0, 7.0], &device);
    let found = normalise_batch(x, None, shift, 1e-9, Activation::None);
    assert_eq!((found.mean, found.variance), (vec![2.0, 2.0], vec![1.0, 0.0]));
    let expected = Tensor::<4>::from_data([[[[-1.0, 1.0]], [[7.0, 7.0]]]], &device);
    assert_close("value", found.out, expected);
}

/// The public network: its features follow from its weights by Burn's operations too.
#[test]
fn the_small_network_learns_with_the_same_gradients_twice() {
    let device = Device::flex().autodiff();
    let config = BackboneConfig::Conv { image: [3, 12, 12], channels: vec![8, 16] };
    let network: Backbone = config.init(3, &device);
    let x = numbers([4, 3 * 12 * 12], 1, &device).require_grad();
    let features = network.forward(x.clone());
    assert_eq!(features.dims(), [4, 16]);
    let first = x.grad(&features.sum().backward()).unwrap();
    let second = x.grad(&network.forward(x.clone()).sum().backward()).unwrap();
    assert_eq!(first.into_data(), second.into_data());
}

#[test]
fn a_whole_residual_network_has_finite_gradients() {
    let device = Device::flex().autodiff();
    let config = BackboneConfig::Image {
        network: ImageNetwork::ResNet20,
        image: [3, 32, 32],
        norm: NormConfig { momentum: 0.9, epsilon: 1e-5 },
        hidden: vec![],
    };
    let images = numbers([2, 3 * 32 * 32], 1, &device).require_grad();
    let (features, _) = config.init(3, &device).forward_training(images.clone());
    // A sum of squares: the sum of normalised features alone has no gradient.
    let grads = (features.clone() * features).sum().backward();
    let size: f32 = images.grad(&grads).unwrap().abs().max().into_scalar();
    assert!(size > 0.0 && size.is_finite(), "{size}");
}
