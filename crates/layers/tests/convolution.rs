//! The convolution against plain loops in f64, in other thread pools, and against its adjoints.

use aleator_layers::convolution::{
    ConvolutionShape, forward, input_gradient, reference, weight_gradient,
};

use crate::support::Random;

struct Case {
    shape: ConvolutionShape,
    x: Vec<f32>,
    weight: Vec<f32>,
    grad_out: Vec<f32>,
}

#[derive(Debug, PartialEq)]
struct Results {
    out: Vec<f32>,
    grad_x: Vec<f32>,
    grad_weight: Vec<f32>,
}

impl Case {
    fn new(shape: ConvolutionShape) -> Self {
        let ConvolutionShape { batch, inputs, outputs, size, kernel, groups, .. } = shape;
        let [height, width] = shape.out_size();
        let mut random = Random(7);
        Self {
            shape,
            x: random.vector(batch * inputs * size[0] * size[1], -1.0, 1.0),
            weight: random.vector(outputs * inputs / groups * kernel[0] * kernel[1], -1.0, 1.0),
            grad_out: random.vector(batch * outputs * height * width, -1.0, 1.0),
        }
    }

    /// Outputs start as NaN, so that reading them or not writing them is detected.
    fn run(&self) -> Results {
        let Self { shape, x, weight, grad_out } = self;
        let mut results = Results {
            out: vec![f32::NAN; grad_out.len()],
            grad_x: vec![f32::NAN; x.len()],
            grad_weight: vec![f32::NAN; weight.len()],
        };
        forward(x, weight, &mut results.out, shape);
        input_gradient(grad_out, weight, &mut results.grad_x, shape);
        weight_gradient(x, grad_out, &mut results.grad_weight, shape);
        results
    }

    /// A sum of n products, in any order, fused or not, has an error of at most `n ε/2` times the
    /// sum of their magnitudes, each at most 1 (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
    fn check(&self) {
        let Self { shape, x, weight, grad_out } = self;
        let found = self.run();
        let [height, width] = shape.out_size();
        let taps = shape.kernel[0] * shape.kernel[1];
        let close = |name: &str, found: &[f32], expected: Vec<f64>, products: usize| {
            assert_eq!(found.len(), expected.len());
            let tolerance = (products as f64).powi(2) * 2f64.powi(-24);
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                let error = (f64::from(*found) - expected).abs();
                assert!(error <= tolerance, "{name}[{at}]: {found}, not {expected}; {shape:?}");
            }
        };
        let depth = |channels: usize| channels / shape.groups * taps + 2;
        let pixels = shape.batch * height * width + 2;
        close("out", &found.out, reference::forward(x, weight, shape), depth(shape.inputs));
        let expected = reference::input_gradient(grad_out, weight, shape);
        close("grad_x", &found.grad_x, expected, depth(shape.outputs));
        let expected = reference::weight_gradient(x, grad_out, shape);
        close("grad_weight", &found.grad_weight, expected, pixels);
    }
}

/// 3 × 3, padded by one.
fn square(
    batch: usize,
    inputs: usize,
    outputs: usize,
    size: usize,
    stride: usize,
) -> ConvolutionShape {
    ConvolutionShape {
        batch,
        inputs,
        outputs,
        size: [size; 2],
        kernel: [3; 2],
        stride: [stride; 2],
        padding: [1; 4],
        groups: 1,
    }
}

#[test]
fn equals_plain_loops_for_the_layers_of_networks() {
    let pointwise = |shape| ConvolutionShape { kernel: [1; 2], padding: [0; 4], ..shape };
    let depthwise = |shape: ConvolutionShape| ConvolutionShape { groups: shape.inputs, ..shape };
    let shapes = [
        square(2, 3, 16, 32, 1),
        square(3, 16, 16, 32, 1),
        square(2, 16, 32, 32, 2),
        pointwise(square(2, 16, 32, 32, 2)),
        square(5, 32, 32, 16, 1),
        square(3, 64, 64, 8, 1),
        square(2, 24, 100, 14, 1),
        square(7, 70, 80, 7, 1),
        pointwise(square(3, 33, 77, 7, 1)),
        pointwise(square(2, 300, 70, 14, 1)),
        square(2, 8, 8, 28, 2),
        depthwise(square(2, 6, 6, 19, 1)),
        depthwise(square(2, 5, 5, 150, 2)),
        ConvolutionShape { kernel: [7; 2], padding: [3; 4], ..square(1, 3, 20, 40, 2) },
        ConvolutionShape { kernel: [1, 7], padding: [0, 0, 3, 3], ..square(2, 12, 9, 17, 1) },
        ConvolutionShape { padding: [0, 1, 0, 1], ..square(2, 4, 8, 16, 2) },
        ConvolutionShape { groups: 4, ..square(2, 16, 32, 12, 1) },
    ];
    for shape in shapes {
        Case::new(shape).check();
    }
}

fn random_shape(random: &mut Random) -> ConvolutionShape {
    let channels = random.within(0..4);
    let (from, to, groups) = match channels {
        0 => (random.within(1..8), random.within(1..20), 1),
        1 => (random.within(1..4), random.within(1..5), random.within(2..4)),
        2 => (1, 1, random.within(2..9)),
        _ => (random.within(20..60), random.within(60..90), 1),
    };
    ConvolutionShape {
        batch: random.within(1..4),
        inputs: from * groups,
        outputs: to * groups,
        size: [random.within(1..20), random.within(1..40)],
        kernel: [random.within(1..6), random.within(1..6)],
        stride: [random.within(1..4), random.within(1..4)],
        padding: [0; 4].map(|_: usize| random.within(0..4)),
        groups,
    }
}

fn kernel_fits(shape: &ConvolutionShape) -> bool {
    let [top, bottom, left, right] = shape.padding;
    shape.kernel[0] <= shape.size[0] + top + bottom
        && shape.kernel[1] <= shape.size[1] + left + right
}

#[test]
fn equals_plain_loops_for_any_shape() {
    let mut random = Random(1);
    let shapes = std::iter::repeat_with(|| random_shape(&mut random)).filter(kernel_fits);
    for shape in shapes.take(60) {
        println!("{shape:?}"); // shown if the check fails
        Case::new(shape).check();
    }
}

#[test]
fn is_bit_identical_in_pools_of_one_two_and_three_threads() {
    let shapes = [
        square(9, 16, 16, 32, 1),
        square(5, 16, 32, 32, 2),
        square(1, 64, 64, 8, 1),
        square(20, 40, 130, 7, 1),
        ConvolutionShape { groups: 32, ..square(3, 32, 32, 20, 1) },
    ];
    for shape in shapes {
        let case = Case::new(shape);
        let [one, two, three] = [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a thread pool");
            pool.install(|| case.run())
        });
        assert_eq!(one, two, "{shape:?}");
        assert_eq!(one, three, "{shape:?}");
    }
}

/// `⟨conv(x, w), g⟩ = ⟨x, input_gradient⟩ = ⟨w, weight_gradient⟩`.
#[test]
fn gradients_are_adjoint_to_forward() {
    for shape in [square(8, 16, 32, 32, 2), square(4, 96, 130, 14, 1)] {
        let case = Case::new(shape);
        let Results { out, grad_x, grad_weight } = case.run();
        let dot = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        let through_out = dot(&out, &case.grad_out);
        // Independent errors of a few 2⁻²⁴ of √depth each: far below a millionth of √terms.
        let tolerance = 1e-5 * (shape.multiplications() as f64).sqrt();
        assert!((through_out - dot(&case.x, &grad_x)).abs() <= tolerance);
        assert!((through_out - dot(&case.weight, &grad_weight)).abs() <= tolerance);
    }
}

/// NaN in the scratch memory of an earlier call must not affect later ones.
#[test]
fn scratch_memory_of_an_earlier_call_has_no_effect() {
    let mut poisoned = Case::new(square(2, 16, 16, 19, 1));
    poisoned.x.fill(f32::NAN);
    poisoned.run();
    let mut poisoned = Case::new(ConvolutionShape { groups: 16, ..square(2, 16, 16, 40, 1) });
    poisoned.x.fill(f32::NAN);
    poisoned.run();
    Case::new(square(2, 5, 7, 13, 1)).check();
    Case::new(ConvolutionShape { groups: 7, ..square(2, 7, 7, 13, 1) }).check();
}

#[test]
fn an_empty_batch_gives_empty_results_and_a_zero_weight_gradient() {
    let results = Case::new(square(0, 3, 4, 8, 1)).run();
    assert_eq!(results.grad_weight, vec![0.0; 3 * 4 * 9]);
    assert!(results.out.is_empty() && results.grad_x.is_empty());
}

#[test]
#[should_panic(expected = "the weight must be [O, C/groups, kernel]")]
fn a_wrong_weight_is_named() {
    let shape = square(1, 1, 1, 3, 1);
    forward(&[0.0; 9], &[0.0; 8], &mut [0.0; 9], &shape);
}
