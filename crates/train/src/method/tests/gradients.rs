//! Gradients of methods that are more than a function of log-probabilities, against differences of
//! their losses in f64.

use aleator_run::recipe::{ClassErrors, DataParameter};

use super::*;

/// All of a batch as one part.
pub(super) fn part_of(batch: &Batch) -> Part<'_> {
    Part {
        batch,
        inputs: Tensor::from_data(
            TensorData::new(inputs(), [EXAMPLES, WIDTH]),
            &device().autodiff(),
        ),
        second_view: None,
        noise: noise(),
        weights: vec![1.0 / EXAMPLES as f32; EXAMPLES],
    }
}

/// The loss and the gradients of a step are those of a reference, a function of the weights.
pub(super) fn assert_gradients(
    found: &Contribution,
    state: &State,
    loss: impl Fn(&[NamedTensor]) -> f64,
) {
    let weights = state.networks[0].weights();
    let expected = loss(&weights);
    // f32 sums of numbers about one.
    assert!((found.loss - expected).abs() < 1e-5, "{} {expected}", found.loss);
    for (index, gradient) in found.networks[0].values.iter().enumerate() {
        for (at, gradient) in gradient.read().iter().enumerate() {
            let moved = |by: f32| {
                let mut weights = weights.clone();
                weights[index].values.change(|values| values[at] += by);
                let at = weights[index].values.read()[at];
                (loss(&weights), f64::from(at))
            };
            const STEP: f32 = 1.0 / 256.0;
            let ((above, to), (below, from)) = (moved(STEP), moved(-STEP));
            let slope = (above - below) / (to - from);
            // The truncation of the difference, h²/6 times third derivatives.
            let difference = (f64::from(*gradient) - slope).abs();
            let name = &weights[index].name;
            assert!(difference < 2e-4, "{name}[{at}]: {gradient} {slope}");
        }
    }
}

#[test]
fn data_parameters_divide_the_utilities_and_learn_by_the_slopes() {
    let parameter = |start| Some(DataParameter { start, rate: 0.5, decay: 0.25 });
    let settings = aleator_run::recipe::DataParameters {
        classes: parameter(1.5),
        instances: parameter(0.5),
        momentum: 0.5,
        bound: 4.0,
    };
    let (recipe, method) = (recipe(&[]), DataParameters(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    // Not all the same.
    let class_logs = [0.1f32, -0.3, 0.4];
    let logs = [0.0f32, 0.5, -0.5, 0.25, -0.25, 1.3];
    state.memory[0].values.change(|values| values.copy_from_slice(&class_logs));
    state.memory[2].values.change(|values| values.copy_from_slice(&logs));
    let loss = |weights: &[NamedTensor], temperatures: &[f64]| -> f64 {
        let factors: Vec<f64> = temperatures.iter().map(|value| 1.0 / value).collect();
        let rows = log_probs_of(weights, &inputs(), &factors).into_iter().zip(LABELS);
        rows.map(|(row, label)| -row[label as usize]).sum::<f64>() / EXAMPLES as f64
    };
    let temperatures: Vec<f64> = logs
        .iter()
        .zip(LABELS)
        .map(|(log, label)| f64::from(*log).exp() + f64::from(class_logs[label as usize]).exp())
        .collect();
    let found = method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    assert_gradients(&found, &state, |weights| loss(weights, &temperatures));
    // The slopes by σ of each example's own loss.
    let weights = state.networks[0].weights();
    let slopes: Vec<f64> = (0..EXAMPLES)
        .map(|example| {
            let moved = |by: f64| {
                let mut temperatures = temperatures.clone();
                temperatures[example] += by;
                loss(&weights, &temperatures) * EXAMPLES as f64
            };
            (moved(1e-4) - moved(-1e-4)) / 2e-4
        })
        .collect();
    let expected_instances: Vec<f64> = (0..EXAMPLES)
        .map(|example| {
            let log = f64::from(logs[example]);
            let moved = log - 0.5 * (slopes[example] * log.exp() + 0.25 * log);
            moved.clamp(-(4.0f64.ln()), 4.0f64.ln())
        })
        .collect();
    let expected_classes: Vec<f64> = (0..CLASSES)
        .map(|class| {
            let log = f64::from(class_logs[class]);
            let of_class = (0..EXAMPLES).filter(|example| LABELS[*example] as usize == class);
            let slope: f64 = of_class.map(|example| slopes[example] / EXAMPLES as f64).sum();
            log - 0.5 * (slope * log.exp() + 0.25 * log)
        })
        .collect();
    method.finish(&mut state, found, 0.0);
    for (at, expected) in [(0, expected_classes), (2, expected_instances)] {
        for (found, expected) in state.memory[at].values.read().iter().zip(expected) {
            // f32 gradients of a loss in f32.
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}

#[test]
fn har_penalises_the_slope_by_the_inputs_of_the_head() {
    let errors = ClassErrors::Validation { after: 0 };
    let settings =
        aleator_run::recipe::Har { strength: 0.5, error_power: 0.6, count_power: 0.4, errors };
    let (recipe, method) = (recipe(&[]), Har(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let class_weights = [1.0f32, 0.25, 0.5];
    state.memory[0].values.change(|values| values.copy_from_slice(&class_weights));
    let found = method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    let numbers = inputs();
    assert_gradients(&found, &state, |weights| {
        let likelihood: f64 =
            log_probs(weights).iter().zip(LABELS).map(|(row, label)| -row[label as usize]).sum();
        let of = |name: &str| {
            let found = weights.iter().find(|weight| weight.name.ends_with(name)).unwrap();
            found.values.read().iter().map(|value| f64::from(*value)).collect::<Vec<f64>>()
        };
        let (weight, bias) = (of("mean.weight"), of("mean.bias"));
        let norm = |(input, label): (&[f32], u32)| -> f64 {
            let mut error: Vec<f64> = (0..CLASSES)
                .map(|class| {
                    let terms = input.iter().enumerate();
                    let product: f64 =
                        terms.map(|(at, x)| f64::from(*x) * weight[at * CLASSES + class]).sum();
                    ((product + bias[class]) / 0.8).exp()
                })
                .collect();
            let sum: f64 = error.iter().sum();
            error.iter_mut().for_each(|error| *error /= sum);
            error[label as usize] -= 1.0;
            let slope = |at: usize| -> f64 {
                (0..CLASSES).map(|it| weight[at * CLASSES + it] * error[it] / 0.8).sum()
            };
            let square: f64 = (0..WIDTH).map(|at| slope(at).powi(2)).sum();
            f64::from(class_weights[label as usize]) * square.sqrt()
        };
        let penalty: f64 = numbers.chunks_exact(WIDTH).zip(LABELS).map(norm).sum();
        (likelihood + 0.5 * penalty) / EXAMPLES as f64
    });
}

#[test]
fn dividemix_that_trusts_all_labels_is_plain_training_bit_for_bit() {
    let settings = aleator_run::recipe::DivideMix {
        warm_up: 1,
        threshold: 0.5,
        sharpness: 1.0,
        alpha: None,
        unlabelled_weight: 25.0,
        ramp: 0,
        balance: 0.0,
        views: None,
    };
    let (recipe, method) = (recipe(&[]), DivideMix(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let first = batch(0, 0, 1);
    let later = Batch { epoch: 5, ..first.clone() };
    let found = method.part(&state, &part_of(&later)).unwrap();
    let plain = Plain.part(&state, &part_of(&first)).unwrap();
    assert_eq!(found.loss, plain.loss);
    assert_eq!(found.networks[0].values, plain.networks[0].values);
    assert_ne!(found.networks[0].values, found.networks[1].values);
}
