//! Batch normalisation and the rectifier after it, as one tensor operation.

use aleator_layers::batch_norm::{
    self as kernel, Activation, Affine, NormShape, Source, Statistics,
};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use crate::custom_grad::custom_grad;
use crate::recycled;
use crate::slices::{Floats, is_cpu};

/// Images normalised with their own statistics.
#[derive(Clone, Debug)]
pub struct Normalised {
    /// [B, C, H, W].
    pub out: Tensor<4>,
    /// `[C]`.
    pub mean: Vec<f32>,
    /// Divided by the number of values, not by one less, `[C]`.
    pub variance: Vec<f32>,
}

/// Normalises each channel with its mean and variance over the batch; gradients flow through both.
///
/// # Shapes
/// - x: [B, C, H, W]
/// - scale (one without), shift: `[C]`
pub fn normalise_batch(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    epsilon: f32,
    activation: Activation,
) -> Normalised {
    let layer = Layer { scale, shift, epsilon, activation };
    if is_cpu(&x.device()) {
        let (out, Statistics { mean, variance }) = layer.on_cpu(x, None);
        return Normalised { out, mean, variance };
    }
    let [batch, channels, height, width] = x.dims();
    let count = (batch * height * width) as f32;
    let rows = |x: Tensor<4>| x.swap_dims(0, 1).reshape([channels, batch * height * width]);
    let mean = rows(x.clone()).sum_dim(1) / count;
    let apart = rows(x.clone()) - mean.clone();
    let variance: Tensor<1> = (apart.clone() * apart).sum_dim(1).div_scalar(count).reshape([-1]);
    let mean: Tensor<1> = mean.reshape([-1]);
    let numbers = |of: &Tensor<1>| of.clone().inner().into_data().iter::<f32>().collect();
    let (means, variances) = (numbers(&mean), numbers(&variance));
    let out = layer.on_device(x, mean, variance);
    Normalised { out, mean: means, variance: variances }
}

/// Normalises each channel with a given mean and variance.
///
/// # Shapes
/// As [`normalise_batch`]; mean, variance: `[C]`
pub fn normalise_fixed(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f32,
    activation: Activation,
) -> Tensor<4> {
    let layer = Layer { scale, shift, epsilon, activation };
    if !is_cpu(&x.device()) {
        return layer.on_device(x, mean, variance);
    }
    let [mean, variance] = [mean, variance].map(|of| Floats::of(&of).as_slice().to_vec());
    layer.on_cpu(x, Some(Statistics { mean, variance })).0
}

/// The parameters of the layer as tensors.
struct Layer {
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    epsilon: f32,
    activation: Activation,
}

/// The same as numbers on the CPU, which the backward step reads again.
struct LayerFloats {
    scale: Option<Floats>,
    shift: Floats,
    epsilon: f32,
    activation: Activation,
}

impl LayerFloats {
    fn affine(&self) -> Affine<'_> {
        Affine {
            scale: self.scale.as_ref().map(Floats::as_slice),
            shift: self.shift.as_slice(),
            epsilon: self.epsilon,
            activation: self.activation,
        }
    }
}

impl Layer {
    /// Normalises with the given statistics or else with those of the batch, and returns them.
    fn on_cpu(self, x: Tensor<4>, given: Option<Statistics>) -> (Tensor<4>, Statistics) {
        let dims = x.dims();
        let [batch, channels, height, width] = dims;
        let shape = NormShape { batch, channels, pixels: height * width };
        let images = Floats::of(&x);
        let Self { scale, shift, epsilon, activation } = self;
        let floats = LayerFloats {
            scale: scale.as_ref().map(Floats::of),
            shift: Floats::of(&shift),
            epsilon,
            activation,
        };
        let source = if given.is_some() { Source::Fixed } else { Source::Batch };
        let mut out = recycled::take(images.as_slice().len());
        let statistics = match given {
            None => kernel::forward(images.as_slice(), floats.affine(), &mut out, shape),
            Some(given) => {
                let affine = floats.affine();
                kernel::forward_fixed(images.as_slice(), affine, &given, &mut out, shape);
                given
            }
        };
        let mut parents = vec![x.into_dispatch(), shift.into_dispatch()];
        parents.extend(scale.map(Tensor::into_dispatch));
        let kept = statistics.clone();
        let backward = move |upstream: Tensor<4>, wanted: &[bool]| {
            let upstream = Floats::new(upstream);
            let mut grad_x = wanted[0].then(|| recycled::take(images.as_slice().len()));
            let grads = kernel::backward(
                images.as_slice(),
                upstream.as_slice(),
                floats.affine(),
                &kept,
                source,
                grad_x.as_deref_mut(),
                shape,
            );
            let one = |values: Vec<f32>| Some(recycled::tensor(values, [channels]).into_dispatch());
            let grad_x = grad_x.map(|grad| recycled::tensor(grad, dims).into_dispatch());
            let mut out = vec![grad_x, one(grads.shift)];
            out.extend(floats.scale.is_some().then(|| one(grads.scale)));
            out
        };
        (custom_grad(recycled::tensor(out, dims), parents, backward), statistics)
    }

    fn on_device(self, x: Tensor<4>, mean: Tensor<1>, variance: Tensor<1>) -> Tensor<4> {
        let [_, channels, _, _] = x.dims();
        let shape = [1, channels, 1, 1];
        let inverse = variance.add_scalar(self.epsilon).sqrt().recip();
        let factor = match self.scale {
            Some(scale) => scale * inverse,
            None => inverse,
        };
        let y = (x - mean.reshape(shape)) * factor.reshape(shape) + self.shift.reshape(shape);
        match self.activation {
            Activation::None => y,
            Activation::Relu => relu(y),
            Activation::Relu6 => y.clamp(0.0, 6.0),
        }
    }
}
