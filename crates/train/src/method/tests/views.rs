//! Two views of every example: how they differ, and what DivideMix learns from them.

use aleator_run::recipe::{self, ExampleViews, ViewKind};

use super::gradients::{assert_gradients, part_of};
use super::*;
use crate::method::co_teaching::noises;
use crate::method::mixing::Mix;
use crate::method::views;
use crate::outputs::floats;
use crate::step::Part;

const SPREADS: [f32; WIDTH] = [0.0, 0.5, 1.0, 2.0];

fn seen(part: &Part<'_>, kind: ViewKind) -> [Vec<f32>; 2] {
    views::two(part, kind, &SPREADS).map(floats)
}

#[test]
fn views_differ_and_are_named_by_seed_step_example_and_view() {
    let batch = batch(0, 0, 1);
    for kind in [ViewKind::Noise { strength: 0.5 }, ViewKind::Dropout { rate: 0.5 }] {
        let mut part = part_of(&batch);
        let [first, second] = seen(&part, kind);
        assert_ne!(first, second, "{kind:?}");
        assert_eq!(seen(&part, kind), [first.clone(), second.clone()], "{kind:?}");
        part.noise.key.step = 1;
        assert!(seen(&part, kind).iter().all(|view| *view != first && *view != second));
        part.noise.key = NoiseKey { seed: 2, step: 0 };
        assert!(seen(&part, kind).iter().all(|view| *view != first && *view != second));
    }
    // A part of the batch has the rows of the batch.
    let kind = ViewKind::Noise { strength: 0.5 };
    let whole = seen(&part_of(&batch), kind);
    let second_half = Loaded::new(super::batch(0, 1, 2), &Normalization::identity(WIDTH));
    let part = Part {
        batch: &second_half.batch,
        inputs: second_half.inputs.clone(),
        weights: vec![2.0 / EXAMPLES as f32; EXAMPLES / 2],
        ..part_of(&batch)
    };
    for (whole, half) in whole.iter().zip(seen(&part, kind)) {
        assert_eq!(whole[EXAMPLES / 2 * WIDTH..], half);
    }
}

#[test]
fn noise_is_as_large_as_the_spread_says_and_dropout_keeps_the_mean() {
    let batch = batch(0, 0, 1);
    let (steps, numbers) = (2_000, inputs());
    let (mut squares, mut sums, mut dropped) = ([0.0f64; WIDTH], [0.0f64; WIDTH], 0);
    let mut means = vec![0.0f64; numbers.len()];
    for step in 0..steps {
        let mut part = part_of(&batch);
        part.noise.key.step = step;
        for view in seen(&part, ViewKind::Noise { strength: 0.5 }) {
            for (at, (found, given)) in view.iter().zip(&numbers).enumerate() {
                let noise = f64::from(found - given);
                sums[at % WIDTH] += noise;
                squares[at % WIDTH] += noise * noise;
            }
        }
        for view in seen(&part, ViewKind::Dropout { rate: 0.25 }) {
            dropped += view.iter().filter(|value| **value == 0.0).count();
            let pairs = means.iter_mut().zip(&view);
            pairs.for_each(|(mean, value)| *mean += f64::from(*value) / (2 * steps) as f64);
        }
    }
    let draws = (2 * steps as usize * EXAMPLES) as f64;
    for ((sum, square), spread) in sums.iter().zip(squares).zip(SPREADS) {
        let expected = 0.5 * f64::from(spread);
        // Five standard errors of a mean, and of a variance.
        assert!((sum / draws).abs() <= 5.0 * expected / draws.sqrt() + 1e-6, "{sum} {spread}");
        let error = 5.0 * (2.0 / draws).sqrt() * expected.powi(2) + 1e-6;
        assert!((square / draws - expected.powi(2)).abs() <= error, "{square} {spread}");
    }
    let cells = draws * WIDTH as f64;
    let error = 5.0 * (0.25 * 0.75 / cells).sqrt();
    assert!((dropped as f64 / cells - 0.25).abs() < error, "{dropped} of {cells}");
    for (mean, given) in means.iter().zip(&numbers) {
        // One of four is left out, the others are 4/3: the deviation is the number over √3.
        let given = f64::from(*given);
        let error = 5.0 * given.abs() / 3.0f64.sqrt() / (2.0 * steps as f64).sqrt() + 1e-6;
        assert!((mean - given).abs() < error, "{mean} {given}");
    }
}

const SETTINGS: recipe::DivideMix = recipe::DivideMix {
    warm_up: 1,
    threshold: 0.5,
    sharpness: 0.5,
    alpha: Some(4.0),
    unlabelled_weight: 3.0,
    ramp: 0,
    balance: 0.7,
    views: Some(ExampleViews { kind: ViewKind::Noise { strength: 0.5 } }),
};

/// w of each example for the first network, by the losses of the second: some labels are trusted.
const TRUST: [f64; EXAMPLES] = [0.9, 0.2, 0.6, 0.4, 1.0, 0.1];

/// Two networks, and what the method keeps of the examples.
fn state(method: &DivideMix) -> State {
    let recipe = recipe(&[]);
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    state.memory[0].values.change(|clean| {
        clean.chunks_exact_mut(2).zip(TRUST).for_each(|(clean, trust)| clean[1] = trust as f32);
    });
    state.memory[1].values.change(|spreads| spreads.copy_from_slice(&SPREADS));
    state
}

/// Targets by the formula: those of the first network, before they are mixed.
fn expected_targets(state: &State, seen: &[f32], noises: &[BatchNoise; 2]) -> Vec<Vec<f64>> {
    let of = |network: usize| {
        let (weights, ones) = (state.networks[network].weights(), [1.0; 2 * EXAMPLES]);
        let views = log_probs_in(&weights, seen, &ones, &noises[network]);
        let mean = |row: usize, class: usize| {
            (views[row][class].exp() + views[row + EXAMPLES][class].exp()) / 2.0
        };
        (0..EXAMPLES)
            .map(|row| [0, 1, 2].map(|class| mean(row, class)))
            .collect::<Vec<[f64; CLASSES]>>()
    };
    let (own, other) = (of(0), of(1));
    let target = |row: usize| -> Vec<f64> {
        let guess = |class: usize| {
            let given = f64::from(u8::from(LABELS[row] as usize == class));
            match TRUST[row] > 0.5 {
                true => TRUST[row] * given + (1.0 - TRUST[row]) * own[row][class],
                false => (own[row][class] + other[row][class]) / 2.0,
            }
        };
        let powers: Vec<f64> = (0..CLASSES).map(|class| guess(class).powi(2)).collect();
        let sum: f64 = powers.iter().sum();
        powers.iter().map(|power| power / sum).collect()
    };
    (0..EXAMPLES).map(target).collect()
}

#[test]
fn dividemix_learns_from_both_views_by_the_mean_of_its_guesses() {
    let method = DivideMix(SETTINGS);
    let state = state(&method);
    let first = batch(0, 0, 1);
    let batch = Batch { epoch: 3, ..first };
    let part = part_of(&batch);
    let found = method.part(&state, &part).unwrap();
    assert_eq!(found.examples, batch.examples);
    assert!(found.hits <= EXAMPLES as f64);

    let kind = SETTINGS.views.unwrap().kind;
    let views = views::two(&part, kind, &SPREADS).to_vec();
    let both = views::batch_of(&part, 2);
    let doubled = views::part_of(&part, &both, views);
    let noises = noises(&doubled);
    let seen = floats(doubled.inputs.clone());
    let once = expected_targets(&state, &seen, &noises);
    let mix = Mix::with_next(&doubled, 4.0);
    // The last of the first view is mixed with the first of the second, which has other draws.
    assert_eq!(mix.partners[EXAMPLES - 1..=EXAMPLES], [EXAMPLES, EXAMPLES + 1]);
    assert_ne!(mix.shares[..EXAMPLES], mix.shares[EXAMPLES..]);
    let targets = mix.targets(&[once.clone(), once].concat());
    let mixed = floats(mix.inputs(&doubled.inputs));
    assert_gradients(&found, &state, |weights| {
        let rows = log_probs_in(weights, &mixed, &[1.0; 2 * EXAMPLES], &noises[0]);
        let (mut labelled, mut unlabelled, mut means) = (0.0, 0.0, [0.0; CLASSES]);
        for (row, (log_probs, targets)) in rows.iter().zip(&targets).enumerate() {
            for class in 0..CLASSES {
                let (prob, target) = (log_probs[class].exp(), targets[class]);
                means[class] += prob / (2 * EXAMPLES) as f64;
                // Three of six labels are trusted, so six views of twelve.
                if TRUST[row % EXAMPLES] > 0.5 {
                    labelled -= target * log_probs[class] / EXAMPLES as f64;
                } else {
                    unlabelled += (prob - target).powi(2) / (EXAMPLES * CLASSES) as f64;
                }
            }
        }
        let uniform = 1.0 / CLASSES as f64;
        let penalty: f64 = means.iter().map(|mean| uniform * (uniform / mean).ln()).sum();
        labelled + 3.0 * unlabelled + 0.7 * penalty
    });
}

/// The norms of the network are moved by what it learns from, and not by its guesses.
#[test]
fn guessing_targets_leaves_no_trace_in_the_norms() {
    let recipe = with_norms();
    let image = InputShape::Image { channels: 3, height: 8, width: 8 };
    let shape = Shape { input: image, classes: CLASSES };
    let kind = ViewKind::Dropout { rate: 0.25 };
    let settings = recipe::DivideMix { views: Some(ExampleViews { kind }), ..SETTINGS };
    let method = DivideMix(settings);
    let mut state = State::start(&recipe, 1, shape);
    let start = Start { recipe: &recipe, seed: 1, examples: EXAMPLES, shape };
    method.prepare(&mut state, &start);

    let width = image.len();
    let words = aleator_kernels::split_mix(8).take(EXAMPLES * width);
    let numbers: Vec<f32> = words.map(|word| (word >> 40) as f32 / (1u64 << 23) as f32).collect();
    let batch = Batch { epoch: 3, ..batch(0, 0, 1) };
    let inputs =
        Tensor::from_data(TensorData::new(numbers, [EXAMPLES, width]), &device().autodiff());
    let part = Part { inputs, ..part_of(&batch) };
    let found = method.part(&state, &part).unwrap();

    let views = views::two(&part, kind, &[]).to_vec();
    let both = views::batch_of(&part, 2);
    let doubled = views::part_of(&part, &both, views);
    let mixed = Mix::with_next(&doubled, 4.0).inputs(&doubled.inputs);
    for (network, gradients) in state.networks.iter().zip(&found.networks) {
        let learned = network.model().forward(mixed.clone()).statistics;
        assert!(!learned.is_empty());
        assert_eq!(gradients.statistics, learned);
    }
}
