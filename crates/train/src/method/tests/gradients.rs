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

/// Each network learns from the examples of smallest loss of the other.
#[test]
fn co_teaching_averages_over_what_the_other_network_keeps() {
    let settings =
        aleator_run::recipe::CoTeaching { noise_rate: Some(0.5), ramp: 0, exponent: 1.0 };
    let (recipe, method) = (recipe(&[]), CoTeaching(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let found = method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    let losses = |weights: &[NamedTensor], noise: &BatchNoise| -> Vec<f64> {
        let rows = log_probs_with(weights, noise).into_iter().zip(LABELS);
        rows.map(|(row, label)| -row[label as usize]).collect()
    };
    let noises = crate::method::co_teaching::noises(&part_of(&batch(0, 0, 1)));
    let both: Vec<Vec<NamedTensor>> =
        state.networks.iter().map(|network| network.weights()).collect();
    let kept = |network: usize| {
        let losses = losses(&both[network], &noises[network]);
        let mut order: Vec<usize> = (0..EXAMPLES).collect();
        order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
        order.truncate(EXAMPLES / 2);
        order
    };
    assert_ne!(kept(0), kept(1), "the networks must not agree");
    for (own, noise) in noises.iter().enumerate() {
        let kept = kept(1 - own);
        let mut one = found.clone();
        one.networks = vec![found.networks[own].clone()];
        let alone = State { networks: vec![state.networks[own].clone()], ..state.clone() };
        let loss = |weights: &[NamedTensor]| {
            let losses = losses(weights, noise);
            kept.iter().map(|row| losses[*row]).sum::<f64>() / kept.len() as f64
        };
        if own == 1 {
            // The step reports the loss of the first network.
            one.loss = loss(&both[1]);
        }
        assert_gradients(&one, &alone, loss);
        for row in 0..EXAMPLES {
            let bit = f32::from(u8::from(kept.contains(&row)));
            assert_eq!(found.rows[2 * row + own], bit, "example {row}, network {own}");
        }
    }
}

#[test]
fn curriculumnet_weighs_sorts_and_divides_by_the_examples_that_count() {
    let settings = aleator_run::recipe::CurriculumNet {
        after: 1,
        noisy_after: 1,
        all_after: 9,
        quantile: 0.6,
        weights: [1.0, 0.5, 0.25],
    };
    let (recipe, method) = (recipe(&[]), CurriculumNet(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    state.memory[0].values.change(|sorts| sorts.copy_from_slice(&[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]));
    // The third sort has not begun in this epoch.
    let weights = [1.0, 0.5, 0.0, 1.0, 0.5, 0.0];
    let batch = Batch { epoch: 3, ..batch(0, 0, 1) };
    let mut found = method.part(&state, &part_of(&batch)).unwrap();
    found.average_over_kept();
    assert_gradients(&found, &state, |tensors| {
        let rows = log_probs(tensors).into_iter().zip(LABELS).zip(weights);
        let sum: f64 = rows.map(|((row, label), weight)| -weight * row[label as usize]).sum();
        sum / 4.0
    });
}

#[test]
fn cleannet_weighs_examples_by_their_similarity_and_is_plain_before() {
    let settings = aleator_run::recipe::CleanNet {
        verified: String::new(),
        after: 1,
        refresh: 1,
        references: 1,
        hidden: 1,
        embedding: 1,
        margin: 0.1,
        wrong_weight: 5.0,
        unverified_weight: 0.1,
        reconstruction_weight: 0.1,
        batch: 1,
        steps: 1,
        rate: 0.1,
    };
    let (recipe, method) = (recipe(&[]), CleanNet(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let part = || method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    let plain = Plain.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    assert_eq!(part().networks[0].values, plain.networks[0].values);
    let weights = [1.0f32, 0.0, 0.25, 0.5, 0.75, 0.125];
    state.memory[0].values.change(|values| values.copy_from_slice(&weights));
    let found = method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    assert_gradients(&found, &state, |tensors| {
        let rows = log_probs(tensors).into_iter().zip(LABELS).zip(weights);
        let loss = |((row, label), weight): ((Vec<f64>, u32), f32)| {
            -f64::from(weight) * row[label as usize]
        };
        rows.map(loss).sum::<f64>() / EXAMPLES as f64
    });
}

/// Two further networks learn from one half of the examples each, as long as errors are not known.
#[test]
fn har_by_folds_trains_each_further_network_on_its_half() {
    let errors = ClassErrors::Folds { after: 2 };
    let settings =
        aleator_run::recipe::Har { strength: 0.5, error_power: 0.6, count_power: 0.4, errors };
    let (recipe, method) = (recipe(&[]), Har(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    assert_eq!(state.networks.len(), 3);
    let found = method.part(&state, &part_of(&batch(0, 0, 1))).unwrap();
    let [_, noise] = crate::method::co_teaching::noises(&part_of(&batch(0, 0, 1)));
    let halves = crate::method::har::halves(1, &batch(0, 0, 1).keys);
    assert!(halves.contains(&1) && halves.contains(&2), "{halves:?}");
    for network in [1, 2] {
        let mut one = found.clone();
        one.networks = vec![found.networks[network].clone()];
        let alone = State { networks: vec![state.networks[network].clone()], ..state.clone() };
        let loss = |weights: &[NamedTensor]| -> f64 {
            let rows = log_probs_with(weights, &noise).into_iter().zip(LABELS).zip(&halves);
            let own = rows.filter(|(_, half)| **half == network);
            let sum: f64 = own.map(|((row, label), _)| -row[label as usize]).sum();
            2.0 * sum / EXAMPLES as f64
        };
        // The step reports the loss of the first network.
        let weights = alone.networks[0].weights();
        one.loss = loss(&weights);
        assert_gradients(&one, &alone, loss);
    }
    let later = Batch { epoch: 2, ..batch(0, 0, 1) };
    assert_eq!(method.part(&state, &part_of(&later)).unwrap().networks.len(), 1);
}

/// The mixture trusts every label, and λ is one: what is left are soft labels.
#[test]
fn dividemix_that_trusts_soft_labels_has_their_cross_entropy() {
    let settings = aleator_run::recipe::DivideMix {
        warm_up: 1,
        threshold: 0.5,
        sharpness: 1.0,
        views: None,
        // Beta(α, α) of a tiny α is 0 or 1, and the larger share is 1: nothing is mixed.
        alpha: Some(1e-300),
        unlabelled_weight: 25.0,
        ramp: 0,
        balance: 0.0,
    };
    let (recipe, method) = (recipe(&[]), DivideMix(settings));
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let soft = [[0.7f32, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]];
    let row = |row: &[f32; 3]| (0..).zip(*row).collect::<Vec<(u32, f32)>>();
    let targets: aleator_data::SparseTargets =
        soft.iter().cycle().take(EXAMPLES).map(row).collect();
    let batch = Batch { epoch: 5, targets: Targets::Sparse(targets), ..batch(0, 0, 1) };
    let found = method.part(&state, &part_of(&batch)).unwrap();
    assert_gradients(&found, &state, |weights| {
        let rows = log_probs(weights).into_iter().zip(soft.iter().cycle());
        let loss = |(row, soft): (Vec<f64>, &[f32; 3])| -> f64 {
            row.iter().zip(soft).map(|(log_prob, soft)| -f64::from(*soft) * log_prob).sum()
        };
        rows.map(loss).sum::<f64>() / EXAMPLES as f64
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
