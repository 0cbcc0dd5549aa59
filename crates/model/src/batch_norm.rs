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
    if is_cpu(&x.device()) {
        let saved = Saved::new(&x, &scale, &shift, epsilon, activation);
        let mut out = recycled::take(saved.x.as_slice().len());
        let (x_slice, shape) = (saved.x.as_slice(), saved.shape);
        let statistics = kernel::forward(x_slice, saved.affine(), &mut out, shape);
        let Statistics { mean, variance } = statistics.clone();
        let out = saved.attach(out, x, scale, shift, statistics, Source::Batch);
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
    let out = normalise_on_device(x, scale, shift, mean, variance, epsilon, activation);
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
    if is_cpu(&x.device()) {
        let saved = Saved::new(&x, &scale, &shift, epsilon, activation);
        let numbers = |of: Tensor<1>| Floats::new(of.inner()).as_slice().to_vec();
        let statistics = Statistics { mean: numbers(mean), variance: numbers(variance) };
        let mut out = recycled::take(saved.x.as_slice().len());
        let (x_slice, shape) = (saved.x.as_slice(), saved.shape);
        kernel::forward_fixed(x_slice, saved.affine(), &statistics, &mut out, shape);
        return saved.attach(out, x, scale, shift, statistics, Source::Fixed);
    }
    normalise_on_device(x, scale, shift, mean, variance, epsilon, activation)
}

/// What the backward step reads; tensors are held by their handles.
struct Saved {
    x: Floats,
    scale: Option<Floats>,
    shift: Floats,
    epsilon: f32,
    activation: Activation,
    shape: NormShape,
}

impl Saved {
    fn new(
        x: &Tensor<4>,
        scale: &Option<Tensor<1>>,
        shift: &Tensor<1>,
        epsilon: f32,
        activation: Activation,
    ) -> Self {
        let [batch, channels, height, width] = x.dims();
        Self {
            x: Floats::new(x.clone().inner()),
            scale: scale.as_ref().map(|scale| Floats::new(scale.clone().inner())),
            shift: Floats::new(shift.clone().inner()),
            epsilon,
            activation,
            shape: NormShape { batch, channels, pixels: height * width },
        }
    }

    fn affine(&self) -> Affine<'_> {
        Affine {
            scale: self.scale.as_ref().map(Floats::as_slice),
            shift: self.shift.as_slice(),
            epsilon: self.epsilon,
            activation: self.activation,
        }
    }

    /// The result with its backward step.
    fn attach(
        self,
        out: Vec<f32>,
        x: Tensor<4>,
        scale: Option<Tensor<1>>,
        shift: Tensor<1>,
        statistics: Statistics,
        source: Source,
    ) -> Tensor<4> {
        let dims = x.dims();
        let out = recycled::tensor(out, dims);
        let mut parents = vec![x.into_dispatch(), shift.into_dispatch()];
        parents.extend(scale.map(Tensor::into_dispatch));
        custom_grad(out, parents, move |upstream: Tensor<4>, wanted| {
            let upstream = Floats::new(upstream);
            let mut grad_x = wanted[0].then(|| recycled::take(self.x.as_slice().len()));
            let grads = kernel::backward(
                self.x.as_slice(),
                upstream.as_slice(),
                self.affine(),
                &statistics,
                source,
                grad_x.as_deref_mut(),
                self.shape,
            );
            let one =
                |values: Vec<f32>| recycled::tensor(values, [self.shape.channels]).into_dispatch();
            let grad_x = grad_x.map(|grad| recycled::tensor(grad, dims).into_dispatch());
            let mut out = vec![grad_x, Some(one(grads.shift))];
            out.extend(self.scale.is_some().then(|| Some(one(grads.scale))));
            out
        })
    }
}

fn normalise_on_device(
    x: Tensor<4>,
    scale: Option<Tensor<1>>,
    shift: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f32,
    activation: Activation,
) -> Tensor<4> {
    let [_, channels, _, _] = x.dims();
    let shape = [1, channels, 1, 1];
    let inverse = variance.add_scalar(epsilon).sqrt().recip();
    let factor = match scale {
        Some(scale) => scale * inverse,
        None => inverse,
    };
    let y = (x - mean.reshape(shape)) * factor.reshape(shape) + shift.reshape(shape);
    match activation {
        Activation::None => y,
        Activation::Relu => relu(y),
        Activation::Relu6 => y.clamp(0.0, 6.0),
    }
}
