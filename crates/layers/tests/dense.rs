//! The dense layer against a triple loop in f64, in other thread pools, and against its adjoints.

use aleator_layers::dense::{
    DenseShape, backward_bias, backward_features, backward_weight, forward,
};

/// Numbers in `[-0.5, 0.5)` from a linear congruence, the same on every machine.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..len).map(|_| next()).collect()
}

struct Case {
    shape: DenseShape,
    features: Vec<f32>, // [B, D]
    weight: Vec<f32>,   // [D, N]
    bias: Vec<f32>,     // [N]
    grad_out: Vec<f32>, // [B, N]
}

#[derive(Debug, PartialEq)]
struct Results {
    out: Vec<f32>,           // [B, N]
    grad_weight: Vec<f32>,   // [D, N]
    grad_bias: Vec<f32>,     // [N]
    grad_features: Vec<f32>, // [B, D]
}

impl Case {
    fn new(batch: usize, inputs: usize, outputs: usize) -> Self {
        Self {
            shape: DenseShape { batch, inputs, outputs },
            features: numbers(batch * inputs, 1),
            weight: numbers(inputs * outputs, 2),
            bias: numbers(outputs, 3),
            grad_out: numbers(batch * outputs, 4),
        }
    }

    /// Outputs start as NaN, so that reading them or not writing them is detected.
    fn run(&self) -> Results {
        let DenseShape { batch, inputs, outputs } = self.shape;
        let mut results = Results {
            out: vec![f32::NAN; batch * outputs],
            grad_weight: vec![f32::NAN; inputs * outputs],
            grad_bias: vec![f32::NAN; outputs],
            grad_features: vec![f32::NAN; batch * inputs],
        };
        forward(&self.features, &self.weight, Some(&self.bias), &mut results.out, self.shape);
        backward_weight(&self.features, &self.grad_out, &mut results.grad_weight, self.shape);
        backward_bias(&self.grad_out, &mut results.grad_bias);
        backward_features(&self.grad_out, &self.weight, &mut results.grad_features, self.shape);
        results
    }
}

/// `got[row, column]` against `Σ_k term(row, column, k)` in f64.
///
/// A sum of n products, in any order, fused or not, has an error of at most `γ_n Σ|term|` with
/// `γ_n ≈ n ε/2` (Higham, Accuracy and Stability of Numerical Algorithms, §3.1).
fn assert_sums(
    name: &str,
    got: &[f32],
    [rows, columns, depth]: [usize; 3],
    term: impl Fn(usize, usize, usize) -> f64,
) {
    for row in 0..rows {
        for column in 0..columns {
            let sum: f64 = (0..depth).map(|k| term(row, column, k)).sum();
            let size: f64 = (0..depth).map(|k| term(row, column, k).abs()).sum();
            let tolerance = (depth + 2) as f64 * f64::from(f32::EPSILON) / 2.0 * size;
            let got = f64::from(got[row * columns + column]);
            assert!(
                (got - sum).abs() <= tolerance,
                "{name}[{row}, {column}]: {got} against {sum} ± {tolerance}"
            );
        }
    }
}

#[test]
fn equals_the_triple_loop_for_odd_shapes() {
    let sizes = [
        (1, 1, 1),
        (1, 5, 3),
        (2, 3, 17),
        (3, 64, 16),
        (5, 7, 31),
        (6, 6, 6),
        (7, 49, 33),
        (8, 13, 513),
        (11, 100, 60),
        (13, 12, 1030),
        (18, 48, 65),
        (19, 49, 64),
        (23, 97, 129),
        (37, 50, 77),
        (64, 51, 70),
        (65, 96, 15),
        (128, 64, 60),
        (9, 3, 600),
        (70, 2, 1),
        (4, 300, 2),
        (255, 20, 33),
        (256, 20, 33),
        (263, 129, 130),
        (530, 7, 200),
        (600, 260, 3),
        (33_000, 3, 2),
    ];
    for (batch, inputs, outputs) in sizes {
        let case = Case::new(batch, inputs, outputs);
        let got = case.run();
        let x = |row: usize, k: usize| f64::from(case.features[row * inputs + k]);
        let w = |k: usize, column: usize| f64::from(case.weight[k * outputs + column]);
        let g = |row: usize, column: usize| f64::from(case.grad_out[row * outputs + column]);
        assert_sums("out", &got.out, [batch, outputs, inputs + 1], |row, column, k| {
            if k == inputs { f64::from(case.bias[column]) } else { x(row, k) * w(k, column) }
        });
        assert_sums("grad_weight", &got.grad_weight, [inputs, outputs, batch], |row, column, k| {
            x(k, row) * g(k, column)
        });
        assert_sums("grad_bias", &got.grad_bias, [1, outputs, batch], |_, column, k| g(k, column));
        assert_sums(
            "grad_features",
            &got.grad_features,
            [batch, inputs, outputs],
            |row, column, k| g(row, k) * w(column, k),
        );
    }
}

#[test]
fn is_bit_identical_in_pools_of_one_two_and_three_threads() {
    for (batch, inputs, outputs) in [(8, 130, 1600), (64, 257, 1111), (33, 100, 60), (700, 90, 170)]
    {
        let case = Case::new(batch, inputs, outputs);
        let [one, two, three] = [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a thread pool");
            pool.install(|| case.run())
        });
        assert_eq!(one, two);
        assert_eq!(one, three);
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_batch() {
    for (batch, inputs, outputs) in [(300, 257, 70), (600, 40, 3)] {
        let whole = Case::new(batch, inputs, outputs);
        let all = whole.run();
        for rows in [1, 5, 255] {
            let mut case = Case::new(rows, inputs, outputs);
            case.weight.clone_from(&whole.weight);
            case.bias.clone_from(&whole.bias);
            case.features.copy_from_slice(&whole.features[..rows * inputs]);
            case.grad_out.copy_from_slice(&whole.grad_out[..rows * outputs]);
            let few = case.run();
            assert_eq!(few.out, all.out[..rows * outputs]);
            assert_eq!(few.grad_features, all.grad_features[..rows * inputs]);
        }
    }
}

/// `⟨x W, g⟩ = ⟨x, g Wᵀ⟩ = ⟨W, xᵀ g⟩`.
#[test]
fn gradients_are_adjoint_to_forward() {
    for (batch, inputs, outputs) in [(7, 33, 50), (64, 200, 700)] {
        let case = Case::new(batch, inputs, outputs);
        let Results { grad_weight, grad_features, .. } = case.run();
        let mut out = vec![f32::NAN; batch * outputs];
        forward(&case.features, &case.weight, None, &mut out, case.shape);

        let dot = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
        };
        let through_out = dot(&out, &case.grad_out);
        // All factors are at most 1/2: the triple product has B·D·N terms of at most 1/8,
        // and each passed through an f32 sum of at most the longest side.
        let longest = batch.max(inputs).max(outputs) as f64;
        let terms = (batch * inputs * outputs) as f64;
        let tolerance = 2.0 * longest * f64::from(f32::EPSILON) / 2.0 * terms / 8.0;
        assert!((through_out - dot(&case.features, &grad_features)).abs() <= tolerance);
        assert!((through_out - dot(&case.weight, &grad_weight)).abs() <= tolerance);
    }
}

#[test]
fn empty_sides_give_empty_or_zero_results() {
    let no_inputs = Case::new(3, 0, 4).run();
    assert_eq!(no_inputs.out, numbers(4, 3).repeat(3), "only the bias is left");
    let no_batch = Case::new(0, 3, 4).run();
    assert_eq!((no_batch.grad_weight, no_batch.grad_bias), (vec![0.0; 12], vec![0.0; 4]));
    let no_outputs = Case::new(3, 4, 0).run();
    assert_eq!(no_outputs.grad_features, vec![0.0; 12]);
}

#[test]
#[should_panic(expected = "weight must be [D, N]")]
fn a_wrong_weight_is_named() {
    let shape = DenseShape { batch: 1, inputs: 2, outputs: 3 };
    forward(&[0.0; 2], &[0.0; 5], None, &mut [0.0; 3], shape);
}
