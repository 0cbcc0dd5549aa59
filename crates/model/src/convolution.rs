//! The convolution as a tensor operation: the kernel of `aleator-layers` on the CPU.

use aleator_layers::convolution::{self, ConvolutionShape};
use burn::tensor::Tensor;
use burn::tensor::module::conv2d;
use burn::tensor::ops::{ConvOptions, PadMode};

use crate::custom_grad::custom_grad;
use crate::recycled;
use crate::slices::{Floats, is_cpu};

/// The convolution of images with a weight, with zeros around the images, without bias.
///
/// # Shapes
/// - x: [B, C, H, W]
/// - weight: [O, C/groups, kernel height, kernel width]
/// - padding: top, bottom, left, right
/// - returns: [B, O, height, width]
pub fn convolve(
    x: Tensor<4>,
    weight: Tensor<4>,
    stride: [usize; 2],
    padding: [usize; 4],
    groups: usize,
) -> Tensor<4> {
    if is_cpu(&x.device()) {
        return convolve_on_cpu(x, weight, stride, padding, groups);
    }
    let [top, bottom, left, right] = padding;
    let (x, padding) = if top == bottom && left == right {
        (x, [top, left])
    } else {
        (x.pad((left, right, top, bottom), PadMode::Constant(0.0)), [0, 0])
    };
    conv2d(x, weight, None, ConvOptions::new(stride, padding, [1, 1], groups))
}

/// Keeps handles of input and weight for the backward step.
fn convolve_on_cpu(
    x: Tensor<4>,
    weight: Tensor<4>,
    stride: [usize; 2],
    padding: [usize; 4],
    groups: usize,
) -> Tensor<4> {
    let [batch, inputs, height, width] = x.dims();
    let [outputs, _, down, right] = weight.dims();
    let (size, kernel) = ([height, width], [down, right]);
    let shape = ConvolutionShape { batch, inputs, outputs, size, kernel, stride, padding, groups };
    let (images, kernels) = (Floats::of(&x), Floats::of(&weight));
    let [out_height, out_width] = shape.out_size();
    let out = recycled::filled([batch, outputs, out_height, out_width], |out| {
        convolution::forward(images.as_slice(), kernels.as_slice(), out, &shape);
    });
    let dims = [x.dims(), weight.dims()];
    let parents = vec![x.into_dispatch(), weight.into_dispatch()];
    custom_grad(out, parents, move |upstream: Tensor<4>, wanted| {
        let upstream = Floats::new(upstream);
        let upstream = upstream.as_slice();
        let grad_x = |grad: &mut [f32]| {
            convolution::input_gradient(upstream, kernels.as_slice(), grad, &shape);
        };
        let grad_weight = |grad: &mut [f32]| {
            convolution::weight_gradient(images.as_slice(), upstream, grad, &shape);
        };
        vec![
            wanted[0].then(|| recycled::filled(dims[0], grad_x).into_dispatch()),
            wanted[1].then(|| recycled::filled(dims[1], grad_weight).into_dispatch()),
        ]
    })
}
