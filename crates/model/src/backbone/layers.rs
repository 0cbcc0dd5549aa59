//! What the networks for images are built from.

use aleator_kernels::{NoiseKey, Stream};
use aleator_layers::batch_norm::Activation;
use burn::module::{Module, Param, ParamId};
use burn::tensor::module::{avg_pool2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, MaxPoolOptions};
use burn::tensor::{Device, Tensor, TensorData};

use crate::batch_norm::{normalise_batch, normalise_fixed};
use crate::convolution::convolve;
use crate::dense::{Dense, uniform};

/// How many zeros surround an image before a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padding {
    /// None.
    Valid,
    /// Half the kernel on each side.
    Half,
    /// As few as make the result ⌈size / stride⌉ wide, the odd one at the end (TensorFlow's
    /// "same"). With stride 1 it is [`Padding::Half`].
    Same,
}

/// The sizes of a convolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub from: usize,
    pub to: usize,
    pub kernel: [usize; 2],
    pub stride: usize,
    pub padding: Padding,
    pub groups: usize,
}

impl Sizes {
    /// A square kernel in one group, [`Padding::Half`].
    pub fn square(from: usize, to: usize, kernel: usize, stride: usize) -> Self {
        let padding = Padding::Half;
        Self { from, to, kernel: [kernel; 2], stride, padding, groups: 1 }
    }

    pub fn padded(self, padding: Padding) -> Self {
        Self { padding, ..self }
    }
}

/// Fresh parameters: each layer draws its weights from a stream of its own.
pub(super) struct Fresh<'a> {
    pub device: &'a Device,
    pub epsilon: f32,
    /// How many numbers of all layers so far are learned.
    pub learned: usize,
    key: NoiseKey,
    layers: u64,
    /// Whether layers are only counted: then their tensors are empty.
    only_counts: bool,
}

impl<'a> Fresh<'a> {
    pub fn new(seed: u64, epsilon: f32, device: &'a Device) -> Self {
        let key = NoiseKey { seed, step: 0 };
        Self { device, epsilon, learned: 0, key, layers: 0, only_counts: false }
    }

    /// Makes layers without weights, to count them.
    pub fn counting(device: &'a Device) -> Self {
        Self { only_counts: true, ..Self::new(0, 1.0, device) }
    }

    fn next_seed(&mut self) -> u64 {
        self.layers += 1;
        self.key.block_seed(1, Stream::Initial, self.layers - 1)
    }

    /// Weights that keep the variance of what passes through a rectifier (He et al., 2015).
    pub fn convolution(&mut self, sizes: Sizes) -> Convolution {
        let Sizes { from, to, kernel: [height, width], .. } = sizes;
        let shape = [to, from / sizes.groups, height, width];
        let seed = self.next_seed();
        let draw = || {
            let fan_in = shape[1] * height * width;
            uniform(seed, to * fan_in, (6.0 / fan_in as f32).sqrt())
        };
        Convolution {
            weight: self.learned(shape, draw),
            bias: None,
            stride: sizes.stride,
            padding: sizes.padding,
            groups: sizes.groups,
        }
    }

    /// [`Fresh::convolution`] with a bias of zero.
    pub fn biased_convolution(&mut self, sizes: Sizes) -> Convolution {
        let bias = Some(self.learned([sizes.to], || vec![0.0; sizes.to]));
        Convolution { bias, ..self.convolution(sizes) }
    }

    pub fn norm(&mut self, channels: usize) -> Norm {
        let scale = Some(self.learned([channels], || vec![1.0; channels]));
        Norm { scale, ..self.norm_without_scale(channels) }
    }

    pub fn norm_without_scale(&mut self, channels: usize) -> Norm {
        let statistic = |value: f32| self.param([channels], || vec![value; channels]);
        let [running_mean, running_variance] =
            [0.0, 1.0].map(|value| statistic(value).set_require_grad(false));
        let shift = self.learned([channels], || vec![0.0; channels]);
        Norm { scale: None, shift, running_mean, running_variance, epsilon: self.epsilon }
    }

    pub fn dense(&mut self, from: usize, to: usize) -> Dense {
        Dense::init_before_relu(from, to, self.next_seed(), self.device)
    }

    fn learned<const D: usize>(
        &mut self,
        shape: [usize; D],
        values: impl FnOnce() -> Vec<f32>,
    ) -> Param<Tensor<D>> {
        let numbers = shape.iter().fold(1, |product: usize, size| product.saturating_mul(*size));
        self.learned = self.learned.saturating_add(numbers);
        self.param(shape, values)
    }

    fn param<const D: usize>(
        &self,
        shape: [usize; D],
        values: impl FnOnce() -> Vec<f32>,
    ) -> Param<Tensor<D>> {
        let data = match self.only_counts {
            true => TensorData::new(Vec::<f32>::new(), [0; D]),
            false => TensorData::new(values(), shape),
        };
        Param::from_data(data, self.device)
    }
}

/// A convolution, in most networks without bias.
#[derive(Module, Debug)]
pub struct Convolution {
    /// [to, from / groups, kh, kw].
    weight: Param<Tensor<4>>,
    bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    stride: usize,
    #[module(skip)]
    padding: Padding,
    #[module(skip)]
    groups: usize,
}

impl Convolution {
    pub(super) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let weight = self.weight.val();
        let [_, _, height, width] = x.dims();
        let [to, _, kernel_height, kernel_width] = weight.dims();
        let (top, bottom) = self.border(height, kernel_height);
        let (left, right) = self.border(width, kernel_width);
        let padding = [top, bottom, left, right];
        let out = convolve(x, weight, [self.stride; 2], padding, self.groups);
        match &self.bias {
            Some(bias) => out + bias.val().reshape([1, to, 1, 1]),
            None => out,
        }
    }

    /// Zeros before and after a row or column of this size.
    fn border(&self, size: usize, kernel: usize) -> (usize, usize) {
        match self.padding {
            Padding::Valid => (0, 0),
            Padding::Half => (kernel / 2, kernel / 2),
            Padding::Same => {
                let outputs = size.div_ceil(self.stride);
                let needed = ((outputs - 1) * self.stride + kernel).saturating_sub(size);
                (needed / 2, needed - needed / 2)
            }
        }
    }
}

/// Batch normalisation. The running statistics are parameters that no gradient reaches and that
/// `forward` only reads.
#[derive(Module, Debug)]
pub struct Norm {
    scale: Option<Param<Tensor<1>>>,
    shift: Param<Tensor<1>>,
    running_mean: Param<Tensor<1>>,
    running_variance: Param<Tensor<1>>,
    #[module(skip)]
    epsilon: f32,
}

/// How a network is passed through.
pub(super) enum Pass {
    /// Norms go by their running statistics.
    Evaluation,
    /// Norms go by the batch, and note what they found.
    Training(Vec<NormStatistics>),
}

/// What one norm found in a batch.
pub(super) struct NormStatistics {
    /// Whose it is: the id of the norm's running mean.
    pub layer: ParamId,
    pub mean: Vec<f32>,
    /// Divided by one less than the number of values.
    pub variance: Vec<f32>,
}

impl Norm {
    pub(super) fn forward(
        &self,
        x: Tensor<4>,
        activation: Activation,
        pass: &mut Pass,
    ) -> Tensor<4> {
        let scale = self.scale.as_ref().map(Param::val);
        let shift = self.shift.val();
        match pass {
            Pass::Evaluation => {
                let (mean, variance) = (self.running_mean.val(), self.running_variance.val());
                normalise_fixed(x, scale, shift, mean, variance, self.epsilon, activation)
            }
            Pass::Training(noted) => {
                let [batch, _, height, width] = x.dims();
                let found = normalise_batch(x, scale, shift, self.epsilon, activation);
                let count = (batch * height * width) as f32;
                // A single value has no spread to estimate; zero stays zero.
                let unbiased = count / (count - 1.0).max(1.0);
                let variance = found.variance.iter().map(|value| value * unbiased).collect();
                noted.push(NormStatistics {
                    layer: self.running_mean.id,
                    mean: found.mean,
                    variance,
                });
                found.out
            }
        }
    }
}

/// Convolution, normalisation, activation.
#[derive(Module, Debug)]
pub struct ConvNorm {
    conv: Convolution,
    norm: Norm,
    #[module(skip)]
    activation: Activation,
}

impl ConvNorm {
    pub(super) fn new(conv: Convolution, norm: Norm, activation: Activation) -> Self {
        Self { conv, norm, activation }
    }

    pub(super) fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x), self.activation, pass)
    }
}

/// The largest of 3 × 3, every second; `padding` rows and columns on each side count as −∞.
pub(super) fn halve_by_maximum(x: Tensor<4>, padding: usize) -> Tensor<4> {
    let options = MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([padding; 2]);
    max_pool2d(x, options)
}

/// The average of the 3 × 3 around each pixel, of those inside the image.
pub(super) fn smooth(x: Tensor<4>) -> Tensor<4> {
    let mut options = AvgPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
    options.count_include_pad = false;
    avg_pool2d(x, options)
}

/// [B, C, H, W] → [B, C].
pub(super) fn average(x: Tensor<4>) -> Tensor<2> {
    let [batch, channels, height, width] = x.dims();
    x.reshape([batch, channels, height * width]).mean_dim(2).reshape([batch, channels])
}
