//! The convolution and its gradients, over plain slices of images `[B, C, H, W]`.
//!
//! All three are products of matrices, one of which is never formed: each of its columns is the input
//! that the taps of the kernel see at one pixel. A block of pixels is copied once into a padded form
//! in which every tap reads whole vectors (`window.rs`), and multiplied on the register tile of the
//! dense layer (`product.rs`, `weight.rs`). The input gradient is a convolution of the upstream
//! gradient for each remainder of the pixels modulo the stride. Depthwise convolutions have their own
//! loops.
//!
//! Work is divided by position in the output and by image, never by thread. Each number is summed by
//! one task in a fixed order, so results are bit-identical in any rayon pool.
//!
//! ```
//! use aleator_layers::convolution::{ConvolutionShape, forward};
//!
//! // A horizontal difference over one image of one channel, without padding.
//! let shape = ConvolutionShape {
//!     batch: 1,
//!     inputs: 1,
//!     outputs: 1,
//!     size: [2, 3],
//!     kernel: [1, 2],
//!     stride: [1, 1],
//!     padding: [0; 4],
//!     groups: 1,
//! };
//! assert_eq!(shape.out_size(), [2, 2]);
//! let mut out = [0.0; 4];
//! forward(&[1.0, 3.0, 6.0, 0.0, 5.0, 7.0], &[-1.0, 1.0], &mut out, &shape);
//! assert_eq!(out, [2.0, 3.0, 5.0, 2.0]);
//! ```
#![allow(unsafe_code, reason = "tables of offsets are checked once, not at every load")]

mod blocks;
mod depthwise;
mod panel;
mod product;
pub mod reference;
mod weight;
mod window;

use crate::shared::SharedSlice;
use depthwise::{DepthwiseProduct, DepthwiseWeight};
use product::{Images, Left, Product, Target};
use pulp::{Arch, WithSimd};
use weight::WeightGradient;
use window::{Phase, Window};

/// The sizes of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionShape {
    /// Images, `B`.
    pub batch: usize,
    /// Channels of the input, `C`.
    pub inputs: usize,
    /// Channels of the output, `O`.
    pub outputs: usize,
    /// Height and width of the input, `H`, `W`.
    pub size: [usize; 2],
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Pixels from one output to the next, down and right.
    pub stride: [usize; 2],
    /// Zeros around the input: top, bottom, left, right.
    pub padding: [usize; 4],
    /// Groups: output channels of a group see only the input channels of that group.
    pub groups: usize,
}

impl ConvolutionShape {
    /// Height and width of the output.
    ///
    /// # Panics
    /// If the kernel, a stride or the groups do not fit the sizes.
    pub fn out_size(&self) -> [usize; 2] {
        let Self { size, kernel, stride, padding, .. } = self;
        let [top, bottom, left, right] = padding;
        let padded = [size[0] + top + bottom, size[1] + left + right];
        let fits = |axis: usize| kernel[axis] >= 1 && kernel[axis] <= padded[axis];
        assert!(fits(0) && fits(1), "a kernel of {kernel:?} does not fit an image of {padded:?}");
        assert!(stride[0] > 0 && stride[1] > 0, "a stride must be at least 1, found {stride:?}");
        [0, 1].map(|axis| (padded[axis] - kernel[axis]) / stride[axis] + 1)
    }

    /// Multiplications of one call of any of the three functions.
    pub fn multiplications(&self) -> usize {
        let [height, width] = self.out_size();
        self.batch * self.outputs * height * width * self.depth()
    }

    /// Numbers of the weight that contribute to one output.
    fn depth(&self) -> usize {
        self.inputs / self.groups * self.kernel[0] * self.kernel[1]
    }

    fn is_depthwise(&self) -> bool {
        self.groups == self.inputs && self.groups == self.outputs && self.groups > 1
    }

    fn check(&self, x: &[f32], weight: &[f32], out: &[f32]) {
        let Self { batch, inputs, outputs, size, groups, .. } = self;
        let [height, width] = self.out_size();
        let divides = *groups > 0 && inputs % groups == 0 && outputs % groups == 0;
        assert!(divides, "{groups} groups must divide {inputs} inputs and {outputs} outputs");
        let check = |slice: &[f32], len: usize, what: &str| {
            assert_eq!(slice.len(), len, "{what}, here {self:?}");
        };
        check(x, batch * inputs * size[0] * size[1], "the input must be [B, C, H, W]");
        check(weight, outputs * self.depth(), "the weight must be [O, C/groups, kernel]");
        check(out, batch * outputs * height * width, "the output must be [B, O, height, width]");
    }

    /// The part of the input that each output sees.
    fn window(&self) -> Window {
        Window {
            source: self.size,
            grid: self.out_size(),
            stride: self.stride,
            taps: self.kernel,
            origin: [-(self.padding[0] as isize), -(self.padding[2] as isize)],
        }
    }
}

/// Steps of the weight that are packed at a time.
const PACKED_STEPS: usize = 256;

/// `out[b, o, y, x] = Σ weight[o, c, i, j] · input[b, c, y·stride + i − top, x·stride + j − left]`.
///
/// # Shapes
/// `x` `[B, C, H, W]`, `weight` `[O, C/groups, kernel]`, `out` `[B, O, out_size]` (overwritten).
pub fn forward(x: &[f32], weight: &[f32], out: &mut [f32], shape: &ConvolutionShape) {
    forward_on(Detected, x, weight, out, shape);
}

/// The vector instructions that an operation runs on.
trait Vectors: Copy {
    fn run<Op: WithSimd>(self, op: Op) -> Op::Output;
}

/// The best instructions of the machine.
#[derive(Clone, Copy)]
struct Detected;

impl Vectors for Detected {
    fn run<Op: WithSimd>(self, op: Op) -> Op::Output {
        Arch::new().dispatch(op)
    }
}

fn forward_on(
    vectors: impl Vectors,
    x: &[f32],
    weight: &[f32],
    out: &mut [f32],
    shape: &ConvolutionShape,
) {
    shape.check(x, weight, out);
    let window = shape.window();
    let target = Target::whole(shape.outputs, window.grid);
    let out = SharedSlice::new(out);
    let images = Images { window, source: x, batch: shape.batch, target, out };
    if shape.is_depthwise() {
        let weight = weight.to_vec();
        return vectors.run(DepthwiseProduct { images, channels: shape.inputs, weight });
    }
    let (rows, depth) = (shape.outputs / shape.groups, shape.depth());
    let left = Left::pack(shape.groups, rows, depth, |group, chosen, steps| {
        // Few steps at a time, so that they stay in L1 until all rows are written.
        for (index, steps) in steps.chunks_mut(PACKED_STEPS).enumerate() {
            for (lane, row) in chosen.clone().enumerate() {
                let row = &weight[(group * rows + row) * depth + index * PACKED_STEPS..];
                steps.iter_mut().zip(row).for_each(|(step, value)| step[lane] = *value);
            }
        }
    });
    let (groups, channels) = (shape.groups, shape.inputs / shape.groups);
    vectors.run(Product { images, groups, channels, left: &left });
}

/// The gradient of `Σ forward(x) · grad_out` with respect to `x`.
///
/// # Shapes
/// `grad_out` `[B, O, out_size]`, `weight` `[O, C/groups, kernel]`, `grad_x` `[B, C, H, W]`
/// (overwritten).
///
/// ```
/// use aleator_layers::convolution::{ConvolutionShape, input_gradient};
///
/// let shape = ConvolutionShape {
///     batch: 1,
///     inputs: 1,
///     outputs: 1,
///     size: [1, 3],
///     kernel: [1, 2],
///     stride: [1, 1],
///     padding: [0; 4],
///     groups: 1,
/// };
/// let mut grad_x = [0.0; 3];
/// input_gradient(&[1.0, 10.0], &[2.0, 3.0], &mut grad_x, &shape);
/// assert_eq!(grad_x, [2.0, 23.0, 30.0]);
/// ```
pub fn input_gradient(
    grad_out: &[f32],
    weight: &[f32],
    grad_x: &mut [f32],
    shape: &ConvolutionShape,
) {
    input_gradient_on(Detected, grad_out, weight, grad_x, shape);
}

fn input_gradient_on(
    vectors: impl Vectors,
    grad_out: &[f32],
    weight: &[f32],
    grad_x: &mut [f32],
    shape: &ConvolutionShape,
) {
    shape.check(grad_x, weight, grad_out);
    let [height, width] = shape.size;
    let phases = Phase::all(shape);
    // Every pixel belongs to one phase; pixels that no tap reaches are zero.
    if phases.iter().any(|phase| phase.window.taps.contains(&0)) {
        grad_x.fill(0.0);
    }
    let out = SharedSlice::new(grad_x);
    for phase in phases.iter().filter(|phase| !phase.window.taps.contains(&0)) {
        let [first_row, first_column] = phase.first;
        let target = Target {
            channels: shape.inputs,
            plane: height * width,
            start: first_row * width + first_column,
            step: [shape.stride[0] * width, shape.stride[1]],
        };
        let (window, batch) = (phase.window, shape.batch);
        let images = Images { window, source: grad_out, batch, target, out };
        input_gradient_of(vectors, phase, images, weight, shape);
    }
}

/// The gradient at the pixels of one phase.
fn input_gradient_of(
    vectors: impl Vectors,
    phase: &Phase,
    images: Images<'_>,
    weight: &[f32],
    shape: &ConvolutionShape,
) {
    let groups = shape.groups;
    let size = shape.kernel[0] * shape.kernel[1];
    if shape.is_depthwise() {
        let taps = (0..groups).flat_map(|c| phase.taps(shape).map(move |tap| (c, tap)));
        let weight = taps.map(|(c, tap)| weight[c * size + tap]).collect();
        return vectors.run(DepthwiseProduct { images, channels: groups, weight });
    }
    let (inputs, outputs) = (shape.inputs / groups, shape.outputs / groups);
    let taps: Vec<usize> = phase.taps(shape).collect();
    let left = Left::pack(groups, inputs, outputs * taps.len(), |group, chosen, steps| {
        for (output, steps) in steps.chunks_exact_mut(taps.len()).enumerate() {
            for (lane, input) in chosen.clone().enumerate() {
                let kernel =
                    &weight[((group * outputs + output) * inputs + input) * size..][..size];
                steps.iter_mut().zip(&taps).for_each(|(step, tap)| step[lane] = kernel[*tap]);
            }
        }
    });
    vectors.run(Product { images, groups, channels: outputs, left: &left });
}

/// The gradient of `Σ forward(x) · grad_out` with respect to the weight.
///
/// # Shapes
/// `x` `[B, C, H, W]`, `grad_out` `[B, O, out_size]`, `grad_weight` `[O, C/groups, kernel]`
/// (overwritten).
///
/// ```
/// use aleator_layers::convolution::{ConvolutionShape, weight_gradient};
///
/// let shape = ConvolutionShape {
///     batch: 1,
///     inputs: 1,
///     outputs: 1,
///     size: [1, 3],
///     kernel: [1, 2],
///     stride: [1, 1],
///     padding: [0; 4],
///     groups: 1,
/// };
/// let mut grad_weight = [0.0; 2];
/// weight_gradient(&[1.0, 2.0, 3.0], &[1.0, 10.0], &mut grad_weight, &shape);
/// assert_eq!(grad_weight, [21.0, 32.0]);
/// ```
pub fn weight_gradient(
    x: &[f32],
    grad_out: &[f32],
    grad_weight: &mut [f32],
    shape: &ConvolutionShape,
) {
    weight_gradient_on(Detected, x, grad_out, grad_weight, shape);
}

fn weight_gradient_on(
    vectors: impl Vectors,
    x: &[f32],
    grad_out: &[f32],
    grad_weight: &mut [f32],
    shape: &ConvolutionShape,
) {
    shape.check(x, grad_weight, grad_out);
    let out = SharedSlice::new(grad_weight);
    let window = shape.window();
    if shape.is_depthwise() {
        let (batch, channels) = (shape.batch, shape.inputs);
        let op = DepthwiseWeight { window, source: x, grad_out, batch, channels, out };
        return vectors.run(op);
    }
    vectors.run(WeightGradient { window, source: x, grad_out, out, shape: *shape });
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Scalar128b, Scalar256b, Scalar512b, Simd};

    #[derive(Clone, Copy)]
    struct On<S: Simd>(S);

    impl<S: Simd> Vectors for On<S> {
        fn run<Op: WithSimd>(self, op: Op) -> Op::Output {
            self.0.vectorize(op)
        }
    }

    /// Small whole numbers: any order of summation is exact, so all lane widths agree to the bit.
    fn whole(len: usize, salt: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7 + i / 11 + salt) % 9) as f32 - 4.0).collect()
    }

    fn results(vectors: impl Vectors, shape: &ConvolutionShape) -> [Vec<f32>; 3] {
        let [height, width] = shape.out_size();
        let x = whole(shape.batch * shape.inputs * shape.size[0] * shape.size[1], 1);
        let weight = whole(shape.outputs * shape.depth(), 2);
        let grad_out = whole(shape.batch * shape.outputs * height * width, 3);
        let [mut out, mut grad_x, mut grad_weight] =
            [&grad_out, &x, &weight].map(|like| vec![f32::NAN; like.len()]);
        forward_on(vectors, &x, &weight, &mut out, shape);
        input_gradient_on(vectors, &grad_out, &weight, &mut grad_x, shape);
        weight_gradient_on(vectors, &x, &grad_out, &mut grad_weight, shape);
        [out, grad_x, grad_weight]
    }

    #[test]
    fn every_lane_width_gives_the_dispatched_result() {
        let shape = ConvolutionShape {
            batch: 3,
            inputs: 6,
            outputs: 12,
            size: [16, 32],
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1; 4],
            groups: 1,
        };
        let shapes = [
            shape,
            ConvolutionShape { stride: [2, 2], ..shape },
            ConvolutionShape { size: [7, 7], outputs: 80, ..shape },
            ConvolutionShape { size: [5, 13], groups: 6, outputs: 6, ..shape },
            ConvolutionShape { kernel: [1, 1], padding: [0; 4], size: [9, 3], ..shape },
        ];
        for shape in &shapes {
            let expected = results(Detected, shape);
            assert_eq!(results(On(Scalar128b), shape), expected, "{shape:?}");
            assert_eq!(results(On(Scalar256b), shape), expected, "{shape:?}");
            assert_eq!(results(On(Scalar512b), shape), expected, "{shape:?}");
        }
    }
}
