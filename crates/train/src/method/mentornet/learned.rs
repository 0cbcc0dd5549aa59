//! The network of MentorNet that learns what the losses of right labels look like.
//!
//! It maps (ℓ, Δ, progress) of an example to the probability v that its label is right, where
//! progress is the share of the epochs that are done. Before each epoch it learns from what was
//! last seen of the verified examples, by the cross entropy with 1 for a right label and 0 for a
//! wrong one, and goes on from what it had learned for the epoch before.
//!
//! Of the authors' network the label is left out, which is always 0 in their code. Their bidirectional
//! LSTM runs over a single step of (ℓ, Δ) from a state of zeros: what is left of each direction is
//! one gated unit, σ(o) tanh(σ(i) tanh(g)) with i, g and o affine in (ℓ, Δ). The epoch goes in as a
//! number, where theirs has a random vector for each percent. A dense layer of 20 tanh units and a
//! logistic one follow, as theirs. They train once on the losses of another network, in 30,000 steps.

use aleator_kernels::{NoiseKey, Stream, split_mix};
use aleator_model::params::Values;

use crate::method::adam::Adam;
use crate::tensors::NamedTensor;

/// Gated units, one for each direction.
const UNITS: usize = 2;
/// The gates of a unit: input, candidate, output.
const GATES: usize = 3;
/// Two inputs and a bias.
const GATE: usize = 3;
/// Dense units, as the authors'.
const DENSE: usize = 20;
/// Their inputs, the gated units and the progress, and a bias.
const FAN: usize = UNITS + 2;
const DENSE_AT: usize = UNITS * GATES * GATE;
const OUTPUT_AT: usize = DENSE_AT + DENSE * FAN;
/// All weights: those of the gates, of the dense units, and of the output with its bias.
pub(super) const WEIGHTS: usize = OUTPUT_AT + DENSE + 1;
/// Verified examples in a step, as the authors'.
const BATCH: usize = 32;

/// What the network sees of an example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// ℓ.
    pub loss: f64,
    /// Δ.
    pub above: f64,
    /// Epochs done over all epochs.
    pub progress: f64,
}

/// The network.
pub(super) struct Mentor {
    /// `[WEIGHTS]`.
    weights: Vec<f64>,
}

/// What the gates and units of an example are.
struct Activations {
    /// σ(i), tanh(g), σ(o) and tanh(σ(i) tanh(g)) of each gated unit.
    gated: [[f64; 4]; UNITS],
    /// The dense units.
    dense: [f64; DENSE],
    /// log v/(1 − v).
    logit: f64,
}

impl Mentor {
    pub fn new(weights: &[f32]) -> Self {
        Self { weights: weights.iter().map(|weight| f64::from(*weight)).collect() }
    }

    /// v.
    pub fn weight(&self, seen: Seen) -> f64 {
        logistic(self.activations(seen).logit)
    }

    fn activations(&self, seen: Seen) -> Activations {
        let gated: [[f64; 4]; UNITS] = std::array::from_fn(|unit| {
            let [input, candidate, output]: [f64; GATES] = std::array::from_fn(|gate| {
                let weights = &self.weights[(unit * GATES + gate) * GATE..][..GATE];
                weights[0] * seen.loss + weights[1] * seen.above + weights[2]
            });
            let (input, candidate) = (logistic(input), candidate.tanh());
            [input, candidate, logistic(output), (input * candidate).tanh()]
        });
        let dense = std::array::from_fn(|unit| {
            let weights = &self.weights[DENSE_AT + unit * FAN..][..FAN];
            let units: f64 = (0..UNITS).map(|at| weights[at] * gated[at][2] * gated[at][3]).sum();
            (units + weights[UNITS] * seen.progress + weights[UNITS + 1]).tanh()
        });
        let output = &self.weights[OUTPUT_AT..];
        let sum: f64 = output.iter().zip(&dense).map(|(weight, unit)| weight * unit).sum();
        Activations { gated, dense, logit: sum + output[DENSE] }
    }

    /// Adds a share of the cross entropy of an example's judgement to its gradient, and returns it.
    fn learn(&self, seen: Seen, right: bool, share: f64, gradient: &mut [f64]) -> f64 {
        let Activations { gated, dense, logit } = self.activations(seen);
        let target = f64::from(u8::from(right));
        let slope = share * (logistic(logit) - target);
        let mut of_units = [0.0; UNITS];
        for (at, unit) in dense.iter().enumerate() {
            gradient[OUTPUT_AT + at] += slope * unit;
            let slope = slope * self.weights[OUTPUT_AT + at] * (1.0 - unit * unit);
            let own = &mut gradient[DENSE_AT + at * FAN..][..FAN];
            let weights = &self.weights[DENSE_AT + at * FAN..][..FAN];
            for (unit, [.., output, state]) in gated.iter().enumerate() {
                own[unit] += slope * output * state;
                of_units[unit] += slope * weights[unit];
            }
            own[UNITS] += slope * seen.progress;
            own[UNITS + 1] += slope;
        }
        gradient[OUTPUT_AT + DENSE] += slope;
        for (unit, [input, candidate, output, state]) in gated.into_iter().enumerate() {
            let of_cell = of_units[unit] * output * (1.0 - state * state);
            let slopes = [
                of_cell * candidate * input * (1.0 - input),
                of_cell * input * (1.0 - candidate * candidate),
                of_units[unit] * state * output * (1.0 - output),
            ];
            for (gate, slope) in slopes.into_iter().enumerate() {
                let own = &mut gradient[(unit * GATES + gate) * GATE..][..GATE];
                own[0] += slope * seen.loss;
                own[1] += slope * seen.above;
                own[2] += slope;
            }
        }
        // log(1 + e^a) of the logit of the wrong answer.
        let against = if right { -logit } else { logit };
        share * (against.max(0.0) + (-against.abs()).exp().ln_1p())
    }
}

/// Fresh weights: each uniform between ± one over the root of its unit's inputs, biases 0.
pub(super) fn fresh(seed: u64) -> Vec<f32> {
    let mut words = words(seed, 0, Use::Weights);
    let mut drawn = |fan: usize| {
        let unit = (words.next().expect("endless") >> 11) as f64 / (1u64 << 53) as f64;
        ((2.0 * unit - 1.0) / (fan as f64).sqrt()) as f32
    };
    let weight = |at: usize| match at {
        _ if at < DENSE_AT && at % GATE == GATE - 1 => 0.0,
        _ if at < DENSE_AT => drawn(GATE - 1),
        _ if at < OUTPUT_AT && (at - DENSE_AT) % FAN == FAN - 1 => 0.0,
        _ if at < OUTPUT_AT => drawn(FAN - 1),
        _ if at < WEIGHTS - 1 => drawn(DENSE),
        _ => 0.0,
    };
    (0..WEIGHTS).map(weight).collect()
}

/// Weights that have learned from verified examples, of which each step draws some.
pub(super) fn trained(
    weights: &[f32],
    examples: &[(Seen, bool)],
    (steps, rate): (usize, f64),
    (seed, epoch): (u64, usize),
) -> Vec<f32> {
    let mut adam = Adam::new(vec![NamedTensor::vector("mentor", weights)], rate, steps);
    let mut words = words(seed, epoch, Use::Examples);
    for _ in 0..steps {
        let mentor = Mentor::new(&adam.tensors[0].values.read());
        let (mut gradient, mut loss) = (vec![0.0; WEIGHTS], 0.0);
        for word in words.by_ref().take(BATCH) {
            let at = ((u128::from(word) * examples.len() as u128) >> 64) as usize;
            let (seen, right) = examples[at];
            loss += mentor.learn(seen, right, 1.0 / BATCH as f64, &mut gradient);
        }
        let gradient: Vec<f32> = gradient.into_iter().map(|value| value as f32).collect();
        adam.step(&[Values::from(gradient)], loss);
    }
    adam.tensors[0].values.read().to_vec()
}

/// What random words are for.
#[derive(Clone, Copy)]
enum Use {
    Weights,
    Examples,
}

fn words(seed: u64, epoch: usize, purpose: Use) -> impl Iterator<Item = u64> {
    let block = match purpose {
        Use::Weights => 0,
        Use::Examples => 1,
    };
    let key = NoiseKey { seed, step: epoch as u64 };
    split_mix(key.block_seed(u64::MAX, Stream::Method, block))
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope_of_the_cross_entropy() {
        let weights: Vec<f64> = fresh(3).iter().map(|it| f64::from(*it) + 0.1).collect();
        for (seen, right) in [
            (Seen { loss: 1.3, above: 0.4, progress: 0.25 }, true),
            (Seen { loss: 0.2, above: -0.7, progress: 0.9 }, false),
        ] {
            let loss = |weights: &[f64]| {
                let v = Mentor { weights: weights.to_vec() }.weight(seen);
                0.5 * if right { -v.ln() } else { -(1.0 - v).ln() }
            };
            let mut gradient = vec![0.0; WEIGHTS];
            let mentor = Mentor { weights: weights.clone() };
            let found = mentor.learn(seen, right, 0.5, &mut gradient);
            assert!((found - loss(&weights)).abs() < 1e-12, "{found}");
            for (at, slope) in gradient.into_iter().enumerate() {
                let moved = |by: f64| {
                    let mut weights = weights.clone();
                    weights[at] += by;
                    loss(&weights)
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                // Differences of h = 1e-5: h² of truncation, 1e-16 / h of rounding.
                assert!((slope - expected).abs() < 1e-9, "{at}: {slope} {expected}");
            }
        }
    }

    /// The best weight of an example is the share of right labels among those with its loss.
    #[test]
    fn it_learns_how_often_labels_of_a_loss_are_right() {
        let seen = |loss: f64| Seen { loss, above: loss - 1.0, progress: 0.5 };
        // Of small losses nine in ten are right, of large ones one in ten.
        let examples: Vec<(Seen, bool)> = (0..400)
            .map(|at| {
                let small = at % 2 == 0;
                let loss = f64::from(at % 20) / 40.0 + if small { 0.1 } else { 2.0 };
                (seen(loss), small == (at % 40 < 36))
            })
            .collect();
        let weights = trained(&fresh(1), &examples, (500, 0.1), (1, 1));
        let mentor = Mentor::new(&weights);
        for (loss, expected) in [(0.3, 0.9), (2.2, 0.1)] {
            let found = mentor.weight(seen(loss));
            // The noise of the last steps, of 32 examples each.
            assert!((found - expected).abs() < 0.1, "{loss}: {found}");
        }
        assert_eq!(weights, trained(&fresh(1), &examples, (500, 0.1), (1, 1)));
        assert_ne!(weights, trained(&fresh(1), &examples, (500, 0.1), (1, 2)));
    }
}
