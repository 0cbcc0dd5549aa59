//! What methods rely on: gradients, tensors and networks of their own, exact resume.

mod gradients;
mod mixing;
mod views;

use aleator_data::{Batch, InputShape, Targets};
use aleator_kernels::reference::{Example, Noise};
use aleator_kernels::{Covariance, Latent, NoiseKey, NoiseLaw, Sampling, fused};
use aleator_model::{BatchNoise, Draws};
use aleator_run::Document;
use aleator_run::recipe::{BootstrapTargets, Bootstrapping as Settings, Recipe};
use burn::tensor::{Tensor, TensorData};

use super::*;
use crate::Normalization;
use crate::checkpoint::{Checkpoints, LogPositions};
use crate::experiment::Shape;
use crate::parts::Loaded;
use crate::state::device;
use crate::step::Stepper;
use crate::tensors::NamedTensor;

const EXAMPLES: usize = 6;
const WIDTH: usize = 4;
const CLASSES: usize = 3;
const SAMPLES: usize = 8;

fn recipe(sets: &[&str]) -> Recipe {
    let mut document = Document::preset("digits-none").unwrap();
    let head = ["head.noise=diagonal", "head.diag_scale=affine", "head.temperature=0.8"];
    let samples = format!("head.samples={SAMPLES}");
    let all = head.iter().chain(sets).copied().chain([samples.as_str(), "network.hidden="]);
    all.chain(["network.kind=none"]).for_each(|set| document.set(set).unwrap());
    document.recipe().unwrap()
}

/// For images, with a network that has norms.
fn with_norms() -> Recipe {
    let mut document = Document::preset("images-none").unwrap();
    let network = ["network.kind=resnet-20", "network.channels=", "network.norm_momentum=0.5"];
    let rest = ["network.norm_epsilon=1e-5", "data.train.images=images", "head.samples=4"];
    network.iter().chain(&rest).for_each(|set| document.set(set).unwrap());
    document.recipe().unwrap()
}

const SHAPE: Shape = Shape { input: InputShape::Features(WIDTH), classes: CLASSES };

fn fresh(recipe: &Recipe) -> State {
    State::start(recipe, 1, SHAPE)
}

fn start(recipe: &Recipe, examples: usize) -> Start<'_> {
    Start { recipe, seed: 1, examples, shape: SHAPE }
}

fn inputs() -> Vec<f32> {
    let words = aleator_kernels::split_mix(5).take(EXAMPLES * WIDTH);
    words.map(|word| (word >> 40) as f32 / (1u64 << 22) as f32 - 2.0).collect()
}

const LABELS: [u32; EXAMPLES] = [0, 2, 1, 1, 0, 2];

/// One part of a step of all examples.
fn batch(step: usize, part: usize, parts: usize) -> Batch {
    let rows = part * EXAMPLES / parts..(part + 1) * EXAMPLES / parts;
    Batch {
        step,
        epoch: step,
        part,
        step_examples: EXAMPLES,
        examples: rows.clone().collect(),
        keys: rows.clone().map(|row| 100 + row as u64).collect(),
        inputs: inputs()[rows.start * WIDTH..rows.end * WIDTH].to_vec(),
        second_view: None,
        targets: Targets::Classes(LABELS[rows].to_vec()),
    }
}

fn loaded(step: usize, part: usize, parts: usize) -> Loaded {
    Loaded::new(batch(step, part, parts), &Normalization::identity(WIDTH))
}

/// The loss of bootstrapping in f64 with plain loops. `held` are the log-probabilities that make
/// targets which are constants.
fn reference_loss(weights: &[NamedTensor], settings: Settings, held: &[Vec<f64>]) -> f64 {
    let examples = log_probs(weights).into_iter().zip(held).zip(LABELS);
    let loss = |((log_probs, held), label): ((Vec<f64>, &Vec<f64>), u32)| -> f64 {
        let top = (0..CLASSES).max_by(|a, b| held[*a].total_cmp(&held[*b])).unwrap();
        let target = |class: usize| match settings.targets {
            BootstrapTargets::Hard => f64::from(u8::from(class == top)),
            BootstrapTargets::Soft => log_probs[class].exp(),
            BootstrapTargets::SoftFixed => held[class].exp(),
        };
        let given = |class: usize| f64::from(u8::from(class == label as usize));
        let beta = settings.beta;
        (0..CLASSES)
            .map(|class| -(beta * given(class) + (1.0 - beta) * target(class)) * log_probs[class])
            .sum()
    };
    examples.map(loss).sum::<f64>() / EXAMPLES as f64
}

/// log p of every example, for the noise of step 0.
fn log_probs(weights: &[NamedTensor]) -> Vec<Vec<f64>> {
    log_probs_of(weights, &inputs(), &[1.0; EXAMPLES])
}

/// The same with other noise.
fn log_probs_with(weights: &[NamedTensor], noise: &BatchNoise) -> Vec<Vec<f64>> {
    log_probs_in(weights, &inputs(), &[1.0; EXAMPLES], noise)
}

/// The same of other inputs, and of utilities that are multiplied by a factor for each example.
fn log_probs_of(weights: &[NamedTensor], inputs: &[f32], factors: &[f64]) -> Vec<Vec<f64>> {
    log_probs_in(weights, inputs, factors, &noise())
}

fn log_probs_in(
    weights: &[NamedTensor],
    inputs: &[f32],
    factors: &[f64],
    noise: &BatchNoise,
) -> Vec<Vec<f64>> {
    let wide = |values: &[f32]| values.iter().map(|value| *value as f64).collect::<Vec<f64>>();
    let of = |name: &str| {
        let found = weights.iter().find(|weight| weight.name.ends_with(name));
        wide(&found.unwrap_or_else(|| panic!("{name}")).values.read())
    };
    let dense = |layer: &str, input: &[f32], factor: f64| -> Vec<f64> {
        let (weight, bias) = (of(&format!("{layer}.weight")), of(&format!("{layer}.bias")));
        let product = |class: usize| -> f64 {
            let terms = input.iter().enumerate();
            terms.map(|(at, x)| *x as f64 * weight[at * CLASSES + class]).sum()
        };
        (0..CLASSES).map(|class| factor * (bias[class] + product(class))).collect()
    };
    let batch = inputs.len() / WIDTH;
    let zeros = vec![0.0; batch * CLASSES];
    let covariance = Covariance::Diagonal { diag_scale: &zeros };
    let latent = Latent { batch, classes: CLASSES, mean: &zeros, covariance };
    let BatchNoise { key, ids, samples, draws } = noise;
    let law = NoiseLaw::Normal;
    let sampling = Sampling { key: *key, ids, samples: *samples, draws: *draws, law };
    let rows = inputs.chunks_exact(WIDTH).enumerate();
    rows.map(|(row, input)| {
        let drawn = fused::drawn_noise(&latent, &sampling, row);
        let diag_draws: Vec<Vec<f64>> = drawn.diag_draws.chunks(CLASSES).map(wide).collect();
        let factor_draws = vec![vec![]; diag_draws.len()];
        let example = Example {
            mean: dense("head.mean", input, factors[row]),
            diag_scale: dense("head.diag_scale", input, factors[row]),
            loadings: vec![vec![]; CLASSES],
            temperature: 0.8,
        };
        example.log_probs(&Noise { diag_draws, factor_draws })
    })
    .collect()
}

fn noise() -> BatchNoise {
    let ids = batch(0, 0, 1).keys;
    let key = NoiseKey { seed: 1, step: 0 };
    BatchNoise { key, ids, samples: SAMPLES, draws: Draws::Antithetic }
}

#[test]
fn the_gradient_of_bootstrapping_is_the_slope_of_its_loss_in_f64() {
    let state = fresh(&recipe(&[]));
    let [Some(weights), ..] = state.networks[0].parts() else { panic!("a network has weights") };
    let held = log_probs(&weights);
    let batch = batch(0, 0, 1);
    for targets in [BootstrapTargets::Hard, BootstrapTargets::Soft, BootstrapTargets::SoftFixed] {
        for beta in [0.0, 0.7, 1.0] {
            let settings = Settings { beta, targets, burn_in: 0 };
            let inputs = TensorData::new(inputs(), [EXAMPLES, WIDTH]);
            let part = Part {
                batch: &batch,
                inputs: Tensor::from_data(inputs, &device().autodiff()),
                second_view: None,
                noise: noise(),
                weights: vec![1.0 / EXAMPLES as f32; EXAMPLES],
            };
            let found = Bootstrapping(settings).part(&state, &part).unwrap();
            let expected = reference_loss(&weights, settings, &held);
            // f32 sums of numbers about one.
            assert!(
                (found.loss - expected).abs() < 1e-5,
                "{settings:?}: {} {expected}",
                found.loss
            );
            for (index, gradient) in found.networks[0].values.iter().enumerate() {
                for (at, gradient) in gradient.read().iter().enumerate() {
                    let moved = |by: f32| {
                        let mut weights = weights.clone();
                        weights[index].values.change(|values| values[at] += by);
                        let at = weights[index].values.read()[at];
                        (reference_loss(&weights, settings, &held), at as f64)
                    };
                    const STEP: f32 = 1.0 / 256.0;
                    let ((above, to), (below, from)) = (moved(STEP), moved(-STEP));
                    let slope = (above - below) / (to - from);
                    // The truncation of the difference, h²/6 times third derivatives.
                    let difference = (*gradient as f64 - slope).abs();
                    let name = &weights[index].name;
                    assert!(difference < 2e-4, "{settings:?} {name}[{at}]: {gradient} {slope}");
                }
            }
        }
    }
}

/// Trains a second network on other noise, and weighs examples by the loss that it remembers.
struct Remembering;

impl Method for Remembering {
    fn prepare(&self, state: &mut State, start: &Start<'_>) {
        state.networks.push(state.networks[0].clone());
        state.memory = vec![NamedTensor::vector("losses", &vec![0.0; start.examples])];
    }

    fn part(&self, state: &State, part: &Part<'_>) -> Result<Contribution, Vec<usize>> {
        let kept = state.memory[0].values.read();
        let weigh = |(weight, example): (&f32, &usize)| weight / (1.0 + kept[*example]);
        let weights: Vec<f32> = part.weights.iter().zip(&part.batch.examples).map(weigh).collect();
        let mut parts = state.networks.iter().zip(0..).map(|(network, index)| {
            let mut noise = part.noise.clone();
            noise.key.seed += index;
            let model = network.model();
            let forward = model.forward(part.inputs.clone());
            let loss = model.loss(forward, part.targets(), &weights, &noise, None)?;
            let rows = loss.losses.read().into_owned();
            Ok::<_, Vec<usize>>(Contribution { rows, ..Contribution::new(part, network, loss) })
        });
        let mut first = parts.next().expect("two networks")?;
        first.networks.extend(parts.next().expect("two networks")?.networks);
        Ok(first)
    }

    fn finish(&self, state: &mut State, sum: Contribution, rate: f64) {
        state.memory[0].values.change(|kept| {
            sum.examples.iter().zip(&sum.rows).for_each(|(example, loss)| kept[*example] = *loss);
        });
        update_networks(state, &sum, rate);
    }
}

#[test]
fn tensors_and_networks_of_a_method_are_saved_by_name_and_resumed_to_the_same_bits() {
    let recipe = recipe(&["training.ema=0.9"]);
    let stepper = || {
        let mut stepper = Stepper::new(&recipe, 1, 2);
        stepper.method = Box::new(Remembering);
        stepper
    };
    let prepared = || {
        let mut state = fresh(&recipe);
        Remembering.prepare(&mut state, &start(&recipe, EXAMPLES));
        state
    };
    let train = |state: &mut State, steps: std::ops::Range<usize>| {
        let mut stepper = stepper();
        for step in steps {
            let reports: Vec<_> = (0..2)
                .map(|part| stepper.add(state, &loaded(step, part, 2), 0.1).unwrap())
                .collect();
            assert!(reports[0].is_none() && reports[1].is_some());
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().to_path_buf());
    let mut whole = prepared();
    train(&mut whole, 0..5);
    let mut first = prepared();
    train(&mut first, 0..2);
    checkpoints.save(&first, LogPositions::default()).unwrap();
    let mut second = prepared();
    checkpoints.restore(2, &mut second).unwrap();
    train(&mut second, 2..5);
    assert_eq!(second.progress, whole.progress);
    assert_eq!(second.memory, whole.memory);
    assert!(whole.memory[0].values.read().iter().all(|loss| *loss > 0.0));
    let of = |state: &State| state.networks.iter().map(|one| one.parts()).collect::<Vec<_>>();
    assert!(of(&second) == of(&whole));
    assert!(of(&whole)[0] != of(&whole)[1], "the networks see other noise");
    let mut files: Vec<String> = std::fs::read_dir(checkpoints.path(2))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let expected = "average-2.safetensors average.safetensors manifest.json method.safetensors \
                    model-2.safetensors model.safetensors optimizer-2.safetensors \
                    optimizer.safetensors state.json";
    assert_eq!(files.join(" "), expected);
}

#[test]
fn a_plain_step_in_parts_is_near_the_step_of_the_whole() {
    let recipe = recipe(&[]);
    let trained = |parts: usize| {
        let mut state = fresh(&recipe);
        let mut stepper = Stepper::new(&recipe, 1, parts);
        stepper.method = Box::new(Plain);
        (0..parts).for_each(|part| drop(stepper.add(&mut state, &loaded(0, part, parts), 0.1)));
        assert_eq!(state.progress.step, 1);
        state.networks[0].parts()[0].clone().unwrap()
    };
    let whole = trained(1);
    for parts in [2, 3, 6] {
        for (one, other) in whole.iter().zip(trained(parts)) {
            let pairs =
                one.values.read().into_owned().into_iter().zip(other.values.read().to_vec());
            // The same sums in another order; Adam divides by their size.
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{parts} {}: {a} {b}", one.name));
        }
    }
}

/// A recipe with the method "dynamics", and the method itself.
fn dynamics() -> (Recipe, Dynamics) {
    let settings = aleator_run::recipe::Dynamics { prior_examples: 0.5 };
    (recipe(&["method=dynamics", "dynamics.prior_examples=0.5"]), Dynamics(settings))
}

#[test]
fn dynamics_add_up_what_was_predicted_just_before_each_step() {
    let (recipe, method) = dynamics();
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let before = |state: &State| {
        let [Some(weights), ..] = state.networks[0].parts() else { panic!("no weights") };
        log_probs(&weights)
    };
    let first = before(&state);
    let mut stepper = Stepper::new(&recipe, 1, 2);
    for part in 0..2 {
        stepper.add(&mut state, &loaded(0, part, 2), 0.1).unwrap();
    }
    let kept = state.memory[0].values.read().to_vec();
    for (found, expected) in kept.iter().zip(first.iter().flatten()) {
        // f32 sums of numbers about one.
        assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
    }
    assert_eq!(state.memory[1].values.read().to_vec(), [1.0; EXAMPLES]);
    let second = before(&state);
    assert!(second[0] != first[0], "the step moved the weights");
    for part in 0..2 {
        stepper.add(&mut state, &loaded(1, part, 2), 0.1).unwrap();
    }
    assert_eq!(state.memory[1].values.read().to_vec(), [2.0; EXAMPLES]);
    // The noise of step 1 is other noise; what was kept of step 0 is still in the sum.
    let twice = state.memory[0].values.read().to_vec();
    assert!(twice.iter().zip(&kept).all(|(twice, once)| twice < once), "{twice:?} {kept:?}");
}

#[test]
fn the_mean_over_the_epochs_is_a_geometric_mean_that_sums_to_one() {
    let (recipe, method) = dynamics();
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, 2));
    // The geometric means of these are 1/5 : 2/5 : 1/5, which sum to 4/5.
    let epochs = [[0.1_f32, 0.8, 0.1], [0.4, 0.2, 0.4]];
    let sums: Vec<f32> = (0..3).map(|class| epochs.iter().map(|p| p[class].ln()).sum()).collect();
    state.memory[0].values.change(|all| {
        all[..3].copy_from_slice(&sums);
        // Twice as improbable in one of four epochs: a factor of 2^(−¼).
        all[3..].copy_from_slice(&[0.0, 0.5_f32.ln(), 0.0]);
    });
    state.memory[1].values.change(|counts| counts.copy_from_slice(&[2.0, 4.0]));
    let found: Vec<f32> = dynamics::mean_log_probs(&state).iter().map(|log| log.exp()).collect();
    let factor = 0.5_f32.powf(0.25);
    let second = [1.0, factor, 1.0].map(|weight| weight / (2.0 + factor));
    for (found, expected) in found.iter().zip([0.25, 0.5, 0.25].iter().chain(&second)) {
        // A few roundings of f32.
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

#[test]
fn an_impossible_class_does_not_spoil_the_mean() {
    let (recipe, method) = dynamics();
    let mut state = fresh(&recipe);
    method.prepare(&mut state, &start(&recipe, EXAMPLES));
    let batch = batch(0, 0, 1);
    let part = Part {
        batch: &batch,
        inputs: Tensor::from_data(
            TensorData::new(inputs(), [EXAMPLES, WIDTH]),
            &device().autodiff(),
        ),
        second_view: None,
        noise: noise(),
        weights: vec![1.0 / EXAMPLES as f32; EXAMPLES],
    };
    let mut found = method.part(&state, &part).unwrap();
    found.rows[0] = f32::NEG_INFINITY;
    method.finish(&mut state, found, 0.0);
    let mean = dynamics::mean_log_probs(&state);
    assert!(mean.iter().all(|value| value.is_finite()), "{mean:?}");
    assert!(mean[0] < -90.0, "{}", mean[0]);
}
