//! The closed form against explicit fits, and what callers rely on.

use aleator_data::array::{Array, Values};
use aleator_data::{ArrayInputs, ArraySplit, Arrays, Sources};
use aleator_kernels::quantile::inverse_normal_cdf;
use aleator_kernels::split_mix;
use aleator_run::recipe::{Data, HeldOut, InputSource, Link, Source};
use faer::prelude::Solve;
use rayon::ThreadPoolBuilder;

use super::*;

/// Examples with these inputs, row by row, and labels of `classes` classes.
fn split(values: Vec<f32>, labels: &[u32], classes: usize) -> Split {
    let width = values.len() / labels.len();
    let numbers = labels.iter().map(|label| i64::from(*label)).collect();
    let labels = Array { shape: vec![labels.len()], values: Values::Int(numbers), columns: None };
    let train = ArraySplit::new(ArrayInputs::Features { values, width }, labels);
    let names = (0..classes).map(|class| class.to_string()).collect();
    let arrays = Arrays { class_names: Some(names), ..Arrays::new(train) };
    let sources = Sources::in_memory(arrays, Link::Softmax).unwrap();
    let validation = HeldOut::Fraction { fraction: 0.25, seed: 0 };
    let mut data = Data::of(Source::of(InputSource::Digits), validation);
    sources.record_in(&mut data);
    sources.training_source(&data).unwrap()
}

/// Normal numbers.
fn normals(seed: u64, count: usize) -> Vec<f32> {
    split_mix(seed).map(|word| inverse_normal_cdf((word >> 32) as u32)).take(count).collect()
}

/// Clusters around K corners, as far apart as a standard deviation, with labels in turn.
fn clusters(examples: usize, width: usize, classes: usize) -> Split {
    let mut values = normals(7, examples * width);
    let labels: Vec<u32> = (0..examples).map(|example| (example % classes) as u32).collect();
    for (row, label) in values.chunks_exact_mut(width).zip(&labels) {
        row[*label as usize] += 2.0;
    }
    split(values, &labels, classes)
}

fn go() -> AtomicBool {
    AtomicBool::new(false)
}

fn found(examples: &Split) -> LeaveOneOut {
    leave_one_out(examples, &go()).unwrap().unwrap()
}

/// The fit of all examples on `most` features, and their centred features.
fn fitted(examples: &Split, most: usize) -> (Fit, Mat<f32>) {
    let normalization = Normalization::fit(Normalize::Global, examples).unwrap();
    let all: Vec<usize> = (0..examples.len()).collect();
    let rows = Rows { split: examples, rows: &all };
    let targets = targets(examples);
    let fit = Fit::new(&rows, &normalization, &targets, most, &go()).unwrap().unwrap();
    let mut blocks = vec![];
    let take = |_: std::ops::Range<usize>, block: &Mat<f32>| blocks.push(block.clone());
    assert!(rows.each_block(&normalization, &fit.features, &go(), take).unwrap());
    (fit, blocks.remove(0))
}

/// What a ridge regression with an intercept, fitted in f64 to all examples but one, predicts for
/// that one, `[K]`.
fn without(left_out: usize, features: &Mat<f32>, targets: &[f32], penalty: f64) -> Vec<f64> {
    let classes = targets.len() / features.nrows();
    let others: Vec<usize> = (0..features.nrows()).filter(|row| *row != left_out).collect();
    let count = others.len();
    let mean = |value: &dyn Fn(usize) -> f64| {
        others.iter().map(|row| value(*row)).sum::<f64>() / count as f64
    };
    let feature = |row: usize, column: usize| f64::from(features[(row, column)]);
    let target = |row: usize, class: usize| f64::from(targets[row * classes + class]);
    let centers: Vec<f64> =
        (0..features.ncols()).map(|column| mean(&|row| feature(row, column))).collect();
    let shares: Vec<f64> = (0..classes).map(|class| mean(&|row| target(row, class))).collect();
    // With φ and y centred at their means over the others: ŷ = ȳ + φ₋ᵢᵀ Φᵀ (ΦΦᵀ + λ)⁻¹ Y.
    let inner = |a: usize, b: usize| -> f64 {
        let terms = centers.iter().enumerate();
        terms.map(|(at, mean)| (feature(a, at) - mean) * (feature(b, at) - mean)).sum()
    };
    let kernel = Mat::from_fn(count, count, |a, b| {
        inner(others[a], others[b]) + if a == b { penalty } else { 0.0 }
    });
    let right = Mat::from_fn(count, classes, |at, class| target(others[at], class) - shares[class]);
    let weights = kernel.partial_piv_lu().solve(&right);
    let predict = |class: usize| {
        let terms = others.iter().enumerate();
        shares[class]
            + terms.map(|(at, row)| inner(left_out, *row) * weights[(at, class)]).sum::<f64>()
    };
    (0..classes).map(predict).collect()
}

#[test]
fn predictions_equal_those_of_explicit_fits_without_each_example() {
    let examples = clusters(40, 5, 3);
    let targets = targets(&examples);
    // More features than examples, and fewer.
    for most in [MOST_FEATURES, 12] {
        let (fit, features) = fitted(&examples, most);
        assert_eq!(features.ncols(), most.min(4 * 40));
        let largest = fit.values.last().copied().unwrap();
        for penalty in [fit.penalty, 0.1 * largest, 1e-2 * largest, 1e-3 * largest] {
            let found = Ridge::new(&fit, penalty).left_out(&features, &targets);
            // ΦᵀΦ is a sum of 40 rounded products, each off by 2⁻²⁴; the inverse of ΦᵀΦ + λ turns
            // that into a relative error that is larger by the largest eigenvalue over λ.
            let tolerance = 40.0 * 2f64.powi(-24) * (1.0 + largest / penalty);
            for example in 0..40 {
                let expected = without(example, &features, &targets, penalty);
                for (class, expected) in expected.iter().enumerate() {
                    let found = f64::from(found[example * 3 + class]);
                    assert!(
                        (found - expected).abs() < tolerance,
                        "{most} features, λ {penalty}, example {example}, class {class}: {found}, \
                         not {expected} within {tolerance}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_penalty_has_the_smallest_leave_one_out_error_of_those_tried() {
    let examples = clusters(60, 5, 3);
    let targets = targets(&examples);
    let (fit, features) = fitted(&examples, 48);
    let error = |penalty: f64| -> f64 {
        let predicted = Ridge::new(&fit, penalty).left_out(&features, &targets);
        predicted.iter().zip(&targets).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    };
    let largest = fit.values.last().copied().unwrap();
    let tried = (0..PENALTIES).map(|at| LARGEST_PENALTY * largest * 10f64.powf(-0.5 * at as f64));
    let least = tried.map(error).fold(f64::INFINITY, f64::min);
    // The same by a triangular root and by eigenvectors, both rounded to f32.
    let found = error(fit.penalty);
    assert!((found - least).abs() < 1e-5 * least, "{found} {least}");
    assert!((found - fit.error).abs() < 1e-5 * least, "{found} {}", fit.error);
}

#[test]
fn threads_do_not_change_a_bit() {
    // More than a block of examples, and a matrix that is large enough to be divided.
    let examples = clusters(5_000, 12, 4);
    let with = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (fit, features) = fitted(&examples, 700);
            let own = &targets(&examples)[..features.nrows() * 4];
            let predicted = Ridge::new(&fit, fit.penalty).left_out(&features, own);
            (fit.values.clone(), fit.penalty, predicted)
        })
    };
    let (one, three) = (with(1), with(3));
    assert!(one.0 == three.0, "eigenvalues");
    assert_eq!(one.1, three.1, "penalty");
    assert!(one.2 == three.2, "predictions");
}

#[test]
fn all_of_it_has_the_same_bits_on_any_number_of_threads() {
    let examples = clusters(150, 12, 4);
    let with = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| found(&examples))
    };
    assert!(with(1) == with(3));
}

#[test]
fn probabilities_sum_to_one_and_on_average_to_the_shares_of_the_labels() {
    let mut values = normals(3, 600 * 4);
    // Six of ten labels are 0, three are 1, one is 2.
    let labels: Vec<u32> = (0..600).map(|at| [0, 0, 0, 0, 0, 0, 1, 1, 1, 2][at % 10]).collect();
    for (row, label) in values.chunks_exact_mut(4).zip(&labels) {
        row[*label as usize] += 1.5;
    }
    let log_probs = found(&split(values, &labels, 3)).log_probs;
    let mut sums = [0.0; 3];
    for row in log_probs.chunks_exact(3) {
        let row: Vec<f64> = row.iter().map(|value| f64::from(*value).exp()).collect();
        // Three f32 logarithms of numbers below one.
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
        sums.iter_mut().zip(&row).for_each(|(sum, prob)| *sum += prob);
    }
    for (sum, expected) in sums.iter().zip([360.0, 180.0, 60.0]) {
        // The likelihood is largest where both are equal; the shifts come close in their rounds.
        assert!((sum - expected).abs() < 0.01, "{sums:?}");
    }
}

#[test]
fn labels_are_predicted_from_other_examples_only() {
    // Labels that have nothing to do with the inputs cannot be predicted.
    let labels: Vec<u32> = split_mix(11).map(|word| (word >> 63) as u32).take(400).collect();
    let log_probs = found(&split(normals(5, 400 * 6), &labels, 2)).log_probs;
    let right = log_probs.chunks_exact(2).zip(&labels);
    let right = right.filter(|(row, label)| u32::from(row[1] > row[0]) == **label).count();
    // Five standard errors of a fair coin; a fit of all examples would name nearly all labels.
    assert!(right as f64 <= 200.0 + 5.0 * 10.0, "{right} of 400");
}

#[test]
fn features_are_scaled_as_their_columns_need() {
    let labels: Vec<u32> = (0..400).map(|at| at % 2).collect();
    let classes = |at: usize| 2.0 * (at % 2) as f32 - 1.0;
    let scaled = |change: &dyn Fn(usize, &mut [f32])| {
        let mut values = normals(9, 400 * 4);
        values.chunks_exact_mut(4).enumerate().for_each(|(at, row)| {
            row[0] += classes(at);
            change(at, row);
        });
        found(&split(values, &labels, 2)).normalize
    };
    assert_eq!(scaled(&|_, _| {}), Normalize::Global);
    // The column that tells the classes apart is the smallest by far.
    assert_eq!(
        scaled(&|_, row| row[1..].iter_mut().for_each(|it| *it *= 1e4)),
        Normalize::PerFeature
    );
    // It has the sinh of Normal numbers, whose largest are thousands.
    assert_eq!(
        scaled(&|_, row| row.iter_mut().for_each(|it| *it = (3.0 * *it).sinh())),
        Normalize::Robust
    );
}

#[test]
fn annotations_count_as_shares() {
    let mut examples = clusters(4, 3, 2);
    examples.labels = Labels::Annotations(aleator_data::Votes {
        offsets: vec![0, 2, 3, 6, 7],
        labels: vec![0, 1, 1, 0, 0, 1, 0],
        annotators: vec![0; 7],
        annotator_names: vec!["ann".to_string()],
    });
    let third = 1.0 / 3.0;
    let found = targets(&examples);
    for (found, expected) in found.iter().zip([0.5, 0.5, 0.0, 1.0, 2.0 * third, third, 1.0, 0.0]) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn empty_classes_constant_features_and_few_examples_have_finite_probabilities() {
    let finite = |examples: &Split| {
        let found = found(examples);
        assert_eq!(found.log_probs.len(), examples.len() * examples.classes);
        for row in found.log_probs.chunks_exact(examples.classes) {
            let sum: f64 = row.iter().map(|value| f64::from(*value).exp()).sum();
            assert!(row.iter().all(|value| value.is_finite()), "{row:?}");
            assert!((sum - 1.0).abs() < 1e-5, "{row:?}");
        }
    };
    let labels: Vec<u32> = (0..30).map(|at| at % 2).collect();
    finite(&split(normals(1, 30 * 3), &labels, 3));
    finite(&split(vec![1.5; 30 * 3], &labels, 2));
    finite(&split(vec![0.0; 30 * 3], &labels, 2));
    finite(&split(vec![0.0, 1.0, 2.0, 5.0], &[0, 1], 2));
    finite(&split(vec![0.0, 1.0, 2.0, 5.0], &[1, 1], 2));
    let large: Vec<f32> = normals(1, 30 * 3).iter().map(|value| value * 1e30).collect();
    finite(&split(large, &labels, 2));
}

#[test]
fn a_stop_leaves_nothing_behind() {
    let stopped = leave_one_out(&clusters(20, 3, 2), &AtomicBool::new(true)).unwrap();
    assert_eq!(stopped, None);
}
