//! The convolution of every network.

use burn::tensor::Tensor;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;

/// Convolution without bias, the image surrounded by `padding` (top, bottom, left, right) zeros.
///
/// # Shapes
/// - x: [B, in, H, W]
/// - weight: [out, in / groups, kh, kw]
/// - returns: [B, out, (H + top + bottom − kh) / stride + 1, likewise for the width]
pub(crate) fn convolve(
    x: Tensor<4>,
    weight: Tensor<4>,
    stride: [usize; 2],
    padding: [usize; 4],
    groups: usize,
) -> Tensor<4> {
    let [top, bottom, left, right] = padding;
    let (x, both_sides) = if top == bottom && left == right {
        (x, [top, left])
    } else {
        (x.pad((left, right, top, bottom), 0.0), [0, 0])
    };
    conv2d(x, weight, None, ConvOptions::new(stride, both_sides, [1, 1], groups))
}
