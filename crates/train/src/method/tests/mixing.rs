//! Methods that mix examples: what they mix, and the loss of that.

use aleator_run::recipe;

use super::gradients::{assert_gradients, part_of};
use super::*;
use crate::method::mixing::{Mix, dense_targets};
use crate::method::mixup::Mixup;
use crate::outputs::floats;

/// −Σ t log q of mixed examples, averaged over the part.
fn reference(mix: &Mix, part: &Part<'_>, weights: &[NamedTensor]) -> f64 {
    let mixed = floats(mix.inputs(&part.inputs));
    let targets = mix.targets(&dense_targets(part, CLASSES));
    let rows = log_probs_of(weights, &mixed, &[1.0; EXAMPLES]).into_iter().zip(targets);
    let loss = |(row, targets): (Vec<f64>, Vec<f64>)| -> f64 {
        row.iter().zip(targets).map(|(log_prob, target)| -target * log_prob).sum()
    };
    rows.map(loss).sum::<f64>() / EXAMPLES as f64
}

#[test]
fn mixup_learns_from_mixed_inputs_and_targets() {
    let state = fresh(&recipe(&[]));
    let batch = batch(0, 0, 1);
    let part = part_of(&batch);
    let mix = Mix::with_next(&part, 1.0);
    assert_eq!(mix.partners, [1, 2, 3, 4, 5, 0]);
    assert!(mix.shares.iter().all(|share| (0.5..=1.0).contains(share)), "{:?}", mix.shares);
    assert!(mix.shares.windows(2).any(|pair| pair[0] != pair[1]));
    let found = Mixup(recipe::Mixup { alpha: 1.0 }).part(&state, &part).unwrap();
    assert_gradients(&found, &state, |weights| reference(&mix, &part, weights));
}

#[test]
fn shares_are_drawn_anew_for_every_step_and_example() {
    let batch = batch(0, 0, 1);
    let first = part_of(&batch);
    let mut second = part_of(&batch);
    assert_eq!(Mix::with_next(&first, 1.0), Mix::with_next(&second, 1.0));
    second.noise.key.step = 1;
    assert_ne!(Mix::with_next(&first, 1.0).shares, Mix::with_next(&second, 1.0).shares);
}

/// Weights of the unmixed examples choose partners and shares, weights of the mixed ones the loss.
#[test]
fn mentormix_learns_from_mixed_examples_of_small_loss() {
    let settings =
        recipe::MentorMix { alpha: 2.0, quantile: 0.5, decay: 0.5, burn_in: 0, weigh_mixed: true };
    let method = MentorMix(settings);
    let recipe = super::recipe(&[]);
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let batch = batch(0, 0, 1);
    let part = part_of(&batch);
    let weights = state.networks[0].weights();
    let own: Vec<f64> = log_probs(&weights)
        .into_iter()
        .zip(LABELS)
        .map(|(row, label)| -row[label as usize])
        .collect();
    let median = |losses: &[f64]| {
        let mut sorted = losses.to_vec();
        sorted.sort_by(f64::total_cmp);
        0.5 * (sorted[EXAMPLES / 2 - 1] + sorted[EXAMPLES / 2])
    };
    let below = |losses: &[f64], bound: f64| -> Vec<f64> {
        losses.iter().map(|loss| f64::from(u8::from(*loss <= bound))).collect()
    };
    let mix = method.mix(&part, &below(&own, median(&own)));
    let mixed_losses = |weights: &[NamedTensor]| -> Vec<f64> {
        let inputs = floats(mix.inputs(&part.inputs));
        let targets = mix.targets(&dense_targets(&part, CLASSES));
        let rows = log_probs_of(weights, &inputs, &[1.0; EXAMPLES]).into_iter().zip(targets);
        let loss = |(row, targets): (Vec<f64>, Vec<f64>)| -> f64 {
            row.iter().zip(targets).map(|(log_prob, target)| -target * log_prob).sum()
        };
        rows.map(loss).collect()
    };
    let mixed = mixed_losses(&weights);
    for (memory, bound) in [(0, median(&own)), (1, median(&mixed))] {
        state.memory[memory].values.change(|values| values.copy_from_slice(&[bound as f32, 1.0]));
    }
    let kept = below(&mixed, median(&mixed));
    assert_eq!(kept.iter().sum::<f64>(), EXAMPLES as f64 / 2.0, "half of them");
    let found = method.part(&state, &part).unwrap();
    assert_gradients(&found, &state, |weights| {
        let losses = mixed_losses(weights);
        losses.iter().zip(&kept).map(|(loss, kept)| loss * kept).sum::<f64>() / EXAMPLES as f64
    });
}

#[test]
fn mentormix_prefers_partners_of_weight_and_gives_away_the_larger_share_without() {
    let settings =
        recipe::MentorMix { alpha: 2.0, quantile: 0.5, decay: 0.5, burn_in: 0, weigh_mixed: false };
    let (method, batch) = (MentorMix(settings), batch(0, 0, 1));
    let weights = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
    let (mut drawn, steps) = ([0.0; EXAMPLES], 4_000);
    for step in 0..steps {
        let mut part = part_of(&batch);
        part.noise.key.step = step;
        let mix = method.mix(&part, &weights);
        for (share, weight) in mix.shares.iter().zip(weights) {
            assert_eq!(*share >= 0.5, weight == 1.0, "{share} {weight}");
        }
        mix.partners.iter().for_each(|partner| drawn[*partner] += 1.0);
    }
    let sum: f64 = weights.iter().map(|weight: &f64| weight.exp()).sum();
    let draws = (steps as usize * EXAMPLES) as f64;
    for (drawn, weight) in drawn.into_iter().zip(weights) {
        let expected = weight.exp() / sum;
        // Five standard errors of a share.
        let error = 5.0 * (expected * (1.0 - expected) / draws).sqrt();
        assert!((drawn / draws - expected).abs() < error, "{drawn} {expected}");
    }
}
