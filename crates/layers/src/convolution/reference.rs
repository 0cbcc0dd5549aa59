//! The convolution and its gradients in f64 with plain loops, to test the fast functions against.

use super::ConvolutionShape;

/// The output of [`super::forward`].
pub fn forward(x: &[f32], weight: &[f32], shape: &ConvolutionShape) -> Vec<f64> {
    let [height, width] = shape.out_size();
    let mut out = vec![0.0; shape.batch * shape.outputs * height * width];
    each_product(shape, |input, tap, output| {
        out[output] += f64::from(x[input]) * f64::from(weight[tap]);
    });
    out
}

/// The gradient of [`super::input_gradient`].
pub fn input_gradient(grad_out: &[f32], weight: &[f32], shape: &ConvolutionShape) -> Vec<f64> {
    let mut grad_x = vec![0.0; shape.batch * shape.inputs * shape.size[0] * shape.size[1]];
    each_product(shape, |input, tap, output| {
        grad_x[input] += f64::from(grad_out[output]) * f64::from(weight[tap]);
    });
    grad_x
}

/// The gradient of [`super::weight_gradient`].
pub fn weight_gradient(x: &[f32], grad_out: &[f32], shape: &ConvolutionShape) -> Vec<f64> {
    let mut grad_weight = vec![0.0; shape.outputs * shape.depth()];
    each_product(shape, |input, tap, output| {
        grad_weight[tap] += f64::from(grad_out[output]) * f64::from(x[input]);
    });
    grad_weight
}

/// Calls `term` with the indices of input, weight and output of every product of the convolution.
fn each_product(shape: &ConvolutionShape, mut term: impl FnMut(usize, usize, usize)) {
    let ConvolutionShape { batch, inputs, outputs, size, kernel, stride, padding, groups } = *shape;
    let (from, to) = (inputs / groups, outputs / groups);
    let [height, width] = shape.out_size();
    let inside = |at: usize, padding: usize, size: usize| at >= padding && at - padding < size;
    for output in 0..batch * outputs * height * width {
        let (pixel, channel) = (output % (height * width), output / (height * width) % outputs);
        let (image, [y, x]) = (output / (height * width) / outputs, [pixel / width, pixel % width]);
        for tap in 0..shape.depth() {
            let (i, j) = (tap / kernel[1] % kernel[0], tap % kernel[1]);
            let input = channel / to * from + tap / (kernel[0] * kernel[1]);
            let [row, column] = [y * stride[0] + i, x * stride[1] + j];
            if inside(row, padding[0], size[0]) && inside(column, padding[2], size[1]) {
                let at = (image * inputs + input) * size[0] + row - padding[0];
                let at = at * size[1] + column - padding[2];
                term(at, channel * shape.depth() + tap, output);
            }
        }
    }
}
