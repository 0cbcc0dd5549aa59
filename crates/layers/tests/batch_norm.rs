//! Batch normalisation against plain loops in f64 and finite differences, and in other thread pools.

use aleator_layers::batch_norm::{
    Activation, Affine, AffineGrad, NormShape, Source, Statistics, backward, forward,
    forward_fixed, reference,
};

use crate::support::{Random, assert_close};

const ACTIVATIONS: [Activation; 3] = [Activation::None, Activation::Relu, Activation::Relu6];

struct Case {
    shape: NormShape,
    x: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
    grad_out: Vec<f32>,
    activation: Activation,
}

impl Case {
    fn new(batch: usize, channels: usize, pixels: usize, activation: Activation) -> Self {
        let mut random = Random((batch * 31 + channels * 7 + pixels) as u64);
        let len = batch * channels * pixels;
        Self {
            shape: NormShape { batch, channels, pixels },
            x: random.vector(len, -1.0, 3.0),
            scale: random.vector(channels, -4.0, 4.0),
            shift: random.vector(channels, -1.0, 4.0),
            grad_out: random.vector(len, -1.0, 1.0),
            activation,
        }
    }

    fn affine(&self) -> Affine<'_> {
        let Self { scale, shift, activation, .. } = self;
        Affine { scale: Some(scale), shift, epsilon: 1e-3, activation: *activation }
    }

    fn run(&self) -> (Vec<f32>, Statistics) {
        let mut out = vec![f32::NAN; self.x.len()];
        let statistics = forward(&self.x, self.affine(), &mut out, self.shape);
        (out, statistics)
    }

    fn run_backward(&self, statistics: &Statistics, source: Source) -> (Vec<f32>, AffineGrad) {
        let Self { x, grad_out, shape, .. } = self;
        let mut grad_x = vec![f32::NAN; x.len()];
        let affine = self.affine();
        let grads = backward(x, grad_out, affine, statistics, source, Some(&mut grad_x), *shape);
        (grad_x, grads)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let shapes = [(1, 1, 1), (2, 3, 7), (5, 4, 64), (3, 2, 1031), (4, 5, 49), (2, 3, 2500)];
    shapes.into_iter().flat_map(|(batch, channels, pixels)| {
        ACTIVATIONS.into_iter().map(move |it| Case::new(batch, channels, pixels, it))
    })
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

#[test]
fn values_and_statistics_equal_plain_loops() {
    for case in cases() {
        let (out, found) = case.run();
        let (mean, variance) = reference::statistics(&case.x, case.shape);
        assert_close("mean", &found.mean, &mean, 1e-6);
        assert_close("variance", &found.variance, &variance, 1e-6);
        // A single number has no variance: only ε divides, and errors grow by 1/√ε ≈ 32.
        let expected = reference::forward(&case.x, case.affine(), &mean, &variance, case.shape);
        assert_close("out", &out, &expected, 1e-4);

        let mut fixed = vec![f32::NAN; out.len()];
        forward_fixed(&case.x, case.affine(), &found, &mut fixed, case.shape);
        assert_eq!(out, fixed, "the same statistics give the same bits");
    }
}

#[test]
fn gradients_equal_plain_loops() {
    for case in cases() {
        let (_, statistics) = case.run();
        let (mean, variance) = (wide(&statistics.mean), wide(&statistics.variance));
        for source in [Source::Batch, Source::Fixed] {
            let (grad_x, grads) = case.run_backward(&statistics, source);
            let [expected_x, scale, shift] = reference::backward(
                &case.x,
                &case.grad_out,
                case.affine(),
                source,
                (&mean, &variance),
                case.shape,
            );
            // Sums of up to 5,000 numbers below 2 in pieces of 1,024, then f64.
            assert_close("scale", &grads.scale, &scale, 2e-3);
            assert_close("shift", &grads.shift, &shift, 1e-3);
            assert_close("x", &grad_x, &expected_x, 2e-4);
        }
    }
}

/// The gradient through mean and variance against finite differences of the reference.
#[test]
fn the_gradient_in_x_is_that_of_the_value() {
    let case = Case::new(3, 2, 5, Activation::Relu6);
    let (_, statistics) = case.run();
    let (grad_x, _) = case.run_backward(&statistics, Source::Batch);
    let value = |x: &[f32]| {
        let (mean, variance) = reference::statistics(x, case.shape);
        let out = reference::forward(x, case.affine(), &mean, &variance, case.shape);
        out.iter().zip(&case.grad_out).map(|(out, grad)| out * f64::from(*grad)).sum::<f64>()
    };
    for at in 0..case.x.len() {
        let step = 2f32.powi(-10);
        let moved = |by: f32| {
            let mut x = case.x.clone();
            x[at] += by;
            x
        };
        let (above, below) = (moved(step), moved(-step));
        let width = f64::from(above[at]) - f64::from(below[at]);
        let slope = (value(&above) - value(&below)) / width;
        // Central differences have an error of step² times a third derivative of about 100.
        assert!((slope - f64::from(grad_x[at])).abs() < 1e-3, "{at}: {slope} {}", grad_x[at]);
    }
}

/// With a mean far from zero, plain sums of squares would lose all digits of the variance.
#[test]
fn the_variance_of_large_numbers_keeps_its_digits() {
    let mut case = Case::new(8, 2, 900, Activation::None);
    case.x.iter_mut().for_each(|x| *x += 4096.0);
    let (_, found) = case.run();
    let (_, variance) = reference::statistics(&case.x, case.shape);
    for (found, expected) in found.variance.iter().zip(variance) {
        assert!((f64::from(*found) / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    }
}

#[test]
fn without_a_scale_it_is_one() {
    let mut case = Case::new(2, 3, 20, Activation::Relu);
    case.scale.fill(1.0);
    let (out, _) = case.run();
    let mut plain = vec![f32::NAN; out.len()];
    forward(&case.x, Affine { scale: None, ..case.affine() }, &mut plain, case.shape);
    assert_eq!(out, plain);
}

#[test]
fn is_bit_identical_in_pools_of_one_two_and_three_threads() {
    let case = Case::new(6, 13, 300, Activation::Relu);
    let [one, two, three] = [1, 2, 3].map(|threads| {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        pool.install(|| {
            let (out, statistics) = case.run();
            let gradients = case.run_backward(&statistics, Source::Batch);
            (out, statistics, gradients)
        })
    });
    assert_eq!(one, two);
    assert_eq!(one, three);
}

#[test]
#[should_panic(expected = "shift must be [C]")]
fn a_wrong_shift_is_named() {
    let shape = NormShape { batch: 1, channels: 2, pixels: 1 };
    let activation = Activation::None;
    let affine = Affine { scale: None, shift: &[0.0], epsilon: 1e-5, activation };
    forward(&[0.0; 2], affine, &mut [0.0; 2], shape);
}

/// Training checks for numbers that are not finite: an activation must not hide them.
#[test]
fn no_activation_hides_numbers_that_are_not_finite() {
    let shape = NormShape { batch: 2, channels: 1, pixels: 9 };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = vec![0.5; 18];
        x[4] = bad;
        for activation in ACTIVATIONS {
            let affine = Affine { scale: None, shift: &[0.1], epsilon: 1e-5, activation };
            let mut out = vec![0.0; 18];
            forward(&x, affine, &mut out, shape);
            assert!(out.iter().any(|value| value.is_nan()), "{bad} {activation:?}: {out:?}");
        }
    }
}
